"""One run from start to end: table on stdout, progress on stderr, files in its folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import networkx as nx
import torch

from experiments import figures, report, results, table
from experiments.network import Connect, build_topology, connecting, scale_rates
from experiments.options import make_command, resolve
from experiments.results import Run
from experiments.runner import Experiment, Measurement
from ringleaf.errors import ConfigError

Emit = Callable[[str], None]


def run(
    given: Mapping[str, str], *, emit: Emit, connect: Connect | None = None, drawn: bool = True
) -> Run:
    """Do what the options say, and leave everything in the run directory, figures if `drawn`.

    If it is interrupted, what was measured so far is written, and the interruption goes on.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    spec = resolve(given)
    torch.set_num_threads(
        1
    )  # additions are short: waking a second thread takes longer than they do
    experiment = Experiment(spec)
    run = experiment.new_run()
    results.write_config(spec.out, run, given=given, started=datetime.now(UTC).isoformat())
    log: list[str] = []
    try:
        if connect is None:
            with connecting(spec, experiment.graph) as its_own:
                _measure(experiment, its_own, run, emit, log)
        else:
            _measure(experiment, connect, run, emit, log)
        run.complete = True
    finally:
        results.write_results(spec.out, run)
        results.write_log(spec.out, log)
        if run.rows and drawn:
            page = draw(spec.out, run, experiment.graph, make_command(given))
            emit(f"# report: {page}")
    return run


def _measure(
    experiment: Experiment, connect: Connect, run: Run, emit: Emit, log: list[str]
) -> None:
    for line in table.head(run):
        emit(line)
    folder = experiment.spec.out
    (folder / "links.npz").unlink(missing_ok=True)  # an earlier run's
    with _progress(experiment.measurements, emit) as step:
        for measurement in experiment.run(connect):
            row = measurement.row
            run.rows.append(row)
            run.series[row.algo, row.size_bytes] = measurement.series
            results.write_rows(folder, run)
            log.append(_log_line(measurement))
            step(table.line(row))
    for line in table.foot(run):
        emit(line)


def _log_line(measurement: Measurement) -> str:
    row, wall_s = measurement.row, measurement.wall_s
    return (
        f"{row.algo} {row.size_bytes} B: {wall_s:.3f} s of wall clock, {row.events} events, "
        f"{row.packet_hops / max(wall_s, 1e-9):.0f} packet-hops/s"
    )


@contextmanager
def _progress(total: int, emit: Emit) -> Iterator[Emit]:
    """Yield what to call with each row; on a terminal, a bar stands below the last one."""
    if not sys.stderr.isatty():
        yield emit
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True, redirect_stdout=False)
    task = bar.add_task("measuring", total=total)

    def step(line: str) -> None:
        bar.stop()  # takes the bar away, so that the row does not run into it
        emit(line)
        bar.advance(task)
        bar.start()

    bar.start()
    try:
        yield step
    finally:
        bar.stop()


def draw(folder: Path, run: Run, graph: nx.Graph[str], command: str) -> Path:
    """Write the figures and the report of a run, from what its directory has; return the page."""
    drawn = figures.draw_all(folder, run, graph)
    page = report.render(run, command=command, svgs=drawn.svgs, topologies=drawn.topologies)
    path = folder / "report.html"
    path.write_text(page)
    return path


def redraw(folder: Path) -> Path:
    """Make figures and report anew from a run directory; return the page.

    Raises:
        ConfigError: If it is no run directory, or nothing was measured.
    """
    run = results.read_run(folder)
    if not run.rows:
        raise ConfigError(f"plot: nothing was measured in this run, got {str(folder)!r}; run it")
    names = ("rate_bps", "delay_ps", "hosts")
    graph = build_topology(run.options["topo"], **{name: run.options[name] for name in names})
    graph = scale_rates(graph, run.options["scale"])
    return draw(folder, run, graph, make_command(results.read_given(folder)))
