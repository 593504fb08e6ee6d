"""Compiled loops over elements that quantisers and their codecs share.

Random numbers depend on two keys and the element's place, so results are the same on any machine.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core import native_types as types
from ringleaf.core.chance import scrambled, spread64
from ringleaf.core.compiled import compiled, inline
from ringleaf.core.tensors import Array

_FLOATS, _WORDS, _LEVELS = types.float32[::1], types.uint32[::1], types.int32[::1]
_8, _9, _23, _31 = (np.uint32(bits) for bits in (8, 9, 23, 31))
_UNIT = np.float32(2.0**-24)
_ZERO = np.float32(0)

LOWEST = 0xFF
"""The byte of a unit that is zero."""

_SAMPLE = 64  # elements that a unit is guessed from
_TRIES = 4  # guesses, each from elements that the last one did not fit, too
_LEAST_UNIT = 1e-37  # whose reciprocal is a float32
_BIAS = 150  # of powers of two in a float32, whose fraction is a whole number of 23 bits
_ENDLESS = 255  # the power of what is no number


def keys(seed: int, rank: int) -> tuple[np.uint32, np.uint32]:
    """Return the two keys of a rank's random numbers in a step."""
    word = spread64(spread64(seed) ^ rank)
    return np.uint32(word >> 32), np.uint32(word & 0xFFFFFFFF)


def rounded_at_random(
    values: Array, unit: np.float32, most: int, seed: int, rank: int = 0
) -> Array:
    """Return multiples of a unit next to the values, whose expectation is the values.

    Args:
        values: (elements,) float32.
        unit: If it is 0, so are all results.
        most: The largest multiple; values are not above it but for their rounding.
        seed: The step's.
        rank: The rank, each of which rounds otherwise.
    """
    result = np.empty_like(values)
    inverse = np.float32(1 / np.float64(unit)) if unit else _ZERO
    _round(values, inverse, np.float32(unit), np.float32(most), *keys(seed, rank), result)
    return result


@compiled(
    types.void(
        _FLOATS, types.float32, types.float32, types.float32, types.uint32, types.uint32, _FLOATS
    )
)
def _round(
    values: Array,
    inverse: np.float32,
    unit: np.float32,
    most: np.float32,
    first: np.uint32,
    second: np.uint32,
    out: Array,
) -> None:
    for i in range(len(values)):
        chance = np.float32(scrambled(np.uint32(i), first, second) >> _8) * _UNIT
        level = np.floor(values[i] * inverse + chance)
        level = min(max(level, -most), most)
        out[i] = level * unit + _ZERO  # no negative zeros


def powers_at_random(values: Array, least: int, most: int, seed: int, rank: int = 0) -> Array:
    """Return powers of two next to the values, whose expectation is the values, or zero.

    Args:
        values: (elements,) float32.
        least: The smallest exponent, as float32 has it; below it is zero.
        most: The largest exponent, which larger values get.
        seed: The step's.
        rank: The rank, each of which rounds otherwise.
    """
    result = np.empty(values.size, np.uint32)
    _powers(values.view(np.uint32), np.uint32(least), np.uint32(most), *keys(seed, rank), result)
    return result.view(np.float32)


@compiled(types.void(_WORDS, types.uint32, types.uint32, types.uint32, types.uint32, _WORDS))
def _powers(
    words: Array, least: np.uint32, most: np.uint32, first: np.uint32, second: np.uint32, out: Array
) -> None:
    for i in range(len(words)):
        sign = words[i] >> _31
        # A random number below 2^23 carries into the exponent as often as it should.
        size = np.uint32(words[i] - np.uint32(sign << _31))
        size = np.uint32(size + (scrambled(np.uint32(i), first, second) >> _9)) >> _23
        size = min(np.uint32(size), most)
        out[i] = np.uint32((np.uint32(sign << _8) + size) << _23) if size >= least else np.uint32(0)


def find_unit(values: Array, levels: Array) -> np.float32:
    """Write multiples of a unit to `levels` (int32), and return the unit; 0 if there is none.

    It is the largest number of which all values (float32) are multiples, has zeros in its lowest
    byte, and no multiple is above 2^22. If all are zeros, it is 1.
    """
    return np.float32(_find_unit(values, values.view(np.uint32), levels))


@compiled(types.float64(_FLOATS, _WORDS, _LEVELS))
def _find_unit(values: Array, words: Array, levels: Array) -> float:
    """Guess the unit from the first elements that are not zero; then from those that don't fit."""
    start = 0
    while start < len(values) and words[start] == np.uint32(0):
        levels[start] = 0
        start += 1
    if start == len(values):
        return 1.0
    whole, power = 0, 0
    for _ in range(_TRIES):
        whole, power = _common(words, start, min(start + _SAMPLE, len(words)), whole, power)
        unit = whole * 2.0 ** (power - _BIAS)
        if unit < _LEAST_UNIT or whole & LOWEST:
            return 0.0
        start = _divide(values, words, np.float32(unit), levels)
        if start < 0:
            return unit
    return 0.0


@inline
def _parts(word: np.uint32) -> tuple[int, int]:
    """Return a float32 without its sign as a whole number times 2^(power - _BIAS)."""
    power = int(word >> _23) & 0xFF
    return (int(word) & 0x7FFFFF) | int(power > 0) << 23, max(power, 1)


@inline
def _common(words: Array, start: int, stop: int, whole: int, power: int) -> tuple[int, int]:
    """Return the largest number of which some elements, and one that is not 0, are multiples.

    Returns 0 and 0 if the numbers are too far apart, or have no end. Else the first has 24 bits.
    """
    least, most = (power, power) if whole else (_ENDLESS, 0)
    for i in range(start, stop):
        each, there = _parts(words[i])
        if each:
            least, most = min(least, there), max(most, there)
    if most == _ENDLESS or most - least > 38:
        return 0, 0
    common = whole << max(power - least, 0)
    for i in range(start, stop):
        each, there = _parts(words[i])
        rest = each << max(there - least, 0)
        while rest:
            common, rest = rest, common % rest
    while 0 < common < 1 << 23:
        common <<= 1
        least -= 1
    return common, least


@inline
def _divide(values: Array, words: Array, unit: np.float32, levels: Array) -> int:
    """Write multiples of a unit; return the first place that has none, or -1."""
    inverse = np.float32(1 / np.float64(unit))  # off by a rounding, which does not matter
    at = 0
    while at < len(values):
        stop, is_wrong = min(at + 1024, len(values)), False
        for i in range(at, stop):
            level = np.rint(values[i] * inverse)
            is_large = not abs(level) <= np.float32(1 << 22)
            is_negative_zero = words[i] == np.uint32(1 << 31)
            is_wrong |= (level * unit != values[i]) | is_large | is_negative_zero
            levels[i] = np.int32(level)
        if is_wrong:
            for i in range(at, stop):
                level = np.rint(values[i] * inverse)
                is_fine = abs(level) <= np.float32(1 << 22) and level * unit == values[i]
                if not is_fine or words[i] == np.uint32(1 << 31):
                    return i
        at = stop
    return -1
