"""Speed-up over a ring against density, with the papers' formulas as limits, of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ringleaf.collectives.sparse.models import BEST_PS, Setting, ring_ps
from ringleaf.core.units import format_count, format_rate, format_size, parse_fraction
from ringleaf.experiments.figures.looks import look_of
from ringleaf.experiments.figures.style import subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Line = Mapping[str, str]

BLOCK = 32
"""The values in a block of OmniReduce."""

HOPS = 2
"""The links between two hosts of a rack."""


def as_texts(lines: Iterable[Mapping[str, object]]) -> list[Line]:
    """Return a sweep's rows with all values as texts."""
    return [
        {name: "" if value is None else str(value) for name, value in line.items()}
        for line in lines
    ]


def fits(lines: Sequence[Line]) -> bool:
    """Return whether a sweep is over densities, and each run has one ring to compare with."""
    places = {_place(line) for line in lines}
    rings = Counter(_place(line) for line in lines if line.get("algo") == "ring")
    densities = {density for *_, density in places}
    return len(densities) > 1 and all(rings[place] == 1 for place in places)


def _place(line: Line) -> tuple[str, str, str]:
    """Return what runs have in common that are compared; jobs and workloads have no densities."""
    return line.get("cluster", ""), line.get("ranks", ""), line.get("density", "")


def make(lines: Sequence[Line]) -> Figure:
    """Return the figure of a sweep's rows."""
    patterns = list(dict.fromkeys(line.get("cluster", "") for line in lines))
    sizes = list(dict.fromkeys(line["ranks"] for line in lines))
    figure: Figure
    figure, grid = subplots(
        len(patterns), len(sizes), figsize=(4.9 * len(sizes), 3.7 * len(patterns)),
        squeeze=False, sharex=True, sharey="row",
    )  # fmt: skip
    for row, pattern in zip(grid, patterns, strict=True):
        for axes, ranks in zip(row, sizes, strict=True):
            chosen = [
                line
                for line in lines
                if (line.get("cluster", ""), line["ranks"]) == (pattern, ranks)
            ]
            _panel(axes, chosen, pattern)
        row[0].set_ylabel("speed-up over ring, dense")
    for axes in grid[-1]:
        axes.set_xlabel("elements that are not zero (%)")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
    first = lines[0]
    figure.suptitle(
        f"Allreduce of {format_size(int(first['size_bytes']))} at "
        f"{format_rate(int(first['rate_bps']))}, in {_clock(lines)} time\n"
        "dashed: least time by the papers' formulas",
        fontsize=10,
    )
    return figure


def _clock(lines: Sequence[Line]) -> str:
    """Return the clocks that times are of; live and simulated runs may be in one sweep."""
    return " and ".join(dict.fromkeys(line["clock"] for line in lines))


def _share(text: str) -> float:
    return 1.0 if text in ("", "100%", "1") else parse_fraction(text, "density")


def _panel(axes: Axes, lines: Sequence[Line], pattern: str) -> None:
    rings = {line["density"]: int(line["time_ps"]) for line in lines if line["algo"] == "ring"}
    algos = list(dict.fromkeys(line["algo"] for line in lines if line["algo"] != "ring"))
    for algo in algos:
        own = sorted((line for line in lines if line["algo"] == algo), key=_density)
        look = look_of(algo)
        densities = [100 * _density(line) for line in own]
        gains = [rings[line["density"]] / int(line["time_ps"]) for line in own]
        axes.plot(
            densities, gains, color=look.color, marker=look.marker, markersize=5.5, label=algo
        )
        if algo in BEST_PS:
            allowed = [_allowed(line, algo, pattern) for line in own]
            axes.plot(densities, allowed, "--", color=look.color, linewidth=1, alpha=0.8)
    axes.axhline(1, color="#808080", linewidth=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    where = "at random places" if pattern in ("", "1") else f"in runs of {pattern}"
    workers = format_count(int(lines[0]["ranks"]), "worker")
    axes.set_title(f"{workers}; non-zeros {where}", fontsize=10)


def _density(line: Line) -> float:
    return _share(line["density"])


def _allowed(line: Line, algo: str, pattern: str) -> float:
    """Return the speed-up if the algorithm and a ring took the least times that were published."""
    density, run = _density(line), int(pattern or 1)
    blocks = density if run >= BLOCK else 1 - (1 - density) ** (BLOCK / run)
    setting = Setting(
        ranks=int(line["ranks"]),
        size_bytes=int(line["size_bytes"]),
        density=density,
        blocks=blocks,
        rate_bps=int(line["rate_bps"]),
        alpha_ps=HOPS * int(line["delay_ps"]),
    )
    return ring_ps(setting) / BEST_PS[algo](setting)
