"""What hosts inject, and links' rates that make it equal, by hand for every family."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.topologies.graph import Link, hosts, link
from ringleaf.topologies.injection import divide_ports, injection_bps, injections_bps
from ringleaf.topologies.registry import build

G = 10**9


@pytest.mark.parametrize(
    ("topo", "ports", "name"),
    [
        ("fattree,k=4", 1, "100G"),
        ("leafspine,leaves=2,spines=1,hosts=2", 1, "100G"),
        ("bcube,n=4,k=1", 2, "50G"),  # k + 1 ports
        ("bcube,n=2,k=2", 3, "33333333333"),
        ("torus2d,x=4,y=4", 4, "25G"),
        ("torus2d,x=4,y=2", 3, "33333333333"),  # a ring of two is one link
        ("torus3d,x=3,y=3,z=3", 6, "16666666666"),
        ("hammingmesh,a=2,b=2,x=2,y=2", 4, "25G"),
        ("hammingmesh,a=1,b=1,x=2,y=2", 4, "25G"),  # two links, each of twice the rate
    ],
)
def test_injection_is_divided_by_the_ports_of_a_server(topo: str, ports: int, name: str) -> None:
    text, rate_bps = divide_ports(topo, 100 * G)
    graph = build(text)

    assert text == f"{topo},rate={name}"
    assert rate_bps == 100 * G // ports
    assert injections_bps(graph) == (rate_bps * ports, rate_bps * ports)
    assert link(graph, "h0", "s0").rate_bps == rate_bps * ports


@pytest.mark.parametrize(
    ("topo", "injected"),
    [("fattree", 100), ("leafspine", 100), ("bcube", 200), ("torus2d", 400), ("torus3d", 400)],
)
def test_without_it_servers_inject_by_all_their_ports(topo: str, injected: int) -> None:
    assert injections_bps(build(topo)) == (injected * G, injected * G)


def test_servers_with_fewer_ports_inject_less() -> None:
    """A row of four on one board: its ends have one link, the others two; no switches."""
    text, rate_bps = divide_ports("hammingmesh,a=4,b=1,x=1,y=1", 100 * G)
    graph = build(text)

    assert rate_bps == 50 * G
    assert [injection_bps(graph, host) // G for host in hosts(graph)] == [50, 100, 100, 50]
    assert injections_bps(graph) == (50 * G, 100 * G)


def test_a_slow_link_inside_a_server_limits_what_it_injects() -> None:
    assert injections_bps(build("torus2d,host_rate=30G")) == (30 * G, 30 * G)
    assert injections_bps(build("leafspine,rate=40G,host_rate=10G")) == (10 * G, 10 * G)


@given(
    topo=st.sampled_from(["fattree", "leafspine", "bcube", "hammingmesh", "torus2d", "torus3d"]),
    count=st.integers(2, 40),
    inject_bps=st.integers(10**9, 10**13),
)
def test_no_host_injects_more_than_asked_for(topo: str, count: int, inject_bps: int) -> None:
    """And the one that injects most lacks less than a bit/s for each port."""
    text, rate_bps = divide_ports(topo, inject_bps, hosts=count)
    graph = build(text, hosts=count)
    most = injections_bps(graph)[1]

    assert inject_bps - most // rate_bps < most <= inject_bps
    servers = hosts(graph)
    inner = {*zip(servers, (f"s{i}" for i in range(len(servers))), strict=True)}
    rates = {
        data["link"].rate_bps
        for a, b, data in graph.edges(data=True)
        if not graph.graph["servers"] or ((a, b) not in inner and (b, a) not in inner)
    }
    assert rates <= {rate_bps, 2 * rate_bps}, "twice where a board is one wide"


def test_links_keep_their_delays() -> None:
    text, _ = divide_ports("bcube,n=2,k=1,delay=7ns", 10 * G)

    assert text == "bcube,n=2,k=1,delay=7ns,rate=5G"
    assert link(build(text), "s0", "s4") == Link(5 * G, 7000)


@pytest.mark.parametrize("key", ["rate", "host_rate"])
def test_a_topology_with_rates_of_its_own_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=f"inject: can't go with a topology's own {key}, got"):
        divide_ports(f"torus2d,{key}=10G", G)


def test_less_than_a_bit_per_port_is_refused() -> None:
    with pytest.raises(ConfigError, match="inject: must be at least 1 bit/s for each of 4 ports"):
        divide_ports("torus2d,x=4,y=4", 3)
