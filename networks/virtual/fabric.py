"""The event loop's tables, laid out from a topology, its switches and its hosts' agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store, Words
from ringleaf.core.compiled import address_of
from ringleaf.hosts.agent import HostAgent, HostProtocol
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual.drops import watch_drops
from ringleaf.networks.virtual.state import NetworkState, make_network, open_network, watch_queues
from ringleaf.switches.engine.disciplines import make_port_queues
from ringleaf.switches.switch import Switch
from ringleaf.topologies.delays import host_delay_ps, node_delay_ps, switch_delay_ps
from ringleaf.topologies.graph import hosts, link, neighbors, switches

Handlers = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class PortPlace:
    """A port of a node, and the node at the other end of its link."""

    node: str
    port: int
    peer: str


def places(graph: nx.Graph[str]) -> list[PortPlace]:
    """Return all ports, in the order of their global numbers: switches' first, then hosts'."""
    return [
        PortPlace(node, number, peer)
        for node in [*switches(graph), *hosts(graph)]
        for number, peer in neighbors(graph, node).items()
    ]


def lay_out(
    graph: nx.Graph[str],
    ports: Sequence[PortPlace],
    store: Store,
    options: NetworkOptions,
    by_name: Mapping[str, Switch],
    agents: Sequence[Sequence[HostAgent]],
    *,
    ring: int,
    seed: int,
    owners: int = 1,
) -> int:
    """Lay the network out in `store`, with each host's agents; return its block's offset.

    `ports` are the graph's `places`.
    """
    wires = [link(graph, place.node, place.peer) for place in ports]
    queues = [
        make_port_queues(store, wire.queue_bytes_or(options.queue_bytes), options.discipline)
        if place.node in by_name
        else 0
        for place, wire in zip(ports, wires, strict=True)
    ]
    nodes = [*switches(graph), *hosts(graph)]
    at = make_network(
        store,
        ports=len(ports),
        nodes=len(nodes),
        agents=sum(len(each) for each in agents),
        ring=ring,
        bins=options.bins,
        seed=seed,
        owners=owners,
    )
    if options.watch_queues:
        watch_queues(store, at)
    watch_drops(store, at)
    net = open_network(store.arena, at)
    net.state[s.DUPLICATE] = round(options.duplicate * s.PROBABILITY_ONE)
    net.state[s.REORDER] = round(options.reorder * s.PROBABILITY_ONE)
    net.state[s.JITTER_PS] = options.jitter_ps
    fill_ports(net, graph, ports, nodes)
    net.ports[:, s.QUEUES_AT] = queues
    net.ports[:, s.LOSS] = [round(wire.loss_or(options.loss) * s.PROBABILITY_ONE) for wire in wires]
    _fill_switches(net, [by_name[name] for name in switches(graph)])
    net.nodes[: len(by_name), s.PASS_PS] = switch_delay_ps(graph)
    _fill_hosts(net, agents, first_node=len(by_name))
    return at


def fill_ports(
    net: NetworkState, graph: nx.Graph[str], ports: Sequence[PortPlace], nodes: Sequence[str]
) -> None:
    """Write the rows of all ports: links, rates and delays; no queues and losses."""
    number = {(place.node, place.peer): here for here, place in enumerate(ports)}
    peers = [number[place.peer, place.node] for place in ports]
    wires = [link(graph, place.node, place.peer) for place in ports]
    index = {node: number for number, node in enumerate(nodes)}
    node = np.array([index[place.node] for place in ports])
    inward_ps = np.array([node_delay_ps(graph, name) for name in nodes])[node]
    is_host = np.isin(nodes, hosts(graph))[node]
    net.ports[:, s.PEER], net.ports[:, s.NODE] = peers, node
    net.ports[:, s.LOCAL_PORT] = [place.port for place in ports]
    net.ports[:, s.INWARD_PS] = inward_ps
    net.ports[:, s.OUTWARD_PS] = np.where(is_host, host_delay_ps(graph), 0)
    net.ports[:, s.RATE_BPS] = [wire.rate_bps for wire in wires]
    net.ports[:, s.DELAY_PS] = [wire.delay_ps for wire in wires]
    net.ports[:, s.DELAY_PS] += net.ports[:, s.OUTWARD_PS] + inward_ps[peers]
    net.nodes[node[::-1], s.FIRST_PORT] = np.arange(len(ports))[::-1]


def _fill_switches(net: NetworkState, engines: Sequence[Switch]) -> None:
    rows = net.nodes[: len(engines)]
    rows[:, s.KIND] = s.SWITCH
    rows[:, s.BLOCK_AT] = [switch.at for switch in engines]
    programs = {switch.program for switch in engines}
    addresses = {each: (address_of(each.ingress), address_of(each.egress)) for each in programs}
    for row, switch in zip(rows, engines, strict=True):
        row[[s.INGRESS, s.EGRESS]] = addresses[switch.program]


def _fill_hosts(
    net: NetworkState, agents: Sequence[Sequence[HostAgent]], *, first_node: int
) -> None:
    """Give each host its agents, which have consecutive rows."""
    first = 0
    known: dict[HostProtocol, Handlers] = {}
    for node, own in enumerate(agents, first_node):
        net.nodes[node, s.KIND] = s.HOST
        net.nodes[node, s.FIRST_AGENT], net.nodes[node, s.AGENT_COUNT] = first, len(own)
        for row, agent in zip(net.agents[first : first + len(own)], own, strict=True):
            if agent.protocol not in known:
                known[agent.protocol] = _handlers(agent.protocol)
            _fill_agent(row, agent, node, known[agent.protocol])
            net.nodes[node, s.FETCHES_AHEAD] |= row[s.FETCH_AHEAD] != 0
        first += len(own)


def fill_agent(row: Words, agent: HostAgent, node: int) -> None:
    """Enter an agent that is on a node into the network's table."""
    _fill_agent(row, agent, node, _handlers(agent.protocol))


def _fill_agent(row: Words, agent: HostAgent, node: int, handlers: Handlers) -> None:
    row[s.AGENT_AT], row[s.AGENT_NODE], row[s.AGENT_OWNER] = agent.block, node, agent.owner
    row[s.RECEIVE], row[s.TRANSMIT], row[s.FIRE_TIMER], row[s.FETCH_AHEAD] = handlers


def _handlers(protocol: HostProtocol) -> Handlers:
    """Return the addresses of a protocol's handlers: receive, transmit, fire_timer, fetch_ahead."""
    fetch_ahead = getattr(protocol, "fetch_ahead", None)
    return (
        address_of(protocol.receive),
        address_of(protocol.transmit),
        address_of(protocol.fire_timer),
        address_of(fetch_ahead) if fetch_ahead else 0,
    )
