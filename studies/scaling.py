"""Check that time and memory grow with packets: `python -m studies.scaling`.

Runs whole commands, `ringleaf run`, one after the other, on larger and larger fat-trees, with a
tensor of the same size on each host. Prints a row for each, as it ends, and draws time and memory
over packet-hops. A case that fails has its reason in place of a row, and the others go on; Ctrl-C
keeps the rows so far, and the figure has them.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.options import FigureFile, several
from bench.peers.process import Used, run_command
from ringleaf.core.threads import count_cores
from ringleaf.core.units import format_size, parse_size
from ringleaf.errors import BackendError, choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.estimates.estimate import need
from ringleaf.experiments.figures.style import DOTS_PER_INCH, matplotlib_style, subplots
from ringleaf.experiments.runs.console import FAILURE, Debug, say
from ringleaf.experiments.runs.progress import Progress, progress
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.collective.kind import resolve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KS = (4, 6, 8, 10, 12, 16)
"""Ports per switch of the fat-trees: 16, 54, 128, 250, 432 and 1,024 hosts."""

WORKLOADS: dict[str, dict[str, str]] = {
    "ring": {"algo": "ring", "size": "16MiB", "data": "none"},
    "halvingdoubling": {"algo": "halvingdoubling", "size": "1MiB"},
}
_FLOWS = {"size": "100MiB", "net": "flow", "data": "none", "skip": "0%"}
FLOW_KS = (16, 32, 64)
"""Ports per switch where flows go by classes of ranks: 1,024, 8,192 and 65,536 hosts."""

FLOWS: dict[str, dict[str, str]] = {
    f"flow-{algo}": {"algo": algo, **_FLOWS}
    for algo in ("ring", "halvingdoubling", "hierring", "tree", "alltoall")
}
"""Workloads without packets, which are run if they are named."""

DISTANCE = 4.0  # links between two hosts, about: for estimates of time only
MIB = 1 << 20

_OUT = "out"  # in a command's folder
_HEADER = (
    f"#{'algo':>15} {'hosts':>6} {'packet-hops':>12} {'wall (s)':>9} {'CPU (s)':>8} {'hops/s':>9}"
    f" {'memory':>12} {'bytes/host':>11}"
)


@dataclass(frozen=True, slots=True)
class ScalingCase:
    """A workload on a fat-tree."""

    workload: str
    k: int
    options: Mapping[str, str]  # of `ringleaf run`, but for the topology

    @property
    def hosts(self) -> int:
        """The number of hosts."""
        return self.k**3 // 4

    def __str__(self) -> str:
        return f"{self.workload} among {self.hosts:,} hosts"

    @property
    def given(self) -> dict[str, str]:
        """All options of the run."""
        return {"topo": f"fattree,k={self.k}", **self.options}


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """A case, and what the whole command took."""

    case: ScalingCase
    packet_hops: int
    used: Used

    @property
    def line(self) -> str:
        """A row of the table."""
        used, hosts = self.used, self.case.hosts
        return (
            f"{self.case.workload:>16} {hosts:>6} {self.packet_hops:>12} {used.wall_s:>9.1f}"
            f" {used.cpu_s:>8.1f} {self.packet_hops / used.wall_s:>9.0f}"
            f" {format_size(used.peak_bytes):>12} {used.peak_bytes // hosts:>11}"
        )


def cases(workloads: Sequence[str], ks: Sequence[int], threads: str | None) -> list[ScalingCase]:
    """Return all cases, workload by workload, from the smallest network to the largest."""
    more = {} if threads is None else {"threads": threads}
    return [
        ScalingCase(name, k, {**options, **more})
        for name in workloads
        for options in [(WORKLOADS | FLOWS)[name]]
        for k in sorted(ks or (FLOW_KS if name in FLOWS else KS))
    ]


def command(case: ScalingCase) -> list[str]:
    """Return the command of a case."""
    words = [word for name, value in case.given.items() for word in (f"--{name}", value)]
    cli = [sys.executable, "-P", "-m", "ringleaf.experiments.commands.cli"]
    return [*cli, "run", *words, "--out", _OUT]


def measure(case: ScalingCase) -> ScalingRow:
    """Run a case's command, in a folder of its own.

    Raises:
        BackendError: If it fails, or leaves no count of packet-hops.
    """
    with tempfile.TemporaryDirectory(prefix="ringleaf-") as folder:
        used = run_command(str(case), command(case), Path(folder))
        return ScalingRow(case, _packet_hops(case, Path(folder, _OUT, "summary.json")), used)


def _packet_hops(case: ScalingCase, summary: Path) -> int:
    """Return the packet-hops of all rows of a run.

    Raises:
        BackendError: If they are not there.
    """
    try:
        hops = sum(int(row["packet_hops"]) for row in json.loads(summary.read_text())["rows"])
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise BackendError(f"{case}: must leave summary.json with rows, got {error!r}") from error
    if hops < 1:
        raise BackendError(f"{case}: must count packet-hops, got {hops}")
    return hops


def run(chosen: Sequence[ScalingCase], found: list[ScalingRow]) -> int:
    """Print a row per case, and add it to `found`; return how many cases have failed."""
    weights = [_expected_s(each) for each in chosen]
    failed = 0
    with progress(sum(weights)) as shown:
        _warm_up(chosen, shown)
        for case, weight in zip(chosen, weights, strict=True):
            shown.begin(str(case), weight, 0.0)
            try:
                row = measure(case)
            except BackendError as error:
                failed += 1
                line = f"# failed: {error}"
            else:
                found.append(row)
                line = row.line
            shown.end()
            say(line)
    return failed


def _expected_s(case: ScalingCase) -> float:
    spec = resolve(case.given)
    return need(spec, count_nodes(spec), DISTANCE).known_s


def _warm_up(chosen: Sequence[ScalingCase], shown: Progress) -> None:
    """Run small cases that do not count: the first run on a machine compiles."""
    shown.stage("small runs, which do not count")
    for workload, case in {each.workload: each for each in chosen}.items():
        options = {"threads": str(count_cores()), **case.options, "size": "64KiB"}
        measure(ScalingCase(workload, min(KS), options))


def growth(found: Sequence[ScalingRow]) -> Iterator[str]:
    """Yield a line for each workload: by which powers of packet-hops time and memory grow.

    The powers are of the two largest networks, where what every run takes weighs least.
    """
    for name, rows in _by_workload(found).items():
        if len(rows) > 1:
            small, large = rows[-2:]
            wall, cpu, memory = powers(small, large)
            yield (
                f"# {name}, {small.case.hosts} to {large.case.hosts} hosts: as powers of "
                f"packet-hops, wall clock {wall:.2f}, CPU {cpu:.2f}, memory {memory:.2f}; 1: linear"
            )


def powers(small: ScalingRow, large: ScalingRow) -> tuple[float, float, float]:
    """Return as which powers of packet-hops wall clock, CPU and memory grow between two cases."""
    more = math.log(large.packet_hops / small.packet_hops)
    return (
        math.log(large.used.wall_s / small.used.wall_s) / more,
        math.log(large.used.cpu_s / small.used.cpu_s) / more,
        math.log(large.used.peak_bytes / small.used.peak_bytes) / more,
    )


def _by_workload(found: Sequence[ScalingRow]) -> dict[str, list[ScalingRow]]:
    """Return the rows of each workload, in their order."""
    names = dict.fromkeys(each.case.workload for each in found)
    return {name: [each for each in found if each.case.workload == name] for name in names}


def draw(found: Sequence[ScalingRow], path: Path) -> None:
    """Draw time and memory over packet-hops, both axes logarithmic, with lines of slope 1."""
    with matplotlib_style():
        figure, (times, memories) = subplots(1, 2, figsize=(9, 3.8))
        _draw_panel(times, found, "wall clock of the command (s)", lambda used: used.wall_s)
        _draw_panel(memories, found, "memory (MiB)", lambda used: used.peak_bytes / MIB)
        figure.legend(*memories.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        figure.savefig(path, format="png", dpi=DOTS_PER_INCH)


def _draw_panel(
    axes: Axes, found: Sequence[ScalingRow], label: str, value: Callable[[Used], float]
) -> None:
    """Draw a line for each workload, and beside it one of slope 1 through its last point."""
    from matplotlib.ticker import LogLocator

    for rows, mark in zip(_by_workload(found).values(), "os^v", strict=False):
        hops, values = [each.packet_hops for each in rows], [value(each.used) for each in rows]
        (line,) = axes.plot(hops, values, marker=mark, markersize=5, label=_title(rows[0].case))
        slope = [values[-1] * each / hops[-1] for each in hops]
        axes.plot(hops, slope, color=line.get_color(), linestyle=":", linewidth=1.2)
    axes.plot([], [], color="gray", linestyle=":", label="slope 1")
    axes.set(xscale="log", yscale="log", xlabel="packet-hops", ylabel=label)
    axes.set_ylim(bottom=0.5 * min(value(each.used) for each in found))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")


def _title(case: ScalingCase) -> str:
    data = ", without data" if case.options.get("data") == "none" else ""
    size = format_size(parse_size(case.options["size"], "size"))
    return f"{case.options['algo']}, {size} per host{data}"


def scaling_command(
    workload: Annotated[list[str] | None, several(", ".join(WORKLOADS | FLOWS))] = None,
    k: Annotated[list[int] | None, several("Ports per switch of a fat-tree, 4 to 64")] = None,
    threads: Annotated[
        str | None, typer.Option(help="Threads of each command; default: all cores.")
    ] = None,
    figure: FigureFile = None,
    debug: Debug = False,
) -> None:
    """Run the study; end with 1 if a case has failed."""
    names = [_known(name) for name in workload or WORKLOADS]
    found: list[ScalingRow] = []
    say(f"# whole commands on fat-trees, {count_cores()} cores; load before: {_load()}")
    for name in names:
        given = " ".join(f"--{key} {value}" for key, value in (WORKLOADS | FLOWS)[name].items())
        say(f"# {name}: ringleaf run --topo fattree,k=K {given}")
    say(_HEADER)
    try:
        failed = run(cases(names, k or (), threads), found)
    except KeyboardInterrupt as error:
        error.add_note("the rows so far are kept")
        raise
    finally:
        for line in growth(found):
            say(line)
        if found and figure is not None:
            draw(found, figure)
    if failed:
        raise typer.Exit(FAILURE)


def _known(name: str) -> str:
    choose("scaling", "workload", name, WORKLOADS | FLOWS)
    return name


def _load() -> str:
    """Return the processes that ran or waited for a core in the last minute, on average."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    alone("python -m studies.scaling", scaling_command)
