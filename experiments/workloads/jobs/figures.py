"""Figures of jobs that share a network. The same cases give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import PS_PER_MS, PS_PER_S, format_count
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.lines import draw_lines, suits
from ringleaf.experiments.figures.style import INK, subplots
from ringleaf.experiments.workloads.jobs.timeline import (
    BACKWARD,
    FORWARD,
    QUEUED,
    WAIT,
    WIRE,
    JobSpan,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringleaf.experiments.workloads.jobs.results import JobRow, JobsCase

# Mid tones, which can be told apart on white and on dark, and by the colour-blind.
COLORS = (
    "#3f7fd1", "#e08a2b", "#1f9d8b", "#d62f5c", "#9467bd", "#92703c", "#7b8794", "#b8a11e",
    "#1fb0d0", "#d16fc4", "#5fae4b", "#b0573c",
)  # fmt: skip

STEPS = 120
"""The most steps of a time series in a panel."""

MOST_COLUMNS = 5
"""The most panels beside each other, so that their titles can be read at a page's width."""


MOST_LAYERS = 400
"""The most layers, of all jobs together, that are drawn as rows; for more, only traces exist."""

SPAN_COLORS = {
    FORWARD: "#3f7fd1",
    BACKWARD: "#1f9d8b",
    WAIT: "#d62f5c",
    QUEUED: "#b8a11e",
    WIRE: "#7b8794",
}
SPAN_NAMES = {
    WIRE: "on the wire",
    QUEUED: "gradient ready, queued",
    WAIT: "waits for its sum",
    FORWARD: "forward pass",
    BACKWARD: "backward pass",
}
"""The names of spans in a legend, in the order in which they are drawn over one another."""

TIMELINE = "timeline-"  # the prefix of such figures' names


def figures_of(cases: Sequence[JobsCase]) -> dict[str, Callable[[], Figure]]:
    """Return functions that draw every figure that cases have data for, by name."""
    most = max(case.combination.count for case in cases)
    crowded = [case for case in cases if case.combination.count == most]
    drawn: list[tuple[str, Callable[[], Figure]]] = [
        (
            "jct",
            lambda: draw_times(cases, "job completion time", lambda row: row.jct_ps),
        ),
        (
            "wait",
            lambda: draw_times(
                cases,
                "waiting for the front layers, per iteration",
                lambda r: r.front_wait_ps,
            ),
        ),
    ]
    if all(case.link_series is not None for case in crowded):
        drawn.append(("links", lambda: draw_links(crowded)))
    if all(case.queue_series is not None for case in crowded):
        drawn.append(("queues", lambda: draw_queues(crowded)))
    if any(case.memory_series is not None for case in crowded):
        drawn.append(("memory", lambda: draw_memory(crowded)))
    for case in crowded:
        if case.spans and _count_layers(case) <= MOST_LAYERS:
            drawn.append((f"{TIMELINE}{case.combination.name}", partial(draw_timeline, case)))
    return dict(drawn)


def _count_layers(case: JobsCase) -> int:
    """Return the number of layers in any span, of all jobs together."""
    return len({(span.job, layer) for span in case.spans for layer in span.layers})


def draw_timeline(case: JobsCase) -> Figure:
    """Draw each layer's spans in each job's second iteration: a panel per job.

    The second iteration is the first that waits for sums; if there is none, the first is drawn.
    Gradients of the iteration before, which it waits for, are shown as far as they reach into it.
    """
    rows = [1 + max(max(s.layers) for s in case.spans if s.job == row.job) for row in case.rows]
    tall = [max(1.0, 0.05 * layers) for layers in rows]
    figure: Figure
    inches = sheet.size(9, 1.1 + sum(tall) + 0.45 * len(rows))
    figure, panels = subplots(len(rows), 1, figsize=inches, squeeze=False, height_ratios=tall)
    for axes, row, layers in zip(panels[:, 0], case.rows, rows, strict=True):
        spans = [span for span in case.spans if span.job == row.job]
        _draw_job(axes, spans, layers)
        axes.set_title(f"job {row.job}, {row.model}", fontsize=9, loc="left")
    panels[-1][0].set_xlabel(f"{case.clock} time (ms)", fontsize=9)
    for kind, name in SPAN_NAMES.items():
        panels[0][0].fill_between([], [], color=SPAN_COLORS[kind], label=name)
    columns = sheet.entries(SPAN_NAMES.values(), inches[0])
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9)
    combination = case.combination
    _write_title(figure, f"layers over time: {combination.algo}, {combination.scheduler}")
    return figure


def _draw_job(axes: Axes, spans: Sequence[JobSpan], layers: int) -> None:
    from matplotlib.collections import PolyCollection

    shown = min(2, max(span.iteration for span in spans))
    own = [span for span in spans if span.iteration == shown]
    start_ps, end_ps = min(s.start_ps for s in own), max(s.end_ps for s in own)
    inside = [s for s in spans if s.end_ps > start_ps and s.start_ps < end_ps]
    for kind in SPAN_NAMES:  # passes are drawn over gradients in the network at the time
        lower, thick = (0.0, 1.0) if kind in (FORWARD, BACKWARD) else (0.2, 0.6)
        boxes = [
            _box(span, layer, lower, thick)
            for span in inside
            if span.kind == kind
            for layer in span.layers
        ]
        axes.add_collection(PolyCollection(boxes, facecolors=SPAN_COLORS[kind], linewidths=0))
    axes.set_xlim(start_ps / PS_PER_MS, end_ps / PS_PER_MS)
    axes.set_ylim(layers, 0)
    axes.set_yticks([0.5, layers - 0.5], ["front", "back"] if layers > 1 else ["", "layer"])
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", visible=False)


def _box(span: JobSpan, layer: int, lower: float, thick: float) -> list[tuple[float, float]]:
    left, right = span.start_ps / PS_PER_MS, span.end_ps / PS_PER_MS
    top, bottom = layer + lower, layer + lower + thick
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def draw_times(cases: Sequence[JobsCase], label: str, value: Callable[[JobRow], int]) -> Figure:
    """Draw jobs' mean: as lines over switches' memory if cases differ in that, or else as bars."""
    entries = list(dict.fromkeys(case.combination.entries for case in cases))
    names = {_series_of(case) for case in cases}
    draw = draw_over_memory if suits(entries, len(names)) else draw_bars
    return draw(cases, label, value)


def _series_of(case: JobsCase) -> tuple[str, str]:
    return case.combination.algo, case.combination.scheduler


def draw_over_memory(
    cases: Sequence[JobsCase], label: str, value: Callable[[JobRow], int]
) -> Figure:
    """Draw jobs' mean over the entries of a switch: a panel per number of jobs."""
    figure: Figure
    counts = _values(cases, lambda case: str(case.combination.count))
    schedulers = _values(cases, lambda case: case.combination.scheduler)
    inches = sheet.size(7, 0.6 + 3.6 * len(counts))
    figure, panels = subplots(len(counts), 1, figsize=inches, squeeze=False)
    for axes, count in zip(panels[:, 0], counts, strict=True):
        series: dict[tuple[str, ...], dict[float, float]] = {}
        for case in cases:
            if str(case.combination.count) == count:
                name = _series_of(case) if len(schedulers) > 1 else _series_of(case)[:1]
                mean = fmean(value(row) for row in case.rows) / PS_PER_MS
                series.setdefault(name, {})[case.combination.entries or 0] = mean
        draw_lines(axes, series)
        axes.set_title(_name_count(count), fontsize=10, loc="left")
        axes.set_xlabel("slots or aggregators of a switch", fontsize=9)
        axes.set_ylabel(f"{cases[0].clock} time (ms)", fontsize=9)
    _write_title(figure, f"{label}; mean of jobs")
    return figure


def draw_bars(cases: Sequence[JobsCase], label: str, value: Callable[[JobRow], int]) -> Figure:
    """Draw jobs' mean as bars: a panel per number of jobs, a group per algorithm; dots are jobs."""
    figure: Figure
    counts = _values(cases, lambda case: str(case.combination.count))
    reduction = _reductions(cases)
    algos = _values(cases, reduction)
    schedulers = _values(cases, lambda case: case.combination.scheduler)
    across = sheet.across(min(len(counts), 2), 2.2, 1.2)
    down = -(-len(counts) // across)
    tall = 0.5 + len(algos) * (0.15 + 0.14 * len(schedulers))
    figure, panels = subplots(
        down, across, figsize=sheet.size(1.6 + 3.8 * across, 1 + tall * down), sharex=True,
        sharey=True, squeeze=False,
    )  # fmt: skip
    thick = 0.84 / len(schedulers)
    named = len(schedulers) <= len(COLORS)  # by a legend; else beside each bar
    for axes, count in zip(panels.flat, counts, strict=False):
        for case in cases:
            if str(case.combination.count) != count:
                continue
            place = schedulers.index(case.combination.scheduler)
            y = algos.index(reduction(case)) + (place - (len(schedulers) - 1) / 2) * thick
            times = [value(row) / PS_PER_MS for row in case.rows]
            color = COLORS[place] if named else COLORS[algos.index(reduction(case)) % len(COLORS)]
            axes.barh(y, fmean(times), 0.9 * thick, color=color)
            axes.plot(times, [y] * len(times), ".", color=INK, markersize=3)
        if named:
            axes.set_yticks(range(len(algos)), algos)
        else:
            axes.set_yticks(*_ticks_of_bars(algos, schedulers, thick), fontsize=8)
        axes.set_title(_name_count(count), fontsize=10, loc="left")
        axes.grid(axis="y", visible=False)
        axes.tick_params(labelbottom=True)
        axes.set_xlabel(f"{cases[0].clock} time (ms)", fontsize=9)
    for axes in panels.flat[len(counts) :]:
        axes.set_visible(False)
    panels[0][0].set_ylim(len(algos) - 0.5, -0.5)
    panels[0][0].set_xlim(left=0)
    _write_title(figure, f"{label}; bars: mean of jobs, dots: jobs")
    if len(schedulers) > 1 and named:
        for place, scheduler in enumerate(schedulers):
            panels[0][0].bar(0, 0, color=COLORS[place % len(COLORS)], label=scheduler)
        columns = sheet.entries(schedulers, figure.get_figwidth(), 4)
        figure.legend(loc="outside lower center", ncols=columns, fontsize=9)
    return figure


def _ticks_of_bars(
    algos: Sequence[str], schedulers: Sequence[str], thick: float
) -> tuple[list[float], list[str]]:
    """Return the places and names of bars, an algorithm's name only if there are several."""
    middle = (len(schedulers) - 1) / 2
    places = [
        group + (place - middle) * thick
        for group in range(len(algos))
        for place in range(len(schedulers))
    ]
    names = [
        f"{algo}, {scheduler}" if len(algos) > 1 else scheduler
        for algo in algos
        for scheduler in schedulers
    ]
    return places, names


def _name_count(count: str) -> str:
    return format_count(int(count), "job")


def draw_links(cases: Sequence[JobsCase]) -> Figure:
    """Draw a link that most jobs share over time, the same in all panels, jobs stacked."""
    figure, grid = _grid(cases, lambda case: case.link)
    for axes, case in grid:
        assert case.link_series is not None
        owners = case.link_series[1:] if len(case.link_series) > 1 else case.link_series
        step, sums = _coarse(owners)
        full = case.link_rate_bps / 8 * step * case.bin_ps / PS_PER_S  # bytes per step
        times_ms = np.arange(sums.shape[1]) * step * case.bin_ps / PS_PER_MS
        axes.stackplot(times_ms, 100 * sums / full, colors=COLORS, step="post", linewidth=0)
        axes.set_ylim(0, 105)
    _finish(figure, grid, _job_names(cases), "load of a shared link", "load (%)")
    return figure


def draw_queues(cases: Sequence[JobsCase]) -> Figure:
    """Draw each case's fullest queue over time, classes stacked: when it held most."""
    figure, grid = _grid(cases, lambda case: case.queue)
    shown: set[int] = set()
    for axes, case in grid:
        assert case.queue_series is not None
        step, most = _fullest(case.queue_series)
        times_ms = np.arange(most.shape[1]) * step * case.queue_bin_ps / PS_PER_MS
        axes.stackplot(times_ms, most / 1024, colors=COLORS, step="post", linewidth=0)
        shown |= {int(level) for level in np.flatnonzero(case.queue_series.any(axis=1))}
    names = {level: f"priority {level}" for level in sorted(shown)}
    _finish(figure, grid, names, "the fullest queue, by priority", "queued (KiB)")
    return figure


def draw_memory(cases: Sequence[JobsCase]) -> Figure:
    """Draw jobs' entries in the fullest switch over time, stacked; each share is dashed."""
    shown = [case for case in cases if case.memory_series is not None]
    figure, grid = _grid(shown, lambda case: case.memory_switch, alike=False)
    for axes, case in grid:
        assert case.memory_series is not None
        step, most = _fullest(case.memory_series[1:])
        times_ms = np.arange(most.shape[1]) * step * case.memory_interval_ps / PS_PER_MS
        axes.stackplot(times_ms, most, colors=COLORS, step="post", linewidth=0)
        top = max(1.25 * max(most.sum(axis=0).max(), case.combination.entries or 0), 1)
        axes.set_ylim(0, top)
        if case.combination.entries is not None:
            axes.axhline(case.combination.entries, color=INK, linewidth=0.8, linestyle="--")
    title = "slots or aggregators in use in the fullest switch; dashed: all that it has"
    _finish(figure, grid, _job_names(shown), title, "entries")
    return figure


def _job_names(cases: Sequence[JobsCase]) -> dict[int, str]:
    return {job: f"job {job + 1}" for job in range(max(len(case.rows) for case in cases))}


def _finish(
    figure: Figure,
    grid: Sequence[tuple[Axes, JobsCase]],
    names: Mapping[int, str],
    title: str,
    unit: str,
) -> None:
    """Write a figure's title and axis labels, and below them a legend of the colours."""
    _fit_time(grid)
    first = figure.axes[0]
    for number, name in names.items():
        first.fill_between([], [], color=COLORS[number % len(COLORS)], label=name)
    figure.legend(
        loc="outside lower center",
        ncols=min(len(names), sheet.entries(names.values(), figure.get_figwidth(), 12)),
        fontsize=9,
    )
    _write_title(figure, title)
    for axes, _ in grid:
        place = axes.get_subplotspec()
        if place is not None and place.is_first_col():
            axes.set_ylabel(unit, fontsize=9)
        if axes.xaxis.get_tick_params()["labelbottom"]:
            axes.set_xlabel("simulated time (ms)", fontsize=9)


def _write_title(figure: Figure, title: str) -> None:
    """Write a title on as many lines as it needs."""
    text = sheet.broken(title[0].upper() + title[1:], figure.get_figwidth())
    figure.suptitle(text, x=0.01, ha="left", fontsize=11)


def _fit_time(grid: Sequence[tuple[Axes, JobsCase]]) -> None:
    """Let the panels' common axis go from 0 to the end of the longest case."""
    ends_ps = []
    for _, case in grid:
        assert case.link_series is not None
        ends_ps.append(case.link_series.shape[1] * case.bin_ps)
    grid[0][0].set_xlim(0, max(ends_ps) / PS_PER_MS)


def _grid(
    cases: Sequence[JobsCase], where: Callable[[JobsCase], str], *, alike: bool = True
) -> tuple[Figure, list[tuple[Axes, JobsCase]]]:
    """Return panels with algorithms one below the other, on one scale if `alike`.

    Orders, and sizes of switches' memory, are beside each other, on several lines if there are
    many. A panel's title names its combination, and `where`.
    """
    rows = [
        [case for case in cases if case.combination.algo == algo]
        for algo in _values(cases, lambda case: case.combination.algo)
    ]
    if max(map(len, rows)) == 1:  # one below the other they would be a strip
        rows = [list(cases)]
    widest = max(map(len, rows))
    most = sheet.across(MOST_COLUMNS, 1.9, 0.7)
    columns = -(-widest // -(-widest // most))
    lines = [row[i : i + columns] for row in rows for i in range(0, len(row), columns)]
    figure, panels = subplots(
        len(lines), columns, figsize=sheet.size(1.4 + 2.7 * columns, 1.3 + 1.55 * len(lines)),
        sharex=True, sharey="all" if alike else "none", squeeze=False,
    )  # fmt: skip
    reduction = _reductions(cases)
    pairs = []
    for number, line in enumerate(lines):
        for axes, case in zip(panels[number], line, strict=False):
            name = f"{reduction(case)}, {case.combination.scheduler}"
            axes.set_title(f"{name}\n{where(case)}", fontsize=8, loc="left")
            axes.tick_params(labelsize=8)
            pairs.append((axes, case))
        for axes in panels[number][len(line) :]:
            axes.set_visible(False)
        for axes in panels[number - 1][len(line) :] if number else ():
            axes.tick_params(labelbottom=True)
    return figure, pairs


def _coarse(series: npt.NDArray[np.int64]) -> tuple[int, npt.NDArray[np.int64]]:
    """Add up neighbouring bins to at most `STEPS`; return the bins in each, and the result."""
    step = -(-series.shape[1] // STEPS)
    return step, np.add.reduceat(series, np.arange(0, series.shape[1], step), axis=1)


def _fullest(series: npt.NDArray[np.int64]) -> tuple[int, npt.NDArray[np.int64]]:
    """Reduce bins as `_coarse` does, but keep of each group the bin with the largest sum."""
    step = -(-series.shape[1] // STEPS)
    starts = np.arange(0, series.shape[1], step)
    totals = np.split(series.sum(axis=0), starts[1:])
    chosen = [start + int(each.argmax()) for start, each in zip(starts, totals, strict=True)]
    return step, series[:, chosen]


def _reductions(cases: Sequence[JobsCase]) -> Callable[[JobsCase], str]:
    """Return a function that labels a case: its algorithm, and the memory if cases differ in it."""
    if len({case.combination.entries for case in cases}) == 1:
        return lambda case: case.combination.algo
    return lambda case: f"{case.combination.algo} {case.combination.entries}"


def _values(cases: Sequence[JobsCase], of: Callable[[JobsCase], str]) -> list[str]:
    return list(dict.fromkeys(of(case) for case in cases))
