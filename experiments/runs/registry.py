"""Kinds of workloads by name: folders of `experiments/workloads`, and packages' entry points."""

from __future__ import annotations

from typing import Any

from ringleaf.core.registry import Registry
from ringleaf.experiments.runs.kind import WorkloadKind

WORKLOADS: Registry[WorkloadKind[Any]] = Registry(
    "workloads",
    "kind of workload",
    "experiments/workloads",
    "KIND",
    module="kind",
    kind=WorkloadKind,
)
