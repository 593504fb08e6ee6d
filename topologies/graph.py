"""The parts of every topology: hosts, switches, links and numbered ports.

A topology is an `nx.Graph`. Hosts are `h0, h1, ...` in rank order, switches `s0, s1, ...`.

- Node attributes: `role` (Role), `label` (its name in a drawing), `pos` (x, y, for drawing)
  and, for switches, `tier` (0 next to hosts).
- Edge attributes: `link` (Link) and `ports` (node name -> its port, from 1; a host's is 1).
- Graph attributes: `name` (a spec that builds it again, with the rates and delays
  that it was given), `hierarchy` (group sizes, innermost first,
  their product is the number of hosts), `routing` (a name of `routing.ROUTERS`),
  `servers` (whether each host `h{i}` forwards for others, through a switch `s{i}` of its own)
  and `layout` (`tiers` if `pos` counts hosts by tiers, `grid` if both axes have one scale);
  `detours`, if there are any (`ringleaf.topologies.detours`).
- Hints for drawings: a switch's `rail` (two ends of a line that stands for it), a link's `stubs`
  (node -> vector; the link is drawn as these instead) and the graph's `frames` (corners).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ringleaf.errors import TopologyError
from ringleaf.units import PS_PER_NS

if TYPE_CHECKING:
    import networkx as nx

LOCAL_DELAY_PS = PS_PER_NS
"""Delay of the link between a server and the switch inside it."""

Peers = dict[str, dict[str, int]]
"""Switch -> neighbouring switch -> port that leads there."""

Point = tuple[float, float]


class Role(Enum):
    HOST = "host"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex cable: each direction has all of `rate_bps`."""

    rate_bps: int
    delay_ps: int

    def __post_init__(self) -> None:
        if self.rate_bps < 1:
            raise TopologyError(f"link: rate_bps must be >= 1, got {self.rate_bps!r}")
        if self.delay_ps < 0:
            raise TopologyError(f"link: delay_ps must be >= 0, got {self.delay_ps!r}")


def new_graph(
    name: str, hierarchy: tuple[int, ...], *, routing: str = "shortest", **attributes: Any
) -> nx.Graph[str]:
    """Return a graph without nodes; groups of one are left out of `hierarchy`."""
    import networkx as nx  # takes a third of a second: wrong arguments are refused before it

    sizes = tuple(size for size in hierarchy if size > 1) or (1,)
    graph: nx.Graph[str] = nx.Graph(name=name, hierarchy=sizes, routing=routing)
    graph.graph.update(servers=False, layout="tiers", frames=[])
    graph.graph.update(attributes)
    return graph


def add_host(graph: nx.Graph[str], rank: int, pos: Point) -> str:
    """Add the host of `rank` and return its name."""
    name = f"h{rank}"
    graph.add_node(name, role=Role.HOST, label=name, pos=pos)
    return name


def add_switch(graph: nx.Graph[str], index: int, tier: int, label: str, pos: Point) -> str:
    """Add switch number `index` and return its name."""
    name = f"s{index}"
    graph.add_node(name, role=Role.SWITCH, tier=tier, label=label, pos=pos)
    return name


def add_server(
    graph: nx.Graph[str],
    rank: int,
    label: str,
    pos: Point,
    host_offset: Point = (0.26, -0.26),
) -> str:
    """Add a host that forwards for others, and return the name of the switch inside it.

    The switch's port 1 leads to the host. `join_servers` gives that link its rate, once all
    other links are there.
    """
    graph.graph["servers"] = True
    host = add_host(graph, rank, (pos[0] + host_offset[0], pos[1] + host_offset[1]))
    switch = add_switch(graph, rank, 0, label, pos)
    graph.add_edge(host, switch, ports={host: 1, switch: 1})
    return switch


def join_servers(graph: nx.Graph[str], link: Link, host_link: Link | None) -> None:
    """Give each server's inner link `host_link`, or as much as all its other links together.

    `link` is for a server that has no other links.
    """
    for host in hosts(graph):
        switch = attachment(graph, host)
        rates = [
            data["link"].rate_bps
            for _, peer, data in graph.edges(switch, data=True)
            if peer != host
        ]
        rate_bps = sum(rates) or link.rate_bps
        graph.edges[host, switch]["link"] = host_link or Link(rate_bps, LOCAL_DELAY_PS)


def connect(graph: nx.Graph[str], a: str, b: str, link: Link) -> None:
    """Join two nodes by the next free port of each.

    Raises:
        TopologyError: If they are joined already, or either is missing.
    """
    for node in (a, b):
        if node not in graph:
            raise TopologyError(f"{graph.name}: no such node, got {node!r}")
    if graph.has_edge(a, b):
        raise TopologyError(f"{graph.name}: {a} and {b} are joined already")
    graph.add_edge(a, b, link=link, ports={node: graph.degree[node] + 1 for node in (a, b)})


@lru_cache(maxsize=1 << 16)
def natural(name: str) -> tuple[str, int]:
    """Return a key that sorts names by number: h0, h2, h10."""
    match = re.fullmatch(r"(\D*)(\d+)", name)
    if match is None:
        raise TopologyError(f"node: must be a letter and a number, got {name!r}; like 'h3'")
    return match[1], int(match[2])


def index(name: str) -> int:
    """Return the number in a node's name: 3 for `s3`."""
    return natural(name)[1]


def kind(graph: nx.Graph[str], node: str) -> str:
    """Return `host`, `server`, or a switch's label without its number: `edge` for `edge 0.1`."""
    if graph.nodes[node]["role"] is Role.HOST:
        return "host"
    label: str = graph.nodes[node]["label"]
    return label.rpartition(" ")[0] or "server"


def hosts(graph: nx.Graph[str]) -> list[str]:
    """Return all hosts, in rank order."""
    return _of_role(graph, Role.HOST)


def switches(graph: nx.Graph[str]) -> list[str]:
    """Return all switches, in natural order."""
    return _of_role(graph, Role.SWITCH)


def _of_role(graph: nx.Graph[str], role: Role) -> list[str]:
    return sorted((node for node in graph if graph.nodes[node]["role"] is role), key=index)


def link(graph: nx.Graph[str], a: str, b: str) -> Link:
    """Return the link that joins two nodes.

    Raises:
        TopologyError: If there is none.
    """
    found: Link = _edge(graph, a, b)["link"]
    return found


def port(graph: nx.Graph[str], node: str, peer: str) -> int:
    """Return the port of `node` that leads to `peer`.

    Raises:
        TopologyError: If no link joins them.
    """
    found: int = _edge(graph, node, peer)["ports"][node]
    return found


def _edge(graph: nx.Graph[str], a: str, b: str) -> dict[str, Any]:
    if not graph.has_edge(a, b):
        raise TopologyError(f"{graph.name}: no link joins {a!r} and {b!r}")
    return graph.edges[a, b]


def neighbor_at(graph: nx.Graph[str], node: str, port: int) -> str:
    """Return the peer that `port` of `node` leads to.

    Raises:
        TopologyError: If `node` has no such port, or is missing.
    """
    peers = neighbors(graph, node)
    if port not in peers:
        raise TopologyError(f"{graph.name}: {node} has ports 1 to {len(peers)}, got {port!r}")
    return peers[port]


def neighbors(graph: nx.Graph[str], node: str) -> dict[int, str]:
    """Return the peers of one node by port, in port order."""
    if node not in graph:
        raise TopologyError(f"{graph.name}: no such node, got {node!r}")
    return dict(sorted((data["ports"][node], peer) for peer, data in graph.adj[node].items()))


def attachment(graph: nx.Graph[str], host: str) -> str:
    """Return the switch that `host` is attached to.

    Raises:
        TopologyError: If `host` is not a host with exactly one link.
    """
    if host not in graph or graph.nodes[host]["role"] is not Role.HOST:
        raise TopologyError(f"{graph.name}: no such host, got {host!r}")
    peers = list(graph.adj[host])
    if len(peers) != 1:
        raise TopologyError(f"{graph.name}: {host} must have one link, got {len(peers)}")
    return peers[0]


def switch_graph(graph: nx.Graph[str]) -> Peers:
    """Return each switch's neighbouring switches, with the port that leads there; no hosts."""
    names = dict.fromkeys(switches(graph))
    peers: Peers = {}
    for switch in names:
        found = [(data["ports"][switch], p) for p, data in graph.adj[switch].items() if p in names]
        peers[switch] = {peer: port for port, peer in sorted(found)}
    return peers


def distances(peers: Peers, start: str) -> dict[str, int]:
    """Return the number of links from `start` to every switch that it reaches through switches."""
    distance = {start: 0}
    frontier = [start]
    while frontier:
        reached = []
        for switch in frontier:
            for peer in peers[switch]:
                if peer not in distance:
                    distance[peer] = distance[switch] + 1
                    reached.append(peer)
        frontier = reached
    return distance
