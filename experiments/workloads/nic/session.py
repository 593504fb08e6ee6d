"""A run on NICs from start to end: table on stdout, files in its folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import yaml

from ringleaf.experiments.records.columns import fold, letters
from ringleaf.experiments.records.folder import REPORT, RunFolder, write_text
from ringleaf.experiments.runs import loading
from ringleaf.experiments.runs.console import to_terminal
from ringleaf.experiments.runs.results import now, versions, write_config, write_log
from ringleaf.experiments.workloads.jobs.session import JobsProgress
from ringleaf.experiments.workloads.nic import results, table
from ringleaf.experiments.workloads.nic.network import connecting, graph_of
from ringleaf.experiments.workloads.nic.results import NicResults
from ringleaf.experiments.workloads.nic.workload import Row, SomeSpec, Workload
from ringleaf.topologies.graph import hosts

if TYPE_CHECKING:
    import networkx as nx

Emit = Callable[[str], None]


def run(
    workload: Workload[SomeSpec], spec: SomeSpec, given: Mapping[str, Any], emit: Emit
) -> NicResults:
    """Run a workload on all systems that are compared; write all results to the run directory.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    graph = graph_of(spec)
    workload.check(spec, len(hosts(graph)))
    with RunFolder(spec.out, emit, results.FILES) as out:
        return _run(workload, spec, given, emit, graph, out)


def _run(
    workload: Workload[SomeSpec],
    spec: SomeSpec,
    given: Mapping[str, Any],
    emit: Emit,
    graph: nx.Graph[str],
    out: RunFolder,
) -> NicResults:
    config = {"kind": results.KIND, "offload": workload.name, "versions": versions()} | spec.plain()
    out.keep(partial(write_config, spec.out, config, given=given, started=now()))
    plain = {name: value for name, value in given.items() if name != "out"}
    text = yaml.safe_dump(plain, sort_keys=False) if plain else ""
    out.keep(lambda: write_text(spec.out / "spec.yaml", text))
    about = table.about(workload, spec, graph)
    most = letters(wide=spec.wide)
    columns = table.columns_of(workload, most)
    for each in fold(table.head(workload, about, columns), most):
        emit(each)
    count, rows = workload.count(spec), list[Row]()
    found = NicResults(workload.name, table.clock_of(spec), about, rows)
    progress = JobsProgress(1, to_terminal())
    progress.stage(loading.stage())
    start_s = time.monotonic()
    try:
        with connecting(spec, graph) as connect:
            progress.begin(workload.name)
            for row in workload.run(spec, graph, connect):
                rows.append(row)
                progress.clear()
                emit(table.line(workload.columns, row, columns))
                out.keep(
                    partial(
                        results.write_all,
                        spec.out,
                        found,
                        spec.plain(),
                        complete=len(rows) == count,
                    )
                )
                progress.tell(len(rows) / count, 0, 0)
                out.count(len(rows), count)
    finally:
        progress.clear()
    wall_s = time.monotonic() - start_s
    for each in fold(table.foot(rows, wall_s), most):
        emit(each)
    out.keep(partial(write_log, spec.out, [f"{wall_s:.3f} s of wall clock"]))
    progress.stage("drawing figures and the report")
    out.keep(lambda: out.note(_draw(spec)))
    progress.clear()
    if (spec.out / REPORT).exists():  # else the disk was full
        emit(f"# report: {spec.out / REPORT}")
    out.check()
    return found


def _draw(spec: Any) -> Any:
    from ringleaf.experiments.workloads.nic.report import redraw  # imports matplotlib

    return redraw(spec.out, with_figures=spec.figures)
