"""Options of models that were asked for and change nothing: a line of the header says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ringleaf.hosts.workload.llm.pipeline import CHIMERA

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.graph.spec import WorkloadSpec


def unused_of_model(spec: WorkloadSpec) -> Iterator[str]:
    """Yield a line on sizes of a model that mean nothing beside its others."""
    sizes, split = spec.model_sizes()
    is_one = split.dp * split.cp == 1 and split.schedule != CHIMERA  # which has two pipelines
    facts = (
        ("topk", not sizes.experts, "no experts"),
        ("sequence_parallel", split.sequence_parallel and split.tp == 1, "tp=1"),
        ("scatter_gather", split.scatter_gather and split.tp == 1, "tp=1"),
        ("scatter_gather", split.scatter_gather and split.pp == 1, "pp=1"),
        ("zero", split.zero and is_one, "one replica"),
    )
    reasons = {name: why for name, is_so, why in facts if is_so and name in spec.model_fields_set}
    if reasons:
        phrases = "; ".join(f"{name} ({why})" for name, why in reasons.items())
        yield f"without effect here: {phrases}"
