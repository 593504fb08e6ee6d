"""Drawings of topologies, with or without a value on each direction of each link."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from pathlib import Path
from textwrap import wrap

import networkx as nx
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

from ringleaf.core.disk import write_bytes
from ringleaf.core.plain_matplotlib import plain_settings
from ringleaf.core.units import format_count, format_rate
from ringleaf.core.wrapping import wrapped
from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.graph import (
    Point,
    Role,
    directions,
    hosts,
    kind,
    link,
    natural,
    switches,
)
from ringleaf.topologies.layout import placed

FORMATS = ("png", "svg", "pdf")
DOTS_PER_INCH = 150

HOST_COLOR = "#cfe0f1"
TIER_COLORS = ("#fde2b3", "#f8c7a4", "#e6b8cf", "#c9c3e6", "#bfe0d4")
LINE_COLOR = "#8a929c"
IDLE_COLOR = "#d3d8de"
FRAME_COLOR = "#f3f4f6"
INK = "#2b2f36"

SHADES = 12
"""Number of steps in the colour scale of links' values."""
_LIGHT_SCALE = ("#f6c65b", "#f08a3c", "#d9482b", "#9d1c36", "#4f0c2e")  # darker is more
_DARK_SCALE = ("#5c3a1e", "#a34a1f", "#e0692e", "#f6a94a", "#fff0b3")  # lighter is more

MOST_RATES = 5
"""The most rates of links that a drawing tells apart."""
_TITLE, _NOTE, _SAMPLE = 0.19, 0.135, 0.17  # inches, the heights of lines
_SAMPLE_WIDTH = 1.15
_WIDE = 5.0  # inches; narrower sheets have narrower margins

EdgeValues = Mapping[tuple[str, str], float]
"""(from, to) -> value of that direction of the link; directions left out count as 0."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The places and sizes of a drawing's parts, in inches from the lower left corner."""

    at: dict[str, Point]
    size: dict[str, Point]  # of each node's glyph
    scale: Point  # inches per unit of `pos`
    width: float
    height: float

    def place(self, graph: nx.Graph[str], pos: Point) -> Point:
        """Return the place of a point whose coordinates are in the units of nodes' `pos`."""
        node = next(iter(graph))
        return self.moved(
            node, (pos[0] - graph.nodes[node]["pos"][0], pos[1] - graph.nodes[node]["pos"][1])
        )

    def moved(self, node: str, by: Point) -> Point:
        """Return the place of a point that is `by` units of `pos` away from a node."""
        (x, y), (scale_x, scale_y) = self.at[node], self.scale
        return (x + by[0] * scale_x, y + by[1] * scale_y)


def draw(
    graph: nx.Graph[str],
    path: Path | str,
    *,
    node_colors: Mapping[str, str] | None = None,
    edge_values: EdgeValues | None = None,
    value_label: str = "",
    title: str | None = None,
) -> None:
    """Write a drawing; the same graph and values give the same bytes.

    Args:
        graph: A topology.
        path: Ends in .png, .svg or .pdf.
        node_colors: Colours (of matplotlib) for some nodes, instead of their tier's.
        edge_values: Colours each direction of each link by its value.
        value_label: Meaning and unit of the values, beside the colour bar.
        title: Instead of the graph's name.

    Raises:
        ConfigError: If `path` ends otherwise.
        TopologyError: If a colour or value is for a node or link that does not exist.
        OSError: If the file can't be written.
    """
    ending = Path(path).suffix.removeprefix(".").lower()
    if ending not in FORMATS:
        raise ConfigError(f"draw: file must end in .{', .'.join(FORMATS)}, got {str(path)!r}")
    dates = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with plain_settings({"svg.hashsalt": "ringleaf"}):
        figure = make_figure(
            graph,
            node_colors=node_colors,
            edge_values=edge_values,
            value_label=value_label,
            title=title,
        )
        data = io.BytesIO()  # matplotlib makes other errors of a disk's while it writes to a file
        figure.savefig(data, format=ending, dpi=DOTS_PER_INCH, metadata=dates[ending])
    write_bytes(Path(path), data.getvalue())


def make_figure(
    graph: nx.Graph[str],
    *,
    node_colors: Mapping[str, str] | None = None,
    edge_values: EdgeValues | None = None,
    value_label: str = "",
    title: str | None = None,
    top: float | None = None,
    width: float = 11,
) -> Figure:
    """Return the drawing itself; see `draw`.

    `top` is the end of the scale of values, so that drawings can share one. Default: the largest.
    `width` is the width of the nodes together in inches, if their names fit into that.
    """
    _check(graph, node_colors or {}, edge_values or {})
    graph = placed(graph)
    head = _Head(graph, title or graph.name, values=edge_values is not None)
    sheet = _lay_out(graph, width, head)
    figure = Figure(figsize=(sheet.width, sheet.height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, sheet.width), ylim=(0, sheet.height))
    axes.axis("off")
    _draw_frames(axes, graph, sheet)
    if edge_values is None:
        _draw_links(axes, graph, sheet)
    else:
        _draw_values(figure, axes, graph, sheet, edge_values, value_label, top)
    _draw_nodes(axes, graph, sheet, node_colors or {})
    head.write(axes, sheet)
    _write_tiers(axes, graph, sheet)
    return figure


def _check(graph: nx.Graph[str], colors: Mapping[str, str], values: EdgeValues) -> None:
    for node in colors:
        if node not in graph:
            raise TopologyError(f"draw {graph.name}: no such node, got {node!r}")
    for a, b in values:
        if not graph.has_edge(a, b):
            raise TopologyError(f"draw {graph.name}: no link joins {a!r} and {b!r}")


def _lay_out(graph: nx.Graph[str], inches: float, head: _Head) -> Sheet:
    """Choose a scale at which names can be read, on a sheet of 5 to 18 inches if possible.

    A narrower sheet is made if `inches` are fewer.
    """
    bar = head.values
    places = {node: graph.nodes[node]["pos"] for node in graph}
    low = (min(x for x, _ in places.values()), min(y for _, y in places.values()))
    span_x = max(x for x, _ in places.values()) - low[0]
    span_y = max(y for _, y in places.values()) - low[1]
    left, right, bottom = 0.5, 0.5 + 1.1 * bar, 0.4
    least = min(_WIDE + 1.1 * bar, inches)
    if graph.graph["layout"] == "tiers":
        left += 0.5
        narrowest = 0.165 if graph.graph["servers"] else 0.125
        room = inches
        if inches < _WIDE:
            left, right, narrowest = 0.55, 0.3 + 0.8 * bar, 0.88 * narrowest
            room = inches - left - right
        scale_x = min(0.62, max(narrowest, room / (span_x + 1)))
        scale = (scale_x, max(1.3, span_x * scale_x * 0.14))
    else:
        side = min(0.95, max(0.6, inches / (span_x + 1)))
        scale = (side, side)
        left, right, bottom = (each + 0.3 * side for each in (left, right, bottom))
    width = max(left + right + span_x * scale[0], least)
    top = head.height(width) + (0 if graph.graph["layout"] == "tiers" else 0.3 * scale[0])
    left += (width - left - right - span_x * scale[0]) / 2
    at = {
        node: (left + (x - low[0]) * scale[0], bottom + (y - low[1]) * scale[1])
        for node, (x, y) in places.items()
    }
    size = _glyphs_of_grid(graph, scale[0])
    if graph.graph["layout"] == "tiers":
        size = _glyphs_of_tiers(graph, scale[0])
    return Sheet(at, size, scale, width, bottom + top + span_y * scale[1])


def _glyphs_of_grid(graph: nx.Graph[str], scale: float) -> dict[str, Point]:
    side = {Role.HOST: 0.17 * scale, Role.SWITCH: 0.36 * scale}
    return {node: (side[graph.nodes[node]["role"]],) * 2 for node in graph}


def _glyphs_of_tiers(graph: nx.Graph[str], scale: float) -> dict[str, Point]:
    """Return sizes: squares, or tall boxes with room for a turned name where a tier is crowded."""
    servers = graph.graph["servers"]
    host = min(0.27, (0.22 if servers else 0.8) * scale)
    size = dict.fromkeys(hosts(graph), (host, host))
    tiers: dict[int, list[str]] = {}
    for switch in switches(graph):
        tiers.setdefault(graph.nodes[switch]["tier"], []).append(switch)
    for tier, members in tiers.items():
        places = sorted(graph.nodes[switch]["pos"][::-1] for switch in members)
        gaps = (b[1] - a[1] for a, b in pairwise(places) if a[0] == b[0])  # in a row of the tier
        spacing = scale * min(gaps, default=1)
        width = min(0.4, spacing * (0.46 if servers and tier == 0 else 0.72))
        size |= dict.fromkeys(members, (width, width if width > 0.25 else 0.38))
    return size


def _strokes(graph: nx.Graph[str], sheet: Sheet, a: str, b: str) -> list[tuple[Point, Point]]:
    """Return the strokes that stand for the direction from `a` to `b`, each as (start, end)."""
    stubs: Mapping[str, Point] | None = graph.edges[a, b].get("stubs")
    if stubs is None:
        return [(sheet.at[a], sheet.at[b])]
    strokes = []
    if a in stubs:
        strokes.append((sheet.at[a], sheet.moved(a, stubs[a])))
    if b in stubs:
        strokes.append((sheet.moved(b, stubs[b]), sheet.at[b]))
    return strokes


def _to_the_right(stroke: tuple[Point, Point], distance: float) -> tuple[Point, Point]:
    (x0, y0), (x1, y1) = stroke
    length = hypot(x1 - x0, y1 - y0)
    dx, dy = distance * (y1 - y0) / length, distance * (x0 - x1) / length
    return (x0 + dx, y0 + dy), (x1 + dx, y1 + dy)


def _line_width(graph: nx.Graph[str]) -> float:
    """Return the line width in points: less where there are many links."""
    return float(min(1.3, max(0.35, 9 / graph.number_of_edges() ** 0.5)))


def _draw_frames(axes: Axes, graph: nx.Graph[str], sheet: Sheet) -> None:
    """Draw boards, and the lines that stand for row and column switches."""
    margin, scale = 0.3, sheet.scale[0]
    for (west, north), (east, south) in graph.graph["frames"]:
        corner = sheet.place(graph, (west - margin, south - margin))
        size = ((east - west + 2 * margin) * scale, (north - south + 2 * margin) * scale)
        style = f"round,pad=0,rounding_size={0.15 * scale}"
        axes.add_artist(FancyBboxPatch(corner, *size, boxstyle=style, fc=FRAME_COLOR, ec="none"))
    for switch in switches(graph):
        if "rail" in graph.nodes[switch]:
            rail = [sheet.place(graph, end) for end in graph.nodes[switch]["rail"]]
            axes.add_collection(
                LineCollection([rail], colors=_color(graph, switch), linewidths=2.5)
            )


def _slowest_bps(graph: nx.Graph[str]) -> int:
    return min((each.rate_bps for _, _, each in directions(graph)), default=0)


def _thickness(rate_bps: int, slowest_bps: int) -> float:
    """Return how much thicker a link of this rate is than the slowest one."""
    return float(min((rate_bps / slowest_bps) ** 0.5, 3))


def _draw_links(axes: Axes, graph: nx.Graph[str], sheet: Sheet) -> None:
    strokes, widths = [], []
    width, slowest_bps = _line_width(graph), _slowest_bps(graph)
    for a, b in graph.edges:
        link_strokes = _strokes(graph, sheet, a, b)
        rate_bps = max(link(graph, *ends).rate_bps for ends in ((a, b), (b, a)))
        strokes += link_strokes
        widths += [width * _thickness(rate_bps, slowest_bps)] * len(link_strokes)
    axes.add_collection(LineCollection(strokes, colors=LINE_COLOR, linewidths=widths))


def _shades(ends: Sequence[str]) -> list[str]:
    """Return the steps of a scale, from its least to its largest value."""
    smooth = LinearSegmentedColormap.from_list("traffic", list(ends))
    return [to_hex(smooth(step / (SHADES - 1))) for step in range(SHADES)]


def dark_colors() -> dict[str, str]:
    """Return the replacement of each colour on a dark page; ink takes the page's own."""
    tiers = ("#5f4a1e", "#63402a", "#5a3450", "#443d6b", "#2c5446")
    return {
        HOST_COLOR: "#2c4a68",
        **dict(zip(TIER_COLORS, tiers, strict=True)),
        IDLE_COLOR: "#3a4149",
        FRAME_COLOR: "#20262b",
        **dict(zip(_shades(_LIGHT_SCALE), _shades(_DARK_SCALE), strict=True)),
    }


def _draw_values(
    figure: Figure,
    axes: Axes,
    graph: nx.Graph[str],
    sheet: Sheet,
    values: EdgeValues,
    label: str,
    top: float | None,
) -> None:
    """Draw one line per direction, on the right as it goes; idle ones are grey."""
    top = top or max(values.values(), default=0) or 1
    palette = ListedColormap(_shades(_LIGHT_SCALE))
    lane, slowest_bps = max(0.9, 1.6 * _line_width(graph)), _slowest_bps(graph)
    for idle, width in ((True, 0.8 * lane), (False, lane)):
        strokes, shades, widths = [], [], []
        for (a, b), value in _directions(graph, values):
            if (value == 0) is idle:
                link_strokes = _strokes(graph, sheet, a, b)
                thick = _thickness(link(graph, a, b).rate_bps, slowest_bps)
                aside = 0.6 * lane * thick / 72 + 0.004
                strokes += [_to_the_right(stroke, aside) for stroke in link_strokes]
                widths += [width * thick] * len(link_strokes)
                shades += [IDLE_COLOR if idle else palette(value / top)] * len(link_strokes)
        axes.add_collection(LineCollection(strokes, colors=shades, linewidths=widths))
    height = min(3.0, sheet.height - 1.4)
    box = (
        (sheet.width - (1.05 if sheet.width >= _WIDE else 0.75)) / sheet.width,
        (sheet.height - height) / 2 / sheet.height,
        0.14 / sheet.width,
        height / sheet.height,
    )
    shown = ScalarMappable(Normalize(0, top), palette)
    bar = figure.colorbar(shown, cax=figure.add_axes(box))
    bar.set_label("\n".join(wrap(label, int(14 * height))), color=INK, fontsize=8)
    bar.ax.tick_params(labelsize=7, colors=INK)
    bar.outline.set_visible(False)


def _directions(
    graph: nx.Graph[str], values: EdgeValues
) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield both directions of all links, smallest value first, so that the largest is on top."""
    both = [way for a, b in graph.edges for way in ((a, b), (b, a))]
    yield from sorted(((way, values.get(way, 0)) for way in both), key=lambda item: item[1])


def _draw_nodes(axes: Axes, graph: nx.Graph[str], sheet: Sheet, colors: Mapping[str, str]) -> None:
    for node in sorted(graph, key=natural):
        (x, y), (width, height) = sheet.at[node], sheet.size[node]
        is_host = graph.nodes[node]["role"] is Role.HOST
        axes.add_artist(  # `add_patch` looks for the ends of curves, but the axes have theirs
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle=f"round,pad=0,rounding_size={width * (0.1 if is_host else 0.25)}",
                fc=colors.get(node, _color(graph, node)),
                ec=INK,
                lw=min(0.8, width * 3),
                zorder=3,
            )
        )
        if not is_host:
            _write_inside(axes, sheet, node)
        elif not graph.graph["servers"]:
            _write_below(axes, sheet, node)


def _color(graph: nx.Graph[str], node: str) -> str:
    if graph.nodes[node]["role"] is Role.HOST:
        return HOST_COLOR
    return TIER_COLORS[graph.nodes[node]["tier"] % len(TIER_COLORS)]


def _write_inside(axes: Axes, sheet: Sheet, node: str) -> None:
    width, height = sheet.size[node]
    if height > width:
        size, rotation = min(7.5, 72 * width * 0.85, 72 * height / (0.72 * len(node))), 90
    else:
        size, rotation = min(8.5, 72 * width / (0.7 * len(node))), 0
    name = Text(
        *sheet.at[node], node, ha="center", va="center", fontsize=size, rotation=rotation, color=INK
    )
    name.set_zorder(4)
    axes.add_artist(name)


def _write_below(axes: Axes, sheet: Sheet, node: str) -> None:
    """Write the name of a host below it, turned where there is little room."""
    (x, y), pitch = sheet.at[node], sheet.scale[0]
    rotation, size = 0, min(8, 30 * pitch)
    if pitch < 0.28:
        rotation, size = 90, max(4.5, min(7, 55 * pitch))
    y -= sheet.size[node][1] * 0.6 + 0.03
    axes.text(x, y, node, ha="center", va="top", rotation=rotation, fontsize=size, color=INK)


class _Head:
    """Text above a drawing: its title, counts, and the rates that widths of lines mean."""

    def __init__(self, graph: nx.Graph[str], title: str, *, values: bool) -> None:
        self.values = values
        self._title = title
        counts = (
            f"{format_count(len(hosts(graph)), 'host')}, "
            f"{format_count(len(switches(graph)), 'switch')}, "
        )
        counts += f"{format_count(graph.number_of_edges(), 'link')}"
        rates = sorted({each.rate_bps for _, _, each in directions(graph)})
        self._samples: list[tuple[str, float]] = []
        if len(rates) == 1:
            counts += f" of {format_rate(rates[0])}"
        elif len(rates) <= MOST_RATES:
            self._samples = [
                (format_rate(rate), _line_width(graph) * _thickness(rate, rates[0]))
                for rate in rates
            ]
        else:
            ends = [format_rate(rate) for rate in (rates[0], rates[-1])]
            counts += f" of {' to '.join(ends)}: the faster, the thicker"
        if graph.graph["servers"]:
            counts += "; a small square is host i, inside switch i"
        self._notes = [counts]
        if values:
            self._notes.append(
                "a line per direction, keeping to the right; grey where nothing went"
            )

    def _lines(self, width: float) -> tuple[list[str], list[str]]:
        """Return the title and the notes, in lines that fit a sheet."""
        title = wrapped(self._title, int(9.5 * (width - 0.5)))
        notes = [line for note in self._notes for line in wrap(note, int(15 * (width - 0.5)))]
        return title, notes

    def height(self, width: float) -> float:
        """Return the inches that it takes on a sheet of this width."""
        title, notes = self._lines(width)
        lines = _TITLE * (len(title) - 1) + _NOTE * (len(notes) - 1)
        return 0.9 + lines + self._sample_lines(width) * _SAMPLE

    def _sample_lines(self, width: float) -> int:
        return -(-len(self._samples) // self._in_a_line(width))

    def _in_a_line(self, width: float) -> int:
        return max(1, int((width - 0.5) / _SAMPLE_WIDTH))

    def write(self, axes: Axes, sheet: Sheet) -> None:
        """Write the text on a sheet, from its top down, and a sample of each width of line."""
        title, notes = self._lines(sheet.width)
        y = sheet.height - 0.2
        axes.text(0.3, y, "\n".join(title), fontsize=11, weight="bold", color=INK, va="top")
        y -= 0.24 + _TITLE * (len(title) - 1)
        axes.text(0.3, y, "\n".join(notes), fontsize=8, color=LINE_COLOR, va="top")
        y -= 0.09 + _NOTE * len(notes)
        for number, (name, width) in enumerate(self._samples):
            line, place = divmod(number, self._in_a_line(sheet.width))
            at = (0.3 + place * _SAMPLE_WIDTH, y - line * _SAMPLE)
            sample = Line2D((at[0], at[0] + 0.25), (at[1], at[1]), color=LINE_COLOR)
            sample.set_linewidth(width)
            axes.add_line(sample)
            axes.text(at[0] + 0.32, at[1], name, fontsize=8, color=LINE_COLOR, va="center")


def _write_tiers(axes: Axes, graph: nx.Graph[str], sheet: Sheet) -> None:
    """Write the kinds of each tier's nodes to the left of it."""
    if graph.graph["layout"] != "tiers":
        return
    tiers = _kinds_of_tiers(graph)
    first = (hosts(graph)[0], ["host"])
    for node, kinds in tiers if graph.graph["servers"] else [first, *tiers]:
        row, name = sheet.at[node][1], "\n".join(kinds[:3])
        axes.text(0.15, row, name, fontsize=8, va="center", color=INK)


def _kinds_of_tiers(graph: nx.Graph[str]) -> list[tuple[str, list[str]]]:
    """Return the first switch of each tier, and the kinds of all."""
    tiers: dict[int, list[str]] = {}
    for switch in switches(graph):
        tiers.setdefault(graph.nodes[switch]["tier"], []).append(switch)
    return [
        (own[0], list(dict.fromkeys(kind(graph, each) for each in own))) for own in tiers.values()
    ]
