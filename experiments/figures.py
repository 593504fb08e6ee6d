"""Figures of a run, from nothing but the files of its directory.

Each is drawn once and written as PNG (screens), PDF (papers) and, for the report, as SVG whose ink
is the page's text colour. Same run, same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from experiments.results import LinkSeries, Row, Run
from ringleaf.units import PS_PER_MS, PS_PER_S, PS_PER_US, format_size
from topologies import draw as topology
from topologies.graph import Role, natural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Mid tones, to be told apart on white and on dark, and by the colour-blind.
_COLORS = {
    "ring": "#3f7fd1",
    "tree": "#92703c",
    "doubletree": "#e08a2b",
    "halvingdoubling": "#1f9d8b",
    "blueconnect": "#9467bd",
    "switchml": "#d62f5c",
    "atp": "#2f8fb5",
    "ps": "#5f6b7a",
    "omnireduce": "#c05fb0",
    "ssar-double": "#e08a2b",
    "ssar-split": "#1f9d8b",
    "dsar-split": "#7a8b2f",
}
_OTHER_COLORS = ("#4f9f5f", "#a05050")
_MARKERS = "osD^vPX*"
_INK = "#1f2328"  # replaced by the page's own in SVG
_STYLE = {
    "font.size": 10,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#80808040",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "ringleaf",
    "pdf.fonttype": 42,
    "path.simplify": True,
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a report embeds: figures as SVG by name, topologies as PNG by algorithm."""

    svgs: dict[str, str]
    topologies: dict[str, bytes]


def draw_all(folder: Path, run: Run, graph: nx.Graph[str]) -> Drawn:
    """Write every figure that the run has data for to `folder`/figures."""
    target = folder / "figures"
    target.mkdir(exist_ok=True)
    with matplotlib_style():
        svgs = {
            "time": save(draw_time(run), target / "time"),
            "busbw": save(draw_busbw(run), target / "busbw"),
        }
        panels = largest(run)
        if panels:
            svgs["links"] = save(draw_links(run, graph, panels), target / "links")
    return Drawn(svgs, {row.algo: _draw_bytes(target, graph, row, s) for row, s in panels})


def _draw_bytes(target: Path, graph: nx.Graph[str], row: Row, series: LinkSeries) -> bytes:
    """Draw what each direction of each link carried onto the topology."""
    carried = series.size_bytes.sum(axis=1) / 1e6
    values = dict(zip(series.links, carried.tolist(), strict=True))
    title = f"{row.algo}, {format_size(row.size_bytes)} on {graph.name}"
    figure = topology.make_figure(
        graph, edge_values=values, value_label="MB sent, headers included", title=title
    )
    return write_figure(figure, target / f"bytes-{row.algo}")


@contextmanager
def matplotlib_style() -> Iterator[None]:
    """How all of our figures look."""
    import matplotlib as mpl

    mpl.use("agg")
    with mpl.rc_context(_STYLE):
        yield


def write_figure(figure: Figure, stem: Path) -> bytes:
    """Write PNG and PDF; return the former."""
    figure.savefig(stem.with_suffix(".pdf"), metadata={"CreationDate": None, "Creator": "Ringleaf"})
    png = stem.with_suffix(".png")
    figure.savefig(png, dpi=150, metadata={"Software": None})
    return png.read_bytes()


def save(figure: Figure, stem: Path) -> str:
    """Write PNG and PDF; return SVG."""
    import matplotlib.pyplot as plt

    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, not anew for each format
    write_figure(figure, stem)
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    plt.close(figure)
    svg = text.getvalue().replace(_INK, "currentColor")
    return re.sub(r"^.*?(?=<svg)", "", svg, count=1, flags=re.DOTALL)


def color_of(algo: str, algos: list[str]) -> str:
    """The colour that an algorithm has in every figure."""
    others = [name for name in algos if name not in _COLORS]
    return _COLORS.get(algo) or _OTHER_COLORS[others.index(algo) % len(_OTHER_COLORS)]


def algorithms(run: Run) -> list[str]:
    """The run's algorithms, in the order they were asked for."""
    return list(dict.fromkeys(row.algo for row in run.rows))


def _rows_of(run: Run, algo: str) -> list[Row]:
    return sorted((row for row in run.rows if row.algo == algo), key=lambda row: row.size_bytes)


def draw_time(run: Run) -> Figure:
    """Time against size, and each algorithm's bound as a dashed line."""
    figure, axes = _sweep_axes(run, _title(run))
    for line in _lines(run):
        line.plot(axes, [row.time_ps / PS_PER_US for row in line.rows])
        line.plot_bound(axes, [row.bound_ps / PS_PER_US for row in line.rows])
    axes.set_yscale("log")
    axes.set_ylabel(f"{run.clock} time (µs)")
    _legend(figure, axes)
    return figure


def draw_busbw(run: Run) -> Figure:
    """Bus bandwidth against size, with the line rate."""
    figure, axes = _sweep_axes(run, _title(run))
    for line in _lines(run):
        line.plot(axes, [row.busbw_gb_s for row in line.rows])
        line.plot_bound(axes, [r.busbw_gb_s * r.time_ps / r.bound_ps for r in line.rows])
    rate_gb_s = run.rate_bps / 8e9
    axes.axhline(rate_gb_s, color=_INK, linewidth=1, linestyle=":")
    axes.annotate(
        f"link rate, {rate_gb_s:g} GB/s", (0.995, rate_gb_s), xycoords=("axes fraction", "data"),
        xytext=(0, 3), textcoords="offset points", ha="right", fontsize=9,
    )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"bus bandwidth in {run.clock} time (GB/s)")
    _legend(figure, axes)
    return figure


def _legend(figure: Figure, axes: Axes) -> None:
    axes.plot([], [], "--", color=_INK, linewidth=1, label="bound of each")
    figure.legend(loc="outside lower center", ncols=4, fontsize=9, columnspacing=1.6)


def _title(run: Run) -> str:
    return f"{run.collective.replace('_', '-').capitalize()}, {run.ranks} ranks on {run.topology}"


class _Line:
    """One algorithm's points in a sweep."""

    def __init__(self, run: Run, algo: str, index: int) -> None:
        self.algo = algo
        self.rows = _rows_of(run, algo)
        self.sizes = [row.size_bytes for row in self.rows]
        self.color = color_of(algo, algorithms(run))
        self.marker = _MARKERS[index % len(_MARKERS)]

    def plot(self, axes: Axes, values: list[float]) -> None:
        axes.plot(
            self.sizes, values, color=self.color, marker=self.marker, markersize=4.5,
            linewidth=1.6, label=self.algo,
        )  # fmt: skip

    def plot_bound(self, axes: Axes, values: list[float]) -> None:
        dash = "_" if len(values) == 1 else ""  # no line goes through one point
        axes.plot(
            self.sizes, values, "--", color=self.color, linewidth=1, alpha=0.8,
            marker=dash, markersize=14,
        )  # fmt: skip


def _lines(run: Run) -> list[_Line]:
    return [_Line(run, algo, index) for index, algo in enumerate(algorithms(run))]


def _sweep_axes(run: Run, title: str) -> tuple[Figure, Axes]:
    import matplotlib.pyplot as plt

    figure: Figure
    figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    sizes = sorted({row.size_bytes for row in run.rows})
    axes.set_xscale("log", base=2)
    ticks = sizes[:: -(-len(sizes) // 9)]
    axes.set_xticks(ticks, [format_size(size) for size in ticks], rotation=0, fontsize=9)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("size of each rank's tensor")
    axes.set_title(title, loc="left", fontsize=11)
    return figure, axes


def draw_links(run: Run, graph: nx.Graph[str], panels: list[tuple[Row, LinkSeries]]) -> Figure:
    """How busy each direction of each link was over time, per algorithm, at the largest size."""
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
        axes.axvline(row.time_ps / unit_ps, color=_INK, linewidth=0.8, linestyle=":")
        axes.set_title(row.algo, loc="left", fontsize=10)
        axes.set_xlim(0, longest_ps * 1.02 / unit_ps)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel(f"{run.clock} time ({unit})")
    size = format_size(panels[0][0].size_bytes)
    figure.suptitle(f"Link utilisation, {size} on {run.topology}", x=0.01, ha="left", fontsize=11)
    bar = figure.colorbar(image, ax=grid, shrink=0.8, pad=0.01, aspect=30)
    bar.set_label("of the link's rate", fontsize=9)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    bar.outline.set_visible(False)
    return figure


def largest(run: Run) -> list[tuple[Row, LinkSeries]]:
    """Each algorithm's largest size, if its links were recorded."""
    found = []
    for algo in algorithms(run):
        row = _rows_of(run, algo)[-1]
        if (algo, row.size_bytes) in run.series:
            found.append((row, run.series[algo, row.size_bytes]))
    return found


def _heat_map(axes: Axes, series: LinkSeries, graph: nx.Graph[str], unit_ps: int) -> Any:
    order = sorted(range(len(series.links)), key=lambda i: _place(graph, series.links[i]))
    links = [series.links[i] for i in order]
    busy = np.ma.masked_equal(utilisation(series, graph)[order], 0)
    end = busy.shape[1] * series.bin_ps / unit_ps
    image = axes.imshow(
        busy, aspect="auto", interpolation="nearest", vmin=0, vmax=1, cmap="viridis",
        extent=(0, end, len(links), 0),
    )  # fmt: skip
    _label_groups(axes, [_group(graph, link) for link in links])
    axes.grid(visible=False)
    return image


def utilisation(series: LinkSeries, graph: nx.Graph[str]) -> npt.NDArray[np.float64]:
    """Share of each link's rate that was used, (links, bins)."""
    rates = np.array([graph.edges[link]["link"].rate_bps for link in series.links])
    room_bytes = rates * series.bin_ps / (8 * PS_PER_S)
    shares: npt.NDArray[np.float64] = series.size_bytes / room_bytes[:, None]
    return shares


def _tier(graph: nx.Graph[str], node: str) -> int:
    data = graph.nodes[node]
    return -1 if data["role"] is Role.HOST else int(data["tier"])


def _place(graph: nx.Graph[str], link: tuple[str, str]) -> tuple[Any, ...]:
    """Sort key: upward links from the hosts, then sideways, then downward to the hosts."""
    here, there = (_tier(graph, node) for node in link)
    direction = (there < here) - (there > here)
    height = here * -direction if direction else here
    return direction, height, _group(graph, link), natural(link[0]), natural(link[1])


def _group(graph: nx.Graph[str], link: tuple[str, str]) -> str:
    return " → ".join(_kind(graph, node) for node in link)


def _kind(graph: nx.Graph[str], node: str) -> str:
    """What nodes of its tier are called: `edge` of `edge 0.1`."""
    data = graph.nodes[node]
    if data["role"] is Role.HOST:
        return "host"
    name: str = data["label"].rpartition(" ")[0]
    return name or ("router" if graph.graph["servers"] else f"tier {data['tier']}")


def _label_groups(axes: Axes, groups: list[str]) -> None:
    starts = [i for i, group in enumerate(groups) if i == 0 or groups[i - 1] != group]
    ends = [*starts[1:], len(groups)]
    for start in starts[1:]:
        axes.axhline(start, color="#80808080", linewidth=0.6)
    axes.set_yticks(
        [(a + b) / 2 for a, b in zip(starts, ends, strict=True)],
        [groups[start] for start in starts],
        fontsize=8,
    )
    axes.tick_params(axis="y", length=0)
