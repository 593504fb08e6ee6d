"""Kinds of workloads by name: folders of `experiments/workloads`, and packages' entry points."""

from __future__ import annotations

from typing import Any

from ringleaf.experiments.runs.kind import WorkloadKind
from ringleaf.registry import Registry

WORKLOADS: Registry[WorkloadKind[Any]] = Registry(
    "workloads",
    "kind of workload",
    "experiments/workloads",
    "KIND",
    module="kind",
    kind=WorkloadKind,
)
