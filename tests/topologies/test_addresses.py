from __future__ import annotations

import networkx as nx
import pytest

from ringleaf.errors import TopologyError
from ringleaf.topologies.addresses import (
    PREFIX_BITS,
    common_bits,
    format_ipv4,
    format_mac,
    ipv4,
    mac,
    subnet,
)
from ringleaf.topologies.graph import Link, Role, attachment, connect, hosts, neighbors, new_graph
from ringleaf.topologies.registry import build


def test_an_address_says_switch_and_port() -> None:
    graph = build("fattree,k=4")

    assert format_ipv4(ipv4(graph, "h0")) == "10.0.0.1"
    assert format_ipv4(ipv4(graph, "h15")) == "10.0.7.2"
    assert ipv4(graph, "h15") == 0x0A000702
    assert format_mac(mac(graph, "h15", 1)) == "02:00:00:00:f0:01"
    assert format_mac(mac(graph, "s3", 4)) == "02:01:00:00:30:04"


@pytest.mark.parametrize("spec", ["fattree,k=36", "torus2d,x=110,y=100", "leafspine,hosts=254"])
def test_addresses_are_unique_among_ten_thousand_hosts(spec: str) -> None:
    graph = build(spec)

    assert len({ipv4(graph, host) for host in hosts(graph)}) == len(hosts(graph))


def test_hosts_of_a_switch_share_its_prefix() -> None:
    graph = build("leafspine,leaves=3,hosts=5")

    for host in hosts(graph):
        assert ipv4(graph, host) >> (32 - PREFIX_BITS) << (32 - PREFIX_BITS) == subnet(
            attachment(graph, host)
        )
    assert len({subnet(f"s{i}") for i in range(1000)}) == 1000


def test_bits_that_addresses_have_in_common() -> None:
    assert common_bits([0x0A000101, 0x0A000102]) == 30
    assert common_bits([0x0A000101, 0xC0A80303, 0x0A000102]) == 0
    assert common_bits([0x0A000101]) == 32


def test_every_port_has_a_local_unicast_mac_of_its_own() -> None:
    graph = build("bcube,n=4,k=1")

    macs = [mac(graph, node, port) for node in graph for port in neighbors(graph, node)]

    assert len(set(macs)) == len(macs)
    assert {address >> 40 for address in macs} == {0b10}


def lonely(host: str, switch: str) -> nx.Graph[str]:
    graph = new_graph("lonely", (1,))
    graph.add_node(host, role=Role.HOST)
    graph.add_node(switch, role=Role.SWITCH)
    connect(graph, host, switch, Link(1, 0))
    return graph


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TopologyError, match="hosts must be on ports 1 to 254, got 255 on s0"):
        ipv4(build("leafspine,hosts=255"), "h254")
    with pytest.raises(TopologyError, match="switches with hosts must be s0 to s65535, got s65536"):
        ipv4(lonely("h0", "s65536"), "h0")
    with pytest.raises(TopologyError, match=r"mac: needs node < 2\^20 .* got h1048576 port 1"):
        mac(lonely("h1048576", "s0"), "h1048576", 1)
    with pytest.raises(TopologyError, match="port 1 to 4095, got h0 port 0"):
        mac(lonely("h0", "s0"), "h0", 0)
    with pytest.raises(TopologyError, match="lonely: no such host, got 's0'"):
        ipv4(lonely("h0", "s0"), "s0")
