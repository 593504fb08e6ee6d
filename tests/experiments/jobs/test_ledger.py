"""The gradients that jobs are given: of elements that their systems take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.experiments.workloads.jobs.ledger import GradientLedger
from ringleaf.hosts.training.pieces import GradientPiece
from ringleaf.ina.registry import SYSTEMS

RANKS = 3
PIECE = GradientPiece(0, 100, 900, (0,))


def filled(*names: str) -> list[np.ndarray]:
    """Return what the ranks of a job for each system are given, (ranks, elements)."""
    systems = [SYSTEMS[name] for name in names]
    ledger = GradientLedger(1000, RANKS, seed=5, systems=systems, lanes=64, check=True)
    found = [np.zeros((RANKS, PIECE.elements), np.float32) for _ in systems]
    for job, tensors in enumerate(found):
        ledger.fill(job, PIECE, list(tensors))
    return found


def test_votes_are_about_signs_and_ternary_sums_of_one_scale() -> None:
    plain, signs, ternary = filled("switchml", "vote", "tern")

    assert (signs == np.where(plain >= 0, 1, -1)).all()
    (scale,) = np.unique(np.abs(ternary[ternary != 0]))
    assert (np.abs(plain).max(axis=1) >= scale).any()  # one of the ranks has it; all use it
    assert ((ternary == 0) | (np.sign(ternary) == np.sign(plain))).all()
    assert all(np.count_nonzero(rank) for rank in ternary)


@pytest.mark.parametrize("algo", ["vote", "tern"])
def test_jobs_train_by_systems_that_take_compressed_gradients(algo: str, tmp_path: Path) -> None:
    model = tmp_path / "small.yaml"
    model.write_text("name: small\nlayers: [{elements: 5000, forward: 2us, backward: 4us}]\n")
    jobs = [{"model": str(model), "ranks": RANKS, "iterations": 2}] * 2
    spec = {"topo": "leafspine,leaves=1,spines=1,hosts=6", "servers": "0", "entries": "8"}

    (case,) = JobsExperiment(resolve_jobs({**spec, "jobs": jobs, "algo": algo})).run()

    assert [row.wrong for row in case.rows] == [0, 0]
