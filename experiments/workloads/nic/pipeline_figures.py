"""Figures of a layer pipeline: its times against the size of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringleaf.core.units import PS_PER_US, format_count, format_time
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.style import subplots
from ringleaf.experiments.workloads.nic.workload import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#3f7fd1", "#e08a2b", "#4a9d6e", "#b0548f", "#8a6d3b", "#7d8590")
MARKERS = ("o", "s", "^", "D", "v", "P")


def draw_time(rows: Sequence[Row], clock: str) -> Figure:
    """Draw the time of all samples against a message's size, measured and by formula."""
    return _draw(rows, clock, "time_ps", "Time of all samples", with_formula=True)


def draw_first(rows: Sequence[Row], clock: str) -> Figure:
    """Draw the time until the first message's result against its size."""
    return _draw(rows, clock, "first_ps", "Time until the first result", with_formula=False)


def draw_turn(rows: Sequence[Row], clock: str) -> Figure:
    """Draw the time of each further message on NICs against the rate of multiplications."""
    figure: Figure
    figure, axes = subplots(figsize=sheet.size(6.4, 3.6))
    nics = [row for row in rows if row["system"] == "nic" and row["messages"] > 1]
    for number, tile in enumerate(sorted({int(row["tile"]) for row in nics})):
        line = sorted((row for row in nics if row["tile"] == tile), key=lambda row: row["products"])
        color = COLORS[number % len(COLORS)]
        rates = [row["products"] / 1e12 for row in line]
        turns_us = [
            (row["time_ps"] - row["first_ps"]) / (row["messages"] - 1) / PS_PER_US for row in line
        ]
        label = format_count(tile, "sample")
        marker = MARKERS[number % len(MARKERS)]
        axes.plot(rates, turns_us, marker=marker, color=color, label=label)
        expected_us = [row["turn_ps"] / PS_PER_US for row in line]
        axes.plot(rates, expected_us, color=color, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:.3g}")
    axes.minorticks_off()
    axes.set_xlabel("multiplications per second (10^12)", fontsize=9)
    axes.set_ylabel(f"{clock} time (us)", fontsize=9)
    axes.tick_params(labelsize=8)
    labels = axes.get_legend_handles_labels()[1]
    columns = sheet.entries(labels, figure.get_figwidth(), 4)
    figure.legend(loc="outside lower center", ncols=columns, fontsize=8)
    figure.suptitle("Time of each further message", x=0.01, ha="left", fontsize=11)
    return figure


def _draw(rows: Sequence[Row], clock: str, name: str, title: str, *, with_formula: bool) -> Figure:
    figure: Figure
    figure, axes = subplots(figsize=sheet.size(6.4, 3.6))
    rows = [row for row in rows if row["products"] == rows[0]["products"]]
    systems = dict.fromkeys((row["system"], row["latency_ps"]) for row in rows)
    for number, (system, latency_ps) in enumerate(systems):
        line = [row for row in rows if (row["system"], row["latency_ps"]) == (system, latency_ps)]
        line.sort(key=lambda row: int(row["tile"]))
        label = "NIC" if system == "nic" else f"host, {format_time(latency_ps)}"
        _line(axes, line, name, number, label)
        if with_formula:
            times_us = [row["formula_ps"] / PS_PER_US for row in line]
            color = COLORS[number % len(COLORS)]
            axes.plot([row["tile"] for row in line], times_us, color=color, linestyle=":")
    tiles = sorted({int(row["tile"]) for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(tiles, [str(tile) for tile in tiles])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("samples of a message", fontsize=9)
    axes.set_ylabel(f"{clock} time (us)", fontsize=9)
    axes.tick_params(labelsize=8)
    labels = axes.get_legend_handles_labels()[1]
    columns = sheet.entries(labels, figure.get_figwidth(), 4)
    figure.legend(loc="outside lower center", ncols=columns, fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def _line(axes: Axes, line: Sequence[Row], name: str, number: int, label: str) -> None:
    axes.plot(
        [row["tile"] for row in line],
        [row[name] / PS_PER_US for row in line],
        marker=MARKERS[number % len(MARKERS)],
        color=COLORS[number % len(COLORS)],
        label=label,
    )
