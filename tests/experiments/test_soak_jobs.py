"""Soaks of jobs beside each other: cases follow from numbers, and what is wrong is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bench.soak import __main__ as command
from bench.soak import job_trial
from bench.soak.any_case import AnyCase, draw_any
from bench.soak.cases import Disturbances, SoakCase
from bench.soak.job_cases import (
    SoakJobs,
    TeamRound,
    TeamTraining,
    TrainingTeam,
    draw_jobs,
    simpler_jobs,
)
from bench.soak.nic_cases import NicCase
from bench.soak.recovery_cases import RecoveryCase
from bench.soak.workload_cases import WorkloadCase
from ringleaf.core.units import FOREVER_PS
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.jobs.ledger import GradientLedger
from ringleaf.networks.endpoints.training import TrainingDirector
from ringleaf.topologies.registry import count

SMALL = SoakJobs(
    0,
    {"topo": "leafspine,leaves=2,spines=1,hosts=2", "seed": "1"},
    Disturbances(),
    None,
    "own",
    (TrainingTeam(2), TrainingTeam(2)),
    (
        TeamRound(
            "fifo",
            (TeamTraining("ring", (1000, 3), 10_000, 2), TeamTraining("tree", (65,), 10_000, 1)),
        ),
        TeamRound(
            "shares",
            (TeamTraining("ps", (256,), 10_000, 1), TeamTraining("ring", (1,), 10_000, None)),
        ),
    ),
)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_every_case_of_jobs_fits_its_network_and_follows_from_its_number(
    seed: int, number: int
) -> None:
    case = draw_jobs(seed, number)

    assert draw_jobs(seed, number) == case
    assert resolve(case.given).topo == case.given["topo"]
    assert 2 <= len(case.teams) <= 4
    assert sum(team.hosts for team in case.teams) <= count(case.given["topo"]).hosts
    for each in case.rounds:
        assert len(each.trainings) == len(case.teams)
        assert all(sum(job.elements) for job in each.trainings)
        assert any(job.iterations for job in each.trainings), "nobody would ever end"


def test_jobs_train_beside_each_other() -> None:
    found = job_trial.try_jobs(SMALL)

    assert [(each.what, each.where) for each in found] == [
        ("ok", "round 0: fifo: ring, tree"),
        ("ok", "round 1: shares: ps, ring"),
    ]


def test_a_wrong_sum_of_a_job_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gradient changes behind the back of those who add it."""
    fill = GradientLedger.fill

    def fill_wrongly(
        ledger: GradientLedger, job: int, piece: object, tensors: list[torch.Tensor]
    ) -> None:
        fill(ledger, job, piece, tensors)  # type: ignore[arg-type]
        if job == 1:
            tensors[0][0] += 1000

    monkeypatch.setattr(GradientLedger, "fill", fill_wrongly)

    first, _ = job_trial.try_jobs(SMALL)

    assert first.what == "wrong"
    assert "job 1: 2 elements" in first.why


def test_a_job_that_never_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is under way, and the director wants nothing more."""
    monkeypatch.setattr(TrainingDirector, "next_ps", lambda _: FOREVER_PS)
    monkeypatch.setattr(TrainingDirector, "start", lambda *_: None)

    first, _ = job_trial.try_jobs(SMALL)

    assert (first.what, first.why) == ("stuck", "job 0: 0 iterations of 2")


def test_a_failing_case_of_jobs_is_made_smaller() -> None:
    """It fails with a tree of 65 elements, whatever else there is."""

    def fails(case: AnyCase) -> bool:
        assert isinstance(case, SoakJobs)
        jobs = [job for each in case.rounds for job in each.trainings]
        return any(job.algo == "tree" and 65 in job.elements for job in jobs)

    smallest = command.follow(SMALL, command.shrink(SMALL, fails))

    assert isinstance(smallest, SoakJobs)
    assert smallest.teams == (TrainingTeam(2),)
    assert smallest.rounds == (TeamRound("fifo", (TeamTraining("tree", (65,), 10_000, 1),)),)
    assert simpler_jobs(smallest) == []
    assert "Training(algo='tree'" in smallest.command


def test_numbers_draw_all_kinds() -> None:
    kinds = {type(draw_any(1, number)) for number in range(150)}

    assert kinds == {SoakCase, SoakJobs, NicCase, RecoveryCase, WorkloadCase}


@pytest.mark.parametrize(("factor", "what"), [(1.0, "ok"), (1e3, "bound")])
def test_a_sum_that_is_too_fast_is_found(
    monkeypatch: pytest.MonkeyPatch, factor: float, what: str
) -> None:
    """DeAR cuts collectives in two, which bring half of the elements each."""
    least_ps = job_trial._Fabric._least_ps
    monkeypatch.setattr(
        job_trial._Fabric, "_least_ps", lambda self, group: factor * least_ps(self, group)
    )
    rounds = (
        TeamRound(
            "dear",
            (TeamTraining("ring", (5000,), 1, 3), TeamTraining("halvingdoubling", (5000,), 1, 2)),
        ),
        TeamRound(
            "fifo", (TeamTraining("ring", (5000,), 1, 3), TeamTraining("ring", (5000,), 1, 2))
        ),
    )
    options = {"rate": "10G", "delay": "100ns"}

    found = job_trial.try_jobs(replace(SMALL, given=SMALL.given | options, rounds=rounds))

    assert [each.what for each in found] == [what, what]


def test_packets_that_were_trimmed_may_be_sent_again() -> None:
    options = {"queue": "4K", "trim": "64K", "mtu": "1024"}
    teams, jobs = (TrainingTeam(4),), (TeamTraining("allpairs", (5000, 5000), 1, 2),)

    (found,) = job_trial.try_jobs(
        replace(SMALL, given=SMALL.given | options, teams=teams, rounds=(TeamRound("fifo", jobs),))
    )

    assert found.what == "ok"
