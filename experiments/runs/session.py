"""One run from start to end: table on stdout, progress on stderr, files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from ringleaf.compiling import working_s
from ringleaf.experiments.runs import loading
from ringleaf.experiments.runs import results
from ringleaf.experiments.runs import table
from ringleaf.experiments.records import timeline
from ringleaf.experiments.runs.drawer import Drawer
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.records.columns import fold, letters
from ringleaf.experiments.estimates.estimate import note_start
from ringleaf.experiments.explain.findings import file_of
from ringleaf.experiments.records.folder import REPORT, RunFolder, write_text
from ringleaf.experiments.records.link_use import uses_of
from ringleaf.experiments.setup.network import Connect, connecting
from ringleaf.experiments.runs.progress import Progress, progress
from ringleaf.experiments.runs.results import Run
from ringleaf.experiments.workloads.collective.experiment import Experiment, Measurement
from ringleaf.experiments.spec.collective import CollectiveSpec
from ringleaf.experiments.spec.network import VIRTUAL
from ringleaf.experiments.spec.options import make_command, resolve
from ringleaf.experiments.records.topology_copy import keep_topology
from ringleaf.tensors import Array

if TYPE_CHECKING:
    import torch

Emit = Callable[[str], None]


def run(
    given: Mapping[str, str],
    *,
    emit: Emit,
    connect: Connect | None = None,
    drawn: bool = True,
    beside: Drawer | None = None,
    inputs: Sequence[torch.Tensor | Array] | None = None,
) -> Run:
    """Run the experiment of the options; write all results to the run directory.

    Figures and the report are written if `drawn`, by the process `beside` if there is one.
    `inputs` are the ranks' tensors, if they are not to be made as the options say.

    If it is interrupted, the measurements so far are written, and the interruption is raised again.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    spec = resolve(given)
    check(spec, live=connect is None)
    began_s, is_warm = working_s(), loading.stage() is loading.LOADING
    experiment = Experiment(spec, inputs)
    with RunFolder(spec.out, emit, results.FILES) as folder:
        done = _run(experiment, given, emit, connect, folder, drawn=drawn, beside=beside)
    if drawn and is_warm:
        note_start(experiment.paces, spec, working_s() - began_s - experiment.rows_taken_s)
    experiment.paces.keep()
    return done


def _run(
    experiment: Experiment,
    given: Mapping[str, str],
    emit: Emit,
    connect: Connect | None,
    folder: RunFolder,
    *,
    drawn: bool,
    beside: Drawer | None,
) -> Run:
    spec, run = experiment.spec, experiment.new_run()
    keep_topology(spec.topo, folder)
    folder.keep(
        partial(
            results.write_config,
            spec.out,
            results.described(run),
            given=given,
            started=results.now(),
        )
    )
    log: list[str] = []
    with progress(experiment.rows_s) as shown:
        try:
            if connect is None:
                if spec.net == VIRTUAL:
                    shown.stage(loading.stage())
                    loading.load(spec)
                with connecting(spec, experiment.graph, watched=drawn) as its_own:
                    _measure(experiment, its_own, run, folder, emit, log, shown, drawn=drawn)
            else:
                _measure(experiment, connect, run, folder, emit, log, shown, drawn=drawn)
            run.complete = True
        finally:
            folder.keep(partial(results.write_results, spec.out, run))
            folder.keep(partial(results.write_log, spec.out, log))
            if run.rows and drawn:
                shown.stage("drawing figures and the report")
                command = make_command(given)
                folder.keep(
                    lambda: folder.note(_draw(spec, run, experiment.graph, command, beside))
                )
                shown.clear()
                if (spec.out / REPORT).exists():  # else the disk was full
                    emit(f"# report: {spec.out / REPORT}")
    folder.check()
    return run


def _measure(
    experiment: Experiment,
    connect: Connect,
    run: Run,
    folder: RunFolder,
    emit: Emit,
    log: list[str],
    shown: Progress,
    *,
    drawn: bool,
) -> None:
    most = letters(wide=experiment.spec.wide)
    columns = table.columns_of(run, most)
    for line in fold(table.head(run, columns, experiment.need), most):
        emit(line)
    for measurement in experiment.run(connect, shown):
        row = measurement.row
        run.rows.append(row)
        run.series[row.algo, row.size_bytes] = measurement.series
        if measurement.tensors is not None:
            run.tensors[row.algo, row.size_bytes] = measurement.tensors
        run.uses[row.algo, row.size_bytes] = uses_of(experiment.graph, measurement.outcome)
        if measurement.outcome.drop_counts:
            run.drops[row.algo, row.size_bytes] = measurement.outcome.drop_counts
        folder.note(measurement.files)
        folder.keep(partial(results.write_rows, folder.path, run))
        folder.count(len(run.rows), experiment.count)
        shown.end()
        emit(table.line(row, columns))
        log.append(_log_line(measurement))
        if (found := measurement.explained) is not None:
            run.explained[row.algo, row.size_bytes] = found
            path = folder.path / file_of(found.algo, found.size_bytes)
            folder.keep(partial(results.write_explained, folder.path, found), path)
        if drawn and measurement.outcome.notes:
            log += _write_timeline(experiment.graph, measurement, folder)
    for line in fold(table.foot(run), most):
        emit(line)


def _write_timeline(graph: nx.Graph[str], measurement: Measurement, folder: RunFolder) -> list[str]:
    """Write a measurement's timeline; return a line for the log if it is not complete."""
    row, outcome = measurement.row, measurement.outcome
    path = folder.path / timeline.file_of(row.algo, row.size_bytes)
    most = timeline.MOST_EVENTS
    told = timeline.as_chrome(graph, measurement.schedule, outcome, most=most)

    def write() -> None:
        path.parent.mkdir(exist_ok=True)
        write_text(path, told.text)

    folder.keep(write, path)
    if not told.left_out:
        return []
    return [f"{path.relative_to(folder.path)}: the first {most} events, {told.left_out} left out"]


def _log_line(measurement: Measurement) -> str:
    row, wall_s = measurement.row, measurement.wall_s
    return (
        f"{row.algo} {row.size_bytes} B: {wall_s:.3f} s of wall clock, {row.events} events, "
        f"{row.packet_hops / max(wall_s, 1e-9):.0f} packet-hops/s"
    )


def _draw(
    spec: CollectiveSpec, run: Run, graph: nx.Graph[str], command: str, beside: Drawer | None
) -> list[Path]:
    """Draw figures and the report by the process beside this one, or here; return the files."""
    found = beside.draw(spec.out) if beside and spec.figures else None
    if found is None:
        from ringleaf.experiments.runs import drawing  # imports matplotlib

        if not spec.figures:
            return drawing.write_page(spec.out, run, command)
        found = drawing.draw(spec.out, run, graph, command)
    return found
