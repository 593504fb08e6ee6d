"""The least time of a collective on a topology, whatever the algorithm and its routes.

Every algorithm must do the following, given only the data that ranks hold at first and at last,
and the nodes that add:

- Cut: data that some ranks have and others need leaves one side by the links between the sides.
  Sides are single hosts, groups of the topology's hierarchy, and its halves. If switches may add,
  an allreduce has S to send each way over any cut, as the other side needs no more than a sum.
- Adders: if only hosts add (and copy), each element of an allreduce comes into a host 2(n-1)
  times: n-1 times until one has the sum (Patarasuk and Yuan, JPDC 69(2), 2009), and once more
  for each other one. Hosts' links, servers' too, carry that together; so 2(n-1)/n of S each if
  there are no servers.
- Distance: a rank's data must reach every rank that needs it, and its last byte leaves last.

Values are not compressed, but zeros need not be sent. Packet headers don't count here, as an
algorithm may choose them, nor does storing and forwarding: only links' delays and rates do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nlargest
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.schedule import Collective, chunk_ranges
from ringleaf.topologies.graph import is_even, least_times_ps
from ringleaf.topologies.ways import TopologyRoutes, least_ps

if TYPE_CHECKING:
    from ringleaf.core.tensors import Array


@dataclass(frozen=True, slots=True)
class NonZeroBytes:
    """The bytes that are not zero in each rank's tensor, and anywhere in all tensors together.

    Attributes:
        by_rank: The bytes of each rank's tensor.
        together: The bytes of the places at which any rank has a value.
        blocks: (ranks, ranks): the bytes of each rank's blocks, of which a tensor has as many as
            there are ranks; None: no element is zero.
    """

    by_rank: tuple[int, ...]
    together: int
    blocks: npt.NDArray[np.int64] | None = field(default=None, compare=False)

    @staticmethod
    def dense(ranks: int, size_bytes: int) -> NonZeroBytes:
        """Return the bytes of tensors without zeros."""
        return NonZeroBytes((size_bytes,) * ranks, size_bytes)

    @staticmethod
    def of(tensors: Sequence[Array]) -> NonZeroBytes:
        """Return the bytes of the elements that are not zero."""
        filled = [np.asarray(tensor != 0) for tensor in tensors]
        item = tensors[0].itemsize
        edges = [0, *(stop for _, stop in chunk_ranges(filled[0].size, len(filled)))]
        blocks = [np.diff(np.searchsorted(np.flatnonzero(each), edges)) for each in filled]
        anywhere = np.logical_or.reduce(filled)
        counts = tuple(int(each.sum()) * item for each in filled)
        return NonZeroBytes(counts, int(anywhere.sum()) * item, item * np.array(blocks, np.int64))


@dataclass(frozen=True)
class MovedData:
    """A collective, and the data that it has to move.

    Args:
        collective: The collective, which defines the result.
        elements: Number of elements of each rank's tensor.
        element_bytes: Size of each element.
        held: The bytes of the tensors that are not zero.
        hosts_add: Whether only hosts add; if not, switches may.
        root: The root rank of a broadcast or reduction.
    """

    collective: Collective
    elements: int
    element_bytes: int
    held: NonZeroBytes
    hosts_add: bool
    root: int = 0

    def leaving(self, inside: frozenset[int]) -> int:
        """Return the bytes that must leave some of the ranks for the others."""
        ranks = len(self.held.by_rank)
        if not inside or len(inside) == ranks:
            return 0
        match self.collective:
            case Collective.ALLREDUCE:
                return self._most(inside)
            case Collective.REDUCE:
                return 0 if self.root in inside else self._most(inside)
            case Collective.BROADCAST:
                return self.held.by_rank[self.root] if self.root in inside else 0
            case Collective.REDUCE_SCATTER:
                return self._scattered(inside)
            case Collective.ALL_GATHER:
                return self._brought(inside)
            case Collective.ALL_TO_ALL:
                return self._exchanged(inside)

    def coming(self, inside: frozenset[int]) -> int:
        """Return the bytes that must come to some of the ranks from the others."""
        if self.collective is Collective.ALLREDUCE and self._is_even:
            return self.leaving(inside)  # whoever they are
        return self.leaving(frozenset(range(len(self.held.by_rank))) - inside)

    def entering(self, rank: int) -> int:
        """Return the bytes that must come to a rank from the others."""
        match self.collective:
            case Collective.ALLREDUCE:
                return self._missing(rank)
            case Collective.REDUCE:
                return self._missing(rank) if rank == self.root else 0
            case Collective.BROADCAST:
                return 0 if rank == self.root else self.held.by_rank[self.root]
        if self.held.blocks is None:
            return self._entering_dense(rank)
        others = _others(len(self.held.by_rank), {rank})
        match self.collective:
            case Collective.REDUCE_SCATTER:
                return int(self.held.blocks[others, rank].max())
            case Collective.ALL_GATHER:
                return self._brought(frozenset(others))
            case Collective.ALL_TO_ALL:
                return self._sent(self.held.blocks, others, [rank])

    def _entering_dense(self, rank: int) -> int:
        """Return the bytes that come to a rank of blocks without zeros; others are not listed."""
        own = frozenset({rank})
        match self.collective:
            case Collective.REDUCE_SCATTER:
                return self._owned(own)
            case Collective.ALL_GATHER:
                return self._owned_by_others(own)
            case _:
                return self._exchanged(own)

    def _most(self, inside: frozenset[int]) -> int:
        """Return the most bytes that one of some ranks holds: a sum of theirs has no fewer."""
        if self._is_even:
            return self.held.by_rank[0]
        return max(self.held.by_rank[rank] for rank in inside)

    @cached_property
    def _is_even(self) -> bool:
        """Whether all ranks hold as many bytes."""
        return len(set(self.held.by_rank)) == 1

    def _missing(self, rank: int) -> int:
        """Return the bytes that a rank needs of the sum of all, beside its own."""
        missing = self.held.together - self.held.by_rank[rank]
        first, second = self._largest
        return max(missing, second if self.held.by_rank[rank] == first else first)

    def _scattered(self, inside: frozenset[int]) -> int:
        """Return the bytes of some ranks' sums of the blocks that others get."""
        if self.held.blocks is None:
            return self._owned_by_others(inside)
        outside = _others(len(self.held.by_rank), inside)
        return int(self.held.blocks[np.ix_(sorted(inside), outside)].max(axis=0).sum())

    def _brought(self, inside: frozenset[int]) -> int:
        """Return the bytes that some ranks bring to an all-gather: each has a block."""
        if self.held.blocks is None:
            return self._owned(inside)
        return int(self.held.blocks.diagonal()[sorted(inside)].sum())

    def _exchanged(self, inside: frozenset[int]) -> int:
        """Return the bytes from some ranks to the others of an all-to-all."""
        ranks = len(self.held.by_rank)
        if self.held.blocks is None:
            pairs = len(inside) * (ranks - len(inside))  # as many the other way
            return pairs * (self.elements // ranks) * self.element_bytes
        return self._sent(self.held.blocks, sorted(inside), _others(ranks, inside))

    def _sent(
        self, blocks: npt.NDArray[np.int64], senders: Sequence[int], receivers: Sequence[int]
    ) -> int:
        """Return the bytes from some ranks to others: a rank's block d goes d ranks on."""
        src, dst = np.array(senders)[:, None], np.array(receivers)[None, :]
        return int(blocks[src, (dst - src) % len(blocks)].sum())

    @cached_property
    def _largest(self) -> list[int]:
        """The most bytes that a rank holds, and the most that any other rank holds."""
        return nlargest(2, self.held.by_rank)

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        return chunk_ranges(self.elements, len(self.held.by_rank))

    def _owned(self, ranks: frozenset[int]) -> int:
        """Return the bytes that these ranks bring to an all-gather, or get of a reduce-scatter."""
        return sum(stop - start for start, stop in map(self._ranges.__getitem__, ranks)) * (
            self.element_bytes
        )

    def _owned_by_others(self, ranks: frozenset[int]) -> int:
        """Return the bytes that all but these ranks bring, or get: the blocks are all elements."""
        return self.elements * self.element_bytes - self._owned(ranks)


def _others(ranks: int, inside: Container[int]) -> list[int]:
    """Return the ranks that are not among some, in order."""
    return [rank for rank in range(ranks) if rank not in inside]


class Floor:
    """The floors of collectives on one topology.

    Args:
        ways: The ways of the topology; only its links and their delays count.
        ranks: Number of its hosts, the first ones, that take part.
    """

    def __init__(self, ways: TopologyRoutes, ranks: int) -> None:
        self._ways = ways
        self._ranks = ranks

    def least_ps(self, task: MovedData) -> int:
        """Return the largest of the bounds, in ps."""
        if self._ranks < 2 or not task.elements:
            return 0
        return max(self._ports_ps(task), self._cuts_ps(task), self._adders_ps(task))

    def _ports_ps(self, task: MovedData) -> int:
        """Return the bound of single hosts' links, with the distance that their data has to go."""
        bounds_ps = []
        for rank in range(self._ranks):
            out_bps, in_bps = self._ways.access_bps(rank), self._ways.arrival_bps(rank)
            leaving, entering = task.leaving(frozenset({rank})), task.entering(rank)
            far_ps, near_ps = self._reach(task, rank)
            bounds_ps.append(far_ps + least_ps(leaving, out_bps) if leaving else 0)
            bounds_ps.append(near_ps + least_ps(entering, in_bps) if entering else 0)
        return max(bounds_ps)

    def _reach(self, task: MovedData, rank: int) -> tuple[int, int]:
        """Return the delays that a rank's last byte sent, and first byte received, must have.

        They are known for some ranks only; for others they are 0, which is a valid bound as well.
        """
        if rank not in self._distances_ps:
            return 0, 0
        to_ps, from_ps = self._distances_ps[rank]
        others = [other for other in range(self._ranks) if other != rank]
        farthest_ps = max(to_ps[other] for other in others)
        nearest_ps = min(to_ps[other] for other in others)
        source_ps = min(from_ps[other] for other in others)
        match task.collective:
            case Collective.ALLREDUCE | Collective.ALL_GATHER:
                return farthest_ps, source_ps
            case Collective.BROADCAST:
                return farthest_ps, from_ps[0 if task.root == rank else task.root]
            case Collective.REDUCE:
                return to_ps[task.root], source_ps
            case _:
                return nearest_ps, source_ps

    def _cuts_ps(self, task: MovedData) -> int:
        """Return the bound of the data that crosses between two sides of the topology."""
        return max(
            (
                least_ps(size_bytes, rate_bps)
                for side, out_bps, in_bps in self._cuts
                for size_bytes, rate_bps in (
                    (task.leaving(side), out_bps),
                    (task.coming(side), in_bps),
                )
            ),
            default=0,
        )

    def _adders_ps(self, task: MovedData) -> int:
        """Return the bound of the addends and sums that come into hosts, if only hosts add."""
        if task.collective is not Collective.ALLREDUCE or not task.hosts_add:
            return 0
        nonzero = task.held
        size_bytes = sum(nonzero.by_rank) + (self._ranks - 2) * nonzero.together
        rate_bps = sum(self._ways.arrival_bps(host) for host in range(len(self._ways.hosts)))
        return self._two_links_ps + least_ps(size_bytes, rate_bps)

    @cached_property
    def _two_links_ps(self) -> int:
        """The least delay of two hosts' own links; no packet passes fewer."""
        ways = self._ways
        own = list(zip(ways.hosts, ways.access, strict=True))
        out_ps = min(ways.hop_ps(host, first) for host, first in own)
        return out_ps + min(ways.hop_ps(first, host) for host, first in own)

    @cached_property
    def _distances_ps(self) -> dict[int, tuple[list[int], list[int]]]:
        """The least delays from three ranks to all hosts, and from all hosts to them.

        These are the first rank, the one farthest from it, and the one with the slowest link.
        """
        slowest = min(range(self._ranks), key=self._ways.access_bps)
        distances = {rank: self._both(rank) for rank in {0, slowest}}
        farthest = max(range(self._ranks), key=distances[0][0].__getitem__)
        return distances | {farthest: self._both(farthest)}

    def _both(self, rank: int) -> tuple[list[int], list[int]]:
        hop_ps = self._ways.hop_ps
        to_ps = self._least_ps(rank, hop_ps)
        if self._has_even_links:
            return to_ps, to_ps
        return to_ps, self._least_ps(rank, lambda a, b: hop_ps(b, a))

    @cached_property
    def _has_even_links(self) -> bool:
        return is_even(self._ways.graph)

    def _least_ps(self, rank: int, hop_ps: Callable[[str, str], int]) -> list[int]:
        ways = self._ways
        least = least_times_ps(ways.graph, ways.hosts[rank], hop_ps)
        return [least[host] for host in ways.hosts]

    @cached_property
    def _cuts(self) -> list[tuple[frozenset[int], int, int]]:
        """Sets of ranks, and the rates from nodes near them to the other nodes, and back."""
        sides = dict.fromkeys(self._sides())
        return [(side, *self._capacity_bps(side)) for side in sides if 0 < len(side) < self._ranks]

    def _sides(self) -> Iterator[frozenset[int]]:
        """Yield the hierarchy's groups at each level, and the halves along each dimension."""
        sizes: tuple[int, ...] = self._ways.graph.graph["hierarchy"]
        for below, size in zip(accumulate((1, *sizes), mul), sizes, strict=False):
            group, half = below * size, below * (size // 2)
            for start in range(0, self._ranks, group):
                yield frozenset(range(start, min(start + group, self._ranks)))
            yield frozenset(rank for rank in range(self._ranks) if rank % group < half)

    def _capacity_bps(self, side: frozenset[int]) -> tuple[int, int]:
        """Return the rates of the links from a side to the rest of the topology, and back.

        The side is these hosts and switches near them: those with at least half of their links'
        rate leading there, so adding one makes the cut no larger.
        """
        ways = self._ways
        inside = {ways.hosts[rank] for rank in side}
        waiting, near_bps = list(inside), Counter[str]()
        while waiting:
            for peer, rate_bps in self._towards[waiting.pop()]:
                near_bps[peer] += rate_bps
                is_near = 2 * near_bps[peer] >= self._rates_bps[peer]
                if is_near and peer in ways.fabric and peer not in inside:
                    inside.add(peer)
                    waiting.append(peer)
        in_bps = sum(rate_bps for peer, rate_bps in near_bps.items() if peer not in inside)
        if self._has_even_links:
            return in_bps, in_bps
        across = (
            ways.links[node, peer].rate_bps
            for node in inside
            for peer in ways.graph.adj[node]
            if peer not in inside
        )
        return sum(across), in_bps

    @cached_property
    def _towards(self) -> dict[str, list[tuple[str, int]]]:
        """By node: its neighbours, and the rates at which these send to it."""
        ways = self._ways
        return {
            node: [(peer, ways.links[peer, node].rate_bps) for peer in ways.graph.adj[node]]
            for node in ways.graph
        }

    @cached_property
    def _rates_bps(self) -> dict[str, int]:
        """By node: the rate of all its links together."""
        ways = self._ways
        return {
            node: sum(ways.links[node, peer].rate_bps for peer in ways.graph.adj[node])
            for node in ways.graph
        }
