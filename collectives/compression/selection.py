"""The k largest of some numbers; among equal ones, those that PyTorch's `topk` takes.

Results with a top-k were first made by it, and a choice among equal magnitudes changes what is left
for later steps. PyTorch calls C++'s `partial_sort` if k is at most a 64th, else `nth_element`; the
steps here are those of GCC's library (`bits/stl_algo.h`, `bits/stl_heap.h`), on places.

Source:
    Musser, "Introspective sorting and selection algorithms", Software: Practice and Experience
    27(8), 1997: introselect.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled, inline
from ringleaf.core.tensors import Array

_PLACES = types.int64[::1]


def places_of_largest(values: Array, count: int) -> Array:
    """Return the places of the `count` largest values, in any order; NaN is larger than all.

    Args:
        values: (elements,) float32 or float64; float16 is widened.
        count: At most the elements.
    """
    if values.itemsize < 4:
        values = values.astype(np.float32)
    order = np.arange(values.size)
    if 0 < count < values.size:
        (_select_singles if values.itemsize == 4 else _select_doubles)(values, order, count)
    return order[:count]


@inline
def _before(values: Array, one: int, other: int) -> Any:
    a, b = values[one], values[other]
    return (np.isnan(a) and not np.isnan(b)) or a > b


@inline
def _sift(values: Array, order: Array, first: int, hole: int, size: int, place: int) -> None:
    """Put a place into a heap of `size` from `first` on, from a hole down, and up again."""
    top = child = hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if _before(values, order[first + child], order[first + child - 1]):
            child -= 1
        order[first + hole] = order[first + child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        order[first + hole] = order[first + child]
        hole = child
    while hole > top and _before(values, order[first + (hole - 1) // 2], place):
        order[first + hole] = order[first + (hole - 1) // 2]
        hole = (hole - 1) // 2
    order[first + hole] = place


@inline
def _heap_select(values: Array, order: Array, first: int, middle: int, last: int) -> None:
    """Bring the largest of `first` to `last` before `middle`; the least of them comes first."""
    size = middle - first
    for parent in range((size - 2) // 2, -1, -1):
        _sift(values, order, first, parent, size, order[first + parent])
    for i in range(middle, last):
        place = order[i]
        if _before(values, place, order[first]):
            order[i] = order[first]
            _sift(values, order, first, 0, size, place)


@inline
def _swap(order: Array, one: int, other: int) -> None:
    order[one], order[other] = order[other], order[one]


@inline
def _pivot(values: Array, order: Array, a: int, b: int, c: int) -> Any:
    """Return the index whose value is between those of the others."""
    x, y, z = order[a], order[b], order[c]
    if _before(values, x, y):
        if _before(values, y, z):
            return b
        return c if _before(values, x, z) else a
    if _before(values, x, z):
        return a
    return c if _before(values, y, z) else b


@inline
def _cut(values: Array, order: Array, first: int, last: int) -> Any:
    """Part a range at the median of three; return where the second part begins."""
    middle = first + (last - first) // 2
    _swap(order, first, _pivot(values, order, first + 1, middle, last - 1))
    pivot = order[first]
    left, right = first + 1, last
    while True:
        while _before(values, order[left], pivot):
            left += 1
        right -= 1
        while _before(values, pivot, order[right]):
            right -= 1
        if left >= right:
            return left
        _swap(order, left, right)
        left += 1


@inline
def _insert(values: Array, order: Array, first: int, last: int) -> None:
    for i in range(first + 1, last):
        place, at = order[i], i
        while at > first and _before(values, place, order[at - 1]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = place


def _select(values: Array, order: Array, count: int) -> None:
    first, last, rounds = 0, len(order), 0
    if count * 64 <= last:
        _heap_select(values, order, first, count, last)
        return
    while 2 << rounds <= last:
        rounds += 1
    rounds *= 2
    while last - first > 3:
        if not rounds:
            _heap_select(values, order, first, count, last)
            _swap(order, first, count - 1)
            return
        rounds -= 1
        cut = _cut(values, order, first, last)
        if cut <= count - 1:
            first = cut
        else:
            last = cut
    _insert(values, order, first, last)


_select_singles = compiled(types.void(types.float32[::1], _PLACES, types.int64))(_select)
_select_doubles = compiled(types.void(types.float64[::1], _PLACES, types.int64))(_select)
