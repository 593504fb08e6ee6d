"""A live network that carries the calls of ranks: Mininet's, with P4 switches, in real time.

Collectives take place one after the other, each on the hosts of its ranks. A rank's clock is moved
by the time that the network was measured to take.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count

import numpy as np

from ringleaf.collectives.schedule import Schedule
from ringleaf.experiments.network import common_options
from ringleaf.experiments.testbed import open_testbed
from ringleaf.experiments.train.carried import (
    Carried,
    buffers_of,
    inputs_of,
    load,
    pass_on,
    unload,
    way_of,
)
from ringleaf.experiments.train.emulated import make_groups
from ringleaf.experiments.train.hosting import Hosting
from ringleaf.experiments.train.parts import CallError, Collective
from ringleaf.experiments.train.ways import Way, among
from ringleaf.hosts.plan import Plans, plans
from ringleaf.networks.mininet.network import MininetNetwork, Testbed
from ringleaf.networks.outcome import RunResult
from ringleaf.tensors import Array
from ringleaf.topologies.graph import hosts
from ringleaf.units import FOREVER_PS, PS_PER_S

Teams = list[tuple[str, tuple[int, ...]]]


@contextmanager
def live_carrier(hosting: Hosting) -> Iterator[LiveCarrier]:
    """Yield what carries the calls of a fabric's ranks live; the network is gone at the end.

    Raises:
        ConfigError: If the machine lacks something.
        BackendError: If the network can't be brought up.
    """
    with open_testbed(hosting.spec, hosting.graph) as testbed:
        yield LiveCarrier(hosting, testbed)


class LiveCarrier:
    """Carries the collectives of ranks on a testbed.

    Args:
        hosting: The ranks, their data, and the account.
        testbed: The network, without hosts.
    """

    def __init__(self, hosting: Hosting, testbed: Testbed) -> None:
        self._hosting = hosting
        self._fabric = hosting.fabric
        self._ways = hosting.ways()
        self._testbed = testbed
        self._options = common_options(hosting.spec)
        self._teams: Teams = []
        self._network: MininetNetwork | None = None
        self._plans: dict[tuple[object, ...], tuple[Schedule, Plans]] = {}
        self._now_ps = 0
        self._ends: list[tuple[int, int, Collective]] = []  # a heap: time, number
        self._numbers = count()
        self._outcomes: list[RunResult] = []

    def run(self) -> Iterator[RunResult]:
        """Carry all collectives until all ranks have ended; yield the network's results.

        Raises:
            CallError: If calls of ranks don't fit, or no rank can go on.
            BackendError: If a host or a switch ends, or nothing gets through any more.
        """
        self._listen(stuck=False)
        while not self._fabric.has_ended:
            began = False
            for collective in list(self._fabric.ready(self._now_ps)):
                began = True
                self._fabric.begin(collective)
                self._carry(collective)
                yield from self._outcomes
                self._outcomes.clear()
            next_ps = min(self._ends[0][0] if self._ends else FOREVER_PS, self._fabric.next_ps())
            if next_ps < FOREVER_PS:
                self._reach(max(next_ps, self._now_ps))
            self._listen(stuck=not began and next_ps == FOREVER_PS)

    def _listen(self, *, stuck: bool) -> None:
        """Let ranks talk until none of them is running."""
        if stuck and not self._fabric.has_soft:
            raise CallError(self._fabric.deadlock())
        self._hosting.server.converse(stuck)
        self._fabric.reach(self._now_ps)
        self._fabric.match()

    def _reach(self, now_ps: int) -> None:
        self._now_ps = now_ps
        while self._ends and self._ends[0][0] <= now_ps:
            end_ps, _, collective = heappop(self._ends)
            self._fabric.finish(collective, end_ps)
        self._fabric.reach(now_ps)

    def _carry(self, collective: Collective) -> None:
        """Carry a collective, which then ends when its time is over."""
        hosting = self._hosting
        way = way_of(hosting, self._ways, collective)
        if len(collective.members) < 2 or not way.elements:
            given, results = pass_on(hosting, collective, way)
            time_ps = 0
        else:
            given = inputs_of(hosting, collective, way)
            time_ps = self._exchange(collective, way, given)
            results = buffers_of(hosting, collective)
        end_ps = self._now_ps + time_ps
        wrong = hosting.check(collective, way, given, results)
        size = way.layout.tensor_bytes
        hosting.note(Carried(collective, way, size, self._now_ps, end_ps, wrong))
        heappush(self._ends, (end_ps, next(self._numbers), collective))

    def _exchange(self, collective: Collective, way: Way, given: list[Array]) -> int:
        """Have hosts exchange data; return the time that they took."""
        network, place = self._network_for(way, collective.members)
        schedule, parts = self._plans_for(way, collective.members)
        members = range(len(given)) if place else collective.members
        tensors = [np.zeros(way.elements, way.dtype) for _ in range(schedule.ranks)]
        for member, gift, loads in zip(members, given, way.layout.loads, strict=True):
            load(tensors[member].view(np.uint8), gift, loads)
        reduction = way.reduction
        result = network.run(
            schedule,
            tensors,
            group=place,
            parts=parts,
            combine=None if reduction is None or reduction.is_plain else reduction.combine,
        )
        self._outcomes.append(result)
        buffers = buffers_of(self._hosting, collective)
        for member, buffer, unloads in zip(members, buffers, way.layout.unloads, strict=True):
            unload(buffer, tensors[member].view(np.uint8), unloads)
        return result.time_ps

    def _network_for(self, way: Way, members: tuple[int, ...]) -> tuple[MininetNetwork, int]:
        """Return the network, and the place of a team among its groups; 0: all hosts.

        Hosts are new processes for each collective, so switches that aggregate have to begin anew,
        too: they are programmed again, as for a new team.
        """
        team = way.system, members
        if way.system and team not in self._teams:
            self._teams.append(team)
        if self._network is None or way.system:
            spec = self._hosting.spec
            self._network = MininetNetwork(
                self._testbed,
                self._options,
                seed=spec.seed,
                stall_s=spec.stall_ps / PS_PER_S,
                groups=make_groups(self._hosting.graph, self._teams),
            )
        return self._network, 1 + self._teams.index(team) if way.system else 0

    def _plans_for(self, way: Way, members: tuple[int, ...]) -> tuple[Schedule, Plans]:
        """Return a way's schedule for the hosts of its group, and their plans."""
        key = id(way.schedule), () if way.system else members, way.elements, way.edges
        if key not in self._plans:
            nodes = len(hosts(self._hosting.graph))
            schedule = way.schedule if way.system else among(way.schedule, members, nodes)
            edges = None if way.edges is None else np.array(way.edges, np.int64)
            self._plans[key] = schedule, plans(schedule, way.elements, edges)
        return self._plans[key]
