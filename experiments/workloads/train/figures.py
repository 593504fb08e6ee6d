"""Figures of a run of a training script: its iterations, its calls, and one iteration in detail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from ringleaf.core.units import PS_PER_MS, PS_PER_US
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.looks import look_of
from ringleaf.experiments.figures.style import subplots
from ringleaf.experiments.workloads.train.wire import BACKWARD, FORWARD, WAITED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ringleaf.experiments.workloads.train.results import TrainResults

MOST_BARS = 16
MOST_RANKS = 16

_COLORS = {FORWARD: "#3f7fd1", BACKWARD: "#1f9d8b", WAITED: "#d62f5c", "call": "#7b8794"}
_NAMES = {
    FORWARD: "forward pass",
    BACKWARD: "backward pass",
    WAITED: "waits",
    "call": "collective",
}


def figures_of(run: TrainResults) -> dict[str, Callable[[], Figure]]:
    """Return functions that draw every figure that a run has data for, by name."""
    drawn: dict[str, Callable[[], Figure]] = {}
    if run.steps():
        drawn["iterations"] = partial(draw_iterations, run)
    if run.rows:
        drawn["calls"] = partial(draw_calls, run)
    if run.lines:
        drawn["timeline"] = partial(draw_timeline, run)
    return drawn


def draw_iterations(run: TrainResults) -> Figure:
    """Draw each iteration's time, computing below and waiting above.

    The first is left out if there are others, as it holds all that comes before.
    """
    steps = run.steps()
    first = 1 if len(steps) > 1 else 0
    steps = steps[first:]
    places = range(first + 1, first + 1 + len(steps))
    waits = [wait_ps / PS_PER_MS for _, wait_ps in steps]
    works = [max(time_ps - wait_ps, 0) / PS_PER_MS for time_ps, wait_ps in steps]
    figure: Figure
    figure, axes = subplots(figsize=sheet.size(6.4, 3.2))
    axes.bar(places, works, color=_COLORS[FORWARD], label="computing")
    axes.bar(places, waits, bottom=works, color=_COLORS[WAITED], label="waiting (exposed)")
    axes.set_xlabel("iteration")
    axes.set_ylabel(f"{run.clock} time (ms)")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="x", visible=False)
    columns = sheet.across(2, 1.8)
    figure.legend(loc="outside upper center", ncols=columns)
    return figure


def draw_calls(run: TrainResults) -> Figure:
    """Draw the time of all calls that are alike, those that took longest first."""
    rows = run.rows[:MOST_BARS]
    figure: Figure
    figure, axes = subplots(figsize=(6.4, 0.8 + 0.28 * len(rows)))
    names = [f"{row.count} x {row.call}, {row.size_bytes:,} B, {row.algo}" for row in rows]
    places = range(len(rows))
    axes.barh(
        places,
        [row.total_ps / PS_PER_US for row in rows],
        color=[look_of(row.algo).color for row in rows],
    )
    axes.set_yticks(places, names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{run.clock} time of all of them (us)")
    axes.grid(axis="y", visible=False)
    return figure


def draw_timeline(run: TrainResults) -> Figure:
    """Draw what ranks do in the last iteration: two rows per rank."""
    from matplotlib.patches import Patch

    start_ps, end_ps = _window(run)
    ranks = min(run.ranks, MOST_RANKS)
    figure: Figure
    figure, axes = subplots(figsize=sheet.size(6.4, 1.0 + 0.4 * ranks))
    known = set()
    for rank in range(ranks):
        bars: dict[str, list[tuple[float, float]]] = {kind: [] for kind in _COLORS}
        for span in run.spans[rank]:
            if start_ps <= span.start_ps < end_ps:
                bars[span.kind].append(_bar(span.start_ps, span.end_ps, start_ps, end_ps))
        for line in run.lines:
            if rank in line.members and start_ps <= line.begin_ps < end_ps:
                bars["call"].append(_bar(line.begin_ps, line.end_ps, start_ps, end_ps))
        for kind, ranges in bars.items():
            at = rank + (0.05 if kind == "call" else -0.35)
            height = 0.3
            if ranges:
                known.add(kind)
                axes.broken_barh(ranges, (at, height), facecolor=_COLORS[kind], linewidth=0)
    axes.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
    axes.invert_yaxis()
    axes.set_xlabel(f"{run.clock} time of the iteration (us)")
    axes.set_xlim(0, (end_ps - start_ps) / PS_PER_US)
    axes.grid(axis="y", visible=False)
    figure.legend(
        handles=[
            Patch(color=_COLORS[kind], label=_NAMES[kind]) for kind in _COLORS if kind in known
        ],
        loc="outside upper center",
        ncols=sheet.across(4, 1.5),
        fontsize=8,
    )
    return figure


def _bar(start_ps: int, end_ps: int, first_ps: int, last_ps: int) -> tuple[float, float]:
    """Return where a bar begins, and its length, within a window."""
    stop_ps = min(end_ps, last_ps)
    return (start_ps - first_ps) / PS_PER_US, (stop_ps - start_ps) / PS_PER_US


def _window(run: TrainResults) -> tuple[int, int]:
    """Return the start and the end of the iteration that is drawn; without any, of all."""
    ends = [*accumulate(time_ps for time_ps, _ in run.steps())]
    if len(ends) > 1:
        return ends[-2], ends[-1]
    end_ps = max([run.totals["end_ps"], *ends[:1], 1])
    return 0, end_ps
