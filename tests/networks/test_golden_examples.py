"""Figures that papers compute by hand for ATP, measured on networks built as they draw them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import finsy as fy
import networkx as nx
import pytest
import torch

from collectives.aggregate import in_network_allreduce
from experiments.bench_sharing import share
from ina import atp
from ina.atp.wire import VALUES_AT
from networks.virtual import Options, VirtualNetwork
from topologies.graph import Link, add_host, add_switch, connect, new_graph

G = 10**9
LANES = 64
LINE_BYTES = VALUES_AT + 4 * LANES + 24  # of a gradient, with preamble, FCS and gap
WINDOW = 256


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


class Limited(type(atp.SYSTEM)):  # type: ignore[misc]
    """ATP where one switch has fewer aggregators than the jobs' hashes go over."""

    def __init__(self, switch: str, aggregators: int) -> None:
        self.switch, self.aggregators = switch, aggregators

    def join(self, *args: Any, **more: Any) -> Any:
        job = super().join(*args, **more)
        told = {**job.entities}
        told[self.switch] = [self._limit(entry) for entry in told[self.switch]]
        return replace(job, entities=told)

    def _limit(self, entry: Any) -> Any:
        if not isinstance(entry, fy.P4TableEntry) or entry.table_id != "shares":
            return entry
        action: Any = entry.action
        arguments = {**action.args, "aggregators": self.aggregators}
        return replace(entry, action=fy.P4TableAction("aggregate", **arguments))


@pytest.mark.parametrize(
    ("aggregated", "rate", "within"),
    [
        (
            9 / (4 * 2.4375),
            2.4375,
            0.04,
        ),  # as much as a switch can process: 9 Gbit/s, or 2.25 of each
        (1.0, 3.0, 0.04),  # all of it: the links are all there is
        (0.0, 0.75, 0.08),  # nothing: each has a quarter of the link between racks
    ],
)
def test_grid_figure_1_atp(aggregated: float, rate: float, within: float) -> None:
    """Four workers in one rack, two in the next, two and the server in the third; 3 Gbit/s.

    Fang et al., "GRID", 2023, section 3.1: the first rack's switch can add up 9 Gbit/s, 2.25 of
    each worker, which leaves 0.75 of its link to the server's for gradients as they are, 0.19 of
    each: 2.43 in all. A switch that adds up a part is one that has that part of the aggregators.
    """
    graph = network_of([4, 2, 3], [(0, 2), (0, 1), (1, 2)], 3 * G)
    system = Limited("s0", max(1, round(aggregated * WINDOW)))
    options = Options(system=system, lanes=LANES, slots=WINDOW, switch_entries=WINDOW, servers=1)
    elements = 1 << 18
    tensors = [torch.ones(elements) for _ in range(8)]

    result = VirtualNetwork(graph, options).run(in_network_allreduce(8, "atp"), tensors)

    assert all(bool((tensor == 8).all()) for tensor in tensors)
    measured = 8e12 * LINE_BYTES * (elements / LANES) / result.time_ps / G
    assert measured == pytest.approx(rate, rel=within)


def test_fewer_aggregators_degrade_atp_down_to_the_parameter_server() -> None:
    plenty, some, few = (
        share(("atp", "atp"), entries, elements=1 << 15) for entries in (1024, 96, 2)
    )
    assert plenty.wrong == some.wrong == few.wrong == 0
    slowest = [min(found.goodputs_bps) for found in (plenty, some, few)]
    assert slowest[0] > slowest[1] > slowest[2]
    assert slowest[2] > 0.6 * 100e9 / 4 * (4 * LANES / LINE_BYTES)


def test_jobs_of_two_systems_share_a_switch() -> None:
    """One program has both; each system has entries of its own."""
    found = share(("atp", "switchml"), 256, elements=1 << 15)
    assert found.wrong == found.resent == 0
