"""Trainings of small models on synthetic data, whose loss is followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.core.extras import require
from ringleaf.experiments.runs.kind import Measure, WorkloadKind
from ringleaf.experiments.spec.options import file_name

if TYPE_CHECKING:
    from ringleaf.experiments.estimates.estimate import Need
    from ringleaf.experiments.records.columns import Column
    from ringleaf.experiments.workloads.converge.experiment import ConvergeExperiment
    from ringleaf.experiments.workloads.converge.plan import ConvergencePlan
    from ringleaf.experiments.workloads.converge.results import ConvergeResults, TrainingRow
    from ringleaf.experiments.workloads.converge.spec import ConvergeSpec
    from ringleaf.topologies.family import Counts

CONVERGE = "converge"
"""The key that makes an experiment one of trainings."""

ALL = "all"
"""The plan that comes along, with every compressor, collective and scheme."""


class ConvergeKind(WorkloadKind["ConvergeSpec"]):
    """Trainings by a plan: methods, algorithms and schemes."""

    name = CONVERGE
    key = CONVERGE
    lists = ("parts", "detours")
    clashing = ("loss", "steps")  # of a model, and how many steps a scheme has made of them
    measures = (Measure(("part", "model", "method", "algo", "workload"), "time_ps"),)

    @property
    def spec(self) -> type[ConvergeSpec]:
        """Its options."""
        from ringleaf.experiments.workloads.converge.spec import ConvergeSpec

        return ConvergeSpec

    def meant(self, options: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the options, with the plan's topology and seed if none are given."""
        del where
        plan = _plan_of(str(options[CONVERGE]))
        return {"topo": plan.topo, "seed": plan.seed, **options}

    def folder_for(self, options: Mapping[str, Any]) -> str:
        """Return the plan's name."""
        return (
            "convergence" if options[CONVERGE] == ALL else file_name(Path(options[CONVERGE]).stem)
        )

    def need(self, spec: ConvergeSpec, counts: Counts) -> Need:
        """Return the memory of networks, one for each kind of switches, and of PyTorch."""
        from ringleaf.experiments.estimates.estimate import TORCH_BYTES, Need
        from ringleaf.experiments.estimates.needs import network_bytes

        del spec
        return Need(2 * network_bytes(counts) + TORCH_BYTES, None)

    def experiment(self, spec: ConvergeSpec, **own: Any) -> ConvergeExperiment:
        """Return the experiment."""
        from ringleaf.experiments.workloads.converge.experiment import ConvergeExperiment
        from ringleaf.experiments.workloads.converge.plan import chosen

        plan = chosen(_plan_of(spec.converge), spec.parts, spec.steps)
        return ConvergeExperiment(spec, replace(plan, seed=spec.seed), **own)

    def read(self, folder: Path, summary: Mapping[str, Any]) -> ConvergeResults:
        """Load the results of a run from its directory."""
        from ringleaf.experiments.workloads.converge.results import read_results

        return read_results(folder, summary)

    def rows(self, summary: Mapping[str, Any]) -> list[TrainingRow]:
        """Return the rows of a run, from its summary."""
        from ringleaf.experiments.workloads.converge.results import TrainingRow

        return [TrainingRow(**row) for row in summary["rows"]]

    def swept_columns(self, lines: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
        """Return the columns of a sweep's page."""
        from ringleaf.experiments.workloads.converge.results import COLUMNS

        del lines
        return [each for each in COLUMNS if each.is_swept]


def _plan_of(name: str) -> ConvergencePlan:
    """Return the plan of a name, or of a file; raises ConfigError if it makes no sense.

    It names models, which are PyTorch's.
    """
    require("torch", CONVERGE)
    from ringleaf.experiments.workloads.converge.plan import SPEC, read_plan

    return read_plan(SPEC if name == ALL else Path(name))


KIND = ConvergeKind()
