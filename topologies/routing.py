"""Routes: for every switch and destination host, the ports that may be taken (ECMP).

A graph says by its attribute `routing` which of `ROUTERS` it wants. `shortest` takes every
shortest path, which is up-down routing in a fat-tree or leaf-spine (Al-Fares et al., SIGCOMM
2008), digit correcting in any order in BCube (Guo et al., SIGCOMM 2009) and minimal routing in
HammingMesh (Hoefler et al., SC 2022). Others give one way by a rule (`next_switch`), like
`dimension_order` of the torus: X, then Y, then Z, each the shorter way round, and upward if both
are as long. Hosts never forward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from weakref import WeakKeyDictionary

import networkx as nx
import numpy as np

from ringleaf.core.units import serialize_ps
from ringleaf.errors import TopologyError, choose
from ringleaf.topologies.arrays import UNREACHED, Numbers, SwitchArrays
from ringleaf.topologies.delays import inside_ps, node_delay_ps
from ringleaf.topologies.detours import detours, is_adaptive
from ringleaf.topologies.graph import (
    Link,
    Peers,
    attachment,
    distances,
    hosts,
    index,
    link,
    neighbor_at,
    port,
    switch_graph,
)
from ringleaf.topologies.next_switch import (
    NextSwitches,
    dcell_routing,
    dimension_order,
    dragonfly_minimal,
    torus_links,
)
from ringleaf.topologies.remaining import LinkSets, remaining_ps
from ringleaf.topologies.route_table import (
    Ports,
    PortSets,
    RouteTable,
    dealt_sets,
    links_left,
    next_sets,
    shortest_sets,
)

Table = Mapping[str, Mapping[str, Ports]]
"""Switch -> host -> ports, as `routes` returns it."""
MOST_RANKS = 1 << 40
"""More than there can be; powers of ports beyond it, in high tiers, mean the same."""
Choice = Callable[[str, Ports], int]
"""A function that picks the port by which a packet leaves a switch, from the allowed ones."""


@dataclass(slots=True)
class _Known:
    """A topology's tables, none of which may refer to it."""

    routes: RouteTable
    dealt: RouteTable | None = None


_KNOWN: WeakKeyDictionary[nx.Graph[str], _Known] = WeakKeyDictionary()


def routes(graph: nx.Graph[str]) -> RouteTable:
    """Return, for every switch, the ports towards every host, in port order.

    Whatever port is taken at each switch, a packet arrives and meets no switch twice. The table
    is kept for as long as the graph, which can't have other nodes and edges from now on.

    Raises:
        TopologyError: If a switch can't reach a host.
    """
    if graph not in _KNOWN:
        router = choose(graph.name, "routing", graph.graph["routing"], TABLES)
        _KNOWN[graph] = _Known(TABLES[router](graph))
        nx.freeze(graph)
    return _KNOWN[graph].routes


def _shortest_table(graph: nx.Graph[str]) -> RouteTable:
    arrays = SwitchArrays.of(graph)
    if (arrays.distances == UNREACHED).any():
        _complain(graph, arrays)
    return RouteTable(arrays, partial(shortest_sets, arrays))


def _in_order_table(graph: nx.Graph[str]) -> RouteTable:
    """Return the table of `dimension_order`, whose ways are shortest paths, switch by switch."""
    arrays, shape = SwitchArrays.of(graph), graph.graph["shape"]
    if not arrays.has_links(torus_links(shape)).all():
        _complain(graph, arrays)

    def find(number: int) -> PortSets:
        return next_sets(arrays, number, dimension_order(number, arrays.leaves, shape))

    return RouteTable(arrays, find)


def _rule_table(graph: nx.Graph[str], rule: NextSwitches) -> RouteTable:
    """Return the table of a rule whose ways may be longer than the shortest."""
    arrays, shape = SwitchArrays.of(graph), graph.graph["shape"]
    following = np.zeros((len(arrays.switches), len(arrays.leaves)), np.int32)
    for number in range(len(arrays.switches)):
        following[number] = rule(number, arrays.leaves, shape)
        _check_links(graph, arrays, number, np.unique(following[number]))
    away = links_left(following, arrays.leaves)
    return RouteTable(arrays, lambda number: next_sets(arrays, number, following[number]), away)


def _check_links(
    graph: nx.Graph[str], arrays: SwitchArrays, switch: int, following: Numbers
) -> None:
    """Check that links lead from a switch to those that come next."""
    links = slice(arrays.first[switch], arrays.first[switch + 1])
    missing = np.setdiff1d(following, [switch, *arrays.peer[links]])
    if len(missing):
        raise TopologyError(f"{graph.name}: no link from s{switch} to s{missing[0]}")


def _complain(graph: nx.Graph[str], arrays: SwitchArrays) -> None:
    """Look at all routes one after the other, for the first that a missing link breaks."""
    peers = switch_graph(graph)
    for leaf in arrays.leaves.tolist():
        _towards(graph, peers, arrays.switches[leaf])


def with_routing(graph: nx.Graph[str], rule: str, family: str) -> nx.Graph[str]:
    """Return the same topology with another routing, which is one family's own.

    Raises:
        TopologyError: If it is of another family.
    """
    if graph.name.partition(",")[0] != family or "machine" in graph.graph:
        raise TopologyError(f"{graph.name}: routes {family} are for {family}; take routes=dealt")
    changed = graph.copy()
    changed.graph["routing"] = rule
    return changed


def dealt(graph: nx.Graph[str], table: RouteTable) -> RouteTable:
    """Return the table with one port per host, dealt out so that neighbouring ranks part early.

    In a fat-tree this is the suffix routing of Al-Fares et al. (SIGCOMM 2008, 3.5), or D-mod-k
    (Zahavi, JPDC 72(11), 2012): shifts and exchanges of all hosts at once meet no contention.
    Machines are dealt ports like hosts, and GPUs of a machine in addition, so that neither
    machines that have one flow each nor those whose GPUs all have one meet on a link.
    """
    known = _KNOWN.get(graph)
    if known is None or known.routes is not table:
        return _dealt(graph, table)
    if known.dealt is None:
        known.dealt = _dealt(graph, table)
    return known.dealt


def _dealt(graph: nx.Graph[str], table: RouteTable) -> RouteTable:
    arrays = table.arrays
    gpus, inner_tiers = graph.graph.get("machine", (1, 0))
    tiers = [max(graph.nodes[switch]["tier"] - inner_tiers, 0) for switch in arrays.switches]

    def deal(number: int) -> PortSets:
        tier, port_sets = tiers[number], table.find(number)
        return dealt_sets(arrays, port_sets, lambda ports: min(ports**tier, MOST_RANKS), gpus)

    return RouteTable(arrays, deal, table.away)


def routes_to(graph: nx.Graph[str], host: str) -> dict[str, Ports]:
    """Return, for every switch, the ports towards one host: one column of `routes`."""
    last = attachment(graph, host)
    return {**_towards(graph, switch_graph(graph), last), last: (port(graph, last, host),)}


def next_ports(graph: nx.Graph[str], last: str) -> dict[str, Ports]:
    """Return the ports of all switches but `last` towards it, by the graph's routing."""
    return _towards(graph, switch_graph(graph), last)


def _towards(graph: nx.Graph[str], peers: Peers, last: str) -> dict[str, Ports]:
    """Return the ports of all switches but `last` towards it."""
    router = choose(graph.name, "routing", graph.graph["routing"], ROUTERS)
    return ROUTERS[router](graph, peers, last)


# Columns of the table, one leaf's at a time.


def _shortest(graph: nx.Graph[str], peers: Peers, last: str) -> dict[str, Ports]:
    distance = distances(peers, last)
    for switch in peers:
        if switch not in distance:
            raise TopologyError(f"{graph.name}: no path from {switch} to {last}")
    return {
        switch: tuple(number for peer, number in near.items() if distance[peer] < distance[switch])
        for switch, near in peers.items()
        if switch != last
    }


def _by_rule(
    graph: nx.Graph[str], peers: Peers, last: str, *, rule: NextSwitches
) -> dict[str, Ports]:
    shape, there = graph.graph["shape"], np.array([index(last)])
    table: dict[str, Ports] = {}
    for switch, near in peers.items():
        if switch != last:
            peer = f"s{rule(index(switch), there, shape)[0]}"
            if peer not in near:
                raise TopologyError(f"{graph.name}: no link from {switch} to {peer}")
            table[switch] = (near[peer],)
    return table


ROUTERS: dict[str, Callable[[nx.Graph[str], Peers, str], dict[str, Ports]]] = {
    "shortest": _shortest,
    "dimension_order": partial(_by_rule, rule=dimension_order),
    "dragonfly_minimal": partial(_by_rule, rule=dragonfly_minimal),
    "dcell_routing": partial(_by_rule, rule=dcell_routing),
}


TABLES: dict[str, Callable[[nx.Graph[str]], RouteTable]] = {
    "shortest": _shortest_table,
    "dimension_order": _in_order_table,
    "dragonfly_minimal": partial(_rule_table, rule=dragonfly_minimal),
    "dcell_routing": partial(_rule_table, rule=dcell_routing),
}


def first(switch: str, ports: Ports) -> int:
    """Return the lowest port; this is a `Choice`."""
    return ports[0]


def path(
    graph: nx.Graph[str],
    src: str,
    dst: str,
    choose: Choice = first,
    *,
    table: Table | None = None,
) -> list[str]:
    """Return the nodes that a packet from host `src` to host `dst` meets, both included.

    `choose(switch, ports)` decides where several ports are allowed and there is no detour. A host
    reaches itself without meeting any other node. Callers that need many paths pass `table`,
    from `routes`.

    Raises:
        TopologyError: If either is not a host.
    """
    nodes = [src, attachment(graph, src)]
    attachment(graph, dst)  # refuses a node that is no host
    if (src, dst) in detours(graph):
        return list(detours(graph)[src, dst].nodes)
    if table is None:
        table = {switch: {dst: ports} for switch, ports in routes_to(graph, dst).items()}
    if src == dst:
        return nodes[:1]
    while nodes[-1] != dst:
        switch = nodes[-1]
        assert len(nodes) <= len(graph), "a route has a loop"
        nodes.append(neighbor_at(graph, switch, choose(switch, table[switch][dst])))
    return nodes


def hop_count(graph: nx.Graph[str], src: str, dst: str) -> int:
    """Return the number of links between two hosts, their own included."""
    return len(path(graph, src, dst)) - 1


def most_links(graph: nx.Graph[str]) -> int:
    """Return the largest number of links between two hosts, or more in an `uneven` graph.

    Families are made so that no hosts are farther from one another than the first from another. In
    an uneven graph, two hosts are at most twice as far as the farthest is from the first. Detours
    may be longer than either.
    """
    here, *others = hosts(graph)
    lengths = distances(graph, here)
    farthest = max((lengths[host] for host in others), default=0)
    straight = 2 * farthest if graph.graph.get("uneven", False) else farthest
    return max([straight, *(len(detour.nodes) - 1 for detour in detours(graph).values())])


def one_way_ps(graph: nx.Graph[str], nodes: Sequence[str], size_bytes: int) -> int:
    """Return a packet's time along `nodes` on an idle network: each hop stores, then forwards.

    The time inside the nodes themselves (`ringleaf.topologies.delays`) is included.
    """
    links = [link(graph, a, b) for a, b in pairwise(nodes)]
    on_links_ps = sum(each.delay_ps + serialize_ps(size_bytes, each.rate_bps) for each in links)
    return on_links_ps + inside_ps(graph, nodes)


def base_rtt_ps(
    graph: nx.Graph[str],
    src: str,
    dst: str,
    size_bytes: int,
    reply_bytes: int | None = None,
    *,
    table: Table | None = None,
) -> int:
    """Return the time of a packet there and its answer back, with empty queues.

    The answer is as large as the packet if `reply_bytes` is None. Callers that ask for many
    pairs pass `table`, from `routes`.
    """
    reply = size_bytes if reply_bytes is None else reply_bytes
    there = one_way_ps(graph, path(graph, src, dst, table=table), size_bytes)
    return there + one_way_ps(graph, path(graph, dst, src, table=table), reply)


def longest_rtt_ps(
    graph: nx.Graph[str], size_bytes: int, *, table: RouteTable | None = None
) -> int:
    """Return `base_rtt_ps` of the first host to the farthest, or of a detour that takes longer.

    Families are made so that no hosts are farther from one another; an `uneven` graph's hosts
    are all looked at. Callers that have the graph's `routes` pass them as `table`.
    """
    ways = routes(graph) if table is None else table
    if graph.graph.get("uneven", False):
        turned_ps = (base_rtt_ps(graph, *pair, size_bytes, table=ways) for pair in detours(graph))
        return max([_longest_of_all_ps(graph, size_bytes, ways), *turned_ps])
    here, *others = hosts(graph)
    turned = {pair for ends in detours(graph) for pair in (ends, ends[::-1])}
    alike: dict[tuple[str, Link], str] = {}  # hosts of one switch with equal links are as far
    for host in others:
        if (here, host) not in turned:
            last = attachment(graph, host)
            alike.setdefault((last, link(graph, host, last)), host)
    pairs = [*((here, host) for host in alike.values()), *detours(graph)]
    return max((base_rtt_ps(graph, *pair, size_bytes, table=ways) for pair in pairs), default=0)


def _longest_of_all_ps(graph: nx.Graph[str], size_bytes: int, table: RouteTable) -> int:
    """Return the longest round trip of any two hosts, by the longest of their routes."""

    def hop_ps(node: str, peer: str) -> int:
        sent = link(graph, node, peer)
        on_link_ps = sent.delay_ps + serialize_ps(size_bytes, sent.rate_bps)
        return on_link_ps + node_delay_ps(graph, peer)

    own = [(host, attachment(graph, host)) for host in hosts(graph)]
    first_ps = np.array([node_delay_ps(graph, host) + hop_ps(host, last) for host, last in own])
    there_ps = (
        first_ps[:, None] + remaining_ps(LinkSets(table), hop_ps, longest=True)[table.arrays.at]
    )
    np.fill_diagonal(there_ps, 0)
    return int((there_ps + there_ps.T).max())


def links_towards(
    graph: nx.Graph[str], sources: Sequence[str], dst: str, *, table: Table
) -> set[tuple[str, str]]:
    """Return the directions of links, (from, to), that packets from `sources` to `dst` may take.

    They include those of every port where several are allowed; `table` is from `routes`, or
    `dealt`.
    """
    turned = detours(graph)
    directions = {(src, attachment(graph, src)) for src in sources if src != dst}
    replaced = () if is_adaptive(graph) else turned
    met = list({switch for src, switch in directions if (src, dst) not in replaced})
    for src in sources:
        if (src, dst) in turned:
            directions |= set(pairwise(turned[src, dst].nodes))
    for switch in met:  # it grows
        for number in table[switch][dst]:
            peer = neighbor_at(graph, switch, number)
            directions.add((switch, peer))
            if peer != dst and peer not in met:
                met.append(peer)
    return directions
