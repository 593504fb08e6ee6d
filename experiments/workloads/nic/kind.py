"""Workloads that NICs compute, and hosts without for comparison."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

from ringleaf.experiments.runs.kind import Measure, WorkloadKind
from ringleaf.hosts.nic.registry import OFFLOADS

if TYPE_CHECKING:
    from ringleaf.experiments.estimates.estimate import Need
    from ringleaf.experiments.records.columns import Column
    from ringleaf.experiments.workloads.nic.experiment import NicExperiment
    from ringleaf.experiments.workloads.nic.results import NicResults
    from ringleaf.experiments.workloads.nic.spec import NicSpec
    from ringleaf.topologies.family import Counts

OFFLOAD = "offload"
"""The key that makes an experiment one on NICs, and names the workload."""


class NicKind(WorkloadKind["NicSpec"]):
    """A published use of NICs."""

    name = "nic"
    key = OFFLOAD
    clashing = ("rate",)  # of samples
    measures = (
        Measure(("system", "policy", "pool", "cache"), "forward_ps", more=("backward_ps",)),
        Measure(("system", "products", "latency_ps", "tile"), "time_ps"),
    )

    @property
    def spec(self) -> type[NicSpec]:
        """Its options."""
        from ringleaf.experiments.workloads.nic.spec import NicSpec

        return NicSpec

    def specs(self) -> list[type[NicSpec]]:
        """Return the options of each offload."""
        return [self.spec_for({OFFLOAD: name}) for name in OFFLOADS.shipped()]

    def lists_of(self, spec: type[NicSpec]) -> Collection[str]:
        """Return the options whose values are several: a run compares them all."""
        names, fields = spec.names(), spec.model_fields
        return [names[field] for field in names if get_origin(fields[field].annotation) is tuple]

    def spec_for(self, options: Mapping[str, Any]) -> type[NicSpec]:
        """Return the options of the offload that is named."""
        from ringleaf.experiments.workloads.nic.workload import workload_of

        spec: type[NicSpec] = workload_of(str(options[OFFLOAD])).spec
        return spec

    def folder_for(self, options: Mapping[str, Any]) -> str:
        """Return the offload's name."""
        return str(options[OFFLOAD])

    def check(self, spec: NicSpec, counts: Counts) -> None:
        """Check nothing more: the experiment looks at its hosts before it does anything."""

    def need(self, spec: NicSpec, counts: Counts) -> Need:
        """Return the memory of an idle network."""
        from ringleaf.experiments.workloads.nic.need import need_of_nics

        return need_of_nics(spec, counts)

    def experiment(self, spec: NicSpec, **own: Any) -> NicExperiment:
        """Return the experiment."""
        from ringleaf.experiments.workloads.nic.experiment import NicExperiment

        return NicExperiment(spec, **own)

    def swept_columns(self, lines: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
        """Return the columns of a sweep's page: those of the offload whose rows these are."""
        from ringleaf.experiments.workloads.nic.workload import workload_of

        tables = (workload_of(name).columns for name in OFFLOADS.shipped())
        fitting = (table for table in tables if {each.name for each in table} <= {*lines[0]})
        return next(fitting, ())

    def read(self, folder: Path, summary: Mapping[str, Any]) -> NicResults:
        """Load the results of a run from its directory."""
        from ringleaf.experiments.workloads.nic.results import read_results

        return read_results(folder, summary)


KIND = NicKind()
