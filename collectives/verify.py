"""Proof, row by row, that a schedule does what its collective promises.

Each rank's input is one symbol, and a chunk's contents are the set of symbols added up in it;
symbols that were added twice are kept as a set, too. Execution is symbolic, so the proof
holds for tensors of any size. Chunks never meet: each is proved by itself, and one of those that
are alike (`collectives/chunk_symmetry.py`) for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby

import numpy as np

from ringleaf.collectives import definition
from ringleaf.collectives.chunk_symmetry import alike
from ringleaf.collectives.definition import demands
from ringleaf.collectives.schedule import (
    Aggregate,
    ChunkRows,
    Op,
    Row,
    Schedule,
    Transfer,
    check,
    rows_by_chunk,
)
from ringleaf.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class Proof:
    """Further properties of a schedule that has been found right.

    Attributes:
        waits: Numbers of the rows that overwrite a chunk which the same rank sends, with
            nothing in the data flow to show that the chunk has arrived: before they apply,
            the executor must have the acknowledgement. Empty: data flow alone keeps
            every read and write apart.
        landings: Those of `waits` that overwrite a chunk sent in the same step. They may
            wait for one another in a circle, unless arriving messages land in a buffer of
            their own. Empty: messages may be received straight into the tensor.
        identical: Whether ranks that must hold the same result hold the same bits, since it was
            added up in the same order, or once for all.
        repeats: Numbers of the rows that bring a rank what it holds already.
    """

    waits: tuple[int, ...]
    landings: tuple[int, ...]
    identical: bool
    repeats: tuple[int, ...] = ()


def place_of(row: int) -> str:
    """Return the place of a row in its schedule, as messages name it."""
    return f"row {row}"


def verify(
    schedule: Schedule,
    *,
    strict: bool = False,
    repeats: bool = False,
    place: Callable[[int], str] = place_of,
) -> Proof:
    """Prove that each rank ends with the demanded contributions, each exactly once.

    Args:
        schedule: Any schedule.
        strict: Refuse schedules that need an acknowledgement to be free of races.
        repeats: Allow rows that bring contents which are there already.
        place: Returns the place of a row, by its number, for messages: a file's line.

    Raises:
        ScheduleError: If rows are out of order or name ranks or chunks that do not exist, a result
            lacks a contribution or has one twice or one that does not belong there, or a row
            brings contents that are there already; the message names the row and the rank.
    """
    check(schedule)
    waits: list[int] = []
    landings: list[int] = []
    again: list[int] = []
    identical = True
    rows = schedule.as_rows
    for chunks in alike(schedule):
        numbers, of_first = rows.of_chunk(chunks[0])
        contents = _Contents(schedule, chunks[0], strict, repeats, place)
        for _ in contents.run(list(zip(numbers.tolist(), ChunkRows(of_first), strict=True))):
            pass
        contents.check_results()
        for kept, own in (
            (waits, contents.waits),
            (landings, contents.landings),
            (again, contents.again),
        ):
            places = np.searchsorted(numbers, own)
            others = (rows.of_chunk(chunk)[0] for chunk in chunks if own)
            kept += chain.from_iterable(each[places].tolist() for each in others)
        identical = identical and contents.identical()
    return Proof(tuple(sorted(waits)), tuple(sorted(landings)), identical, tuple(sorted(again)))


@dataclass(frozen=True, slots=True)
class Contributions:
    """The contributions that a row brought, and those in its chunk after it on every rank.

    Each is a set of bits; bit r is rank r's.
    """

    row: int
    brought: int
    held: tuple[int, ...]  # index = rank


def contributions(schedule: Schedule) -> Iterator[Contributions]:
    """Yield each row's contributions, chunk after chunk, in row order within a chunk.

    Raises:
        ScheduleError: If the schedule is not right, at the latest when its chunk is over.
    """
    check(schedule)
    for chunk, rows in enumerate(rows_by_chunk(schedule)):
        contents = _Contents(schedule, chunk, strict=False, repeats=True)
        for number, value in contents.run(rows):
            by_rank = tuple(each.contributions for each in contents.values)
            yield Contributions(number, value.contributions, by_rank)
        contents.check_results()


def demanded(schedule: Schedule, rank: int, chunk: int) -> int | None:
    """Return the contributions that must be there in the end, as a set of bits.

    Bit r is rank r's. None: the contents do not matter.
    """
    if rank >= schedule.ranks:
        return None  # a server
    demand = demands(schedule.collective, schedule.ranks, schedule.chunks, schedule.root)
    match int(demand[rank, chunk]):
        case definition.NOBODY:
            return None
        case definition.EVERYONE:
            return (1 << schedule.ranks) - 1
        case whose:
            return 1 << whose


@dataclass(frozen=True, slots=True)
class _Value:
    """The contents of a rank's chunk.

    `number` is the same for values of the same bits; `known` are the rows (by their place
    among the chunk's) that must have been applied for this value to be there.
    """

    contributions: int
    doubled: int
    number: int
    known: int


@dataclass(slots=True)
class _Contents:
    """One chunk on all ranks."""

    schedule: Schedule
    chunk: int
    strict: bool
    repeats: bool
    place: Callable[[int], str] = place_of
    values: list[_Value] = field(init=False)
    unseen: list[int] = field(init=False)  # by rank: rows that send, maybe not arrived yet
    numbers: list[int] = field(default_factory=list)  # row number, by place in the chunk
    writer: dict[int, int] = field(default_factory=dict)  # rank -> row that wrote there last
    sums: dict[tuple[int, ...], int] = field(default_factory=dict)  # key of the addends -> the sum
    doubler: dict[int, int] = field(default_factory=dict)  # contribution -> row that doubled it
    waits: list[int] = field(default_factory=list)
    landings: list[int] = field(default_factory=list)
    again: list[int] = field(default_factory=list)  # rows that bring what is there

    def __post_init__(self) -> None:
        ranks, nodes = self.schedule.ranks, self.schedule.places
        self.values = [_Value(1 << rank, 0, rank, 0) for rank in range(ranks)]
        self.values += [_Value(0, 0, server, 0) for server in range(ranks, nodes)]
        self.unseen = [0] * nodes

    def run(self, rows: list[tuple[int, Row]]) -> Iterator[tuple[int, _Value]]:
        """Apply the rows; yield the number of each, and the value it brought."""
        for _, step in groupby(rows, lambda numbered: numbered[1].step):
            yield from self._run_step(list(step))

    def _run_step(self, step: list[tuple[int, Row]]) -> Iterator[tuple[int, _Value]]:
        first = len(self.numbers)
        self.numbers += (number for number, _ in step)
        arriving = [self._send(place, row) for place, (_, row) in enumerate(step, first)]
        for place, ((number, row), brought) in enumerate(zip(step, arriving, strict=True), first):
            value = brought
            if isinstance(row, Transfer) and row.op is Op.REDUCE:
                value = self._add([self.values[row.dst], brought], number)
            written = row.ranks if isinstance(row, Aggregate) else (row.dst,)
            if all(self.values[rank].number == value.number for rank in written):
                self._repeat(number, written[0])
            for rank in written:
                self._write(rank, value, place, first)
            yield number, brought

    def _repeat(self, number: int, rank: int) -> None:
        """Note a row that brings what is there, or refuse it."""
        self.again.append(number)
        if not self.repeats:
            raise ScheduleError(
                f"{_name(self.schedule)}: {self._row(number)}: "
                f"rank {rank} already holds what it brings"
            )

    def _send(self, place: int, row: Row) -> _Value:
        if isinstance(row, Transfer):
            self.unseen[row.src] |= 1 << place
            return self.values[row.src]
        addends = [self.values[rank] for rank in row.ranks]
        return self._add(addends, self.numbers[place], in_network=True)

    def _add(self, addends: list[_Value], row_number: int, *, in_network: bool = False) -> _Value:
        contributions = doubled = known = 0
        for addend in addends:
            overlap = contributions & addend.contributions
            if overlap:
                self._blame(overlap, row_number)
            doubled |= overlap | addend.doubled
            contributions |= addend.contributions
            known |= addend.known
        # a + b and b + a have the same bits, so the sorted addends name their sum; but a
        # network's sum has bits of its own.
        key = (-1 if in_network else 0, *sorted(addend.number for addend in addends))
        number = self.sums.setdefault(key, self.schedule.places + len(self.sums))
        return _Value(contributions, doubled, number, known)

    def _blame(self, contributions: int, row_number: int) -> None:
        for rank in _members(contributions):
            self.doubler.setdefault(rank, row_number)

    def _write(self, rank: int, value: _Value, place: int, first_of_step: int) -> None:
        known = self.values[rank].known | value.known
        racing = self.unseen[rank] & ~known
        if racing and self.strict:
            number = self.numbers[place]
            raise ScheduleError(
                f"{_name(self.schedule)}: {self._row(number)}: overwrites "
                f"what rank {rank} sends, and only an acknowledgement would show that it arrived"
            )
        if racing:
            self.waits.append(self.numbers[place])
            if racing >> first_of_step:
                self.landings.append(self.numbers[place])
        self.unseen[rank] = 0
        self.values[rank] = _Value(
            value.contributions, value.doubled, value.number, known | racing | 1 << place
        )
        self.writer[rank] = self.numbers[place]

    def check_results(self) -> None:
        """Check the chunk's final contents on all ranks that the collective promises something."""
        for rank, value in enumerate(self.values):
            demand = demanded(self.schedule, rank, self.chunk)
            if demand is None:
                continue
            if value.contributions != demand:
                raise self._error(rank, _difference(value.contributions, demand))
            if value.doubled & demand:
                twice = next(_members(value.doubled & demand))
                number = self.doubler[twice]
                since = self._row(number)
                raise self._error(rank, f"has rank {twice}'s contribution twice, since {since}")

    def identical(self) -> bool:
        """Return whether all ranks that must hold the same result hold the same bits."""
        number_of: dict[int, int] = {}
        for rank, value in enumerate(self.values):
            demand = demanded(self.schedule, rank, self.chunk)
            if demand is not None and number_of.setdefault(demand, value.number) != value.number:
                return False
        return True

    def _row(self, number: int) -> str:
        """Return a row with its place, as messages name it."""
        row = self.schedule.rows[number]
        if isinstance(row, Aggregate):
            what = f"aggregate chunk {row.chunk}"
        else:
            what = f"{row.src} -> {row.dst}, {row.op.value} chunk {row.chunk}"
        return f"{self.place(number)} (step {row.step}: {what})"

    def _error(self, rank: int, what: str) -> ScheduleError:
        number = self.writer.get(rank)
        last = "no row" if number is None else self._row(number)
        return ScheduleError(
            f"{_name(self.schedule)}: rank {rank}, chunk {self.chunk}: {what}; "
            f"last written by {last}"
        )


def _difference(got: int, demand: int) -> str:
    lacking, surplus = demand & ~got, got & ~demand
    if lacking:
        return f"lacks the contribution of rank {_some(lacking)}"
    return f"has a contribution that does not belong there, of rank {_some(surplus)}"


def _some(members: int) -> str:
    ranks = [str(rank) for rank in _members(members)]
    return ", ".join(ranks[:4]) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _name(schedule: Schedule) -> str:
    return f"{schedule.algorithm} {schedule.collective.value}"
