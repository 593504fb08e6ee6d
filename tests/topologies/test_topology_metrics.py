from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_specs import ANY_SPEC

from ringleaf.errors import TopologyError
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.graph import Link, hosts
from ringleaf.topologies.metrics import diameter, link_count, max_flow_bps
from ringleaf.topologies.registry import build


def bisection_links(spec: str) -> float:
    return bisection(build(spec, rate_bps=1000)).bps / 1000


@pytest.mark.parametrize("k", [2, 4, 6, 8, 12])
def test_a_fat_tree_has_full_bisection(k: int) -> None:
    assert bisection_links(f"fattree,k={k}") == k**3 / 8


@given(st.sampled_from([2, 4, 6, 8]), st.integers(1, 6), st.sampled_from([2, 4, 6, 8]))
def test_leaf_spine_bisection_is_what_leaves_send_up(leaves: int, spines: int, own: int) -> None:
    spec = f"leafspine,leaves={leaves},spines={spines},hosts={own}"

    assert bisection_links(spec) == leaves / 2 * min(own, spines)


@pytest.mark.parametrize(("x", "y"), [(4, 4), (8, 4), (4, 6), (8, 1), (16, 8), (2, 4)])
def test_torus_bisection_is_two_links_per_ring_cut(x: int, y: int) -> None:
    longest, others = max(x, y), min(x, y)

    assert bisection_links(f"torus2d,x={x},y={y}") == (1 if longest == 2 else 2) * others


def test_deep_torus_bisection() -> None:
    assert bisection_links("torus3d,x=4,y=4,z=8") == 2 * 4 * 4


@pytest.mark.parametrize(("n", "k"), [(2, 0), (4, 0), (2, 1), (4, 1), (2, 2), (2, 3)])
def test_bcube_bisection_is_half_of_one_levels_links(n: int, k: int) -> None:
    assert bisection_links(f"bcube,n={n},k={k}") == n**k * n / 2


def test_halves_of_a_large_bcube_may_be_worse_than_those_of_one_level() -> None:
    """Of 64 servers, some 32 have a max-flow of 28 links to the others, where a level has 32."""
    assert bisection_links("bcube,n=4,k=2") <= 28


@pytest.mark.parametrize(("board", "boards"), [(2, 4), (2, 8), (4, 4), (1, 4)])
def test_hamming_mesh_bisection_is_one_over_twice_the_board_of_injection(
    board: int, boards: int
) -> None:
    spec = f"hammingmesh,a={board},b={board},x={boards},y={boards}"
    injection = (board * boards) ** 2 / 2 * 4

    assert bisection_links(spec) == injection / (2 * board)


@pytest.mark.parametrize(
    "spec",
    [
        "fattree,k=2",
        "leafspine,leaves=4,spines=1,hosts=2",
        "leafspine,leaves=2,spines=3,hosts=4",
        "bcube,n=2,k=2",
        "bcube,n=8,k=0",
        "hammingmesh,a=2,b=1,x=2,y=2",
        "hammingmesh,a=1,b=1,x=4,y=2",
        "hammingmesh,a=4,b=2,x=1,y=1",
        "torus2d,x=4,y=2",
        "torus2d,x=8,y=1",
        "torus3d,x=2,y=2,z=2",
    ],
)
def test_no_other_way_to_halve_the_hosts_is_worse(spec: str) -> None:
    graph = build(spec, rate_bps=1000)
    first, *rest = hosts(graph)
    halves = [(first, *others) for others in combinations(rest, len(rest) // 2)]

    assert bisection(graph).bps == min(max_flow_bps(graph, half) for half in halves)


def test_bisection_follows_the_rates_of_links() -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=4", rate_bps=1000)
    graph.edges["s0", "s2"]["link"] = Link(300, 0)

    assert bisection(graph).bps == 300


@pytest.mark.parametrize(
    ("spec", "own", "between"),
    [
        ("fattree,k=4", 16, 32),
        ("leafspine,leaves=4,spines=2,hosts=3", 12, 8),
        ("torus2d,x=4,y=4", 16, 32),
        ("torus2d,x=2,y=2", 4, 4),
        ("bcube,n=4,k=1", 16, 32),
        ("hammingmesh,a=2,b=2,x=2,y=2", 16, 16 + 32),
    ],
)
def test_links_are_counted(spec: str, own: int, between: int) -> None:
    assert link_count(build(spec)) == {"host": own, "switch": between}


@given(ANY_SPEC)
def test_one_host_has_no_way_and_no_half(spec: str) -> None:
    graph = build(spec)

    assert (bisection(graph).bps == 0) == (len(hosts(graph)) == 1)
    assert diameter(graph) >= 0


def test_a_cut_network_has_no_diameter() -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=1")
    graph.remove_edge("s1", "s2")

    with pytest.raises(TopologyError, match="no path from s0 to s1"):
        diameter(graph)
