"""Rings on cycles that share no link, both ways round, each on its part of the tensor.

A topology with k ports to a host may have k / 2 such cycles (`ringleaf.topologies.cycles`), so that
all ports send and receive all the time. Cycles that are not known are one ring in rank order.

Each part of the tensor may be cut once more, in segments that follow one another round the
same ring: while one is under way, another one is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ringleaf.collectives.cost import (
    SMALLEST_SEGMENT_BYTES,
    AlphaBeta,
    Cost,
    best_segments,
    most_segments,
)
from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.collectives.rows import Column
from ringleaf.collectives.schedule import (
    ChunkRows,
    Collective,
    Columns,
    Op,
    Schedule,
    check_ranks,
    check_root,
    check_segments,
)

NAME = "rings"
MOST_ROWS = 65536
"""The most rows of a chain's schedule."""


def rings_allreduce(
    ranks: int, embedding: GridEmbedding | None = None, segments: int = 1
) -> Schedule:
    """Return a schedule that reduce-scatters round all rings at once, then all-gathers.

    Args:
        ranks: At least 1.
        embedding: The cycles; None: one, in the order of ranks.
        segments: Pieces of each ring's part.

    Raises:
        ScheduleError: If a number is below 1, or a cycle does not have each rank once.

    Source:
        Hoefler et al., "HammingMesh: a network topology for large-scale deep learning", SC 2022,
        which has bidirectional rings on two edge-disjoint Hamiltonian cycles. Segments were added.
    """
    return _Rings(ranks, embedding, segments).allreduce()


def strides_allreduce(
    ranks: int, embedding: GridEmbedding | None = None, segments: int = 1
) -> Schedule:
    """Return a schedule that reduce-scatters one way round all rings at once, then all-gathers.

    It is for cycles of one-way links, as TopoOpt's rings of several strides.

    Args:
        ranks: At least 1.
        embedding: The cycles; None: one, in the order of ranks.
        segments: Pieces of each ring's part.

    Raises:
        ScheduleError: If a number is below 1, or a cycle does not have each rank once.

    Source:
        Wang et al., "TopoOpt: Co-optimizing Network Topology and Parallelization Strategy for
        Distributed Training Jobs", NSDI 2023: an allreduce divided among rings. Segments were
        added.
    """
    rings = _Rings(ranks, embedding, segments, one_way=True)
    return replace(rings.allreduce(), algorithm="strides")


def rings_reduce_scatter(
    ranks: int, embedding: GridEmbedding | None = None, segments: int = 1
) -> Schedule:
    """Return the first half of `rings_allreduce`, which leaves each rank its chunks' sums.

    Raises:
        ScheduleError: As `rings_allreduce`.

    Source:
        Hoefler et al., "HammingMesh", SC 2022, for the cycles, as for the allreduce.
    """
    rings = _Rings(ranks, embedding, segments)
    rows = Columns.joined(rings.rounds(first_step=0, offset=-1, op=Op.REDUCE))
    return rings.schedule(Collective.REDUCE_SCATTER, rows)


def rings_all_gather(
    ranks: int, embedding: GridEmbedding | None = None, segments: int = 1
) -> Schedule:
    """Return the second half of `rings_allreduce`, which gives each rank's chunks to all.

    Raises:
        ScheduleError: As `rings_allreduce`.

    Source:
        Hoefler et al., "HammingMesh", SC 2022, for the cycles, as for the allreduce.
    """
    rings = _Rings(ranks, embedding, segments)
    rows = Columns.joined(rings.rounds(first_step=0, offset=0, op=Op.COPY))
    return rings.schedule(Collective.ALL_GATHER, rows)


def rings_broadcast(
    ranks: int, embedding: GridEmbedding | None = None, segments: int = 1, root: int = 0
) -> Schedule:
    """Return a schedule that passes each part on from the root, all the way round its ring.

    Raises:
        ScheduleError: As `rings_allreduce`, or if `root` is none of the ranks.

    Source:
        Hoefler et al., "HammingMesh", SC 2022, for the cycles, as for the allreduce; chains
        on them were chosen.
    """
    check_root("rings_broadcast", root, ranks)
    rings = _Rings(ranks, embedding, segments)
    rows = Columns.joined(rings.chains(root, after=0, op=Op.COPY))
    return rings.schedule(Collective.BROADCAST, rows, root)


def rings_reduce(
    ranks: int, embedding: GridEmbedding | None = None, segments: int = 1, root: int = 0
) -> Schedule:
    """Return a schedule that adds up each part all the way round its ring, up to the root.

    Raises:
        ScheduleError: As `rings_allreduce`, or if `root` is none of the ranks.

    Source:
        Hoefler et al., "HammingMesh", SC 2022, for the cycles, as for the allreduce; chains
        on them were chosen.
    """
    check_root("rings_reduce", root, ranks)
    rings = _Rings(ranks, embedding, segments)
    rows = Columns.joined(rings.chains(root, after=1, op=Op.REDUCE))
    return rings.schedule(Collective.REDUCE, rows, root)


class _Rings:
    """The parts of a tensor: one for each segment, way round and cycle.

    Where ranks have chunks of their own, these are blocks with a chunk of each part.
    """

    def __init__(
        self,
        ranks: int,
        embedding: GridEmbedding | None,
        segments: int,
        *,
        one_way: bool = False,
    ) -> None:
        check_ranks(NAME, ranks)
        check_segments(NAME, segments)
        self._ranks, self._segments = ranks, segments
        cycles = (embedding or GridEmbedding()).cycles_of(NAME, ranks)
        back = [] if one_way else [cycle[:1] + cycle[:0:-1] for cycle in cycles]
        ways = [way for pair in zip(cycles, back, strict=True) for way in pair] if back else cycles
        self._ways = [np.array(way, np.int64) for way in ways]
        self._parts = len(ways) * segments

    def allreduce(self) -> Schedule:
        """Return the schedule that reduce-scatters round all rings at once, then all-gathers."""
        rows = Columns.joined(
            [
                *self.rounds(first_step=0, offset=0, op=Op.REDUCE),
                *self.rounds(first_step=self._ranks - 1, offset=1, op=Op.COPY),
            ]
        )
        return self.schedule(Collective.ALLREDUCE, rows)

    def rounds(self, *, first_step: int, offset: int, op: Op) -> Iterator[Columns]:
        """Yield each part's ring: the rank at place i first sends chunk i + `offset`."""
        step, place = np.ogrid[: self._ranks - 1, : self._ranks]
        for part, (channel, way) in enumerate(self._each()):
            chunk = way[(place + offset - step) % self._ranks] * self._parts + part
            src, dst = way[place], way[(place + 1) % self._ranks]
            yield _on(channel, Columns.transfers(first_step + step, src, dst, chunk, op))

    def chains(self, root: int, *, after: int, op: Op) -> Iterator[Columns]:
        """Yield each part's way as one chunk from the rank `after` places after the root."""
        hop = np.arange(self._ranks - 1)
        for part, (channel, way) in enumerate(self._each()):
            first = int(np.flatnonzero(way == root)[0]) + after + hop
            src, dst = way[first % self._ranks], way[(first + 1) % self._ranks]
            step = part // len(self._ways) + hop
            yield _on(channel, Columns.transfers(step, src, dst, part, op))

    def schedule(self, collective: Collective, rows: Columns, root: int | None = None) -> Schedule:
        """Return the schedule; with a root, each part is a single chunk."""
        chunks = self._parts * (self._ranks if root is None else 1)
        return Schedule(
            collective, NAME, self._ranks, chunks, ChunkRows(rows.in_steps()), root or 0
        )

    def _each(self) -> Iterator[tuple[int, Column]]:
        """Yield each part's channel and way: a ring's segments share a channel."""
        for _ in range(self._segments):
            yield from enumerate(self._ways)


def _on(channel: int, rows: Columns) -> Columns:
    return replace(rows, channel=np.full_like(rows.step, channel))


def rings_cost(
    ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int, *, rounds: int = 2
) -> Cost:
    """Return the cost of `rounds` (n - 1) steps, in each of which all ports send all their parts.

    A step takes as long as all segments, or as one of them and its latency. The rate is that of
    all of a host's ports together.
    """
    if ranks < 2:
        return Cost(0, 0, 0)
    steps = rounds * (ranks - 1)
    segment_ps = fabric.port_ps(size_bytes / (ranks * segments))
    step_ps = max(fabric.worst_latency_ps(ranks) + segment_ps, segments * segment_ps)
    time_ps = steps * step_ps + (segments - 1) * segment_ps
    return Cost(time_ps, round(steps * size_bytes / ranks), steps)


def rings_segments(
    ranks: int,
    size_bytes: int,
    fabric: AlphaBeta,
    embedding: GridEmbedding,
    *,
    one_way: bool = False,
) -> int:
    """Return the number of segments of each ring's part that takes least time by the cost."""
    ways = (1 if one_way else 2) * max(len(embedding.cycles), 1)
    most = most_segments(size_bytes // (ranks * ways), ranks, 2 * ways * ranks * (ranks - 1))
    return best_segments(
        lambda segments: rings_cost(ranks, size_bytes, fabric, segments).time_ps, most
    )


def chains_cost(ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int) -> Cost:
    """Return the cost of n - 1 hops, each with a segment's delay, and of the other segments."""
    if ranks < 2:
        return Cost(0, 0, 0)
    hops = ranks - 1
    hop_ps = fabric.worst_latency_ps(ranks) + fabric.port_ps(size_bytes / segments)
    time_ps = hops * hop_ps + (segments - 1) * fabric.port_ps(size_bytes / segments)
    return Cost(time_ps, size_bytes, hops)


def chains_segments(
    ranks: int, size_bytes: int, fabric: AlphaBeta, embedding: GridEmbedding
) -> int:
    """Return the number of segments of each ring's part that takes least time by the cost.

    Each hop waits for a segment, so that there are more, and shorter ones, than elsewhere.
    """
    ways = 2 * max(len(embedding.cycles), 1)
    longest = size_bytes // ways // SMALLEST_SEGMENT_BYTES
    most = max(min(longest, MOST_ROWS // (ways * max(ranks - 1, 1))), 1)
    return best_segments(
        lambda segments: chains_cost(ranks, size_bytes, fabric, segments).time_ps, most
    )
