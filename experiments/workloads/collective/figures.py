"""Figures of a run, from nothing but the files of its directory.

Each is drawn once and written as PNG (screens), PDF (papers) and, for the report, as SVG whose ink
is the page's text colour. Same run, same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from ringleaf.collectives.algorithm import Look
from ringleaf.core.faults import parse_faults
from ringleaf.core.units import format_count, format_size
from ringleaf.experiments.explain.findings import Explained
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.clock_unit import unit_of
from ringleaf.experiments.figures.looks import looks_of
from ringleaf.experiments.figures.style import INK, mark_logarithmic, save, subplots
from ringleaf.experiments.records.slow_links import with_slow_links
from ringleaf.experiments.records.topology_copy import kept_topology
from ringleaf.experiments.setup.network import build_topology, scale_rates
from ringleaf.experiments.workloads.collective.circuit_figures import draw_circuits, panels_of
from ringleaf.experiments.workloads.collective.explained_figures import (
    draw_time_space,
    draw_waterfalls,
)
from ringleaf.experiments.workloads.collective.link_figures import (
    MAP,
    draw_links,
    draw_map,
    draw_spread,
    is_large,
    largest,
)
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
    algorithms,
    is_one_size,
    largest_bytes,
    rows_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringleaf.experiments.workloads.collective.results import (
        CollectiveResults,
    )


def tasks(run: CollectiveResults, folder: Path) -> dict[str, Callable[[Path], str]]:
    """Return functions that draw every figure that a run has data for, by name.

    Each is given the files to write, without their suffix, and returns SVG. The longest tasks come
    first. Links' loads are drawn on the topology, which is built anew, from the run's
    options and the copy of its file in the run directory.
    """
    figures: dict[str, Callable[[], Figure]] = {}
    panels = largest(run)
    graph = _graph_of(run, folder) if panels else nx.Graph()
    if panels:
        figures["links"] = partial(draw_links, run, graph, panels)
    if panels and is_large(graph):
        figures["utilisation"] = partial(draw_spread, run, graph, panels)
    explained = largest_explained(run)
    figures |= {
        f"timespace-{row.algo}": partial(draw_time_space, row, run.clock) for row in explained
    }
    if explained:
        figures["waterfall"] = partial(draw_waterfalls, explained, run.clock)
    if changed := panels_of(run):
        figures["circuits"] = partial(draw_circuits, run, changed)
    figures["time"] = partial(draw_time, run)
    figures["busbw"] = partial(draw_busbw, run)
    maps = {} if is_large(graph) else {f"{MAP}{row.algo}": (row, series) for row, series in panels}
    drawn: dict[str, Callable[[Path], str]] = {
        name: partial(draw_map, graph, *panel) for name, panel in maps.items()
    }
    return drawn | {name: partial(_save, draw) for name, draw in figures.items()}


def _save(draw: Callable[[], Figure], stem: Path) -> str:
    return save(draw(), stem)


def _graph_of(run: CollectiveResults, folder: Path) -> nx.Graph[str]:
    names = ("rate_bps", "delay_ps", "hosts")
    topo = run.options["topo"]
    copy = kept_topology(topo, folder)
    graph = build_topology(topo, copy=copy, **{name: run.options[name] for name in names})
    graph = scale_rates(graph, run.options["scale"])
    graph.graph["name"] = run.topology
    faults = parse_faults(",".join(run.options.get("faults", ())), "faults")
    return with_slow_links(graph, [each.at_scale(run.options["scale"]) for each in faults])


def largest_explained(run: CollectiveResults) -> list[Explained]:
    """Return the explanations of the rows of the largest size, in their order."""
    size = largest_bytes(run)
    keys = [(row.algo, row.size_bytes) for row in run.rows if row.size_bytes == size]
    return [run.explained[key] for key in keys if key in run.explained]


def draw_time(run: CollectiveResults) -> Figure:
    """Draw time against size, with bounds and floors; bars if there is one size."""
    unit = unit_of(min(row.time_ps for row in run.rows))
    label = f"{run.clock} time ({unit.name})"

    def in_units(_: CollectiveRow, time_ps: int) -> float:
        return time_ps / unit.ps

    if is_one_size(run):
        return _draw_bars(run, label, in_units)
    figure, axes = _sweep_axes(run, _title(run))
    for line in _lines(run):
        line.plot(axes, [row.time_ps / unit.ps for row in line.rows])
        line.plot_bound(axes, [row.bound_ps / unit.ps for row in line.rows])
    _plot_floors(axes, run, in_units)
    axes.set_yscale("log")
    mark_logarithmic(axes.yaxis)
    axes.set_ylabel(sheet.broken(label, min(3.2, 0.4 + 0.6 * figure.get_figwidth()), 10))
    _legend(figure, axes)
    return figure


def draw_busbw(run: CollectiveResults) -> Figure:
    """Draw bus bandwidth against size, with the line rate; bars if there is one size."""
    label = f"bus bandwidth in {run.clock} time (GB/s)"
    rate_gb_s, rate = _reference(run)
    if is_one_size(run):
        figure = _draw_bars(run, label, _busbw)
        _mark_rate(figure.axes[0], rate_gb_s, rate)
        return figure
    figure, axes = _sweep_axes(run, _title(run))
    for line in _lines(run):
        line.plot(axes, [row.busbw_gb_s for row in line.rows])
        line.plot_bound(axes, [_busbw(row, row.bound_ps) for row in line.rows])
    _plot_floors(axes, run, _busbw)
    axes.axhline(rate_gb_s, color=INK, linewidth=1, linestyle=":")
    axes.annotate(
        rate, (0.005, rate_gb_s), xycoords=("axes fraction", "data"),
        xytext=(0, 3), textcoords="offset points", ha="left", fontsize=9,
    )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_ylabel(sheet.broken(label, min(3.2, 0.4 + 0.6 * figure.get_figwidth()), 10))
    _legend(figure, axes)
    return figure


Value = Callable[[CollectiveRow, int], float]
"""A function from a row and a time in picoseconds to the value that is drawn."""


def _busbw(row: CollectiveRow, time_ps: int) -> float:
    """Return the bus bandwidth in GB/s that a row would have if it took a given time."""
    return row.busbw_gb_s * row.time_ps / time_ps


def _plot_floors(axes: Axes, run: CollectiveResults, value: Value) -> None:
    """Draw each floor once; if there are two, the later one is for algorithms whose hosts add."""
    floors = {tuple(row.floor_ps for row in line.rows): line for line in _lines(run)}
    ordered = sorted((floor for floor in floors if all(floor)), reverse=True)
    names = ("if hosts add", "if switches do") if len(ordered) > 1 else ("of any",)
    for floor, name, dash in zip(ordered, names, ("-", "-."), strict=False):
        line = floors[floor]
        values = [value(row, row.floor_ps) for row in line.rows]
        axes.plot(line.sizes, values, dash, color=INK, linewidth=0.6, label=f"floor {name}")


def _legend(figure: Figure, axes: Axes) -> None:
    axes.plot([], [], "--", color=INK, linewidth=1, label="bound of each")
    labels = axes.get_legend_handles_labels()[1]
    columns = sheet.entries(labels, figure.get_figwidth(), 4)
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9, columnspacing=1.6)


def _title(run: CollectiveResults) -> str:
    return (
        f"{run.collective.replace('_', '-').capitalize()}, {format_count(run.ranks, 'rank')} "
        f"on {run.topology}"
    )


class _Line:
    """One algorithm's points in a sweep."""

    def __init__(self, run: CollectiveResults, algo: str, look: Look) -> None:
        self.algo = algo
        self.rows = rows_of(run, algo)
        self.sizes = [row.size_bytes for row in self.rows]
        self.look = look

    def plot(self, axes: Axes, values: list[float]) -> None:
        """Draw values, one for each size."""
        axes.plot(
            self.sizes, values, color=self.look.color, marker=self.look.marker, markersize=5.5,
            linewidth=1.6, label=self.algo,
        )  # fmt: skip

    def plot_bound(self, axes: Axes, values: list[float]) -> None:
        """Draw the algorithm's bound as a dashed line."""
        dash = "_" if len(values) == 1 else ""  # no line goes through one point
        axes.plot(
            self.sizes, values, "--", color=self.look.color, linewidth=1, alpha=0.8,
            marker=dash, markersize=14,
        )  # fmt: skip


def _lines(run: CollectiveResults) -> list[_Line]:
    return [_Line(run, algo, look) for algo, look in looks_of(algorithms(run)).items()]


def _sweep_axes(run: CollectiveResults, title: str) -> tuple[Figure, Axes]:
    figure: Figure
    algos = algorithms(run)
    wide = sheet.size(6.4, 0)[0]
    legend = 0.2 * -(-(len(algos) + 2) // sheet.entries([*algos, "floor if hosts add"], wide, 4))
    figure, axes = subplots(figsize=(wide, min(4.2, 1.5 + 0.6 * wide) + legend))
    sizes = sorted({row.size_bytes for row in run.rows})
    axes.set_xscale("log", base=2)
    ticks = sizes[:: -(-len(sizes) // max(3, min(9, int(1.3 * wide))))]
    axes.set_xticks(ticks, [format_size(size) for size in ticks], rotation=0, fontsize=9)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("size of each rank's tensor")
    figure.suptitle(sheet.broken(title, wide), x=0.01, ha="left", fontsize=11)
    return figure, axes


def _draw_bars(run: CollectiveResults, label: str, value: Value) -> Figure:
    """Draw a bar per algorithm, with its figure, and lines across it: its bound and its floor."""
    rows = [rows_of(run, algo)[-1] for algo in algorithms(run)]
    figure: Figure
    inches = sheet.size(6.4, 1.7 + 0.3 * len(rows))
    figure, axes = subplots(figsize=inches)
    looks = looks_of(row.algo for row in rows)
    for place, row in enumerate(rows):
        length = value(row, row.time_ps)
        axes.barh(place, length, 0.62, color=looks[row.algo].color)
        bound = value(row, row.bound_ps)
        axes.plot([bound] * 2, [place - 0.42, place + 0.42], color=INK, linewidth=1.4)
        if row.floor_ps:
            floor = value(row, row.floor_ps)
            axes.plot([floor] * 2, [place - 0.42, place + 0.42], color=INK, linewidth=0.6)
        axes.annotate(
            f"{length:.4g}", (1, place), xycoords=("axes fraction", "data"), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [row.algo for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="y", visible=False)
    below = "line across a bar: its bound; thin: its floor"
    text = "\n".join(sheet.broken(each, inches[0], 10) for each in (label, below))
    figure.supxlabel(text, fontsize=10)
    title = f"{_title(run)}, {format_size(rows[0].size_bytes)}"
    figure.suptitle(sheet.broken(title, inches[0]), x=0.01, ha="left", fontsize=11)
    return figure


def _reference(run: CollectiveResults) -> tuple[float, str]:
    """Return the rate that bandwidths are compared with, in 10^9 bytes/s, and its label."""
    rate_gb_s = run.reference.rate_bps / 8e9
    whose = "" if len(run.links) == 1 else "hosts' " if run.reference.is_of_hosts else "most "
    return rate_gb_s, f"{whose}link rate, {rate_gb_s:g} GB/s"


def _mark_rate(axes: Axes, rate_gb_s: float, rate: str) -> None:
    """Draw the links' rate through all bars, named above the first."""
    axes.axvline(rate_gb_s, color=INK, linewidth=1, linestyle=":")
    axes.set_xlim(right=max(axes.get_xlim()[1], 1.15 * rate_gb_s))
    is_left = rate_gb_s < 0.6 * axes.get_xlim()[1]
    low, high = axes.get_ylim()
    axes.set_ylim(low, high - 0.7)
    axes.annotate(
        rate, (rate_gb_s, high - 0.55), va="top", fontsize=8,
        xytext=(3 if is_left else -3, 0), textcoords="offset points",
        ha="left" if is_left else "right",
    )  # fmt: skip
