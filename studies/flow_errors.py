"""Measure how far the flow network's times are from those of packets, by kind of run.

`python -m studies.flow_errors` runs each case on both networks, prints it and the tables of
`docs/flow.md`, and writes `experiments/estimates/flow_errors.csv`, from which runs with
`--net flow` take what their times may be wrong by; with `--part faults`, it measures these alone,
and leaves the other rows as they are. Cases whose packets would take long are left out.
`--packets FILE` keeps packets' times, so that after a change of flows alone only these run again,
which takes minutes in place of an hour.
"""

from __future__ import annotations

import csv
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import typer

from bench.options import Algorithms, Sizes, Topologies
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.faults import DOWN, RATE
from ringleaf.core.units import PS_PER_NS, PS_PER_US
from ringleaf.errors import ConfigError, RingleafError, choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.estimates.flow_errors import (
    ErrorCell,
    bin_of,
    jobs_by,
    mean_message,
    oversubscription,
    read_cells,
    troubled,
    workload_of,
    write_cells,
)
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve as resolve_collective
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import resolve_workload
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.hosts.workload.flows import PATTERNS
from ringleaf.topologies.graph import switches
from studies.flow_error_tables import tables

TOPOLOGIES = (
    *("fattree,k=4", "fattree,k=6", "fattree,k=8"),
    *(f"leafspine,leaves=4,spines={spines},hosts=4" for spines in (4, 2, 1)),
    *(f"leafspine,leaves=8,spines={spines},hosts=8" for spines in (8, 4, 2)),
    *("torus2d,x=4,y=4", "torus2d,x=8,y=8", "torus3d,x=4,y=4,z=4"),
    *(
        "bcube,n=4,k=2",
        "bcube,n=4,k=1",
        "hammingmesh,a=2,b=2,x=2,y=2",
        "hammingmesh,a=2,b=2,x=4,y=4",
    ),
)
ALGOS = (
    *("ring", "rings", "biring", "tree", "doubletree", "halvingdoubling", "recursivedoubling"),
    *("blueconnect", "hierring", "swing", "bucket-2d", "binomial", "allpairs"),
    *("reducescatter", "allgather", "alltoall", "broadcast", "reduce", "switchml"),
)
SIZES = ("16K", "64K", "256K", "1M", "4M", "16M")
MOST_S = 4.0
"""Seconds that the packets of a case may be expected to take, by the estimate's constants."""


SCHEDULED = ("fifo", "p3")
"""Schedulers of jobs."""

JOB_ALGOS = ("ring", "halvingdoubling", "tree", "switchml")
JOB_TOPOLOGIES = (
    "fattree,k=4",
    *(f"leafspine,leaves=4,spines={spines},hosts=4" for spines in (4, 2, 1)),
)
JOBS = ((1, 16), (2, 8), (4, 4))
"""Numbers of jobs, and of each one's ranks."""

COMPUTE = "0.02"
"""Factor on the jobs' computing, so that it hides little of what is on the network."""

FAULT_ALGOS = ("ring", "halvingdoubling", "tree", "alltoall")
FAULT_TOPOLOGIES = ("fattree,k=4", *(f"leafspine,leaves=4,spines={n},hosts=4" for n in (4, 2)))
FAULT_SIZES = ("1M", "4M")
DRAWS = 24
"""Faults of each kind that are drawn for each algorithm, topology and size."""

PATTERN_SIZES = ("64K", "1M", "64K,64K,64K,1M")


@dataclass(frozen=True, slots=True)
class ErrorCase:
    """One time on both networks.

    Attributes:
        what: What ran, as the table calls it.
        topo: The topology, as typed.
        ratio: Its oversubscription.
        ranks: The number of ranks.
        size: As typed: of each rank's tensor; the factor on models; of flows.
        message_bytes: Mean size of the messages.
        packets_ps: Time by packets.
        flow_ps: Time by flows.
    """

    what: str
    topo: str
    ratio: float
    ranks: int
    size: str
    message_bytes: float
    packets_ps: int
    flow_ps: int

    @property
    def percent(self) -> float:
        """The signed error in percent: below 0, flows are faster."""
        return 100 * (self.flow_ps / self.packets_ps - 1)


Given = dict[str, Any]
"""Options, as typed."""


class PacketTimes:
    """Times by packets, by the name of a case; those in a file are not measured again.

    Args:
        path: The file, a line for each case, to which more are added; None: nothing is kept.

    Raises:
        ConfigError: If the file is not of that kind.
        OSError: If it can't be read.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._kept: dict[str, list[int]] = {}
        if path is None or not path.exists():
            return
        with path.open(encoding="utf-8", newline="") as file:
            for line, row in enumerate(csv.reader(file), 1):
                if len(row) < 2 or not all(each.isdecimal() for each in row[1:]):
                    raise ConfigError(
                        f"{path}:{line}: must be a case and its times in ps, got {row}; take a "
                        "file that --packets has made"
                    )
                self._kept[row[0]] = [int(each) for each in row[1:]]

    def takes_long(self, case: str, expected_s: float) -> bool:
        """Return whether to measure a case would take long; those that are there do not."""
        return case not in self._kept and expected_s > MOST_S

    def of(self, case: str, measure: Callable[[], Iterable[int]]) -> list[int]:
        """Return the times of a case in ps, which are measured if they are not there."""
        if case not in self._kept:
            self._kept[case] = list(measure())
            if self._path is not None:
                with self._path.open("a", encoding="utf-8", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerow([case, *self._kept[case]])
        return self._kept[case]


def measure_collective(
    topo: str, algo: str, size: str, times: PacketTimes, name: str, **more: str
) -> list[ErrorCase]:
    """Run a collective on both networks; return no case if its packets would take long.

    Raises:
        RingleafError: If there is no such case.
    """
    given = {"topo": topo, "algo": algo, "size": size, **more}
    if not ALGORITHMS[algo].in_network:
        given["data"] = "none"
    packets = CollectiveExperiment(resolve_collective(given))
    (algorithm,), (size_bytes,) = packets.algorithms, packets.spec.sizes_bytes
    if times.takes_long(name, packets.estimate(algorithm, size_bytes).run_s):
        return []
    (packets_ps,) = times.of(name, lambda: (each.row.time_ps for each in packets.run()))
    (one,) = CollectiveExperiment(resolve_collective({**given, "net": "flow"})).run()
    message_bytes = mean_message(one.schedule, size_bytes)
    about = topo, oversubscription(packets.graph), packets.ranks, size, message_bytes
    what = troubled(algo, packets.spec.network_faults)
    return [ErrorCase(what, *about, packets_ps, one.row.time_ps)]


def measure_faults(
    topo: str, algo: str, size: str, kind: str, seed: int, times: PacketTimes, name: str
) -> list[ErrorCase]:
    """Run a collective on both networks while a drawn link between switches is slow, or is down.

    Half of the faults end. A link that is down for good has routes that lead around it.

    Raises:
        RingleafError: If there is no such case.
    """
    rng = Random(f"{topo} {algo} {size} {kind} {seed}")
    given = {"topo": topo, "algo": algo, "size": size, "data": "none", "net": "flow"}
    usual = CollectiveExperiment(resolve_collective(given))
    (one,) = usual.run()
    inner = sorted(switches(usual.graph))
    a, b = rng.choice(sorted(usual.graph.subgraph(inner).edges))
    at_ns, lasting_ns = (
        round(one.row.time_ps * rng.uniform(*share) / PS_PER_NS) for share in ((0, 0.6), (0.1, 0.5))
    )
    what = f"rate {rng.randint(10, 80)}G" if kind == RATE else "down"
    more = {"faults": f"{a}-{b} {what} at {at_ns}ns", "queue": "64M"}
    if seed % 2:
        more["faults"] += f" for {lasting_ns}ns"
    elif kind == DOWN:
        more["reroute"] = f"{lasting_ns}ns"
    return measure_collective(topo, algo, size, times, f"{name}: {more}", **more)


def measure_jobs(
    topo: str, algo: str, scheduler: str, size: str, count: int, times: PacketTimes, name: str
) -> list[ErrorCase]:
    """Run jobs on both networks; return a case for each, or none if packets would take long.

    Raises:
        RingleafError: If there is no such case.
    """
    ranks = dict(JOBS)[count]
    job = {"model": "resnet50", "ranks": ranks, "iterations": 2}
    given: Given = {"topo": topo, "algo": algo, "scheduler": scheduler, "size": size}
    given |= {"jobs": [job] * count, "compute": COMPUTE, "fuse": "4MiB"}
    given |= {"servers": "0", "check": "no"}
    packets = JobsExperiment(resolve_jobs(given))
    (combination,) = packets.combinations
    if times.takes_long(name, packets.case_s(combination)):
        return []
    flows = JobsExperiment(resolve_jobs({**given, "net": "flow"}))
    by_packets = times.of(name, lambda: (row.jct_ps for row in packets.case(combination).rows))
    pairs = zip(by_packets, flows.case(combination).rows, strict=True)
    message_bytes = packets.message_bytes(packets.spec.jobs[0], algo)
    about = topo, oversubscription(packets.graph), count * ranks, size, message_bytes
    what = jobs_by(algo, scheduler)
    return [ErrorCase(what, *about, packets_ps, row.jct_ps) for packets_ps, row in pairs]


def measure_workload(topo: str, given: Given, times: PacketTimes, name: str) -> list[ErrorCase]:
    """Replay a workload on both networks; return no case if its packets would take long.

    Raises:
        RingleafError: If there is no such case.
    """
    packets = WorkExperiment(resolve_workload({"topo": topo, "data": "none", **given}))
    if times.takes_long(name, packets.expected_s):
        return []
    flows = WorkExperiment(resolve_workload({"topo": topo, "data": "none", "net": "flow", **given}))
    spec, ranks = packets.spec, len(packets.matched.graph.ranks)
    what = workload_of(spec.pattern or spec.workload)
    size = str(given.get("flow_sizes") or given.get("layers"))
    about = topo, oversubscription(packets.graph), ranks, size, packets.mean_bytes
    (packets_ps,) = times.of(name, lambda: [packets.run(_untold, _unpassed).iteration_ps])
    return [ErrorCase(what, *about, packets_ps, flows.run(_untold, _unpassed).iteration_ps)]


def _untold(_share: float, _done: int, _wanted: int) -> None:
    """Tell nobody how far a replay is."""


def _unpassed(_hops: int) -> None:
    """Tell nobody of packets."""


def cells_of(cases: list[ErrorCase]) -> list[ErrorCell]:
    """Return the table of errors by algorithm, family, oversubscription and size of messages."""
    kinds: dict[tuple[str, str, float, int], list[ErrorCase]] = defaultdict(list)
    for case in cases:
        family = case.topo.partition(",")[0]
        kinds[case.what, family, case.ratio, bin_of(case.message_bytes)].append(case)
    return [_cell(*kind, kinds[kind]) for kind in sorted(kinds)]


def _cell(what: str, family: str, ratio: float, least: int, cases: list[ErrorCase]) -> ErrorCell:
    errors = np.array([case.percent for case in cases])
    return ErrorCell(
        *(what, family, ratio, least),
        most_ranks=max(case.ranks for case in cases),
        cases=len(cases),
        mean=float(errors.mean()),
        median=float(np.median(errors)),
        p99=float(np.percentile(np.abs(errors), 99)),
        worst=float(np.abs(errors).max()),
    )


Measured = Callable[[PacketTimes, str], list[ErrorCase]]
"""Measures a case, given what packets took before, and its name."""


def _collectives(
    topologies: list[str] | None, algorithms: list[str] | None, sizes: list[str] | None
) -> Iterator[tuple[str, Measured]]:
    for each in product(topologies or TOPOLOGIES, algorithms or ALGOS, sizes or SIZES):
        yield "{1} on {0} at {2}".format(*each), partial(measure_collective, *each)


def _jobs() -> Iterator[tuple[str, Measured]]:
    counts = [count for count, _ in JOBS]
    for each in product(JOB_TOPOLOGIES, JOB_ALGOS, SCHEDULED, ("0.02", "0.2"), counts):
        name = "{4} jobs by {1} and {2} on {0}, size {3}".format(*each)
        yield name, partial(measure_jobs, *each)


def _workloads() -> Iterator[tuple[str, Measured]]:
    for topo, pattern, sizes in product(JOB_TOPOLOGIES, PATTERNS, PATTERN_SIZES):
        given = {"workload": pattern, "ranks": "16", "flow_sizes": sizes, "flows": "200"}
        yield f"{pattern} of {sizes} on {topo}", partial(measure_workload, topo, given)
    for topo, layers, hidden in product(JOB_TOPOLOGIES, ("4", "8"), ("512", "2048")):
        model = {"layers": layers, "hidden": hidden, "heads": "8", "sequence": "512"}
        split = {"tp": "2", "dp": "4", "pp": "2", "micro_batches": "4"}
        name = f"{layers} layers of {hidden} on {topo}"
        yield name, partial(measure_workload, topo, {"workload": "llm", **model, **split})


def _faults() -> Iterator[tuple[str, Measured]]:
    kinds = (RATE, DOWN)
    for each in product(FAULT_TOPOLOGIES, FAULT_ALGOS, FAULT_SIZES, kinds, range(DRAWS)):
        name = "{1} on {0} at {2}, {3}, draw {4}".format(*each)
        yield name, partial(measure_faults, *each)


PARTS = ("all", "faults")


def _run(every: Iterable[tuple[str, Measured]], times: PacketTimes) -> Iterator[ErrorCase]:
    """Run and print cases; say why others are left out."""
    for name, measured in every:
        began_s = time.perf_counter()
        try:
            cases = measured(times, name)
        except RingleafError as error:
            say(f"# {name}: {error}")
            continue
        if not cases:
            say(f"# {name}: packets take long")
        for case in cases:
            say(
                f" {case.topo:>34} {case.what:>34} {case.ratio:5g} {case.ranks:5} {case.size:>15} "
                f"{case.message_bytes:10.0f} {case.packets_ps / PS_PER_US:11.2f} "
                f"{case.flow_ps / PS_PER_US:11.2f} {case.percent:7.2f} "
                f"{time.perf_counter() - began_s:6.2f}"
            )
        yield from cases


def flow_errors_command(
    topo: Topologies = None,
    algo: Algorithms = None,
    size: Sizes = None,
    part: Annotated[str, typer.Option(help=f"One of {', '.join(PARTS)}.")] = "all",
    packets: Annotated[
        Path | None, typer.Option(help="File with packets' times, which keeps new ones.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Print all cases and their errors; write the table, if no cases were chosen."""
    choose("flow_errors", "part", part, PARTS)
    say(
        f"#{'topology':>34} {'what':>34} {'ratio':>5} {'ranks':>5} {'size':>15} {'message(B)':>10} "
        f"{'packets(us)':>11} {'flows(us)':>11} {'%error':>7} {'s':>6}"
    )
    are_chosen = bool(topo or algo or size)
    every = _collectives(topo, algo, size)
    if part == "all" and not are_chosen:
        every = chain(every, _jobs(), _workloads(), _faults())
    cases = list(_run(every if part == "all" else _faults(), PacketTimes(packets)))
    for line in tables(cases):
        say(line)
    if part != "all":
        cells = cells_of(cases)
        ours = {each.what for each in cells}
        write_cells([*(each for each in read_cells() if each.what not in ours), *cells])
    elif not are_chosen:
        write_cells(cells_of(cases))


if __name__ == "__main__":
    alone("python -m studies.flow_errors", flow_errors_command)
