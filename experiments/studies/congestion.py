"""Congestion controls at four patterns of traffic.

    python -m ringleaf.experiments.studies.congestion

Incast, permutation and all-to-all are flows of 64 KiB and 1 MiB that start at once; ring is an
allreduce. A flow's completion time is from when its host may send it to when it is acknowledged.
Prints percentiles of it over all flows of all seeds, Jain's fairness of the throughputs of equal
flows, the fullest queue, and drops, all in virtual time; draws the completion times' distributions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ringleaf.errors import choose
from ringleaf.experiments.studies.incast import jain
from ringleaf.experiments.studies.traffic import PATTERNS, RING, UNIT_BYTES, make_traffic
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import SEND
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.tensors import INT32
from ringleaf.topologies.registry import build
from ringleaf.units import PS_PER_US

TOPOLOGY = "leafspine,leaves=4,spines=4,hosts=8,rate=100G,delay=1us"
"""32 hosts; leaves have half as much bandwidth upwards as towards their hosts."""
SEEDS = 4
PERCENTILES = (50, 99, 99.9)
LOOK = ("-", "--", ":", "-.")
COLOURS = 5  # before they come again with another look
WIDE = 3  # the longest time over the shortest: with more, the axis is logarithmic


@dataclass(frozen=True, slots=True)
class Measurement:
    """The flows of one pattern under one control, over all seeds."""

    times_us: npt.NDArray[np.float64]  # of completion
    fairness: float  # Jain's index of the throughputs of the largest flows, mean over seeds
    peak_queue_bytes: int
    drops: int
    resent: int

    @property
    def percentiles(self) -> list[float]:
        return [float(each) for each in np.percentile(self.times_us, PERCENTILES)]


def measure(
    control: str, pattern: str, *, topology: str = TOPOLOGY, seeds: int = SEEDS
) -> Measurement:
    """Run a pattern under a control.

    Raises:
        ConfigError: If there is no such control or topology.
    """
    graph = build(topology)
    hosts = sum(name.startswith("h") for name in graph)
    times, fairness, peak, drops, resent = [], [], 0, 0, 0
    for seed in range(1 if pattern == RING else seeds):
        schedule, sizes = make_traffic(pattern, hosts, seed)
        options = NetworkOptions(
            congestion=control,
            ecn=CONTROLLERS[control].marking,
            watch_messages=3 * len(schedule.columns),
            has_data=False,
        )
        network = VirtualNetwork(graph, options)
        elements = schedule.chunks * UNIT_BYTES // INT32.itemsize
        result = network.run(schedule, network.arrays(elements, INT32, schedule))
        spans = [note.end_ps - note.start_ps for note in result.notes if note.kind == SEND]
        rows = [note.row for note in result.notes if note.kind == SEND]
        assert sorted(rows) == list(range(len(sizes))), "each flow ends once"
        spans_us = np.array(spans) / PS_PER_US
        units = np.array(sizes)[rows]
        times.append(spans_us)
        fairness.append(jain(1 / spans_us[units == units.max()]))
        peak = max(peak, result.peak_queue_bytes)
        drops, resent = drops + result.drops, resent + result.retransmissions
    return Measurement(np.concatenate(times), float(np.mean(fairness)), peak, drops, resent)


def line(control: str, found: Measurement) -> str:
    """Return a measurement as a line of the table."""
    times = "".join(f" {each:9.1f}" for each in found.percentiles)
    queue = found.peak_queue_bytes / 1024
    counts = f"{found.drops:6d} {found.resent:6d}"
    return f"  {control:>16}{times} {found.fairness:6.3f} {queue:9.1f} {counts}"


def draw(found: dict[tuple[str, str], Measurement], path: Path) -> None:
    """Draw, per pattern, which share of flows took longer than a time, a line per control."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    patterns = list(dict.fromkeys(pattern for pattern, _ in found))
    controls = list(dict.fromkeys(control for _, control in found))
    rows, columns = -(-len(patterns) // 2), min(len(patterns), 2)
    figure, plots = plt.subplots(
        rows, columns, figsize=(4.5 * columns, 3.25 * rows), squeeze=False, layout="constrained"
    )
    for pattern, axes in zip(patterns, plots.flat, strict=False):
        for number, control in enumerate(controls):
            times = np.sort(found[pattern, control].times_us)
            share = 1 - np.arange(len(times)) / len(times)
            style = LOOK[number // COLOURS % len(LOOK)]
            colour = f"C{number % COLOURS}"
            axes.step(times, share, style, color=colour, where="pre", label=control, linewidth=1.3)
        axes.set(title=pattern, yscale="log")
        least, most = axes.get_xlim()
        axes.set_xscale("log" if most > WIDE * max(least, 1) else "linear")
        axes.set(xlabel="completion time (us, simulated)", ylabel="share of flows that take longer")
        axes.grid(alpha=0.3)
    handles, labels = plots.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def run(
    controls: Sequence[str], patterns: Iterable[str], *, topology: str, seeds: int
) -> dict[tuple[str, str], Measurement]:
    """Measure all controls at all patterns, and print a table per pattern."""
    found = {}
    for pattern in patterns:
        flows = None
        for control in controls:
            each = found[pattern, control] = measure(
                control, pattern, topology=topology, seeds=seeds
            )
            if flows is None:
                flows = len(each.times_us)
                sys.stdout.write(
                    f"# {pattern}: {flows} flows\n"
                    f"# {'cc':>16} {'p50':>9} {'p99':>9} {'p99.9':>9} {'Jain':>6} {'queue':>9}"
                    f" {'drops':>6} {'retx':>6}\n"
                    f"# {'':>16} {'(us)':>9} {'(us)':>9} {'(us)':>9} {'':>6} {'(KiB)':>9}\n"
                )
            sys.stdout.write(line(control, each) + "\n")
            sys.stdout.flush()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="ringleaf.experiments.studies.congestion", description=__doc__
    )
    parser.add_argument("--control", nargs="*", default=None, help="default: all that there are")
    parser.add_argument("--pattern", nargs="*", default=[*PATTERNS, RING])
    parser.add_argument("--topo", default=TOPOLOGY)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each random pattern")
    parser.add_argument("--out", type=Path, help="figure")
    options = parser.parse_args(arguments)
    controls = sorted(CONTROLLERS) if options.control is None else options.control
    for pattern in options.pattern:
        choose("congestion", "pattern", pattern, [*PATTERNS, RING])
    sys.stdout.write(f"# {options.topo}, flows of 64 KiB and 1 MiB, simulated time\n")
    found = run(controls, options.pattern, topology=options.topo, seeds=options.seeds)
    if options.out:
        draw(found, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
