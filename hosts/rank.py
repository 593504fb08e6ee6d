"""One rank's part of a collective, walked by data flow and not by global barrier.

Sans-I/O: it asks for sends, receives and aggregations (`take_requests`) and is told when
they are done. A rank only knows its own rows of the schedule, so the same executor runs in
virtual time and in a process of its own.

- A send may start once every earlier-step write of its chunk has been applied here.
- A write is applied once every earlier-row write of its chunk has been, and every send of
  that chunk up to its step has been acknowledged; so results don't depend on arrival order.
- A COPY lands in the tensor itself; a REDUCE lands in a staging buffer and is added by torch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from collectives.schedule import Aggregate, Message, Op, Schedule, chunk_ranges, messages

MAX_POSTED = 128
"""Sends, and receives, of a stream at a time; a queue pair's ring has room for more."""


class Stream(NamedTuple):
    """One rank's messages of one kind with one peer, which go in the order of the schedule.

    What is reduced and what is copied don't wait for each other: in a pipeline through two
    trees they go opposite ways, and would keep each other to one chunk per round trip.
    """

    peer: int
    op: Op


NETWORK = Stream(-1, Op.REDUCE)
"""Stands for the switches that aggregate."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send memory to a peer; answer with `sent`."""

    stream: Stream
    address: int
    size_bytes: int
    tag: int  # row of the schedule


@dataclass(frozen=True, slots=True)
class Receive:
    """Let the stream's next message go to `address`; answer with `received`."""

    stream: Stream
    address: int
    size_bytes: int
    tag: int


@dataclass(frozen=True, slots=True)
class Reduce:
    """Aggregate memory in the network, in place; answer with `aggregated`."""

    address: int
    size_bytes: int
    tag: int


Request = Send | Receive | Reduce


@dataclass(slots=True)
class _Row:
    """One message, or aggregate, of the schedule as this rank sees it."""

    tag: int
    stream: Stream
    start: int  # chunks `start` to `stop` (excluded)
    stop: int
    after_writes: list[int]  # per chunk: writes applied here before it may go
    after_sends: list[int]  # per chunk: sends acknowledged before it may be written
    staged: bool = False
    slot: int = -1


@dataclass(slots=True)
class Plan:
    """A rank's rows by stream, in the order both ends agree on: that of the schedule."""

    sends: dict[Stream, deque[_Row]] = field(default_factory=lambda: defaultdict(deque))
    receives: dict[Stream, deque[_Row]] = field(default_factory=lambda: defaultdict(deque))
    aggregates: list[_Row] = field(default_factory=list)


def plans(schedule: Schedule, elements: int) -> list[Plan]:
    """Cut a schedule for tensors of `elements` into its ranks' plans; index = rank.

    Messages without a byte are left out.
    """
    ranges = chunk_ranges(elements, schedule.chunks)
    planners = [_Planner(schedule.chunks) for _ in range(schedule.ranks)]
    for tag, row in enumerate(messages(schedule)):
        if isinstance(row, Aggregate):
            for rank in row.ranks:
                planners[rank].add_aggregate(tag, row)
        elif ranges[row.start][0] < ranges[row.stop - 1][1]:
            planners[row.src].add_send(tag, row)
            planners[row.dst].add_write(tag, row)
    return [planner.finish() for planner in planners]


class _Planner:
    """Notes the reads and writes of each chunk while rows are added in order."""

    def __init__(self, chunks: int) -> None:
        self._plan = Plan()
        self._writes: list[list[int]] = [[] for _ in range(chunks)]  # steps, per chunk
        self._sends: list[list[int]] = [[] for _ in range(chunks)]
        self._written: list[tuple[_Row, int]] = []

    def add_send(self, tag: int, row: Message) -> None:
        """A send reads what was there before its step."""
        chunks = range(row.start, row.stop)
        after = [bisect_left(self._writes[chunk], row.step) for chunk in chunks]
        for chunk in chunks:
            self._sends[chunk].append(row.step)
        stream = Stream(row.dst, row.op)
        self._plan.sends[stream].append(_Row(tag, stream, row.start, row.stop, after, []))

    def add_write(self, tag: int, row: Message) -> None:
        stream = Stream(row.src, row.op)
        entry = self._write(tag, stream, row.step, row.start, row.stop)
        self._plan.receives[stream].append(entry)

    def add_aggregate(self, tag: int, row: Aggregate) -> None:
        self._plan.aggregates.append(self._write(tag, NETWORK, row.step, row.chunk, row.chunk + 1))

    def _write(self, tag: int, stream: Stream, step: int, start: int, stop: int) -> _Row:
        after = [len(self._writes[chunk]) for chunk in range(start, stop)]
        for chunk in range(start, stop):
            self._writes[chunk].append(step)
        entry = _Row(tag, stream, start, stop, after, [])
        self._written.append((entry, step))
        return entry

    def finish(self) -> Plan:
        for entry, step in self._written:
            sends = [self._sends[chunk] for chunk in range(entry.start, entry.stop)]
            entry.after_sends = [bisect_right(steps, step) for steps in sends]
            # A swap within a step must not wait for itself, so it goes through staging.
            entry.staged = entry.stream.op is Op.REDUCE or any(step in steps for steps in sends)
        return self._plan


class RankExecutor:
    """Walks one rank's plan.

    Args:
        plan: Its part of the schedule.
        tensor: The rank's buffer, of shape (elements,); reduced in place.
        address: Where `tensor` starts in registered memory.
        chunks: How many chunks the schedule cuts the buffer into.
        staging: Address of `staging_bytes` of registered memory.
        view: Returns the tensor of so many elements at an address.
        ahead_bytes: Bytes of receives posted ahead per stream, at least two messages.
    """

    def __init__(
        self,
        plan: Plan,
        tensor: torch.Tensor,
        address: int,
        chunks: int,
        *,
        staging: int,
        view: Callable[[int, int], torch.Tensor],
        ahead_bytes: int,
    ) -> None:
        self._plan = plan
        self._tensor = tensor
        self._address = address
        self._ranges = chunk_ranges(tensor.numel(), chunks)
        self._view = view
        self._applied = [0] * chunks
        self._acked = [0] * chunks
        self._in_flight: dict[int, _Row] = {}  # by tag
        self._sending: dict[Stream, int] = defaultdict(int)
        self._receiving: dict[Stream, int] = defaultdict(int)
        self._blocked: dict[int, dict[Hashable, Callable[[], None]]] = defaultdict(dict)  # by chunk
        self._requests: list[Request] = []
        self._receives = bool(plan.receives or plan.aggregates)
        self._left = sum(len(rows) for rows in plan.sends.values())
        self._left += sum(len(rows) for rows in plan.receives.values()) + len(plan.aggregates)
        item = tensor.element_size()
        self._depth = {
            stream: _depth(rows, self._ranges, item, ahead_bytes)
            for stream, rows in plan.receives.items()
        }
        self._slots = _staging_slots(plan, self._ranges, item, staging, ahead_bytes)

    @property
    def receives(self) -> bool:
        """Whether anything is ever written here."""
        return self._receives

    @property
    def done(self) -> bool:
        return self._left == 0

    def start(self) -> None:
        for stream in self._plan.receives:
            self._post_receives(stream)
        for stream in self._plan.sends:
            self._post_sends(stream)
        self._post_aggregates()

    def take_requests(self) -> list[Request]:
        requests, self._requests = self._requests, []
        return requests

    def sent(self, tag: int) -> None:
        """The peer has the whole message of this row."""
        row = self._in_flight.pop(tag)
        self._sending[row.stream] -= 1
        self._post_sends(row.stream)
        self._count(row, self._acked)

    def received(self, tag: int) -> None:
        """The message of this row is where it was asked to go."""
        row = self._in_flight.pop(tag)
        if row.staged:
            self._apply(row)
        else:
            self._written(row)

    def aggregated(self, tag: int) -> None:
        """The aggregate of this row has replaced the rank's chunk."""
        self._count(self._in_flight.pop(tag), self._applied)

    def _count(self, row: _Row, counts: list[int]) -> None:
        """A row is done: count it for its chunks, and try what waited for them."""
        self._left -= 1
        for chunk in range(row.start, row.stop):
            counts[chunk] += 1
        for chunk in range(row.start, row.stop):
            for again in self._blocked.pop(chunk, {}).values():
                again()

    def _missing(self, row: _Row) -> int:
        """The first chunk of the row that waits for an earlier write or send; -1 if none."""
        for chunk, writes in enumerate(row.after_writes, row.start):
            if self._applied[chunk] < writes:
                return chunk
        for chunk, sends in enumerate(row.after_sends, row.start):
            if self._acked[chunk] < sends:
                return chunk
        return -1

    def _waits(self, row: _Row, who: Hashable, again: Callable[[], None]) -> bool:
        """Whether the row must wait; if so `again` is called, once, when that may have changed."""
        chunk = self._missing(row)
        if chunk >= 0:
            self._blocked[chunk][who] = again
        return chunk >= 0

    def _bytes(self, row: _Row) -> tuple[int, int]:
        """Address and size of a row's chunks."""
        start, stop = self._ranges[row.start][0], self._ranges[row.stop - 1][1]
        item = self._tensor.element_size()
        return self._address + start * item, (stop - start) * item

    def _post_sends(self, stream: Stream) -> None:
        rows = self._plan.sends[stream]
        while rows and self._sending[stream] < MAX_POSTED:
            row = rows[0]
            if self._waits(row, (Send, stream), lambda: self._post_sends(stream)):
                return
            rows.popleft()
            self._sending[stream] += 1
            self._in_flight[row.tag] = row
            self._requests.append(Send(stream, *self._bytes(row), row.tag))

    def _post_receives(self, stream: Stream) -> None:
        rows = self._plan.receives[stream]
        while rows and self._receiving[stream] < self._depth[stream]:
            row = rows[0]
            address, size = self._bytes(row)
            if row.staged:
                if not self._slots[stream]:
                    return  # one comes back when a held write is applied
                row.slot = address = self._slots[stream].pop()  # the warmest
            elif self._waits(row, (Receive, stream), lambda: self._post_receives(stream)):
                return
            rows.popleft()
            self._receiving[stream] += 1
            self._in_flight[row.tag] = row
            self._requests.append(Receive(stream, address, size, row.tag))

    def _post_aggregates(self) -> None:
        rows, self._plan.aggregates = self._plan.aggregates, []
        for row in rows:
            if self._missing(row) >= 0:
                self._plan.aggregates.append(row)
                continue
            self._in_flight[row.tag] = row
            self._requests.append(Reduce(*self._bytes(row), row.tag))
        if self._plan.aggregates:
            self._waits(self._plan.aggregates[0], Reduce, self._post_aggregates)

    def _apply(self, row: _Row) -> None:
        """Move a staged message into the tensor, when its turn has come."""
        if self._waits(row, row.tag, lambda: self._apply(row)):
            return
        start, stop = self._ranges[row.start][0], self._ranges[row.stop - 1][1]
        target, source = self._tensor[start:stop], self._view(row.slot, stop - start)
        if row.stream.op is Op.REDUCE:
            target.add_(source)
        else:
            target.copy_(source)
        self._slots[row.stream].append(row.slot)
        self._written(row)

    def _written(self, row: _Row) -> None:
        self._receiving[row.stream] -= 1
        self._post_receives(row.stream)
        self._count(row, self._applied)


def _staged(plan: Plan) -> Iterator[tuple[Stream, list[_Row]]]:
    for stream, rows in plan.receives.items():
        if staged := [row for row in rows if row.staged]:
            yield stream, staged


def _slot_bytes(rows: Iterable[_Row], ranges: list[tuple[int, int]], item: int) -> int:
    """Room for the largest of these rows' messages, in whole cache lines."""
    largest = max(ranges[row.stop - 1][1] - ranges[row.start][0] for row in rows)
    return -(-largest * item // 64) * 64


def _depth(
    rows: Collection[_Row], ranges: list[tuple[int, int]], item: int, ahead_bytes: int
) -> int:
    """How many of these rows' messages are let in ahead."""
    wanted = -(-ahead_bytes // _slot_bytes(rows, ranges, item))
    return min(max(2, wanted), MAX_POSTED, len(rows))


def staging_bytes(plan: Plan, elements: int, chunks: int, item: int, *, ahead_bytes: int) -> int:
    """Registered memory that an executor of this plan needs for messages not yet applied."""
    ranges = chunk_ranges(elements, chunks)
    return sum(
        _depth(rows, ranges, item, ahead_bytes) * _slot_bytes(rows, ranges, item)
        for _, rows in _staged(plan)
    )


def _staging_slots(
    plan: Plan, ranges: list[tuple[int, int]], item: int, staging: int, ahead_bytes: int
) -> dict[Stream, list[int]]:
    """Addresses of each stream's free staging buffers."""
    slots: dict[Stream, list[int]] = defaultdict(list)
    for stream, rows in _staged(plan):
        size = _slot_bytes(rows, ranges, item)
        for _ in range(_depth(rows, ranges, item, ahead_bytes)):
            slots[stream].append(staging)
            staging += size
    return slots
