"""A replay from start to end: table on stdout, progress on stderr, files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ringleaf.compiling import working_s
from ringleaf.experiments.estimates.estimate import note_start
from ringleaf.experiments.records.columns import fold, letters
from ringleaf.experiments.records.folder import REPORT, RunFolder, write_text
from ringleaf.experiments.runs import loading
from ringleaf.experiments.runs.console import to_terminal
from ringleaf.experiments.runs.drawer import Drawer
from ringleaf.experiments.runs.results import now, versions, write_config, write_log
from ringleaf.experiments.spec.options import file_name, resolve_workload
from ringleaf.experiments.spec.workload import WorkloadSpec
from ringleaf.experiments.workloads.graph import results as files
from ringleaf.experiments.workloads.graph import table
from ringleaf.experiments.workloads.graph.results import WorkResults
from ringleaf.experiments.workloads.graph.runner import WorkExperiment
from ringleaf.experiments.workloads.jobs.session import JobsProgress

Emit = Callable[[str], None]


def plan(experiment: WorkExperiment) -> dict[str, Any]:
    """Return the plan of a spec: its options, and the packets that a run takes."""
    graph = experiment.matched.graph
    return experiment.spec.plain() | {
        "ranks": len(graph.ranks),
        "nodes": sum(len(work.nodes) for work in graph.ranks),
        "meetings": len(experiment.matched.meetings),
        "hosts_of_ranks": experiment.hosts,
        "data": experiment.data,
        "packet_hops": experiment.packet_hops,
    }


def run(
    given: Mapping[str, Any], *, emit: Emit, drawn: bool = True, beside: Drawer | None = None
) -> WorkResults:
    """Replay the workload of the options; write all results to the run directory.

    Figures and the report are written if `drawn`, by the process `beside` if there is one.

    Raises:
        RingleafError: If an option, the workload, the topology or the network does not allow it.
    """
    began_s, is_warm = working_s(), loading.stage() is loading.LOADING
    experiment = WorkExperiment(resolve_workload(given))
    with RunFolder(experiment.spec.out, emit, files.FILES) as out:
        found = _run(experiment, given, emit, out, drawn=drawn, beside=beside)
    if drawn and is_warm:
        taken_s = working_s() - began_s - experiment.taken_s
        note_start(experiment.paces, experiment.spec, taken_s)
    experiment.paces.keep()
    return found


def _run(
    experiment: WorkExperiment,
    given: Mapping[str, Any],
    emit: Emit,
    out: RunFolder,
    *,
    drawn: bool,
    beside: Drawer | None,
) -> WorkResults:
    folder = out.path
    planned = plan(experiment)
    config = {"kind": files.KIND, "versions": versions()} | planned
    out.keep(partial(write_config, folder, config, given=given, started=now()))
    about = table.about(experiment)
    most = letters(wide=experiment.spec.wide)
    columns = table.columns_of(most)
    for line in fold(table.head(experiment, columns), most):
        emit(line)
    progress = JobsProgress(1, to_terminal())
    progress.stage(loading.stage())
    progress.begin(experiment.matched.graph.name, experiment.expected_s)
    captures = folder / "pcap" if experiment.spec.pcap else None
    replay_s = working_s()
    try:
        found = experiment.run(
            lambda share, done, wanted: progress.tell(share, 0, 0),
            progress.pass_hops,
            capture=captures,
        )
        experiment.note_pace(working_s() - replay_s)
    finally:
        progress.clear()
    for row in found.rows:
        emit(table.line(row, columns))
    for line in fold(table.foot(found, experiment.wall_s), most):
        emit(line)
    if captures is not None:
        out.note(sorted(captures.glob("*.pcapng")))
    text = yaml.safe_dump({name: given[name] for name in given if name != "out"}, sort_keys=False)
    out.keep(lambda: write_text(folder / "spec.yaml", text))
    out.keep(partial(files.write_all, folder, found, about, planned))
    out.keep(partial(write_log, folder, [_log_line(found, experiment.wall_s)]))
    if experiment.spec.chakra:
        out.keep(lambda: out.note(_write_traces(folder, experiment, found)))
    if drawn:
        progress.stage("drawing figures and the report")
        out.keep(lambda: out.note(_draw(experiment.spec, found, about, text, beside)))
        progress.clear()
        if (folder / REPORT).exists():  # else the disk was full
            emit(f"# report: {folder / REPORT}")
    out.check()
    return found


def _write_traces(folder: Path, experiment: WorkExperiment, found: WorkResults) -> list[Path]:
    from ringleaf.hosts.workload.formats.files import write_trace  # loads protobuf

    graph, place = experiment.matched.graph, folder / "chakra"
    place.mkdir(exist_ok=True)
    return write_trace(graph, "chakra", place, file_name(graph.name), found.times)


def _log_line(found: WorkResults, wall_s: float) -> str:
    rate = found.packet_hops / max(wall_s, 1e-9)
    return f"{wall_s:.3f} s of wall clock, {found.packet_hops} packet-hops, {rate:.0f} per second"


def _draw(
    spec: WorkloadSpec, found: WorkResults, about: Sequence[str], text: str, beside: Drawer | None
) -> list[Path]:
    """Draw figures and the report by the process beside this one, or here; return the files."""
    drawn = beside.draw(spec.out) if beside and spec.figures else None
    if drawn is None:
        from ringleaf.experiments.workloads.graph import drawing  # imports matplotlib

        if not spec.figures:
            return drawing.write_page(spec.out, found, about, text)
        drawn = drawing.draw(spec.out, found, about, text)
    return drawn
