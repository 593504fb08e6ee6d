"""`make bench-live`: how near live networks come to what virtual time predicts for them.

Both have the same links, at the scaled rate. Where hosts and switches need all of the processors,
times are theirs and not the network's; the table says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from collectives.registry import ALGORITHMS
from experiments.bounds import Bounds
from experiments.network import build_topology, scale_rates
from experiments.options import LIVE_SCALE
from ringleaf.units import format_rate, format_size
from topologies.graph import hosts

TOPO = "leafspine"
ALGOS = ("ring", "tree", "blueconnect", "switchml")
SIZE_BYTES = 1 << 20
BUSY = 0.8  # from this share of the processors on, they are the limit


@dataclass(frozen=True, slots=True)
class Fidelity:
    """One algorithm, live and in virtual time."""

    algo: str
    live_ps: int
    virtual_ps: int
    cpu_share: float  # of all processors, while the collective ran

    @property
    def ratio(self) -> float:
        """Measured algbw over predicted."""
        return self.virtual_ps / self.live_ps

    def __str__(self) -> str:
        limit = "the processors are the limit" if self.cpu_share >= BUSY else ""
        return (
            f"{self.algo:>15} {self.live_ps / 1e9:>10.1f} {self.virtual_ps / 1e9:>13.1f} "
            f"{self.ratio:>7.2f} {100 * self.cpu_share:>6.0f}  {limit}"
        ).rstrip()


def run(
    *,
    emit: Callable[[str], None],
    topo: str = TOPO,
    algos: Sequence[str] = ALGOS,
    size_bytes: int = SIZE_BYTES,
    scale: int = LIVE_SCALE,
) -> list[Fidelity]:
    """Measure each algorithm both ways, and print a table.

    Raises:
        ConfigError: If something is missing that a live network needs.
        BackendError: If it can't be brought up, or stops.
    """
    from networks.mininet.fabric import Settings
    from networks.mininet.network import Testbed

    torch.set_num_threads(1)
    graph = build_topology(topo, rate_bps=100 * 10**9, delay_ps=10**6, hosts=None)
    graph = scale_rates(graph, scale)
    rate = format_rate(100 * 10**9 // scale)
    emit(f"# {topo}, {len(hosts(graph))} hosts, {rate}, {format_size(size_bytes)}: wall clock")
    emit("#          algo  live (ms)  virtual (ms)   ratio  CPU %")
    found = []
    with Testbed(graph, Settings(scale=1)) as testbed:
        for algo in algos:
            found.append(_compare(testbed, algo, size_bytes))
            emit(str(found[-1]))
    return found


def _compare(testbed: object, algo: str, size_bytes: int) -> Fidelity:
    from ina.registry import SYSTEMS
    from networks.mininet.network import MininetNetwork, Testbed
    from networks.virtual import Options, VirtualNetwork

    assert isinstance(testbed, Testbed)
    graph = testbed.graph
    options = Options(system=SYSTEMS.get(algo))
    ranks = len(hosts(graph))
    schedule = ALGORITHMS[algo].build(
        ranks,
        size_bytes=size_bytes,
        hierarchy=graph.graph["hierarchy"],
        fabric=Bounds(graph).fabric,
    )
    times = []
    live = MininetNetwork(testbed, options)
    for network in (live, VirtualNetwork(graph, options)):
        tensors = network.tensors(size_bytes // 4, torch.float32, schedule)
        for rank, tensor in enumerate(tensors):
            tensor.fill_(rank)
        times.append(network.run(schedule, tensors).time_ps)
    used_s = live.usage.hosts_s + live.usage.switches_s
    share = used_s / (live.usage.wall_s * (os.cpu_count() or 1))
    return Fidelity(algo, times[0], times[1], min(share, 1.0))


def main() -> None:
    import sys

    run(emit=lambda line: print(line, file=sys.stdout, flush=True))  # noqa: T201


if __name__ == "__main__":
    main()
