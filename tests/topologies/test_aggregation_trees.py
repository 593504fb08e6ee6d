from __future__ import annotations

import random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_specs import ANY_SPEC

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import attachment, distances, hosts, switch_graph, switches
from ringleaf.topologies.registry import build
from ringleaf.topologies.trees import AggregationTree, aggregation_tree


def test_hosts_of_one_switch_need_no_other() -> None:
    graph = build("fattree,k=4")

    assert aggregation_tree(graph, ["h3", "h2"]) == AggregationTree(
        root="s1", parent={"s1": None}, children={"s1": ("h2", "h3")}, depth=1
    )


def test_a_fat_tree_joins_its_hosts_below_a_core_switch() -> None:
    graph = build("fattree,k=4")

    tree = aggregation_tree(graph, hosts(graph))

    assert (tree.root, tree.depth) == ("s16", 3)
    assert tree.children["s16"] == ("s8", "s10", "s12", "s14")
    assert tree.children["s8"] == ("s0", "s1")
    assert tree.children["s7"] == ("h14", "h15")
    assert len(tree.parent) == 1 + 4 + 8


def test_jobs_of_different_index_get_different_roots() -> None:
    graph = build("fattree,k=4")

    roots = [aggregation_tree(graph, hosts(graph), index=job).root for job in range(5)]

    assert roots == ["s16", "s18", "s17", "s19", "s16"]


@pytest.mark.parametrize("spec", ["fattree,k=4", "fattree,k=8", "leafspine,leaves=4,spines=2"])
def test_trees_of_the_first_jobs_have_no_link_between_switches_in_common(spec: str) -> None:
    graph = build(spec)

    trees = [aggregation_tree(graph, hosts(graph), index=job) for job in range(2)]

    first, second = (set(tree.parent.items()) for tree in trees)
    assert {each for each in first if each[1]}.isdisjoint(second)


def test_a_root_can_be_chosen() -> None:
    graph = build("leafspine,leaves=2,spines=2,hosts=2")

    tree = aggregation_tree(graph, ["h0", "h3"], root="s0", index=7)

    assert tree.parent == {"s0": None, "s2": "s0", "s1": "s2"}
    assert tree.children == {"s0": ("h0", "s2"), "s2": ("s1",), "s1": ("h3",)}
    assert tree.depth == 3


@given(ANY_SPEC, st.integers(0, 9), st.randoms(use_true_random=False))
def test_a_tree_is_joined_pruned_and_as_flat_as_can_be(
    spec: str, index: int, rng: random.Random
) -> None:
    graph = build(spec)
    members = rng.sample(hosts(graph), rng.randint(1, len(hosts(graph))))

    tree = aggregation_tree(graph, members, index=index)

    check_shape(graph, tree, members)
    near = [
        distances(switch_graph(graph), leaf) for leaf in {attachment(graph, h) for h in members}
    ]
    flattest = min(max(distance[s] for distance in near) for s in switches(graph))
    assert tree.depth == 1 + flattest


@given(ANY_SPEC, st.randoms(use_true_random=False))
def test_a_tree_below_any_root_is_joined_and_pruned(spec: str, rng: random.Random) -> None:
    graph = build(spec)
    root = rng.choice(switches(graph))

    tree = aggregation_tree(graph, hosts(graph), root=root)

    assert tree.root == root
    check_shape(graph, tree, hosts(graph))


def check_shape(graph: nx.Graph[str], tree: AggregationTree, members: list[str]) -> None:
    """Every host once, below its own switch; every edge a link; no branch without hosts."""
    assert next(iter(tree.parent)) == tree.root
    assert set(tree.parent) == set(tree.children)
    found: list[str] = []
    levels = {tree.root: 1}
    for switch in tree.parent:  # from the root down
        assert tree.children[switch]
        for child in tree.children[switch]:
            if child in tree.parent:
                assert child in switch_graph(graph)[switch]
                assert tree.parent[child] == switch
                levels[child] = levels[switch] + 1
            else:
                assert attachment(graph, child) == switch
                found.append(child)
    assert sorted(found) == sorted(members)
    assert set(levels) == set(tree.parent)
    assert max(levels.values()) == tree.depth


def test_a_tree_takes_few_switches() -> None:
    graph = build("bcube,n=4,k=1")

    tree = aggregation_tree(graph, hosts(graph), root="s20")  # of level 1

    assert len(tree.parent) == 1 + 4 + 4 + 12  # itself, its servers, level 0, the other servers


def test_a_tree_prefers_switches_that_have_hosts_of_the_job() -> None:
    graph = build("torus2d,x=4,y=4")

    tree = aggregation_tree(graph, ["h4", "h5"], root="s0")  # s5 could also go by s1

    assert tree.parent == {"s0": None, "s4": "s0", "s5": "s4"}


def test_a_tree_prefers_switches_that_join_most() -> None:
    graph = build("torus2d,x=4,y=4")

    tree = aggregation_tree(graph, ["h5", "h8"], root="s0")  # s5 also by s1, s8 also by s12

    assert tree.parent == {"s0": None, "s4": "s0", "s5": "s4", "s8": "s4"}


def test_of_equal_ways_the_lowest_is_taken() -> None:
    graph = build("torus2d,x=4,y=4")

    tree = aggregation_tree(graph, ["h10"], root="s0")

    assert tree.parent == {"s0": None, "s1": "s0", "s2": "s1", "s6": "s2", "s10": "s6"}


def test_a_flat_tree_goes_before_a_short_one() -> None:
    graph = build("torus2d,x=20,y=1")

    tree = aggregation_tree(graph, ["h0", "h1", "h2", "h6"])  # s1 and s2 are nearer on average

    assert (tree.root, tree.depth) == ("s3", 4)


def test_the_order_of_hosts_does_not_matter() -> None:
    graph = build("torus2d")
    members = hosts(graph)[3:9]

    assert aggregation_tree(graph, members) == aggregation_tree(graph, reversed(members))


@pytest.mark.parametrize(
    ("members", "root", "message"),
    [
        ([], None, "aggregation_tree: needs at least one host, got none"),
        (["h0", "h1", "h0"], None, "a host is there twice, got \\['h0', 'h1', 'h0'\\]"),
        (["h0", "h99"], None, "fattree,k=4: no such host, got 'h99'"),
        (["s0"], None, "fattree,k=4: no such host, got 's0'"),
        (["h0"], "s99", "fattree,k=4: root must be a switch, got 's99'"),
        (["h0"], "h0", "fattree,k=4: root must be a switch, got 'h0'"),
    ],
)
def test_impossible_jobs_are_refused(members: list[str], root: str | None, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        aggregation_tree(build("fattree,k=4"), members, root=root)


def test_hosts_that_nothing_joins_are_refused() -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=1")
    graph.remove_edge("s1", "s2")

    with pytest.raises(TopologyError, match="no switch reaches all of s0, s1"):
        aggregation_tree(graph, hosts(graph))
    with pytest.raises(TopologyError, match="root s0 can't reach s1"):
        aggregation_tree(graph, hosts(graph), root="s0")
