from __future__ import annotations

import random
import weakref
from collections import Counter
from itertools import pairwise, product

import networkx as nx
import pytest
from hypothesis import given
from topology_specs import ANY_SPEC, ANY_TORUS, SPECS

from ringleaf.errors import ConfigError, TopologyError
from ringleaf.topologies.graph import (
    Link,
    attachment,
    hosts,
    neighbor_at,
    neighbors,
    port,
    switches,
)
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import (
    Table,
    base_rtt_ps,
    dealt,
    hop_count,
    one_way_ps,
    path,
    routes,
    routes_to,
)


def choices(graph: nx.Graph[str], table: Table, host: str) -> nx.DiGraph[str]:
    """Where a packet for `host` may go next from each switch."""
    following: nx.DiGraph[str] = nx.DiGraph()
    for switch, ports in ((switch, table[switch][host]) for switch in table):
        following.add_edges_from((switch, neighbor_at(graph, switch, number)) for number in ports)
    return following


@given(ANY_SPEC)
def test_every_choice_leads_to_the_host_without_a_loop(spec: str) -> None:
    graph = build(spec)
    table = routes(graph)

    assert list(table) == switches(graph)
    for host in hosts(graph):
        following = choices(graph, table, host)
        assert nx.is_directed_acyclic_graph(following)
        assert [node for node in following if not following[node]] == [host]
        assert set(following) == {host, *switches(graph)}


@pytest.mark.parametrize("spec", SPECS)
def test_routes_are_as_short_as_can_be(spec: str) -> None:
    graph = build(spec)

    for dst in hosts(graph)[::3]:
        shortest = nx.single_source_shortest_path_length(graph, dst)
        for src in hosts(graph):
            assert hop_count(graph, src, dst) == shortest[src]


@pytest.mark.parametrize("spec", SPECS)
def test_a_column_of_the_table_is_the_route_to_one_host(spec: str) -> None:
    graph = build(spec)
    table = routes(graph)

    for host in hosts(graph):
        column = {switch: table[switch][host] for switch in table}
        assert routes_to(graph, host) == column
        assert all(list(ports) == sorted(set(ports)) for ports in column.values())


@pytest.mark.parametrize(
    "spec", ["fattree,k=6", "leafspine", "bcube,n=3,k=2", "hammingmesh,a=3,b=2,x=3,y=2"]
)
def test_every_shortest_path_may_be_taken(spec: str) -> None:
    graph = build(spec)
    table = routes(graph)
    src = hosts(graph)[0]

    for dst in hosts(graph)[1::5]:
        allowed = nx.all_simple_paths(choices(graph, table, dst), attachment(graph, src), dst)
        shortest = [nodes[1:] for nodes in nx.all_shortest_paths(graph, src, dst)]
        assert sorted(allowed) == sorted(shortest)


def test_a_fat_tree_routes_up_then_down() -> None:
    graph = build("fattree,k=8")
    rng = random.Random(1)

    for _ in range(50):
        src, dst = rng.sample(hosts(graph), 2)
        nodes = path(graph, src, dst, lambda _, ports: rng.choice(ports))
        tiers = [graph.nodes[switch]["tier"] for switch in nodes[1:-1]]
        top = tiers.index(max(tiers))
        assert tiers == [*range(top), *range(top, -1, -1)]


def test_bcube_may_correct_any_digit_next() -> None:
    graph = build("bcube,n=4,k=1")
    table = routes(graph)

    assert table["s0"]["h15"] == (2, 3)  # both digits differ
    assert table["s0"]["h3"] == (2,)  # digit 0 only
    assert table["s0"]["h12"] == (3,)
    assert table["s0"]["h0"] == (1,)


@given(ANY_TORUS)
def test_a_torus_finishes_one_dimension_before_the_next(spec: str) -> None:
    graph = build(spec)
    shape = graph.graph["shape"]
    for src, dst in product(hosts(graph)[::7], hosts(graph)[::5]):
        places = [place(graph, switch) for switch in path(graph, src, dst)[1:-1] or [f"s{src[1:]}"]]
        axes = [changed(a, b) for a, b in pairwise(places)]
        assert axes == sorted(axes)
        for axis, size in enumerate(shape):
            ahead = (places[-1][axis] - places[0][axis]) % size
            assert axes.count(axis) == min(ahead, size - ahead)


def place(graph: nx.Graph[str], switch: str) -> list[int]:
    return [int(coordinate) for coordinate in graph.nodes[switch]["label"].split(",")]


def changed(a: list[int], b: list[int]) -> int:
    (axis,) = [axis for axis in range(len(a)) if a[axis] != b[axis]]
    return axis


def test_half_way_round_a_torus_goes_upward() -> None:
    graph = build("torus2d,x=4,y=4")

    assert path(graph, "h0", "h2") == ["h0", "s0", "s1", "s2", "h2"]
    assert path(graph, "h3", "h1") == ["h3", "s3", "s0", "s1", "h1"]
    assert path(graph, "h0", "h7") == ["h0", "s0", "s3", "s7", "h7"]


def test_hosts_never_forward() -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=1")
    graph.add_edge("h0", "s1", link=Link(1, 1), ports={"h0": 2, "s1": 9})

    assert path(graph, "h1", "h1") == ["h1"]
    assert {neighbor_at(graph, "s0", p) for p in routes_to(graph, "h1")["s0"]} == {"s2"}


def test_a_choice_decides_among_equal_ports() -> None:
    graph = build("fattree,k=4")

    lowest = path(graph, "h0", "h15")
    highest = path(graph, "h0", "h15", lambda _, ports: ports[-1])

    assert lowest == ["h0", "s0", "s8", "s16", "s14", "s7", "h15"]
    assert highest == ["h0", "s0", "s9", "s19", "s15", "s7", "h15"]


@pytest.mark.parametrize("spec", SPECS)
def test_a_table_saves_work_and_changes_nothing(spec: str) -> None:
    graph = build(spec)
    table = routes(graph)

    for src, dst in product(hosts(graph)[::4], hosts(graph)[::3]):
        assert path(graph, src, dst, table=table) == path(graph, src, dst)
        assert base_rtt_ps(graph, src, dst, 99, table=table) == base_rtt_ps(graph, src, dst, 99)


def test_the_table_that_is_given_is_the_one_that_is_used() -> None:
    graph = build("leafspine,leaves=2,spines=2,hosts=1")
    table = {switch: dict(row) for switch, row in routes(graph).items()}
    table["s0"]["h1"] = (3,)

    assert path(graph, "h0", "h1", table=table) == ["h0", "s0", "s3", "s1", "h1"]


def test_times_are_those_of_the_links() -> None:
    graph = build("leafspine,host_rate=50G", rate_bps=100e9, delay_ps=1000)

    # 125 bytes take 20 ns at 50 Gbit/s and 10 ns at 100 Gbit/s
    assert one_way_ps(graph, path(graph, "h0", "h15"), 125) == 4 * 1000 + 2 * 20_000 + 2 * 10_000
    assert base_rtt_ps(graph, "h0", "h15", 125) == 2 * 64_000
    assert base_rtt_ps(graph, "h0", "h15", 125, 0) == 64_000 + 4000
    assert base_rtt_ps(graph, "h0", "h0", 125) == 0


def test_a_cut_network_is_refused() -> None:
    graph = build("leafspine,spines=1")
    graph.remove_edge("s1", "s4")
    with pytest.raises(TopologyError, match=r"leafspine,.*: no path from s1 to s0"):
        routes(graph)

    torus = build("torus2d,x=4,y=1")
    torus.remove_edge("s1", "s2")
    with pytest.raises(TopologyError, match="torus2d,x=4,y=1: no link from s1 to s2"):
        routes_to(torus, "h2")
    with pytest.raises(TopologyError, match="torus2d,x=4,y=1: no link from s2 to s1"):
        routes(torus)


def test_a_torus_can_route_by_every_shortest_path_instead() -> None:
    graph = build("torus2d,x=4,y=4")
    graph.graph["routing"] = "shortest"

    assert {neighbors(graph, "s0")[p] for p in routes(graph)["s0"]["h10"]} == {
        *("s1", "s3", "s4", "s12")
    }


def test_an_unknown_routing_names_the_valid_ones() -> None:
    graph = build("fattree")
    graph.graph["routing"] = "shortst"

    with pytest.raises(
        ConfigError,
        match=r"unknown routing, got 'shortst'; did you mean 'shortest'. valid: shortest, dim",
    ):
        routes(graph)


def test_only_hosts_are_destinations() -> None:
    graph = build("fattree")

    with pytest.raises(TopologyError, match="no such host, got 's0'"):
        path(graph, "h0", "s0")
    with pytest.raises(TopologyError, match="no such host, got 'h16'"):
        path(graph, "h16", "h0")
    with pytest.raises(TopologyError, match="no such host, got 'h16'"):
        path(graph, "h0", "h16", table=routes(graph))


def test_hosts_of_a_switch_have_ports_of_their_own() -> None:
    graph = build("fattree")

    for host in hosts(graph):
        switch = attachment(graph, host)
        assert routes(graph)[switch][host] == (port(graph, switch, host),)


@given(ANY_SPEC)
def test_dealt_ports_are_those_of_the_turn_of_each_rank(spec: str) -> None:
    graph = build(spec)
    table = routes(graph)
    ranks = dict(zip(hosts(graph), range(len(hosts(graph))), strict=True))

    expected = {
        switch: {
            host: (ports[ranks[host] // len(ports) ** graph.nodes[switch]["tier"] % len(ports)],)
            for host, ports in row.items()
        }
        for switch, row in table.items()
    }
    assert {name: dict(row) for name, row in dealt(graph, table).items()} == expected


def test_dealt_routes_carry_an_exchange_of_all_hosts_without_contention() -> None:
    """Every pair (r, r xor bit) at once: no directed link is on two paths."""
    graph = build("fattree,k=4")
    table = dealt(graph, routes(graph))
    for bit in (1, 2, 4, 8):
        links = Counter[tuple[str, str]]()
        for rank in range(16):
            nodes = path(graph, f"h{rank}", f"h{rank ^ bit}", table=table)
            links.update(pairwise(nodes))
        assert set(links.values()) == {1}


@pytest.mark.parametrize("spec", ["leafspine", "bcube,n=3,k=1", "hammingmesh", "torus3d"])
def test_dealt_routes_are_among_the_routes(spec: str) -> None:
    graph = build(spec)
    table = routes(graph)
    for switch, row in dealt(graph, table).items():
        for host, ports in row.items():
            assert len(ports) == 1
            assert set(ports) <= set(table[switch][host])


def test_a_topology_has_one_table_and_its_own_until_it_is_gone() -> None:
    graph = build("leafspine,leaves=2,spines=2,hosts=2")
    broken = graph.copy()
    broken.remove_edge("s0", "s2")
    table, dealt_table = routes(graph), dealt(graph, routes(graph))
    assert routes(graph) is table
    assert dealt(graph, table) is dealt_table
    assert routes(broken)["s0"]["h2"] != table["s0"]["h2"]
    with pytest.raises(nx.NetworkXError, match="Frozen"):
        graph.remove_edge("s0", "s2")
    gone = weakref.ref(graph)
    del graph
    assert gone() is None


def test_other_ways_over_the_same_links_are_dealt_for_themselves() -> None:
    graph = build("leafspine,leaves=2,spines=2,hosts=2")
    broken = graph.copy()
    broken.remove_edge("s0", "s2")
    whole, left = dealt(graph, routes(graph)), dealt(graph, routes(broken))
    assert {whole["s0"][host] for host in ("h2", "h3")} == {(3,), (4,)}
    assert {left["s0"][host] for host in ("h2", "h3")} == {(4,)}
