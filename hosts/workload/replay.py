"""Replay of a matched graph, without I/O: which computations run, and which meetings may begin.

A rank's compute nodes run one at a time per stream, the first in program order of those that may.
Communication goes on beside them. A collective, or a message that is not eager, may begin when all
of its ranks have reached it; an eager message when its sender has. A collective ends for all ranks
at one time, a message for sender and receiver at times of their own: for the receiver when the data
are there and it has reached them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.workload.graph import WorkNode
from ringleaf.hosts.workload.matched import Matched
from ringleaf.hosts.workload.slowness import Slowness

NOT_YET = -1


@dataclass(slots=True)
class NodeTimes:
    """Times of one node, in picoseconds; `NOT_YET` until they are known."""

    ready_ps: int = NOT_YET  # all that it depends on has ended
    start_ps: int = NOT_YET  # it computes, or its meeting is on the wire
    end_ps: int = NOT_YET


class WorkReplay:
    """The clocks of all ranks.

    After every call: start the meetings of `take_ready`, call `finish` when they have ended (and
    `end_for` when they have for one rank), and `reach` at the time of `next_ps`.

    Args:
        matched: The graph.
        slowness: The times at which ranks compute more slowly.
    """

    def __init__(self, matched: Matched, slowness: Slowness | None = None) -> None:
        self.matched = matched
        self._slowness = slowness if slowness and slowness.ranks else None
        ranks = matched.graph.ranks
        self.times = [[NodeTimes() for _ in work.nodes] for work in ranks]
        self.left = sum(len(work.nodes) for work in ranks)
        """The nodes that have not ended."""
        self.over_ps = [NOT_YET] * len(matched.meetings)
        """When each meeting was over on the wire."""
        self._missing = [
            [len(ended) + len(begun) for ended, begun in zip(*places, strict=True)]
            for places in zip(matched.after, matched.begun, strict=True)
        ]
        self._ended = [_turned(places) for places in matched.after]
        self._begun = [_turned(places) for places in matched.begun]
        self._latest: list[dict[int, int]] = [{} for _ in ranks]  # of what came, by place
        self._absent = [len(meeting.ranks) for meeting in matched.meetings]
        self._ready: list[int] = []  # meetings
        self._begun_ps = [NOT_YET] * len(matched.meetings)
        self._landed: dict[int, int] = {}  # messages that wait for their receivers: since when
        self._computing: list[tuple[int, int]] = []
        self._streams: list[dict[int, _Stream]] = [{} for _ in ranks]  # by rank
        self._ends: list[tuple[int, int, int]] = []  # end, rank, place of what computes

    def start(self, now_ps: int) -> None:
        """Begin with all nodes that depend on nothing."""
        for rank, missing in enumerate(self._missing):
            for place in [place for place, count in enumerate(missing) if not count]:
                self._arrive(rank, place, now_ps)
                if self.matched.meeting_of[rank][place] >= 0:
                    self._release(rank, self._begun[rank].get(place, ()), now_ps)
            self._compute(rank)

    def next_ps(self) -> int:
        """Return the time at which a computation ends next; `FOREVER_PS`: none runs."""
        while self._ends and self.times[self._ends[0][1]][self._ends[0][2]].end_ps != NOT_YET:
            heappop(self._ends)  # `reach_on` has ended it
        return self._ends[0][0] if self._ends else FOREVER_PS

    def reach(self, now_ps: int) -> None:
        """Let all computations end that are over now."""
        while self.next_ps() <= now_ps:
            end_ps, rank, place = heappop(self._ends)
            self._stop(rank, place, end_ps)

    def reach_on(self, rank: int, now_ps: int) -> None:
        """Let a rank's computations end that are over now."""
        streams = self._streams[rank].values()
        while due := [each for each in streams if each.is_busy and each.end_ps <= now_ps]:
            first = min(due, key=lambda each: (each.end_ps, each.place))
            self._stop(rank, first.place, first.end_ps)

    def take_ready(self) -> list[int]:
        """Return the numbers of the meetings that may begin; each once."""
        ready, self._ready = self._ready, []
        return ready

    def take_computing(self) -> list[tuple[int, int]]:
        """Return rank and end of each computation that has begun since the last call."""
        computing, self._computing = self._computing, []
        return computing

    def begin(self, number: int, now_ps: int) -> None:
        """Note that a meeting has begun."""
        self._begun_ps[number] = now_ps
        for rank, place in self._begins_with(number):
            self.times[rank][place].start_ps = now_ps

    def end_for(self, number: int, side: int, end_ps: int) -> None:
        """Note that a meeting ended for one of its ranks, at a time which may have passed.

        An eager message whose receiver has not reached it ends when it does.
        """
        meeting = self.matched.meetings[number]
        rank, place = meeting.ranks[side], meeting.places[side]
        times = self.times[rank][place]
        if times.end_ps != NOT_YET:
            return
        if times.ready_ps == NOT_YET:
            self._landed.setdefault(number, end_ps)
            return
        self._end(rank, place, max(end_ps, times.ready_ps))
        self._compute(rank)

    def finish(self, number: int, end_ps: int) -> None:
        """Note that a meeting ended for all others, at a time which may have passed."""
        self.over_ps[number] = end_ps
        for side in range(len(self.matched.meetings[number].ranks)):
            self.end_for(number, side, end_ps)

    def arrival_ps(self, number: int) -> int:
        """Return the time at which the last rank of those arrived that a meeting waits for."""
        return max(self.times[rank][place].ready_ps for rank, place in self._begins_with(number))

    def _begins_with(self, number: int) -> list[tuple[int, int]]:
        """Return ranks, and places of nodes, that must be there when a meeting begins."""
        meeting = self.matched.meetings[number]
        pairs = list(zip(meeting.ranks, meeting.places, strict=True))
        return pairs[:1] if meeting.is_eager else pairs

    def _node(self, rank: int, place: int) -> WorkNode:
        return self.matched.graph.ranks[rank].nodes[place]

    def _arrive(self, rank: int, place: int, now_ps: int) -> None:
        """Note that a node waits for no other any more, but perhaps for its stream."""
        self.times[rank][place].ready_ps = now_ps
        number = self.matched.meeting_of[rank][place]
        if number < 0:
            stream = self._streams[rank].setdefault(self._node(rank, place).stream, _Stream())
            heappush(stream.waiting, place)
            return
        meeting = self.matched.meetings[number]
        self._absent[number] -= 1
        if (rank == meeting.ranks[0]) if meeting.is_eager else not self._absent[number]:
            self._ready.append(number)

    def _compute(self, rank: int) -> None:
        """Begin the next computation on each free stream of a rank."""
        streams = self._streams[rank].values()
        while free := [each for each in streams if each.waiting and not each.is_busy]:
            stream = free[0]
            place = heappop(stream.waiting)
            times = self.times[rank][place]
            times.start_ps = max(stream.free_ps, times.ready_ps)
            end_ps = times.start_ps + self._node(rank, place).duration_ps
            if self._slowness is not None:
                work_ps = end_ps - times.start_ps
                end_ps = self._slowness.end_ps(rank, times.start_ps, work_ps)
            stream.is_busy, stream.place, stream.end_ps = True, place, end_ps
            heappush(self._ends, (end_ps, rank, place))
            self._computing.append((rank, end_ps))
            if then := self._begun[rank].get(place):
                self._release(rank, then, times.start_ps)

    def _stop(self, rank: int, place: int, end_ps: int) -> None:
        """End a computation, and begin the next one."""
        stream = self._streams[rank][self._node(rank, place).stream]
        stream.is_busy, stream.free_ps = False, end_ps
        self._end(rank, place, end_ps)
        self._compute(rank)

    def _end(self, rank: int, place: int, end_ps: int) -> None:
        self._release(rank, self._note_end(rank, place, end_ps), end_ps)

    def _note_end(self, rank: int, place: int, end_ps: int) -> Sequence[int]:
        """Note that a node has ended; return the places of those that wait for it."""
        times, number = self.times[rank][place], self.matched.meeting_of[rank][place]
        times.end_ps = end_ps
        if times.start_ps == NOT_YET:  # it received an eager message
            times.start_ps = max(self._begun_ps[number], times.ready_ps)
        self.left -= 1
        return self._ended[rank].get(place, ())

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
                if meeting_of[place] < 0:
                    continue
                # It has begun as far as this rank is concerned, and may have come before.
                left += [(each, ready_ps) for each in self._begun[rank].get(place, ())]
                landed_ps = self._landed.pop(meeting_of[place], NOT_YET)
                if landed_ps != NOT_YET:
                    end_ps = max(landed_ps, ready_ps)
                    left += [(each, end_ps) for each in self._note_end(rank, place, end_ps)]


def _turned(places: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """Return, by place, the places of the nodes that wait for it."""
    waiters: dict[int, list[int]] = {}
    for here, others in enumerate(places):
        for each in others:
            waiters.setdefault(each, []).append(here)
    return waiters


@dataclass(slots=True)
class _Stream:
    """A rank's computations of one stream."""

    waiting: list[int] = field(default_factory=list)  # a heap of places
    is_busy: bool = False
    place: int = 0  # what it is busy with
    end_ps: int = 0  # of that
    free_ps: int = 0  # since when it is not busy
