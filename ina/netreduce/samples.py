"""NetReduce's packets for examples and measurements of its P4 programs."""

from __future__ import annotations

import struct
from functools import partial

import networkx as nx

from ringleaf.core.headers import ECN_CAPABLE
from ringleaf.core.units import format_count
from ringleaf.hosts.rc.wire import DEFAULT_PARTITION, ICRC_BYTES, PSN_AT, SEND_MIDDLE
from ringleaf.ina.netreduce.control import WIRE_QP, Connection, entities
from ringleaf.ina.netreduce.wire import LANES, udp_port
from ringleaf.ina.samples import Example, Packet, SampleRound, drawn_values, star, told_values
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.frames import host_frame
from ringleaf.topologies.graph import attachment, hosts, port
from ringleaf.topologies.trees import aggregation_tree

_JOB = 1
_SLOTS = 64


def _ring(graph: nx.Graph[str]) -> list[Connection]:
    names = hosts(graph)
    return [
        Connection(before, host, 0xC000 + place)
        for place, (before, host) in enumerate(zip(names, names[1:] + names[:1], strict=True))
    ]


def _packet(graph: nx.Graph[str], each: Connection, psn: int, values: bytes) -> Packet:
    """Return a packet of a connection, and the port at which it arrives."""
    bth = struct.pack(
        ">BBHII", SEND_MIDDLE, 0, DEFAULT_PARTITION, WIRE_QP, psn
    )  # the upper bytes of the last two are the notices and the request for acknowledgement
    to = mac(graph, each.host, 1), ipv4(graph, each.host)
    body = bth + values + bytes(ICRC_BYTES)
    frame = host_frame(
        graph, each.before, to, udp_port(_JOB), body, tos=ECN_CAPABLE, identification=1
    )
    return port(graph, attachment(graph, each.before), each.before), frame


def _example(lanes: int) -> Example:
    """Return the last of three workers' packets, which completes a position's sum."""
    graph = star(3)
    root = attachment(graph, hosts(graph)[0])
    ring = _ring(graph)
    job = SwitchmlJob(_JOB, slots=4, lanes=lanes)
    return Example(
        graph,
        root,
        entities(graph, aggregation_tree(graph, hosts(graph)), job, ring)[root],
        [_packet(graph, each, 0, told_values(i, lanes)) for i, each in enumerate(ring)],
        f"{root} has the packets of {format_count(len(ring) - 1, 'host')}; this one lets one go "
        "on to each",
    )


def _round(lanes: int) -> SampleRound:
    """Return two rounds of all slots, as 8 workers send them."""
    graph = star(8)
    root = attachment(graph, hosts(graph)[0])
    ring = _ring(graph)
    job = SwitchmlJob(_JOB, _SLOTS, lanes=lanes)
    values = drawn_values(len(ring), lanes)
    return SampleRound(
        graph,
        root,
        entities(graph, aggregation_tree(graph, hosts(graph)), job, ring)[root],
        [
            _packet(graph, each, position, own)
            for position in range(2 * _SLOTS)
            for each, own in zip(ring, values, strict=True)
        ],
        number_at=PSN_AT - 1,  # a request for acknowledgement, which is 0, and the PSN
        number_step=2 * _SLOTS,
    )


EXAMPLES = {f"netreduce-{lanes}": partial(_example, lanes) for lanes in LANES}
ROUNDS = {f"netreduce-{lanes}": partial(_round, lanes) for lanes in LANES}
