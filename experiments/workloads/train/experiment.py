"""A training script on its ranks: processes, and the fabric that carries what they call."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path

from ringleaf.core.units import format_count
from ringleaf.errors import RingleafError
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.late_faults import of_faults
from ringleaf.experiments.runs.kind import Experiment
from ringleaf.experiments.runs.progress import Progress
from ringleaf.experiments.setup.network import make_graph
from ringleaf.experiments.spec.choices import VIRTUAL
from ringleaf.experiments.workloads.train.about import about
from ringleaf.experiments.workloads.train.clock import parse_compute
from ringleaf.experiments.workloads.train.folder import borrowed, fabric_folder
from ringleaf.experiments.workloads.train.hosting import Hosting
from ringleaf.experiments.workloads.train.processes import Processes
from ringleaf.experiments.workloads.train.results import TrainResults
from ringleaf.experiments.workloads.train.server import RankError
from ringleaf.experiments.workloads.train.spec import TrainSpec
from ringleaf.hosts.workload.graph import Graph

CHAKRA = "chakra"
"""The format of traces, and their folder."""


class TrainExperiment(Experiment[TrainSpec]):
    """A script, and the network below it.

    Args:
        spec: The options.
        serve: The folder of a fabric for ranks that somebody else starts; None: start them.
    """

    def __init__(self, spec: TrainSpec, serve: Path | None = None) -> None:
        super().__init__()
        self.spec = spec
        self._serve = serve

    @cached_property
    def results(self) -> TrainResults:
        """The results, which still have no rows at first."""
        spec = self.spec
        graph = make_graph(spec.model_copy(update={"hosts": spec.hosts or spec.ranks}))
        return TrainResults(
            about=list(about(spec, graph)),
            is_virtual=spec.net == VIRTUAL,
            ranks=spec.ranks,
            faults=of_faults(self.plain()),
            untimed=[*(parse_compute(spec.compute).modules or ())],
        )

    def record(self, shown: Progress, folder: RunFolder) -> Generator[None]:
        """Run the script on all ranks; keep what was measured also if one of them fails.

        Raises:
            RingleafError: If a rank fails, or its calls can't be carried.
        """
        shown.clear()  # the terminal is the script's
        spec, began_s = self.spec, time.monotonic()
        with fabric_folder() if self._serve is None else borrowed(self._serve) as place:
            processes = None
            if self._serve is None:
                processes = Processes(spec.command_line, spec.ranks, place)
            hosting = Hosting(spec, place, *([processes.look] if processes else []))
            with processes or nullcontext():
                try:
                    _host(hosting)
                    if processes is not None:
                        processes.join()
                    if hosting.trace is not None:
                        graph = hosting.trace.graph(spec.title)
                        folder.keep(lambda: folder.note(_write_traces(folder.path, graph)))
                finally:
                    self.results.take(hosting.account, hosting.outcomes)
                    wall_s, hops = time.monotonic() - began_s, self.results.totals["packet_hops"]
                    self.log.append(
                        f"{wall_s:.3f} s of wall clock, {format_count(hops, 'packet-hop')}"
                    )
        yield


def _host(hosting: Hosting) -> None:
    """Carry the calls of the script's ranks to the end."""
    try:
        hosting.run()
    except RingleafError as error:
        hosting.server.abort(str(error), by_a_rank=isinstance(error, RankError))
        raise
    finally:
        hosting.server.close()


def _write_traces(folder: Path, graph: Graph) -> list[Path]:
    from ringleaf.hosts.workload.formats.files import write_trace  # loads protobuf

    place = folder / CHAKRA
    place.mkdir(exist_ok=True)
    return write_trace(graph, CHAKRA, place, graph.name)
