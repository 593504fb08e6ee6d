"""Incast under each congestion control: `python -m studies.incast`.

Many hosts send to one. All senders share the last link from the start, so its queue and the
senders' shares depend on the controller alone. Prints a table, in virtual time, and draws the
queue over time.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer

from bench.options import FigureFile, several, tensor_bytes
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.marking import Marking, parse_marking
from ringleaf.core.tensors import INT32
from ringleaf.core.units import PS_PER_S, PS_PER_US, format_count, parse_rate
from ringleaf.errors import choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.figures.style import subplots
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.workloads.jobs.results import jain
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build

STEADY = (0.4, 0.8)  # of the run: after the start, before the first sender has ended
QUEUE_BYTES = 4 << 20
CASES = ("fixed", "dctcp", "dcqcn@24", "dcqcn")
"""Controllers, DCQCN also with DCTCP's marks, which shows the use of RED."""


@dataclass(frozen=True, slots=True)
class Incast:
    """The measurements at the last link."""

    goodput: float  # share of the line's rate, headers and gaps included, in the steady part
    jain: float  # fairness of the senders' shares in it
    mean_queue_bytes: float  # in it
    result: RunResult
    queue: npt.NDArray[np.int64]  # bytes per bin
    end_ps: int


def incast_schedule(senders: int) -> Schedule:
    """Return a reduce in which all others send to rank 0 at once, each the whole tensor."""
    rows = tuple(Transfer(0, rank, 0, 0, Op.REDUCE) for rank in range(1, senders + 1))
    return Schedule(Collective.REDUCE, "incast", senders + 1, 1, rows)


def run_incast(
    controller: str,
    *,
    senders: int,
    size_bytes: int,
    ecn: Marking | None = None,
    rate: str = "100G",
    delay: str = "1us",
    mtu: int = 4096,
) -> Incast:
    """Let `senders` hosts of one switch send `size_bytes` each to another.

    Raises:
        ConfigError: If there is no such controller.
    """
    graph = build(f"leafspine,leaves=1,spines=1,hosts={senders + 1},rate={rate},delay={delay}")
    options = NetworkOptions(
        cc=controller,
        ecn=CONTROLLERS[controller].marking_at(parse_rate(rate), mtu) if ecn is None else ecn,
        queue_bytes=QUEUE_BYTES,
        watch_queues=True,
        mtu_bytes=mtu,
        bins=2048,
    )
    network = VirtualNetwork(graph, options)
    schedule = incast_schedule(senders)
    arrays = network.arrays(size_bytes // 4, INT32, schedule)
    for rank, array in enumerate(arrays):
        array[:] = rank
    result = network.run(schedule, arrays)
    assert bool((arrays[0] == senders * (senders + 1) // 2).all()), "the sum is wrong"
    return _summarise(result, senders, parse_rate(rate, "rate"))


def _summarise(result: RunResult, senders: int, rate_bps: int) -> Incast:
    (switch,) = {a for a, b in result.link_bytes if b == "h0"}
    end_ps = min(result.finish_ps[1:])
    steady = slice(*(int(part * end_ps / result.bin_ps) for part in STEADY))
    sent = np.array(
        [result.link_series[f"h{i}", switch][steady].sum() for i in range(1, senders + 1)], float
    )
    last = result.link_series[switch, "h0"][steady]
    bits_per_bin = rate_bps * result.bin_ps / PS_PER_S
    queue = result.queue_series[switch, "h0"].sum(axis=0)
    held = queue[slice(*(int(part * end_ps / result.queue_bin_ps) for part in STEADY))]
    return Incast(
        goodput=float(8 * last.sum() / (bits_per_bin * max(len(last), 1))),
        jain=jain(sent.tolist()),
        mean_queue_bytes=float(held.mean()) if len(held) else 0.0,
        result=result,
        queue=queue,
        end_ps=end_ps,
    )


def draw(runs: dict[str, Incast], path: Path) -> None:
    """Draw the queue of the last link over time, a line per controller."""
    import matplotlib as mpl

    mpl.use("Agg")
    figure, axes = subplots(figsize=(7, 3.6))
    for name, run in runs.items():
        times = np.arange(len(run.queue)) * run.result.queue_bin_ps / PS_PER_US
        axes.plot(times, run.queue / 1024, label=name, linewidth=1)
    axes.set(xlabel="simulated time (us)", ylabel="queue of the last link (KiB)", ylim=(0, None))
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def incast_command(
    senders: Annotated[int, typer.Option(min=1, help="Hosts that send.")] = 8,
    size: Annotated[str, typer.Option(help="Bytes that each host sends.")] = "16MiB",
    case: Annotated[
        list[str] | None, several("Controller, or controller@ECN: dcqcn@5:200:1%")
    ] = None,
    out: FigureFile = None,
    debug: Debug = False,
) -> None:
    """Run the study under each controller."""
    size_bytes = tensor_bytes(size)
    sys.stdout.write(
        f"# incast of {format_count(senders, 'sender')} of {size}, 100 Gbit/s, simulated time\n"
        f"# {'cc':>16} {'time':>9} {'goodput':>8} {'Jain':>6} {'queue':>8} {'peak':>8}"
        f" {'drops':>6} {'retx':>6}\n"
        f"# {'':>16} {'(us)':>9} {'':>8} {'':>6} {'(KiB)':>8} {'(KiB)':>8}\n"
    )
    runs = {}
    for name in case or CASES:
        controller, _, ecn = name.partition("@")
        choose("incast", "controller", controller, CONTROLLERS)
        run = runs[name] = run_incast(
            controller,
            senders=senders,
            size_bytes=size_bytes,
            ecn=parse_marking(ecn, "case") if ecn else None,
        )
        result = run.result
        say(
            f"  {name:>16} {result.time_ps / PS_PER_US:9.1f} {run.goodput:8.3f} {run.jain:6.3f}"
            f" {run.mean_queue_bytes / 1024:8.1f} {(result.peak_queue_bytes or 0) / 1024:8.1f}"
            f" {result.drops:6d} {result.retransmissions:6d}"
        )
    if out:
        draw(runs, out)


if __name__ == "__main__":
    alone("python -m studies.incast", incast_command)
