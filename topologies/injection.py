"""The rate at which hosts can send into the network, so that topologies compare at equal cost.

A server that forwards has several ports, and may use all of them for its own data: in a torus
with links of 100 Gbit/s it injects 400 Gbit/s, where a fat-tree's host injects 100.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.topologies.files.family import has_rates
from ringleaf.topologies.graph import attachment, hosts, link
from ringleaf.topologies.registry import build, is_file, parse

if TYPE_CHECKING:
    import networkx as nx

_UNIT_BPS = 10**9


def injection_bps(graph: nx.Graph[str], host: str) -> int:
    """Return the most that a host can send: the rate of its server's ports, or of its own link."""
    switch = attachment(graph, host)
    own_bps = link(graph, host, switch).rate_bps
    if not graph.graph["servers"]:
        return own_bps
    ports = [link(graph, switch, peer).rate_bps for peer in graph.adj[switch] if peer != host]
    return min(own_bps, sum(ports)) if ports else own_bps


def injections_bps(graph: nx.Graph[str]) -> tuple[int, int]:
    """Return the least and the largest rate at which one of the hosts can inject."""
    rates = [injection_bps(graph, host) for host in hosts(graph)]
    return min(rates), max(rates)


def divide_ports(topo: str, inject_bps: int, *, hosts: int | None = None) -> tuple[str, int]:
    """Return a topology whose links' rates let a host inject `inject_bps` in total.

    All links keep one rate: where servers have more and fewer ports, it is those with most
    that inject as much, the others less.

    Args:
        topo: A topology without rates of its own, like `bcube,n=4`.
        inject_bps: Rate that a host shall inject, all ports together.
        hosts: Hosts that must find room, as `build` takes it.

    Returns:
        The text that builds it, `bcube,n=4,rate=50G`, and the links' rate in bit/s, rounded down.

    Raises:
        ConfigError: If the text is not understood, or it or its file's links have rates already.
        TopologyError: If there is no such instance.
    """
    if parse(topo).inside is not None:
        raise ConfigError(f"inject: can't go with machines, got {topo!r}; give rate or host_rate")
    rate_keys = [key for key in parse(topo).links if key.endswith("rate")]
    if rate_keys:
        raise ConfigError(
            f"inject: can't go with a topology's own {rate_keys[0]}, got {topo!r}; give either"
        )
    spec = parse(topo)
    if is_file(spec.family) and has_rates(spec.family, spec.reading):
        raise ConfigError(f"inject: can't go with rates of a file's links, got {topo!r}")
    ports = injections_bps(build(topo, rate_bps=_UNIT_BPS, hosts=hosts))[1] // _UNIT_BPS
    rate_bps = inject_bps // ports
    if rate_bps < 1:
        raise ConfigError(
            f"inject: must be at least 1 bit/s for each of {format_count(ports, 'port')}, got "
            f"{inject_bps!r}"
        )
    return f"{topo},rate={_exact(rate_bps)}", rate_bps


def _exact(rate_bps: int) -> str:
    """Return the exact rate in the form that topologies' texts use."""
    for unit, size_bps in (("G", 10**9), ("M", 10**6), ("K", 10**3)):
        if rate_bps % size_bps == 0:
            return f"{rate_bps // size_bps}{unit}"
    return str(rate_bps)
