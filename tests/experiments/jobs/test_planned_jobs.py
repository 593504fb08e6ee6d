"""The traffic of jobs between racks, as controllers of circuits are told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.tensors import FLOAT32
from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.setup.network import common_options
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.experiments.workloads.jobs.planned import iterations
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.model import Layer, Model
from ringleaf.hosts.training.pieces import cut
from ringleaf.networks.circuit_plan import CircuitPlan
from ringleaf.networks.endpoints.assignment import JobAssignment

GRADIENTS = "layers:\n" + 3 * "  - {name: a, elements: 1200, forward: 1us, backward: 2us}\n"
TENSOR = 3 * 1200 * 4
"""Bytes of all gradients together."""


def experiment(folder: Path, jobs: list[dict[str, Any]], **options: Any) -> JobsExperiment:
    model = folder / "small.yaml"
    model.write_text("name: small\n" + GRADIENTS)
    usual = {"placement": "packed", "circuits": "sipocs", "delay": "100ns"}
    own = [{"model": str(model), **job} for job in jobs]
    return JobsExperiment(resolve_jobs({**usual, **options, "jobs": own}))


def a_ring_and_servers(folder: Path) -> JobsExperiment:
    """Return a ring of racks 0 to 2, and two workers, racks 4 and 5, with a server in rack 6."""
    return experiment(
        folder,
        [
            {"ranks": 3, "iterations": 2, "algo": "ring"},
            {"ranks": 2, "iterations": 4, "algo": "ps"},
        ],
        topo="circuits,racks=7,hosts=1,optical=1",
    )


def test_jobs_are_told_by_their_iterations_and_algorithms(tmp_path: Path) -> None:
    """A rank of a ring of three sends 4/3 of its gradients; workers send theirs, and get sums."""
    jobs = a_ring_and_servers(tmp_path)
    known = jobs.planned(jobs.combinations[0])

    link = 2 * 4 * TENSOR // 3
    assert known.free == {(0, 1, 2): 3 * link}
    assert known.fixed is not None
    assert known.whole is not None
    served = [(4, 6), (5, 6), (6, 4), (6, 5)]
    assert sorted(zip(*known.fixed.nonzero(), strict=True)) == served
    assert {int(known.fixed[pair]) for pair in served} == {4 * TENSOR}
    ring = [(0, 1), (1, 2), (2, 0)]
    assert sorted(zip(*known.whole.nonzero(), strict=True)) == ring + served
    assert {int(known.whole[pair]) for pair in ring} == {link}


def test_circuits_go_to_what_jobs_send_most_of(tmp_path: Path) -> None:
    """The first one of two workers gets the circuit to the server; the ring has all of its own."""
    jobs = a_ring_and_servers(tmp_path)
    plan = CircuitPlan(jobs.graph, common_options(jobs.spec))

    chosen = plan.start(jobs.planned(jobs.combinations[0]))
    assert list(chosen.ports) == [(0, 1), (1, 2), (2, 0), (4, 6), (6, 4)]


def test_jobs_that_lie_far_apart_send_by_circuits_alone(tmp_path: Path) -> None:
    """Were all pairs equal, racks 0 and 1 would be joined, which send each other nothing."""
    job = {"ranks": 2, "iterations": 1, "algo": "ring"}
    topo = "circuits,racks=4,hosts=1,optical=1"
    jobs = experiment(tmp_path, [job, job], topo=topo, placement="spread", servers="0")

    ((first, second),) = [case.rows for case in jobs.run()]
    assert first.wrong == second.wrong == 0
    assert first.circuit_bytes > 4 * TENSOR
    assert first.packet_bytes == 0


def test_a_job_without_end_counts_for_as_long_as_others_go_on() -> None:
    """Iterations take 30 us and 5 us: four of them 140 us, of which the other has 100 us."""
    model = Model("small", "", "float32", (Layer("a", 1000, 10 * PS_PER_US, 20 * PS_PER_US),))

    def assignment(rounds: int | None, start_ps: int) -> JobAssignment:
        job = TrainingJob(model, cut(model), iterations=rounds, start_ps=start_ps)
        build = ALGORITHMS["ring"].build
        return JobAssignment(
            job, lambda _: build(2), FLOAT32, collective_ps=lambda _: 5 * PS_PER_US
        )

    assert iterations([assignment(4, 0), assignment(None, 40 * PS_PER_US)]) == [4, 3]
    assert iterations([assignment(4, 0), assignment(None, 140 * PS_PER_US)]) == [4, 1]
    assert iterations([assignment(None, 0)]) == [1]
