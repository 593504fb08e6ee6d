"""Times, loads and bounds on ways that are no shortest paths: the sums along each way."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations

import networkx as nx
import numpy as np
import pytest

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import hosts, index
from ringleaf.topologies.loads import link_loads
from ringleaf.topologies.registry import build
from ringleaf.topologies.remaining import LinkSets, remaining_ps
from ringleaf.topologies.route_table import RouteTable, links_left
from ringleaf.topologies.routing import longest_rtt_ps, path, routes, with_routing
from ringleaf.topologies.ways import Loads, PlannedFlows, TopologyRoutes


def made(name: str) -> tuple[nx.Graph[str], RouteTable]:
    graph = build(name)
    if name.startswith("dcell"):
        graph = with_routing(graph, "dcell_routing", "dcell")
    return graph, routes(graph)


BY_RULE = pytest.mark.parametrize(
    "name", ["dragonfly,a=3,p=1,h=2", "dcell,n=2,k=2", "dcell,n=4,k=1"]
)


@BY_RULE
def test_some_way_is_longer_than_the_shortest(name: str) -> None:
    graph, table = made(name)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    longer = [
        pair
        for pair in permutations(hosts(graph), 2)
        if len(path(graph, *pair, table=table)) - 1 > lengths[pair[0]][pair[1]]
    ]
    assert longer or name == "dcell,n=4,k=1"


def test_a_rule_that_leads_round_in_a_circle_is_refused() -> None:
    following = np.array([[0], [2], [1]], np.int32)
    with pytest.raises(TopologyError, match="a way never arrives, got a loop at s"):
        links_left(following, np.array([0]))


def test_links_that_are_left_by_hand() -> None:
    """To switch 0 from 3 by 2 and 1, and to 1 from 0 by itself."""
    following = np.array([[0, 1], [0, 1], [1, 1], [2, 2]], np.int32)
    found = links_left(following, np.array([0, 1]))
    assert found.tolist() == [[0, 1], [1, 0], [2, 1], [3, 2]]


def hop_ps(node: str, peer: str) -> int:
    """A time of its own for each link."""
    return 1000 + 7 * index(node) + 3 * index(peer)


@BY_RULE
def test_the_time_that_is_left_is_that_of_the_links_ahead(name: str) -> None:
    graph, table = made(name)
    left_ps, number = remaining_ps(LinkSets(table), hop_ps), table.arrays.number
    for src, dst in permutations(hosts(graph), 2):
        nodes = path(graph, src, dst, table=table)
        expected = sum(hop_ps(*ends) for ends in pairwise(nodes[1:]))
        assert left_ps[number[nodes[1]], index(dst)] == expected


@BY_RULE
def test_the_longest_round_trip_is_of_all_hosts(name: str) -> None:
    """Links of 1 us and inner ones of 1 ns; packets of no bytes take no other time."""
    graph, table = made(name)
    ways = {pair: path(graph, *pair, table=table) for pair in permutations(hosts(graph), 2)}
    delay_ps = {
        pair: sum(graph.edges[ends]["link"].delay_ps for ends in pairwise(nodes))
        for pair, nodes in ways.items()
    }
    longest = max(there + delay_ps[pair[::-1]] for pair, there in delay_ps.items())
    assert longest_rtt_ps(graph, 0, table=table) == longest


@BY_RULE
def test_loads_follow_the_ways(name: str) -> None:
    graph, table = made(name)
    names = hosts(graph)
    demand = {dst: {src: float(1 + index(src)) for src in names if src != dst} for dst in names}
    wanted: Counter[tuple[str, str]] = Counter()
    for src, dst in permutations(names, 2):
        for ends in pairwise(path(graph, src, dst, table=table)):
            wanted[ends] += 1 + index(src)
    assert link_loads(graph, demand, table) == pytest.approx(dict(wanted))


@BY_RULE
def test_bounds_add_up_flows_along_the_ways(name: str) -> None:
    graph, table = made(name)
    ways = TopologyRoutes(graph)
    loads = Loads(ways.links)
    sizes = {src: 1000 + src for src in range(len(hosts(graph))) if src != 1}
    ways.add_flows(loads, PlannedFlows.of([(src, 1, size, 0, 0) for src, size in sizes.items()]))
    wanted: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for src, size in sizes.items():
        for node, peer in pairwise(path(graph, f"h{src}", "h1", table=table)):
            wanted[node, (peer,)] += size
    assert {outlet: load.size_bytes for outlet, load in loads.items()} == dict(wanted)
