"""Routing over k shortest paths."""

from __future__ import annotations

from itertools import islice, pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import TopologyError
from ringleaf.topologies.detours import detours, with_detours
from ringleaf.topologies.graph import attachment, hosts, switch_graph, switches
from ringleaf.topologies.k_shortest import k_shortest, with_k_shortest
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import links_towards, path, routes


@given(
    st.integers(2, 9).flatmap(
        lambda nodes: st.tuples(
            st.just(nodes),
            st.sets(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=20),
        )
    ),
    st.integers(1, 12),
)
def test_paths_are_the_shortest_without_loops(
    network: tuple[int, set[tuple[int, int]]], count: int
) -> None:
    """NetworkX has Yen's algorithm (Management Science 17(11), 1971)."""
    nodes, pairs = network
    graph = nx.Graph([(f"s{a}", f"s{b}") for a, b in sorted(pairs) if a != b])
    graph.add_nodes_from(f"s{number}" for number in range(nodes))
    peers = {node: {peer: port for port, peer in enumerate(graph.adj[node])} for node in graph}
    found = k_shortest(peers, "s0", "s1", count)
    expected: list[list[str]] = []
    if nx.has_path(graph, "s0", "s1"):
        expected = list(islice(nx.shortest_simple_paths(graph, "s0", "s1"), count))
    assert [len(each) for each in found] == [len(each) for each in expected]
    assert len(set(found)) == len(found)
    for each in found:
        assert each[0] == "s0"
        assert each[-1] == "s1"
        assert len(set(each)) == len(each)
        assert all(graph.has_edge(*ends) for ends in pairwise(each))


def test_every_pair_of_hosts_has_one_of_the_paths() -> None:
    graph = build("torus2d,x=3,y=3")
    turned = with_k_shortest(graph, 4)
    peers = switch_graph(graph)
    used = set()
    for src in hosts(graph):
        for dst in hosts(graph):
            if src != dst:
                nodes = path(turned, src, dst)
                ways = k_shortest(peers, attachment(graph, src), attachment(graph, dst), 4)
                assert tuple(nodes[1:-1]) in ways
                used.add(ways.index(tuple(nodes[1:-1])))
    assert used == {0, 1, 2, 3}


def test_hosts_of_one_switch_and_pairs_with_detours_keep_their_ways() -> None:
    graph = build("leafspine,leaves=2,spines=2,hosts=2")
    own = with_detours(graph, [("h0", "s3", "h2")])
    turned = with_k_shortest(own, 8)
    assert ("h0", "h1") not in detours(turned)
    assert detours(turned)["h0", "h2"] == detours(own)["h0", "h2"]
    assert len(detours(turned)) == 8  # two by two, both ways


def test_links_of_detours_count_as_links_towards_a_host() -> None:
    graph = build("leafspine,leaves=2,spines=2,hosts=1")
    way = with_detours(graph, [("h0", "s3", "h1")])
    found = links_towards(way, ["h0"], "h1", table=routes(way))
    assert found == {("h0", "s0"), ("s0", "s3"), ("s3", "s1"), ("s1", "h1")}


def test_what_can_not_be_routed_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"at most 64, got 128; take routes=ecmp"):
        with_k_shortest(build("fattree,k=8"), 2)
    graph = build("leafspine,leaves=2,spines=1,hosts=1").copy()
    graph.remove_edge("s1", switches(graph)[-1])
    with pytest.raises(TopologyError, match="no path from s0 to s1"):
        with_k_shortest(graph, 2)
