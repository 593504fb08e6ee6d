"""Measure what threads gain: `python -m studies.threads`.

For each case and number of threads: the time of the simulation's packets with as many threads, for
as many as there are cores; and, counted in one thread, how far the work could be divided. A window
of virtual time takes as long as its busiest region, so the events of all busiest regions together
are those that one core has to handle at least, however many there are. Meetings of threads, one a
window, come on top of that.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from bench.options import several
from ringleaf.collectives.registry import find_algorithm
from ringleaf.core.threads import count_cores
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug
from ringleaf.experiments.setup.network import network_options
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.networks.virtual import VirtualNetwork

CASES = (
    "topo=fattree algo=ring size=16M",
    "topo=fattree,k=8 algo=ring size=4M",
    "topo=fattree,k=8 algo=switchml size=1M lanes=64",
    "topo=fattree,k=16 algo=halvingdoubling size=256K",
)
COUNTED = (2, 4, 8, 16, 64)


@dataclass(frozen=True, slots=True)
class Division:
    """What one case takes with one number of threads.

    Attributes:
        threads: The number.
        wall_s: Time of the packets; 0 if it was not measured.
        windows: Windows of virtual time that had events.
        events: Events of all windows.
        busiest: Events of each window's busiest region.
    """

    threads: int
    wall_s: float = 0.0
    windows: int = 0
    events: int = 0
    busiest: int = 0


def prepare(case: str, threads: int) -> tuple[VirtualNetwork, CollectiveExperiment]:
    """Return a network for a case, written as options, and its experiment.

    Raises:
        RingleafError: If an option or the topology does not allow it.
    """
    given = dict(each.partition("=")[::2] for each in case.split())
    if "algo" not in given:
        raise ConfigError(f"threads: case must be options like topo=bcube algo=ring, got {case!r}")
    experiment = CollectiveExperiment(resolve(given))
    algorithm = find_algorithm(given["algo"])
    options = network_options(experiment.spec, algorithm.name if algorithm.in_network else None)
    network = VirtualNetwork(experiment.graph, replace(options, threads=threads))
    return network, experiment


def measure(case: str, threads: int) -> Division:
    """Return the time that a case's packets take with as many threads."""
    network, experiment = prepare(case, threads)
    return Division(threads, _run(network, experiment))


def count(case: str, threads: int) -> Division:
    """Count a case's windows and events, one region after the other."""
    network, experiment = prepare(case, threads)
    windows: list[tuple[int, int]] = []
    network.count_windows(lambda events: windows.append((sum(events), max(events))))
    _run(network, experiment)
    events, busiest = (sum(column) for column in zip(*windows, strict=True))
    return Division(threads, windows=len(windows), events=events, busiest=busiest)


def _run(network: VirtualNetwork, experiment: CollectiveExperiment) -> float:
    """Run a case without data, or with whatever is in memory; return the seconds that it took."""
    (algorithm,), (size_bytes,) = experiment.algorithms, experiment.spec.sizes_bytes
    schedule = experiment.schedule(algorithm, size_bytes)
    arrays = network.arrays(size_bytes // 4, schedule=schedule)
    for array in arrays:
        array[:] = 1
    began_s = time.perf_counter()
    network.run(schedule, arrays)
    return time.perf_counter() - began_s


def rows(case: str, cores: int, repeats: int, counted: Sequence[int]) -> Iterator[Division]:
    """Yield a case's divisions: measured, the least time of several; and counted."""
    for threads in range(1, cores + 1):
        tried = [measure(case, threads) for _ in range(repeats)]
        yield min(tried, key=lambda each: each.wall_s)
    for threads in counted:
        yield count(case, threads)


def threads_command(
    case: Annotated[list[str] | None, several("Options of a run: 'topo=bcube algo=ring'")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs, of which the best one counts.")] = 3,
    regions: Annotated[list[int] | None, several("Regions to count, 2 to 64", min=1)] = None,
    debug: Debug = False,
) -> None:
    """Print a table for each case."""
    for each in case or CASES:
        _print(each, list(rows(each, count_cores(), repeats, regions or COUNTED)))


def _print(case: str, divisions: Sequence[Division]) -> None:
    alone_s = divisions[0].wall_s
    sys.stdout.write(f"# {case}\n# threads  wall(s)  speed-up   windows    events  at most\n")
    for each in divisions:
        if each.wall_s:
            told = f"{each.wall_s:8.2f} {alone_s / each.wall_s:9.2f}"
        else:
            most = each.events / each.busiest
            told = f"{'':8} {'':9} {each.windows:9d} {each.events:9d} {most:8.2f}"
        sys.stdout.write(f"  {each.threads:7d} {told}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    alone("python -m studies.threads", threads_command)
