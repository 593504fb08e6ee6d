"""The director between ranks and network: collectives of ranks become operations of hosts.

Groups whose calls hosts add up need nothing of the network: their schedules name some of its
hosts, and connections are made when they are first needed. Switches that aggregate must be told of
each group beforehand. So a network is built for the groups that aggregate so far, and when another
one comes, a new network is built, as soon as nothing is under way; virtual time goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.arena import Store
from ringleaf.core.tensors import Array
from ringleaf.core.units import FOREVER_PS
from ringleaf.experiments.workloads.train.calls import SEND
from ringleaf.experiments.workloads.train.fabric import TrainingRanks
from ringleaf.experiments.workloads.train.parts import CallError, MatchedCalls
from ringleaf.experiments.workloads.train.rank_data import (
    Check,
    Data,
    FinishedCollective,
    Note,
    buffers_of,
    inputs_of,
    load,
    pass_on,
    unload,
    way_of,
)
from ringleaf.experiments.workloads.train.rooms import (
    Lodging,
    Lodgings,
    NetworkNeed,
    RegisteredTensors,
    Room,
)
from ringleaf.experiments.workloads.train.ways import CallCarrier, CallCarriers, among
from ringleaf.hosts.plan import Plans, plans
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.operation import CollectiveOperation, add
from ringleaf.networks.outcome import RunResult

Teams = Sequence[tuple[str, tuple[int, ...]]]
"""Groups for which switches aggregate: the system's name, and the world's ranks."""


@dataclass(slots=True)
class _UnderWay:
    collective: MatchedCalls
    way: CallCarrier
    begin_ps: int
    need: NetworkNeed
    room: Room
    inputs: list[Array]
    is_there: bool = False  # of a message: its receiver has been told


class PlayingNetwork(Protocol):
    """The interface that a carrier needs of a network."""

    @property
    def now_ps(self) -> int:
        """Its time."""

    @property
    def endpoints(self) -> Endpoints:
        """Its hosts."""

    @property
    def store(self) -> Store:
        """Their store."""

    def play(self, director: CollectiveCarrier) -> RunResult:
        """Let a carrier run collectives until it has no more to start."""

    def close(self) -> None:
        """End it."""


class CollectiveCarrier:
    """A `Director` of the collectives of ranks, which also builds the networks that carry them.

    Args:
        fabric: The ranks and their calls.
        ways: The ways of calls.
        data: The ranks' data.
        build: Builds a network with these groups, behind the group of all hosts.
        converse: Tells ranks the fabric's answers, and the fabric what ranks say, until none is
            running. If nothing can go on, as its argument says, it awaits one word at least.
        check: Checks results.
        note: Called with each collective that is over.
    """

    def __init__(
        self,
        fabric: TrainingRanks,
        ways: CallCarriers,
        data: Data,
        *,
        build: Callable[[Teams], PlayingNetwork],
        converse: Callable[[bool], None],
        check: Check,
        note: Note,
    ) -> None:
        self._fabric = fabric
        self._ways = ways
        self._data = data
        self._build = build
        self._converse = converse
        self._check = check
        self._note = note
        self._teams: list[tuple[str, tuple[int, ...]]] = []
        self._asked_teams: list[tuple[str, tuple[int, ...]]] = []
        self._epoch_ps = 0
        self._now_ps = 0
        self._active: dict[int, _UnderWay] = {}  # by the operation's address
        self._plans: dict[tuple[object, ...], tuple[Schedule, Plans]] = {}
        self._known: dict[int, CallCarrier] = {}  # by collective, those that have not begun
        self._arrived: list[tuple[int, int]] = []  # messages: when, and the operation's address

    def run(self) -> Iterator[RunResult]:
        """Carry all collectives until all ranks have ended; yield each network's result.

        Raises:
            CallError: If calls of ranks don't fit, or no rank can go on.
            BackendError: If nothing gets through the network any more.
        """
        self._listen(stuck=False)
        while not self._fabric.has_ended:
            self._look_ahead()
            self._teams += self._asked_teams
            self._asked_teams = []
            self._network = self._build(self._teams)
            self._epoch_ps = self._now_ps
            self._lodging = self._lodge()
            yield self._network.play(self)
            self._network.close()

    def _lodge(self) -> Lodging:
        """Return the rooms of a new network."""
        return Lodgings(self._network.endpoints, self._network.store)

    @property
    def _has_outgrown(self) -> bool:
        """Whether a collective needs another network, as soon as nothing is under way."""
        return bool(self._asked_teams)

    # The director.

    def start(self, now_ps: int) -> None:
        """Begin."""

    def next_ps(self) -> int:
        """Return when ranks want to go on, in the present network's time; `FOREVER_PS`: never."""
        if self._has_outgrown or self._fabric.has_ended:
            return FOREVER_PS
        wanted_ps = self._fabric.next_ps()
        if wanted_ps == FOREVER_PS:
            return FOREVER_PS
        return max(wanted_ps - self._epoch_ps, self._network.now_ps)

    def reach(self, now_ps: int) -> None:
        """Let the ranks go on up to a time of the present network."""
        self._now_ps = self._epoch_ps + now_ps
        self._fabric.reach(self._now_ps)

    def take_operations(self) -> list[CollectiveOperation]:
        """Begin all collectives that are ready, and hear ranks until none has more to say."""
        self._now_ps = self._epoch_ps + self._network.now_ps
        self._pass_on_arrived()
        operations: list[CollectiveOperation] = []
        while True:
            self._listen(stuck=False)
            began = list(self._begin_ready())
            operations += [each for each in began if each is not None]
            if self._is_stuck:
                self._listen(stuck=True)
            elif not began and not self._fabric.running:
                return operations

    def finish(self, operation: CollectiveOperation, now_ps: int) -> None:
        """Give a collective's results to its ranks, and its room back."""
        self._now_ps = self._epoch_ps + now_ps
        self._pass_on_arrived()
        at = self._active.pop(operation.at)
        # The network tells it up to a link's delay later.
        end_ps = self._epoch_ps + operation.end_ps
        if not at.is_there:
            self._conclude(at, end_ps)
        self._lodging.give(at.need, at.room)
        self._fabric.finish(at.collective, end_ps)

    def _hear(self, operation: CollectiveOperation, node: int, has_left: bool, now_ps: int) -> bool:
        """Take note that a message has come, or has been acknowledged."""
        at = self._active[operation.at]
        has_come = not has_left and node == at.collective.members[1]
        if has_come:
            self._arrived.append((now_ps, operation.at))
        return has_come

    def _pass_on_arrived(self) -> None:
        """Let the receivers of messages that have come go on."""
        arrived, self._arrived = sorted(self._arrived), []
        for now_ps, place in arrived:
            at = self._active[place]
            at.is_there = True
            self._conclude(at, self._epoch_ps + now_ps)
            self._fabric.arrive(at.collective, self._epoch_ps + now_ps)

    # Ranks.

    def _listen(self, *, stuck: bool) -> None:
        """Let ranks talk until none of them is running."""
        if stuck and not self._fabric.has_soft:
            raise CallError(self._fabric.deadlock())
        self._converse(stuck)
        self._fabric.reach(self._now_ps)
        self._fabric.match()

    @property
    def _is_stuck(self) -> bool:
        """Whether nothing will ever happen if ranks say nothing."""
        fabric = self._fabric
        is_over = fabric.has_ended or fabric.running or self._has_outgrown
        return not is_over and fabric.is_idle and fabric.next_ps() == FOREVER_PS

    def _look_ahead(self) -> None:
        """Find the groups of the collectives that wait, so that the network is built for them."""
        for collective in self._fabric.ready(FOREVER_PS):
            self._want(self._way(collective), collective)

    def _want(self, way: CallCarrier, collective: MatchedCalls) -> bool:
        """Have a network built that aggregates for a group; return whether that is needed."""
        team = way.system, collective.members
        if not way.system or team in self._teams:
            return False
        if team not in self._asked_teams:
            self._asked_teams.append(team)
        return True

    # Collectives.

    def _begin_ready(self) -> Iterator[CollectiveOperation | None]:
        """Begin the collectives that are ready; those with nothing to carry are over at once."""
        for collective in self._fabric.ready(self._now_ps):
            way = self._way(collective)
            if self._want(way, collective) or self._has_outgrown:
                continue  # until nothing is under way
            self._fabric.begin(collective)
            del self._known[id(collective)]
            if collective.is_of_one or not way.elements:
                now_ps = self._now_ps
                inputs, results = pass_on(self._data, collective, way)
                self._note_end(collective, way, (now_ps, now_ps), inputs, results)
                self._fabric.finish(collective, now_ps)
                yield None
            else:
                yield self._begin(collective, way)

    def _way(self, collective: MatchedCalls) -> CallCarrier:
        if id(collective) not in self._known:
            self._known[id(collective)] = way_of(self._data, self._ways, collective)
        return self._known[id(collective)]

    def _need(self, collective: MatchedCalls, way: CallCarrier) -> tuple[Schedule, NetworkNeed]:
        """Return the schedule of a collective, and all that it needs."""
        members = collective.members
        team = way.system, members
        place = 1 + [*self._teams, *self._asked_teams].index(team) if way.system else 0
        nodes = len(members) if way.system else len(self._network.endpoints.groups[0].hosts)
        channel = self._channel(collective, place)
        key = (id(way.schedule), () if way.system else members, way.elements, way.edges)
        schedule, parts = self._plans_for(key, way, members, nodes)
        reduction = way.reduction
        need = NetworkNeed(
            (*key, way.dtype, reduction, place, channel),
            parts,
            way.dtype,
            len(members),
            place,
            channel,
            combine=add if reduction is None else reduction.combine,
            by_callback=not (reduction is None or reduction.is_plain),
            eager=collective.call.kind == SEND,
        )
        return schedule, need

    def _begin(self, collective: MatchedCalls, way: CallCarrier) -> CollectiveOperation:
        endpoints, members = self._network.endpoints, collective.members
        schedule, need = self._need(collective, way)
        room = self._lodging.take(need)
        nodes = schedule.nodes
        addresses = _spread(room.tensors, range(nodes) if way.system else members, nodes)
        tensors = RegisteredTensors(endpoints.memory, addresses, way.elements, way.dtype)
        inputs = inputs_of(self._data, collective, way)
        at = _UnderWay(collective, way, self._now_ps, need, room, inputs)
        for address, gift, loads in zip(room.tensors, at.inputs, way.layout.loads, strict=True):
            load(self._tensor(address, way), gift, loads)
        operation = endpoints.operate(
            schedule,
            room.executors,
            tensors,
            room.staging,
            group=need.group,
            channel=need.channel,
            combine=need.combine,
        )
        self._active[operation.at] = at
        if collective.call.kind == SEND:
            operation.listen(self._hear)
        return operation

    def _tensor(self, address: int, way: CallCarrier) -> Array:
        """Return the bytes of a tensor in registered memory."""
        memory = self._network.endpoints.memory
        return memory.view(address, way.elements * way.dtype.itemsize, np.dtype(np.uint8))

    def _plans_for(
        self, key: tuple[object, ...], way: CallCarrier, members: tuple[int, ...], nodes: int
    ) -> tuple[Schedule, Plans]:
        """Return a schedule for the network's nodes, and their parts in it."""
        if key not in self._plans:
            schedule = way.schedule if way.system else among(way.schedule, members, nodes)
            edges = None if way.edges is None else np.array(way.edges, np.int64)
            self._plans[key] = schedule, plans(schedule, way.elements, edges)
        return self._plans[key]

    def _channel(self, collective: MatchedCalls, place: int) -> int:
        """Return a channel of a group that is free for a collective.

        Messages have those of odd numbers, as their queue pairs ask for no credit.
        """
        taken = {at.need.channel for at in self._active.values() if at.need.group == place}
        is_message = collective.call.kind == SEND
        return min(set(range(is_message, 2 * len(taken) + 2, 2)) - taken)

    def _unload(self, at: _UnderWay) -> list[Array]:
        buffers = buffers_of(self._data, at.collective)
        for buffer, address, unloads in zip(
            buffers, at.room.tensors, at.way.layout.unloads, strict=True
        ):
            unload(buffer, self._tensor(address, at.way), unloads)
        return buffers

    def _conclude(self, at: _UnderWay, end_ps: int) -> None:
        """Give members their results."""
        results = self._unload(at)
        self._note_end(at.collective, at.way, (at.begin_ps, end_ps), at.inputs, results)

    def _note_end(
        self,
        collective: MatchedCalls,
        way: CallCarrier,
        times_ps: tuple[int, int],
        inputs: Sequence[Array],
        results: Sequence[Array],
    ) -> None:
        wrong = self._check(collective, way, inputs, results)
        self._note(FinishedCollective(collective, way, way.size_bytes, *times_ps, wrong))


def _spread(addresses: Sequence[int], members: Sequence[int], nodes: int) -> list[int]:
    """Return an address for each node; nodes that take no part have any."""
    by_node = [addresses[0]] * nodes
    for member, address in zip(members, addresses, strict=True):
        by_node[member] = address
    return by_node
