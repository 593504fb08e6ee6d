"""What each family promises: counts, degrees, diameters, paths."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import TopologyError
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.families.hammingmesh import hamming_mesh
from ringleaf.topologies.graph import Link, hosts, link, switch_graph, switches
from ringleaf.topologies.metrics import diameter
from ringleaf.topologies.registry import build, count

LINK = Link(10**11, 10**6)
small = st.integers(1, 5)


def per_tier(graph: nx.Graph[str]) -> dict[int, int]:
    return dict(Counter(graph.nodes[switch]["tier"] for switch in switches(graph)))


def degrees(graph: nx.Graph[str], tier: int) -> set[int]:
    return {graph.degree[s] for s in switches(graph) if graph.nodes[s]["tier"] == tier}


def between_switches(graph: nx.Graph[str]) -> nx.Graph[str]:
    return graph.subgraph(switches(graph))


@pytest.mark.parametrize("k", [2, 4, 6, 8, 16])
def test_fat_tree(k: int) -> None:
    graph = build(f"fattree,k={k}")

    assert len(hosts(graph)) == k**3 // 4
    assert per_tier(graph) == {0: k * k // 2, 1: k * k // 2, 2: k * k // 4}
    assert {graph.degree[switch] for switch in switches(graph)} == {k}
    assert diameter(graph) == 4


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_fat_tree_has_a_path_per_core_switch_between_pods(k: int) -> None:
    graph = build(f"fattree,k={k}")
    first, last = hosts(graph)[0], hosts(graph)[-1]

    paths = list(nx.all_shortest_paths(graph, first, last))

    assert len(paths) == (k // 2) ** 2
    assert len({path[3] for path in paths}) == (k // 2) ** 2


def test_a_core_switch_joins_the_aggregation_switches_of_its_number() -> None:
    graph = build("fattree,k=6")

    for core in (s for s in switches(graph) if graph.nodes[s]["tier"] == 2):
        group = graph.nodes[core]["label"].removeprefix("core ").split(".")[0]
        below = [graph.nodes[agg]["label"] for agg in graph[core]]
        assert below == [f"agg {pod}.{group}" for pod in range(6)]


@pytest.mark.parametrize(
    ("k", "edge", "core"), [(4, 1, 1), (4, 2, 1), (4, 2, 2), (8, 1, 2), (8, 4, 2), (12, 3, 2)]
)
def test_fat_tree_with_fewer_links_up(k: int, edge: int, core: int) -> None:
    """Of k/2 ports down, k/2 / edge lead up from edge switches, and k/2 / core from the next."""
    sizes = f"fattree,k={k},edge={edge},core={core}"
    graph, half = build(sizes, rate_bps=10**9), k // 2
    up, top = half // edge, half // core

    assert len(hosts(graph)) == k**3 // 4
    assert per_tier(graph) == {0: k * half, 1: k * up, 2: up * top}
    assert [degrees(graph, tier) for tier in range(3)] == [{half + up}, {half + top}, {k}]
    assert diameter(graph) == 4
    if k < 12:
        found = bisection(graph)
        assert found.is_exact
        assert found.bps == k**3 // 8 * 10**9 // (edge * core)


def test_fat_trees_without_oversubscription_keep_their_name() -> None:
    assert build("fattree,k=4,edge=1").name == build("fattree,k=4").name == "fattree,k=4"
    assert build("fattree,k=4,core=2").name == "fattree,k=4,core=2"
    assert count("fattree,edge=4", hosts=16) == count("fattree,k=8,edge=4")
    assert count("fattree,edge=2,core=3", hosts=433) == count("fattree,k=24,edge=2,core=3")


@given(small, small, small)
def test_leaf_spine(leaves: int, spines: int, per_leaf: int) -> None:
    graph = build(f"leafspine,leaves={leaves},spines={spines},hosts={per_leaf}")

    assert len(hosts(graph)) == leaves * per_leaf
    assert per_tier(graph) == {0: leaves, 1: spines}
    assert degrees(graph, 0) == {per_leaf + spines}
    assert degrees(graph, 1) == {leaves}
    assert diameter(graph) == (2 if leaves > 1 else 0)


@pytest.mark.parametrize(("n", "k"), [(2, 0), (5, 0), (4, 1), (3, 2), (2, 3), (8, 1)])
def test_bcube(n: int, k: int) -> None:
    graph = build(f"bcube,n={n},k={k}")

    assert len(hosts(graph)) == n ** (k + 1)
    assert per_tier(graph) == {0: n ** (k + 1)} | {level + 1: n**k for level in range(k + 1)}
    assert degrees(graph, 0) == {k + 2}
    for level in range(k + 1):
        assert degrees(graph, level + 1) == {n}
    assert diameter(graph) == 2 * (k + 1)


@pytest.mark.parametrize(("n", "k"), [(4, 1), (3, 2), (2, 3)])
def test_bcube_joins_servers_by_a_disjoint_path_per_level(n: int, k: int) -> None:
    fabric_only = between_switches(build(f"bcube,n={n},k={k}"))

    for server in range(1, n ** (k + 1)):
        assert nx.node_connectivity(fabric_only, "s0", f"s{server}") == k + 1


def test_bcube_servers_of_a_switch_differ_in_the_digit_of_its_level() -> None:
    graph = build("bcube,n=3,k=2")

    for switch in switches(graph):
        level = graph.nodes[switch]["tier"] - 1
        if level >= 0:
            addresses = [graph.nodes[server]["label"] for server in graph[switch]]
            for a, b in pairwise(addresses):
                assert [3 - 1 - i for i in range(3) if a[i] != b[i]] == [level]


@given(small, small, st.integers(1, 4), st.integers(1, 4))
def test_hamming_mesh(a: int, b: int, x: int, y: int) -> None:
    graph = build(f"hammingmesh,a={a},b={b},x={x},y={y}")
    rows, columns = (b * y if x > 1 else 0), (a * x if y > 1 else 0)

    assert len(hosts(graph)) == a * b * x * y
    assert per_tier(graph).get(1, 0) == rows + columns
    by_row = 2 + 2 * ((a - 1) // 2) if x > 1 else a - 1
    by_column = 2 + 2 * ((b - 1) // 2) if y > 1 else b - 1
    assert diameter(graph) == by_row + by_column


def test_hamming_mesh_accelerators_have_four_links_and_switches_two_per_board() -> None:
    graph = build("hammingmesh,a=3,b=2,x=4,y=5")

    assert degrees(graph, 0) == {1 + 4}
    assert degrees(graph, 1) == {2 * 4, 2 * 5}


def test_hamming_mesh_numbers_accelerators_board_by_board() -> None:
    graph = build("hammingmesh,a=2,b=2,x=2,y=2")

    on_boards = [sorted(graph.nodes[f"s{i}"]["label"] for i in range(n, n + 4)) for n in (0, 4, 8)]
    assert on_boards == [
        ["0,0", "0,1", "1,0", "1,1"],
        ["2,0", "2,1", "3,0", "3,1"],
        ["0,2", "0,3", "1,2", "1,3"],
    ]


def test_a_board_one_wide_has_both_ends_in_one_link() -> None:
    graph = build("hammingmesh,a=1,b=2,x=2,y=1", rate_bps=10)

    row = switches(graph)[-1]
    assert {link(graph, row, peer).rate_bps for peer in switch_graph(graph)[row]} == {20}


@pytest.mark.parametrize(("boards", "leaves"), [(3, 3), (4, 4)])
def test_long_rows_take_a_tree_with_full_bandwidth(boards: int, leaves: int) -> None:
    graph = hamming_mesh(2, 1, boards, 1, link=LINK, radix=4)

    assert per_tier(graph) == {0: 2 * boards, 1: leaves, 2: 2}
    assert max(graph.degree[s] for s in switches(graph) if graph.nodes[s]["tier"] > 0) <= 4
    assert degrees(graph, 1) == {2 + 2}


def test_rows_beyond_two_levels_are_refused() -> None:
    with pytest.raises(TopologyError, match="takes up to 4 boards with 4-port switches, got 5"):
        hamming_mesh(1, 1, 5, 1, link=LINK, radix=4)
    with pytest.raises(TopologyError, match="radix must be >= 4, got 2"):
        hamming_mesh(1, 1, 5, 1, link=LINK, radix=2)


@given(st.lists(st.integers(1, 6), min_size=3, max_size=3))
def test_torus(shape: list[int]) -> None:
    x, y, z = shape
    graph = build(f"torus3d,x={x},y={y},z={z}")
    neighbors = sum(min(size - 1, 2) for size in shape)

    assert len(hosts(graph)) == len(switches(graph)) == x * y * z
    assert degrees(graph, 0) == {1 + neighbors}
    assert diameter(graph) == sum(size // 2 for size in shape)
    rings = sum(x * y * z // size * (size if size > 2 else size - 1) for size in shape)
    assert between_switches(graph).number_of_edges() == rings


def test_a_flat_torus_has_two_dimensions() -> None:
    flat, deep = build("torus2d,x=4,y=3"), build("torus3d,x=4,y=3,z=1")

    assert set(flat.edges) == set(deep.edges)
    assert flat.graph["hierarchy"] == deep.graph["hierarchy"] == (4, 3)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("fattree,k=5", "fattree,k=5: k must be even, got 5; try k=6"),
        ("fattree,k=0", "fattree,k=0: k must be >= 2, got 0"),
        ("fattree,k=8,edge=3", "edge must divide the ports of a switch that lead down, 4, got 3"),
        ("fattree,k=8,core=3", "core must divide the ports of a switch that lead down, 4, got 3"),
        ("fattree,core=0", "core must be >= 1, got 0"),
        ("leafspine,leaves=0", "leaves must be >= 1, got 0"),
        ("leafspine,leaves=2,spines=0", "spines must be >= 1, got 0"),
        ("leafspine,hosts=0", "hosts must be >= 1, got 0"),
        ("bcube,n=1", "bcube,n=1,k=1: n must be >= 2, got 1"),
        ("hammingmesh,a=0", "a must be >= 1, got 0"),
        ("torus2d,x=0", "x must be >= 1, got 0"),
        ("torus3d,z=0", "torus3d,x=[0-9]+,y=[0-9]+,z=0: z must be >= 1, got 0"),
        ("hammingmesh,x=1025", "up to 1024 boards with 64-port switches, got 1025"),
    ],
)
def test_impossible_sizes_are_refused_and_not_counted(spec: str, message: str) -> None:
    for make in (build, count):
        with pytest.raises(TopologyError, match=message):
            make(spec)
