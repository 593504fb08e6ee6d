"""Time one collective on one network: `python -m bench.case`.

Reads the case as JSON from its argument, and prints the measurements as JSON. It is a process of
its own, because peak memory and compile times can't be measured twice in one.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import asdict, dataclass

_PERIOD = 8191  # of the data; a prime, so that it does not fit chunks and packets


@dataclass(frozen=True, slots=True)
class BenchCase:
    """The collective and network to run."""

    topo: str
    algo: str
    size_bytes: int
    lanes: int = 256
    delay_ps: int = 1_000_000
    rate_bps: int = 100_000_000_000


@dataclass(frozen=True, slots=True)
class RunTiming:
    """The measurements of a case; simulated times in ps, wall clock in seconds."""

    ranks: int
    time_ps: int
    bound_ps: int  # with headers
    start_s: float  # from the start of Python to a network that is ready
    wall_s: float  # of the run
    packet_hops: int
    events: int
    wrong: int
    retransmissions: int
    drops: int
    peak_bytes: int  # of memory


def measure(case: BenchCase, began_s: float) -> RunTiming:
    """Run a case, and check the results: sums of whole numbers, so exact in any order."""
    import numpy as np

    from ringleaf.collectives.registry import find_algorithm
    from ringleaf.core.tensors import FLOAT32
    from ringleaf.experiments.bounds.bounds import Bounds
    from ringleaf.experiments.setup.cabling import Cabling
    from ringleaf.experiments.setup.network import build_topology, connect
    from ringleaf.experiments.setup.placing import embedding_of
    from ringleaf.experiments.workloads.collective.kind import resolve
    from ringleaf.topologies.graph import hosts

    spec = resolve({"lanes": str(case.lanes)})
    graph = build_topology(case.topo, rate_bps=case.rate_bps, delay_ps=case.delay_ps, hosts=None)
    algorithm = find_algorithm(case.algo)
    network = connect(
        spec, graph, in_network=case.algo if algorithm.in_network else None, capture=None
    )
    start_s = time.time() - began_s
    ranks = len(hosts(graph))
    bounds = Bounds(graph)
    schedule = algorithm.build(
        ranks,
        size_bytes=case.size_bytes,
        hierarchy=graph.graph["hierarchy"],
        fabric=bounds.fabric,
        embedding=embedding_of(graph, ranks),
        network=Cabling(graph),
    )
    arrays = network.arrays(case.size_bytes // 4, FLOAT32, schedule)
    base = (np.arange(case.size_bytes // 4) % _PERIOD).astype(np.float32)
    for rank, array in enumerate(arrays):
        np.add(base, np.float32(rank), out=array)
    outcome = network.run(schedule, arrays)
    base = base * ranks + ranks * (ranks - 1) // 2
    wrong = sum(int((array != base).sum()) for array in arrays)
    return RunTiming(
        ranks=ranks,
        time_ps=outcome.time_ps,
        bound_ps=bounds.least_ps(schedule, case.size_bytes, 4),
        start_s=start_s,
        wall_s=outcome.wall_s,
        packet_hops=outcome.packet_hops,
        events=outcome.events,
        wrong=wrong,
        retransmissions=outcome.retransmissions,
        drops=outcome.drops,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def main() -> None:
    began_s = time.time()
    case = BenchCase(**json.loads(sys.argv[1]))
    sys.stdout.write(json.dumps(asdict(measure(case, began_s))) + "\n")


if __name__ == "__main__":
    main()
