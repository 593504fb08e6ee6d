"""The rows of any topology, from which a format writes a file."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from ringleaf.core.units import exact_rate, exact_time
from ringleaf.topologies.addresses import format_ipv4, format_mac
from ringleaf.topologies.files.attributes import (
    BACK,
    HOST,
    IPV4,
    MAC,
    OUT_PORT,
    SERVER,
    SWITCH,
    USUAL,
)
from ringleaf.topologies.files.building import kind_of
from ringleaf.topologies.files.rows import FileRow, LinkRow, NetworkRows, NodeRow
from ringleaf.topologies.graph import (
    LOCAL_DELAY_PS,
    Link,
    Role,
    attachment,
    hosts,
    is_server,
    kind,
    link,
    port,
    switches,
)
from ringleaf.topologies.port_order import follow_an_order, in_port_order


def rows_of(graph: nx.Graph[str]) -> NetworkRows:
    """Return the rows of a topology: nodes in order of their names, links in order of ports.

    A server is one node, with the links of the switch inside it. Names are those of the graph;
    labels are those that it gives nodes. Links have ports where these follow from no order.
    """
    inside = {attachment(graph, host): host for host in hosts(graph) if is_server(graph, host)}
    places = {f"h{rank}": place for place, rank in enumerate(graph.graph.get("in_grid", ()))}
    own = [_node(graph, host, places) for host in hosts(graph)]
    others = [_node(graph, name, places) for name in switches(graph) if name not in inside]
    has_order = follow_an_order(graph)
    links_in_order = in_port_order(graph) if has_order else graph.edges
    links = [
        LinkRow(
            inside.get(a, a),
            inside.get(b, b),
            FileRow(0, _link_values(graph, a, b) | ({} if has_order else _ports(graph, a, b))),
        )
        for a, b in links_in_order
        if inside.get(a) != b and inside.get(b) != a
    ]
    about = {
        "hierarchy": "x".join(map(str, graph.graph["hierarchy"])),
        "routing": graph.graph["routing"],
    }
    if "shape" in graph.graph:
        about["shape"] = "x".join(map(str, graph.graph["shape"]))
    if "machine" in graph.graph:
        about["machine"] = "x".join(map(str, graph.graph["machine"]))
    if "grid" in graph.graph and graph.graph["routing"] != "dimension_order":
        about["grid"] = "x".join(map(str, graph.graph["grid"]))  # a torus is one
    if all("pos" in graph.nodes[name] for name in graph):
        about["layout"] = graph.graph["layout"]
    return NetworkRows((*own, *others), tuple(links), FileRow(0, about))


def _node(graph: nx.Graph[str], name: str, places: Mapping[str, int]) -> NodeRow:
    """Return the row of a node; `places` are those of hosts in a grid, if not their ranks."""
    is_host = graph.nodes[name]["role"] is Role.HOST
    forwards = is_host and is_server(graph, name)
    place = attachment(graph, name) if forwards else name
    data = graph.nodes[place]
    values = {"role": SERVER if forwards else HOST if is_host else SWITCH}
    if is_host:
        values["rank"] = name.removeprefix("h")
        values |= {"in_grid": str(places[name])} if name in places else {}
        own = graph.nodes[name]
        values |= {IPV4: format_ipv4(own[IPV4])} if IPV4 in own else {}
        values |= {MAC: format_mac(own[MAC])} if MAC in own else {}
    else:
        values["tier"] = str(data["tier"])
    if data["label"] != name:
        values["label"] = data["label"]
    what = kind(graph, place)
    if (what != SERVER) if forwards else (not is_host and what != kind_of(data["label"])):
        values["kind"] = what
    if "pos" in data:
        values |= {"x": f"{data['pos'][0]:.10g}", "y": f"{data['pos'][1]:.10g}"}
    return NodeRow(name, FileRow(0, values | (_inner(graph, name, place) if forwards else {})))


def _inner(graph: nx.Graph[str], host: str, switch: str) -> dict[str, str]:
    """Return the terms of a server's inner link where they are not the usual ones."""
    inner, back = link(graph, host, switch), link(graph, switch, host)
    peers = [peer for peer in graph.adj[switch] if peer != host]
    out_bps = sum(link(graph, switch, peer).rate_bps for peer in peers)
    in_bps = sum(link(graph, peer, switch).rate_bps for peer in peers)
    values = {}
    if (inner.rate_bps, back.rate_bps) != (out_bps, in_bps):
        values["inner_rate"] = exact_rate(inner.rate_bps)
    if inner.delay_ps != LOCAL_DELAY_PS:
        values["inner_delay"] = exact_time(inner.delay_ps)
    return values


def _link_values(graph: nx.Graph[str], a: str, b: str) -> dict[str, str]:
    there, back = _way_values(link(graph, a, b)), _way_values(link(graph, b, a))
    names = [name for name in {**there, **back} if there.get(name) != back.get(name)]
    return there | {f"{name}{BACK}": back.get(name, USUAL) for name in names}


def _ports(graph: nx.Graph[str], a: str, b: str) -> dict[str, str]:
    """Return the ports of a link's switches."""
    ends = ((a, b, OUT_PORT), (b, a, OUT_PORT + BACK))
    return {
        name: str(port(graph, node, peer))
        for node, peer, name in ends
        if graph.nodes[node]["role"] is Role.SWITCH
    }


def _way_values(way: Link) -> dict[str, str]:
    values = {"rate": exact_rate(way.rate_bps), "delay": exact_time(way.delay_ps)}
    if way.loss is not None:
        values["loss"] = repr(way.loss)
    if way.queue_bytes is not None:
        values["buffer"] = str(way.queue_bytes)
    return values
