"""Jobs take the same times with any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from test_regions import assert_same

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.core import compiled
from ringleaf.core.tensors import INT32, Array
from ringleaf.errors import ConfigError
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.model import Layer, Model
from ringleaf.hosts.training.pieces import GradientPiece, cut
from ringleaf.ina.registry import SYSTEMS, program_of
from ringleaf.networks.endpoints.assignment import JobAssignment
from ringleaf.networks.endpoints.training import TrainingDirector
from ringleaf.networks.faults import LinkLoss
from ringleaf.networks.groups import Group
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

US = 10**6
FAST = settings(max_examples=3 if compiled.UNCOMPILED else 10, deadline=None)


class Ledger:
    """Gives each rank its own numbers, and keeps all sums."""

    def __init__(self) -> None:
        self.sums: list[tuple[int, int, bytes]] = []

    def fill(self, job: int, piece: GradientPiece, arrays: Sequence[Array]) -> None:
        for rank, array in enumerate(arrays):
            array[:] = np.arange(array.size) * (rank + 1) % 1009

    def check(
        self, job: int, piece: GradientPiece, schedule: Schedule, arrays: Sequence[Array]
    ) -> None:
        wanted = sum(np.arange(arrays[0].size) * (rank + 1) % 1009 for rank in range(len(arrays)))
        assert all(np.array_equal(array, wanted) for array in arrays)
        self.sums.append((job, piece.number, arrays[0].tobytes()))


def play(
    topology: str,
    algorithms: Sequence[str],
    order: str,
    elements: Sequence[int],
    **options: Any,
) -> tuple[Any, ...]:
    """Train a job per algorithm twice, on hosts dealt to them; return all that is told of it."""
    graph = build(topology)
    names = hosts(graph)
    step = len(names) // len(algorithms)
    groups = [
        Group(i + 1, tuple(names[i :: len(algorithms)][: step - 1]), (), SYSTEMS.get(algorithm))
        if algorithm != "ps"
        else Group(i + 1, *_with_server(names[i :: len(algorithms)][:step]), None)
        for i, algorithm in enumerate(algorithms)
    ]
    network = VirtualNetwork(
        graph,
        NetworkOptions(lanes=64, watch_queues=True, watch_memory=True, **options),
        groups=groups,
        seed=3,
    )
    model = Model("m", "", "int32", tuple(Layer(f"l{n}", n, 2 * US, 3 * US) for n in elements))
    assignments = [
        JobAssignment(
            TrainingJob(
                model, cut(model, partition_bytes=8192), iterations=2, start_ps=i * US // 3
            ),
            partial(_schedule, algorithm, len(groups[i].hosts)),
            INT32,
        )
        for i, algorithm in enumerate(algorithms)
    ]
    ledger = Ledger()
    director = TrainingDirector(network.endpoints, assignments, SCHEDULERS[order], ledger)
    link = next((a, b) for a, b in graph.edges if a in names)
    troubles = (LinkLoss(5 * US + 7, link, 0.3), LinkLoss(30 * US, link, None))
    outcome = network.play(director, disturbances=troubles)
    assert network.drain() == 0, "a packet leaked"
    return (
        outcome,
        director.stretches,
        [each.job.history for each in assignments],
        ledger.sums,
    )


ANY = ("ring", "ps", *(name for name in SYSTEMS if not SYSTEMS[name].compress))


def share_switches(algorithms: Sequence[str]) -> bool:
    """Return whether one P4 program serves all of them."""
    try:
        program_of([SYSTEMS[name] for name in algorithms if name in SYSTEMS], 64)
    except ConfigError:
        return False
    return True


def _with_server(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(names[:-1]), (names[-1],)


def _schedule(algorithm: str, ranks: int, elements: int) -> Schedule:
    return ALGORITHMS[algorithm].build(ranks, size_bytes=4 * elements, servers=1)


@FAST
@given(
    topology=st.sampled_from(("fattree,k=4", "leafspine,leaves=3,spines=2,hosts=3", "torus2d")),
    algorithms=st.lists(st.sampled_from(ANY), min_size=1, max_size=2).filter(share_switches),
    order=st.sampled_from(sorted(SCHEDULERS)),
    elements=st.lists(st.integers(0, 5000), min_size=1, max_size=4).filter(any),
    threads=st.sampled_from((2, 3, 8)),
    options=st.sampled_from(
        (
            {},
            {"loss": 0.01, "duplicate": 0.05, "reorder": 0.1},
            {"ecmp": True, "queue_bytes": 20_000},
            {"message_overhead_ps": 300_000, "mtu_bytes": 256},
        )
    ),
)
def test_jobs_take_the_same_times(
    topology: str,
    algorithms: list[str],
    order: str,
    elements: list[int],
    threads: int,
    options: dict[str, Any],
) -> None:
    if compiled.UNCOMPILED:
        elements = [each % 100 + 1 for each in elements]
    alone = play(topology, algorithms, order, elements, **options)
    together = play(topology, algorithms, order, elements, threads=threads, **options)
    assert_same(alone[0], together[0])
    assert alone[1:] == together[1:]
