"""The parts of every topology: hosts, switches, links and numbered ports.

A topology is an `nx.Graph`. Hosts are `h0, h1, ...` in rank order, switches `s0, s1, ...`.

- Node attributes: `role` (Role), `label` (its name in a drawing or file), `pos` (x, y, for
  drawing; `placed` finds places where a file has none), for switches, `tier` (0 next to
  hosts) and perhaps `kind` (the name of its kind, if `label` does not begin with it) and
  `inside` (true if it is in a server, between its host and all others), and for hosts of a file
  that has some, `ipv4` and `mac` (numbers, in place of those of `addresses`).
- Edge attributes: `link` (Link, of both directions) and `ports` (node name -> its port, from 1;
  a host's is 1); if the directions differ, `back` (node name -> Link, by which that node sends).
- Graph attributes: `name` (a spec that builds it again, with the rates and delays
  that it was given), `hierarchy` (group sizes, innermost first,
  their product is the number of hosts), `routing` (a name of `routing.ROUTERS`),
  `servers` (whether each host `h{i}` forwards for others, through a switch `s{i}` of its own)
  `grid` (sizes of a grid of hosts whose dimensions close into rings, the fastest first) and
  `in_grid` (the rank at each of its places; missing: the same number), if there is one,
  and `layout` (`tiers` if `pos` counts hosts by tiers, `grid` if both axes have one scale);
  `optical`, if some links are circuits: those that a switch can have at a time, each way;
  `rails`, if NICs of a machine in place of a host are at as many switches from the host's on;
  `detours`, if there are any (`ringleaf.topologies.detours`), and `adaptive`, if switches choose
  between these and the usual routes; `uneven`, if the first host may
  be nearer to others than some hosts are to each other; `irregular`, if the worst cut need not
  be one of a level of `hierarchy`; `named`, if labels are a file's names.
- Hints for drawings: a switch's `rail` (two ends of a line that stands for it), a link's `stubs`
  (node -> vector; the link is drawn as these instead) and the graph's `frames` (corners).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from ringleaf.core.units import PS_PER_NS
from ringleaf.errors import TopologyError

if TYPE_CHECKING:
    import networkx as nx

LOCAL_DELAY_PS = PS_PER_NS
"""Delay of the link between a server and the switch inside it."""

MOST_REGULAR = 16
"""Servers that a network with a switch for each of their rows may have for its levels to give the
worst halves, as all halves show. Among 6 x 6 servers, 4 x 4 and two beside them are worse."""

Peers = dict[str, dict[str, int]]
"""Switch -> neighbouring switch -> port that leads there."""

Point = tuple[float, float]


class Role(Enum):
    """The role of a node: a host has a rank and sends, a switch only forwards."""

    HOST = "host"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a full-duplex cable, or either of both if they are equal.

    `loss` is the probability that a packet is lost, and `queue_bytes` the size of the queue at the
    port of the switch that sends; None: as the experiment has it for all links. A `circuit` is
    there only while a controller of circuits has set it up, if the network has one.
    """

    rate_bps: int
    delay_ps: int
    loss: float | None = None
    queue_bytes: int | None = None
    circuit: bool = False

    def __post_init__(self) -> None:
        for name in ("rate_bps", "delay_ps"):
            value: object = getattr(self, name)
            if isinstance(value, float):
                raise TopologyError(f"link: {name} must be an int, got {value!r}; like 10**9")
        if self.rate_bps < 1:
            raise TopologyError(f"link: rate_bps must be >= 1, got {self.rate_bps!r}")
        if self.delay_ps < 0:
            raise TopologyError(f"link: delay_ps must be >= 0, got {self.delay_ps!r}")
        if self.loss is not None and not 0 <= self.loss < 1:
            raise TopologyError(f"link: loss must be in [0, 1), got {self.loss!r}")
        if self.queue_bytes is not None and self.queue_bytes < 1:
            raise TopologyError(f"link: queue_bytes must be >= 1, got {self.queue_bytes!r}")

    def loss_or(self, usual: float) -> float:
        """Return the loss of this link, or the experiment's."""
        return usual if self.loss is None else self.loss

    def queue_bytes_or(self, usual: int) -> int:
        """Return the size of this link's queue, or the experiment's."""
        return usual if self.queue_bytes is None else self.queue_bytes


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
    graph.nodes[switch]["inside"] = True
    graph.add_edge(host, switch, ports={host: 1, switch: 1})
    return switch


def join_servers(graph: nx.Graph[str], link: Link, host_link: Link | None) -> None:
    """Give each server's inner link `host_link`, or as much as all its other links together.

    `link` is for a server that has no other links.
    """
    for host in hosts(graph):
        join_server(graph, host, link.rate_bps, host_link)


def join_server(graph: nx.Graph[str], host: str, alone_bps: int, inner: Link | None = None) -> None:
    """Give a server's inner link `inner`, or as much each way as all its other links together.

    `alone_bps` is the rate of a server that has no other links.
    """
    switch = attachment(graph, host)
    peers = [peer for peer in graph.adj[switch] if peer != host]
    out_bps = sum(link(graph, switch, peer).rate_bps for peer in peers) or alone_bps
    in_bps = sum(link(graph, peer, switch).rate_bps for peer in peers) or alone_bps
    edge = graph.edges[host, switch]
    edge["link"] = inner or Link(out_bps, LOCAL_DELAY_PS)
    if inner is None and in_bps != out_bps:
        edge["back"] = {switch: Link(in_bps, LOCAL_DELAY_PS)}


def connect(
    graph: nx.Graph[str],
    a: str,
    b: str,
    link: Link,
    *,
    back: Link | None = None,
    ports: tuple[int | None, int | None] = (None, None),
) -> None:
    """Join two nodes.

    Args:
        graph: A topology.
        a: A node.
        b: Another one.
        link: The link, both ways unless there is `back`.
        back: The direction from `b` to `a`.
        ports: The port of each; None: the next one.

    Raises:
        TopologyError: If they are joined already, or either is missing.
    """
    for node in (a, b):
        if node not in graph:
            raise TopologyError(f"{graph.name}: no such node, got {node!r}")
    if graph.has_edge(a, b):
        raise TopologyError(f"{graph.name}: {a} and {b} are joined already")
    numbers = {
        node: number or len(graph[node]) + 1 for node, number in zip((a, b), ports, strict=True)
    }
    graph.add_edge(a, b, link=link, ports=numbers)
    if back is not None and back != link:
        graph.edges[a, b]["back"] = {b: back}


@lru_cache(maxsize=1 << 18)  # more than the largest topology has nodes
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
    own_kind: str = graph.nodes[node].get("kind", "")
    label: str = graph.nodes[node]["label"]
    return own_kind or label.rpartition(" ")[0] or "server"


def hosts(graph: nx.Graph[str]) -> list[str]:
    """Return all hosts, in rank order."""
    return _of_role(graph, Role.HOST)


def switches(graph: nx.Graph[str]) -> list[str]:
    """Return all switches, in natural order."""
    return _of_role(graph, Role.SWITCH)


def _of_role(graph: nx.Graph[str], role: Role) -> list[str]:
    return sorted((node for node, own in graph.nodes(data=True) if own["role"] is role), key=index)


def link(graph: nx.Graph[str], a: str, b: str) -> Link:
    """Return the direction from `a` to `b` of the link that joins them.

    Raises:
        TopologyError: If there is none.
    """
    edge = _edge(graph, a, b)
    direction: Link = edge.get("back", {}).get(a, edge["link"])
    return direction


def directions(graph: nx.Graph[str]) -> Iterator[tuple[str, str, Link]]:
    """Yield both directions of all links: from, to, and the link that way."""
    for a, b, edge in graph.edges(data=True):
        back = edge.get("back", {})
        yield a, b, back.get(a, edge["link"])
        yield b, a, back.get(b, edge["link"])


def circuits(graph: nx.Graph[str]) -> list[tuple[str, str]]:
    """Return the directions, (from, to), of all links that are circuits, in natural order."""
    ends_of = [(a, b) for a, b, each in directions(graph) if each.circuit]
    return sorted(ends_of, key=lambda ends: (natural(ends[0]), natural(ends[1])))


def without_circuits(graph: nx.Graph[str]) -> nx.Graph[str]:
    """Return the same topology without circuits; ports keep their numbers."""
    left = graph.copy()
    left.remove_edges_from(circuits(graph))
    return left


def with_widest_circuits(graph: nx.Graph[str]) -> nx.Graph[str]:
    """Return the same topology with each circuit as fast as all that its rack can have together.

    No choice of circuits moves data faster than all of these at once, so least times are of it.
    """
    ports: int = graph.graph.get("optical", 1)
    return with_links(
        graph, lambda each: replace(each, rate_bps=each.rate_bps * (ports if each.circuit else 1))
    )


def is_even(graph: nx.Graph[str]) -> bool:
    """Return whether the two directions of every link are equal."""
    return not any("back" in edge for _, _, edge in graph.edges(data=True))


def with_links(graph: nx.Graph[str], change: Callable[[Link], Link]) -> nx.Graph[str]:
    """Return the same topology with every direction of every link changed by a function."""
    changed = graph.copy()
    for _, _, edge in changed.edges(data=True):
        edge["link"] = change(edge["link"])
        if "back" in edge:
            edge["back"] = {node: change(each) for node, each in edge["back"].items()}
    return changed


def port(graph: nx.Graph[str], node: str, peer: str) -> int:
    """Return the port of `node` that leads to `peer`.

    Raises:
        TopologyError: If no link joins them.
    """
    number: int = _edge(graph, node, peer)["ports"][node]
    return number


def _edge(graph: nx.Graph[str], a: str, b: str) -> dict[str, Any]:
    edge: dict[str, Any] | None = graph.get_edge_data(a, b)
    if edge is None:
        raise TopologyError(f"{graph.name}: no link joins {a!r} and {b!r}")
    return edge


def neighbor_at(graph: nx.Graph[str], node: str, port: int) -> str:
    """Return the peer that `port` of `node` leads to.

    Raises:
        TopologyError: If `node` has no such port, or is missing.
    """
    if node in graph:
        for peer in graph.neighbors(node):
            if _edge(graph, node, peer)["ports"][node] == port:
                return peer
    ports = len(neighbors(graph, node))
    raise TopologyError(f"{graph.name}: {node} has ports 1 to {ports}, got {port!r}")


def neighbors(graph: nx.Graph[str], node: str) -> dict[int, str]:
    """Return the peers of one node by port, in port order."""
    if node not in graph:
        raise TopologyError(f"{graph.name}: no such node, got {node!r}")
    return dict(sorted((port(graph, node, peer), peer) for peer in graph.neighbors(node)))


def attachment(graph: nx.Graph[str], host: str) -> str:
    """Return the switch that `host` is attached to.

    Raises:
        TopologyError: If `host` is not a host with exactly one link.
    """
    if host not in graph or graph.nodes[host]["role"] is not Role.HOST:
        raise TopologyError(f"{graph.name}: no such host, got {host!r}")
    peers = list(graph.neighbors(host))
    if len(peers) != 1:
        raise TopologyError(f"{graph.name}: {host} must have one link, got {len(peers)}")
    return peers[0]


def is_server(graph: nx.Graph[str], host: str) -> bool:
    """Return whether a host forwards for others, through a switch of its own.

    Raises:
        TopologyError: If `host` is not a host with exactly one link.
    """
    return bool(graph.nodes[attachment(graph, host)].get("inside", False))


def switch_graph(graph: nx.Graph[str]) -> Peers:
    """Return each switch's neighbouring switches, with the port that leads there; no hosts."""
    names, near = dict.fromkeys(switches(graph)), dict(graph.adjacency())
    peers: Peers = {}
    for switch in names:
        ports = [(data["ports"][switch], p) for p, data in near[switch].items() if p in names]
        peers[switch] = {peer: port for port, peer in sorted(ports)}
    return peers


def distances(peers: nx.Graph[str] | Peers, start: str) -> dict[str, int]:
    """Return the number of links from `start` to every node that it reaches.

    Args:
        peers: A graph, or its switches' neighbours (`switch_graph`), and so no hosts.
        start: A node of it.
    """
    distance = {start: 0}
    frontier = [start]
    while frontier:
        reached = []
        for node in frontier:
            for peer in peers[node]:
                if peer not in distance:
                    distance[peer] = distance[node] + 1
                    reached.append(peer)
        frontier = reached
    return distance


def least_times_ps(
    graph: nx.Graph[str], start: str, hop_ps: Callable[[str, str], int]
) -> dict[str, int]:
    """Return the least time from `start` to every node that it reaches, in ps.

    Args:
        graph: A topology.
        start: A node of it.
        hop_ps: The time from one node to a neighbour.

    Source:
        Dijkstra, "A Note on Two Problems in Connexion with Graphs", Numerische Mathematik 1, 1959.
    """
    least: dict[str, int] = {}
    times_ps, reached = [0], {0: [start]}  # as many nodes are reached at once
    while times_ps:
        at_ps = heappop(times_ps)
        for node in reached.pop(at_ps):
            if node in least:
                continue
            least[node] = at_ps
            for peer in graph.adj[node]:
                if peer in least:
                    continue
                then_ps = at_ps + hop_ps(node, peer)
                if then_ps not in reached:
                    reached[then_ps] = []
                    heappush(times_ps, then_ps)
                reached[then_ps].append(peer)
    return least
