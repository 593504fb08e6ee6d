"""GRID's and GOAT's examples, solved and then measured.

    python -m studies.gradients

Both networks are built as the papers draw them, and every packet passes the P4 programs, in virtual
time. GRID's (section 3.1, figure 1) is measured in Gbit/s of each worker: with parameter servers
alone (Geryon), with ATP, and with the ways that `ringleaf.topologies.gradients.grid` finds. Our
switches add up whatever comes, where the example's add 9 Gbit/s. So the part of the crowded rack's
gradients that its switch adds up is sought, the largest with which no switch is measured to add
more; the others go on as they are. GOAT's (figure 2) is measured in packets that switches send
towards the parameter servers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import finsy as fy
import networkx as nx
import numpy as np

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.ps import parameter_server_allreduce
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.ina.atp.system import Atp
from ringleaf.ina.atp.wire import VALUES_AT
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.gradients import goat, grid
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

G = 10**9
LANES = 64
LINE_BYTES = VALUES_AT + 4 * LANES + 24  # of a gradient, with preamble, FCS and gap
WINDOW = 256
ADDS_BPS = 9 * G  # of each switch, in GRID's example
ADDED = (0, 1, 2)  # rows of `outcomes`, see p4/include/aggregators.p4: taken, added, completed
GRID_WORKERS = tuple(f"h{i}" for i in range(8))
GOAT_WORKERS, GOAT_SERVERS = ("h0", "h1", "h2", "h3"), ("h4", "h5", "h6")


def network_of(racks: list[int], links: list[tuple[int, int]], rate_bps: int) -> nx.Graph[str]:
    """Return switches with so many hosts each, joined as listed; the last host's link is faster."""
    graph = new_graph("golden", (sum(racks),))
    for number in range(len(racks)):
        add_switch(graph, number, 0, f"switch {number}", (float(number), 0.0))
    for one, other in links:
        connect(graph, f"s{one}", f"s{other}", Link(rate_bps, 1000))
    host = 0
    for number, count in enumerate(racks):
        for _ in range(count):
            last = host == sum(racks) - 1
            add_host(graph, host, (float(host), 1.0))
            connect(graph, f"s{number}", f"h{host}", Link((3 if last else 1) * rate_bps, 1000))
            host += 1
    return graph


def grid_figure_1(ways: Sequence[Sequence[str]] = ()) -> nx.Graph[str]:
    """Return racks of four workers, of two, and of two and the server; all at 3 Gbit/s."""
    graph = network_of([4, 2, 3], [(0, 2), (0, 1), (1, 2)], 3 * G)
    return with_detours(graph, ways)


def goat_figure_2(ways: Sequence[Sequence[str]] = ()) -> nx.Graph[str]:
    """Return two racks of two workers, and a third of the servers, one for each of three parts."""
    return with_detours(network_of([2, 2, 3], [(0, 2), (1, 2), (0, 1)], G), ways)


class Limited(Atp):
    """ATP as GRID draws it: nothing is added up twice on its way, and one switch adds up a part.

    It adds up that part if it has as large a part of the aggregators which the job's hashes go
    over.

    Args:
        aggregators: The first switch's, of `WINDOW`.
    """

    def __init__(self, aggregators: int) -> None:
        self.aggregators = max(1, aggregators)

    def join(self, *given: Any) -> Any:
        job = super().join(*given)
        told = {**job.entities}
        told["s0"] = [_change(entry, aggregators=self.aggregators) for entry in told["s0"]]
        told["s2"] = [_change(entry, complete=0b11000000) for entry in told["s2"]]
        return replace(job, entities=told)


def _change(entry: Any, **arguments: int) -> Any:
    if not isinstance(entry, fy.P4TableEntry) or entry.table_id != "shares":
        return entry
    action: Any = entry.action
    return replace(entry, action=fy.P4TableAction("aggregate", **{**action.args, **arguments}))


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """Measured rates.

    Args:
        of_one: Gbit/s of each worker.
        added: Gbit/s that each switch adds up.
        wrong: Elements that are wrong.
    """

    of_one: float
    added: list[float]
    wrong: int


def run_limited(adds_bps: int, ways: Sequence[Sequence[str]] = ()) -> MeasuredRates:
    """Measure GRID's example as fast as it goes with switches that add up so much, by halving.

    The more of its rack's gradients the first switch adds up, the faster all are, and the more it
    adds.

    Args:
        adds_bps: The most that a switch may be measured to add up, in bit/s of gradients.
        ways: Detours.
    """
    least, most = 0, WINDOW + 1
    found = run_grid(least, ways)
    while most - least > 1:
        middle = WINDOW if most > WINDOW else (least + most) // 2
        rates = run_grid(middle, ways)
        if max(rates.added) * G <= adds_bps:
            least, found = middle, rates
        else:
            most = middle
    return found


def run_grid(aggregators: int, ways: Sequence[Sequence[str]] = ()) -> MeasuredRates:
    """Measure GRID's example with ATP's switches, which add up whatever comes, and some ways.

    Args:
        aggregators: The first switch's, which decide on the part that it adds up (`Limited`).
        ways: Detours.
    """
    options = NetworkOptions(
        system=Limited(aggregators), lanes=LANES, slots=WINDOW, switch_entries=WINDOW, servers=1
    )
    network = VirtualNetwork(grid_figure_1(ways), options)
    blocks = 1 << 12
    tensors = [np.ones(blocks * LANES, np.float32) for _ in GRID_WORKERS]
    result = network.run(in_network_allreduce(len(tensors), "atp"), tensors)
    of_one = 8e12 * LINE_BYTES / result.time_ps / G  # if it came once
    added = [of_one * _added(network, f"s{i}") for i in range(3)]
    wrong = sum(int((tensor != len(tensors)).sum()) for tensor in tensors)
    return MeasuredRates(of_one * blocks, added, wrong)


def _added(network: VirtualNetwork, switch: str) -> int:
    """Return how many gradients a switch has added up, the first of a sum included."""
    counter = "Atp.aggregators.outcomes"
    return sum(network.switches[switch].read_counter(counter, row).packets for row in ADDED)


def run_geryon(ways: Sequence[Sequence[str]] = ()) -> MeasuredRates:
    """Measure GRID's example with a parameter server, where nothing is added up on the way."""
    segments = 256
    schedule = parameter_server_allreduce(8, 1, segments)
    tensors = [np.ones(1 << 20, np.float32) for _ in range(8)]
    result = VirtualNetwork(grid_figure_1(ways), NetworkOptions(servers=1)).run(schedule, tensors)
    slowest = min(result.wire_bytes[:8]) * (segments + 1) / segments  # the last sums come after it
    wrong = sum(int((tensor != 8).sum()) for tensor in tensors)
    return MeasuredRates(8e12 * slowest / result.time_ps / G, [], wrong)


def run_goat(ways: Sequence[Sequence[str]]) -> tuple[dict[str, int], int]:
    """Measure GOAT's example: a block of each of the three parts.

    Returns:
        Packets that each switch sends towards the servers; and the elements that are wrong.
    """
    options = NetworkOptions(system=Atp(), lanes=LANES, servers=len(GOAT_SERVERS))
    network = VirtualNetwork(goat_figure_2(ways), options)
    tensors = [np.ones(LANES * len(GOAT_SERVERS), np.int32) for _ in GOAT_WORKERS]
    result = network.run(in_network_allreduce(len(tensors), "atp"), tensors)
    sent: Counter[str] = Counter()
    upward = {("s0", "s1"), ("s1", "s0"), ("s0", "s2"), ("s1", "s2")}
    upward |= {("s2", server) for server in GOAT_SERVERS}
    for ends in upward:
        sent[ends[0]] += result.link_bytes[ends] // LINE_BYTES
    wrong = sum(int((tensor != len(tensors)).sum()) for tensor in tensors)
    return dict(sent), wrong


def gradients_command(debug: Debug = False) -> None:
    """Solve both examples and measure them."""
    solved = grid.route(grid_figure_1(), GRID_WORKERS, "h8", adds_bps=ADDS_BPS, rng=Random(1))
    by_hand = [("h3", "s1", "h8"), ("h8", "s1", "h3")]
    say("# GRID, figure 1: Gbit/s of each of 8 workers; links of 3 Gbit/s; no switch adds more")
    say("# than 9 Gbit/s, as measured")
    say("#   system  ours  paper #wrong  ways")
    for name, found, paper, ways in (
        ("geryon", run_geryon(by_hand), "1", "-".join(by_hand[0])),
        ("atp", run_limited(ADDS_BPS), "2.43", ""),
        (
            "grid",
            run_limited(ADDS_BPS, solved.ways),
            "3",
            ", ".join("-".join(way) for way in solved.ways),
        ),
    ):
        say(f"{name:>10} {found.of_one:5.2f} {paper:>6} {found.wrong:>6}  {ways}")
    part = goat.route(goat_figure_2(), GOAT_WORKERS, GOAT_SERVERS, rng=Random(1))
    sent, wrong = run_goat(part.ways)
    say("# GOAT, figure 2: packets sent by switches towards the servers; one part in each switch")
    say("#   system    s0    s1    s2  all paper #wrong")
    counts = " ".join(f"{sent[name]:5d}" for name in ("s0", "s1", "s2"))
    say(f"{'goat':>10} {counts} {sum(sent.values()):4d} {13:5d} {wrong:6d}")


if __name__ == "__main__":
    alone("python -m studies.gradients", gradients_command)
