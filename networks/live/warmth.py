"""What a host's process does before a run starts, so that the run does not pay for it."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
from collections.abc import Iterable

import torch

from ringleaf.arena import Bytes

PAGE_BYTES = 4096
MADV_POPULATE_WRITE = 23  # Linux 5.14; an older kernel refuses, and maps pages one by one later
SO_ATTACH_FILTER = 26
RETURN = 0x06  # BPF_RET | BPF_K

_C = ctypes.CDLL(None, use_errno=True)
_C.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def populate(memory: Bytes, ranges: Iterable[tuple[int, int]]) -> None:
    """Have ranges of shared memory, (offset, bytes), in this process's page tables.

    A forked process begins without them, and has a page fault at the first touch of each.
    """
    start = memory.ctypes.data
    for offset, size in ranges:
        first = (start + offset) // PAGE_BYTES * PAGE_BYTES
        _C.madvise(first, start + offset + size - first, MADV_POPULATE_WRITE)


def warm_torch(dtype: torch.dtype) -> None:
    """Use what executors use of torch once: what it sets up at first use is copied memory here."""
    left, right = torch.zeros(1024, dtype=dtype), torch.zeros(1024, dtype=dtype)
    left.add_(right)
    left.copy_(right)


def deaf_sockets(ports: Iterable[int]) -> list[socket.socket]:
    """Return UDP sockets on these ports that refuse every datagram.

    The kernel shows frames to our packet sockets and goes on to its own UDP. Without anybody
    there, it answers with ICMP errors, which cost as much as our packets do, and travel with them.
    """
    found = []
    for port in ports:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        found.append(one)
        nothing = ctypes.create_string_buffer(struct.pack("HBBI", RETURN, 0, 0, 0), 8)
        program = struct.pack("HxxxxxxQ", 1, ctypes.addressof(nothing))
        one.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        with contextlib.suppress(OSError):  # somebody is there
            one.bind(("", port))
    return found
