"""The system calls that compiled code makes; uncompiled, the same through ctypes.

Addresses are integers: of an array, `array.ctypes.data`. Results are the C library's: -1 for an
error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from ringleaf.core.arena import Bytes, Words
from ringleaf.core.compiled import compiled_as, inline
from ringleaf.core.units import PS_PER_NS, PS_PER_S
from ringleaf.core.views import window

CLOCK_MONOTONIC = 1
POLLIN = 1

_C = ctypes.CDLL(None, use_errno=True)
_ppoll = types.ExternalFunction(
    "ppoll", types.int32(types.intp, types.uint64, types.intp, types.intp)
)
_sendmmsg = types.ExternalFunction(
    "sendmmsg", types.int32(types.int32, types.intp, types.uint32, types.int32)
)
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.intp))


def send_batch(descriptor: int, messages: int, count: int) -> int:
    """Send `count` packets of an array of `struct mmsghdr` (`sendmmsg(2)`); return those sent."""
    return int(_C.sendmmsg(int(descriptor), ctypes.c_void_p(int(messages)), int(count), 0))


@compiled_as(send_batch)
def _compiled_send_batch(descriptor: Any, messages: Any, count: Any) -> Callable[..., int]:
    return lambda descriptor, messages, count: _sendmmsg(descriptor, messages, count, 0)


def await_input(descriptors: int, count: int, timeout: int) -> int:
    """Wait for one of an array of `struct pollfd`, or for a `struct timespec` (`ppoll(2)`)."""
    return int(
        _C.ppoll(ctypes.c_void_p(int(descriptors)), int(count), ctypes.c_void_p(int(timeout)), None)
    )


@compiled_as(await_input)
def _compiled_await_input(descriptors: Any, count: Any, timeout: Any) -> Callable[..., int]:
    return lambda descriptors, count, timeout: _ppoll(descriptors, count, timeout, 0)


def read_clock(timespec: int) -> int:
    """Read the monotonic clock into a `struct timespec` (`clock_gettime(2)`)."""
    return int(_C.clock_gettime(CLOCK_MONOTONIC, ctypes.c_void_p(int(timespec))))


@compiled_as(read_clock)
def _compiled_read_clock(timespec: Any) -> Callable[[Any], int]:
    return lambda timespec: _clock_gettime(CLOCK_MONOTONIC, timespec)


@inline
def address_in(array: Words | Bytes, at: int) -> int:
    """Return the address of an item of an arena's array, for the calls above."""
    return np.int64(window(array, at, 1).ctypes.data)  # type: ignore[return-value]


@inline
def clock_ps(words: Words, scratch: int) -> int:
    """Return the monotonic clock in picoseconds; `scratch` is the offset of two words to use."""
    read_clock(address_in(words, scratch))
    return words[scratch] * PS_PER_S + words[scratch + 1] * PS_PER_NS
