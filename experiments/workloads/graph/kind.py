"""Graphs of work: models in parallel, execution traces and flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.experiments.records.config import read_given
from ringleaf.experiments.runs.kind import Measure, SweepFigure, WorkloadKind
from ringleaf.experiments.spec.options import file_name

if TYPE_CHECKING:
    from ringleaf.experiments.estimates.estimate import Need
    from ringleaf.experiments.records.columns import Column
    from ringleaf.experiments.workloads.graph.accounts import WorkRow
    from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
    from ringleaf.experiments.workloads.graph.results import GraphResults
    from ringleaf.experiments.workloads.graph.spec import WorkloadSpec
    from ringleaf.topologies.family import Counts

WORKLOAD = "workload"
"""The key that makes an experiment one of a graph of work."""


class GraphKind(WorkloadKind["WorkloadSpec"]):
    """A graph of work, which ranks follow: computations, messages and collectives."""

    name = WORKLOAD
    key = WORKLOAD
    lists = ("algo", "detours")
    measures = (
        Measure(("label", "call", "algo", "ranks", "size_bytes"), "time_ps", whole="iteration_ps"),
        Measure((), "iteration_ps"),
    )

    @property
    def spec(self) -> type[WorkloadSpec]:
        """Its options."""
        from ringleaf.experiments.workloads.graph.spec import WorkloadSpec

        return WorkloadSpec

    def meant(self, options: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the options, with those that a workload's name, or its file, stands for."""
        from ringleaf.experiments.workloads.graph.names import named

        return {**options, **named(str(options[WORKLOAD]), where)}

    def folder_for(self, options: Mapping[str, Any]) -> str:
        """Return the name of the preset, pattern or file."""
        return file_name(str(options.get("preset") or options[WORKLOAD]))

    def fitted(self, spec: WorkloadSpec) -> WorkloadSpec:
        """Return the spec with a host for each rank, if it says nothing of their number."""
        from ringleaf.experiments.workloads.graph.loading import fit

        return fit(spec)

    def check(self, spec: WorkloadSpec, counts: Counts) -> None:
        """Check that there is a host for each rank."""
        from ringleaf.experiments.workloads.graph.loading import check_ranks, load

        check_ranks(len(load(spec).graph.ranks), counts.hosts)

    def need(self, spec: WorkloadSpec, counts: Counts) -> Need:
        """Return the memory and time of the replay, its packets roughly counted."""
        from ringleaf.experiments.workloads.graph.need import need_of_work

        return need_of_work(spec, counts)

    def experiment(self, spec: WorkloadSpec, **own: Any) -> WorkExperiment:
        """Return the experiment."""
        from ringleaf.experiments.workloads.graph.experiment import WorkExperiment

        return WorkExperiment(spec, **own)

    def read(self, folder: Path, summary: Mapping[str, Any]) -> GraphResults:
        """Load the results of a run from its directory."""
        from ringleaf.experiments.workloads.graph.results import read_results

        return read_results(folder, summary)

    def rows(self, summary: Mapping[str, Any]) -> list[WorkRow]:
        """Return the rows of a run, from its summary."""
        from ringleaf.experiments.workloads.graph.accounts import WorkRow

        return [WorkRow(**row) for row in summary["rows"]]

    def swept_rows(self, folder: Path, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the only row that a run has in the file of a sweep: of the whole replay."""
        from ringleaf.experiments.workloads.graph.swept import VALUES

        about = {WORKLOAD: read_given(folder)[WORKLOAD]}
        return [about | {name: summary.get(name) for name in VALUES}]

    def swept_columns(self, lines: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
        """Return the columns of a sweep's page."""
        from ringleaf.experiments.workloads.graph.swept import REPLAYS, TRAFFIC

        return TRAFFIC if _are_flows(lines) else REPLAYS

    def sweep_figures(
        self, lines: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> dict[str, SweepFigure]:
        """Return the times of messages, if all are flows, or how ranks spend an iteration."""
        from ringleaf.experiments.workloads.graph import swept

        draw, caption = swept.make_spending, "How ranks spend an iteration, on average, by run."
        if _are_flows(lines):
            draw, caption = swept.make_times, "Percentiles of the times of messages, by run."
        return {"sweep": SweepFigure(partial(draw, lines, names), "Times", caption)}


def _are_flows(lines: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether all runs of a sweep are of flows."""
    from ringleaf.experiments.workloads.graph.names import are_flows

    return all(are_flows(str(line[WORKLOAD])) for line in lines)


KIND = GraphKind()

resolve_workload = KIND.resolve
