"""The tensors that an experiment reduces: made by place, or given."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled
from ringleaf.core.mersenne import Mersenne
from ringleaf.core.tensors import FLOAT32, INT32, Array, ElementType, as_arrays, as_tensors
from ringleaf.core.threads import ranges, spread
from ringleaf.experiments.checking import noise
from ringleaf.experiments.checking.flat import Flat

if TYPE_CHECKING:
    import torch

TYPES = {"float32": FLOAT32, "int32": INT32}

_TOGETHER = 1 << 20  # elements that a thread writes at a time


class RankInputs(Protocol):
    """The ranks' tensors before a collective, of which parts can be had at any time."""

    @property
    def ranks(self) -> int:
        """The number of ranks."""

    @property
    def elements(self) -> int:
        """The number of elements of each rank's tensor."""

    @property
    def dtype(self) -> ElementType:
        """The type of the elements."""

    @property
    def is_kept(self) -> bool:
        """Whether whole tensors are in memory, and may have zeros."""

    def read(self, start: int, out: Array) -> None:
        """Write the elements of all ranks from `start` on to `out`: (ranks, count), contiguous."""

    def fill(self, rank: int, start: int, out: Array) -> None:
        """Write a rank's elements from `start` on to a contiguous array of shape (count,)."""

    def part(self, rank: int, start: int, stop: int) -> Array:
        """Return a rank's elements from `start` to `stop` (excluded); it must not be changed."""

    def of(self, ranks: Sequence[int]) -> RankInputs:
        """Return the inputs of some ranks, which are ranks 0, 1, ... of a smaller collective."""


class Given:
    """Inputs that are whole tensors in memory: a user's, sparse ones, or compressed ones.

    Args:
        tensors: One per rank, of one type and of shape (elements,).
    """

    is_kept = True

    def __init__(self, tensors: Sequence[torch.Tensor | Array]) -> None:
        self.arrays = as_arrays(tensors)
        self.ranks = len(tensors)
        self.elements = self.arrays[0].size
        self.dtype = self.arrays[0].dtype

    @cached_property
    def _flat(self) -> Flat:
        return Flat(self.arrays)

    def read(self, start: int, out: Array) -> None:
        """Write all ranks' elements from `start` on to `out`, of shape (ranks, elements)."""
        self._flat.read(start, out)

    def fill(self, rank: int, start: int, out: Array) -> None:
        """Write a rank's elements from `start` on to `out`, of shape (elements,)."""
        out[:] = self.part(rank, start, start + out.size)

    def part(self, rank: int, start: int, stop: int) -> Array:
        """Return a view of a rank's elements from `start` to `stop`, exclusive."""
        return self.arrays[rank][start:stop]

    def of(self, ranks: Sequence[int]) -> Given:
        """Return some ranks' inputs, not copied."""
        return Given([self.arrays[rank] for rank in ranks])


class Noise:
    """Inputs that are random, dense, and made where and when they are needed (`noise`).

    Args:
        seed: Their seed.
        ranks: Number of ranks.
        elements: Elements of each rank's tensor.
        dtype: float32 or int32.
    """

    is_kept = False

    def __init__(self, seed: int, ranks: int, elements: int, dtype: ElementType) -> None:
        self.ranks = ranks
        self.elements = elements
        self.dtype = dtype
        self._keys = noise.make_keys(seed, ranks, elements)

    def read(self, start: int, out: Array) -> None:
        """Make all ranks' elements from `start` on, in `out`, of shape (ranks, elements)."""
        noise.fill(self._keys, start, out)

    def fill(self, rank: int, start: int, out: Array) -> None:
        """Make a rank's elements from `start` on, in `out`, of shape (elements,)."""
        noise.fill(self._keys[:, rank : rank + 1], start, out.reshape(1, -1))

    def part(self, rank: int, start: int, stop: int) -> Array:
        """Return a rank's elements from `start` to `stop`, exclusive, made anew."""
        values = np.empty(stop - start, self.dtype)
        self.fill(rank, start, values)
        return values

    def of(self, ranks: Sequence[int]) -> Noise:
        """Return some ranks' inputs."""
        some = copy(self)
        some.ranks, some._keys = len(ranks), self._keys[:, list(ranks)]
        return some


def fill_all(inputs: RankInputs, arrays: Sequence[Array]) -> None:
    """Write the ranks' inputs to arrays, which may be where a network has its hosts' memory."""
    parts = [
        (rank, start, stop)
        for rank in range(inputs.ranks)
        for start, stop in ranges(inputs.elements, _TOGETHER)
    ]

    def fill(part: tuple[int, int, int]) -> None:
        rank, start, stop = part
        inputs.fill(rank, start, arrays[rank][start:stop])

    for _ in spread(fill, parts, inputs.ranks * inputs.elements):
        pass


def whole(inputs: RankInputs) -> list[Array]:
    """Return all ranks' inputs, for code that needs them whole."""
    return [inputs.part(rank, 0, inputs.elements) for rank in range(inputs.ranks)]


def make_tensors(seed: int, ranks: int, count: int, dtype: str) -> list[torch.Tensor]:
    """Return a tensor of `count` elements per rank: nearly normal floats, or uniform integers."""
    return as_tensors(whole(Noise(seed, ranks, count, TYPES[dtype])))


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The pattern of a set of tensors' elements that are not zero.

    Attributes:
        density: Share of each rank's elements that are not zero.
        cluster: Length of the runs in which they come; runs start at multiples of it.
        overlap: Share of a rank's runs that are at places where all other ranks have one,
            too; the others are anywhere.
    """

    density: float = 1.0
    cluster: int = 1
    overlap: float = 0.0

    def thin(self, seed: int, arrays: Sequence[Array]) -> None:
        """Set the elements outside the pattern to zero, in place."""
        if self.density == 1 or not arrays[0].size:
            return
        runs = -(-arrays[0].size // self.cluster)
        kept = round(self.density * runs)
        common = round(self.overlap * kept)
        order = shuffled(runs, seed)
        for rank, array in enumerate(arrays):
            others = order[common:][shuffled(runs - common, seed * 1_000_003 + rank + 1_000_000)]
            is_zero = np.ones(runs, bool)
            is_zero[order[:common]] = False
            is_zero[others[: kept - common]] = False
            array[np.repeat(is_zero, self.cluster)[: array.size]] = 0


def shuffled(count: int, seed: int) -> Array:
    """Return a random order of the numbers below `count`: (count,) int64.

    It is `torch.randperm`'s, below 2^32 / 20 numbers; PyTorch takes wider words for more.
    """
    order = np.arange(count)
    _shuffle(order, Mersenne(seed).words(max(count - 1, 0)))
    return order


@compiled(types.void(types.int64[::1], types.uint32[::1]))
def _shuffle(order: Array, words: Array) -> None:
    """Swap each number with itself or one behind it, which a word chooses."""
    for i in range(len(words)):
        other = i + np.int64(words[i]) % (len(order) - i)
        order[i], order[other] = order[other], order[i]
