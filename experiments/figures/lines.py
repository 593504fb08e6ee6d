"""Lines over one numeric axis, each named where it ends: for more series than a legend tells apart.

A figure whose cases differ in one number, by three values or more, and in names besides, is drawn
as a line for each name; others have bars, or markers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ringleaf.experiments.figures.looks import look_of
from ringleaf.experiments.figures.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_VALUES = 3
MOST_LINES = 16
ROOM = 0.062
"""The least distance between names, as a part of a panel's height."""

STYLES = ("-", "--", ":", "-.")
_WIDE = 4  # a factor between the least and the largest value from which an axis is logarithmic

Points = Mapping[float, float]
Series = Mapping[tuple[str, ...], Points]


def suits(values: Sequence[object], series: int) -> bool:
    """Return whether a figure is one of lines: over these values, and with so many series."""
    numbers = [value for value in values if isinstance(value, int | float)]
    return len(set(numbers)) == len(values) >= LEAST_VALUES and 1 < series <= MOST_LINES


def draw_lines(axes: Axes, series: Series, *, named: bool = True) -> None:
    """Draw a line for each series, with its name at its end; equal lines have one name.

    Args:
        axes: The panel. Its y axis goes from 0 on.
        series: Points by name, of which the first part is an algorithm, whose look it has; further
            parts make the line's style.
        named: Whether there are names.
    """
    values = sorted({x for points in series.values() for x in points})
    if values[0] > 0 and values[-1] / values[0] > _WIDE:
        axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()
    seconds = list(dict.fromkeys(name[1:] for name in series))
    for name, points in series.items():
        look = look_of(name[0])
        axes.plot(
            list(points), list(points.values()), color=look.color, marker=look.marker,
            markersize=5, linestyle=STYLES[seconds.index(name[1:]) % len(STYLES)],
        )  # fmt: skip
    top = 1.05 * max(y for points in series.values() for y in points.values())
    axes.set_ylim(0, top or 1)
    if named:
        _name_ends(axes, series, top or 1)


def _name_ends(axes: Axes, series: Series, top: float) -> None:
    """Write names to the right of the panel, without overlaps, and lead from the lines to them."""
    from matplotlib.patches import ConnectionPatch

    alike: dict[tuple[tuple[float, float], ...], list[tuple[str, ...]]] = {}
    for name, points in series.items():
        alike.setdefault(tuple(sorted(points.items())), []).append(name)
    ends = sorted((line[-1][1] / top, line) for line in alike)
    for place, (end, line) in zip(spread([end for end, _ in ends]), ends, strict=True):
        names = alike[line]
        color = look_of(names[0][0]).color if len(names) == 1 else INK
        text = ", ".join(" ".join(name) for name in names)
        axes.text(
            1.06, place, text, transform=axes.transAxes, va="center", fontsize=8, color=color
        )  # fmt: skip
        lead = ConnectionPatch(
            (line[-1][0], end * top), (1.05, place), axes.transData, axes.transAxes,
            color=color, linewidth=0.5, clip_on=False,
        )  # fmt: skip
        lead.set_in_layout(False)
        axes.add_artist(lead)


def spread(places: Sequence[float]) -> list[float]:
    """Return ascending places that are `ROOM` apart, near the given ascending ones, from 0 to 1."""
    positions: list[float] = []
    for place in places:
        positions.append(max(place, positions[-1] + ROOM if positions else 0.0))
    if positions and positions[-1] > 1:
        limit = 1.0
        for i in reversed(range(len(positions))):
            positions[i] = min(positions[i], limit)
            limit = positions[i] - ROOM
    return positions
