"""One run from start to end: table on stdout, progress on stderr, files in its folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ringleaf.core.compiling import working_s
from ringleaf.core.disk import write_text
from ringleaf.experiments.estimates.estimate import note_start
from ringleaf.experiments.records.columns import letters
from ringleaf.experiments.records.config import (
    versions,
    without_aside,
    write_config,
    write_log,
)
from ringleaf.experiments.records.folder import REPORT, SPEC, RunFolder
from ringleaf.experiments.records.results import Results, keep_timeline, write_rows
from ringleaf.experiments.records.table import RunTable
from ringleaf.experiments.records.topology_copy import keep_topology
from ringleaf.experiments.runs import loading
from ringleaf.experiments.runs.drawer import Drawer
from ringleaf.experiments.runs.kind import Experiment
from ringleaf.experiments.runs.progress import Progress, progress
from ringleaf.experiments.runs.request import RunRequest

Emit = Callable[[str], None]


def run(
    request: RunRequest, *, emit: Emit, drawn: bool = True, beside: Drawer | None = None, **own: Any
) -> Results:
    """Run what is asked for, and has been checked; write all results to the run directory.

    If it is interrupted, the measurements so far are written, and the interruption is raised again.

    Args:
        request: The run.
        emit: Called with each line of the table.
        drawn: Whether figures and the report are written.
        beside: The process that draws; None: this one.
        own: What only this kind of workload knows, for its experiment.

    Raises:
        RingleafError: If the options, the topology or the network do not allow it.
    """
    began_s = working_s()
    experiment = request.kind.experiment(request.spec, **own)
    experiment.watched = drawn
    is_warm = experiment.paces is not None and loading.stage() is loading.LOADING
    results = experiment.results
    with RunFolder(request.spec.out, emit, results.files) as folder:
        _begin(request, experiment, folder)
        _measure(request, experiment, folder, emit, drawn=drawn, beside=beside)
        folder.check()
    if experiment.paces is not None:
        if drawn and is_warm:
            taken_s = working_s() - began_s - experiment.taken_s
            note_start(experiment.paces, experiment.spec, taken_s)
        experiment.paces.keep()
    return results


def _begin(request: RunRequest, experiment: Experiment[Any], folder: RunFolder) -> None:
    """Write what was asked for."""
    keep_topology(request.spec.topo, folder)
    about = {"kind": request.kind.name, "versions": versions()} | experiment.plain()
    folder.keep(partial(write_config, folder.path, about, request.typed))
    text = yaml.safe_dump(without_aside(request.typed), sort_keys=False)
    folder.keep(lambda: write_text(folder.path / SPEC, text))


def _measure(
    request: RunRequest,
    experiment: Experiment[Any],
    folder: RunFolder,
    emit: Emit,
    *,
    drawn: bool,
    beside: Drawer | None,
) -> None:
    """Measure all, and write, print and draw what was measured."""
    results = experiment.results
    table = RunTable(results, letters(wide=experiment.spec.wide))
    for line in table.head(experiment.need):
        emit(line)
    with progress(experiment.expected_s) as shown:

        def tell() -> None:
            shown.end()
            for line in table.rows():
                emit(line)

        if experiment.paces is not None:
            shown.stage(loading.stage())
        try:
            with closing(experiment.record(shown, folder)) as measured:
                for done, _ in enumerate(measured, start=1):
                    folder.count(done, experiment.count)
                    tell()
                    folder.keep(partial(write_rows, folder.path, results))
            results.complete = True
        finally:
            folder.has_results |= results.has_any
            tell()
            folder.keep(partial(write_rows, folder.path, results))
            folder.keep(partial(write_log, folder.path, experiment.log))
            results.keep(folder)
            if experiment.watched:
                keep_timeline(folder, results)
            folder.look()
            if results.has_any:
                for line in table.foot():
                    emit(line)
                if drawn:
                    _draw(request, folder, shown, emit, beside)


def _draw(
    request: RunRequest, folder: RunFolder, shown: Progress, emit: Emit, beside: Drawer | None
) -> None:
    """Draw figures and the report by the process beside this one, or here."""
    shown.stage("drawing figures and the report")
    is_wanted = request.spec.figures

    def draw() -> list[Path]:
        paths = beside.draw(folder.path) if beside and is_wanted else None
        if paths is None and not folder.has_failed:
            from ringleaf.experiments.runs.drawing import redraw  # imports matplotlib

            paths = redraw(folder.path, with_figures=is_wanted)
        return paths or []

    folder.keep(lambda: folder.note(draw()))
    shown.clear()
    if (folder.path / REPORT).exists():  # else the disk was full
        emit(f"# report: {folder.path / REPORT}")
