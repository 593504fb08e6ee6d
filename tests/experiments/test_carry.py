"""Tensors that are only in memory while they are needed are judged as others are."""

from __future__ import annotations

from pathlib import Path

import pytest

import ringleaf.experiments.estimates.estimate as estimate
from ringleaf.core.tensors import FLOAT32, Array
from ringleaf.experiments.checking.data import Noise
from ringleaf.experiments.setup.network import connect
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve

ELEMENTS = 4096


@pytest.fixture(autouse=True)
def small_tensors_are_leased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "LEAST_BYTES", 0)
    monkeypatch.setattr(estimate, "LEAST_CHUNK_BYTES", 0)


def wrong_of(folder: Path, inputs: Noise, algo: str) -> int:
    spec = {"topo": "leafspine,leaves=1,spines=1,hosts=4", "size": f"{4 * ELEMENTS}B", "algo": algo}
    experiment = CollectiveExperiment(resolve({"out": str(folder), **spec}))
    (algorithm,) = experiment.algorithms
    measured = experiment.measure(connect, algorithm, 4 * ELEMENTS, inputs)
    wrong = measured.row.wrong
    assert wrong is not None
    return wrong


@pytest.mark.parametrize(
    "algo",
    [*("ring", "tree", "allgather", "reducescatter", "broadcast", "switchml", "atp")],
)
def test_right_results_are_confirmed(tmp_path: Path, algo: str) -> None:
    assert wrong_of(tmp_path, Noise(3, 4, ELEMENTS, FLOAT32), algo) == 0


class Misread(Noise):
    """Inputs of which rank 2 brings in another element 100 than it should."""

    right = Noise(3, 4, ELEMENTS, FLOAT32)

    def fill(self, rank: int, start: int, out: Array) -> None:
        super().fill(rank, start, out)
        if rank == 2 and start <= 100 < start + out.size:
            out[100 - start] += 1

    def part(self, rank: int, start: int, stop: int) -> Array:
        return self.right.part(rank, start, stop)


@pytest.mark.parametrize(
    ("algo", "wrong"), [("ring", 4), ("reducescatter", 3), ("broadcast", 0), ("switchml", 4)]
)
def test_each_wrong_sum_that_a_rank_has_counts(tmp_path: Path, algo: str, wrong: int) -> None:
    # A chunk's sum begins at the rank after the chunk's own: of chunk 0, ranks 2, 3 and 0 have a
    # wrong one, and an all-gather brings that of rank 0 to all.
    assert wrong_of(tmp_path, Misread(3, 4, ELEMENTS, FLOAT32), algo) == wrong
