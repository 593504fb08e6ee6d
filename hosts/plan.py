"""A schedule cut into plans: the rows of each rank, and their order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from ringleaf.collectives.codec import Codec
from ringleaf.collectives.schedule import Aggregate, Message, Op, Schedule, chunk_ranges, messages

MAX_POSTED = 128
"""The most sends, and receives, of a stream at a time; a queue pair's ring has room for more."""


class Stream(NamedTuple):
    """One rank's messages of one kind with one peer, which go in the order of the schedule.

    Reduced and copied messages don't wait for each other: in a pipeline through two trees they
    go opposite ways, and would keep each other to one chunk per round trip.
    """

    peer: int
    op: Op


NETWORK = Stream(-1, Op.REDUCE)
"""The stream that stands for the switches that aggregate."""


@dataclass(slots=True)
class PlannedMessage:
    """One message, or aggregate, of the schedule as this rank sees it."""

    tag: int
    stream: Stream
    start: int  # chunks `start` to `stop` (excluded)
    stop: int
    after_writes: list[int]  # per chunk: writes applied here before it may go
    after_sends: list[int]  # per chunk: sends acknowledged before it may be written
    codec: Codec | None = None
    staged: bool = False
    slot: int = -1
    came_bytes: int = 0


@dataclass(slots=True)
class Plan:
    """A rank's rows by stream, in the order both ends agree on: that of the schedule."""

    sends: dict[Stream, deque[PlannedMessage]] = field(default_factory=lambda: defaultdict(deque))
    receives: dict[Stream, deque[PlannedMessage]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    aggregates: list[PlannedMessage] = field(default_factory=list)

    def again(self) -> Plan:
        """Return the same rows in queues of their own, for a plan that is walked more than once.

        Call it only after the last walk is over, as a row belongs to one message at a time.
        """
        sends, receives = (
            defaultdict(deque, {stream: rows.copy() for stream, rows in each.items()})
            for each in (self.sends, self.receives)
        )
        return Plan(sends, receives, self.aggregates.copy())


def plans(schedule: Schedule, elements: int) -> list[Plan]:
    """Return the plans of a schedule's nodes, ranks first, for tensors of `elements` elements.

    Messages without a byte are left out.
    """
    ranges = chunk_ranges(elements, schedule.chunks)
    planners = [_Planner(schedule) for _ in range(schedule.nodes)]
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

    def __init__(self, schedule: Schedule) -> None:
        chunks = schedule.chunks
        self._codec_of = schedule.codec_of
        self._plan = Plan()
        self._writes: list[list[int]] = [[] for _ in range(chunks)]  # steps, per chunk
        self._sends: list[list[int]] = [[] for _ in range(chunks)]
        self._written: list[tuple[PlannedMessage, int]] = []

    def add_send(self, tag: int, row: Message) -> None:
        """Add a send, which reads the contents from before its step."""
        chunks = range(row.start, row.stop)
        after = [bisect_left(self._writes[chunk], row.step) for chunk in chunks]
        for chunk in chunks:
            self._sends[chunk].append(row.step)
        stream = Stream(row.dst, row.op)
        codec = self._codec_of(row.op)
        self._plan.sends[stream].append(
            PlannedMessage(tag, stream, row.start, row.stop, after, [], codec)
        )

    def add_write(self, tag: int, row: Message) -> None:
        stream = Stream(row.src, row.op)
        entry = self._write(tag, stream, row.step, row.start, row.stop)
        entry.codec = self._codec_of(row.op)
        self._plan.receives[stream].append(entry)

    def add_aggregate(self, tag: int, row: Aggregate) -> None:
        self._plan.aggregates.append(self._write(tag, NETWORK, row.step, row.chunk, row.chunk + 1))

    def _write(self, tag: int, stream: Stream, step: int, start: int, stop: int) -> PlannedMessage:
        after = [len(self._writes[chunk]) for chunk in range(start, stop)]
        for chunk in range(start, stop):
            self._writes[chunk].append(step)
        entry = PlannedMessage(tag, stream, start, stop, after, [])
        self._written.append((entry, step))
        return entry

    def finish(self) -> Plan:
        for entry, step in self._written:
            sends = [self._sends[chunk] for chunk in range(entry.start, entry.stop)]
            entry.after_sends = [bisect_right(steps, step) for steps in sends]
            # A swap within a step must not wait for itself, so it goes through staging.
            swaps = any(step in steps for steps in sends)
            entry.staged = entry.stream.op is Op.REDUCE or swaps or entry.codec is not None
        for rows in self._plan.receives.values():
            # The first message comes before there is credit: it must be let in at once.
            rows[0].staged |= any(rows[0].after_writes) or any(rows[0].after_sends)
        return self._plan
