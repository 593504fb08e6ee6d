from __future__ import annotations

from math import prod

import networkx as nx
import pytest
from hypothesis import given
from topology_specs import ANY_SPEC

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import (
    LOCAL_DELAY_PS,
    Link,
    Role,
    add_host,
    add_switch,
    attachment,
    connect,
    distances,
    hosts,
    least_times_ps,
    link,
    neighbor_at,
    neighbors,
    new_graph,
    port,
    switch_graph,
    switches,
)
from ringleaf.topologies.registry import build

LINK = Link(100, 5)


def make_pair() -> nx.Graph[str]:
    graph = new_graph("pair", (2,))
    for rank in range(2):
        add_host(graph, rank, (rank, 0))
    add_switch(graph, 0, 0, "middle", (0.5, 1))
    for rank in range(2):
        connect(graph, f"h{rank}", "s0", LINK)
    return graph


@given(ANY_SPEC)
def test_nodes_are_numbered_from_0_and_placed(spec: str) -> None:
    graph = build(spec)

    assert hosts(graph) == [f"h{rank}" for rank in range(len(hosts(graph)))]
    assert switches(graph) == [f"s{i}" for i in range(len(switches(graph)))]
    assert len(graph) == len(hosts(graph)) + len(switches(graph))
    places = [data["pos"] for _, data in graph.nodes(data=True) if data["role"] is Role.SWITCH]
    assert len(set(places)) == len(places)
    labels = [data["label"] for _, data in graph.nodes(data=True)]
    assert len(set(labels)) == len(labels)


@given(ANY_SPEC)
def test_ports_count_from_1_and_lead_back(spec: str) -> None:
    graph = build(spec)

    for node in graph:
        peers = neighbors(graph, node)
        assert list(peers) == list(range(1, graph.degree[node] + 1))
        for number, peer in peers.items():
            assert neighbor_at(graph, node, number) == peer
            assert port(graph, node, peer) == number


@given(ANY_SPEC)
def test_hierarchy_multiplies_to_the_number_of_hosts(spec: str) -> None:
    graph = build(spec)

    assert prod(graph.graph["hierarchy"]) == len(hosts(graph))


@given(ANY_SPEC)
def test_all_switches_are_joined_and_all_hosts_hang_off_tier_0(spec: str) -> None:
    graph = build(spec)

    assert len(distances(switch_graph(graph), "s0")) == len(switches(graph))
    for host in hosts(graph):
        switch = attachment(graph, host)
        assert graph.nodes[switch]["tier"] == 0
        if graph.graph["servers"]:
            assert switch == host.replace("h", "s")
            assert port(graph, switch, host) == 1


@given(ANY_SPEC)
def test_the_name_builds_the_same_graph_again(spec: str) -> None:
    graph = build(spec)
    again = build(graph.name)

    assert again.graph == graph.graph
    assert list(again.nodes(data=True)) == list(graph.nodes(data=True))
    assert list(again.edges(data=True)) == list(graph.edges(data=True))


@given(ANY_SPEC)
def test_a_servers_own_link_carries_all_its_other_links(spec: str) -> None:
    graph = build(spec)

    for host in hosts(graph) if graph.graph["servers"] else []:
        switch = attachment(graph, host)
        others = [link(graph, switch, peer).rate_bps for peer in switch_graph(graph)[switch]]
        own = link(graph, host, switch)
        assert own == Link(sum(others) or 100 * 10**9, LOCAL_DELAY_PS)


def test_hosts_sort_by_number() -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=12")

    assert hosts(graph)[9:] == ["h9", "h10", "h11"]


def test_each_link_can_be_changed_alone() -> None:
    graph = build("fattree,k=4")
    graph.edges["s0", "s8"]["link"] = LINK

    assert link(graph, "s8", "s0") == LINK
    assert link(graph, "s0", "s9") != LINK


@pytest.mark.parametrize(
    ("rate_bps", "delay_ps", "message"),
    [
        (0, 0, "link: rate_bps must be >= 1, got 0"),
        (1, -1, "link: delay_ps must be >= 0, got -1"),
        (1e9, 1, "link: rate_bps must be an int, got 1000000000.0; like"),
        (10**9, 1e-6, "link: delay_ps must be an int, got 1e-06"),
    ],
)
def test_impossible_links_are_refused(rate_bps: int, delay_ps: int, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        Link(rate_bps, delay_ps)


def test_nodes_are_joined_once() -> None:
    graph = make_pair()

    with pytest.raises(TopologyError, match="pair: h0 and s0 are joined already"):
        connect(graph, "h0", "s0", LINK)
    with pytest.raises(TopologyError, match="pair: no such node, got 's7'"):
        connect(graph, "h0", "s7", LINK)


def test_lookups_of_what_is_not_there_say_so() -> None:
    graph = make_pair()

    with pytest.raises(TopologyError, match="pair: no link joins 'h0' and 'h1'"):
        port(graph, "h0", "h1")
    with pytest.raises(TopologyError, match="pair: no link joins 'h0' and 'h9'"):
        link(graph, "h0", "h9")
    with pytest.raises(TopologyError, match="pair: s0 has ports 1 to 2, got 3"):
        neighbor_at(graph, "s0", 3)
    with pytest.raises(TopologyError, match="pair: no such node, got 's7'"):
        neighbor_at(graph, "s7", 1)
    with pytest.raises(TopologyError, match="pair: no such host, got 's0'"):
        attachment(graph, "s0")
    with pytest.raises(TopologyError, match="pair: no such host, got 'h9'"):
        attachment(graph, "h9")


def test_a_host_has_one_link() -> None:
    graph = make_pair()
    add_host(graph, 2, (2, 0))

    with pytest.raises(TopologyError, match="pair: h2 must have one link, got 0"):
        attachment(graph, "h2")


def test_names_are_a_letter_and_a_number() -> None:
    graph = make_pair()
    graph.add_node("spine", role=Role.SWITCH)

    with pytest.raises(TopologyError, match="node: must be a letter and a number, got 'spine'"):
        switches(graph)


@given(ANY_SPEC)
def test_distances_and_least_times_are_those_of_networkx(spec: str) -> None:
    graph = build(spec)
    start = hosts(graph)[0]

    def hop_ps(node: str, peer: str) -> int:
        return 1 + int(node[1:]) % 3 + 5 * (int(peer[1:]) % 2)

    assert distances(graph, start) == nx.single_source_shortest_path_length(graph, start)
    assert least_times_ps(graph, start, hop_ps) == nx.single_source_dijkstra_path_length(
        graph, start, weight=lambda node, peer, _: hop_ps(node, peer)
    )
