"""A figure of all runs of a sweep: times against the option with most values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from ringleaf.experiments.figures.looks import look_of
from ringleaf.experiments.figures.style import matplotlib_style, save
from ringleaf.units import PS_PER_MS, PS_PER_US, format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 12
COLUMNS = 3
PANEL = 4.2, 3.2  # inches
TITLE_LETTERS = 42  # on a line of a panel's title
MOST_LABELS = 6
"""The most lines of jobs in a panel; more are rows of their own, as no legend tells them apart."""

ROW = 0.2  # inches
COLORS = ("#3f7fd1", "#e08a2b", "#1f9d8b", "#d62f5c", "#9467bd", "#92703c")
MARKERS = "o^sDvP"

Line = Mapping[str, object]


def draw(lines: Sequence[Line], names: Sequence[str], stem: Path) -> str:
    """Write `stem` as PNG and PDF, and return it as SVG.

    Args:
        lines: The rows of all runs, each with the options by which runs differ.
        names: These options.
        stem: Where the figure shall be, without a suffix.
    """
    import matplotlib.pyplot as plt

    apart = told_apart(lines, names)
    axis = axis_of(lines, apart)
    panels = panels_of(lines, [name for name in apart if name != axis])
    columns = min(COLUMNS, max(len(panels), 2))  # one alone would be drawn too large
    rows = -(-len(panels) // columns)
    labels = list(dict.fromkeys(_label(line) for line in lines)) if of_jobs(lines) else []
    crowded = len(labels) > MOST_LABELS
    height = max(PANEL[1], 0.8 + ROW * len(labels)) if crowded else PANEL[1]
    with matplotlib_style():
        figure, grid = plt.subplots(
            rows, columns, figsize=(PANEL[0] * columns, height * rows + 0.5),
            squeeze=False, sharex=True, sharey=True, layout="constrained",
        )  # fmt: skip
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes in grid.flat[max(len(panels) - columns, 0) : len(panels)]:
            axes.tick_params(labelbottom=True)
        for axes, (title, chosen) in zip(grid.flat, panels.items(), strict=False):
            axes.set_title(fill(title, TITLE_LETTERS), fontsize=10, loc="left")
            if crowded:
                _panel_of_rows(axes, chosen, axis, labels)
            else:
                _panel(axes, chosen, axis)
        handles = {
            label: handle
            for axes in grid.flat
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            handles.values(), handles, loc="outside lower center", ncols=min(len(handles), 6)
        )
        return save(figure, stem)


def axis_of(lines: Sequence[Line], names: Sequence[str]) -> str:
    """Return the option of the x axis: the first of those with most values."""
    return max(names or ["algo"], key=lambda name: len({line[name] for line in lines}))


def panels_of(lines: Sequence[Line], names: Sequence[str]) -> dict[str, list[Line]]:
    """Return the rows by the values that a panel's have in common; if many sizes, the largest."""
    found = _grouped(lines, names)
    if len(found) > MOST_PANELS and not of_jobs(lines):
        most = max(int(str(line["size_bytes"])) for line in lines)
        found = _grouped([line for line in lines if line["size_bytes"] == most], names)
    return dict(list(found.items())[:MOST_PANELS])


def of_jobs(lines: Sequence[Line]) -> bool:
    """Return whether rows are of training jobs."""
    return "order" in lines[0]


def told_apart(lines: Sequence[Line], names: Sequence[str]) -> list[str]:
    """Return the options that tell rows apart, besides algorithm, order and a collective's size."""
    if not of_jobs(lines):
        return [name for name in names if name not in ("algo", "size")]
    inside = [name for name in ("jobs", "entries") if len({line[name] for line in lines}) > 1]
    listed = ("algo", "order", "counts", "entries", "jobs")
    return [*(name for name in names if name not in listed), *inside]


def _grouped(lines: Sequence[Line], names: Sequence[str]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        parts = [f"{name} {'default' if line[name] == '' else line[name]}" for name in names]
        if not of_jobs(lines):
            parts.append(format_size(int(str(line["size_bytes"]))))
        found.setdefault(", ".join(parts), []).append(line)
    return found


def _label(line: Line) -> str:
    return f"{line['algo']}, {line['order']}"


def _panel_of_rows(axes: Axes, lines: Sequence[Line], axis: str, labels: Sequence[str]) -> None:
    """Draw the completion time of jobs, a row for each way to run them, and a marker per value."""
    values = list(dict.fromkeys(str(line[axis]) for line in lines))
    for place, value in enumerate(values):
        ends: dict[str, float] = {}
        for line in (line for line in lines if str(line[axis]) == value):
            time = int(str(line["jct_ps"])) / PS_PER_MS
            ends[_label(line)] = max(ends.get(_label(line), 0.0), time)  # the last job's
        axes.plot(
            list(ends.values()), [labels.index(label) for label in ends], label=f"{axis} {value}",
            color=COLORS[place % len(COLORS)], marker=MARKERS[place % len(MARKERS)],
            linestyle="none",
        )  # fmt: skip
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("JCT of the last job (ms)")


def _panel(axes: Axes, lines: Sequence[Line], axis: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    values = list(dict.fromkeys(str(line[axis]) for line in lines))
    is_ordered = all(re.match(r"\d", value) for value in values)
    jobs = of_jobs(lines)
    field, unit_ps, unit = ("jct_ps", PS_PER_MS, "ms") if jobs else ("time_ps", PS_PER_US, "us")
    series: dict[str, dict[str, float]] = {}
    for line in lines:
        label = _label(line) if jobs else str(line["algo"])
        points = series.setdefault(label, {})
        time = int(str(line[field])) / unit_ps
        points[str(line[axis])] = max(points.get(str(line[axis]), 0.0), time)  # the last job's
    for label, points in series.items():
        look = look_of(label.partition(",")[0])
        axes.plot(
            [values.index(value) for value in points], list(points.values()), label=label,
            color=look.color, marker=look.marker, linestyle="-" if is_ordered else "none",
        )  # fmt: skip
    axes.set_xticks(range(len(values)), values, rotation=30 if len(values) > 4 else 0)
    axes.set_xlabel(axis)
    axes.set_ylabel(f"{'JCT' if jobs else 'time'} ({unit})")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
