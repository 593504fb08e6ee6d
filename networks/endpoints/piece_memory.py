"""A stock of memory for the pieces of jobs' gradients, which is used again and again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ringleaf.core.tensors import Array, ElementType
from ringleaf.hosts.schedulers.common.interface import CHANNELS
from ringleaf.networks.endpoints.memory import RegisteredMemory, aligned


class Stock:
    """The memory of a job's pieces that are under way: an array of each rank, for each of them.

    A piece gets memory that another of about its size had before, if that is free. So a job
    touches no more memory than its network has use for at a time.

    Args:
        memory: Has room for `total_bytes`, which are taken when they are first needed.
        sizes: The elements of the pieces.
        ranks: Number of ranks.
        dtype: Type of the elements.
        most: The most pieces that are under way at a time.
    """

    def __init__(
        self,
        memory: RegisteredMemory,
        sizes: Iterable[int],
        ranks: int,
        dtype: ElementType,
        *,
        most: int = CHANNELS,
    ) -> None:
        self._most = most
        self._memory, self._ranks, self._dtype = memory, ranks, dtype
        self._longest: dict[int, int] = {}  # elements of the longest piece, by class
        self._count = Counter[int]()  # pieces, by class
        self._free: defaultdict[int, list[list[Array]]] = defaultdict(list)
        for size in sizes:
            kind = _class_of(size)
            self._longest[kind] = max(size, self._longest.get(kind, 0))
            self._count[kind] += 1

    @property
    def total_bytes(self) -> int:
        """The memory of as many pieces as can be under way at a time."""
        return self._ranks * sum(
            min(self._count[kind], self._most) * aligned(longest * self._dtype.itemsize)
            for kind, longest in self._longest.items()
        )

    def take(self, elements: int) -> list[Array]:
        """Return an array for each rank, of which the first `elements` are to be used."""
        kind = _class_of(elements)
        if self._free[kind]:
            return self._free[kind].pop()
        return [self._memory.take(self._longest[kind], self._dtype) for _ in range(self._ranks)]

    def give_back(self, elements: int, arrays: list[Array]) -> None:
        """Take back what `take` gave for so many elements."""
        self._free[_class_of(elements)].append(arrays)


def _class_of(elements: int) -> int:
    """Return the class of a size: the longest of a class has less than twice the shortest."""
    return elements.bit_length()
