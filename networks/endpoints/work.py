"""A director that replays a graph of work: connects ranks' clocks and operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from threading import Lock
from typing import Protocol

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import Array
from ringleaf.hosts.executor.build import Executors
from ringleaf.hosts.workload.replay import WorkReplay
from ringleaf.networks.endpoints.desks import (
    Desk,
    Key,
    Score,
    channels_of,
    find_teams,
    make_desks,
    team_of,
)
from ringleaf.networks.endpoints.director import DirectorStage
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.operation import CollectiveOperation, Combine
from ringleaf.topologies.graph import index

Tell = Callable[[float, int, int], None]


class MeetingLedger(Protocol):
    """A source of the data that ranks bring to a meeting, which also checks the results."""

    def fill(self, number: int, tensors: Sequence[Array]) -> None:
        """Write each rank's contribution to a meeting."""

    def check(self, number: int, schedule: Schedule, tensors: Sequence[Array]) -> None:
        """Check each rank's result of a meeting."""


class WorkDirector:
    """A `Director` that replays a graph; each of the network's groups is one of its teams.

    The collectives of a team run one after the other, as those of a communicator do. One starts as
    soon as the network hears that its last rank has arrived, which is at most a link's delay later.

    Messages are heard of at once (`Reacts`). A receive ends when the last byte is there; the send
    of an eager message when its last packet has left for the first time, another when it is
    acknowledged. An eager message that follows from that, or from computations that do, leaves at
    that time; its receiver's host is told when the window of time is over, before it arrives.

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
        tell: Tell = lambda share, done, total: None,
    ) -> None:
        self.replay = WorkReplay(score.matched, score.slowness)
        self._ledger = ledger
        self._until_acked = score.until_acked
        self._tell = tell
        self._now_ps = 0
        self._meetings = score.matched.meetings
        self._elements = [score.elements_of(each) for each in self._meetings]
        self._total = max(sum(self._elements), 1)
        self._done = self._done_elements = 0
        teams = find_teams(score.matched)
        self._place = {team: place for place, team in enumerate(teams)}
        forms = map(score.form_of, self._meetings)
        self._keys = list(zip(forms, self._elements, strict=True))
        about = list(zip(self._keys, self._elements, strict=True))
        self._desks = make_desks(endpoints, score, teams, about)
        self._changed: dict[int, None] = {}  # desks that may start something, in order
        self._host_of = {
            rank: index(host)
            for place, team in enumerate(teams)
            for rank, host in zip(team.ranks, endpoints.groups[place].hosts, strict=True)
        }
        self._rank_of = {host: rank for rank, host in self._host_of.items()}
        self._stage: DirectorStage | None = None
        self._lock = Lock()  # for threads that hear of their hosts at the same time
        self._begun: list[
            tuple[int, int, CollectiveOperation]
        ] = []  # by their senders; time and group
        self._later: list[tuple[int, int]] = []  # arrival and number of meetings that may begin
        streams = {(rank, node.stream) for rank, node in score.matched.graph.nodes()}
        channels = sum(len(channels_of(desk.free.values())) for desk in self._desks)
        self.events = 2 * channels + len(streams)

    def build(self) -> list[tuple[Executors, Combine]]:
        """Build the executors of all teams, which hosts' processes need before they are forked."""
        return [built for desk in self._desks for built in desk.kit.build()]

    def start(self, now_ps: int) -> None:
        """Let the ranks do the graph's first nodes."""
        self._now_ps = now_ps
        self.replay.start(now_ps)
        self._collect()

    def next_ps(self) -> int:
        """Return the time at which the next computation of a rank ends; `FOREVER_PS`: never."""
        return self.replay.next_ps()

    def reach(self, now_ps: int) -> None:
        """Let the ranks go on up to a time."""
        self._now_ps = now_ps
        self.replay.reach(now_ps)
        self._collect()

    def finish(self, operation: CollectiveOperation, now_ps: int) -> None:
        """Check a meeting's results, give its memory back, and let its ranks go on."""
        self._now_ps = now_ps
        desk = self._desks[operation.group]
        number, tensors = desk.under_way.pop(operation.channel)
        key, elements = self._key(number), self._elements[number]
        desk.free[key].append(operation.channel)
        schedule = desk.kit.courses[key].schedule
        self._ledger.check(number, schedule, [each[:elements] for each in tensors])
        desk.kit.stock.give_back(elements, tensors)
        self._changed[operation.group] = None
        self._done += 1
        self._done_elements += elements
        is_there = self._meetings[number].call is None and not self._until_acked
        self.replay.finish(number, operation.finish_ps(1) if is_there else operation.end_ps)
        self._collect()
        self._tell(self._done_elements / self._total, self._done, len(self._meetings))

    def take_operations(self) -> list[CollectiveOperation]:
        """Return the messages begun at once, by time, and the meetings that have room now."""
        self._collect()
        changed, self._changed = self._changed, {}
        launched = [operation for _, _, operation in sorted(self._begun, key=itemgetter(0, 1))]
        self._begun = []
        for place in changed:
            desk = self._desks[place]
            while desk.waiting and desk.has_room(self._key(desk.waiting[0])):
                launched.append(self._launch(desk, desk.waiting.popleft(), self._now_ps))
        return launched

    def _collect(self) -> None:
        """Queue the meetings that may begin; those of one rank are over at once."""
        later, self._later = [number for _, number in sorted(self._later)], []
        while ready := later + self._take_ready():
            later = []
            for number in ready:
                meeting = self._meetings[number]
                if meeting.is_alone:
                    at_ps = self.replay.arrival_ps(number)
                    self.replay.begin(number, at_ps)
                    self.replay.finish(number, at_ps)
                    self._done += 1
                    continue
                place = self._place[team_of(meeting)]
                self._desks[place].waiting.append(number)
                self._changed[place] = None
        self.replay.take_computing()  # the network asks for the time of the first end

    def _take_ready(self) -> list[int]:
        """Return the meetings that may begin: a rank's eager messages last, in program order."""
        ready = self.replay.take_ready()
        eager = [number for number in ready if self._meetings[number].is_eager]
        others = [number for number in ready if not self._meetings[number].is_eager]
        return others + sorted(eager, key=self._turn)

    def _turn(self, number: int) -> tuple[int, int, int]:
        meeting = self._meetings[number]
        return self.replay.arrival_ps(number), meeting.ranks[0], meeting.places[0]

    def _launch(self, desk: Desk, number: int, now_ps: int) -> CollectiveOperation:
        key, elements = self._key(number), self._elements[number]
        channel, taken = desk.free[key].pop(), desk.kit.stock.take(elements)
        desk.under_way[channel] = number, taken
        tensors = [each[:elements] for each in taken]
        self._ledger.fill(number, tensors)
        self.replay.begin(number, now_ps)
        operation = desk.kit.operate(key, channel, tensors)
        if self._meetings[number].call is None:
            operation.listen(self._hear)
        return operation

    def _key(self, number: int) -> Key:
        return self._keys[number]

    # What happens at once, on one host.

    def join(self, stage: DirectorStage) -> None:
        """Keep the stage for messages begun at once, and build their executors now."""
        if not self._reacts:
            return
        for team, place in self._place.items():
            if team.group < 0:
                self._desks[place].kit.build()  # nothing may be allocated later
        self._stage = stage

    @property
    def _reacts(self) -> bool:
        """Whether any node waits for a message."""
        matched = self.replay.matched
        return any(
            numbers[each] >= 0 and self._meetings[numbers[each]].call is None
            for places in (matched.after, matched.begun)
            for numbers, needs in zip(matched.meeting_of, places, strict=True)
            for needed in needs
            for each in needed
        )

    def ring(self, host: int, now_ps: int) -> bool:
        """Let the host's rank go on at its alarm's time; threads do so one after the other."""
        with self._lock:
            return self._go_on(self._rank_of[host], now_ps)

    def _hear(self, operation: CollectiveOperation, node: int, has_left: bool, now_ps: int) -> bool:
        """Take note that a message has left, or is over for its sender (0) or receiver (1)."""
        with self._lock:
            self._now_ps = max(self._now_ps, now_ps)
            number, _ = self._desks[operation.group].under_way[operation.channel]
            meeting = self._meetings[number]
            if node == 0 and (self._until_acked or has_left != meeting.is_eager):
                return False
            self.replay.end_for(number, node, now_ps)
            return self._go_on(meeting.ranks[node], now_ps)

    def _go_on(self, rank: int, now_ps: int) -> bool:
        """Let a rank's eager messages leave that may; return whether the network has to ask."""
        if self._stage is None:
            return False
        self.replay.reach_on(rank, now_ps)
        for number in self._take_ready():
            meeting = self._meetings[number]
            if meeting.is_eager and self._can_leave(number):
                desk = self._desks[self._place[team_of(meeting)]]
                operation = self._launch(desk, number, now_ps)
                self._begun.append((now_ps, operation.group, operation))
                self._stage.begin(operation, 0, now_ps)
            else:
                self._later.append((self.replay.arrival_ps(number), number))
        for each, end_ps in self.replay.take_computing():
            if end_ps > now_ps:
                self._stage.alarm(self._host_of[each], end_ps)
        return bool(self._begun or self._later)

    def _can_leave(self, number: int) -> bool:
        """Return whether a message may leave before others that wait."""
        desk = self._desks[self._place[team_of(self._meetings[number])]]
        return not desk.waiting and desk.has_room(self._key(number))
