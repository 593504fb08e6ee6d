"""Figures that papers compute by hand for ATP, measured on networks built as they draw them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import finsy as fy
import networkx as nx
import pytest
import torch

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.parameter_server import parameter_server_allreduce
from ringleaf.experiments.studies.sharing import share
from ringleaf.ina.atp.system import Atp
from ringleaf.ina.atp.wire import VALUES_AT
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

G = 10**9
LANES = 64
LINE_BYTES = VALUES_AT + 4 * LANES + 24  # of a gradient, with preamble, FCS and gap
WINDOW = 256
ADDED_UP = 9 / 4  # Gbit/s of each of four workers that a switch of 9 Gbit/s adds up
AS_IT_IS = (3 - ADDED_UP) / 4  # of each, on a link of 3 Gbit/s that also carries the sum
ADDED = (0, 1, 2)  # rows of `outcomes`, see p4/include/aggregators.p4: taken, added, completed


def network_of(racks: list[int], links: list[tuple[int, int]], rate_bps: int) -> nx.Graph[str]:
    """Switches with so many hosts each, joined as listed; the last host has a faster link."""
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


class Limited(Atp):
    """ATP as the paper draws it: nothing is added up twice on its way, and one switch can't do all.

    What a switch can add up is a part of what comes if it has that part of the aggregators which
    the job's hashes go over.
    """

    def __init__(self, aggregated: float) -> None:
        self.aggregators = max(1, round(aggregated * WINDOW))

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


def grid_figure_1(*ways: str) -> nx.Graph[str]:
    """Four workers in one rack, two in the next, two and the server in the third; 3 Gbit/s."""
    graph = network_of([4, 2, 3], [(0, 2), (0, 1), (1, 2)], 3 * G)
    return with_detours(graph, [way.split("-") for way in ways])


@pytest.mark.parametrize(
    ("ways", "aggregated", "rate", "processed"),
    [
        ([], ADDED_UP / (ADDED_UP + AS_IT_IS), 2.4375, [9, 4.875, 4.875]),  # ATP, as in the paper
        ([], 1, 3, [12, 6, 6]),  # if the first switch could add up all
        ([], 0, 0.75, [0, 1.5, 1.5]),  # none: each has a quarter of the link between racks
        (["h3-s1-h8"], 1, 3, [9, 9, 6]),  # GRID
    ],
)
def test_grid_figure_1(
    ways: list[str], aggregated: float, rate: float, processed: list[float]
) -> None:
    """Fang et al., "GRID", 2023, section 3.1: a switch can add up 9 Gbit/s.

    That is 2.25 of each worker in the first rack, which leaves 0.75 of its link to the server's for
    gradients as they are, 0.19 of each: 2.43 in all with ATP. GRID sends one worker's to the next
    rack, to be added up there, and all have 3.
    """
    options = NetworkOptions(
        system=Limited(aggregated), lanes=LANES, slots=WINDOW, switch_entries=WINDOW, servers=1
    )
    network = VirtualNetwork(grid_figure_1(*ways), options)
    blocks = 1 << 12
    tensors = [torch.ones(blocks * LANES) for _ in range(8)]

    result = network.run(in_network_allreduce(8, "atp"), tensors)

    assert all(bool((tensor == 8).all()) for tensor in tensors)
    of_one = 8e12 * LINE_BYTES / result.time_ps / G  # Gbit/s, if it comes once
    within = 0.08 if rate < 1 else 0.04
    assert of_one * blocks == pytest.approx(rate, rel=within)
    sums = [of_one * added(network, f"s{i}") for i in range(3)]
    assert sums == pytest.approx(processed, rel=within, abs=0.02)


def added(network: VirtualNetwork, switch: str) -> int:
    """How many gradients a switch has added up, the first of a sum included."""
    counter = "Atp.aggregators.outcomes"
    return sum(network.switches[switch].read_counter(counter, row).packets for row in ADDED)


@pytest.mark.parametrize(("ways", "rate"), [([], 0.75), (["h3-s1-h8", "h8-s1-h3"], 1)])
def test_grid_figure_1_geryon(ways: list[str], rate: float) -> None:
    """Nothing is added up on the way: the slowest have a third of their link, with a detour.

    Without one it is a quarter. The server's link is no limit.
    """
    segments = 256
    schedule = parameter_server_allreduce(8, 1, segments)
    tensors = [torch.ones(1 << 20) for _ in range(8)]

    result = VirtualNetwork(grid_figure_1(*ways), NetworkOptions(servers=1)).run(schedule, tensors)

    assert all(bool((tensor == 8).all()) for tensor in tensors)
    slowest = min(result.wire_bytes[:8]) * (segments + 1) / segments  # the last sums come after it
    assert 8e12 * slowest / result.time_ps / G == pytest.approx(rate, rel=0.04)


def test_fewer_aggregators_degrade_atp_down_to_the_parameter_server() -> None:
    plenty, some, few = (
        share(("atp", "atp"), entries, elements=1 << 15) for entries in (1024, 96, 2)
    )
    assert plenty.wrong == some.wrong == few.wrong == 0
    slowest = [min(found.goodputs_bps) for found in (plenty, some, few)]
    assert slowest[0] > slowest[1] > slowest[2]
    assert slowest[2] > 0.6 * 100e9 / 4 * (4 * LANES / LINE_BYTES)


def test_jobs_of_two_systems_share_a_switch() -> None:
    """One program has both; each system has entries of its own.

    Not compiled: that would take this program ten times as long as the run.
    """
    code = (
        "from ringleaf.experiments.studies.sharing import share\n"
        "found = share(('atp', 'switchml'), 256, elements=1 << 10)\n"
        "print(found.wrong, found.resent, *found.goodputs_bps)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    wrong, resent, *goodputs = map(float, done.stdout.split())
    assert wrong == resent == 0
    assert min(goodputs) > 0.8 * max(goodputs)
