"""Trainings in pipelines that lose hosts, and recover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.experiments.runs.kind import Measure, SweepFigure, WorkloadKind
from ringleaf.experiments.spec.options import file_name
from ringleaf.experiments.workloads.graph.kind import WORKLOAD

if TYPE_CHECKING:
    from ringleaf.experiments.estimates.estimate import Need
    from ringleaf.experiments.records.columns import Column
    from ringleaf.experiments.workloads.recovery.experiment import RecoveryExperiment
    from ringleaf.experiments.workloads.recovery.results import RecoveryResults, RecoveryRow
    from ringleaf.experiments.workloads.recovery.spec import RecoverySpec
    from ringleaf.topologies.family import Counts

RECOVERY = "recovery"
"""The key that makes an experiment one of recoveries, beside that of its workload."""


class RecoveryKind(WorkloadKind["RecoverySpec"]):
    """A model in pipelines, whose hosts fail; recoveries are compared under the same losses."""

    name = RECOVERY
    title = "recoveries"
    key = RECOVERY
    lists = ("algo", "detours", RECOVERY)
    measures = (Measure((RECOVERY,), "time_ps"),)

    @property
    def spec(self) -> type[RecoverySpec]:
        """Its options."""
        from ringleaf.experiments.workloads.recovery.spec import RecoverySpec

        return RecoverySpec

    def meant(self, options: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the options, with those that a workload's name stands for."""
        from ringleaf.experiments.workloads.graph.names import named

        return {**options, **named(str(options.get(WORKLOAD, "llm")), where)}

    def folder_for(self, options: Mapping[str, Any]) -> str:
        """Return the workload's name."""
        return file_name(f"{options.get('preset') or options.get(WORKLOAD, 'llm')}-recovery")

    def fitted(self, spec: RecoverySpec) -> RecoverySpec:
        """Return the spec with a host for each rank, spare ones included."""
        from ringleaf.experiments.workloads.recovery.experiment import fit

        return fit(spec)

    def check(self, spec: RecoverySpec, counts: Counts) -> None:
        """Check that there is a host for each rank."""
        from ringleaf.experiments.workloads.graph.loading import check_ranks

        _, split = spec.model_sizes()
        check_ranks(spec.workers * split.tp * split.cp, counts.hosts)

    def need(self, spec: RecoverySpec, counts: Counts) -> Need:
        """Return the memory of an iteration, and the time of one for each loss that is listed.

        How many losses will be drawn, nobody knows.
        """
        from ringleaf.experiments.workloads.graph.need import need_of_work
        from ringleaf.experiments.workloads.recovery.experiment import simulated_iterations

        need = need_of_work(spec, counts)
        if need.time_s is None or spec.failures:
            return replace(need, time_s=None)
        return replace(need, time_s=need.time_s * simulated_iterations(spec))

    def experiment(self, spec: RecoverySpec, **own: Any) -> RecoveryExperiment:
        """Return the experiment."""
        from ringleaf.experiments.workloads.recovery.experiment import RecoveryExperiment

        return RecoveryExperiment(spec, **own)

    def read(self, folder: Path, summary: Mapping[str, Any]) -> RecoveryResults:
        """Load the results of a run from its directory."""
        from ringleaf.experiments.workloads.recovery.results import read_results

        return read_results(folder, summary)

    def rows(self, summary: Mapping[str, Any]) -> list[RecoveryRow]:
        """Return the rows of a run, from its summary."""
        from ringleaf.experiments.workloads.recovery.results import RecoveryRow

        return [RecoveryRow(**row) for row in summary["rows"]]

    def swept_columns(self, lines: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
        """Return the columns of a sweep's page."""
        from ringleaf.experiments.workloads.recovery.results import TABLE

        del lines
        return [each for each in TABLE if each.is_swept]

    def sweep_figures(
        self, lines: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> dict[str, SweepFigure]:
        """Return goodput against the option with most values."""
        from ringleaf.experiments.workloads.recovery.figures import draw_sweep

        if not names:
            return {}
        caption = "Iterations per second that count, by recovery."
        return {"sweep": SweepFigure(partial(draw_sweep, lines, names), "Goodput", caption)}


KIND = RecoveryKind()

resolve_recovery = KIND.resolve
