"""Training jobs that share a network in virtual time, under each scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
import torch

from collectives.oracle import execute
from collectives.registry import ALGORITHMS
from collectives.schedule import Schedule
from hosts.schedulers.registry import SCHEDULERS
from hosts.training.job import TrainingJob
from hosts.training.model import Layer, Model
from hosts.training.pieces import Piece, cut
from ina.registry import SYSTEMS
from networks.groups import Group
from networks.hosts.training import Assignment, TrainingDirector
from networks.options import Options
from networks.virtual import VirtualNetwork
from ringleaf.units import PS_PER_US
from topologies import registry

ELEMENTS = (500, 2000, 0, 30_000, 400, 10_000)
MODEL = Model(
    "small",
    "",
    "int32",
    tuple(
        Layer(f"layer{i}", elements, 2 * PS_PER_US, 4 * PS_PER_US)
        for i, elements in enumerate(ELEMENTS)
    ),
)


def value(rank: int, count: int) -> torch.Tensor:
    return torch.arange(count, dtype=torch.int32) % 97 * (rank + 1)


class Ledger:
    """Compares each sum with the oracle's."""

    def __init__(self) -> None:
        self.checked: list[tuple[int, int]] = []

    def fill(self, job: int, piece: Piece, tensors: Sequence[torch.Tensor]) -> None:
        for rank, tensor in enumerate(tensors):
            tensor.copy_(value(rank, tensor.numel()))

    def check(
        self, job: int, piece: Piece, schedule: Schedule, tensors: Sequence[torch.Tensor]
    ) -> None:
        wanted = execute(schedule, [value(r, t.numel()) for r, t in enumerate(tensors)])
        assert all(torch.equal(a, b) for a, b in zip(tensors, wanted, strict=True))
        self.checked.append((job, piece.number))


def schedule_for(algorithm: str, elements: int) -> Schedule:
    return ALGORITHMS[algorithm].build(2, size_bytes=4 * elements)


def train(scheduler: str, algorithms: Sequence[str]) -> tuple[list[TrainingJob], Ledger]:
    graph = registry.build(
        "leafspine,leaves=2,spines=2,hosts=2", rate_bps=100 * 10**9, delay_ps=10**6, hosts=None
    )
    found = SCHEDULERS[scheduler]
    groups = [
        Group(i + 1, tuple(f"h{2 * place + i}" for place in range(2)), (), SYSTEMS.get(algorithm))
        for i, algorithm in enumerate(algorithms)
    ]
    network = VirtualNetwork(graph, Options(lanes=64), groups=groups)
    assignments = [
        Assignment(
            TrainingJob(
                MODEL,
                cut(MODEL, partition_bytes=found.partition_bytes and 16_384),
                iterations=2,
                start_ps=i * PS_PER_US,
            ),
            partial(schedule_for, algorithm),
            torch.int32,
        )
        for i, algorithm in enumerate(algorithms)
    ]
    ledger = Ledger()
    network.play(TrainingDirector(network.endpoints, assignments, found, ledger))
    return [each.job for each in assignments], ledger


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_two_jobs_reduce_all_their_gradients(scheduler: str) -> None:
    jobs, ledger = train(scheduler, ("ring", "switchml"))
    assert all(job.done for job in jobs)
    for number, job in enumerate(jobs):
        pieces = [piece for of, piece in ledger.checked if of == number]
        assert sorted(pieces) == sorted(2 * [piece.number for piece in job.pieces])


def test_the_same_jobs_take_the_same_time_again() -> None:
    histories = [train("tensorexpress", ("ring", "ring"))[0] for _ in range(2)]
    assert [job.history for job in histories[0]] == [job.history for job in histories[1]]


def test_urgent_layers_wait_less_when_packets_carry_their_priority() -> None:
    waits = {
        name: sum(train(name, ("ring", "ring"))[0][0].history[1].waits_ps)
        for name in ("fifo", "tensorexpress")
    }
    assert waits["tensorexpress"] < waits["fifo"]
