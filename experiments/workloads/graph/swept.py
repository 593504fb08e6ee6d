"""A figure of all runs of a sweep of workloads: times of ranks, or of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ringleaf.core.units import PS_PER_MS, PS_PER_US
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.style import mark_logarithmic, subplots
from ringleaf.experiments.records import circuit_counts
from ringleaf.experiments.records.columns import Column, as_ms, fixed
from ringleaf.experiments.workloads.graph.figures import SPENT
from ringleaf.experiments.workloads.graph.results import PERCENTILE_NAMES, SLOWDOWN_NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Line = Mapping[str, object]

VALUES = (
    *("iteration_ps", "compute_share", "exposed_share", "idle_share", "bubble"),
    *PERCENTILE_NAMES,
    *SLOWDOWN_NAMES,
    *("fairness", "peak_queue_bytes", "wrong", "retransmissions", "drops", "packet_hops"),
    *("pauses", "trims", "lost", "corrupted", "repaths", *circuit_counts.NAMES, "virtual_ps"),
)
"""The values of a run's summary that are in the file of a sweep."""

_COUNTS = (
    Column("wrong", "#wrong"),
    Column("retransmissions", "retx"),
    Column("drops", "drops"),
)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _as_us(time_ps: int) -> str:
    return f"{time_ps / PS_PER_US:.1f}"


REPLAYS = (
    Column("iteration_ps", "iteration", "ms", show=as_ms),
    Column("compute_share", "computing", "%", show=_percent),
    Column("exposed_share", "exposed", "%", show=_percent),
    Column("idle_share", "idle", "%", show=_percent),
    *_COUNTS,
)
"""The columns of a sweep's page."""

TRAFFIC = (
    *(
        Column(name, title, "us", show=_as_us)
        for name, title in zip(PERCENTILE_NAMES, ("p50", "p99", "p99.9"), strict=True)
    ),
    Column("slowdown_p50", "slowdown p50", show=fixed(2)),
    Column("slowdown_p99", "slowdown p99", show=fixed(2)),
    Column("fairness", "Jain", show=fixed(3)),
    Column("peak_queue_bytes", "queue", "KiB", show=lambda peak: f"{peak / 1024:.1f}"),
    *_COUNTS,
)
"""The same, where all runs are of flows."""

MOST_BARS = 40
MOST_COLUMNS = 2
_PERCENTILES = (
    ("p50_ps", "median", "o", "#3f7fd1"),
    ("p99_ps", "99 %", "s", "#e08a2b"),
    ("p999_ps", "99.9 % (hollow)", "D", "#d62f5c"),
)
_HEIGHT = 0.32  # inches, of a bar


def make_spending(lines: Sequence[Line], names: Sequence[str]) -> Figure:
    """Return the figure of how ranks spend an iteration.

    Args:
        lines: The results of all runs, each with the options by which runs differ.
        names: These options.
    """
    shown = lines[:MOST_BARS]
    labels = [", ".join(f"{name} {line[name]}" for name in names) for line in shown]
    inches = sheet.size(8, 1.4 + _HEIGHT * len(shown))
    figure: Figure
    figure, axes = subplots(figsize=inches)
    labels = [sheet.broken(label, inches[0] / 2, 10) for label in labels]
    left = [0.0] * len(shown)
    for name, label, color in SPENT:
        share = f"{name.removesuffix('_ps')}_share"
        widths = [_ms(line) * float(str(line[share])) for line in shown]
        axes.barh(range(len(shown)), widths, left=left, color=color, label=label)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(shown)), labels)
    axes.invert_yaxis()
    axes.set_xlabel(f"a rank's time in an iteration (ms, {_clock(shown)})")
    axes.grid(axis="y", visible=False)
    columns = sheet.entries([title for _, title, _ in SPENT], inches[0], points=10)
    figure.legend(loc="outside upper center", ncols=columns)
    return figure


def make_times(lines: Sequence[Line], names: Sequence[str]) -> Figure:
    """Return the figure of percentiles of messages' times, a row per value of the last option.

    There is a panel per value of the other options. Arguments are those of `make_spending`.
    """
    *others, last = names
    panels: dict[str, list[Line]] = {}
    for line in lines:
        panels.setdefault(", ".join(str(line[name]) for name in others), []).append(line)
    values = list(dict.fromkeys(str(line[last]) for line in lines))
    columns = sheet.across(min(len(panels), MOST_COLUMNS), 2.4, 0.8)
    rows = -(-len(panels) // columns)
    size = sheet.size(max(4.2 * columns, 6), (1.2 + _HEIGHT * len(values)) * rows + 0.5)
    figure: Figure
    figure, grid = subplots(rows, columns, figsize=size, squeeze=False, sharey=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (title, chosen) in zip(grid.flat, panels.items(), strict=False):
        axes.set_title(title, fontsize=10, loc="left")
        for name, label, marker, color in _PERCENTILES:
            times = [int(str(line[name])) / PS_PER_US for line in chosen]
            places = [values.index(str(line[last])) for line in chosen]
            axes.plot(
                times, places, marker, color=color, label=label, linestyle="none",
                markerfacecolor="none" if marker == "D" else color,
                markersize=9 if marker == "D" else 6,
            )  # fmt: skip
        axes.set_yticks(range(len(values)), values)
        axes.set_ylim(len(values) - 0.5, -0.5)
        axes.set_xscale("log")
        mark_logarithmic(axes.xaxis)
        axes.set_xlabel(f"time of messages (us, {_clock(chosen)})")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    across = sheet.entries(labels, size[0], points=10)
    figure.legend(handles, labels, loc="outside upper center", ncols=across)
    return figure


def _clock(lines: Sequence[Line]) -> str:
    """Return the names of the clocks that times are of; live runs have a prediction, too."""
    is_live = dict.fromkeys(line.get("virtual_ps") not in (None, "") for line in lines)
    return " or ".join("wall-clock" if each else "simulated" for each in is_live)


def _ms(line: Line) -> float:
    return int(str(line["iteration_ps"])) / PS_PER_MS
