"""The least time that a schedule takes: its rows walked by data flow on an ideal network.

Assumptions, as in LogGP with full-duplex ports: a message keeps its rank's port busy for
`AlphaBeta.port_ps` in one piece; its first byte reaches the other port alpha later, and it keeps
that one busy for as long, once it is free (waiting messages wait in the network; nothing is
lost). A free port takes the waiting message that comes first in the schedule, which is about
the same as fair sharing among flows. Between ports there is no bottleneck.
An `Aggregate` takes `AlphaBeta.aggregation_ps`, once all its ranks are ready.
Additions take no time, and a sender knows at once that its message has landed. The time left
is the time that the schedule itself and the ports demand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from itertools import groupby

import numpy as np

from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.rows import AGGREGATE
from ringleaf.collectives.schedule import (
    Aggregate,
    Message,
    Schedule,
    check,
    chunk_ranges,
    messages,
)
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The times at which the ranks are done: each one (`rank_ps`), and the last (`time_ps`)."""

    time_ps: int
    rank_ps: tuple[int, ...]


def critical_path(
    schedule: Schedule,
    size_bytes: int,
    fabric: AlphaBeta,
    *,
    element_bytes: int = 4,
    coalesce: bool = True,
) -> CriticalPath:
    """Return the ideal completion time of `schedule` for tensors of `size_bytes`.

    Args:
        schedule: Any schedule.
        size_bytes: Size of each rank's tensor.
        fabric: Rate, latency by pair, and headers.
        element_bytes: Chunks end between elements.
        coalesce: Let adjacent rows travel as one message (`schedule.messages`).

    Raises:
        ScheduleError: If the rows make no sense, or elements do not fit into the size.
    """
    edges = _chunk_edges(schedule, size_bytes, element_bytes)
    check(schedule)
    moves = list(messages(schedule)) if coalesce else list(_singly(schedule))
    return _Walk(schedule, moves, edges, fabric).run()


def sent_bytes(schedule: Schedule, size_bytes: int, *, element_bytes: int = 4) -> list[int]:
    """Return the payload that each rank, and each server, sends.

    Raises:
        ScheduleError: If elements do not fit into the size.
    """
    edges = np.array(_chunk_edges(schedule, size_bytes, element_bytes))
    rows, sent = schedule.columns, np.zeros(schedule.nodes, np.int64)
    sizes, adds = edges[rows.stop] - edges[rows.start], rows.op == AGGREGATE
    leaves = ~adds & ~schedule.is_local(rows)
    np.add.at(sent, rows.src[leaves] % schedule.nodes, sizes[leaves])
    for size, ranks in zip(sizes[adds], rows.groups, strict=True):
        sent[list(ranks)] += size
    by_node: list[int] = sent.tolist()
    return by_node


def _chunk_edges(schedule: Schedule, size_bytes: int, element_bytes: int) -> list[int]:
    if size_bytes < 0 or size_bytes % element_bytes:
        raise ScheduleError(
            f"{schedule.algorithm} {schedule.collective.value}: size must be a multiple of "
            f"{format_count(element_bytes, 'byte')}, got {size_bytes}"
        )
    ranges = chunk_ranges(size_bytes // element_bytes, schedule.chunks)
    return [0] + [stop * element_bytes for _, stop in ranges]


def _singly(schedule: Schedule) -> Iterable[Message | Aggregate]:
    for row in schedule.rows:
        if isinstance(row, Aggregate):
            yield row
        else:
            yield Message(row.step, row.src, row.dst, row.chunk, row.chunk + 1, row.op, row.channel)


class _Kind(IntEnum):
    """The events of a move, in the order in which they are handled at one instant."""

    LAND = 0  # its last byte is there
    APPLY = 1
    READY = 2  # it may be sent
    ARRIVE = 3  # its first byte is there
    FREE_OUT = 4  # its source's port can send another
    FREE_IN = 5


@dataclass(slots=True)
class _Node:
    """One move's place in the data flow: how many moves it still waits for, and those that wait."""

    before_send: int = 0
    before_apply: int = 1  # its own landing
    sends: list[int] = field(default_factory=list)  # moves that send the chunks this one writes
    writes: list[int] = field(default_factory=list)  # moves that next write its chunks
    overwrites: list[int] = field(default_factory=list)  # moves that next write the chunks it sends


def _data_flow(schedule: Schedule, moves: list[Message | Aggregate]) -> list[_Node]:
    """Build the graph of the two rules of `schedule.py`."""
    nodes = [_Node() for _ in moves]
    writer: dict[tuple[int, int], int] = {}
    readers: dict[tuple[int, int], list[int]] = {}

    def add_reads(move: int, places: list[tuple[int, int]]) -> None:
        for before in {writer[place] for place in places if place in writer}:
            nodes[before].sends.append(move)
            nodes[move].before_send += 1
        for place in places:
            readers.setdefault(place, []).append(move)

    def add_writes(move: int, places: list[tuple[int, int]]) -> None:
        written = {writer[place] for place in places if place in writer}
        sent = {reader for place in places for reader in readers.pop(place, ())} - {move}
        for before in written:
            nodes[before].writes.append(move)
        for before in sent:
            nodes[before].overwrites.append(move)
        nodes[move].before_apply += len(written) + len(sent)
        writer.update(dict.fromkeys(places, move))

    numbered = enumerate(moves)
    for _, step in groupby(numbered, lambda pair: pair[1].step):
        concurrent = list(step)
        for number, move in concurrent:
            add_reads(number, _places(move, reading=True))
        for number, move in concurrent:
            add_writes(number, _places(move, reading=False))
    return nodes


def _places(move: Message | Aggregate, *, reading: bool) -> list[tuple[int, int]]:
    if isinstance(move, Aggregate):
        return [(rank, move.chunk) for rank in move.ranks]
    rank = move.src if reading else move.dst
    return [(rank, chunk) for chunk in range(move.start, move.stop)]


@dataclass(slots=True)
class _Port:
    """One direction of a rank's port; the messages that wait for it, lowest number first."""

    busy: bool = False
    waiting: list[int] = field(default_factory=list)

    def take(self) -> int | None:
        """Start on the next message, if there is one and the port is free."""
        if self.busy or not self.waiting:
            return None
        self.busy = True
        return heappop(self.waiting)


class _Walk:
    """A small event queue: time goes forward, ports get busy, moves set others free."""

    def __init__(
        self,
        schedule: Schedule,
        moves: list[Message | Aggregate],
        edges: list[int],
        fabric: AlphaBeta,
    ) -> None:
        self._moves = moves
        self._edges = edges
        self._fabric = fabric
        self._ranks, self._hosts = schedule.ranks, schedule.nodes
        self._nodes = _data_flow(schedule, moves)
        self._out = [_Port() for _ in range(schedule.nodes)]
        self._in = [_Port() for _ in range(schedule.nodes)]
        self._done_ps = [0] * schedule.nodes
        self._port_ps: dict[int, int] = {}  # few sizes, and `wire_bytes` may be slow
        self._events: list[tuple[int, int, int]] = []

    def run(self) -> CriticalPath:
        """Walk the schedule to its end; return when each rank is done."""
        for number, node in enumerate(self._nodes):
            if node.before_send == 0:
                heappush(self._events, (0, _Kind.READY, number))
        handlers = {
            _Kind.LAND: self._land,
            _Kind.APPLY: self._apply,
            _Kind.READY: self._ready,
            _Kind.ARRIVE: self._arrive,
            _Kind.FREE_OUT: self._free_out,
            _Kind.FREE_IN: self._free_in,
        }
        while self._events:
            now_ps, kind, number = heappop(self._events)
            handlers[_Kind(kind)](number, now_ps)
        done_ps = self._done_ps[: self._ranks]
        return CriticalPath(max(done_ps), tuple(done_ps))

    def _ready(self, number: int, now_ps: int) -> None:
        move = self._moves[number]
        if isinstance(move, Aggregate):
            heappush(self._events, (now_ps + self._aggregation_ps(move), _Kind.LAND, number))
        elif self._is_free(move):
            heappush(self._events, (now_ps, _Kind.LAND, number))  # nothing to send
        else:
            heappush(self._out[move.src % self._hosts].waiting, number)
            self._start_sending(move.src % self._hosts, now_ps)

    def _is_free(self, move: Message) -> bool:
        """Return whether a move takes no time: without a byte, or within a node."""
        is_empty = self._edges[move.stop] == self._edges[move.start]
        return is_empty or move.src % self._hosts == move.dst % self._hosts

    def _start_sending(self, rank: int, now_ps: int) -> None:
        number = self._out[rank].take()
        if number is None:
            return
        move = self._message(number)
        arrival_ps = now_ps + self._fabric.latency_ps(
            move.src % self._hosts, move.dst % self._hosts
        )
        heappush(self._events, (now_ps + self._busy_ps(move), _Kind.FREE_OUT, number))
        heappush(self._events, (arrival_ps, _Kind.ARRIVE, number))

    def _free_out(self, number: int, now_ps: int) -> None:
        rank = self._message(number).src % self._hosts
        self._finish(rank, now_ps)
        self._out[rank].busy = False
        self._start_sending(rank, now_ps)

    def _arrive(self, number: int, now_ps: int) -> None:
        rank = self._message(number).dst % self._hosts
        heappush(self._in[rank].waiting, number)
        self._start_receiving(rank, now_ps)

    def _start_receiving(self, rank: int, now_ps: int) -> None:
        number = self._in[rank].take()
        if number is not None:
            landed_ps = now_ps + self._busy_ps(self._message(number))
            heappush(self._events, (landed_ps, _Kind.LAND, number))
            heappush(self._events, (landed_ps, _Kind.FREE_IN, number))

    def _free_in(self, number: int, now_ps: int) -> None:
        rank = self._message(number).dst % self._hosts
        self._in[rank].busy = False
        self._start_receiving(rank, now_ps)

    def _land(self, number: int, now_ps: int) -> None:
        for later in (number, *self._nodes[number].overwrites):
            self._allow_apply(later, now_ps)

    def _apply(self, number: int, now_ps: int) -> None:
        move = self._moves[number]
        for rank in move.ranks if isinstance(move, Aggregate) else (move.dst,):
            self._finish(rank % self._hosts, now_ps)
        for later in self._nodes[number].writes:
            self._allow_apply(later, now_ps)
        for later in self._nodes[number].sends:
            self._nodes[later].before_send -= 1
            if self._nodes[later].before_send == 0:
                heappush(self._events, (now_ps, _Kind.READY, later))

    def _allow_apply(self, number: int, now_ps: int) -> None:
        self._nodes[number].before_apply -= 1
        if self._nodes[number].before_apply == 0:
            heappush(self._events, (now_ps, _Kind.APPLY, number))

    def _message(self, number: int) -> Message:
        move = self._moves[number]
        assert isinstance(move, Message)
        return move

    def _aggregation_ps(self, move: Aggregate) -> int:
        payload_bytes = self._edges[move.chunk + 1] - self._edges[move.chunk]
        if not payload_bytes:
            return 0
        return self._fabric.aggregation_ps(payload_bytes, self._ranks)

    def _busy_ps(self, message: Message) -> int:
        payload_bytes = self._edges[message.stop] - self._edges[message.start]
        if payload_bytes not in self._port_ps:
            self._port_ps[payload_bytes] = self._fabric.port_ps(payload_bytes)
        return self._port_ps[payload_bytes]

    def _finish(self, rank: int, now_ps: int) -> None:
        self._done_ps[rank] = max(self._done_ps[rank], now_ps)
