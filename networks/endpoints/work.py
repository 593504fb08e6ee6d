"""A director that replays a graph of work: connects ranks' clocks and operations."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ringleaf.collectives.schedule import Schedule
from ringleaf.hosts.executor.build import Executors
from ringleaf.hosts.workload.meetings import Matched, Meeting
from ringleaf.hosts.workload.replay import Replay
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.kit import Course, Kit
from ringleaf.networks.endpoints.operation import Combine, Operation
from ringleaf.tensors import Array, ElementType

Tell = Callable[[float, int, int], None]


class Team(NamedTuple):
    """Ranks that meet again and again, each time after the last one has ended."""

    group: int  # of the graph; -1: the second of two ranks receives from the first
    ranks: tuple[int, ...]


class MeetingLedger(Protocol):
    """A source of the data that ranks bring to a meeting, which also checks the results."""

    def fill(self, number: int, tensors: Sequence[Array]) -> None:
        """Write each rank's contribution to a meeting."""

    def check(self, number: int, schedule: Schedule, tensors: Sequence[Array]) -> None:
        """Check each rank's result of a meeting."""


@dataclass(frozen=True, slots=True)
class Score:
    """The way in which a matched graph is played.

    Args:
        matched: The graph.
        elements_of: Returns the elements of each rank's tensor in a meeting, at least 1.
        schedule_for: Returns the schedule of a meeting for so many elements.
        dtype: Type of the elements.
        abreast: The most messages between two ranks, in one direction, that are under way at a
            time, each on a queue pair of its own. Collectives of a group run one by one.
    """

    matched: Matched
    elements_of: Callable[[Meeting], int]
    schedule_for: Callable[[Meeting, int], Schedule]
    dtype: ElementType
    abreast: int = 1


def find_teams(matched: Matched) -> list[Team]:
    """Return the teams of all meetings; a network needs a group for each, in this order."""
    return list(dict.fromkeys(_team(each) for each in matched.meetings if not each.is_alone))


def _team(meeting: Meeting) -> Team:
    return Team(meeting.group, meeting.ranks)


_Key = tuple[object, ...]


@dataclass(slots=True)
class _Desk:
    """A team's queue of meetings, and its kit."""

    kit: Kit[_Key]
    free: list[int]  # channels
    waiting: deque[int] = field(default_factory=deque)
    under_way: dict[int, tuple[int, list[Array]]] = field(default_factory=dict)
    """By channel, the number and the tensors of a meeting."""


class WorkDirector:
    """A `Director` that replays a graph; each of the network's groups is one of its teams.

    The meetings of a team run one after the other, as those of a communicator do, unless the score
    lets messages run abreast. A meeting starts as soon as the network hears that its last rank has
    arrived, which is at most a link's delay later.

    Args:
        endpoints: The network's hosts, idle.
        score: The graph, and the way in which it is played.
        ledger: Writes data, and checks results.
        tell: Called when a meeting is over: with the share of bytes so far, and the numbers of
            meetings so far and in all.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        score: Score,
        ledger: MeetingLedger,
        tell: Tell = lambda share, done, wanted: None,
    ) -> None:
        self.replay = Replay(score.matched)
        self._score = score
        self._ledger = ledger
        self._tell = tell
        self._now_ps = 0
        self._meetings = score.matched.meetings
        self._elements = [score.elements_of(each) for each in self._meetings]
        self._total = max(sum(self._elements), 1)
        self._done = self._done_elements = 0
        teams = find_teams(score.matched)
        self._place = {team: place for place, team in enumerate(teams)}
        self._desks = self._prepare(endpoints, teams)
        self._changed: dict[int, None] = {}  # desks that may start something, in order

    def build(self) -> list[tuple[Executors, Combine]]:
        return [built for desk in self._desks for built in desk.kit.build()]

    def start(self, now_ps: int) -> None:
        self._now_ps = now_ps
        self.replay.start(now_ps)
        self._collect()

    def next_ps(self) -> int:
        return self.replay.next_ps()

    def reach(self, now_ps: int) -> None:
        self._now_ps = now_ps
        self.replay.reach(now_ps)
        self._collect()

    def finish(self, operation: Operation, now_ps: int) -> None:
        self._now_ps = now_ps
        desk = self._desks[operation.group]
        number, tensors = desk.under_way.pop(operation.channel)
        desk.free.append(operation.channel)
        elements = self._elements[number]
        schedule = desk.kit.courses[self._key(number)].schedule
        self._ledger.check(number, schedule, [each[:elements] for each in tensors])
        desk.kit.stock.give_back(elements, tensors)
        self._changed[operation.group] = None
        self._done += 1
        self._done_elements += elements
        self.replay.finish(number, operation.end_ps)
        self._collect()
        self._tell(self._done_elements / self._total, self._done, len(self._meetings))

    def take_operations(self) -> list[Operation]:
        changed, self._changed = self._changed, {}
        launched = []
        for place in changed:
            desk = self._desks[place]
            while desk.free and desk.waiting:
                launched.append(self._launch(desk))
        return launched

    def _collect(self) -> None:
        """Queue the meetings that may begin; those of one rank are over at once."""
        while ready := self.replay.take_ready():
            for number in ready:
                meeting = self._meetings[number]
                if meeting.is_alone:
                    at_ps = self.replay.arrival_ps(number)
                    self.replay.begin(number, at_ps)
                    self.replay.finish(number, at_ps)
                    self._done += 1
                    continue
                place = self._place[_team(meeting)]
                self._desks[place].waiting.append(number)
                self._changed[place] = None

    def _launch(self, desk: _Desk) -> Operation:
        number, channel = desk.waiting.popleft(), desk.free.pop()
        elements = self._elements[number]
        taken = desk.kit.stock.take(elements)
        desk.under_way[channel] = number, taken
        tensors = [each[:elements] for each in taken]
        self._ledger.fill(number, tensors)
        self.replay.begin(number, self._now_ps)
        return desk.kit.operate(self._key(number), channel, tensors)

    def _key(self, number: int) -> _Key:
        meeting = self._meetings[number]
        return meeting.call, len(meeting.ranks), meeting.root, self._elements[number]

    def _prepare(self, endpoints: Endpoints, teams: Sequence[Team]) -> list[_Desk]:
        """Make the queue pairs and the memory of all meetings; alike ones share schedules."""
        known: dict[_Key, Course] = {}
        courses: list[dict[_Key, Course]] = [{} for _ in teams]
        pieces: list[list[int]] = [[] for _ in teams]
        for number, meeting in enumerate(self._meetings):
            if meeting.is_alone:
                continue
            place, key, elements = (
                self._place[_team(meeting)],
                self._key(number),
                self._elements[number],
            )
            if key not in known:
                known[key] = Course.of(self._score.schedule_for(meeting, elements), elements)
            courses[place][key] = known[key]
            pieces[place].append(elements)
        channels = [
            1 if team.group >= 0 else min(self._score.abreast, len(sizes))
            for team, sizes in zip(teams, pieces, strict=True)
        ]
        kits = [
            Kit(endpoints, place, courses[place], pieces[place], self._score.dtype, channels=count)
            for place, count in enumerate(channels)
        ]
        endpoints.memory.make_room(sum(kit.total_bytes for kit in kits))
        for kit in kits:
            kit.settle()
        return [
            _Desk(kit, list(reversed(range(count))))
            for kit, count in zip(kits, channels, strict=True)
        ]
