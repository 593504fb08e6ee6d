"""The graph of a description, with what the file leaves open: tiers, hierarchy and defaults."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ringleaf.core.units import MOST_BPS
from ringleaf.errors import TopologyError
from ringleaf.topologies.files.attributes import IPV4, MAC
from ringleaf.topologies.files.description import Cable, Description, FileNode, LinkDirection
from ringleaf.topologies.graph import (
    Link,
    Point,
    add_host,
    add_switch,
    attachment,
    connect,
    join_server,
    new_graph,
    switch_graph,
)
from ringleaf.topologies.graph import hosts as all_hosts
from ringleaf.topologies.hierarchy import find_hierarchy

if TYPE_CHECKING:
    import networkx as nx

NOWHERE = (0.0, 0.0)
BESIDE = {"tiers": (0.4, 0.0), "grid": (0.26, -0.26)}
"""The place of a server's host beside its switch, by layout."""


def build(description: Description, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
    """Return the topology of a description.

    Hosts are numbered by rank. Servers' own switches come first, then the others in the order of
    the file; if all hosts are servers, server i is thus host `h{i}` and switch `s{i}`.

    Args:
        description: A description that has been checked.
        link: Rate and delay of links that have none of their own.
        host_link: The same of hosts' links, and of links inside servers; as `link` if None.
    """
    graph = new_graph(
        description.source,
        (),
        routing=description.routing,
        uneven=True,
        named=True,
        servers=all(host.is_server for host in description.hosts),
        **({"shape": description.shape} if description.shape else {}),
        **({"machine": description.machine} if description.machine else {}),
        **_grid(description),
    )
    switch, host = _add_nodes(graph, description)
    for cable in description.cables:
        own = cable.a in host or cable.b in host
        there, back = _links(cable, (host_link if own else None) or link)
        a, b = (host.get(end) or switch[end] for end in (cable.a, cable.b))
        connect(graph, a, b, there, back=back, ports=cable.ports)
    for rank, each in enumerate(description.hosts):
        if each.is_server:
            _join(graph, f"h{rank}", each, link, host_link)
    _add_tiers(graph, description, switch)
    sizes = tuple(size for size in description.hierarchy if size > 1)
    graph.graph["hierarchy"] = sizes or find_hierarchy(graph)
    _place(graph, description, switch, host)
    return graph


def _grid(description: Description) -> dict[str, tuple[int, ...]]:
    """Return the grid of hosts that closes into rings, if there is one; a torus is one."""
    is_torus = description.routing == "dimension_order"
    grid = description.grid or (description.shape if is_torus else ())
    places = [each.in_grid for each in description.hosts if each.in_grid is not None]
    in_grid = tuple(sorted(range(len(places)), key=places.__getitem__))
    return {"grid": grid, **({"in_grid": in_grid} if places else {})} if grid else {}


def _add_nodes(
    graph: nx.Graph[str], description: Description
) -> tuple[dict[str, str], dict[str, str]]:
    """Add all nodes; return the switch and the plain host of each name in the file."""
    switch: dict[str, str] = {}
    host: dict[str, str] = {}
    servers = 0
    for rank, each in enumerate(description.hosts):
        if each.is_server:
            name = add_host(graph, rank, NOWHERE)
            switch[each.name] = add_switch(graph, servers, 0, each.label, NOWHERE)
            graph.add_edge(name, switch[each.name], ports={name: 1, switch[each.name]: 1})
            graph.nodes[switch[each.name]].update(kind=each.kind or "server", inside=True)
            servers += 1
        else:
            host[each.name] = name = add_host(graph, rank, NOWHERE)
        graph.nodes[name]["label"] = each.label
        own = {IPV4: each.ipv4, MAC: each.mac}
        graph.nodes[name].update({key: value for key, value in own.items() if value is not None})
    for number, each in enumerate(description.switches, servers):
        switch[each.name] = name = add_switch(graph, number, 0, each.label, NOWHERE)
        graph.nodes[name]["kind"] = each.kind or kind_of(each.label)
    return switch, host


def kind_of(label: str) -> str:
    """Return a label without numbers at its end: `leaf` of `leaf-3`, `agg` of `agg 0.1`."""
    return re.sub(r"[\W\d_]+$", "", label) or "switch"


def _links(cable: Cable, usual: Link) -> tuple[Link, Link]:
    def filled(way: LinkDirection) -> Link:
        rate_bps = usual.rate_bps if way.rate_bps is None else way.rate_bps
        rate_bps += way.beside * usual.rate_bps
        if rate_bps > MOST_BPS:
            raise TopologyError(
                f"topology line {cable.line}: link {cable.a}-{cable.b}: at most {MOST_BPS} bit/s, "
                f"got {rate_bps} of links side by side"
            )
        return Link(
            rate_bps,
            usual.delay_ps if way.delay_ps is None else way.delay_ps,
            way.loss,
            way.buffer_bytes,
        )

    return filled(cable.there), filled(cable.back)


def _join(
    graph: nx.Graph[str], host: str, server: FileNode, link: Link, host_link: Link | None
) -> None:
    """Give the link inside a server its rate and delay, each the file's or the usual one."""
    join_server(graph, host, link.rate_bps, host_link)
    edge = graph.edges[host, attachment(graph, host)]
    if server.inner_rate_bps is None and server.inner_delay_ps is None:
        return
    if server.inner_rate_bps is not None:
        edge.pop("back", None)

    def own(usual: Link) -> Link:
        return Link(
            usual.rate_bps if server.inner_rate_bps is None else server.inner_rate_bps,
            usual.delay_ps if server.inner_delay_ps is None else server.inner_delay_ps,
        )

    edge["link"] = own(edge["link"])
    if "back" in edge:
        edge["back"] = {node: own(each) for node, each in edge["back"].items()}


def _add_tiers(graph: nx.Graph[str], description: Description, switch: dict[str, str]) -> None:
    """Give each switch its tier: the file's, or its distance from the nearest one with hosts."""
    if description.switches and description.switches[0].tier is not None:
        for each in description.switches:
            graph.nodes[switch[each.name]]["tier"] = each.tier
        return
    peers = switch_graph(graph)
    frontier = list(dict.fromkeys(attachment(graph, host) for host in all_hosts(graph)))
    tier = dict.fromkeys(frontier, 0)
    for name in frontier:  # it grows
        for peer in peers[name]:
            if peer not in tier:
                tier[peer] = tier[name] + 1
                frontier.append(peer)
    for name, height in tier.items():
        graph.nodes[name]["tier"] = height


def _place(
    graph: nx.Graph[str], description: Description, switch: dict[str, str], host: dict[str, str]
) -> None:
    """Place nodes as the file says; or remove all places, so that they are found when needed."""
    graph.graph["layout"] = layout = description.layout or "grid"
    for rank, each in enumerate((*description.hosts, *description.switches)):
        if each.pos is None:
            for node in graph:
                graph.nodes[node].pop("pos", None)
            return
        place: Point = each.pos
        if each.name in switch:
            graph.nodes[switch[each.name]]["pos"] = place
        if each.name in host:
            graph.nodes[host[each.name]]["pos"] = place
        elif each.is_host:
            x, y = BESIDE[layout]
            graph.nodes[f"h{rank}"]["pos"] = (place[0] + x, place[1] + y)
