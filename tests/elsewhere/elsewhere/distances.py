"""A kind of workload: the time to other hosts and back, by the delays of links."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from ringleaf.experiments.estimates.estimate import Need
from ringleaf.experiments.estimates.needs import network_bytes
from ringleaf.experiments.records.columns import Column, as_us
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.results import Results, common
from ringleaf.experiments.records.table import wrong_line
from ringleaf.experiments.records.tracks import Bar, Track
from ringleaf.experiments.runs.kind import Experiment, Measure, WorkloadKind
from ringleaf.experiments.runs.progress import Progress
from ringleaf.experiments.setup.network import make_graph
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.topologies.family import Counts
from ringleaf.topologies.graph import hosts, link
from ringleaf.topologies.routing import dealt, path, routes

COLUMNS = [
    Column("host", "host", width=8, is_swept=True),
    Column("time_ps", "time", "us", 9, as_us, is_swept=True),
]


class DistancesSpec(NetworkSpec):
    distances: Annotated[int, kinds.whole(1)] = kinds.option("1", "Number of other hosts")


@dataclass(kw_only=True)
class Distances(Results):
    kind = "distances"
    columns = COLUMNS
    wrong = 0  # nothing is computed that could be

    def mark(self, row: Any) -> str:
        return ""

    def foot(self) -> Iterator[str]:
        yield wrong_line(self.wrong)

    def tracks(self) -> Iterator[Track]:
        for row in self.rows:
            yield Track("h0", f"to {row['host']}", [Bar("there and back", 0, row["time_ps"])])


class DistancesExperiment(Experiment[DistancesSpec]):
    results: Distances

    def __init__(self, spec: DistancesSpec) -> None:
        super().__init__()
        self.spec, self.graph = spec, make_graph(spec)
        self.results = Distances(about=[f"distances on {spec.topo}"])

    def record(self, shown: Progress, folder: RunFolder) -> Generator[None]:
        table = dealt(self.graph, routes(self.graph))
        for host in hosts(self.graph)[1 : 1 + self.spec.distances]:
            way = path(self.graph, "h0", host, table=table)
            time_ps = 2 * sum(link(self.graph, *ends).delay_ps for ends in pairwise(way))
            self.results.rows.append({"host": host, "time_ps": time_ps, "wrong": 0})
            yield


class DistancesKind(WorkloadKind[DistancesSpec]):
    name = key = "distances"
    spec = DistancesSpec
    measures = (Measure(("host",), "time_ps"),)

    def folder_for(self, options: Mapping[str, Any]) -> str:
        return "distances"

    def need(self, spec: DistancesSpec, counts: Counts) -> Need:
        return Need(network_bytes(counts), None)

    def experiment(self, spec: DistancesSpec, **own: Any) -> DistancesExperiment:
        return DistancesExperiment(spec)

    def read(self, folder: Path, summary: Mapping[str, Any]) -> Distances:
        return Distances(**common(folder, summary), rows=summary["rows"])

    def swept_columns(self, lines: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
        return COLUMNS


KIND = DistancesKind()
