"""The result that each collective promises, and a check for ranks on which it is missing.

The definition names, for each rank and chunk, whose data must be there in the end. A schedule is
judged by it without any tensor. Each rank's input is a number of 64 bits drawn at random, and a
chunk's contents are the sum of what was added up in it: wrong contributions have the sum of the
right ones once in 2^64 times. Where a sum is wrong, inputs are bits, and contents are the set of
those that were added up, beside the set of those that were added twice or more: they tell whose are
wrong. All chunks are followed at once, as columns, so schedules of millions of rows take less than
a second.

(`verify.verify` proves more, row by row: that no row is superfluous, and where an executor must
wait. Judging needs the results only.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.rows import AGGREGATE, REDUCE, Column, Columns
from ringleaf.collectives.schedule import Collective, Schedule, check

EVERYONE = -1
"""A demand: the sum of all ranks' inputs must be there."""

NOBODY = -2
"""A demand: the contents do not matter."""

_BLOCK_BYTES = 1 << 26  # of contents that are followed at once

_KEPT = 64  # schedules whose faults are remembered

_FEW_ROWS = 512  # of a step; with less, chunks' steps are numbered anew, so that there are fewer

Demands = npt.NDArray[np.int64]
"""(ranks, blocks): EVERYONE, NOBODY, or the one rank whose input must be there."""

_Words = npt.NDArray[np.uint64]
_ONE = np.uint64(1)


@lru_cache(maxsize=8)
def demands(collective: Collective, ranks: int, blocks: int, root: int = 0) -> Demands:
    """Return the rank whose data each rank must hold in each block of the tensor, or a constant.

    Args:
        collective: The promise.
        ranks: Number of ranks that take part.
        blocks: Number of nearly equal ranges that the tensor is cut into. Ranks own equal shares
            of them, in order, as in `schedule.owner`.
        root: The root of a reduce or broadcast.

    Returns:
        A read-only array of EVERYONE, NOBODY or ranks; other callers may be given the same one.
    """
    rank, block = np.arange(ranks)[:, None], np.arange(blocks)[None, :]
    owner = block * ranks // blocks
    demand: Demands
    match collective:
        case Collective.ALLREDUCE:
            demand = np.array([[EVERYONE]])
        case Collective.REDUCE:
            demand = np.where(rank == root, EVERYONE, NOBODY)
        case Collective.BROADCAST:
            demand = np.array([[root]])
        case Collective.REDUCE_SCATTER:
            demand = np.where(rank == owner, EVERYONE, NOBODY)
        case Collective.ALL_GATHER:
            demand = owner
        case Collective.ALL_TO_ALL:
            demand = (rank - owner) % ranks
    table: Demands = np.broadcast_to(demand, (ranks, blocks))
    table.flags.writeable = False
    return table


@dataclass(frozen=True, slots=True)
class Fault:
    """A chunk whose contents on some rank are wrong when the schedule is over.

    Attributes:
        rank: The rank that holds the wrong contents.
        chunk: The number of the chunk.
        lacking: Ranks whose contributions are not there.
        surplus: Ranks whose contributions do not belong there.
        doubled: Ranks whose contributions are there more than once.
    """

    rank: int
    chunk: int
    lacking: tuple[int, ...] = ()
    surplus: tuple[int, ...] = ()
    doubled: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return the fault in one line."""
        at = f"rank {self.rank}"
        if self.lacking:
            return f"{at} lacks {_contributions(self.lacking)} to chunk {self.chunk}"
        if self.surplus:
            names = _contributions(self.surplus)
            return f"{at} has {names} in chunk {self.chunk}, which must not be there"
        return f"{at} has {_contributions(self.doubled)} to chunk {self.chunk} more than once"


def _contributions(ranks: tuple[int, ...]) -> str:
    names = ", ".join(str(rank) for rank in ranks[:4])
    more = f" and {len(ranks) - 4} more" if len(ranks) > 4 else ""
    one = len(ranks) == 1
    return f"the contribution of rank {names}" if one else f"contributions of ranks {names}{more}"


@dataclass(frozen=True, slots=True)
class Faults:
    """The chunks that a schedule leaves wrong.

    Attributes:
        cells: (ranks, chunks): whether a rank's chunk is wrong.
        first: The first fault, chunk by chunk; None if there is none.
    """

    cells: npt.NDArray[np.bool_]
    first: Fault | None


_known: dict[tuple[object, ...], Faults] = {}


def find_faults(schedule: Schedule, collective: Collective, root: int = 0) -> Faults:
    """Return the chunks that a schedule leaves wrong; equal rows are followed once in a process.

    Args:
        schedule: The schedule. Its own `collective` and `root` are ignored.
        collective: The collective that it must perform.
        root: The root of a reduce or broadcast.

    Raises:
        ScheduleError: If rows are out of order or name ranks or chunks that do not exist.
    """
    check(schedule)
    rows = schedule.as_rows.key
    key = (collective, root, schedule.ranks, schedule.servers, schedule.chunks, *rows)
    if key not in _known:
        if len(_known) >= _KEPT:
            del _known[next(iter(_known))]
        _known[key] = _follow(schedule, collective, root)
    return _known[key]


def turns(demand: Demands) -> bool:
    """Return whether each rank must hold of a chunk what the one before must of the one before."""
    ranks, chunks = demand.shape
    return ranks == chunks and all(
        np.array_equal(_next_rank_s(demand[rank - 1]), demand[rank]) for rank in range(ranks)
    )


def _next_rank_s(demand: Demands) -> Demands:
    """Return what the next rank must hold, if it does as this one, turned: (chunks,)."""
    turned = np.roll(demand, 1)
    return np.where(turned < 0, turned, (turned + 1) % len(demand))


def _follow(schedule: Schedule, collective: Collective, root: int) -> Faults:
    demand = demands(collective, schedule.ranks, schedule.chunks, root)
    if _is_right(schedule, demand):
        return Faults(np.zeros(demand.shape, np.bool_), None)
    return _find(schedule, demand)


def _is_right(schedule: Schedule, demand: Demands) -> bool:
    """Return whether a schedule leaves nothing wrong, as far as sums of numbers say."""
    if schedule.circulant is not None and turns(demand):
        rows = schedule.circulant.of_chunk(0)[1]
        return not _Numbers.after(_Moves.of_rows(rows), schedule, demand[:, :1]).any()
    if schedule.pipelined is not None and (demand == demand[:, :1]).all():
        moves = _Moves.of_rows(schedule.pipelined.way)
        return not _Numbers.after(moves, schedule, demand[:, :1]).any()
    together = max(_BLOCK_BYTES // (8 * schedule.places), 1)
    return not any(
        _Numbers.after(part, schedule, demand[:, first : first + together]).any()
        for first, part in _Moves.of(schedule).by_chunks(schedule.chunks, together)
    )


def _find(schedule: Schedule, demand: Demands) -> Faults:
    """Return what a schedule leaves wrong."""
    cells = np.zeros(demand.shape, np.bool_)
    words = -(-schedule.ranks // 64)
    together = max(_BLOCK_BYTES // (2 * 8 * words * schedule.places), 1)
    fault: Fault | None = None
    for first, part in _Moves.of(schedule).by_chunks(schedule.chunks, together):
        there = demand[:, first : first + together]
        contents = _Sets(schedule.ranks, schedule.places, there.shape[1])
        contents.run(part)
        wrong = contents.faults(there)
        cells[:, first : first + together] = wrong
        if fault is None and wrong.any():
            chunk, rank = np.argwhere(wrong.T)[0].tolist()
            fault = contents.describe(rank, chunk, there, first)
    return Faults(cells, fault)


@dataclass(frozen=True, slots=True)
class _Moves:
    """A schedule's rows as columns; an aggregation is a row for each rank that it writes to.

    An aggregation's `src` is an index in `groups`, which has the ranks it adds up.
    """

    step: Column
    src: Column
    dst: Column
    chunk: Column
    op: Column
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, schedule: Schedule) -> _Moves:
        """Return a schedule's rows, a chunk each."""
        return cls.of_rows(schedule.columns.by_chunk())

    @classmethod
    def of_rows(cls, rows: Columns) -> _Moves:
        """Return rows of one chunk each."""
        step, src, dst, chunk, _, op, _ = rows.arrays
        if rows.groups:
            sizes = np.ones(len(rows), np.int64)
            sizes[op == AGGREGATE] = [len(ranks) for ranks in rows.groups]
            step, src, dst, chunk, op = (
                np.repeat(each, sizes) for each in (step, src, dst, chunk, op)
            )
            dst[op == AGGREGATE] = list(chain.from_iterable(rows.groups))
        return cls(step, src, dst, chunk, op, rows.groups)

    def by_chunks(self, chunks: int, together: int) -> Iterator[tuple[int, _Moves]]:
        """Yield the first of each `together` neighbouring chunks, and their rows, counted from 0.

        Their steps may be numbered anew, for each chunk from 0 without gaps: chunks never meet, and
        a pipeline of many chunks is over in as few steps as one of them takes.
        """
        steps = int(self.step[-1]) + 1 if self.step.size else 0
        if together >= chunks and self.step.size >= steps * _FEW_ROWS:
            yield 0, self
            return
        order = np.argsort(self.chunk, kind="stable")
        chunk, step = self.chunk[order], self.step[order]
        is_chunk = np.diff(chunk, prepend=-1) != 0
        turn = np.cumsum(is_chunk | (np.diff(step, prepend=-1) != 0))
        turn -= np.repeat(turn[is_chunk], np.diff(np.flatnonzero(is_chunk), append=turn.size))
        edges = np.searchsorted(chunk, range(0, chunks + together, together))
        for number, (start, stop) in enumerate(pairwise(edges)):
            again = start + np.argsort(turn[start:stop], kind="stable")
            rows, first = order[again], number * together
            yield (
                first,
                _Moves(
                    turn[again],
                    self.src[rows],
                    self.dst[rows],
                    self.chunk[rows] - first,
                    self.op[rows],
                    self.groups,
                ),
            )


class _Contents(ABC):
    """The contents of some chunks on all nodes.

    Attributes:
        held: (nodes * chunks, ...) what is there: a number, or words.
    """

    def __init__(self, own: _Words, nodes: int, chunks: int) -> None:
        self._ranks, self._chunks = len(own), chunks
        self.held = np.zeros((nodes * chunks, *own.shape[1:]), np.uint64)
        self.held[: len(own) * chunks] = np.repeat(own, chunks, axis=0)

    @staticmethod
    @abstractmethod
    def joined(one: _Words, other: _Words) -> _Words:
        """Return what is there if both are added up."""

    @classmethod
    def total(cls, contents: _Words) -> _Words:
        """Return what is there if all of some contents are added up."""
        return reduce(cls.joined, contents)

    def run(self, moves: _Moves) -> None:
        """Apply all rows: those of a step read the contents from before it, and write in order."""
        edges = np.flatnonzero(np.diff(moves.step, prepend=-1, append=-1))
        for start, stop in pairwise(edges):
            rows = slice(start, stop)
            chunk, op = moves.chunk[rows], moves.op[rows]
            cell = moves.dst[rows] * self._chunks + chunk
            arriving = self._arriving(moves.src[rows], chunk, op, moves.groups)
            for wave in _waves(cell, len(self.held)):
                self._write(cell[wave], op[wave] == REDUCE, arriving[wave])

    def _arriving(
        self, src: Column, chunk: Column, op: Column, groups: tuple[tuple[int, ...], ...]
    ) -> _Words:
        """Return the contributions that each row brings: (rows, ...)."""
        is_sum = op == AGGREGATE
        brought: _Words = self.held[np.where(is_sum, 0, src) * self._chunks + chunk]
        sums = {
            (group, at): self.total(self._of(groups[group], at))
            for group, at in zip(src[is_sum].tolist(), chunk[is_sum].tolist(), strict=True)
        }
        for place in np.flatnonzero(is_sum):
            brought[place] = sums[src[place], chunk[place]]
        return brought

    def _of(self, members: tuple[int, ...], chunk: int) -> _Words:
        """Return the contents of a chunk on some ranks: (members, ...)."""
        there: _Words = self.held[np.array(members) * self._chunks + chunk]
        return there

    def _write(self, cell: Column, adds: npt.NDArray[np.bool_], brought: _Words) -> None:
        """Add what rows bring to their cells, which are all others, or copy it."""
        if adds.any():
            at = cell[adds]
            self.held[at] = self.joined(self.held[at], brought[adds])
        if not adds.all():
            self.held[cell[~adds]] = brought[~adds]


class _Numbers(_Contents):
    """Contents as sums of ranks' numbers, modulo 2^64."""

    @classmethod
    def after(cls, moves: _Moves, schedule: Schedule, demand: Demands) -> npt.NDArray[np.bool_]:
        """Return, by (rank, chunk), whether moves leave other sums than the demanded ones."""
        own = _numbers(schedule.ranks)
        contents = cls(own, schedule.places, demand.shape[1])
        contents.run(moves)
        there = contents.held[: demand.size].reshape(demand.shape)
        right = np.where(demand == EVERYONE, own.sum(), own[np.maximum(demand, 0)])
        wrong: npt.NDArray[np.bool_] = (there != right) & (demand != NOBODY)
        return wrong

    @staticmethod
    def joined(one: _Words, other: _Words) -> _Words:
        """Return the sum."""
        return one + other

    @classmethod
    def total(cls, contents: _Words) -> _Words:
        """Return the sum of all; one by one takes longer, and NumPy warns of what does not fit."""
        total: _Words = contents.sum(axis=0)
        return total


class _Sets(_Contents):
    """Contents as sets of ranks, as bits: (nodes * chunks, 2, words).

    The first set has contributions that are there, the second those that are more than once.
    """

    def __init__(self, ranks: int, nodes: int, chunks: int) -> None:
        singles = _singles(ranks)
        super().__init__(np.stack((singles, np.zeros_like(singles)), axis=1), nodes, chunks)

    @staticmethod
    def joined(one: _Words, other: _Words) -> _Words:
        """Return the union, and what is there more than once."""
        both = one | other
        both[..., 1, :] |= one[..., 0, :] & other[..., 0, :]
        return both

    @property
    def _by_rank(self) -> tuple[_Words, _Words]:
        """What is there, and what is more than once: (ranks, chunks, words) each."""
        of_ranks = self.held[: self._ranks * self._chunks]
        sets = of_ranks.reshape(self._ranks, self._chunks, 2, -1)
        return sets[:, :, 0], sets[:, :, 1]

    def faults(self, demand: Demands) -> npt.NDArray[np.bool_]:
        """Return, by (rank, chunk), whether the contents differ from the demanded ones."""
        right = _right(demand)
        once, twice = self._by_rank
        differs = ((once != right) | (twice & right != 0)).any(axis=2)
        cells: npt.NDArray[np.bool_] = differs & (demand != NOBODY)
        return cells

    def describe(self, rank: int, chunk: int, demand: Demands, first: int) -> Fault:
        """Return the fault of a cell; chunk 0 here is chunk `first` of the schedule."""
        once, twice = (each[rank, chunk] for each in self._by_rank)
        right = _right(demand)[rank, chunk]
        return Fault(
            rank,
            first + chunk,
            lacking=_members(right & ~once),
            surplus=_members(once & ~right),
            doubled=_members(twice & right),
        )


def _right(demand: Demands) -> _Words:
    """Return the demanded contents as sets: (ranks, chunks, words)."""
    singles = _singles(len(demand))
    everyone = np.bitwise_or.reduce(singles, axis=0)
    right: _Words = singles[np.maximum(demand, 0)]
    right[demand == EVERYONE] = everyone
    return right


def _waves(cells: Column, most: int) -> Iterator[Column]:
    """Yield the places of rows that write different cells; a cell's rows stay in order.

    Args:
        cells: (rows,) the cell that each writes.
        most: The number of all cells.
    """
    rows = np.arange(cells.size)
    last = np.empty(most, np.int64)
    last[cells] = rows
    if (last[cells] == rows).all():
        yield rows
        return
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    turn = rows - np.repeat(starts, np.diff(starts, append=cells.size))
    for number in range(int(turn.max()) + 1):
        yield order[turn == number]


@lru_cache(maxsize=8)
def _numbers(ranks: int) -> _Words:
    """Return each rank's own number; other callers may be given the same ones."""
    numbers = np.random.default_rng(ranks).integers(1, 1 << 64, ranks, np.uint64)
    numbers.flags.writeable = False
    return numbers


def _singles(ranks: int) -> _Words:
    """Return each rank's own set: (ranks, words)."""
    rank = np.arange(ranks)
    singles = np.zeros((ranks, -(-ranks // 64)), np.uint64)
    singles[rank, rank // 64] = _ONE << (rank % 64).astype(np.uint64)
    return singles


def _members(words: _Words) -> tuple[int, ...]:
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return tuple(np.flatnonzero(bits).tolist())
