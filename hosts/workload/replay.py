"""Replay of a matched graph, without I/O: which computations run, and which meetings may begin.

A rank's compute nodes run one at a time per stream, the first in program order of those that may.
Communication goes on beside them. A meeting may begin when all of its ranks have reached it, and
ends for all of them at one time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ringleaf.hosts.workload.graph import Node
from ringleaf.hosts.workload.meetings import Matched
from ringleaf.units import FOREVER_PS

NOT_YET = -1


@dataclass(slots=True)
class Times:
    """Times of one node, in picoseconds; `NOT_YET` until they are known."""

    ready_ps: int = NOT_YET  # all that it depends on has ended
    start_ps: int = NOT_YET  # it computes, or its meeting has begun
    end_ps: int = NOT_YET


class Replay:
    """The clocks of all ranks.

    After every call: start the meetings of `take_ready`, call `finish` when they have ended, and
    `reach` at the time of `next_ps`.
    """

    def __init__(self, matched: Matched) -> None:
        self.matched = matched
        ranks = matched.graph.ranks
        self.times = [[Times() for _ in work.nodes] for work in ranks]
        self.left = sum(len(work.nodes) for work in ranks)
        """The nodes that have not ended."""
        self._missing = [
            [len(ended) + len(begun) for ended, begun in zip(*places, strict=True)]
            for places in zip(matched.after, matched.begun, strict=True)
        ]
        self._ended = [_turned(places) for places in matched.after]
        self._begun = [_turned(places) for places in matched.begun]
        self._latest: list[dict[int, int]] = [{} for _ in ranks]  # of what came, by place
        self._absent = [len(meeting.ranks) for meeting in matched.meetings]
        self._ready: list[int] = []  # meetings
        self._streams: list[dict[int, _Stream]] = [{} for _ in ranks]  # by rank
        self._ends: list[tuple[int, int, int]] = []  # end, rank, place of what computes

    def start(self, now_ps: int) -> None:
        """Begin with all nodes that depend on nothing."""
        for rank, missing in enumerate(self._missing):
            for place, count in enumerate(missing):
                if not count:
                    self._arrive(rank, place, now_ps)
                    if self.matched.meeting_of[rank][place] >= 0:
                        self._release(rank, self._begun[rank].get(place, ()), now_ps)
            self._compute(rank)

    def next_ps(self) -> int:
        """Return the time at which a computation ends next; `FOREVER_PS`: none runs."""
        return self._ends[0][0] if self._ends else FOREVER_PS

    def reach(self, now_ps: int) -> None:
        """Let all computations end that are over now."""
        while self._ends and self._ends[0][0] <= now_ps:
            end_ps, rank, place = heappop(self._ends)
            stream = self._streams[rank][self._node(rank, place).stream]
            stream.is_busy, stream.free_ps = False, end_ps
            self._end(rank, place, end_ps)
            self._compute(rank)

    def take_ready(self) -> list[int]:
        """Return the numbers of the meetings whose ranks have all arrived; each once."""
        ready, self._ready = self._ready, []
        return ready

    def begin(self, number: int, now_ps: int) -> None:
        """Note that a meeting has begun."""
        meeting = self.matched.meetings[number]
        for rank, place in zip(meeting.ranks, meeting.places, strict=True):
            self.times[rank][place].start_ps = now_ps

    def finish(self, number: int, end_ps: int) -> None:
        """Note that a meeting ended at a time, which may have passed."""
        meeting = self.matched.meetings[number]
        for rank, place in zip(meeting.ranks, meeting.places, strict=True):
            self._end(rank, place, end_ps)
            self._compute(rank)

    def arrival_ps(self, number: int) -> int:
        """Return the time at which the last rank of a meeting arrived."""
        meeting = self.matched.meetings[number]
        pairs = zip(meeting.ranks, meeting.places, strict=True)
        return max(self.times[rank][place].ready_ps for rank, place in pairs)

    def _node(self, rank: int, place: int) -> Node:
        return self.matched.graph.ranks[rank].nodes[place]

    def _arrive(self, rank: int, place: int, now_ps: int) -> None:
        """Note that a node waits for no other any more, but perhaps for its stream."""
        self.times[rank][place].ready_ps = now_ps
        number = self.matched.meeting_of[rank][place]
        if number < 0:
            stream = self._streams[rank].setdefault(self._node(rank, place).stream, _Stream())
            heappush(stream.waiting, place)
            return
        self._absent[number] -= 1
        if not self._absent[number]:
            self._ready.append(number)

    def _compute(self, rank: int) -> None:
        """Begin the next computation on each free stream of a rank."""
        free = [each for each in self._streams[rank].values() if each.waiting and not each.is_busy]
        for stream in free:
            place = heappop(stream.waiting)
            stream.is_busy = True
            times = self.times[rank][place]
            times.start_ps = max(stream.free_ps, times.ready_ps)
            end_ps = times.start_ps + self._node(rank, place).duration_ps
            heappush(self._ends, (end_ps, rank, place))
            if then := self._begun[rank].get(place):
                self._release(rank, then, times.start_ps)
                self._compute(rank)

    def _end(self, rank: int, place: int, end_ps: int) -> None:
        self.times[rank][place].end_ps = end_ps
        self.left -= 1
        self._release(rank, self._ended[rank].get(place, ()), end_ps)

    def _release(self, rank: int, then: Sequence[int], now_ps: int) -> None:
        """Let nodes that waited for something go on, if they wait for nothing else."""
        missing, latest, meeting_of = (
            self._missing[rank],
            self._latest[rank],
            self.matched.meeting_of[rank],
        )
        left = [(place, now_ps) for place in then]
        while left:
            place, came_ps = left.pop()
            missing[place] -= 1
            ready_ps = latest[place] = max(latest.get(place, 0), came_ps)
            if not missing[place]:
                self._arrive(rank, place, ready_ps)
                if meeting_of[place] >= 0:  # it has begun as far as this rank is concerned
                    left += [(each, ready_ps) for each in self._begun[rank].get(place, ())]


def _turned(places: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """Return, by place, the places of the nodes that wait for it."""
    found: dict[int, list[int]] = {}
    for here, others in enumerate(places):
        for each in others:
            found.setdefault(each, []).append(here)
    return found


@dataclass(slots=True)
class _Stream:
    """A rank's computations of one stream."""

    waiting: list[int] = field(default_factory=list)  # a heap of places
    is_busy: bool = False
    free_ps: int = 0  # since when it is not busy
