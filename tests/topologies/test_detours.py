"""Detours: what one host sends another passes the switches that it shall; nothing else moves."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from topology_specs import SPECS

from ringleaf.errors import TopologyError
from ringleaf.topologies.detours import detours, turns, with_detours
from ringleaf.topologies.graph import attachment, hosts, neighbor_at, switches
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import longest_rtt_ps, path

LARGE = [spec for spec in SPECS if len(switches(build(spec))) > 2]


@given(st.data())
def test_a_detour_passes_its_switches_in_order_and_others_keep_their_routes(
    data: st.DataObject,
) -> None:
    graph = build(data.draw(st.sampled_from(LARGE)))
    src, dst = data.draw(st.permutations(hosts(graph)))[:2]
    assume(attachment(graph, src) != attachment(graph, dst))
    via = data.draw(st.sampled_from(switches(graph)))
    try:
        changed = with_detours(graph, [(src, via, dst)])
    except TopologyError as error:
        assert "must pass a node once" in str(error)  # noqa: PT017 (it may also be one)
        return

    nodes = path(changed, src, dst)
    assert (nodes[0], nodes[-1]) == (src, dst)
    assert via in nodes
    assert all(graph.has_edge(a, b) for a, b in pairwise(nodes))
    assert path(changed, dst, src) == path(graph, dst, src)
    for here, there in pairwise(nodes[1:-1]):
        assert neighbor_at(changed, here, turns(changed, here)[src, dst]) == there
    assert turns(changed, nodes[-2]) == {}


def test_a_longer_way_lengthens_the_longest_round_trip() -> None:
    graph = build("torus2d,x=3,y=3")
    changed = with_detours(graph, [["h3", "s0", "s1", "s2", "s8", "h7"]])

    assert longest_rtt_ps(changed, 1000) > longest_rtt_ps(graph, 1000)


def test_new_detours_replace_old_ones() -> None:
    graph = with_detours(build("leafspine"), [("h0", "s5", "h15")])

    assert detours(with_detours(graph, [])) == {}
    assert list(detours(graph)) == [("h0", "h15")]


@pytest.mark.parametrize(
    ("ways", "message"),
    [
        ([("h0", "s9", "h5")], "detour: no such switch, got 's9' in h0-s9-h5"),
        ([("h0", "h3", "h5")], "detour: no such switch, got 'h3' in h0-h3-h5"),
        ([("h0", "s4", "h99")], "no such host, got 'h99'"),
        ([("h0", "s1", "h1")], "detour: must pass a node once, got s0 twice on h0-s1-h1"),
        ([("h0", "s1", "h0")], "detour: must pass a node once, got h0 twice on h0-s1-h0"),
        ([("h0", "s4", "h5"), ("h0", "s5", "h5")], "h0 to h5 has one already, got h0-s5-h5"),
    ],
)
def test_ways_that_are_none_are_refused(ways: list[tuple[str, ...]], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        with_detours(build("leafspine,leaves=4,spines=2,hosts=3"), ways)


def test_what_is_not_joined_is_refused() -> None:
    graph: nx.Graph[str] = build("leafspine,leaves=2,spines=1,hosts=1")
    graph.remove_edge("s1", "s2")

    with pytest.raises(TopologyError, match="detour: no way from s2 to s1, got h0-s2-h1"):
        with_detours(graph, [("h0", "s2", "h1")])
