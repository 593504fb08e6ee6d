"""Figures of trainings that lose hosts: iterations over time, what time went into, and sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from ringleaf.core.units import PS_PER_S
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.style import INK, subplots
from ringleaf.hosts.recoveries.common.course import Phase

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringleaf.experiments.workloads.recovery.results import (
        PhaseLine,
        RecoveryLine,
        RecoveryResults,
    )

COLORS = ("#7d8590", "#3f7fd1", "#e08a2b", "#1f9d8b", "#d62f5c", "#9467bd", "#92703c")
MARKERS = "o^sDvPX"

PHASES = (
    (Phase.ITERATION, "iterations", "#1f9d8b"),
    (Phase.LOST, "lost", "#d62f5c"),
    (Phase.SAVE, "checkpoints", "#9467bd"),
    (Phase.DETECT, "detection", "#e08a2b"),
    (Phase.RESTART, "regrouping, restart", "#c8b273"),
    (Phase.COPY, "copies", "#3f7fd1"),
    (Phase.WAIT, "waiting for hosts", "#c6ccd3"),
)
UNDONE = "#f0a6b8"

Line = Mapping[str, object]


def progress(
    phases: Sequence[PhaseLine], lines: Sequence[RecoveryLine]
) -> tuple[list[float], list[int]]:
    """Return the times, in seconds, at which iterations were done or undone, and their number.

    Args:
        phases: All phases of a training.
        lines: Its losses.
    """
    changes = [(p.end_ps, 1) for p in phases if p.phase == Phase.ITERATION.value]
    changes += [(line.at_ps, -line.undone) for line in lines]
    times, counts, done = [0.0], [0], 0
    for at_ps, change in sorted(changes):
        times += [at_ps / PS_PER_S]
        done += change
        counts.append(done)
    return times, counts


def draw_course(results: RecoveryResults) -> Figure:
    """Draw the iterations that are done over time, a line for each recovery; crosses are losses."""
    inches = sheet.size(8, 4.2)
    figure: Figure
    figure, axes = subplots(figsize=inches)
    most = max(row.iterations for row in results.rows)
    until_s = most * results.usual_ps / PS_PER_S
    axes.plot(
        [0, until_s], [0, most], color=INK, linestyle=":", linewidth=1, label="without losses"
    )
    for row, color in zip(results.rows, COLORS * len(results.rows), strict=False):
        lines = [each for each in results.lines if each.recovery == row.recovery]
        phases = [each for each in results.phases if each.recovery == row.recovery]
        times, counts = progress(phases, lines)
        axes.step(times, counts, where="post", color=color, linewidth=1.4, label=row.recovery)
        lost = [each.at_ps / PS_PER_S for each in lines]
        heights = [counts[max(at for at, time in enumerate(times) if time <= t)] for t in lost]
        axes.plot(lost, heights, "x", color=color, markersize=5, linestyle="none")
    axes.set_xlabel("time (s, simulated); crosses: losses")
    axes.set_ylabel("iterations done")
    axes.legend(loc="best", fontsize=9)
    return figure


def draw_time(results: RecoveryResults) -> Figure:
    """Draw what the time of each training went into, as bars."""
    inches = sheet.size(8, 1.4 + 0.4 * len(results.rows))
    figure: Figure
    figure, axes = subplots(figsize=inches)
    names = [row.recovery for row in results.rows]
    left = [0.0] * len(names)
    undone = [_undone_s(results, name) for name in names]
    for phase, label, color in PHASES:
        widths = [_total_s(results, name, phase) for name in names]
        if phase is Phase.ITERATION:
            widths = [each - lost for each, lost in zip(widths, undone, strict=True)]
        left = _bars(axes, left, widths, label, color)
        if phase is Phase.ITERATION:
            left = _bars(axes, left, undone, "done again", UNDONE)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("time (s, simulated)")
    _, labels = axes.get_legend_handles_labels()
    columns = sheet.entries(labels, inches[0], points=9)
    figure.legend(loc="outside upper center", ncols=columns, fontsize=9)
    return figure


def _bars(
    axes: Axes, left: Sequence[float], widths: Sequence[float], label: str, color: str
) -> list[float]:
    """Add a part of all bars, if there is any; return where the next one begins."""
    if any(widths):
        axes.barh(range(len(left)), widths, left=left, color=color, label=label)
    return [start + width for start, width in zip(left, widths, strict=True)]


def _total_s(results: RecoveryResults, name: str, phase: Phase) -> float:
    own = (each for each in results.phases if (each.recovery, each.phase) == (name, phase.value))
    return sum(each.end_ps - each.start_ps for each in own) / PS_PER_S


def _undone_s(results: RecoveryResults, name: str) -> float:
    """Return the time of whole iterations that were done again: what was lost, less the rest."""
    lost = sum(each.lost_ps for each in results.lines if each.recovery == name) / PS_PER_S
    return lost - _total_s(results, name, Phase.LOST)


def _axis_of(lines: Sequence[Line], names: Sequence[str]) -> str:
    others = [name for name in names if name != "seed"] or list(names)
    return max(others, key=lambda name: len({str(line[name]) for line in lines}))


def draw_sweep(lines: Sequence[Line], names: Sequence[str]) -> Figure:
    """Draw the goodput of all runs against the option that has most values, but for seeds.

    Markers are medians of runs that differ in something else, bars behind them their range.

    Args:
        lines: The rows of all runs, each with the options by which runs differ.
        names: These options.
    """
    axis = _axis_of(lines, names)
    values = list(dict.fromkeys(str(line[axis]) for line in lines))
    inches = sheet.size(7, 4)
    figure: Figure
    figure, axes = subplots(figsize=inches)
    for number, name in enumerate(dict.fromkeys(str(line["recovery"]) for line in lines)):
        shares: dict[str, list[float]] = {value: [] for value in values}
        for line in lines:
            if line["recovery"] == name:
                shares[str(line[axis])].append(100 * float(str(line["share"])))
        color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
        known = [at for at, value in enumerate(values) if shares[value]]
        middle = [median(shares[values[at]]) for at in known]
        axes.plot(known, middle, color=color, marker=marker, label=name)
        for at in known:
            own = shares[values[at]]
            axes.vlines(at, min(own), max(own), color=color, linewidth=3, alpha=0.35)
    axes.set_xticks(range(len(values)), values)
    axes.set_xlabel(axis.replace("_", " "))
    axes.set_ylabel("goodput (% of a training without losses)")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", fontsize=9)
    return figure
