"""A figure of all runs of a sweep.

Times are drawn against the option with most values, a line for each way to run. Ways that a legend
can't tell apart have rows of their own; so have conditions, if most of them differ from the others
in something else than one option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from ringleaf.core.units import PS_PER_MS, format_count, format_rate, format_time
from ringleaf.experiments.figures import sheet as paper
from ringleaf.experiments.figures import sorting
from ringleaf.experiments.figures.clock_unit import ClockUnit, unit_of
from ringleaf.experiments.figures.looks import looks_of
from ringleaf.experiments.figures.sorting import Line, of_jobs
from ringleaf.experiments.figures.style import mark_logarithmic, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
PANEL = 4.2, 3.2  # inches
ALONE = 6.4  # inches, the width of a panel that is the only one
WIDE = 9.0  # inches, the width of a figure of conditions
TITLE_LETTERS = 42  # on a line of a panel's title
CONDITION_LETTERS = 82  # on a line of a condition's name
MOST_LABELS = 6
"""The most lines of jobs in a panel; more are rows of their own, as no legend tells them apart."""

ROW = 0.2  # inches
AROUND, UPRIGHT = 0.9, 1.8  # inches beside a panel's axes; of a line of a value's upright name
COLORS = ("#3f7fd1", "#e08a2b", "#1f9d8b", "#d62f5c", "#9467bd", "#92703c")
MARKERS = "o^sDvP"

Times = dict[str, float]


def make(lines: Sequence[Line], names: Sequence[str]) -> Figure:
    """Return the figure, in whatever style is set.

    Args:
        lines: The rows of all runs, each with the options by which runs differ.
        names: These options.
    """
    if of_jobs(lines):
        lines = sorting.with_workloads(lines)
    sheet = _Sheet(lines)
    apart = sorting.told_apart(lines, names)
    axis = sorting.axis_of(lines, apart)
    rest = [name for name in apart if name != axis]
    groups = sorting.groups_of(lines, rest)
    if len(sheet.looks) <= MOST_LABELS and _are_single(groups, axis):
        figure = _draw_conditions(sheet, sorting.conditions_of(lines, apart), apart)
    else:
        figure = _draw_panels(sheet, sorting.panels_of(lines, rest), axis)
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    columns = min(len(handles), paper.entries(handles, figure.get_figwidth(), points=10))
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns)
    return figure


class _Sheet:
    """The rows, and what all panels of a figure have in common: names, looks and units."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.label = sorting.labeller(lines)
        labels = list(dict.fromkeys(map(self.label, lines)))
        if of_jobs(lines) and len({line["scheduler"] for line in lines}) > 1:
            self.looks = {
                label: (COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)])
                for place, label in enumerate(labels)
            }
        else:
            looks = looks_of(label.partition(",")[0] for label in labels)
            self.looks = {
                label: (looks[algo].color, looks[algo].marker)
                for label in labels
                for algo in (label.partition(",")[0],)
            }
        if of_jobs(lines):
            self._field, self._unit = "jct_ps", ClockUnit("ms", PS_PER_MS)
        else:
            self._field = "time_ps"
            self._unit = unit_of(min(int(str(line["time_ps"])) for line in lines))
        whose = "\nof the slowest job" if of_jobs(lines) else ""
        self.text = f"{_clock(lines)} time{whose} ({self._unit.name})"

    def times(self, lines: Sequence[Line]) -> Times:
        """Return the time of each way to run that the rows have: of jobs, the last one's."""
        times: Times = {}
        for line in lines:
            time = int(str(line[self._field])) / self._unit.ps
            times[self.label(line)] = max(times.get(self.label(line), 0.0), time)
        return times

    def heading(self) -> str:
        """Return what all runs have in common: of jobs, the algorithm and the scheduler."""
        first = self.lines[0]
        if not of_jobs(self.lines):
            return ", ".join(self._shared_terms())
        names = [
            str(first[name])
            for name in ("algo", "scheduler")
            if len({line[name] for line in self.lines}) == 1 and len(self.looks) > 1
        ]
        return "Training jobs" + (", " + ", ".join(names) if names else "")

    def _shared_terms(self) -> Iterator[str]:
        """Yield the ranks and the terms of hosts' links, if all rows of collectives have them."""
        first, *others = self.lines
        shared = {name: v for name, v in first.items() if all(v == row[name] for row in others)}
        if "ranks" in shared:
            yield format_count(int(str(shared["ranks"])), "rank")
        if shared.keys() >= {"rate_bps", "delay_ps"}:
            rate, delay = int(str(shared["rate_bps"])), int(str(shared["delay_ps"]))
            terms = f"{format_rate(rate)} and {format_time(delay)}".replace(" us", " µs")
            yield f"{terms} per link of hosts"


def _clock(lines: Sequence[Line]) -> str:
    """Return the names of the clocks that times are of: of several, if only some are live."""
    if of_jobs(lines):
        is_live = [line.get("virtual_jct_ps") not in (None, "") for line in lines]
        clocks = ["wall-clock" if each else "simulated" for each in is_live]
    else:
        clocks = [str(line.get("clock", "simulated")) for line in lines]
    return " or ".join(dict.fromkeys(clocks))


def _are_single(groups: Mapping[str, Sequence[Line]], axis: str) -> bool:
    """Return whether most panels would have points at one value of their axis only."""
    single = sum(len({line[axis] for line in rows}) == 1 for rows in groups.values())
    return len(groups) > 2 and 2 * single > len(groups)


def _draw_conditions(
    sheet: _Sheet, conditions: Mapping[str, Sequence[Line]], names: Sequence[str]
) -> Figure:
    """Draw a row for each condition, and a marker for each way to run."""
    wide = paper.size(WIDE, 0)[0]
    letters = CONDITION_LETTERS if wide >= WIDE else int(6 * wide)  # half of it, or less
    texts = [fill(each, letters) for each in conditions]
    tall = ROW * (0.2 + max(text.count("\n") + 1 for text in texts))
    figure: Figure
    figure, axes = subplots(figsize=(wide, 1.6 + tall * len(texts)))
    times = [sheet.times(lines) for lines in conditions.values()]
    for label, (color, marker) in sheet.looks.items():
        rows = [row for row, by_label in enumerate(times) if label in by_label]
        axes.plot(
            [times[row][label] for row in rows], rows, color=color, marker=marker, label=label,
            linestyle="none",
        )  # fmt: skip
    axes.set_yticks(range(len(texts)), texts, fontsize=8)
    axes.set_ylim(len(texts) - 0.5, -0.5)
    axes.set_xscale("log")
    mark_logarithmic(axes.xaxis)
    axes.set_xlabel(sheet.text)
    common = sorting.in_words(sorting.usual(sheet.lines, names))
    heading = f"{sheet.heading() or 'Sweep'}; usual: {common}"
    figure.suptitle(paper.broken(heading, wide, 9), x=0.01, ha="left", fontsize=9)
    return figure


def _draw_panels(sheet: _Sheet, panels: Mapping[str, Sequence[Line]], axis: str) -> Figure:
    """Draw a panel for all that differs besides the axis and the way to run."""
    columns = paper.across(min(COLUMNS, len(panels)), 3.0)
    rows = -(-len(panels) // columns)
    crowded = of_jobs(sheet.lines) and len(sheet.looks) > MOST_LABELS
    height = max(PANEL[1], 0.8 + ROW * len(sheet.looks)) if crowded else PANEL[1]
    width = paper.size(PANEL[0] * columns if columns > 1 else ALONE, 0)[0]
    figure: Figure
    figure, grid = subplots(
        rows, columns, figsize=(width, height * rows + 0.5),
        squeeze=False, sharex=True, sharey=True,
    )  # fmt: skip
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid.flat[max(len(panels) - columns, 0) : len(panels)]:
        axes.tick_params(labelbottom=True)
    for axes, (title, chosen) in zip(grid.flat, panels.items(), strict=False):
        letters = min(TITLE_LETTERS, int(10 * width / columns))
        axes.set_title(fill(title, letters), fontsize=10, loc="left")
        if crowded:
            _panel_of_rows(axes, sheet, chosen, axis)
        else:
            _panel(axes, sheet, chosen, axis, width / columns)
    if sheet.heading():
        figure.suptitle(paper.broken(sheet.heading(), width), x=0.01, ha="left", fontsize=11)
    return figure


def _panel_of_rows(axes: Axes, sheet: _Sheet, lines: Sequence[Line], axis: str) -> None:
    """Draw the completion time of jobs, a row for each way to run them, and a marker per value."""
    labels = list(sheet.looks)
    values, _ = sorting.ordered(sheet.lines, axis)
    for place, value in enumerate(values):
        ends = sheet.times([line for line in lines if str(line[axis]) == value])
        axes.plot(
            list(ends.values()), [labels.index(label) for label in ends], label=f"{axis} {value}",
            color=COLORS[place % len(COLORS)], marker=MARKERS[place % len(MARKERS)],
            linestyle="none",
        )  # fmt: skip
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(sheet.text)


def _name_values(axes: Axes, names: Sequence[str], inches: float) -> None:
    """Name the values of a panel's axis, over several lines if they are longer than their room."""
    are_many = len(names) > 4
    room = UPRIGHT if are_many else (inches - AROUND) / len(names)
    broken = [paper.broken(name, room, 10) for name in names]
    slope = (90 if broken != list(names) else 30) if are_many else 0
    axes.set_xticks(range(len(names)), broken, rotation=slope)


def _panel(axes: Axes, sheet: _Sheet, lines: Sequence[Line], axis: str, inches: float) -> None:
    """Draw times against an option's values, which are those of all panels: they share the axis."""
    values, is_ordered = sorting.ordered(sheet.lines, axis)
    columns = [sheet.times([line for line in lines if str(line[axis]) == v]) for v in values]
    for label, (color, marker) in sheet.looks.items():
        places = [place for place, times in enumerate(columns) if label in times]
        if not places:
            continue
        axes.plot(
            places, [columns[place][label] for place in places], label=label, color=color,
            marker=marker, linestyle="-" if is_ordered else "none",
        )  # fmt: skip
    _name_values(axes, [value or "default" for value in values], inches)
    axes.set_xlabel(axis)
    axes.set_ylabel(sheet.text)
    axes.set_yscale("log")
    mark_logarithmic(axes.yaxis)
