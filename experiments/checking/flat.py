"""Arrays' memory as compiled code sees it: one array, and where in it each of them begins."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled, compiled_as, copy_items
from ringleaf.core.tensors import Array
from ringleaf.core.views import window

Bits = npt.NDArray[np.int32]


class Flat:
    """Arrays of four-byte elements, wherever they are in memory.

    Args:
        arrays: At least one; of one type, and of shape (elements,). They are kept alive.
    """

    def __init__(self, arrays: Sequence[Array]) -> None:
        self._kept = [_aligned(array) for array in arrays]
        places = [array.ctypes.data for array in self._kept]
        lowest, size = min(places), self._kept[0].size
        items = (max(places) - lowest) // 4 + size
        # Memory between them is part of the whole, but of none of them: it is never touched.
        whole = (ctypes.c_int32 * items).from_address(lowest) if size else (ctypes.c_int32 * 0)()
        self._memory: Bits = np.ctypeslib.as_array(whole)
        self._at = (np.array(places, np.int64) - lowest) // 4

    def read(self, start: int, out: npt.NDArray[Any]) -> None:
        """Copy all arrays' elements from `start` on to `out`: (tensors, count), contiguous."""
        _read(self._memory, self._at + start, out.shape[1], out.view(np.int32).reshape(-1))

    def alike(self, start: int, count: int) -> bool:
        """Return whether all arrays' `count` elements from `start` on have the same bits."""
        return bool(_alike(self._memory, self._at + start, count))

    def first(self, start: int, count: int) -> npt.NDArray[np.int32]:
        """Return the bits of the first array's elements from `start` on."""
        return self._memory[self._at[0] + start :][:count]

    def equals(self, start: int, values: npt.NDArray[Any]) -> bool:
        """Return whether all arrays' elements from `start` on have the same bits as `values`.

        Args:
            start: The first element.
            values: (tensors, count), contiguous.
        """
        bits = values.view(np.int32).reshape(-1)
        count = values.shape[1]
        return bool(_equals(self._memory, self._at + start, count, bits, count))


class Scattered:
    """Arrays of four-byte elements in pieces, each wherever it is in memory.

    Args:
        addresses: Of all arrays' pieces: (arrays, pieces).
        edges: (pieces + 1,) the element at which each piece starts, and the end.
    """

    def __init__(self, addresses: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]) -> None:
        lowest = int(addresses.min())
        items = (int(addresses.max()) - lowest) // 4 + int(np.diff(edges).max())
        whole = (ctypes.c_int32 * items).from_address(lowest)
        self._memory: Bits = np.ctypeslib.as_array(whole)
        self._at = (addresses - lowest) // 4
        self._edges = edges

    def equals(self, start: int, values: npt.NDArray[Any]) -> bool:
        """Return whether all arrays' elements from `start` on have the same bits as `values`.

        Args:
            start: The first element.
            values: (arrays, count), contiguous.
        """
        stride = values.shape[1]
        bits = values.view(np.int32).reshape(-1)
        return all(
            _equals(self._memory, at, count, bits[begin - start :], stride)
            for begin, count, at in self._parts(start, stride)
        )

    def alike(self, start: int, count: int) -> bool:
        """Return whether all arrays' `count` elements from `start` on have the same bits."""
        parts = self._parts(start, count)
        return all(_alike(self._memory, np.unique(at), size) for _, size, at in parts)

    def first(self, start: int, count: int) -> npt.NDArray[np.int32]:
        """Return the bits of the first array's elements from `start` on."""
        parts = self._parts(start, count)
        return np.concatenate([self._memory[at[0] :][:size] for _, size, at in parts])

    def _parts(self, start: int, count: int) -> Iterator[tuple[int, int, npt.NDArray[np.int64]]]:
        """Yield the parts of a range that are in one piece: start, size, and where arrays' are."""
        begin, stop = start, start + count
        piece = int(np.searchsorted(self._edges, start, side="right")) - 1
        while begin < stop:
            end = min(int(self._edges[piece + 1]), stop)
            yield begin, end - begin, self._at[:, piece] + (begin - self._edges[piece])
            begin, piece = end, piece + 1


def _aligned(array: Array) -> Array:
    assert array.itemsize == 4
    return np.require(array, requirements=["C", "A"])


def differ(a: Bits, a_at: int, b: Bits, b_at: int, count: int) -> bool:
    """Return whether any of `count` items differ."""
    return bool((a[a_at : a_at + count] != b[b_at : b_at + count]).any())


@compiled_as(differ)
def _compiled_differ(a: Any, a_at: Any, b: Any, b_at: Any, count: Any) -> Callable[..., Any]:
    def differ(a: Any, a_at: Any, b: Any, b_at: Any, count: Any) -> Any:
        one, other = window(a, a_at, count), window(b, b_at, count)
        bits = np.int32(0)
        for i in range(count):  # without a branch, so that it is vectorised
            bits |= one[i] ^ other[i]
        return bits != 0

    return differ


@compiled(types.void(types.int32[::1], types.int64[::1], types.int64, types.int32[::1]), nogil=True)
def _read(memory: Bits, at: npt.NDArray[np.int64], count: int, out: Bits) -> None:
    for number in range(len(at)):
        copy_items(out, number * count, memory, at[number], count)


@compiled(types.boolean(types.int32[::1], types.int64[::1], types.int64), nogil=True)
def _alike(memory: Bits, at: npt.NDArray[np.int64], count: int) -> bool:
    differs = False
    for number in range(1, len(at)):
        differs |= differ(memory, at[number], memory, at[0], count)
    return not differs


@compiled(
    types.boolean(types.int32[::1], types.int64[::1], types.int64, types.int32[::1], types.int64),
    nogil=True,
)
def _equals(memory: Bits, at: npt.NDArray[np.int64], count: int, values: Bits, stride: int) -> bool:
    for number in range(len(at)):
        if differ(memory, at[number], values, number * stride, count):
            return False
    return True
