"""Figures of jobs that share a network. Same cases, same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from experiments.figures import matplotlib_style, write_figure
from experiments.jobs.results import Case, JobRow
from ringleaf.units import PS_PER_MS, PS_PER_S

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Mid tones, to be told apart on white and on dark, and by the colour-blind.
COLORS = ("#3f7fd1", "#e08a2b", "#1f9d8b", "#d62f5c", "#9467bd", "#92703c", "#5f6b7a", "#7a8b2f")


STEPS = 120  # of a time series in a panel


def draw_all(folder: Path, cases: Sequence[Case]) -> list[Path]:
    """Write every figure as PNG and PDF; return the PNGs."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    most = max(case.combination.count for case in cases)
    crowded = [case for case in cases if case.combination.count == most]
    drawn: list[tuple[str, Callable[[], Figure]]] = [
        ("jct", lambda: draw_bars(cases, "job completion time (ms)", lambda row: row.jct_ps)),
        (
            "wait",
            lambda: draw_bars(
                cases, "waiting for the front layers (ms per iteration)", lambda r: r.front_wait_ps
            ),
        ),
        ("links", lambda: draw_links(crowded)),
        ("queues", lambda: draw_queues(crowded)),
    ]
    if any(case.memory_series is not None for case in crowded):
        drawn.append(("memory", lambda: draw_memory(crowded)))
    paths = []
    with matplotlib_style():
        for name, draw in drawn:
            figure = draw()
            write_figure(figure, folder / name)
            plt.close(figure)
            paths.append(folder / f"{name}.png")
    return paths


def draw_bars(cases: Sequence[Case], label: str, value: Callable[[JobRow], int]) -> Figure:
    """Bars of jobs' mean: a panel per number of jobs, a group per algorithm; dots are jobs."""
    import matplotlib.pyplot as plt

    figure: Figure
    counts = _values(cases, lambda case: str(case.combination.count))
    reduction = _reductions(cases)
    algos = _values(cases, reduction)
    orders = _values(cases, lambda case: case.combination.order)
    figure, panels = plt.subplots(
        1, len(counts), figsize=(1.5 + 4.2 * len(counts), 3.6), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    width = 0.8 / len(orders)
    for axes, count in zip(panels[0], counts, strict=True):
        for case in cases:
            if str(case.combination.count) != count:
                continue
            place = orders.index(case.combination.order)
            x = algos.index(reduction(case)) + (place - (len(orders) - 1) / 2) * width
            times = [value(row) / PS_PER_MS for row in case.rows]
            axes.bar(x, fmean(times), 0.92 * width, color=COLORS[place % len(COLORS)])
            axes.plot([x] * len(times), times, ".", color="#1f2328", markersize=3)
        axes.set_xticks(range(len(algos)), algos)
        axes.set_title(f"{count} jobs", fontsize=10)
        axes.grid(axis="x", visible=False)
    panels[0][0].set_ylabel(label)
    for place, order in enumerate(orders):
        panels[0][0].bar(0, 0, color=COLORS[place % len(COLORS)], label=order)
    figure.legend(loc="outside lower center", ncols=len(orders), fontsize=9)
    return figure


def draw_links(cases: Sequence[Case]) -> Figure:
    """The busiest link that most jobs of a case share over time, jobs stacked in colours."""
    figure, grid = _grid(cases)
    for axes, case in grid:
        assert case.link_series is not None
        owners = case.link_series[1:] if len(case.link_series) > 1 else case.link_series
        step, sums = _coarse(owners, np.add)
        full = case.link_rate_bps / 8 * step * case.bin_ps / PS_PER_S  # bytes per step
        times_ms = np.arange(sums.shape[1]) * step * case.bin_ps / PS_PER_MS
        axes.stackplot(times_ms, 100 * sums / full, colors=COLORS, step="post", linewidth=0)
        axes.set_ylim(0, 105)
        axes.text(0.99, 0.97, case.link, transform=axes.transAxes, ha="right", va="top", fontsize=7)
    jobs = max(len(case.rows) for case in cases)
    _name_jobs(figure, jobs)
    _fit_time(grid)
    figure.supylabel("load of the busiest link, of those most shared (%)", fontsize=10)
    figure.supxlabel("virtual time (ms)", fontsize=10)
    return figure


def draw_queues(cases: Sequence[Case]) -> Figure:
    """Each case's fullest queue over time, classes stacked: the most that a bin of time saw."""
    figure, grid = _grid(cases)
    shown: set[int] = set()
    for axes, case in grid:
        assert case.queue_series is not None
        step, most = _coarse(case.queue_series, np.maximum)
        times_ms = np.arange(most.shape[1]) * step * case.queue_bin_ps / PS_PER_MS
        axes.stackplot(times_ms, most / 1024, colors=COLORS, step="post", linewidth=0)
        shown |= {int(level) for level in np.flatnonzero(case.queue_series.any(axis=1))}
        axes.text(
            0.99, 0.97, case.queue, transform=axes.transAxes, ha="right", va="top", fontsize=7
        )
    first = figure.axes[0]
    for level in sorted(shown):
        first.fill_between([], [], color=COLORS[level % len(COLORS)], label=f"priority {level}")
    _fit_time(grid)
    figure.legend(loc="outside upper center", ncols=8, fontsize=9)
    figure.supylabel("in the fullest queue (KiB)", fontsize=10)
    figure.supxlabel("virtual time (ms)", fontsize=10)
    return figure


def draw_memory(cases: Sequence[Case]) -> Figure:
    """What jobs use, stacked, of the switch that is fullest, over time; its share is dashed."""
    shown = [case for case in cases if case.memory_series is not None]
    figure, grid = _grid(shown, alike=False)
    for axes, case in grid:
        assert case.memory_series is not None
        step, most = _fullest(case.memory_series[1:])
        times_ms = np.arange(most.shape[1]) * step * case.memory_interval_ps / PS_PER_MS
        axes.stackplot(times_ms, most, colors=COLORS, step="post", linewidth=0)
        top = max(1.25 * max(most.sum(axis=0).max(), case.combination.entries or 0), 1)
        axes.set_ylim(0, max(top, axes.get_ylim()[1]))
        if case.combination.entries is not None:
            axes.axhline(case.combination.entries, color="#1f2328", linewidth=0.8, linestyle="--")
        axes.text(
            0.99, 0.97, case.memory_switch, transform=axes.transAxes, ha="right", va="top",
            fontsize=7,
        )  # fmt: skip
    _name_jobs(figure, max(len(case.rows) for case in shown))
    _fit_time(grid)
    figure.supylabel("slots or aggregators in use", fontsize=10)
    figure.supxlabel("virtual time (ms)", fontsize=10)
    return figure


def _fit_time(grid: Sequence[tuple[Axes, Case]]) -> None:
    """Let the panels' common axis go from 0 to the end of the longest case."""
    ends_ps = []
    for _, case in grid:
        assert case.link_series is not None
        ends_ps.append(case.link_series.shape[1] * case.bin_ps)
    grid[0][0].set_xlim(0, max(ends_ps) / PS_PER_MS)


def _name_jobs(figure: Figure, jobs: int) -> None:
    first = figure.axes[0]
    for job in range(jobs):
        first.fill_between([], [], color=COLORS[job % len(COLORS)], label=f"job {job + 1}")
    figure.legend(loc="outside upper center", ncols=jobs, fontsize=9)


def _grid(cases: Sequence[Case], *, alike: bool = True) -> tuple[Figure, list[tuple[Axes, Case]]]:
    """Panels by algorithm (rows) and order (columns), of one scale if they are alike."""
    import matplotlib.pyplot as plt

    reduction = _reductions(cases)
    algos = _values(cases, reduction)
    orders = _values(cases, lambda case: case.combination.order)
    figure, panels = plt.subplots(
        len(algos), len(orders), figsize=(1 + 2.6 * len(orders), 1 + 1.5 * len(algos)),
        sharex=True, sharey=alike or "row", squeeze=False, layout="constrained",
    )  # fmt: skip
    found = []
    for case in cases:
        row, column = algos.index(reduction(case)), orders.index(case.combination.order)
        axes = panels[row][column]
        axes.set_title(f"{reduction(case)}, {case.combination.order}", fontsize=9)
        axes.tick_params(labelsize=8)
        found.append((axes, case))
    return figure, found


def _coarse(series: npt.NDArray[np.int64], join: np.ufunc) -> tuple[int, npt.NDArray[np.int64]]:
    """Join neighbouring bins until there are `STEPS` at most; return how many, and the result."""
    step = -(-series.shape[1] // STEPS)
    return step, join.reduceat(series, np.arange(0, series.shape[1], step), axis=1)


def _fullest(series: npt.NDArray[np.int64]) -> tuple[int, npt.NDArray[np.int64]]:
    """Likewise, but keep of the joined the one whose sum is largest."""
    step = -(-series.shape[1] // STEPS)
    starts = np.arange(0, series.shape[1], step)
    totals = np.split(series.sum(axis=0), starts[1:])
    chosen = [start + int(each.argmax()) for start, each in zip(starts, totals, strict=True)]
    return step, series[:, chosen]


def _reductions(cases: Sequence[Case]) -> Callable[[Case], str]:
    """How a case reduces, for labels: its algorithm, and switches' memory if cases differ in it."""
    if len({case.combination.entries for case in cases}) == 1:
        return lambda case: case.combination.algo
    return lambda case: f"{case.combination.algo} {case.combination.entries}"


def _values(cases: Sequence[Case], of: Callable[[Case], str]) -> list[str]:
    return list(dict.fromkeys(of(case) for case in cases))
