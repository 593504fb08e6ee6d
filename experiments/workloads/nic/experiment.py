"""A workload on NICs: all systems that are compared, one after the other."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import cached_property
from typing import Any

from ringleaf.experiments.records.conditions import conduct, inside_nodes_of, unlike_hardware
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.idle import idle
from ringleaf.experiments.runs import loading
from ringleaf.experiments.runs.kind import Experiment
from ringleaf.experiments.runs.progress import Progress
from ringleaf.experiments.spec.choices import VIRTUAL
from ringleaf.experiments.workloads.nic.network import connecting, graph_of
from ringleaf.experiments.workloads.nic.results import NicResults
from ringleaf.experiments.workloads.nic.spec import NicSpec
from ringleaf.experiments.workloads.nic.workload import workload_of
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes


class NicExperiment(Experiment[NicSpec]):
    """A spec with its topology.

    Raises:
        ConfigError: If the hosts can't do it.
        TopologyError: If there is no such topology.
    """

    def __init__(self, spec: NicSpec) -> None:
        super().__init__()
        self.spec = spec
        self.graph = graph_of(spec)
        self._workload = workload_of(spec.offload)
        self._workload.check(spec, len(hosts(self.graph)))

    @property
    def count(self) -> int:
        """The number of rows."""
        return self._workload.count(self.spec)

    @cached_property
    def results(self) -> NicResults:
        """The results, which still have no rows at first."""
        spec, graph = self.spec, self.graph
        return NicResults(
            offload=spec.offload,
            about=[
                *self._workload.about(spec, graph),
                f"{graph.graph['name']}, {describe(link_kinds(graph))}",
                f"{conduct(spec)}; seed {spec.seed}",
                inside_nodes_of(spec),
                *unlike_hardware(vars(spec)),
                *idle(spec),
                *notes(spec.topo),
            ],
            notes=list(self._workload.notes),
            is_virtual=spec.net == VIRTUAL,
            config=self.plain(),
        )

    def plain(self) -> dict[str, Any]:
        """Return the options as resolved."""
        return self.spec.plain()

    def record(self, shown: Progress, folder: RunFolder) -> Generator[None]:
        """Run all systems, and keep a row of each."""
        del folder
        shown.stage(loading.stage())
        began_s, results = time.monotonic(), self.results
        with connecting(self.spec, self.graph) as connect:
            shown.begin(self._workload.name)
            for row in self._workload.run(self.spec, self.graph, connect):
                results.rows.append(row)
                results.wall_s = time.monotonic() - began_s
                yield
                if len(results.rows) < self.count:
                    shown.begin(self._workload.name)
                    shown.tell(len(results.rows) / self.count)
        self.log.append(f"{results.wall_s:.3f} s of wall clock")
