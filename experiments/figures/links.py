"""Figures of the bytes that links carried: over time, and on the topology."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.experiments.figures.looks import look_of
from ringleaf.experiments.figures.style import INK, themed, to_svg, write_figure
from ringleaf.experiments.figures.tasks import Task
from ringleaf.experiments.results import CollectiveRow, LinkSeries, Run, algorithms, rows_of
from ringleaf.topologies import draw as topology
from ringleaf.topologies.graph import Role, link, natural
from ringleaf.units import PS_PER_MS, PS_PER_S, PS_PER_US, format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panels = Sequence[tuple[CollectiveRow, LinkSeries]]

MOST_LINKS = 500
"""The number of links of the largest topology that is drawn link by link."""
_MAP_INCHES = 6.4  # for nodes, so that names can be read at half a page's width
_MOST_ROWS = 240  # of a panel of `draw_links`; neighbours share one beyond that


def is_large(graph: nx.Graph[str]) -> bool:
    """Return whether a topology has too many links for a drawing of each."""
    return graph.number_of_edges() > MOST_LINKS


def largest(run: Run) -> list[tuple[CollectiveRow, LinkSeries]]:
    """Return each algorithm's row and link series at its largest size, if links were recorded."""
    found = []
    for algo in algorithms(run):
        row = rows_of(run, algo)[-1]
        if (algo, row.size_bytes) in run.series:
            found.append((row, run.series[algo, row.size_bytes]))
    return found


def _carried_mb(series: LinkSeries) -> npt.NDArray[np.float64]:
    """Return the total megabytes that each direction of each link carried."""
    carried: npt.NDArray[np.float64] = series.size_bytes.sum(axis=1) / 1e6
    return carried


def map_tasks(target: Path, graph: nx.Graph[str], panels: Panels) -> list[Task]:
    """Return a task for each panel: to draw the bytes that links' directions carried onto a map.

    The topology is the map. All maps have one scale.
    """
    top = max((_carried_mb(series).max(initial=0) for _, series in panels), default=0)
    return [partial(_draw_map, target, graph, row, series, top) for row, series in panels]


def _draw_map(
    target: Path, graph: nx.Graph[str], row: CollectiveRow, series: LinkSeries, top: float
) -> str:
    figure = topology.make_figure(
        graph,
        edge_values=dict(zip(series.links, _carried_mb(series).tolist(), strict=True)),
        value_label="MB sent, headers included",
        title=f"{row.algo}, {format_size(row.size_bytes)} on {graph.name}",
        top=top,
        width=_MAP_INCHES,
    )
    write_figure(figure, target / f"bytes-{row.algo}")
    colors = {topology.INK: "currentColor", **topology.dark_colors()}
    return themed(to_svg(figure, words=True), colors)


def draw_spread(run: Run, graph: nx.Graph[str], panels: Panels) -> Figure:
    """Draw how much the links of each kind carried, for topologies with too many to draw each."""
    import matplotlib.pyplot as plt

    figure: Figure
    order = _order(graph, panels[0][1].links)
    groups = [_group(graph, panels[0][1].links[i]) for i in order]
    starts = _starts(groups)
    width = min(len(panels), 3)
    height = -(-len(panels) // width)
    figure, grid = plt.subplots(
        height, width, figsize=(2.9 * width + 1.4, (0.26 * len(starts) + 0.45) * height + 1.3),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for axes, (row, series) in zip(grid.flat, panels, strict=False):
        carried = np.split(_carried_mb(series)[order], starts[1:])
        _plot_spread(axes, carried, row.algo)
        axes.set_yticks(range(len(starts)), [groups[start] for start in starts], fontsize=8)
        axes.set_title(row.algo, loc="left", fontsize=10)
    _hide_unused(grid, len(panels))
    grid[0][0].set_ylim(len(starts) - 0.5, -0.5)
    grid[0][0].set_xlim(left=0)
    size = format_size(panels[0][0].size_bytes)
    title = f"Bytes by kind of link, {size} on {run.topology}; "
    title += "marker: median; thick: 10 to 90 % of the links; thin: all of them"
    lines = wrap(title, 40 + 36 * (width - 1))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=10)
    figure.supxlabel("MB sent per direction of a link, with headers", fontsize=10)
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


def draw_links(run: Run, graph: nx.Graph[str], panels: Panels) -> Figure:
    """Draw how busy each direction of each link was over time, at the largest size."""
    import matplotlib.pyplot as plt

    figure: Figure
    width = min(len(panels), 3)
    height = -(-len(panels) // width)
    figure, grid = plt.subplots(
        height, width, figsize=(3.3 * width + 1.4, 2.7 * height + 0.6),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    longest_ps = max(row.time_ps for row, _ in panels)
    unit, unit_ps = ("ms", PS_PER_MS) if longest_ps > 5 * PS_PER_MS else ("µs", PS_PER_US)
    image: Any = None
    for axes, (row, series) in zip(grid.flat, panels, strict=False):
        image = _heat_map(axes, series, graph, unit_ps)
        axes.axvline(row.time_ps / unit_ps, color=INK, linewidth=0.8, linestyle=":")
        axes.set_title(row.algo, loc="left", fontsize=10)
        axes.set_xlim(0, longest_ps * 1.02 / unit_ps)
    _hide_unused(grid, len(panels))
    figure.supxlabel(f"{run.clock} time ({unit})", fontsize=10)
    size = format_size(panels[0][0].size_bytes)
    figure.suptitle(f"Link utilisation, {size} on {run.topology}", x=0.01, ha="left", fontsize=11)
    bar = figure.colorbar(image, ax=grid, shrink=0.8, pad=0.01, aspect=30)
    bar.set_label("bytes sent, of what the link's rate allows", fontsize=9)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    bar.outline.set_visible(False)
    return figure


def _heat_map(axes: Axes, series: LinkSeries, graph: nx.Graph[str], unit_ps: int) -> Any:
    order = _order(graph, series.links)
    groups = [_group(graph, series.links[i]) for i in order]
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
    rates = np.array([float(link(graph, *ends).rate_bps) for ends in series.links])
    room_bytes = rates * series.bin_ps / (8 * PS_PER_S)  # as integers, they would overflow
    shares: npt.NDArray[np.float64] = series.size_bytes / room_bytes[:, None]
    return shares


def _tier(graph: nx.Graph[str], node: str) -> int:
    data = graph.nodes[node]
    return -1 if data["role"] is Role.HOST else int(data["tier"])


def _place(graph: nx.Graph[str], ends: tuple[str, str]) -> tuple[Any, ...]:
    """Return a sort key: links upward from the hosts, then sideways, then downward to them."""
    here, there = (_tier(graph, node) for node in ends)
    direction = (there < here) - (there > here)
    height = here * -direction if direction else here
    return direction, height, _group(graph, ends), natural(ends[0]), natural(ends[1])


def _group(graph: nx.Graph[str], ends: tuple[str, str]) -> str:
    return " → ".join(_kind(graph, node) for node in ends)


def _kind(graph: nx.Graph[str], node: str) -> str:
    """Return the name of a node's kind, that of its tier: `edge` for `edge 0.1`."""
    data = graph.nodes[node]
    if data["role"] is Role.HOST:
        return "host"
    name: str = data["label"].rpartition(" ")[0]
    return name or ("router" if graph.graph["servers"] else f"tier {data['tier']}")


def _order(graph: nx.Graph[str], links: Sequence[tuple[str, str]]) -> list[int]:
    return sorted(range(len(links)), key=lambda i: _place(graph, links[i]))


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
