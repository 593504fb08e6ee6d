"""A run of a training script from start to end: processes, fabric, table and files."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ringleaf.errors import RingleafError
from ringleaf.experiments.figures.sheet import in_column
from ringleaf.experiments.records.folder import REPORT, RunFolder
from ringleaf.experiments.runs.drawer import Drawer
from ringleaf.experiments.runs.results import now, versions, write_config, write_log
from ringleaf.experiments.spec.network import VIRTUAL
from ringleaf.experiments.workloads.train import results, table
from ringleaf.experiments.workloads.train.folder import borrowed, fabric_folder
from ringleaf.experiments.workloads.train.hosting import Hosting
from ringleaf.experiments.workloads.train.processes import Processes
from ringleaf.experiments.workloads.train.results import TrainRun
from ringleaf.experiments.workloads.train.server import RankError
from ringleaf.experiments.workloads.train.spec import TrainSpec
from ringleaf.hosts.workload.graph import Graph

Emit = Callable[[str], None]

CHAKRA = "chakra"
"""The format of traces, and their folder."""


@dataclass
class Session:
    """One run.

    Args:
        spec: The options, resolved.
        given: The options, as typed.
        script: The script, and its arguments.
        emit: Takes lines of the table.
        beside: A process that draws; None: this one does.
    """

    spec: TrainSpec
    given: Mapping[str, str]
    script: Sequence[str]
    emit: Emit
    beside: Drawer | None = None
    _about: list[str] = field(default_factory=list)

    def run(self, serve: Path | None = None) -> TrainRun:
        """Run the script on all ranks, and write all results; return them.

        What was measured before an error is written, too.

        Args:
            serve: The folder of a fabric for ranks that somebody else starts; None: start them.

        Raises:
            RingleafError: If a rank fails, or its calls can't be carried.
        """
        with RunFolder(self.spec.out, self.emit, results.FILES) as out:
            return self._run(out, serve)

    def _run(self, out: RunFolder, serve: Path | None) -> TrainRun:
        out.keep(partial(self._write_config, out.path))
        began_s = time.monotonic()
        with fabric_folder() if serve is None else borrowed(serve) as folder:
            processes = Processes(self.script, self.spec.ranks, folder) if serve is None else None
            hosting = Hosting(self.spec, folder, *([processes.look] if processes else []))
            self._about = list(table.head(self.spec, self.script, hosting.graph))
            for line in self._about:
                self.emit(line)
            complete = False
            with processes or nullcontext():
                try:
                    self._host(hosting)
                    if processes is not None:
                        processes.join()
                    complete = True
                finally:
                    found = self._keep(out, hosting, time.monotonic() - began_s, complete=complete)
        out.check()
        return found

    def _host(self, hosting: Hosting) -> None:
        """Carry the calls of the script's ranks to the end."""
        try:
            hosting.run()
        except RingleafError as error:
            hosting.server.abort(str(error), by_a_rank=isinstance(error, RankError))
            raise
        finally:
            hosting.server.close()

    def _keep(self, out: RunFolder, hosting: Hosting, wall_s: float, *, complete: bool) -> TrainRun:
        """Write, draw and print what was measured."""
        found = results.make_run(
            hosting.account,
            hosting.outcomes,
            about=[line.removeprefix("# ") for line in self._about],
            command=self._command(),
            complete=complete,
            is_virtual=self.spec.net == VIRTUAL,
        )
        out.keep(partial(results.write, out.path, found))
        out.count(len(found.rows), len(found.rows))
        if hosting.trace is not None and complete:
            graph = hosting.trace.graph(Path(self.script[0]).stem)
            out.keep(lambda: out.note(_write_traces(out.path / CHAKRA, graph)))
        hops = found.totals["packet_hops"]
        out.keep(
            partial(write_log, out.path, [f"{wall_s:.3f} s of wall clock, {hops} packet-hops"])
        )
        if found.rows:
            for line in table.rows(found):
                self.emit(line)
            out.keep(lambda: out.note(self._draw(out.path)))
            if (out.path / REPORT).exists():  # else the disk was full
                self.emit(f"# report: {out.path / REPORT}; timeline: {out.path / results.TIMELINE}")
        return found

    def _draw(self, folder: Path) -> list[Path]:
        spec = self.spec
        alone = not spec.figures or spec.column is not None  # the other process knows nothing of it
        found = self.beside.draw(folder) if self.beside and not alone else None
        if found is None:
            from ringleaf.experiments.workloads.train import drawing  # imports matplotlib

            with in_column(spec.column):
                found = drawing.redraw(folder, with_figures=spec.figures)
        return found

    def _command(self) -> str:
        typed = [part for name, value in self.given.items() for part in (f"--{name}", value)]
        return shlex.join(["ringleaf", "train", *typed, "--", *self.script])

    def _write_config(self, folder: Path) -> None:
        about: dict[str, Any] = {"kind": results.KIND, "versions": versions()}
        about |= {"options": self.spec.plain(), "script": list(self.script)}
        write_config(folder, about, given=self.given, started=now())


def _write_traces(folder: Path, graph: Graph) -> list[Path]:
    from ringleaf.hosts.workload.formats.files import write_trace  # loads protobuf

    folder.mkdir(exist_ok=True)
    return write_trace(graph, CHAKRA, folder, graph.name)
