"""PANAMA's trees beside short flows: `python -m studies.trees`.

One job aggregates a large tensor, on half of each rack's hosts. The others send short flows to
other racks, at random times, over ECMP. Prints, in virtual time, the job's time, the bytes of the
busiest link between switches, and percentiles of the flows' completion times: for SwitchML, which
has one tree and no congestion control, and for PANAMA with one tree and with all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated

import networkx as nx
import numpy as np
import typer

from bench.options import several, tensor_bytes
from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.marking import from_depth
from ringleaf.core.tensors import INT32
from ringleaf.core.units import FOREVER_PS, PS_PER_S, PS_PER_US
from ringleaf.errors import choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.ina.registry import find_system
from ringleaf.networks.endpoints.kit import Kit, SchedulePlan
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.groups import Group
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.graph import attachment, hosts
from ringleaf.topologies.registry import build

TOPOLOGY = "leafspine,leaves=4,spines=4,hosts=8"
FLOW_BYTES = 16 << 10
MARK_PACKETS = 24  # as hosts' DCTCP wants it
LOAD = 0.1  # of each host's link, by its flows
PARTNERS = 3  # hosts that each host's flows go to
SEEDS = 4
CASES: dict[str, tuple[str, int | None]] = {
    "switchml": ("switchml", None),
    "panama-1": ("panama", 1),
    "panama": ("panama", None),
}
"""Name -> system, and its most trees."""

FLOW = Schedule(Collective.BROADCAST, "flow", 2, 1, (Transfer(0, 0, 1, 0, Op.COPY),))


@dataclass(frozen=True, slots=True)
class Beside:
    """The results of a job beside short flows."""

    job_ps: int
    flows_us: tuple[float, ...]  # completion times of the flows that began while the job ran
    busiest_bytes: int  # of all directions of links between switches
    wrong: int


@dataclass(slots=True)
class Flows:
    """Starts a job, and flows at random times until the job is done.

    Flows of one pair of hosts follow one another; their times count from when they are due.

    Args:
        job: The job's only operation, of group 0.
        make: Function that makes a flow's operation, of a group.
        random: Source of times and pairs.
        groups: Number of groups, with the job's.
        gap_ps: Mean time between flows.
    """

    job: CollectiveOperation
    make: _Maker
    random: Random
    groups: int
    gap_ps: float
    job_ps: int = 0
    times_ps: list[int] = field(default_factory=list)
    _next_ps: int = 0
    _due: list[CollectiveOperation] = field(default_factory=list)
    _queues: dict[int, deque[int]] = field(default_factory=dict)  # begins of flows, by group

    def start(self, now_ps: int) -> None:
        self._due.append(self.job)
        self._next_ps = now_ps + self._gap()

    def take_operations(self) -> list[CollectiveOperation]:
        taken, self._due = self._due, []
        return taken

    def next_ps(self) -> int:
        return self._next_ps

    def reach(self, now_ps: int) -> None:
        while self._next_ps <= now_ps:
            group = self.random.randrange(1, self.groups)
            queue = self._queues.setdefault(group, deque())
            queue.append(self._next_ps)
            if len(queue) == 1:
                self._due.append(self.make(group))
            self._next_ps += self._gap()

    def finish(self, operation: CollectiveOperation, now_ps: int) -> None:
        if operation is self.job:
            self.job_ps, self._next_ps = operation.end_ps, FOREVER_PS
            return
        queue = self._queues[operation.group]
        self.times_ps.append(operation.end_ps - queue.popleft())
        if queue:
            self._due.append(self.make(operation.group))

    def _gap(self) -> int:
        return 1 + int(self.random.expovariate(1 / self.gap_ps))


class _Maker:
    """Makes operations of a network's groups, one at a time of each.

    Args:
        network: The network, idle.
        elements: Elements of each group's tensors.
    """

    def __init__(self, network: VirtualNetwork, elements: Sequence[int]) -> None:
        endpoints = network.endpoints
        self._kits = []
        for number, (group, count) in enumerate(zip(endpoints.groups, elements, strict=True)):
            schedule = FLOW if group.system is None else in_network_allreduce(len(group.hosts))
            courses = {0: SchedulePlan.of(schedule, count)}
            self._kits.append(Kit(endpoints, number, courses, [count], INT32, channels=1))
        endpoints.memory.make_room(sum(kit.total_bytes for kit in self._kits))
        for kit in self._kits:
            kit.settle()
        self.arrays = [
            [array[:count] for array in kit.stock.take(count)]
            for kit, count in zip(self._kits, elements, strict=True)
        ]

    def __call__(self, group: int) -> CollectiveOperation:
        return self._kits[group].operate(0, 0, self.arrays[group])


def pairs_of(graph: nx.Graph[str], senders: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of senders in different racks, PARTNERS for each."""
    for number, host in enumerate(senders):
        away = [each for each in senders if attachment(graph, each) != attachment(graph, host)]
        step = max(1, len(away) // PARTNERS)
        for i in range(min(PARTNERS, len(away))):
            yield host, away[(number + i * step) % len(away)]


def measure(
    case: str, *, size_bytes: int, topology: str = TOPOLOGY, lanes: int = 256, seed: int = 0
) -> Beside:
    """Run a job of a case beside flows.

    Raises:
        ConfigError: If there is no such case or topology.
    """
    system, trees = CASES[choose("trees", "case", case, list(CASES))]
    graph = build(topology)
    names = hosts(graph)
    workers, others = names[::2], names[1::2]
    pairs = list(pairs_of(graph, others))
    groups = [
        Group(1, tuple(workers), (), find_system(system)),
        *(Group(2, pair) for pair in pairs),
    ]
    options = NetworkOptions(
        trees=trees, lanes=lanes, ecmp=True, cc="dctcp", ecn=from_depth(MARK_PACKETS)
    )
    network = VirtualNetwork(graph, options, groups=groups, seed=seed)
    elements = size_bytes // 4
    make = _Maker(network, [elements, *([FLOW_BYTES // 4] * len(pairs))])
    for rank, array in enumerate(make.arrays[0]):
        array[:] = rank + 1
    rate_bps = graph.edges[others[0], attachment(graph, others[0])]["link"].rate_bps
    gap_ps = 8 * FLOW_BYTES * PS_PER_S / (LOAD * rate_bps * len(others))
    director = Flows(make(0), make, Random(f"flows {seed}"), len(groups), gap_ps)
    result = network.play(director)
    total = len(workers) * (len(workers) + 1) // 2
    between = [size for (a, b), size in result.link_bytes.items() if a[0] == b[0] == "s"]
    return Beside(
        director.job_ps,
        tuple(each / PS_PER_US for each in director.times_ps),
        max(between, default=0),
        sum(int((array != total).sum()) for array in make.arrays[0]),
    )


def line(case: str, found: Sequence[Beside]) -> str:
    """Return the measurements of a case, over all seeds, as a line of the table."""
    flows = np.concatenate([each.flows_us for each in found])
    job_us = float(np.mean([each.job_ps for each in found])) / PS_PER_US
    busiest = max(each.busiest_bytes for each in found) / 1e6
    p50, p99 = np.percentile(flows, (50, 99))
    wrong = sum(each.wrong for each in found)
    return (
        f"{case:>10} {job_us:>9.1f} {busiest:>9.2f} {len(flows):>6} {flows.mean():>7.2f} "
        f"{p50:>7.2f} {p99:>7.2f} {wrong:>6}"
    )


def trees_command(
    case: Annotated[list[str] | None, several(", ".join(CASES))] = None,
    topo: Annotated[str, typer.Option(help="Topology.")] = TOPOLOGY,
    size: Annotated[str, typer.Option(help="Bytes of the job's tensor.")] = "4MiB",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each case, by seed.")] = SEEDS,
    debug: Debug = False,
) -> None:
    """Run the study."""
    size_bytes = tensor_bytes(size)
    say(
        f"# a job of {size} beside flows of {FLOW_BYTES >> 10} KiB, {LOAD:.0%} of hosts' "
        f"links, on {topo}; virtual time\n"
        "#     case       job   busiest  flows    mean     p50     p99 #wrong\n"
        "#               (us)      (MB)           (us)    (us)    (us)"
    )
    for name in case or CASES:
        found = [
            measure(name, size_bytes=size_bytes, topology=topo, seed=seed) for seed in range(seeds)
        ]
        say(line(name, found))


if __name__ == "__main__":
    alone("python -m studies.trees", trees_command)
