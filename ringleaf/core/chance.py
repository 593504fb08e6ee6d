"""Random numbers of compiled code: splitmix64, and 32 bits by place.

Source:
    Appleby, "MurmurHash3", 2011: `fmix32`. Steele, Lea and Flood, "Fast splittable pseudorandom
    number generators", OOPSLA 2014: splitmix64's `mix64` with Stafford's constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleaf.core.arena import Fields
from ringleaf.core.compiled import inline

_WORD = (1 << 64) - 1

_FIRST, _SECOND = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_13, _16 = np.uint32(13), np.uint32(16)


def spread64(number: int) -> int:
    """Return 64 bits that look unlike those of any near number: splitmix64's first output."""
    word = (number + 0x9E3779B97F4A7C15) & _WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _WORD
    return word ^ word >> 31


@inline
def draw64(fields: Fields, at: int) -> np.uint64:
    """Return 64 random bits; the state is the word `fields[at]`, and any value seeds it."""
    fields[at] += np.uint64(0x9E3779B97F4A7C15)
    z = fields[at]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inline
def scrambled(element: Any, first: Any, second: Any) -> Any:
    """Return 32 random bits for an element's number; all are uint32, or arrays of them."""
    bits = element ^ first
    bits = np.uint32((bits ^ (bits >> _16)) * _FIRST)
    bits = np.uint32((bits ^ (bits >> _13)) + second)
    bits = np.uint32(bits * _SECOND)
    return np.uint32(bits ^ (bits >> _16))
