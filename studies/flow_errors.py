"""Measure how far the flow network's times are from those of packets, by kind of run.

`python -m studies.flow_errors` runs each case on both networks, prints it, and writes the table
`experiments/estimates/flow_errors.csv`, from which runs with `--net flow` take what their times may
be wrong by. Cases whose packets would take long are left out.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from bench.options import Algorithms, Sizes, Topologies
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import RingleafError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.estimates.flow_errors import (
    ErrorCell,
    bin_of,
    mean_message,
    oversubscription,
    write_cells,
)
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment, Measurement
from ringleaf.experiments.workloads.collective.kind import resolve

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


@dataclass(frozen=True, slots=True)
class ErrorCase:
    """One run on both networks.

    Attributes:
        algo: The algorithm.
        topo: The topology, as typed.
        ratio: Its oversubscription.
        ranks: The number of ranks.
        size_bytes: Of each rank's tensor.
        message_bytes: Mean size of the messages.
        packets_ps: Time by packets.
        flow_ps: Time by flows.
    """

    algo: str
    topo: str
    ratio: float
    ranks: int
    size_bytes: int
    message_bytes: float
    packets_ps: int
    flow_ps: int

    @property
    def percent(self) -> float:
        """The signed error in percent: below 0, flows are faster."""
        return 100 * (self.flow_ps / self.packets_ps - 1)


def measure(topo: str, algo: str, size: str) -> ErrorCase | None:
    """Run a case on both networks; return None if its packets would take long.

    Raises:
        RingleafError: If there is no such case.
    """
    given = {"topo": topo, "algo": algo, "size": size}
    if not ALGORITHMS[algo].in_network:
        given["data"] = "none"
    packets = CollectiveExperiment(resolve(given))
    (algorithm,), (size_bytes,) = packets.algorithms, packets.spec.sizes_bytes
    if packets.estimate(algorithm, size_bytes).run_s > MOST_S:
        return None
    (by_packets,) = packets.run()
    (by_flows,) = CollectiveExperiment(resolve({**given, "net": "flow"})).run()
    return _case(topo, packets, by_packets, by_flows)


def _case(
    topo: str, experiment: CollectiveExperiment, packets: Measurement, flows: Measurement
) -> ErrorCase:
    row = packets.row
    return ErrorCase(
        row.algo,
        topo,
        oversubscription(experiment.graph),
        experiment.ranks,
        row.size_bytes,
        mean_message(packets.schedule, row.size_bytes),
        row.time_ps,
        flows.row.time_ps,
    )


def cells_of(cases: list[ErrorCase]) -> list[ErrorCell]:
    """Return the table of errors by algorithm, family, oversubscription and size of messages."""
    kinds: dict[tuple[str, str, float, int], list[ErrorCase]] = defaultdict(list)
    for case in cases:
        family = case.topo.partition(",")[0]
        kinds[case.algo, family, case.ratio, bin_of(case.message_bytes)].append(case)
    return [_cell(*kind, kinds[kind]) for kind in sorted(kinds)]


def _cell(algo: str, family: str, ratio: float, least: int, cases: list[ErrorCase]) -> ErrorCell:
    errors = np.array([case.percent for case in cases])
    return ErrorCell(
        *(algo, family, ratio, least),
        most_ranks=max(case.ranks for case in cases),
        cases=len(cases),
        mean=float(errors.mean()),
        median=float(np.median(errors)),
        p99=float(np.percentile(np.abs(errors), 99)),
        worst=float(np.abs(errors).max()),
    )


def _cases(
    topologies: list[str] | None, algorithms: list[str] | None, sizes: list[str] | None
) -> Iterator[ErrorCase]:
    for topo, algo, size in product(topologies or TOPOLOGIES, algorithms or ALGOS, sizes or SIZES):
        began_s = time.perf_counter()
        try:
            case = measure(topo, algo, size)
        except RingleafError as error:
            say(f"# {algo} on {topo} at {size}: {error}")
            continue
        if case is None:
            say(f"# {algo} on {topo} at {size}: packets take long")
            continue
        say(
            f" {topo:>34} {algo:>17} {case.ratio:5g} {case.ranks:5} {size:>5} "
            f"{case.message_bytes:10.0f} {case.packets_ps / PS_PER_US:11.2f} "
            f"{case.flow_ps / PS_PER_US:11.2f} {case.percent:7.2f} "
            f"{time.perf_counter() - began_s:6.2f}"
        )
        yield case


def flow_errors_command(
    topo: Topologies = None, algo: Algorithms = None, size: Sizes = None, debug: Debug = False
) -> None:
    """Print all cases and their errors; write the table, if no cases were chosen."""
    say(
        f"#{'topology':>34} {'algo':>17} {'ratio':>5} {'ranks':>5} {'size':>5} {'message(B)':>10} "
        f"{'packets(us)':>11} {'flows(us)':>11} {'%error':>7} {'s':>6}"
    )
    cases = list(_cases(topo, algo, size))
    for least in sorted({bin_of(case.message_bytes) for case in cases}):
        own = np.array([case.percent for case in cases if bin_of(case.message_bytes) == least])
        say(
            f"# messages of {least} B and more: {len(own)} cases, mean of errors "
            f"{own.mean():.2f} %, of their sizes {np.abs(own).mean():.2f} %, median "
            f"{np.median(own):.2f} %, 99 of 100 within {np.percentile(np.abs(own), 99):.2f} %"
        )
    if not (topo or algo or size):
        write_cells(cells_of(cases))


if __name__ == "__main__":
    alone("python -m studies.flow_errors", flow_errors_command)
