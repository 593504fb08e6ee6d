"""Memory of ranks' tensors that is only taken while something is in it that will be read.

A machine's memory, not its processor, limits how much data a network can carry, and fresh pages
can cost more time than the packets that fill them. But a rank need not have its input before it
reads it, nor a sum that it has passed on until the final one comes; and ranks that end up with the
same need it once. So `ChunkLeases` have inputs written when they are first needed, use pages again
as soon as nothing in them will be read, and compare results: a chunk's result that another rank
has, too, bit for bit, is that one's.
"""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

import ringleaf.hosts.executor.layout as x
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.arena import Store
from ringleaf.core.compiled import address_of
from ringleaf.core.tensors import Array
from ringleaf.core.threads import spread
from ringleaf.hosts.executor.arithmetic import OTHER
from ringleaf.hosts.executor.build import Executors
from ringleaf.hosts.executor.claims import share
from ringleaf.hosts.executor.leases import leases
from ringleaf.hosts.rc.landing import SHIFT
from ringleaf.networks.endpoints.pages import Pages

Fill = Callable[[int, int, Array], object]
"""Writes a rank's elements, from the one with this number on, to an array."""

MOST_RESULTS = 4
"""Different results of a chunk that others are compared with."""

_C = ctypes.CDLL(None) if sys.platform == "linux" else None


def is_of_ranks(schedule: Schedule) -> bool:
    """Return whether a schedule is of ranks alone, that send what is in their tensors."""
    return schedule.places == schedule.ranks and schedule.codec is None and not schedule.groups


class Leases:
    """Where results of ranks are whose tensors are in memory a piece at a time.

    Args:
        tensors: Each rank's, of one size.
        edges: The elements at which pieces begin, and the end.
    """

    def __init__(self, tensors: Sequence[Array], edges: npt.NDArray[np.int64]) -> None:
        self.edges = edges
        self._tensors = tensors
        self._own = np.array([each.ctypes.data for each in tensors])[:, None] + (
            edges[:-1] * tensors[0].itemsize
        )
        self._results: list[list[int]] = [[] for _ in range(self.pieces)]
        self.addresses: npt.NDArray[np.int64] = self._own.copy()
        """Where in the process's memory each rank's results are: (ranks, pieces)."""

    @property
    def pieces(self) -> int:
        """The number of pieces of a tensor."""
        return len(self.edges) - 1

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Let executors be started, which ask for inputs that nobody reads before the end."""
        yield

    def settle(self) -> None:
        """Write the inputs that nobody has read or changed, when all is done."""

    def restore(self) -> None:
        """Have each rank's results in its own tensor, as if there were no leases."""
        for rank, piece in zip(*np.nonzero(self.addresses != self._own), strict=True):
            own, address = int(self._own[rank, piece]), int(self.addresses[rank, piece])
            ctypes.memmove(own, address, self._bytes(piece))
        self.addresses = self._own.copy()

    def _bytes(self, piece: int) -> int:
        count: int = self.edges[piece + 1] - self.edges[piece]
        return int(count) * self._tensors[0].itemsize

    def _keep(self, rank: int, piece: int, address: int) -> bool:
        """Have a rank's result, now at an address, in its tensor, and return True.

        Or return False, as the same is in another one's.
        """
        known, size, own = self._results[piece], self._bytes(piece), int(self._own[rank, piece])
        for each in known[:MOST_RESULTS]:
            if _alike(each, address, size):
                self.addresses[rank, piece] = each
                return False
        if address != own:
            ctypes.memmove(own, address, size)
        known.append(own)
        return True


class ChunkLeases(Leases):
    """The leases of an operation's chunks; threads that run its executors may call them.

    Args:
        store: The store that holds the executors; registered memory must not move from now on.
        executors: Executors of ranks alone, without scratch memory or codecs, prepared.
        tensors: Each rank's, one after the other in registered memory; nothing is in them.
        fill: Writes ranks' inputs.
    """

    def __init__(
        self, store: Store, executors: Executors, tensors: Sequence[Array], fill: Fill
    ) -> None:
        super().__init__(tensors, executors.plans.edges)
        self._store, self._fill = store, fill
        may_share = executors.element != OTHER  # else Python moves what lands
        rows = leases(executors.plans, address_of(share) if may_share else 0)
        self._at = store.allocate("words", rows.size)
        store.arena.words[self._at : self._at + rows.size] = rows.reshape(-1)
        executors.lease(self._at)
        self._pages = Pages(tensors)
        self._asked: list[tuple[int, int]] | None = None

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Let executors be started, then write what they have asked for, with all cores.

        A started executor only posts what is to be sent: without scratch memory, no rank copies
        to itself.
        """
        asked: list[tuple[int, int]] = []
        self._asked = asked
        try:
            yield
        finally:
            self._asked = None
        deque(spread(lambda place: self._write(*place), asked), maxlen=0)

    def open(self, lease: int) -> int:
        """Have memory for a chunk; write to it what the rank brings in, unless it is covered."""
        rank, chunk = divmod((lease - self._at) // x.LEASE_WORDS, self.pieces)
        self._pages.take(*self._range(rank, chunk))
        if self._store.arena.words[lease + x.STATE] != x.FILLED:
            return 0
        if self._asked is None:
            self._write(rank, chunk)
        else:
            self._asked.append((rank, chunk))
        return 0

    def close(self, lease: int) -> int:
        """Give back the memory of a chunk; of a result, if the same is elsewhere."""
        rank, chunk = divmod((lease - self._at) // x.LEASE_WORDS, self.pieces)
        words = self._store.arena.words
        if shift := words[lease + x.SHARED + SHIFT]:
            self.addresses[rank, chunk] += shift
            return 0
        start, stop = self._range(rank, chunk)
        is_result = words[lease + x.STATE] == x.KEPT
        if is_result and words[lease + x.IS_LENT]:
            self._results[chunk].append(start)
        elif not is_result or not self._keep(rank, chunk, start):
            self._pages.give_back(start, stop)
        return 0

    def settle(self) -> None:
        """Write the inputs that nobody has read or changed, when all is done."""
        words = self._store.arena.words
        states = words[self._at : self._at + self._own.size * x.LEASE_WORDS : x.LEASE_WORDS]
        for rank, chunk in zip(*np.nonzero(states.reshape(self._own.shape) != x.KEPT), strict=True):
            self._pages.take(*self._range(rank, chunk))
            self._write(rank, chunk)
        self._pages.release()

    def _range(self, rank: int, chunk: int) -> tuple[int, int]:
        """Return the addresses at which a chunk begins and ends."""
        start = int(self._own[rank, chunk])
        return start, start + self._bytes(chunk)

    def _write(self, rank: int, chunk: int) -> None:
        start, stop = self.edges[chunk : chunk + 2].tolist()
        if stop > start:
            self._fill(rank, start, self._tensors[rank][start:stop])


def _alike(one: int, other: int, size: int) -> bool:
    """Return whether the bytes at two addresses are alike."""
    if _C is None:
        return ctypes.string_at(one, size) == ctypes.string_at(other, size)
    return bool(_memcmp(one, other, size) == 0)


if _C is not None:
    _memcmp = _C.memcmp
    _memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
