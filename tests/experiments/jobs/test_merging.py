"""OMGS-SGD beside its two extremes: each layer by itself, and all layers in one piece."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.experiments.workloads.jobs.timeline import WIRE
from ringleaf.hosts.schedulers import omgs_sgd
from studies.schedulers import settled_ms

Groups = Callable[..., list[list[int]]]


def measure(monkeypatch: pytest.MonkeyPatch, groups: Groups, delay: str) -> tuple[float, int]:
    """Return the milliseconds of an iteration of ResNet-50, and its number of pieces."""
    monkeypatch.setattr(omgs_sgd, "groups", groups)
    given = {"topo": "leafspine,leaves=1,spines=1,hosts=4", "rate": "40G", "delay": delay}
    jobs = [{"model": "resnet50", "ranks": 4, "iterations": 5, "size": 0.025, "compute": 0.007}]
    options = {**given, "scheduler": "omgs-sgd", "servers": "0"}
    (case,) = JobsExperiment(resolve_jobs({**options, "jobs": jobs})).run()
    assert case.rows[0].wrong == 0
    return settled_ms(case, 1), len({span.layers for span in case.spans if span.kind == WIRE})


@pytest.mark.parametrize(
    ("delay", "pieces", "figures_ms"),
    [
        ("100ns", 54, (1.262, 1.262, 1.345)),
        ("1us", 24, (1.283, 1.415, 1.359)),
        ("5us", 1, (1.423, 5.022, 1.423)),
    ],
)
def test_merging_is_as_fast_as_the_better_extreme(
    monkeypatch: pytest.MonkeyPatch, delay: str, pieces: int, figures_ms: tuple[float, ...]
) -> None:
    """On links of 1 us it merges some layers, and is faster than both."""
    rule: Groups = omgs_sgd.groups

    def alone(backward: list[float], *_: object) -> list[list[int]]:
        return [[place] for place in range(len(backward))]

    def whole(backward: list[float], *_: object) -> list[list[int]]:
        return [list(range(len(backward)))]

    merged, separate, joined = (
        measure(monkeypatch, groups, delay) for groups in (rule, alone, whole)
    )

    assert (merged[1], separate[1], joined[1]) == (pieces, 54, 1)
    assert merged[0] <= min(separate[0], joined[0])
    assert (merged[0], separate[0], joined[0]) == pytest.approx(figures_ms, abs=0.002)
