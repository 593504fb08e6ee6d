"""Dragonfly: formulas of the paper, minimal ways, ways by a drawn group, and cycles of waiting."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise, permutations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shape_of import between_switches, shape_of

from ringleaf.errors import TopologyError
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.dependencies import can_deadlock, dependencies
from ringleaf.topologies.detours import detours
from ringleaf.topologies.graph import hosts, index
from ringleaf.topologies.registry import build, count
from ringleaf.topologies.routing import links_towards, path, routes
from ringleaf.topologies.valiant import with_ugal, with_valiant


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3))
def test_dragonfly(a: int, p: int, h: int) -> None:
    """g = a h + 1 groups, a p g hosts, g a (a - 1) / 2 local and g (g - 1) / 2 global links."""
    graph = build(f"dragonfly,a={a},p={p},h={h}")
    found = shape_of(graph)
    groups = a * h + 1

    assert (found.hosts, found.switches) == (a * p * groups, a * groups)
    assert found.links == groups * a * (a - 1) // 2 + groups * (groups - 1) // 2
    assert found.radix == (p + a - 1 + h,)
    assert found.diameter <= (3 if a > 1 else 1)
    between = Counter(
        tuple(sorted((index(x) // a, index(y) // a))) for x, y in between_switches(graph).edges
    )
    pairs = list(combinations(range(groups), 2))
    assert [between[pair] for pair in pairs] == [1] * len(pairs)


@pytest.mark.parametrize(
    ("sizes", "hosts_", "routers", "radix", "local", "across"),
    [
        ((2, 1, 1), 6, 6, 3, 3, 3),
        ((4, 2, 2), 72, 36, 7, 54, 36),
        ((6, 3, 3), 342, 114, 11, 285, 171),
        ((8, 4, 4), 1056, 264, 15, 924, 528),
    ],
)
def test_balanced_networks(
    sizes: tuple[int, int, int], hosts_: int, routers: int, radix: int, local: int, across: int
) -> None:
    """Those of a = 2 p = 2 h, as published tables have them."""
    a, p, h = sizes
    found = shape_of(build(f"dragonfly,a={a},p={p},h={h}"))
    assert (found.hosts, found.switches, found.links) == (hosts_, routers, local + across)
    assert (found.radix, found.diameter) == ((radix,), 3)


def test_links_by_hand() -> None:
    """Three groups of two routers, each with one link to another group, in their order."""
    edges = between_switches(build("dragonfly,a=2,p=1,h=1")).edges
    assert {"-".join(sorted(ends)) for ends in edges} == {
        *("s0-s1", "s2-s3", "s4-s5"),  # groups
        *("s0-s2", "s1-s4", "s3-s5"),  # 0 to 1, 0 to 2, 1 to 2
    }


@pytest.mark.parametrize(("a", "p", "h"), [(2, 1, 1), (4, 2, 2), (3, 1, 2), (1, 2, 3)])
def test_minimal_ways_have_one_link_between_groups_at_most(a: int, p: int, h: int) -> None:
    graph = build(f"dragonfly,a={a},p={p},h={h}")
    table = routes(graph)
    for src, dst in permutations(hosts(graph), 2):
        groups = [index(node) // a for node in path(graph, src, dst, table=table)[1:-1]]
        moves = sum(x != y for x, y in pairwise(groups))
        assert moves == (groups[0] != groups[-1])
        assert len(groups) <= 2 + 2 * moves
        assert len(groups) == len({*path(graph, src, dst, table=table)}) - 2


def test_half_of_the_groups_send_to_the_other_by_their_links() -> None:
    """Of 2 m = 10 groups, m m = 25 links join halves; 9 hosts of each group could send more."""
    graph = build("dragonfly,a=3,p=3,h=3,rate=1G,host_rate=10G")
    found = bisection(graph)
    assert not found.is_exact
    assert found.bps <= 25 * 10**9


def channels(graph: nx.Graph[str], a: int) -> nx.DiGraph[tuple[str, str, int]]:
    """Return which links wait for which, if packets change class by each link between groups."""
    waiting: nx.DiGraph[tuple[str, str, int]] = nx.DiGraph()
    for src, dst in permutations(hosts(graph), 2):
        level, held = 0, []
        for x, y in pairwise(path(graph, src, dst)[1:-1]):
            held.append((x, y, level))
            level += index(x) // a != index(y) // a
        waiting.add_edges_from(pairwise(held))
    return waiting


def test_one_class_of_packets_can_deadlock_and_one_more_per_group_cannot() -> None:
    """The paper has two virtual channels for minimal ways, and three for those by a group."""
    graph = build("dragonfly,a=2,p=1,h=1")
    larger = build("dragonfly,a=3,p=1,h=1")
    assert can_deadlock(graph)
    for each, a in ((graph, 2), (larger, 3)):
        minimal = channels(each, a)
        assert nx.is_directed_acyclic_graph(minimal)
        assert {level for _, _, level in minimal} == {0, 1}
        drawn = channels(with_valiant(each, 1), a)
        assert nx.is_directed_acyclic_graph(drawn)
        assert {level for _, _, level in drawn} == {0, 1, 2}
        both = nx.compose(minimal, drawn)
        assert nx.is_directed_acyclic_graph(both)


def test_packets_that_may_take_two_ways_depend_on_the_links_of_both() -> None:
    """Four groups of one router: minimal ways have one link between routers, detours have two."""
    graph = build("dragonfly,a=1,p=1,h=3")
    usual, drawn, both = (
        set(dependencies(each).edges)
        for each in (graph, with_valiant(graph, 1), with_ugal(graph, 1))
    )
    assert both == usual | drawn
    assert not usual <= drawn
    three = with_ugal(build("dragonfly,a=1,p=1,h=2"), 1)
    links = links_towards(three, ["h0"], "h1", table=routes(three))
    assert links == {("h0", "s0"), ("s0", "s1"), ("s0", "s2"), ("s2", "s1"), ("s1", "h1")}


def test_drawn_groups_are_others_and_all_are_drawn() -> None:
    graph = build("dragonfly,a=2,p=2,h=2")
    turned = detours(with_valiant(graph, 3))
    assert turned == detours(with_valiant(graph, 3)) != detours(with_valiant(graph, 4))
    seen = Counter[int]()
    for (src, dst), detour in turned.items():
        groups = list(dict.fromkeys(index(node) // 2 for node in detour.nodes[1:-1]))
        assert len(groups) == 3, (src, dst)
        seen[groups[1]] += 1
        assert all(graph.has_edge(*ends) for ends in pairwise(detour.nodes))
    apart = 20 * 16  # of 20 hosts, 16 are in another group
    assert len(turned) == apart
    assert min(seen.values()) > apart / 5 * 0.6
    assert max(seen.values()) < apart / 5 * 1.4


def test_ways_by_drawn_switches_meet_none_twice() -> None:
    graph = build("jellyfish,switches=10,degree=3,hosts=2")
    turned = detours(with_valiant(graph, 1))
    assert len(turned) > 0.9 * 20 * 18
    for detour in turned.values():
        assert len(set(detour.nodes)) == len(detour.nodes)


@pytest.mark.parametrize("name", ["a", "p", "h"])
def test_impossible_sizes_are_refused(name: str) -> None:
    for make in (build, count):
        with pytest.raises(TopologyError, match=f"{name} must be >= 1, got 0"):
            make(f"dragonfly,{name}=0")


@pytest.mark.parametrize(
    ("needed", "found"),
    [
        (6, "dragonfly,a=2,p=1,h=1"),
        (7, "dragonfly,a=3,p=1,h=1"),
        (16, "dragonfly,a=4,p=1,h=1"),
        (72, "dragonfly,a=4,p=2,h=2"),
        (1000, "dragonfly,a=8,p=4,h=4"),
    ],
)
def test_hosts_that_must_find_room_choose_balanced_sizes(needed: int, found: str) -> None:
    assert count("dragonfly", hosts=needed) == count(found)


def test_a_link_that_is_missing_is_named() -> None:
    graph = build("dragonfly,a=2,p=1,h=1")
    graph.remove_edge("s0", "s2")
    with pytest.raises(TopologyError, match="no link from s0 to s2"):
        routes(graph)
