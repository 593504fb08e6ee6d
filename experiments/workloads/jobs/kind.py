"""Training jobs beside each other on one network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.errors import ConfigError
from ringleaf.experiments.figures.sorting import told_apart
from ringleaf.experiments.runs.kind import Measure, SweepFigure, WorkloadKind

if TYPE_CHECKING:
    from ringleaf.experiments.estimates.estimate import Need
    from ringleaf.experiments.records.columns import Column
    from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
    from ringleaf.experiments.workloads.jobs.results import JobRow, JobsResults
    from ringleaf.experiments.workloads.jobs.spec import JobsSpec
    from ringleaf.topologies.family import Counts

JOBS = "jobs"
"""The key that makes an experiment one of jobs."""


class JobsKind(WorkloadKind["JobsSpec"]):
    """Jobs that train models, and reduce gradients: every combination of some options."""

    name = "jobs"
    title = "training jobs"
    key = JOBS
    lists = ("algo", "counts", "detours", "entries", JOBS, "scheduler")
    is_typed = True
    measures = (Measure(("jobs", "algo", "scheduler", "entries", "job"), "jct_ps"),)

    @property
    def spec(self) -> type[JobsSpec]:
        """Its options."""
        from ringleaf.experiments.workloads.jobs.spec import JobsSpec

        return JobsSpec

    def folder_for(self, options: Mapping[str, Any]) -> str:
        """Return `jobs`."""
        del options
        return "jobs"

    def check(self, spec: JobsSpec, counts: Counts) -> None:
        """Check that there are enough hosts for all jobs."""
        from ringleaf.experiments.workloads.jobs.places import check_room

        check_room(spec, counts.hosts)

    def places(self, spec: JobsSpec, hosts: range) -> list[tuple[Sequence[int], Sequence[int]]]:
        """Return the hosts of the ranks, and of the servers, of each job that runs."""
        from ringleaf.experiments.workloads.jobs.places import place_jobs

        return [place for count in spec.counts for place in place_jobs(spec, hosts, count)]

    def need(self, spec: JobsSpec, counts: Counts) -> Need:
        """Return the memory of the largest case, and the time of all."""
        from ringleaf.experiments.workloads.jobs.need import need_of_jobs

        return need_of_jobs(spec, counts)

    def experiment(self, spec: JobsSpec, **own: Any) -> JobsExperiment:
        """Return the experiment."""
        from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment

        return JobsExperiment(spec, **own)

    def read(self, folder: Path, summary: Mapping[str, Any]) -> JobsResults:
        """Load the results of a run from its directory."""
        from ringleaf.experiments.workloads.jobs.results import read_results

        return read_results(folder, summary)

    def rows(self, summary: Mapping[str, Any]) -> list[JobRow]:
        """Return the rows of a run, from its summary."""
        from ringleaf.experiments.workloads.jobs.results import JobRow

        return [JobRow(**row) for row in summary["rows"]]

    def swept_columns(self, lines: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
        """Return the columns of a sweep's page."""
        from ringleaf.experiments.workloads.jobs.results import COLUMNS, DROPS

        del lines
        return [*(each for each in COLUMNS if each.is_swept), DROPS]

    def told_apart(self, lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
        """Return the options besides those that have columns."""
        return told_apart(lines, names)

    def sweep_figures(
        self, lines: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> dict[str, SweepFigure]:
        """Return completion times against the option with most values."""
        from ringleaf.experiments.figures.swept import make

        caption = "Of each run, against the option with most values."
        return {"sweep": SweepFigure(partial(make, lines, names), "Times", caption)}


KIND = JobsKind()

resolve_jobs = KIND.resolve


def read_jobs(path: Path) -> JobsSpec:
    """Read a file of one experiment with jobs.

    Raises:
        ConfigError: If the file is wrong; the message says how.
    """
    from ringleaf.experiments.runs.spec_file import read_cases

    first, *others = read_cases(path)
    if others or JOBS not in first:
        raise ConfigError(
            f"spec {path}: must be one experiment with a list '{JOBS}', got {len(others) + 1} "
            f"with {', '.join(first) or 'nothing'}"
        )
    return resolve_jobs(first, f"spec {path}: ")
