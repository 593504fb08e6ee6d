"""Four switches that pause each other, over time: `python -m studies.pauses`.

The case is `experiments/specs/pfc_deadlock.yaml`. It runs with priority flow control until it is
found to be a deadlock, and without, when packets are dropped. Prints the verdict and the time of
the other run, and draws the bytes that have passed the four links of the ring.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.state as s
from bench.options import FigureFile
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.pausing import Pausing
from ringleaf.core.tensors import INT32
from ringleaf.core.units import PS_PER_US, format_time
from ringleaf.errors import BackendError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.figures.style import subplots
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.networks.virtual.state import open_network
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.registry import build

SWITCHES = 4
PAUSING = Pausing(64 << 10, 48 << 10)
QUEUE_BYTES = 128 << 10
SHOWN_US = 250


@dataclass(frozen=True, slots=True)
class Around:
    """A run on the ring.

    Attributes:
        verdict: The error that ended it; "" if it completed.
        time_ps: Time of its end.
        wall_s: Time that the simulation took.
        drops: Packets dropped.
        retransmissions: Packets sent again.
        bin_ps: Width of a bin.
        sent: (bins,) bytes on the line of the ring's links.
    """

    verdict: str
    time_ps: int
    wall_s: float
    drops: int
    retransmissions: int
    bin_ps: int
    sent: npt.NDArray[np.int64]


def run_around(size_bytes: int, pausing: Pausing | None) -> Around:
    """Run an all-to-all whose packets all go one way around a ring of switches."""
    ways = [
        (
            f"h{first}",
            *(f"s{(first + hop) % SWITCHES}" for hop in range(1, far)),
            f"h{(first + far) % SWITCHES}",
        )
        for far in range(2, SWITCHES)
        for first in range(SWITCHES)
    ]
    graph = with_detours(build(f"torus2d,x={SWITCHES},y=1"), ways)
    options = NetworkOptions(pfc=pausing, queue_bytes=QUEUE_BYTES)
    network = VirtualNetwork(graph, options)
    schedule = ALGORITHMS["alltoall"].build(SWITCHES, size_bytes=size_bytes)
    arrays = network.arrays(size_bytes // 4, INT32, schedule)
    start_s = time.perf_counter()
    result, verdict = None, ""
    try:
        result = network.run(schedule, arrays)
    except BackendError as error:
        verdict = str(error)
    wall_s = time.perf_counter() - start_s
    net = open_network(network.store.arena, network._network)
    ring = [(f"s{i}", f"s{(i + 1) % SWITCHES}") for i in range(SWITCHES)]
    return Around(
        verdict,
        network.now_ps,
        wall_s,
        result.drops if result else 0,
        result.retransmissions if result else 0,
        int(net.state[s.BIN_PS]),
        sum(net.bins[network._links.index(link)] for link in ring),
    )


def draw(runs: dict[str, Around], path: Path) -> None:
    """Draw the bytes that have passed the ring's links over time, a line per run."""
    import matplotlib as mpl

    mpl.use("Agg")
    figure, axes = subplots(figsize=(7, 3.6))
    for name, run in runs.items():
        end_us = run.time_ps / PS_PER_US
        times = np.arange(1, len(run.sent) + 1) * run.bin_ps / PS_PER_US
        passed = np.cumsum(run.sent) / (1 << 20)
        before = times < min(end_us, SHOWN_US)
        shown, at_end = times[before], passed[-1] if run.verdict else passed[before][-1]
        axes.plot([*shown, min(end_us, SHOWN_US)], [*passed[before], at_end], label=name)
        if run.verdict:
            axes.plot([end_us], [at_end], "x", color="black", markersize=8)
            axes.annotate("deadlock named", (end_us, at_end), (6, -3), textcoords="offset points")
    axes.set(
        xlabel="simulated time (us)",
        ylabel="sent on the ring's four links (MiB)",
        xlim=(0, SHOWN_US),
        ylim=(0, None),
    )
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def pauses_command(out: FigureFile = None, debug: Debug = False) -> None:
    """Run both."""
    runs = {}
    for name, pausing in (("priority flow control", PAUSING), ("drops", None)):
        run = runs[name] = run_around(4 << 20, pausing)
        end = run.verdict or (
            f"completes after {format_time(run.time_ps)}, {run.drops} drops, "
            f"{run.retransmissions} packets sent again"
        )
        say(
            f"{name}: {end}\n  ended at {format_time(run.time_ps)} of simulated time, "
            f"after {run.wall_s:.2f} s"
        )
    if out:
        draw(runs, out)


if __name__ == "__main__":
    alone("python -m studies.pauses", pauses_command)
