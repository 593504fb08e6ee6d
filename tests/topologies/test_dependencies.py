"""Cycles of links that wait for each other: none in trees and in dimension order, some on rings."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ringleaf.topologies.dependencies import can_deadlock, dependencies
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.registry import build


@pytest.mark.parametrize("ecmp", [False, True])
@pytest.mark.parametrize(
    "topology",
    [
        "leafspine,leaves=3,spines=2,hosts=2",
        "fattree,k=4",
        "torus2d,x=3,y=3",  # no way goes more than one hop along a ring
        "torus3d,x=2,y=2,z=2",
    ],
)
def test_up_and_down_and_dimension_order_have_no_cycle(topology: str, ecmp: bool) -> None:
    """Dally and Seitz, 1987: links can be numbered so that each way's numbers grow."""
    assert not can_deadlock(build(topology), ecmp=ecmp)


@pytest.mark.parametrize("length", [4, 5, 7])
def test_rings_have_a_cycle_if_ways_take_two_of_their_links(length: int) -> None:
    """Of four switches, both ways to the opposite one are as long, and all go upward."""
    graph = build(f"torus2d,x={length},y=1")
    assert can_deadlock(graph)
    upward = [(f"s{i}", f"s{(i + 1) % length}") for i in range(length)]
    found = dependencies(graph)
    assert all(found.has_edge(a, b) for a, b in zip(upward, [*upward[1:], upward[0]], strict=True))


def test_detours_may_close_a_cycle_and_their_pairs_have_no_other_way() -> None:
    """On a ring of three switches, whose shortest ways take one of its links each."""
    graph = build("torus2d,x=3,y=1")
    assert not can_deadlock(graph)
    assert not can_deadlock(with_detours(graph, [("h0", "s2", "h1")]))
    closed = [("h0", "s1", "h2"), ("h1", "s2", "h0"), ("h2", "s0", "h1")]
    assert can_deadlock(with_detours(graph, closed))
    assert not can_deadlock(with_detours(graph, closed[:2]))


def test_dependencies_by_hand() -> None:
    """Two leaves with a host each below one spine: each host's packets take the three links on."""
    graph = build("leafspine,leaves=2,spines=1,hosts=1")
    leaves = [node for node in graph if graph.has_edge(node, "h0") or graph.has_edge(node, "h1")]
    (spine,) = set(graph) - {"h0", "h1", *leaves}
    one, other = leaves
    way = ["h0", one, spine, other, "h1"]
    there = list(pairwise(way))
    back = [(b, a) for a, b in reversed(there)]
    expected = {*pairwise(there), *pairwise(back)}
    assert set(dependencies(graph).edges) == expected
