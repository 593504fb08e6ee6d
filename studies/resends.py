"""Count resends and drops at defaults: `python -m studies.resends`.

Runs every algorithm on every topology, at a sweep of sizes, in virtual time, and prints a row for
each: nothing is lost, so nothing should be sent again, and no queue should overflow. With
`--loss`, packets are lost, and the times are of interest. `--jobs SPEC` runs a spec's jobs
instead, all of them at once: fewer than one of their packets in 100,000 may be sent again. Probes,
which carry no values, are not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bench.options import Algorithms, Sizes, Topologies
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.experiments.checking.data import TYPES, Noise, fill_all
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import FAILURE, Debug, say
from ringleaf.experiments.setup.network import connect
from ringleaf.experiments.spec.kinds import DTYPES
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import read_jobs
from ringleaf.experiments.workloads.jobs.results import JobRow
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.outcome import RunResult

TOPOLOGIES = (
    "fattree",
    "leafspine",
    "leafspine,leaves=2,spines=2,hosts=4,rate=25G,host_rate=100G",
    "leafspine,leaves=2,spines=2,hosts=4,rate=100G,host_rate=25G",
    "bcube",
    "bcube,n=3,k=1",
    "hammingmesh",
    "torus2d",
    "torus2d,x=3,y=5",
    "torus3d",
)
JOBS_HEADER = (
    f"# {'algo':>15} {'scheduler':>15} {'JCT':>16} {'retx':>8} {'drops':>8} {'hops':>10}\n"
    f"# {'':>15} {'':>15} {'(us)':>16}\n"
)
PACKETS_PER_RESEND = 100_000
LONGEST_HOPS = 6  # of a packet on a fat-tree

SIZES = ("1KiB", "32KiB", "1MiB", "16MiB")


@dataclass(frozen=True, slots=True)
class Tried:
    """One algorithm on one topology, at one size, with options of `ringleaf run`."""

    topo: str
    algo: str
    size: str
    options: tuple[tuple[str, str], ...] = ()


def run_case(case: Tried) -> RunResult:
    """Run a case, and return its result, with counts of its packets.

    Raises:
        RingleafError: If there is no such case.
    """
    compress = SYSTEMS[case.algo].compress if case.algo in SYSTEMS else ""
    given = {"topo": case.topo, "algo": case.algo, "size": case.size, **dict(case.options)}
    given |= {"compress": compress} if compress else {}
    experiment = CollectiveExperiment(resolve(given))
    (algorithm,), (size_bytes,) = experiment.algorithms, experiment.spec.sizes_bytes
    network = connect(
        experiment.spec,
        experiment.graph,
        in_network=algorithm.name if algorithm.in_network else None,
        capture=None,
    )
    spec, schedule = experiment.spec, experiment.schedule(algorithm, size_bytes)
    count = size_bytes // DTYPES[spec.dtype]
    inputs = Noise(spec.seed, experiment.ranks, count, TYPES[spec.dtype])
    arrays = network.arrays(count, inputs.dtype, schedule)
    fill_all(inputs, arrays)
    if compress:  # signs suit all systems that have one
        for array in arrays:
            np.copysign(1, array, out=array)
    outcome = network.run(schedule, arrays)
    network.close()
    return outcome


def cases(topos: Sequence[str], algos: Sequence[str], sizes: Sequence[str]) -> Iterator[Tried]:
    """Yield all cases, topology by topology."""
    for topo in topos:
        for algo in algos:
            for size in sizes:
                yield Tried(topo, algo, size)


def run_jobs(path: Path, algos: Sequence[str]) -> Iterator[JobRow]:
    """Yield the slowest job's row for each combination with all of a spec's jobs.

    Raises:
        ConfigError: If the spec is wrong, or has none of these algorithms.
    """
    experiment = JobsExperiment(read_jobs(path))
    chosen = [each for each in experiment.combinations if each.algo in algos]
    if not chosen:
        raise ConfigError(f"{path}: algo must have one of those asked for, got {' '.join(algos)}")
    for combination in chosen:
        if combination.count == max(experiment.spec.counts):
            yield max(experiment.case(combination).rows, key=lambda row: row.jct_ps)


def print_jobs(path: Path, algos: Sequence[str]) -> int:
    """Print a row per combination; return how many sent too much again, or dropped."""
    sys.stdout.write(JOBS_HEADER)
    wasteful = 0
    for row in run_jobs(path, algos):
        say(
            f"  {row.algo:>15} {row.scheduler:>15} {row.jct_ps / PS_PER_US:16.6f}"
            f" {row.retransmissions:8d} {row.drops:8d} {row.packet_hops:10d}"
        )
        allowed = row.packet_hops / LONGEST_HOPS / PACKETS_PER_RESEND
        wasteful += bool(row.drops) or row.retransmissions >= max(allowed, 1)
    return wasteful


def resends_command(
    topo: Topologies = None,
    algo: Algorithms = None,
    size: Sizes = None,
    loss: Annotated[str, typer.Option(help="Share of packets that each link loses.")] = "0",
    seed: Annotated[str, typer.Option(help="Seed of losses and data.")] = "1",
    jobs: Annotated[
        Path | None, typer.Option(help="Spec of jobs to run instead, such as shared_fabric.yaml.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Print a row per case; end with 1 if anything was sent again or dropped without a loss."""
    algorithms = algo or list(ALGORITHMS)
    if jobs is not None:
        wasted = print_jobs(jobs, algorithms)
    else:
        chosen = (("loss", loss), ("seed", seed))
        wasted = print_cases(cases(topo or TOPOLOGIES, algorithms, size or SIZES), chosen)
    if wasted:
        raise typer.Exit(FAILURE)


def print_cases(tried: Iterable[Tried], chosen: tuple[tuple[str, str], ...]) -> int:
    """Print a row per case, with further options; return how many packets were wasted."""
    sys.stdout.write(
        f"# {'algo':>15} {'size':>8} {'time':>16} {'retx':>8} {'drops':>8} {'lost':>8} topology\n"
        f"# {'':>15} {'':>8} {'(us)':>16}\n"
    )
    wasted = 0
    for case in tried:
        outcome = run_case(Tried(case.topo, case.algo, case.size, chosen))
        say(
            f"  {case.algo:>15} {case.size:>8} {outcome.time_ps / PS_PER_US:16.6f}"
            f" {outcome.retransmissions:8d} {outcome.drops:8d} {outcome.lost:8d} {case.topo}"
        )
        wasted += outcome.drops + (0 if outcome.lost else outcome.retransmissions)
    return wasted


if __name__ == "__main__":
    alone("python -m studies.resends", resends_command)
