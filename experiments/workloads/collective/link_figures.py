"""Figures of how busy links were: over time, and on the topology."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.core.units import PS_PER_S, format_size
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.clock_unit import unit_of
from ringleaf.experiments.figures.looks import look_of
from ringleaf.experiments.figures.style import INK, subplots, themed, to_svg, write_figure
from ringleaf.experiments.records.slow_links import busy_ps as busy_of
from ringleaf.experiments.records.slow_links import is_slow
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
    LinkSeries,
    algorithms,
    rows_of,
)
from ringleaf.topologies.graph import Role, kind, link, natural, switches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringleaf.experiments.workloads.collective.results import (
        CollectiveResults,
    )

MAP = "utilisation-"
"""How the names of maps begin, before an algorithm's."""

Panels = Sequence[tuple[CollectiveRow, LinkSeries]]

MOST_LINKS = 500
"""The number of links of the largest topology that is drawn link by link."""
_MAP_INCHES = 6.4  # for nodes, so that names can be read at half a page's width
_MOST_ROWS = 240  # of a panel of `draw_links`; neighbours share one beyond that
_MOST_NAMES = 32  # rows of a panel whose links are named one by one
_ROW_INCHES = 0.13  # of a row that is named


def is_large(graph: nx.Graph[str]) -> bool:
    """Return whether a topology has too many links for a drawing of each."""
    return graph.number_of_edges() > MOST_LINKS


def largest(run: CollectiveResults) -> list[tuple[CollectiveRow, LinkSeries]]:
    """Return each algorithm's row and link series at its largest size, if links were recorded."""
    rows = []
    for algo in algorithms(run):
        row = rows_of(run, algo)[-1]
        if (algo, row.size_bytes) in run.series:
            rows.append((row, run.series[algo, row.size_bytes]))
    return rows


def busy_percent(
    row: CollectiveRow, series: LinkSeries, graph: nx.Graph[str]
) -> npt.NDArray[np.float64]:
    """Return how much of a row's time each direction of each link was busy, in percent."""
    sent = series.size_bytes.sum(axis=1).astype(np.float64)
    busy_ps = sent * 8 * PS_PER_S / _rates(series, graph)
    for number, ends in _slow(graph, series):
        busy_ps[number] = busy_of(graph, ends, series.size_bytes[number], series.bin_ps).sum()
    percents: npt.NDArray[np.float64] = np.minimum(100 * busy_ps / max(row.time_ps, 1), 100)
    return percents


def draw_map(graph: nx.Graph[str], row: CollectiveRow, series: LinkSeries, stem: Path) -> str:
    """Draw the utilisation of links' directions onto a map of the topology; return SVG.

    All maps have one scale, from 0 to 100 %.
    """
    from ringleaf.topologies import draw as topology  # imports matplotlib

    busy = busy_percent(row, series, graph).tolist()
    figure = topology.make_figure(
        graph,
        edge_values=dict(zip(series.links, busy, strict=True)),
        value_label="% of the time busy",
        title=f"{row.algo}, {format_size(row.size_bytes)} on {graph.name}",
        top=100,
        width=sheet.size(_MAP_INCHES, 0)[0],
    )
    write_figure(figure, stem)
    colors = {topology.INK: "currentColor", **topology.dark_colors()}
    return themed(to_svg(figure, words=True), colors)


def draw_spread(run: CollectiveResults, graph: nx.Graph[str], panels: Panels) -> Figure:
    """Draw how busy the links of each kind were, for topologies with too many to draw each."""
    figure: Figure
    order, groups = _in_order(graph, panels[0][1].links)
    starts = _starts(groups)
    width = sheet.across(min(len(panels), 3), 2.0, 1.2)
    height = -(-len(panels) // width)
    inches = sheet.size(2.9 * width + 1.4, (0.26 * len(starts) + 0.45) * height + 1.3)
    figure, grid = subplots(
        height, width, figsize=inches, sharex=True, sharey=True, squeeze=False,
    )  # fmt: skip
    for axes, (row, series) in zip(grid.flat, panels, strict=False):
        busy = np.split(busy_percent(row, series, graph)[order], starts[1:])
        _plot_spread(axes, busy, row.algo)
        axes.set_yticks(range(len(starts)), [groups[start] for start in starts], fontsize=8)
        axes.set_title(row.algo, loc="left", fontsize=10)
    _hide_unused(grid, len(panels))
    grid[0][0].set_ylim(len(starts) - 0.5, -0.5)
    grid[0][0].set_xlim(0, 104)
    size = format_size(panels[0][0].size_bytes)
    title = f"Utilisation by kind of link, {size} on {run.topology}; "
    title += "marker: median; thick: 10 to 90 % of the links; thin: all of them"
    figure.suptitle(sheet.broken(title, inches[0], 10), x=0.01, ha="left", fontsize=10)
    label = "% of the time in which a link's direction was busy"
    figure.supxlabel(sheet.broken(label, inches[0], 10), fontsize=10)
    return figure


def _plot_spread(axes: Axes, groups: Sequence[npt.NDArray[np.float64]], algo: str) -> None:
    look = look_of(algo)
    for place, carried in enumerate(groups):
        least, low, middle, high, most = np.percentile(carried, (0, 10, 50, 90, 100))
        axes.plot((least, most), (place, place), color=look.color, linewidth=1)
        axes.plot((low, high), (place, place), color=look.color, linewidth=4, alpha=0.6)
        axes.plot(middle, place, marker=look.marker, color=look.color, markersize=6)


def _hide_unused(grid: npt.NDArray[Any], used: int) -> None:
    """Hide the panels that are left over; those above the gaps get labels of time."""
    for axes in grid.flat[used:]:
        axes.set_visible(False)
    columns = grid.shape[1]
    for axes in grid.flat[max(0, used - columns) : used]:
        axes.tick_params(labelbottom=True)


def draw_links(run: CollectiveResults, graph: nx.Graph[str], panels: Panels) -> Figure:
    """Draw how busy each direction of each link was over time, at the largest size."""
    figure: Figure
    width = sheet.across(min(len(panels), 3), 2.0, 1.4)
    height = -(-len(panels) // width)
    rows = len(panels[0][1].links)
    tall = max(2.7, 0.5 + _ROW_INCHES * rows) if rows <= _MOST_NAMES else 2.7
    inches = sheet.size(3.3 * width + 1.4, tall * height + 0.6)
    figure, grid = subplots(
        height, width, figsize=inches, sharex=True, sharey=True, squeeze=False,
    )  # fmt: skip
    longest_ps = max(row.time_ps for row, _ in panels)
    unit, unit_ps = unit_of(longest_ps)
    image: Any = None
    for axes, (row, series) in zip(grid.flat, panels, strict=False):
        image = _heat_map(axes, series, graph, unit_ps)
        axes.axvline(row.time_ps / unit_ps, color=INK, linewidth=0.8, linestyle=":")
        axes.set_title(row.algo, loc="left", fontsize=10)
        axes.set_xlim(0, longest_ps * 1.02 / unit_ps)
    _hide_unused(grid, len(panels))
    figure.supxlabel(f"{run.clock} time ({unit})", fontsize=10)
    title = f"Link utilisation, {format_size(panels[0][0].size_bytes)} on {run.topology}"
    figure.suptitle(sheet.broken(title, inches[0]), x=0.01, ha="left", fontsize=11)
    bar = figure.colorbar(image, ax=grid, shrink=0.8, pad=0.01, aspect=30)
    bar.set_label("of what the link's rate allows", fontsize=9)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    return figure


def _heat_map(axes: Axes, series: LinkSeries, graph: nx.Graph[str], unit_ps: int) -> Any:
    order, groups = _in_order(graph, series.links)
    if len(order) <= _MOST_NAMES:
        groups = [" → ".join(series.links[i]) for i in order]
    shares, groups = _fold(utilisation(series, graph)[order], groups)
    busy = np.ma.masked_equal(shares, 0)
    end = busy.shape[1] * series.bin_ps / unit_ps
    image = axes.imshow(
        busy, aspect="auto", interpolation="nearest", vmin=0, vmax=1, cmap="viridis",
        extent=(0, end, len(groups), 0),
    )  # fmt: skip
    _label_groups(axes, groups)
    axes.grid(visible=False)
    return image


def _fold(
    shares: npt.NDArray[np.float64], groups: list[str]
) -> tuple[npt.NDArray[np.float64], list[str]]:
    """Join neighbouring links of a kind to their mean until there are rows for a figure."""
    every = -(-len(groups) // _MOST_ROWS)
    starts = _starts(groups)
    cuts = [
        place
        for start, stop in zip(starts, [*starts[1:], len(groups)], strict=True)
        for place in range(start, stop, every)
    ]
    counts = np.diff([*cuts, len(groups)])
    return np.add.reduceat(shares, cuts, axis=0) / counts[:, None], [groups[cut] for cut in cuts]


def utilisation(series: LinkSeries, graph: nx.Graph[str]) -> npt.NDArray[np.float64]:
    """Return the share of each link's rate that was used, (links, bins)."""
    room_bytes = _rates(series, graph) * series.bin_ps / (8 * PS_PER_S)
    shares: npt.NDArray[np.float64] = series.size_bytes / room_bytes[:, None]
    for number, ends in _slow(graph, series):
        busy_ps = busy_of(graph, ends, series.size_bytes[number], series.bin_ps)
        shares[number] = busy_ps / series.bin_ps
    return shares


def _slow(graph: nx.Graph[str], series: LinkSeries) -> list[tuple[int, tuple[str, str]]]:
    """Return the numbers of directions whose links faults slow down, and their ends."""
    return [(number, ends) for number, ends in enumerate(series.links) if is_slow(graph, ends)]


def _rates(series: LinkSeries, graph: nx.Graph[str]) -> npt.NDArray[np.float64]:
    """Return links' rates in bit/s; as integers, their products with times would overflow."""
    return np.array([float(link(graph, *ends).rate_bps) for ends in series.links])


def _tier(graph: nx.Graph[str], node: str) -> int:
    data = graph.nodes[node]
    return -1 if data["role"] is Role.HOST else int(data["tier"])


def _kind(graph: nx.Graph[str], node: str) -> str:
    """Return the name of a node's kind, as the topology's drawing has it: `edge` for `edge 0.1`.

    Where switches have no kinds, it is their names: `s0 to s7`.
    """
    named = kind(graph, node)
    data = graph.nodes[node]
    if data["role"] is Role.HOST or named != "server":
        return named
    if graph.graph["servers"]:
        return "router"
    tier = [each for each in switches(graph) if graph.nodes[each]["tier"] == data["tier"]]
    return tier[0] if len(tier) == 1 else f"{tier[0]} to {tier[-1]}"


def _in_order(
    graph: nx.Graph[str], links: Sequence[tuple[str, str]]
) -> tuple[list[int], list[str]]:
    """Return links' numbers in the order of figures, and the kinds of both ends of each.

    Links upward from the hosts come first, then those sideways, then those downward to them.
    """
    nodes = sorted({node for ends in links for node in ends}, key=natural)
    number = {node: i for i, node in enumerate(nodes)}
    kinds = {node: _kind(graph, node) for node in nodes}
    groups = [f"{kinds[here]} → {kinds[there]}" for here, there in links]
    tiers = np.array([_tier(graph, node) for node in nodes])
    ends = np.array([(number[here], number[there]) for here, there in links]).T
    here, there = tiers[ends]
    direction = np.sign(here - there)
    height = np.where(direction == 0, here, -here * direction)
    by_name = np.unique(groups, return_inverse=True)[1]
    order: list[int] = np.lexsort((*ends[::-1], by_name, height, direction)).tolist()
    return order, [groups[i] for i in order]


def _starts(groups: list[str]) -> list[int]:
    return [i for i, group in enumerate(groups) if i == 0 or groups[i - 1] != group]


def _label_groups(axes: Axes, groups: list[str]) -> None:
    starts = _starts(groups)
    ends = [*starts[1:], len(groups)]
    for start in starts[1:]:
        axes.axhline(start, color="#80808080", linewidth=0.6)
    axes.set_yticks(
        [(a + b) / 2 for a, b in zip(starts, ends, strict=True)],
        [groups[start] for start in starts],
        fontsize=8,
    )
    axes.tick_params(axis="y", length=0)
