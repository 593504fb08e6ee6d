"""Find the dead time from which on circuits lose more than they gain, and what controllers gain.

    python -m studies.circuits circuits/sweep.csv --figure circuits.png

reads what `ringleaf run --spec circuits.yaml -o circuits` has measured. Gains are over the core of
packet switches alone that the racks have beside their circuits; of a topology without a core, over
that as well. The break-even is read off between the two dead times around it, on a logarithmic
axis.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from pathlib import Path
from typing import Annotated

import typer

from bench.options import FigureFile
from ringleaf.core.units import PS_PER_MS, PS_PER_US, format_time
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.figures.style import DOTS_PER_INCH, matplotlib_style, subplots
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.topologies.switching.settings import parse_circuits
from studies.times import note_time

BLOCKING = "leafspine,leaves=8,spines=1,hosts=4"
NON_BLOCKING = "leafspine,leaves=8,spines=4,hosts=4"
RACKS = "circuits,racks=8,"
"""The beginning of topologies with as many racks as these."""

SWEPT = "helios"
"""The controller whose dead time is swept, with senders that go on."""

_HEADER = f"#{'gain':>7}{'of best':>9}  algo, controller"

Times = dict[tuple[str, str, str], int]
"""Times in ps by topology, circuits and algorithm."""


@dataclass(frozen=True, slots=True)
class SweptTimes:
    """An algorithm's times by dead time, in ps, and those without circuits.

    Attributes:
        algo: The algorithm.
        times_ps: By dead time, in order.
        without_ps: With the core of packet switches alone.
        best_ps: With a core that blocks nothing.
    """

    algo: str
    times_ps: Mapping[int, int]
    without_ps: int
    best_ps: int

    def break_even_ps(self) -> int | None:
        """Return the dead time at which circuits gain nothing; None: it is beyond those tried."""
        points = sorted(self.times_ps.items())
        for (low, before), (high, after) in pairwise(points):
            if before < self.without_ps <= after:
                share = (self.without_ps - before) / (after - before)
                if not low:  # a logarithmic axis has no 0
                    return round(share * high)
                return round(exp(log(low) + share * (log(high) - log(low))))
        return None


def read_times(path: Path) -> Times:
    """Return the times of a sweep.

    Raises:
        ConfigError: If the file can't be read, or is another one.
    """
    try:
        times: Times = {}
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                note_time(times, (row["topo"], row["circuits"], row["algo"]), int(row["time_ps"]))
        return times
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"circuits: must be a sweep of circuits.yaml, got {str(path)!r}: {error}"
        ) from error


def swept(times: Times) -> list[SweptTimes]:
    """Return the times by dead time.

    Raises:
        ConfigError: If there are none.
    """
    by_algo: dict[str, dict[int, int]] = {}
    for (topo, text, algo), time_ps in times.items():
        circuits = parse_circuits(text, "circuits")
        if not topo.startswith(RACKS) or not circuits or circuits.pauses:
            continue
        if circuits.name == SWEPT:
            own = by_algo.setdefault(algo, {})
            if own.setdefault(circuits.dead_ps, time_ps) != time_ps:
                raise ConfigError(
                    f"circuits: {algo} must have one time for each dead time, got two for {text}; "
                    "sweep dead times alone"
                )
    found = [
        SweptTimes(algo, dict(sorted(own.items())), *_references(times, algo))
        for algo, own in by_algo.items()
        if None not in _references(times, algo)
    ]
    if not found:
        raise ConfigError("circuits: must have dead times of helios, and leaf-spines, got none")
    return found


def _references(times: Times, algo: str) -> tuple[int, int]:
    """Return the times without circuits: with a core that blocks, and with one that does not."""
    keys = ((topo, "", algo) for topo in (BLOCKING, NON_BLOCKING))
    without, best = (times.get(key, 0) for key in keys)
    return without, best


def gains(times: Times) -> Iterator[tuple[float, float, str]]:
    """Yield how many times as fast as packets alone each run is, and its share of the best."""
    for (topo, text, algo), time_ps in times.items():
        without_ps, best_ps = _references(times, algo)
        if text and topo.startswith(RACKS) and without_ps and best_ps:
            core = "no core" if topo.endswith("core=0") else "core"
            yield without_ps / time_ps, best_ps / time_ps, f"{algo}, {text} ({core})"


def draw(found: Sequence[SweptTimes], path: Path) -> None:
    """Write the figure."""
    with matplotlib_style():
        figure, axes = subplots(figsize=(6.4, 3.8))
        for each, color, marker in zip(
            found, ("#1f77b4", "#d95f02", "#7570b3"), "os^", strict=False
        ):
            dead_us = [dead / PS_PER_US for dead in each.times_ps]
            taken_ms = [time / PS_PER_MS for time in each.times_ps.values()]
            axes.plot(dead_us, taken_ms, f"{marker}-", color=color, label=f"{each.algo}, Helios")
            axes.axhline(
                each.without_ps / PS_PER_MS,
                color=color,
                linestyle="--",
                linewidth=1,
                label=f"{each.algo}, packets alone",
            )
        axes.set(xscale="log", xlabel="dead time (µs)", ylabel="time (ms, simulated)")
        axes.set_ylim(0)
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
        axes.minorticks_off()
        axes.legend(loc="lower right", ncols=2)
        figure.savefig(path, format=path.suffix[1:], dpi=DOTS_PER_INCH)


def circuits_command(
    sweep: Annotated[Path, typer.Argument(help="sweep.csv of the spec circuits.yaml.")],
    figure: FigureFile = None,
    debug: Debug = False,
) -> None:
    """Print each controller's gain, and the dead times at which there is none."""
    times = read_times(sweep)
    found = swept(times)
    say(_HEADER)
    for gain, share, name in gains(times):
        say(f"{gain:8.2f}{100 * share:8.0f}%  {name}")
    for each in found:
        even_ps = each.break_even_ps()
        told = "not within those tried" if even_ps is None else f"at {format_time(even_ps)}"
        say(f"# {each.algo}: {SWEPT} breaks even {told} of dead time")
    if figure is not None:
        draw(found, figure)


if __name__ == "__main__":
    alone("python -m studies.circuits", circuits_command)
