"""Links of many pairs at once are those of the routes, one by one."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.graph import hosts, link
from ringleaf.topologies.pair_links import PairLinks
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import dealt, longest_rtt_ps, one_way_ps, path, routes

TOPOLOGIES = (
    *("fattree,k=4", "fattree,k=6,edge=3", "leafspine,leaves=3,spines=2,hosts=3"),
    *("torus2d,x=3,y=4", "dragonfly,a=2,p=2,h=1", "bcube,n=3,k=1", "slimfly,q=5"),
    *("hammingmesh,a=2,b=2,x=2,y=2", "railonly", "dcell,n=3,k=1"),
)


def made(topo: str) -> nx.Graph[str]:
    return build(topo, rate_bps=100_000_000_000, delay_ps=1_000_000)


@pytest.mark.parametrize("topo", TOPOLOGIES)
def test_links_are_those_of_the_routes(topo: str) -> None:
    graph = with_delays(made(topo), switch_delay_ps=300, host_delay_ps=20)
    table = routes(graph)
    pairs, names = PairLinks(graph, table), hosts(graph)
    src, dst = np.nonzero(~np.eye(len(names), dtype=bool))

    found = pairs.find(src, dst)

    ends, delays = pairs.columns.ends, pairs.columns.delay_ps
    for way, a, b in zip(found.tolist(), src.tolist(), dst.tolist(), strict=True):
        nodes = path(graph, names[a], names[b], table=dealt(graph, table))
        there = [each for each in way if each >= 0]
        assert [ends[each] for each in there] == list(pairwise(nodes))
        on_links_ps = sum(-(-8 * 10**12 * 100 // link(graph, *ends[i]).rate_bps) for i in there)
        assert sum(delays[there]) + on_links_ps == one_way_ps(graph, nodes, 100)


@pytest.mark.parametrize("topo", ["fattree,k=4", "torus2d,x=3,y=4", "leafspine,leaves=3,hosts=2"])
def test_the_longest_round_trip_is_that_of_the_routes(topo: str) -> None:
    graph = made(topo)
    pairs = PairLinks(graph, routes(graph))

    assert pairs.longest_rtt_ps(4096) == longest_rtt_ps(graph, 4096)


def test_detours_are_left_to_tables() -> None:
    graph = made("fattree,k=4")
    turned = with_detours(graph, [("h0", "s16", "h15")])

    assert PairLinks(graph, routes(graph)).can_find()
    assert not PairLinks(turned, routes(turned)).can_find()
