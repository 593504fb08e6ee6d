"""The coordinator of live hosts, over a wire in memory: hosts are late, and end in any order."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import partial
from heapq import heappop, heappush

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool
from ringleaf.core.tensors import INT32, Array
from ringleaf.core.units import FOREVER_PS, PS_PER_MS, PS_PER_US
from ringleaf.hosts.schedulers.common.interface import CHANNELS
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.model import Layer, Model
from ringleaf.hosts.training.pieces import GradientPiece, cut
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.endpoints.assignment import JobAssignment
from ringleaf.networks.endpoints.credit import partition_bytes
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.training import TrainingDirector
from ringleaf.networks.groups import Group
from ringleaf.networks.live.coordinator import Coordinator
from ringleaf.networks.live.orders import Begin, Order, PartDone, Raise
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies import registry

RANKS = 2
ITERATIONS = 2
LATE_PS, TAKES_PS = PS_PER_MS, 5 * PS_PER_MS  # at most
MODEL = Model(
    "small",
    "",
    "int32",
    tuple(
        Layer(f"layer{number}", elements, PS_PER_MS, 2 * PS_PER_MS)
        for number, elements in enumerate((500, 0, 30_000, 400, 10_000))
    ),
)


def value(job: int, rank: int, count: int) -> Array:
    return np.arange(count, dtype=np.int32) * np.int32(1 + 10**rank) + np.int32(job)


class Ledger:
    def __init__(self) -> None:
        self.checked: list[tuple[int, int]] = []

    def fill(self, job: int, piece: GradientPiece, tensors: Sequence[Array]) -> None:
        for rank, tensor in enumerate(tensors):
            tensor[:] = value(job, rank, tensor.size)

    def check(
        self, job: int, piece: GradientPiece, schedule: Schedule, tensors: Sequence[Array]
    ) -> None:
        wanted = sum(value(job, rank, piece.elements) for rank in range(RANKS))
        assert all(np.array_equal(tensor, wanted) for tensor in tensors)
        self.checked.append((job, piece.number))


class Stage:
    """Two jobs, without a network; the first has a scheduler's order, and so has the second."""

    def __init__(self, order: str, algorithms: Sequence[str]) -> None:
        graph = registry.build(
            "leafspine,leaves=2,spines=1,hosts=2", rate_bps=10**7, delay_ps=PS_PER_US, hosts=None
        )
        self.store = Store(shared=True)
        make_pool(self.store, size=64, head_bytes=2048, field_count=0, lane_count=0)
        groups = [
            Group(i + 1, (f"h{i}", f"h{2 + i}"), (), SYSTEMS.get(name))
            for i, name in enumerate(algorithms)
        ]
        options = NetworkOptions(lanes=64)
        self.endpoints = Endpoints(graph, self.store, options, groups, rtt_ps=PS_PER_MS)
        scheduler = SCHEDULERS[order]
        self.assignments = [
            JobAssignment(
                TrainingJob(
                    MODEL,
                    cut(
                        MODEL,
                        partition_bytes=partition_bytes(
                            self.endpoints.aggregators.get(number), scheduler
                        ),
                    ),
                    iterations=ITERATIONS,
                    start_ps=number * PS_PER_MS,
                ),
                partial(_schedule, name),
                INT32,
            )
            for number, name in enumerate(algorithms)
        ]
        self.ledger = Ledger()
        self.director = TrainingDirector(self.endpoints, self.assignments, scheduler, self.ledger)
        self.known = {each.at: each for each, _ in self.director.build()}
        self.coordinator = Coordinator(self.director, self.endpoints)


def _schedule(algorithm: str, elements: int) -> Schedule:
    return ALGORITHMS[algorithm].build(RANKS, size_bytes=4 * elements)


class Wire:
    """Hosts that need any time to begin, and to end; a sum is there when the last one ends."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._rng = random.Random(seed)
        self._coming: list[tuple[int, int, int, PartDone]] = []  # a heap: time, number, host
        self._number = 0
        self._left: dict[tuple[int, int], int] = {}  # hosts, by group and channel
        self._begun: dict[tuple[int, int], Begin] = {}
        self.orders: list[tuple[list[int], Order]] = []
        self.now_ps = 0
        self.heard_ps: list[int] = []

    def run(self) -> None:
        coordinator = self._stage.coordinator
        coordinator.start(0)
        while not coordinator.is_over:
            for hosts, order in coordinator.take_orders():
                self._take(hosts, order)
            next_ps = coordinator.next_ps()
            if self._coming and self._coming[0][0] <= next_ps:
                self.now_ps, _, host, done = heappop(self._coming)
                self._end(done)
                self.heard_ps.append(self.now_ps)
                coordinator.hear(host, done, self.now_ps)
            else:
                assert next_ps < FOREVER_PS, "nobody will ever say anything"
                self.now_ps = max(next_ps, self.now_ps)
                coordinator.reach(self.now_ps)

    def _take(self, hosts: list[int], order: Order) -> None:
        self.orders.append((hosts, order))
        if isinstance(order, Raise):
            assert Raise(**json.loads(json.dumps(order.message()))["raise"]) == order
            return
        assert Begin(**json.loads(json.dumps(order.message()))["begin"]) == order
        place = order.group, order.channel
        assert place not in self._left, "a channel has one operation at a time"
        self._left[place], self._begun[place] = len(hosts), order
        assert sum(group == order.group for group, _ in self._left) <= CHANNELS
        for host in hosts:
            begin_ps = self.now_ps + self._rng.randrange(LATE_PS)
            end_ps = begin_ps + self._rng.randrange(TAKES_PS)
            heard_ps = end_ps + self._rng.randrange(LATE_PS)
            done = PartDone(*place, begin_ps, end_ps)
            self._number += 1
            heappush(self._coming, (heard_ps, self._number, host, done))

    def _end(self, done: PartDone) -> None:
        """Note a host's end; the last one's brings the sum, in memory that all share."""
        place = done.group, done.channel
        self._left[place] -= 1
        if self._left[place]:
            return
        del self._left[place]
        order = self._begun.pop(place)
        elements = self._stage.known[order.at].plans.elements
        memory = self._stage.endpoints.memory
        tensors = [memory.view(address, elements, INT32) for address in order.tensors]
        total = np.sum(tensors, axis=0, dtype=np.int32)
        for tensor in tensors:
            tensor[:] = total


@settings(max_examples=15)
@given(
    order=st.sampled_from(["fifo", "p3", "tensorexpress", "geryon", "bytescheduler", "shares"]),
    algorithms=st.sampled_from([("ring", "ring"), ("switchml", "ring"), ("atp", "switchml")]),
    seed=st.integers(0, 1 << 32),
)
def test_however_late_hosts_are_all_pieces_are_summed_once_an_iteration(
    order: str, algorithms: tuple[str, str], seed: int
) -> None:
    stage = Stage(order, algorithms)
    wire = Wire(stage, seed)
    wire.run()

    for number, each in enumerate(stage.assignments):
        assert each.job.done
        pieces = [piece for job, piece in stage.ledger.checked if job == number]
        assert sorted(pieces) == sorted(ITERATIONS * [piece.number for piece in each.job.pieces])
    hosts = [hosts for hosts, _ in wire.orders]
    groups = [order.group for _, order in wire.orders]
    assert [[each, 2 + each] for each in groups] == hosts
    ends_ps = [stretch.end_ps for stretch in stage.director.stretches]
    assert stage.coordinator.end_ps == max(ends_ps) <= wire.now_ps
    lateness = stage.coordinator.lateness
    assert 0 <= lateness.mean_ps <= lateness.most_ps < LATE_PS
    assert lateness.count == RANKS * len(stage.director.stretches)


def test_computing_goes_on_from_the_true_end_however_late_that_is_heard() -> None:
    stage = Stage("fifo", ("ring", "ring"))
    wire = Wire(stage, 1)
    wire.run()

    for number, each in enumerate(stage.assignments):
        last = each.job.history[-1]
        ends_ps = [
            stretch.end_ps
            for stretch in stage.director.stretches
            if (stretch.job, stretch.iteration) == (number, ITERATIONS - 1)
        ]
        assert last.end_ps == max(*ends_ps, last.backward_ps)
        assert last.end_ps in ends_ps, "else it would not tell"
        assert last.end_ps not in wire.heard_ps


@pytest.mark.parametrize(("algorithm", "wanted"), [("switchml", True), ("ring", False)])
def test_workers_that_send_in_order_are_told_of_priorities_that_wait(
    algorithm: str, wanted: bool
) -> None:
    stage = Stage("tensorexpress", (algorithm, "ring"))
    wire = Wire(stage, 1)
    wire.run()
    raised = [order for _, order in wire.orders if isinstance(order, Raise)]

    assert bool(raised) == wanted
    assert all(order.group == 0 for order in raised)
