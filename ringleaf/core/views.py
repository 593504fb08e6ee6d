"""Views and copies without the checks that Numba's slices make.

A slice clips its ends and looks for negative ones: 16 instructions for each of the views that a
handler opens, several nanoseconds a packet. Here offsets are trusted. Uncompiled, these are the
plain functions; `ringleaf.core.compiler.views` has the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def window(array: Any, start: int, count: int) -> Any:
    """Return a view of `count` items from `start` on."""
    return array[start : start + count]


def span(array: Any, start: int, count: int) -> Any:
    """Return `count` items from `start` on, as an arena's arrays are: compiled, an address.

    It has no slices, size or methods, and takes less to compile, and to use, than a `window`.
    """
    return array[start : start + count]


def int64_at(array: Any, start: int, count: int) -> Any:
    """Return `count` integers of 64 bits that bytes hold, from a multiple of 8 on."""
    return array[start : start + 8 * count].view(np.int64)


def uint32_at(array: Any, start: int, count: int) -> Any:
    """Return `count` integers of 32 bits that bytes hold, from a multiple of 4 on."""
    return array[start : start + 4 * count].view(np.uint32)


def float32_at(array: Any, start: int, count: int) -> Any:
    """Return `count` floats that bytes hold, from a multiple of 4 on."""
    return array[start : start + 4 * count].view(np.float32)


def int8_at(array: Any, start: int, count: int) -> Any:
    """Return `count` integers of 8 bits that bytes hold."""
    return array[start : start + count].view(np.int8)


def as_floats(words: Any) -> Any:
    """Return the words of an arena as floats of 64 bits, which lie at the same places."""
    return words.view(np.float64)


def number_at(array: Any, at: int, count: int) -> Any:
    """Return the number that `count` (1 to 8, a literal) bytes from `at` on are, highest first."""
    return np.uint64(int.from_bytes(array[at : at + count].tobytes(), "big"))


def put_number(array: Any, at: int, value: Any, count: int) -> None:
    """Write the `count` (1 to 8, a literal) low bytes of a number from `at` on, highest first."""
    low = int(value) & ((1 << 8 * count) - 1)
    array[at : at + count] = np.frombuffer(low.to_bytes(count, "big"), np.uint8)


def look_up_bytes(tables: Any, first: int, value: Any, count: int) -> Any:
    """Return the exclusive or of what tables have for the `count` low bytes of a number.

    Args:
        tables: (256 n,) n tables of 256 items, one after the other.
        first: The number of the first byte's table; the next byte has the next table.
        value: The number; its highest byte is the first.
        count: A literal, 1 to 8.
    """
    folded = 0
    for i in range(count):
        byte = int(value) >> 8 * (count - 1 - i) & 0xFF
        folded ^= int(tables[256 * (first + i) + byte])
    return np.uint64(folded)


def prefetch(array: Any, at: int) -> None:
    """Have the processor fetch the cache line of an item that will soon be needed."""


def swap_items(target: Any, to: int, source: Any, start: int, count: int) -> None:
    """Copy `count` 32-bit items, their bytes reversed.

    Either array may be of bytes; `to` and `start` count items of the arrays as they are.
    """
    into = target[to:].view(np.uint8)[: 4 * count]
    into[:] = source[start:].view(np.uint8)[: 4 * count].reshape(count, 4)[:, ::-1].ravel()
