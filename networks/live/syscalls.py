"""The system calls that compiled code and its uncompiled twin make.

Addresses are integers: of an array, `array.ctypes.data`. Results are the C library's: -1 for an
error.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core import native_types as types
from ringleaf.core.arena import Bytes, Words
from ringleaf.core.compiled import External, inline
from ringleaf.core.units import PS_PER_NS, PS_PER_S
from ringleaf.core.views import window

CLOCK_MONOTONIC = 1
POLLIN = 1

_INT, _COUNT, _ADDRESS = types.int32, types.uint32, types.int64

send_batch = External("sendmmsg", _INT(_INT, _ADDRESS, _COUNT, _INT))
"""Send packets of an array of `struct mmsghdr` (`sendmmsg(2)`); return how many were sent."""

await_input = External("ppoll", _INT(_ADDRESS, types.int64, _ADDRESS, _ADDRESS))
"""Wait for one of an array of `struct pollfd`, or for a `struct timespec` (`ppoll(2)`)."""

read_clock = External("clock_gettime", _INT(_INT, _ADDRESS))
"""Read a clock into a `struct timespec` (`clock_gettime(2)`)."""


@inline
def address_in(array: Words | Bytes, at: int) -> int:
    """Return the address of an item of an arena's array, for the calls above."""
    return np.int64(window(array, at, 1).ctypes.data)  # type: ignore[return-value]


@inline
def clock_ps(words: Words, scratch: int) -> int:
    """Return the monotonic clock in picoseconds; `scratch` is the offset of two words to use."""
    read_clock(CLOCK_MONOTONIC, address_in(words, scratch))
    return words[scratch] * PS_PER_S + words[scratch + 1] * PS_PER_NS
