"""All-to-all along the dimensions of a grid, or the levels of a hierarchy, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.collectives.rows import Column
from ringleaf.collectives.schedule import (
    ChunkRows,
    Collective,
    Columns,
    Op,
    Schedule,
    check_ranks,
)

LEAST_BYTES = 4096
"""A message is not cut in parts that are smaller."""


def grid_all_to_all(
    ranks: int,
    hierarchy: Sequence[int] = (),
    embedding: GridEmbedding | None = None,
    *,
    turns: int | None = None,
) -> Schedule:
    """Return a schedule in which data goes to its column first, then along it to its row.

    Data is cut in a part for each dimension to begin with, so that links of all dimensions are in
    use at any time. In a torus each part is cut again: in rings of even size, half of the data for
    the opposite rank goes either way round, by way of the next rank, where the routes of
    single packets would all go the same way.

    Ranks keep the data that they pass on in scratch memory, and send it on as it comes.

    Args:
        ranks: Number of participants.
        hierarchy: Sizes of the dimensions, if the embedding has no grid; empty for one.
        embedding: The grid.
        turns: Parts that begin with another dimension each, from the first on; None: all.

    Raises:
        ScheduleError: If `ranks` < 1, or the product of sizes is not `ranks`.

    Source:
        Bokhari, "Multiphase complete exchange: a theoretical analysis", IEEE Transactions on
        Computers 45(2), 1996, has phases of direct exchange, each in a part of the machine. Parts
        that begin with either dimension, and both ways to opposite ranks, were added.
    """
    check_ranks("grid_all_to_all", ranks)
    embedding = embedding or GridEmbedding()
    sizes, order = embedding.grid_of("grid_all_to_all", ranks, hierarchy)
    ways = [
        _way(sizes, turn, side if embedding.is_torus else 0)
        for turn in range(min(turns or len(sizes), len(sizes)))
        for side in ((1, -1) if embedding.is_torus else (0,))
    ]
    rank_at = np.array(order, np.int64)
    place_of = np.argsort(rank_at)
    rows = _passed_on([rank_at[hops[:, place_of][:, :, place_of]] for hops in ways], ranks)
    layers = int(max(rows.src.max(initial=0), rows.dst.max(initial=0))) // ranks
    chunks = ranks * len(ways)
    return Schedule(Collective.ALL_TO_ALL, "grid", ranks, chunks, ChunkRows(rows), scratch=layers)


def _way(sizes: tuple[int, ...], turn: int, side: int) -> Column:
    """Return the places that data is at: (stops, from, to), one after the other.

    Args:
        sizes: The dimensions.
        turn: The dimension along which data goes first.
        side: 1 or -1: opposite places of a ring are reached by that way round; 0: anyhow.
    """
    count = prod(sizes)
    here, to = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    stops = [here]
    for dimension in (*range(turn, len(sizes)), *range(turn)):
        stride, size = prod(sizes[:dimension]), sizes[dimension]
        digit, target = here // stride % size, to // stride % size
        if side and size % 2 == 0 and size > 2:
            half = (target - digit) % size == size // 2
            digit_next = np.where(half, (digit + side) % size, digit)
            here = here + (digit_next - digit) * stride
            digit = digit_next
            stops.append(here)
        here = here + (target - digit) * stride
        stops.append(here)
    return np.stack(stops)


def _passed_on(ways: Sequence[Column], ranks: int) -> Columns:
    """Return the rows that pass each part's data on, hop by hop, by way of scratch memory.

    Each hop of some data is one step after that before. Data that lies at a rank under the same
    chunk as other data has a layer of its own. Within a step, ranks send to the next ones first.

    Args:
        ways: For each part (stops, from, to): the ranks that its data is at.
        ranks: Number of ranks.
    """
    from_, to = np.meshgrid(np.arange(ranks), np.arange(ranks), indexing="ij")
    parts = []
    kept: dict[tuple[int, int], int] = {}  # layers taken, by rank and chunk
    for part, stops in enumerate(ways):
        chunk = (to - from_) % ranks * len(ways) + part
        step = np.zeros_like(chunk)
        at, layer = from_, np.zeros_like(chunk)
        for stop in stops[1:]:
            moves = stop != at
            next_layer = np.where(stop == to, 0, _layers(kept, stop, chunk, moves & (stop != to)))
            src, dst = at + layer * ranks, stop + next_layer * ranks
            parts.append(
                Columns.transfers(step[moves], src[moves], dst[moves], chunk[moves], Op.COPY)
            )
            step, at = step + moves, stop
            layer = np.where(moves, next_layer, layer)
    rows = Columns.joined(parts)
    distance = (rows.dst - rows.src) % ranks
    return rows.in_steps(distance, rows.src, rows.dst, rows.start)


def _layers(kept: dict[tuple[int, int], int], stop: Column, chunk: Column, waits: Column) -> Column:
    """Return the layer of scratch memory, from 1, for the data that waits at each stop."""
    layers = np.zeros_like(chunk)
    for place in np.argwhere(waits):
        where = tuple(place)
        cell = (int(stop[where]), int(chunk[where]))
        kept[cell] = layers[where] = kept.get(cell, 0) + 1
    return layers


def grid_all_to_all_cost(
    ranks: int,
    hierarchy: Sequence[int],
    embedding: GridEmbedding,
    size_bytes: int,
    fabric: AlphaBeta,
) -> Cost:
    """Return the cost where ranks have one port: data is sent once in each of d dimensions.

    Where ports serve a dimension each, that takes a d-th of the time.
    """
    if ranks < 2:
        return Cost(0, 0, 0)
    sizes, _ = embedding.grid_of("grid_all_to_all_cost", ranks, hierarchy)
    share = sum((size - 1) / size for size in sizes)
    messages = sum((size - 1) * ranks // size for size in sizes)
    port_ps = messages * fabric.port_ps(share * size_bytes / messages)
    terms = len(sizes)
    return Cost(terms * fabric.worst_latency_ps(ranks) + port_ps, round(share * size_bytes), terms)


def turns_for(ranks: int, size_bytes: int, sizes: int) -> int:
    """Return how many dimensions are worth a part of their own: one, if messages are small."""
    return sizes if size_bytes >= LEAST_BYTES * ranks * sizes else 1
