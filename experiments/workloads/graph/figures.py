"""Figures of a replay: ranks over time, where their time went, and the busiest link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ringleaf.core.units import PS_PER_MS, PS_PER_S, PS_PER_US, format_size
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.style import mark_logarithmic, subplots
from ringleaf.experiments.workloads.graph.messages import Messages
from ringleaf.experiments.workloads.graph.slowdown import Bin
from ringleaf.experiments.workloads.graph.timeline import COMPUTE, NodeBar
from ringleaf.experiments.workloads.jobs.figures import COLORS, STEPS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringleaf.experiments.workloads.graph.results import WorkResults

MOST_RANKS = 16
"""The most ranks that are drawn; with more, evenly spaced ones."""

MOST_SIZES = 6
"""The most sizes of messages that are drawn apart; more share lines."""

WIDE = 8
"""The longest time over the shortest above which an axis is logarithmic."""

SLOWDOWNS = (
    ("p50", "median", "o-", "#3f7fd1"),
    ("p95", "95 %", "s-", "#e08a2b"),
    ("p99", "99 %", "D-", "#d62f5c"),
)

SPENT = (
    ("compute_ps", "computing", "#3f7fd1"),
    ("exposed_ps", "exposed communication", "#e08a2b"),
    ("idle_ps", "idle", "#b9bfc7"),
)


def figures_of(results: WorkResults) -> dict[str, Callable[[], Figure]]:
    """Return functions that draw every figure that a replay has data for, by name."""
    drawn: dict[str, Callable[[], Figure]] = {
        "ranks": partial(draw_ranks, results),
        "spending": partial(draw_spending, results),
    }
    if results.link_series is not None:
        drawn["link"] = partial(draw_link, results)
    if len(results.messages.table):
        drawn["messages"] = partial(draw_messages, results.messages, results.clock)
    if results.slowdown:
        drawn["slowdown"] = partial(draw_slowdown, results.slowdown)
    return drawn


def color_of(kind: str, kinds: Sequence[str]) -> str:
    """Return the colour of a kind of bars: computations have the first."""
    return COLORS[kinds.index(kind) % len(COLORS)]


def draw_ranks(results: WorkResults) -> Figure:
    """Draw ranks over time: computations above, traffic below them, a line per kind."""
    shown = results.timeline.ranks[:: -(-len(results.timeline.ranks) // MOST_RANKS)]
    kinds = results.timeline.kinds
    figure: Figure
    inches = sheet.size(9, 1.4 + 0.34 * len(shown))
    figure, axes = subplots(figsize=inches, squeeze=True)
    for kind in kinds:
        _draw_kind(axes, [bar for bar in results.timeline.bars if bar.kind == kind], shown, kinds)
        axes.fill_between([], [], color=color_of(kind, kinds), label=kind)
    axes.set_xlim(0, max(results.iteration_ps, 1) / PS_PER_MS)
    axes.set_ylim(len(shown), 0)
    axes.set_yticks([number + 0.45 for number in range(len(shown))], [f"{rank}" for rank in shown])
    axes.set_ylabel("rank", fontsize=9)
    axes.set_xlabel(f"{results.clock} time (ms)", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", visible=False)
    columns = min(len(kinds), sheet.entries(kinds, inches[0], 7))
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9)
    figure.suptitle("Ranks over time", x=0.01, ha="left", fontsize=11)
    return figure


def _draw_kind(
    axes: Axes, bars: Sequence[NodeBar], shown: Sequence[int], kinds: Sequence[str]
) -> None:
    """Draw the bars of one kind: computations have the upper half of a rank's line."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not bars:
        return
    kind = bars[0].kind
    others = max(len(kinds) - 1, 1)
    thick = 0.45 if kind == COMPUTE else 0.45 / others
    offset = 0.0 if kind == COMPUTE else 0.45 + (kinds.index(kind) - 1) * thick
    place = {rank: number for number, rank in enumerate(shown)}
    boxes = []
    for bar in bars:
        if bar.rank in place:
            left, right = bar.start_ps / PS_PER_MS, bar.end_ps / PS_PER_MS
            top = place[bar.rank] + offset
            bottom = top + thick
            boxes.append([(left, top), (right, top), (right, bottom), (left, bottom)])
    if boxes:  # as one path: there may be tens of thousands
        path = Path.make_compound_path_from_polys(np.array(boxes))
        axes.add_artist(PathPatch(path, facecolor=color_of(kind, kinds), linewidth=0))


def draw_spending(results: WorkResults) -> Figure:
    """Draw what each rank's time went into, stacked."""
    figure: Figure
    inches = sheet.size(6.4, 3.2)
    figure, axes = subplots(figsize=inches)
    edges = np.arange(len(results.spending) + 1) - 0.5
    base = np.zeros(len(results.spending))
    for name, title, color in SPENT:
        values = np.array([getattr(each, name) for each in results.spending]) / PS_PER_MS
        axes.stairs(base + values, edges, baseline=base.copy(), fill=True, color=color, label=title)
        base += values
    axes.set_xlabel("rank", fontsize=9)
    axes.set_ylabel(f"{results.clock} time (ms)", fontsize=9)
    axes.set_xlim(edges[0], edges[-1])
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="x", visible=False)
    axes.tick_params(labelsize=8)
    columns = sheet.entries([title for _, title, _ in SPENT], inches[0], 3)
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9)
    figure.suptitle("Where ranks' time went", x=0.01, ha="left", fontsize=11)
    return figure


def draw_messages(messages: Messages, clock: str) -> Figure:
    """Draw which share of the messages takes longer than a clock's time, a line per size.

    A dot is the one that takes longest: a size with one message has no line.
    """
    sizes = np.unique(messages.sizes_bytes)
    groups = np.array_split(sizes, min(len(sizes), MOST_SIZES))
    figure: Figure
    inches = sheet.size(6.4, 3.2)
    figure, axes = subplots(figsize=inches)
    for number, group in enumerate(groups):
        chosen = (messages.sizes_bytes >= group[0]) & (messages.sizes_bytes <= group[-1])
        times = np.sort(messages.times_ps[chosen]) / PS_PER_US
        label = " to ".join(dict.fromkeys(format_size(int(each)) for each in group[[0, -1]]))
        share = 1 - np.arange(len(times)) / len(times)
        color = COLORS[number % len(COLORS)]
        axes.step(times, share, ".-", markevery=[-1], where="pre", label=label, color=color)
    least, most = axes.get_xlim()
    if most > WIDE * max(least, 1):
        axes.set_xscale("log")
        mark_logarithmic(axes.xaxis)
    axes.set_yscale("log")
    mark_logarithmic(axes.yaxis)
    axes.set_ylim(top=1.25)
    axes.set_xlabel(f"time (us, {clock})", fontsize=9)
    axes.set_ylabel("share of messages\nthat take longer", fontsize=9)
    axes.tick_params(labelsize=8)
    labels = axes.get_legend_handles_labels()[1]
    columns = min(len(labels), sheet.entries(labels, inches[0]))
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9)
    figure.suptitle("Times of messages, by size", x=0.01, ha="left", fontsize=11)
    return figure


def draw_slowdown(bins: Sequence[Bin]) -> Figure:
    """Draw percentiles of flows' slowdowns by size; a bin is drawn at its largest size."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure: Figure
    figure, axes = subplots(figsize=(6.4, 3.2))
    sizes = [each.most_bytes for each in bins]
    for name, label, marker, color in SLOWDOWNS:
        axes.plot(sizes, [getattr(each, name) for each in bins], marker, color=color, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: format_size(int(size))))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("size of flows, up to", fontsize=9)
    axes.set_ylabel("slowdown (1: alone)", fontsize=9)
    axes.tick_params(labelsize=8)
    figure.legend(loc="outside lower center", ncols=len(SLOWDOWNS), fontsize=9)
    figure.suptitle("Slowdown of flows, by size", x=0.01, ha="left", fontsize=11)
    return figure


def draw_link(results: WorkResults) -> Figure:
    """Draw the load of the busiest link over time, kinds of traffic stacked."""
    assert results.link_series is not None
    series = results.link_series
    step = -(-series.shape[1] // STEPS)
    sums = np.add.reduceat(series, np.arange(0, series.shape[1], step), axis=1)
    full = results.link_rate_bps / 8 * step * results.bin_ps / PS_PER_S  # bytes per step
    times_ms = np.arange(sums.shape[1]) * step * results.bin_ps / PS_PER_MS
    figure: Figure
    inches = sheet.size(6.4, 2.8)
    figure, axes = subplots(figsize=inches)
    kinds = results.timeline.kinds
    colors = [color_of(each, kinds) if each in kinds else COLORS[-1] for each in results.labels]
    axes.stackplot(
        times_ms, 100 * sums / full, colors=colors, labels=results.labels, step="post", linewidth=0
    )
    axes.set_ylim(0, 105)
    axes.set_xlim(0, max(times_ms[-1], results.iteration_ps / PS_PER_MS))
    axes.set_xlabel(f"{results.clock} time (ms)", fontsize=9)
    axes.set_ylabel("load (%)", fontsize=9)
    axes.tick_params(labelsize=8)
    columns = min(len(results.labels), sheet.entries(results.labels, inches[0]))
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9)
    title = sheet.broken(f"The busiest link, {results.link}", inches[0])
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure
