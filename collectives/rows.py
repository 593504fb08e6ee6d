"""The rows of a schedule: transfers of chunks between ranks, kept as columns of numbers.

A schedule of a thousand ranks has millions of rows. They are stored as arrays (`Columns`), a place
for each message: adjacent rows that move neighbouring chunks between the same ranks in the same
step. `ChunkRows` shows them one by one, as `Transfer` and `Aggregate`, to code that reads a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import format_count

Column = npt.NDArray[np.int64]


class Op(StrEnum):
    """The operation by which arriving data changes the chunk that is there.

    Operations are strings, as a string's hash is not computed in Python: streams, which name an
    operation, are looked up for every message.
    """

    REDUCE = "reduce"  # dst[chunk] += src[chunk]
    COPY = "copy"  # dst[chunk] = src[chunk]


ALL_OPS = frozenset(Op)

REDUCE, COPY, AGGREGATE = range(3)
"""The numbers in a column of operations; AGGREGATE marks the place of an `Aggregate`."""

_OPS = (Op.REDUCE, Op.COPY)


@dataclass(frozen=True, slots=True)
class Transfer:
    """One chunk from one place to another: a rank, or scratch memory (`schedule`).

    Messages of different channels do not wait for one another, though they have the same ends.
    """

    step: int
    src: int
    dst: int
    chunk: int
    op: Op
    channel: int = 0


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The network adds up one chunk of `ranks` and gives each of them the sum."""

    step: int
    ranks: tuple[int, ...]
    chunk: int


Row = Transfer | Aggregate


@dataclass(frozen=True, slots=True)
class Message:
    """Transfers that travel together: chunks `start` to `stop` (excluded)."""

    step: int
    src: int
    dst: int
    start: int
    stop: int
    op: Op
    channel: int = 0


@dataclass(frozen=True, eq=False)
class Columns:
    """Messages and aggregations as arrays, in the order of the schedule.

    Attributes:
        step: (messages,) the step of each.
        src: (messages,) the sending place; of an aggregation, its place in `groups`.
        dst: (messages,) the receiving place; of an aggregation, -1.
        start: (messages,) the first chunk.
        stop: (messages,) the chunk after the last one.
        op: (messages,) REDUCE, COPY or AGGREGATE.
        channel: (messages,) the channel of each; of an aggregation, 0.
        groups: The ranks of each aggregation; `ChunkRows` numbers them as the schedule has them.
    """

    step: Column
    src: Column
    dst: Column
    start: Column
    stop: Column
    op: Column
    channel: Column
    groups: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Columns:
        """Return the columns of rows."""
        groups: list[tuple[int, ...]] = []
        flat: list[int] = []
        for row in rows:
            if isinstance(row, Aggregate):
                flat += (row.step, len(groups), -1, row.chunk, AGGREGATE, 0)
                groups.append(row.ranks)
            else:
                op_number = _OPS.index(row.op)
                flat += (row.step, row.src, row.dst, row.chunk, op_number, row.channel)
        step, src, dst, chunk, op, channel = np.array(flat, np.int64).reshape(-1, 6).T.copy()
        return cls(step, src, dst, chunk, chunk + 1, op, channel, tuple(groups))

    @classmethod
    def transfers(
        cls, step: Any, src: Any, dst: Any, start: Any, op: Op, *, size: Any = 1
    ) -> Columns:
        """Return transfers with one operation, all on channel 0.

        Args:
            step: Steps, as all following numbers: arrays that broadcast against one another, in
                whose C order the transfers are.
            src: Sending ranks.
            dst: Receiving ranks.
            start: First chunks.
            op: The operation of all.
            size: Numbers of neighbouring chunks that are moved.
        """
        number = _OPS.index(op)
        wide = np.broadcast_arrays(step, src, dst, start, np.add(start, size), number, 0)
        return cls._with([np.ascontiguousarray(each, np.int64).reshape(-1) for each in wide])

    @classmethod
    def joined(cls, parts: Iterable[Columns]) -> Columns:
        """Return the transfers of all parts, one after the other; none may aggregate."""
        known = [*parts, cls.transfers([], [], [], [], Op.COPY)]
        assert not any(part.groups for part in known)
        columns = zip(*(part.arrays for part in known), strict=True)
        return cls._with([np.concatenate(each) for each in columns])

    @classmethod
    def _with(cls, arrays: Iterable[Column], groups: tuple[tuple[int, ...], ...] = ()) -> Columns:
        step, src, dst, start, stop, op, channel = arrays
        return cls(step, src, dst, start, stop, op, channel, groups)

    @property
    def arrays(self) -> tuple[Column, ...]:
        """All columns, in the order of the attributes."""
        return (self.step, self.src, self.dst, self.start, self.stop, self.op, self.channel)

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.step)

    def take(self, places: npt.NDArray[Any]) -> Columns:
        """Return the messages at these places, or where a mask is true."""
        return self._with((each[places] for each in self.arrays), self.groups)

    def in_steps(self, *then: Column) -> Columns:
        """Return the messages sorted by step, then by other keys, else in the order they have."""
        return self.take(np.lexsort((*reversed(then), self.step)))

    def coalesced(self) -> Columns:
        """Return columns in which transfers that can travel as one message are one."""
        follows = (self.start[1:] == self.stop[:-1]) & (self.op[1:] != AGGREGATE)
        for each in (self.step, self.src, self.dst, self.op, self.channel):
            follows &= each[1:] == each[:-1]
        if not follows.any():
            return self
        first = np.flatnonzero(np.concatenate(([True], ~follows)))
        last = np.append(first[1:], len(self)) - 1
        return replace(self.take(first), stop=self.stop[last])

    def numbered(self) -> Columns:
        """Return columns whose groups are those of their aggregations, in order."""
        sums = np.flatnonzero(self.op == AGGREGATE)
        if np.array_equal(self.src[sums], np.arange(len(self.groups))):
            return self
        src = self.src.copy()
        src[sums] = np.arange(len(sums))
        return replace(self, src=src, groups=tuple(self.groups[i] for i in self.src[sums]))

    def by_chunk(self) -> Columns:
        """Return the rows: each message as transfers of one chunk each."""
        sizes = self.stop - self.start
        if (sizes == 1).all():
            return self
        places = np.repeat(np.arange(len(self)), sizes)
        offset = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = self.take(places)
        start = rows.start + offset
        return replace(rows, start=start, stop=start + 1)

    def messages(self) -> Iterator[Message | Aggregate]:
        """Yield the messages and aggregations as objects."""
        rows = zip(*(column.tolist() for column in self.arrays), strict=True)
        for step, src, dst, start, stop, op, channel in rows:
            if op == AGGREGATE:
                yield Aggregate(step, self.groups[src], start)
            else:
                yield Message(step, src, dst, start, stop, _OPS[op], channel)

    @cached_property
    def digest(self) -> bytes:
        """A hash of all rows."""
        hasher = blake2b(repr(self.groups).encode())
        for each in self.arrays:
            hasher.update(each.tobytes())
        return hasher.digest()


class ChunkRows(Sequence[Row]):
    """The rows of a schedule one by one, a chunk each, made when they are looked at.

    Args:
        columns: The rows, as messages.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns.coalesced().numbered()

    @cached_property
    def _ends(self) -> Column:
        """(messages,) the number of rows up to each message's last one."""
        return np.cumsum(self.columns.stop - self.columns.start)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def steps(self) -> int:
        """The number of steps; steps are numbered from 0."""
        return int(self.columns.step[-1]) + 1 if len(self.columns) else 0

    @property
    def messages(self) -> int:
        """The number of messages and aggregations."""
        return len(self.columns)

    def at(self, numbers: Column) -> Columns:
        """Return the messages with these numbers."""
        return self.columns.take(numbers)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each aggregation."""
        return self.columns.groups

    @property
    def key(self) -> tuple[object, ...]:
        """What tells these rows from others."""
        return (self.columns.digest,)

    @cached_property
    def _by_chunk(self) -> tuple[Columns, Column]:
        """The rows, a chunk each, and their numbers, sorted by chunk."""
        columns = self.columns.by_chunk()
        return columns, np.argsort(columns.start, kind="stable")

    def of_chunk(self, chunk: int) -> tuple[Column, Columns]:
        """Return the numbers of a chunk's rows, in order, and the rows."""
        columns, order = self._by_chunk
        first, stop = np.searchsorted(columns.start, (chunk, chunk + 1), sorter=order)
        numbers = order[first:stop]
        return numbers, columns.take(numbers)

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        """Return a row, or some of them."""
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        number = range(len(self))[place]
        at = int(np.searchsorted(self._ends, number, side="right"))
        [message] = self.at(np.array([at])).messages()
        if isinstance(message, Aggregate):
            return message
        chunk = message.stop - (int(self._ends[at]) - number)
        return Transfer(*_ends(message), chunk, message.op, message.channel)

    def __iter__(self) -> Iterator[Row]:
        """Yield all rows."""
        for each in self.columns.messages():
            if isinstance(each, Aggregate):
                yield each
            else:
                for chunk in range(each.start, each.stop):
                    yield Transfer(*_ends(each), chunk, each.op, each.channel)

    def __eq__(self, other: object) -> bool:
        """Return whether these are the same rows as another schedule's."""
        return isinstance(other, ChunkRows) and self.columns.digest == other.columns.digest

    def __hash__(self) -> int:
        """Return a hash of the rows."""
        return hash(self.columns.digest)

    def __repr__(self) -> str:
        """Return the number of rows."""
        return f"<{format_count(len(self), 'row')}>"


def _ends(message: Message) -> tuple[int, int, int]:
    return message.step, message.src, message.dst
