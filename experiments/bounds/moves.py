"""The messages and aggregations of a schedule that have bytes to move, and their least times.

All are columns, in the order of the schedule: a thousand ranks have millions of messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ringleaf.collectives.rows import AGGREGATE, Column, Columns


@dataclass(frozen=True, slots=True)
class MoveCells:
    """The chunks that each move reads, or those that it writes.

    Attributes:
        cell: (cells,) node * chunks + chunk, move after move.
        first: (moves + 1,) the place of each move's first cell, and the number of cells.
    """

    cell: Column
    first: Column

    @classmethod
    def of(cls, rows: Columns, node: Column, chunks: int) -> MoveCells:
        """Return the cells of moves at one node each, and of aggregations at all their ranks."""
        counts = rows.stop - rows.start
        sums = np.flatnonzero(rows.op == AGGREGATE)
        members = [np.array(rows.groups[group]) for group in rows.src[sums]]
        counts[sums] = [len(ranks) for ranks in members]
        first = np.concatenate(([0], np.cumsum(counts)))
        move = np.repeat(np.arange(len(rows)), counts)
        cell = node[move] * chunks + rows.start[move] + np.arange(len(move)) - first[move]
        for place, ranks in zip(sums, members, strict=True):
            cell[first[place] : first[place + 1]] = ranks * chunks + rows.start[place]
        return cls(cell, first)

    def most(self, values: Column, start: int, stop: int) -> Column:
        """Return the largest value at the cells of each move from `start` to `stop` (excluded)."""
        first = self.first[start : stop + 1]
        largest: Column = np.maximum.reduceat(
            values[self.cell[first[0] : first[-1]]], first[:-1] - first[0]
        )
        return largest

    def raise_to(self, values: Column, least: Column, start: int, stop: int) -> None:
        """Raise the values at these moves' cells to a minimum per move."""
        first = self.first[start : stop + 1]
        cells = self.cell[first[0] : first[-1]]
        np.maximum.at(values, cells, np.repeat(least, np.diff(first)))


@dataclass(frozen=True, slots=True)
class LeastTimes:
    """The least times of moves.

    Attributes:
        begin_ps: (moves,) the earliest begin of each.
        after_ps: (moves,) the least time that follows each one's arrival.
        end_ps: The earliest time when all can have arrived.
    """

    begin_ps: Column
    after_ps: Column
    end_ps: int


def least_times(rows: Columns, alone_ps: Column, nodes: int, chunks: int) -> LeastTimes:
    """Return the least times of moves, as if each had the network for itself.

    Args:
        rows: The moves, sorted by step; those of a step need what was there before it.
        alone_ps: (moves,) the time of each from its first byte leaving to its last one there.
        nodes: Number of ranks and servers.
        chunks: Number of chunks.
    """
    reads, writes = MoveCells.of(rows, rows.src, chunks), MoveCells.of(rows, rows.dst, chunks)
    begin_ps, after_ps = np.zeros((2, len(rows)), np.int64)
    there_ps, left_ps = np.zeros((2, nodes * chunks), np.int64)
    steps = list(_steps(rows))
    for start, stop in steps:
        begin_ps[start:stop] = reads.most(there_ps, start, stop)
        there = begin_ps[start:stop] + alone_ps[start:stop]
        writes.raise_to(there_ps, there, start, stop)
    for start, stop in reversed(steps):
        after_ps[start:stop] = writes.most(left_ps, start, stop)
        left = after_ps[start:stop] + alone_ps[start:stop]
        reads.raise_to(left_ps, left, start, stop)
    return LeastTimes(begin_ps, after_ps, int(there_ps.max()))


def _steps(rows: Columns) -> Iterator[tuple[int, int]]:
    """Yield each step's first move, and the one after its last."""
    edges = np.flatnonzero(np.diff(rows.step, prepend=-1, append=-1))
    yield from pairwise(edges.tolist())
