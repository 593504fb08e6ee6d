"""Packet sockets with receive rings, all rings in one stretch of memory.

Source: packet(7), Linux `Documentation/networking/packet_mmap.rst`.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np

import ringleaf.networks.live.state as v
from ringleaf.core.arena import Bytes
from ringleaf.errors import BackendError

# Python's `socket` has no names for these numbers of `linux/if_packet.h`.
SOL_PACKET = 263
PACKET_RX_RING = 5
PACKET_STATISTICS = 6
PACKET_VERSION = 10
PACKET_LOSS = 14
PACKET_QDISC_BYPASS = 20
PACKET_IGNORE_OUTGOING = 23
TPACKET_V2 = 1  # version 3 hands over blocks of frames, a millisecond late if they aren't full
ETH_P_ALL = 3
MAP_FIXED = 0x10
BLOCK_BYTES = 1 << 18
_STATISTICS = struct.Struct("2I")  # frames, and those of them that were dropped

_C = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]


class Sockets:
    """Packet sockets, one for each of some interfaces of this process's network namespace.

    Args:
        interfaces: Their names.
        bypass: Send past the interfaces' queueing disciplines, for processes that pace lines
            themselves, or through them.

    Raises:
        BackendError: If an interface isn't there, or this process may not open one.
    """

    def __init__(self, interfaces: Sequence[str], *, bypass: bool = True) -> None:
        self._ring_bytes = v.frames_each(len(interfaces)) * v.FRAME_BYTES
        self._space = mmap.mmap(-1, max(len(interfaces), 1) * self._ring_bytes)
        self.rings: Bytes = np.frombuffer(self._space, np.uint8)
        self.sockets: list[socket.socket] = []
        self._overflows = [0] * len(interfaces)
        self.wake_descriptor = os.eventfd(0, os.EFD_NONBLOCK)
        try:
            for name in interfaces:
                self.sockets.append(self._open(name, bypass))
        except OSError as exc:
            self.close()
            raise BackendError(
                f"interface {name}: no packet socket, got {exc.strerror}; "
                "is it there, and are you root?"
            ) from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def descriptors(self) -> list[int]:
        """Return the sockets' file descriptors, in the order of the interfaces."""
        return [each.fileno() for each in self.sockets]

    @property
    def addresses(self) -> list[int]:
        """The MAC address of each interface."""
        return [int.from_bytes(each.getsockname()[4]) for each in self.sockets]

    def overflows(self) -> list[int]:
        """Return, per socket, the frames that found its ring full; the kernel resets its count."""
        for number, each in enumerate(self.sockets):
            statistics = each.getsockopt(SOL_PACKET, PACKET_STATISTICS, _STATISTICS.size)
            self._overflows[number] += _STATISTICS.unpack(statistics)[1]
        return list(self._overflows)

    def wake(self) -> None:
        """Wake the thread that waits for frames."""
        os.eventfd_write(self.wake_descriptor, 1)

    def rest(self) -> None:
        """Reset the effect of `wake`."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.wake_descriptor)

    def close(self) -> None:
        """Close all sockets, and the descriptor by which other threads wake the loop."""
        for each in self.sockets:
            each.close()
        os.close(self.wake_descriptor)

    def _open(self, name: str, bypass: bool) -> socket.socket:
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        one.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        blocks, frames = self._ring_bytes // BLOCK_BYTES, self._ring_bytes // v.FRAME_BYTES
        ring = struct.pack("4I", BLOCK_BYTES, blocks, v.FRAME_BYTES, frames)
        one.setsockopt(SOL_PACKET, PACKET_RX_RING, ring)
        # Otherwise the frames that the process sends itself would fill the ring, too.
        one.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        if bypass:
            one.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        one.setblocking(False)
        self._map(one, len(self.sockets) * self._ring_bytes)
        one.bind((name, ETH_P_ALL))  # only now do frames come
        return one

    def _map(self, one: socket.socket, at: int) -> None:
        """Map the socket's ring onto its part of `rings`."""
        address = self.rings.ctypes.data + at
        # The ring replaces a part of the stretch that was reserved for all rings, so that compiled
        # code finds any frame by one offset.
        protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | MAP_FIXED
        got = _C.mmap(address, self._ring_bytes, protection, flags, one.fileno(), 0)
        if got != address:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
