"""Figures of the embedding exchange: hits, bytes and times against the cache's size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.figures import sheet
from ringleaf.experiments.figures.style import subplots
from ringleaf.experiments.workloads.nic.workload import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HOST = "host"
LOOKS = {"lru": ("#3f7fd1", "o"), "lfu": ("#e08a2b", "s")}
LINES = {"no": "-", "yes": ":"}
GREY = "#7d8590"
FORWARD = ("index_bytes", "vector_bytes")
BYTES = (*FORWARD, "gradient_bytes", "coherence_bytes")

Value = Callable[[Row], float]


def megabytes(names: Sequence[str]) -> Value:
    """Return a function that adds up a row's bytes of some names, in MB."""
    return lambda row: sum(int(row[name]) for name in names) / 1e6


def microseconds(name: str) -> Value:
    """Return a function that takes a time of a row."""
    return lambda row: float(row[name]) / PS_PER_US


def draw_cache(rows: Sequence[Row]) -> Figure:
    """Draw hit rate and bytes against the cache's size, a line for each policy."""
    figure: Figure
    columns = 3 if sheet.across(3, 2.8) == 3 else 1
    inches = sheet.size(10, 3.6 if columns == 3 else 8)
    figure, panels = subplots(3 // columns, columns, figsize=inches)
    hits, forward, both = panels
    _draw(hits, rows, lambda row: float(row["hit_percent"]), with_host=False)
    hits.set_ylim(0, 100)
    hits.set_title("hits (% of remote look-ups)", fontsize=9)
    _draw(forward, rows, megabytes(FORWARD))
    forward.set_title("forward (MB per iteration)", fontsize=9)
    _draw(both, rows, megabytes(BYTES))
    both.set_title("both passes (MB per iteration)", fontsize=9)
    _finish(figure, forward, "Hits and bytes against the cache's size")
    return figure


def draw_time(rows: Sequence[Row], clock: str) -> Figure:
    """Draw the time of both passes against the cache's size."""
    figure: Figure
    columns = sheet.across(2, 2.8)
    inches = sheet.size(9, 3.6 if columns == 2 else 6.4)
    figure, axes = subplots(2 // columns, columns, figsize=inches, sharey=True)
    for place, name in zip(axes, ("forward", "backward"), strict=True):
        _draw(place, rows, microseconds(f"{name}_ps"))
        place.set_title(name, fontsize=10)
    axes[0].set_ylabel(f"{clock} time (us)", fontsize=9)
    _finish(figure, axes[0], "Time of both passes")
    return figure


def _draw(axes: Axes, rows: Sequence[Row], value: Value, *, with_host: bool = True) -> None:
    """Draw a value against the cache's size, at equal distances."""
    nics = [row for row in rows if row["system"] != HOST]
    sizes = sorted({int(row["cache"]) for row in nics})
    for policy, pool in dict.fromkeys((row["policy"], row["pool"]) for row in nics):
        line = [row for row in nics if (row["policy"], row["pool"]) == (policy, pool)]
        color, marker = LOOKS[policy]
        axes.plot(
            [sizes.index(row["cache"]) for row in line],
            [value(row) for row in line],
            marker=marker,
            color=color,
            linestyle=LINES[pool],
            fillstyle="full" if pool == "no" else "none",
            label=f"NIC, {policy.upper()}{', sums of bags' if pool == 'yes' else ''}",
        )
    for row in rows if with_host else ():
        if row["system"] == HOST:
            axes.axhline(value(row), color=GREY, linestyle="--", label="host")
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.set_xlabel("cache (rows of other ranks)", fontsize=9)
    axes.tick_params(labelsize=8)


def _finish(figure: Figure, labelled: Axes, title: str) -> None:
    lines, labels = labelled.get_legend_handles_labels()
    columns = sheet.entries(labels, figure.get_figwidth(), 5, points=8)
    figure.legend(lines, labels, loc="outside lower center", ncols=columns, fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
