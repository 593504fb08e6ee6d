"""Figures of explained rows: waterfalls from bound to time, and messages over space and time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringleaf.core.units import format_size
from ringleaf.experiments.explain.findings import (
    IMBALANCE,
    LATENCY,
    OTHER,
    PARTS,
    PROCESSORS,
    QUEUEING,
    RESENDS,
    TITLES,
    WAITING,
    Arrow,
    Diagram,
    Explained,
)
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.clock_unit import unit_of
from ringleaf.experiments.figures.looks import look_of
from ringleaf.experiments.figures.style import INK, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 9
COLUMNS = 3
COLORS = {
    LATENCY: "#3f7fd1",
    QUEUEING: "#e08a2b",
    IMBALANCE: "#9467bd",
    WAITING: "#1f9d8b",
    RESENDS: "#d62f5c",
    PROCESSORS: "#92703c",
    OTHER: "#8a8f98",
}
_WHOLE = "#c3c8ce"
"""The colour of bounds and times, which no part has."""
_AGAIN = COLORS[RESENDS]
_MOST_HEADS = 600
_BAND = 3  # messages in a band, at least; fewer are lines
_MOST_NAMES = 32  # of lanes, that are told


def draw_waterfalls(rows: Sequence[Explained], clock: str) -> Figure:
    """Draw for each row the steps from its bound to its time; those without time are left out."""
    shown = rows[:MOST_PANELS]
    columns = sheet.across(min(COLUMNS, max(len(shown), 2)), 2.8)
    lines = -(-len(shown) // columns)
    figure: Figure
    figure, grid = subplots(
        lines, columns, figsize=sheet.size(3.6 * columns, 2.5 * lines + 0.3), squeeze=False,
    )  # fmt: skip
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    unit = unit_of(min(row.time_ps for row in shown))
    for axes, row in zip(grid.flat, shown, strict=False):
        _waterfall(axes, row, figure.get_figwidth() / columns, unit.ps)
    figure.supxlabel(f"{clock} time ({unit.name})", fontsize=10)
    return figure


def _waterfall(axes: Axes, row: Explained, width: float, unit_ps: int) -> None:
    at = bound = row.bound.time_ps / unit_ps
    time = row.time_ps / unit_ps
    parts = [name for name in PARTS if row.lost_ps[name]]
    room = max(time - bound, 0.02 * time)
    left = max(bound - 0.35 * room, 0.0)
    axes.barh(0, bound - left, 0.62, left=left, color=_WHOLE)
    for place, name in enumerate(parts, start=1):
        part = row.lost_ps[name] / unit_ps
        axes.barh(place, part, 0.62, left=at, color=COLORS[name])
        axes.plot([at] * 2, [place - 1.31, place + 0.31], color=INK, linewidth=0.6)
        at += part
        _write_width(axes, place, (at - part, at), bound, room)
    end = len(parts) + 1
    axes.plot([at] * 2, [end - 1.31, end + 0.31], color=INK, linewidth=0.6)
    axes.barh(end, time - left, 0.62, left=left, color=_WHOLE)
    names = ["bound", *(TITLES[name] for name in parts), "time"]
    axes.set_yticks(range(end + 1), names, fontsize=8)
    axes.set_ylim(end + 0.6, -0.6)
    axes.set_xlim(left, bound + 1.12 * room)
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="y", visible=False)
    title = f"{row.algo}, {format_size(row.size_bytes)}: {bound:.4g} to {time:.4g}"
    axes.set_title(sheet.broken(title, width - 1.3, 9), loc="left", fontsize=9)


def _write_width(
    axes: Axes, place: int, ends: tuple[float, float], bound: float, room: float
) -> None:
    """Write how long a part is: in its bar if that is wide, or else where there is more room."""
    wide = ends[1] - ends[0]
    is_inside = wide > 0.3 * room
    is_late = ends[1] - bound > 0.6 * room
    at, sign = (ends[0], -1) if is_late and not is_inside else (ends[1], 1)
    axes.annotate(
        f"{wide:.4g}", (at, place), xytext=(-3 if is_inside else 3 * sign, 0), va="center",
        fontsize=8, textcoords="offset points", ha="right" if is_inside or is_late else "left",
        color="#ffffff" if is_inside else INK,
    )  # fmt: skip


def draw_time_space(row: Explained, clock: str) -> Figure:
    """Draw the messages of a row: a lane for each node, time to the right, an arrow each."""
    diagram = row.diagram
    figure: Figure
    height = 1.9 + 0.16 * max(len(diagram.lanes), 8)
    inches = sheet.size(8.6, height)
    figure, axes = subplots(figsize=inches)
    for lane in range(len(diagram.lanes)):
        axes.axhline(lane, color=INK, linewidth=0.4, alpha=0.5)
    unit = unit_of(row.time_ps)
    _arrows(axes, diagram, look_of(row.algo).color, unit.ps)
    if diagram.path:
        axes.plot(
            [time_ps / unit.ps for _, time_ps in diagram.path],
            [lane for lane, _ in diagram.path],
            color=INK, linewidth=1.3, linestyle="--", label="path of causes",
        )  # fmt: skip
    every = -(-len(diagram.lanes) // _MOST_NAMES)
    axes.set_yticks(range(0, len(diagram.lanes), every), diagram.lanes[::every], fontsize=8)
    axes.set_ylim(len(diagram.lanes) - 0.4, -0.6)
    axes.set_xlim(0, row.time_ps / unit.ps)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"{clock} time ({unit.name})")
    title = f"{row.algo}, {format_size(row.size_bytes)}: {_caption(diagram)}"
    figure.suptitle(sheet.broken(title, inches[0]), x=0.01, ha="left", fontsize=11)
    columns = sheet.entries(axes.get_legend_handles_labels()[1], inches[0], 4)
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9)
    return figure


def _caption(diagram: Diagram) -> str:
    """Return what is drawn."""
    drawn = sum(arrow.count for arrow in diagram.arrows)
    if drawn < diagram.messages:
        return f"{drawn:,} of {diagram.messages:,} {diagram.each}"
    if len(diagram.arrows) < diagram.messages:
        return f"{diagram.messages:,} {diagram.each}, in bands"
    return f"{diagram.messages:,} {diagram.each}"


def _arrows(axes: Axes, diagram: Diagram, color: str, unit_ps: int) -> None:
    from matplotlib.collections import LineCollection, PolyCollection

    resent = _AGAIN if color != _AGAIN else COLORS[QUEUEING]
    for ink, title in ((color, "sent, and all there"), (resent, "sent again")):
        drawn = [arrow for arrow in diagram.arrows if bool(arrow.again) == (ink == resent)]
        lines = [_ends(arrow, unit_ps) for arrow in drawn if arrow.count < _BAND]
        bands = [_outline(arrow, unit_ps) for arrow in drawn if arrow.count >= _BAND]
        axes.add_collection(PolyCollection(bands, facecolor=ink, alpha=0.35, lw=0))
        label = title if drawn else None
        axes.add_collection(LineCollection(lines, color=ink, lw=0.9, label=label))
        if lines and len(lines) <= _MOST_HEADS:  # an arrow's head is where all of it is there
            heads = [line[1] for line in lines]
            axes.plot(*zip(*heads, strict=True), ls="none", marker="o", ms=2, color=ink)


def _ends(arrow: Arrow, unit_ps: int) -> list[tuple[float, float]]:
    """Return the two ends of an arrow: time in units, and lane."""
    return [
        (arrow.sent_ps[0] / unit_ps, float(arrow.src)),
        (arrow.there_ps[1] / unit_ps, float(arrow.dst)),
    ]


def _outline(arrow: Arrow, unit_ps: int) -> list[tuple[float, float]]:
    """Return the corners of a band."""
    sent = [(time_ps / unit_ps, float(arrow.src)) for time_ps in arrow.sent_ps]
    there = [(time_ps / unit_ps, float(arrow.dst)) for time_ps in arrow.there_ps]
    return [*sent, *reversed(there)]
