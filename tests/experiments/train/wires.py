"""Ranks without processes: generators that call and wait, on a real virtual network."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from ringleaf.core.tensors import Array
from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.setup.network import build_topology
from ringleaf.experiments.workloads.train.calls import CollectiveCall
from ringleaf.experiments.workloads.train.carrier import CollectiveCarrier, Teams
from ringleaf.experiments.workloads.train.definition import wrong_elements
from ringleaf.experiments.workloads.train.elements import item_bytes
from ringleaf.experiments.workloads.train.fabric import CallDone, TrainingRanks
from ringleaf.experiments.workloads.train.parts import MatchedCalls, RankCall
from ringleaf.experiments.workloads.train.rank_data import FinishedCollective
from ringleaf.experiments.workloads.train.rules import parse_rules
from ringleaf.experiments.workloads.train.ways import CallCarrier, CallCarriers
from ringleaf.ina.registry import find_system
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.graph import hosts

LANES = 64


class Rank:
    """One rank: its clock, its buffers, and its calls so far."""

    def __init__(self, rank: int, wires: Wires) -> None:
        self.rank = rank
        self.clock_ps = 0
        self.buffers: list[Array] = []
        self._wires = wires

    def call(
        self,
        made: CollectiveCall,
        given: Array | None = None,
        *,
        group: str = "world",
        room: int = 0,
    ) -> int:
        """Make a call; return its number, which is that of its buffer."""
        data = np.zeros(0, np.uint8) if given is None else given.view(np.uint8)
        buffer = np.zeros(max(data.size, room), np.uint8)
        buffer[: data.size] = data
        number = len(self.buffers)
        self.buffers.append(buffer)
        part = RankCall(self.rank, number, made, self.clock_ps, str(number))
        self._wires.fabric.call(group, part)
        return number

    def result(self, number: int, dtype: str) -> list[Any]:
        values: list[Any] = self.buffers[number].view(dtype).tolist()
        return values

    def compute(self, time_ps: int) -> None:
        self.clock_ps += time_ps


Script = Callable[[Rank], Generator[list[int], None, None]]
"""What a rank does; it yields the calls that it waits for."""


class Wires:
    """Ranks that run until they wait, in a given order, and the network between them."""

    def __init__(
        self,
        scripts: Sequence[Script],
        *,
        topo: str = "leafspine,leaves=2,spines=2,hosts=2",
        rules: str = "ring",
        groups: dict[str, list[int]] | None = None,
        loss: float = 0.0,
        order: Sequence[int] | None = None,
        carrier: type[CollectiveCarrier] = CollectiveCarrier,
    ) -> None:
        count = len(scripts)
        self.fabric = TrainingRanks(count)
        self.ranks = [Rank(rank, self) for rank in range(count)]
        self.carried: list[FinishedCollective] = []
        self.built: list[Teams] = []
        self._order = order or range(count)
        self._loss = loss
        self._graph = build_topology(topo, rate_bps=100_000_000_000, delay_ps=PS_PER_US, hosts=None)
        self._running = [script(rank) for script, rank in zip(scripts, self.ranks, strict=True)]
        for group, members in {"world": list(range(count)), **(groups or {})}.items():
            for rank in members:
                self.fabric.join(rank, group, members)
        self._carrier = carrier(
            self.fabric,
            CallCarriers(parse_rules(rules)),
            self,
            build=self._build,
            converse=self._converse,
            check=self._check,
            note=self.carried.append,
        )

    def run(self) -> Wires:
        self.outcomes = list(self._carrier.run())
        return self

    @property
    def ends_ps(self) -> list[int]:
        return [rank.clock_ps for rank in self.ranks]

    def buffer(self, rank: int, name: str) -> Array:
        return self.ranks[rank].buffers[int(name)]

    def item_bytes(self, dtype: str) -> int:
        return item_bytes(dtype)

    def _build(self, teams: Teams) -> VirtualNetwork:
        self.built.append(list(teams))
        names = hosts(self._graph)
        groups = [Group(1, tuple(names))]
        groups += [
            Group(number, tuple(names[rank] for rank in members), (), find_system(system))
            for number, (system, members) in enumerate(teams, start=2)
        ]
        options = NetworkOptions(lanes=LANES, loss=self._loss)
        return VirtualNetwork(self._graph, options, groups=groups, seed=1)

    def _converse(self, stuck: bool) -> None:
        assert not stuck
        self._tell()
        while running := self.fabric.running:
            for rank in sorted(running, key=list(self._order).index):
                at = self.ranks[rank]
                awaited = next(self._running[rank], None)
                if awaited is None:
                    self.fabric.end(rank, at.clock_ps)
                else:
                    self.fabric.wait(rank, awaited, at.clock_ps)
            self._tell()

    def _tell(self) -> None:
        for answer in self.fabric.take_answers():
            if not isinstance(answer, CallDone):
                at = self.ranks[answer.rank]
                at.clock_ps = max(at.clock_ps, answer.clock_ps)

    def _check(
        self,
        collective: MatchedCalls,
        way: CallCarrier,
        given: Sequence[Array],
        results: Sequence[Array],
    ) -> int:
        item = item_bytes(collective.call.dtype)
        return wrong_elements(collective, way, given, results, item_bytes=item, lanes=LANES)
