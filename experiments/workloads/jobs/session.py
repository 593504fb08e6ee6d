"""A run of jobs from start to end: table on stdout, progress on stderr, files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ringleaf.compiling import working_s
from ringleaf.experiments.estimates.estimate import format_wait, note_start
from ringleaf.experiments.records.columns import fold, letters
from ringleaf.experiments.records.folder import REPORT, RunFolder, write_text
from ringleaf.experiments.records.topology_copy import keep_topology
from ringleaf.experiments.runs import loading
from ringleaf.experiments.runs.console import Write, columns, in_place, to_terminal
from ringleaf.experiments.runs.drawer import Drawer
from ringleaf.experiments.runs.progress import INTERVAL_S, TRUSTED
from ringleaf.experiments.runs.results import now, versions, write_config, write_log
from ringleaf.experiments.spec.jobs import JobsSpec
from ringleaf.experiments.spec.options import resolve_jobs
from ringleaf.experiments.workloads.jobs import results, table
from ringleaf.experiments.workloads.jobs.results import JobRow, JobsCase
from ringleaf.experiments.workloads.jobs.runner import JobsExperiment

Emit = Callable[[str], None]


def plan(experiment: JobsExperiment) -> dict[str, Any]:
    """Return the plan of a spec: its options, jobs' models by name, and the names of its cases."""
    cases = [combination.name for combination in experiment.combinations]
    return experiment.spec.plain() | {"cases": cases}


def run(
    given: Mapping[str, Any], *, emit: Emit, drawn: bool = True, beside: Drawer | None = None
) -> list[JobRow]:
    """Run the jobs of the options; write all results to the run directory.

    Figures and the report are written if `drawn`, by the process `beside` if there is one.

    If it is interrupted, the measurements so far are written, and the interruption is raised again.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    began_s, is_warm = working_s(), loading.stage() is loading.LOADING
    experiment = JobsExperiment(resolve_jobs(given))
    with RunFolder(experiment.spec.out, emit, results.FILES) as out:
        rows = _run(experiment, given, emit, out, drawn=drawn, beside=beside)
    if drawn and is_warm:
        taken_s = working_s() - began_s - experiment.cases_taken_s
        note_start(experiment.paces, experiment.spec, taken_s)
    experiment.paces.keep()
    return rows


def _run(
    experiment: JobsExperiment,
    given: Mapping[str, Any],
    emit: Emit,
    out: RunFolder,
    *,
    drawn: bool,
    beside: Drawer | None,
) -> list[JobRow]:
    folder = out.path
    text = yaml.safe_dump({name: given[name] for name in given if name != "out"}, sort_keys=False)
    keep_topology(experiment.spec.topo, out)
    out.keep(
        partial(
            write_config,
            folder,
            {"kind": results.KIND, "versions": versions()} | plan(experiment),
            given=given,
            started=now(),
        )
    )
    pcaps = folder / "pcap" if experiment.spec.pcap else None
    progress = JobsProgress(len(experiment.combinations), to_terminal())
    cases: list[JobsCase] = []
    most = letters(wide=experiment.spec.wide)
    columns = table.columns_of(experiment.spec, most)
    about = table.about(experiment)
    for line in fold(table.head(experiment, columns), most):
        emit(line)
    progress.stage(loading.stage())
    try:
        with closing(experiment.run(pcaps=pcaps, watcher=progress)) as measured:
            for case in measured:
                progress.finish_case()
                cases.append(case)
                for row in case.rows:
                    emit(table.line(row, columns))
                if pcaps is not None:
                    out.note(sorted((pcaps / case.combination.name).glob("*.pcapng")))
                out.keep(partial(_note_traces, out, case))
                out.keep(partial(results.write_rows, folder, _rows(cases)))
                out.count(len(cases), len(experiment.combinations))
    finally:
        progress.clear()
        if cases:
            out.keep(lambda: write_text(folder / "spec.yaml", text))
            timelines = [results.timeline_file(case.combination) for case in cases if case.spans]
            is_whole = len(cases) == len(experiment.combinations)
            told = {"about": about}
            write = partial(results.write_summary, folder, cases, told, complete=is_whole)
            out.keep(write, *timelines)
            out.keep(partial(write_log, folder, map(_log_line, cases)))
            for line in fold(table.foot(cases), most):
                emit(line)
        if cases and drawn:
            progress.stage("drawing figures and the report")
            out.keep(lambda: out.note(_draw(experiment.spec, cases, about, text, beside)))
            progress.clear()
            if (folder / REPORT).exists():  # else the disk was full
                emit(f"# report: {folder / REPORT}")
    out.check()
    return _rows(cases)


def _note_traces(out: RunFolder, case: JobsCase) -> None:
    out.note(results.write_traces(out.path, case))


def _rows(cases: list[JobsCase]) -> list[JobRow]:
    return [row for case in cases for row in case.rows]


def _log_line(case: JobsCase) -> str:
    hops = case.rows[0].packet_hops
    return (
        f"{case.combination.name}: {case.wall_s:.3f} s of wall clock, {hops} packet-hops, "
        f"{hops / max(case.wall_s, 1e-9):.0f} packet-hops/s"
    )


def _draw(
    spec: JobsSpec, cases: list[JobsCase], about: Sequence[str], text: str, beside: Drawer | None
) -> list[Path]:
    """Draw figures and the report by the process beside this one, or here; return the files."""
    found = beside.draw(spec.out) if beside and spec.figures else None
    if found is None:
        from ringleaf.experiments.workloads.jobs import drawing  # imports matplotlib

        if not spec.figures:
            return drawing.write_page(spec.out, cases, about, text)
        found = drawing.draw(spec.out, cases, about, text)
    return found


class JobsProgress:
    """A progress line on the terminal's stderr, if it is one: the case, and its share done."""

    def __init__(
        self,
        cases: int,
        write: Write | None,
        clock: Callable[[], float] = working_s,
        *,
        done: int = 0,
    ) -> None:
        self._cases = cases
        self._write = write
        self._clock = clock
        self._done = done
        self._name = ""
        self._expected_s = 0.0
        self._share = 0.0
        self._iterations = (0, 0)
        self._hops = 0
        self._began_s = self._drawn_s = float("-inf")

    def stage(self, text: str) -> None:
        """Show a stage of the work that is no case."""
        self._show(text)

    def begin(self, name: str, expected_s: float = 0.0) -> None:
        """Begin a case, which is expected to take so long; 0: nobody knows."""
        self._expected_s = expected_s
        self._name, self._share, self._iterations, self._hops = name, 0.0, (0, 0), 0
        self._began_s = self._clock()
        if self._done:
            self._show(self.text)

    def tell(self, share: float, done: int, wanted: int) -> None:
        """Note the share of the sums' bytes that is done, and the iterations done and wanted."""
        self._share, self._iterations = share, (done, wanted)
        self._redraw()

    def pass_hops(self, hops: int) -> None:
        """Note the number of packet arrivals so far."""
        self._hops = hops
        self._redraw()

    def finish_case(self) -> None:
        """Note that the case is done, and clear the line."""
        self._done += 1
        self.clear()

    def clear(self) -> None:
        """Remove the line."""
        if self._write is not None:
            self._write(in_place(""))

    @property
    def text(self) -> str:
        """The text of the line; what does not fit into it is left out, the time left last."""
        done, wanted = self._iterations
        parts = [f"case {self._done + 1} of {self._cases}, {self._name}"]
        if wanted:
            parts.append(f"{done} of {wanted} iterations, {100 * self._share:.0f} % of the bytes")
        parts.append(f"{self._hops / 1e6:.1f} M packet-hops")
        spent_s, left = self._clock() - self._began_s, []
        left_s = self._expected_s - spent_s
        if self._share >= TRUSTED:
            left_s = spent_s * (1 - self._share) / self._share
        if self._share >= TRUSTED or left_s > 0:
            left = [f"about {format_wait(left_s)} left of this case"]
        while len(parts) > 1 and len("; ".join(parts + left)) > columns():
            parts.pop()
        return "; ".join(parts + left)

    def _redraw(self) -> None:
        if self._clock() - self._drawn_s >= INTERVAL_S:
            self._show(self.text)

    def _show(self, text: str) -> None:
        self._drawn_s = self._clock()
        if self._write is not None:
            self._write(in_place(text))
