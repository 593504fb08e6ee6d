"""The tables of a flow network whose hosts, flows and links stand for classes of them."""

from __future__ import annotations

import networkx as nx

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.networks.endpoints.connections import ChannelFlow, Connections
from ringleaf.networks.flow.classes import Classes
from ringleaf.networks.flow.layout import Cables, FlowTables, QueuePair
from ringleaf.networks.virtual.state import make_network, open_network
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph


class ClassLayout(FlowTables):
    """A flow network's tables, with a host for each class of ranks and a link for each of links.

    Args:
        store: The store that has the hosts.
        connections: The agents and queue pairs of one host for each class of ranks.
        classes: The classes.
        ring: The completion ring.
        bins: Of the series of links' loads.
    """

    def __init__(
        self, store: Store, connections: Connections, classes: Classes, *, ring: int, bins: int
    ) -> None:
        self._classes = classes
        columns, first = classes.columns, classes.first_link
        at = make_network(
            *(store,),
            ports=len(first),
            nodes=classes.count,
            agents=classes.count,
            ring=ring,
            bins=bins,
            seed=0,
        )
        net = open_network(store.arena, at)
        net.agents[:, s.AGENT_AT] = connections.agents
        net.nodes[:, s.FIRST_PORT] = classes.of_link[classes.own_links]
        cables = Cables(
            [columns.ends[link] for link in first.tolist()],
            columns.rate_bps[first].tolist(),
            columns.delay_ps[first].tolist(),
            columns.is_of_host[first].tolist(),
            int(columns.is_of_host.sum()),
        )
        super().__init__(store, connections, [0], cables, at)

    def _end(self, host: int, number: int, flow: ChannelFlow) -> QueuePair:
        peer, back = peer_of(self._classes, host, flow)
        return QueuePair(host, number, peer, self._connections.qp(peer, back), flow.group)

    def _links(self, end: QueuePair) -> list[tuple[int, int]]:
        stream = self._connections.flow(end.host, end.number).stream
        return self._classes.way(end.host, self._classes.column_of(end.host, stream.peer))


def peer_of(classes: Classes, host: int, flow: ChannelFlow) -> tuple[int, ChannelFlow]:
    """Return the class of a flow's peer, and the flow as its first rank has it."""
    there, like = classes.peer_of(host, flow.stream.peer)
    return there, flow._replace(stream=flow.stream._replace(peer=like))


def hosts_of(classes: Classes) -> nx.Graph[str]:
    """Return a graph of one host for each class of ranks; only the rates of their links count."""
    graph = new_graph("classes", (classes.count,))
    top = add_switch(graph, 0, 1, "top", (0, 1))
    for number, rate_bps in enumerate(classes.columns.rate_bps[classes.own_links].tolist()):
        host, leaf = add_host(graph, number, (number, 0)), f"s{1 + number // _AT_SWITCH}"
        if leaf not in graph:
            add_switch(graph, 1 + number // _AT_SWITCH, 0, "leaf", (number, 0.5))
            connect(graph, leaf, top, Link(rate_bps, 0))
        connect(graph, host, leaf, Link(rate_bps, 0))
    return graph


_AT_SWITCH = 128  # hosts, which have addresses by their ports


def join(connections: Connections, classes: Classes, flows: list[tuple[int, ChannelFlow]]) -> None:
    """Make the queue pairs of all classes.

    Args:
        connections: The agents of one host for each class.
        classes: The classes.
        flows: Hosts and their flows, whose peers have their numbers as ranks; a flow may come
            twice.
    """
    distinct = dict.fromkeys(flows)
    for host, flow in distinct:
        connections.add(host, flow)
    new = [(host, flow, *peer_of(classes, host, flow)) for host, flow in distinct]
    rates = [
        int(classes.path_bps[host, classes.column_of(host, flow.stream.peer)])
        for host, flow in distinct
    ]
    connections.join(new, rates)
