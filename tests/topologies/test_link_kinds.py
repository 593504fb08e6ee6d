"""What links carry, in words, where they differ, too."""

import pytest
from hypothesis import given
from topology_specs import ANY_SPEC

from ringleaf.topologies.graph import hosts
from ringleaf.topologies.kinds import LinkKind, describe, link_kinds, reference
from ringleaf.topologies.registry import build


@pytest.mark.parametrize(
    ("topo", "words"),
    [
        ("fattree", "100 Gbit/s and 1 us per link"),
        ("fattree,rate=40G,delay=2us", "40 Gbit/s and 2 us per link"),
        ("torus2d", "100 Gbit/s and 1 us per link"),
        (
            "leafspine,rate=40G,host_rate=10G",
            "10 Gbit/s and 1 us per host-leaf link; 40 Gbit/s and 1 us per leaf-spine link",
        ),
        (
            "fattree,host_delay=2.5us",
            "100 Gbit/s and 2.5 us per host-edge link; "
            "100 Gbit/s and 1 us per edge-agg and agg-core link",
        ),
        (
            "torus2d,host_rate=150G,host_delay=3ns",
            "150 Gbit/s and 3 ns per server's inner link; "
            "100 Gbit/s and 1 us per server-server link",
        ),
        (
            "hammingmesh,a=1,b=2,x=3,y=2",  # a board one wide has one link of twice the rate
            "200 Gbit/s and 1 us per server-row link; "
            "100 Gbit/s and 1 us per server-server and server-column link",
        ),
    ],
)
def test_kinds_are_told_apart_only_where_they_differ(topo: str, words: str) -> None:
    assert describe(link_kinds(build(topo))) == words


@pytest.mark.parametrize(
    ("topo", "rate_bps"),
    [
        ("leafspine,rate=40G,host_rate=10G", 10 * 10**9),
        ("leafspine,rate=10G,host_rate=40G", 40 * 10**9),
        ("torus2d,host_rate=150G", 150 * 10**9),
        ("torus2d,rate=40G", 40 * 10**9),
    ],
)
def test_bandwidths_are_compared_with_hosts_links(topo: str, rate_bps: int) -> None:
    assert reference(link_kinds(build(topo))).rate_bps == rate_bps


@given(ANY_SPEC)
def test_every_link_is_counted_once_but_those_inside_servers(topo: str) -> None:
    graph = build(topo)
    inner = len(hosts(graph)) if graph.graph["servers"] else 0

    assert sum(kind.count for kind in link_kinds(graph)) == graph.number_of_edges() - inner


@pytest.mark.parametrize(
    "topo",
    ["leafspine,leaves=2,spines=2,hosts=4,rate=40G,host_rate=10G", "torus2d,x=4,y=4,delay=500ns"],
)
def test_a_name_has_the_rates_and_delays_that_were_given(topo: str) -> None:
    graph = build(topo)

    assert graph.name == topo
    assert link_kinds(build(graph.name, rate_bps=1e9)) == link_kinds(graph) or "delay" in topo


def test_many_kinds_of_nodes_are_told_as_hosts_links_and_others() -> None:
    hosts = [LinkKind(tuple(f"host-{each}" for each in "abcdef"), 10**10, 10**6, 6)]
    others = [LinkKind(("a-b", "b-c", "c-d", "d-e", "e-f"), 4 * 10**10, 10**6, 5)]
    words = "10 Gbit/s and 1 us per host's link; 40 Gbit/s and 1 us per other link"
    assert describe([*hosts, *others]) == words
