"""Options of models that mean nothing beside others are told, and only those."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from ringleaf.experiments.workloads.graph.kind import resolve_workload
from ringleaf.experiments.workloads.graph.unused import unused_of_model
from ringleaf.hosts.workload.graph import Graph
from ringleaf.hosts.workload.llm.generate import generate

SMALL: dict[str, Any] = {
    **{"workload": "llm", "layers": 4, "hidden": 64, "heads": 4},
    **{"sequence": 64, "micro_batches": 2},
}
CHOICES = (("1f1b", "chimera"), (1, 2), (1, 2), (1, 2))  # schedule, tp, pp, dp


def unused(**sizes: Any) -> list[str]:
    return [*unused_of_model(resolve_workload(SMALL | sizes))]


def work_of(**sizes: Any) -> Graph:
    return generate("model", *resolve_workload(SMALL | sizes).model_sizes())


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"topk": 4}, "topk (no experts)"),
        ({"topk": 1, "experts": 2}, ""),
        ({"sequence_parallel": "yes"}, "sequence_parallel (tp=1)"),
        ({"sequence_parallel": "yes", "tp": 2}, ""),
        ({"sequence_parallel": "no"}, ""),
        ({"scatter_gather": "yes", "tp": 2}, "scatter_gather (pp=1)"),
        ({"zero": 1, "topk": 1}, "topk (no experts); zero (one replica)"),
        ({"zero": 1, "dp": 2}, ""),
        ({"zero": 0}, ""),
        ({"zero": 1, "pp": 2, "schedule": "chimera"}, ""),
    ],
)
def test_options_of_models_that_mean_nothing_are_told(sizes: dict[str, Any], expected: str) -> None:
    assert unused(**sizes) == ([f"without effect here: {expected}"] if expected else [])


@pytest.mark.parametrize(
    ("name", "value"), [("sequence_parallel", "yes"), ("scatter_gather", "yes"), ("zero", 1)]
)
def test_they_are_told_where_the_work_is_the_same_without_them(name: str, value: object) -> None:
    for schedule, tp, pp, dp in product(*CHOICES):
        if schedule == "chimera" and pp == 1:
            continue
        split = {"schedule": schedule, "tp": tp, "pp": pp, "dp": dp}
        is_same = work_of(**split, **{name: value}) == work_of(**split)
        assert bool(unused(**split, **{name: value})) == is_same, split
