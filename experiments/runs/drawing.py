"""Figures and the report of a run, from nothing but the files of its directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from ringleaf.errors import ConfigError
from ringleaf.experiments.runs import report
from ringleaf.experiments.runs import results
from ringleaf.experiments.runs import sweep_files as swept_files
from ringleaf.experiments.figures import sweeps as figures
from ringleaf.experiments.figures.links import map_name
from ringleaf.experiments.figures.sheet import given_to, in_column_of
from ringleaf.experiments.figures.style import SUFFIXES
from ringleaf.experiments.figures.tasks import Perform, in_turn
from ringleaf.experiments.records.folder import PLAN, REPORT, write_text
from ringleaf.experiments.workloads.jobs import drawing as jobs
from ringleaf.experiments.workloads.jobs.results import KIND as JOBS
from ringleaf.experiments.setup.network import build_topology, scale_rates
from ringleaf.experiments.workloads.nic import report as nic
from ringleaf.experiments.workloads.nic.results import KIND as NIC
from ringleaf.experiments.spec.options import make_command
from ringleaf.experiments.records.topology_copy import kept_topology
from ringleaf.experiments.workloads.train import drawing as train
from ringleaf.experiments.workloads.train.results import KIND as TRAIN
from ringleaf.experiments.workloads.graph import drawing as work
from ringleaf.experiments.workloads.graph.results import KIND as WORKLOAD

if TYPE_CHECKING:
    from ringleaf.experiments.runs.results import Run


def draw(
    folder: Path, run: Run, graph: nx.Graph[str], command: str, perform: Perform = in_turn
) -> list[Path]:
    """Write the figures and the report of a run into its directory; return the files."""
    with in_column_of(given_to(folder)):
        drawn = figures.draw_all(folder, run, graph, perform)
    stems = [*drawn.svgs, *map(map_name, drawn.topologies)]
    drawings = [folder / "figures" / f"{stem}{suffix}" for stem in stems for suffix in SUFFIXES]
    return [*write_page(folder, run, command, drawn), *drawings]


def write_page(
    folder: Path, run: Run, command: str, drawn: figures.Drawn | None = None
) -> list[Path]:
    """Write the report of a run, with figures if there are any; return the file."""
    drawn = drawn or figures.Drawn({}, {})
    page = report.render(run, command=command, svgs=drawn.svgs, topologies=drawn.topologies)
    write_text(folder / REPORT, page)
    return [folder / REPORT]


def redraw(folder: Path, perform: Perform = in_turn) -> list[Path]:
    """Draw a run of any workload, or a sweep, from its directory; return report and figures.

    Raises:
        ConfigError: If it is no run directory, or nothing was measured.
    """
    if (folder / PLAN).is_file():
        return swept_files.redraw(folder)
    kind = results.read_json(folder / "summary.json").get("kind")
    if kind == TRAIN:
        return train.redraw(folder, perform)
    if kind == JOBS:
        return jobs.redraw(folder, perform)
    if kind == WORKLOAD:
        return work.redraw(folder, perform)
    if kind == NIC:
        return nic.redraw(folder, perform)
    run = results.read_run(folder)
    if not run.rows:
        raise ConfigError(
            f"plot: nothing was measured in this run, got {str(folder)!r}; run it again"
        )
    names = ("rate_bps", "delay_ps", "hosts")
    topo = kept_topology(run.options["topo"], folder)
    graph = build_topology(topo, **{name: run.options[name] for name in names})
    graph = scale_rates(graph, run.options["scale"])
    graph.graph["name"] = run.topology
    return draw(folder, run, graph, make_command(results.read_given(folder)), perform)
