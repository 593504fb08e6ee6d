"""What hosts do before a run, and how they get the processor."""

from __future__ import annotations

import ctypes
import mmap
import os
import socket

import numpy as np
import pytest

from networks.live.processes import hurrying
from networks.live.warmth import PAGE_BYTES, deaf_sockets, populate


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def send_twice(port: int) -> None:
    """The second call reports the error that was the answer to the first."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("127.0.0.1", port))
        one.send(b"?")
        one.send(b"?")


def test_the_kernel_answers_for_ports_without_socket_only() -> None:
    port = free_port()
    with pytest.raises(ConnectionRefusedError):
        send_twice(port)

    (deaf,) = deaf_sockets([port])
    with deaf:
        send_twice(port)
        with pytest.raises(BlockingIOError):
            deaf.recv(1, socket.MSG_DONTWAIT)


def test_a_port_that_somebody_has_is_left_to_them() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as theirs:
        theirs.bind(("", 0))
        port = theirs.getsockname()[1]
        (deaf,) = deaf_sockets([port])
        with deaf:
            send_twice(port)
            assert theirs.recv(1) == b"?"


def test_populated_are_the_pages_of_the_ranges_alone() -> None:
    memory = np.frombuffer(mmap.mmap(-1, 8 * PAGE_BYTES), np.uint8)

    populate(memory, [(PAGE_BYTES + 1, PAGE_BYTES), (6 * PAGE_BYTES, 1), (0, 0)])

    resident = ctypes.create_string_buffer(8)
    libc = ctypes.CDLL(None)
    libc.mincore(ctypes.c_void_p(memory.ctypes.data), ctypes.c_size_t(memory.size), resident)
    assert [each[0] & 1 for each in zip(resident.raw, strict=True)] == [0, 1, 1, 0, 0, 0, 1, 0]


def test_who_hurries_for_a_while_is_as_before_afterwards() -> None:
    before = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    with hurrying():
        policy = os.sched_getscheduler(0)
        assert policy == os.SCHED_RR or os.geteuid() != 0
    assert (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority) == before
