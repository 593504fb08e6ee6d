"""The entries of switches for a NetReduce job: SwitchML's tree, and the ring's connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import finsy as fy
import networkx as nx

from ringleaf.errors import ConfigError
from ringleaf.ina.netreduce.wire import FROM_PREVIOUS, MOST_WINDOW, udp_port
from ringleaf.ina.switchml import control as switchml
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import port
from ringleaf.topologies.trees import AggregationTree

RINGS = 1024
"""Rows of the table `rings`."""

WIRE_QP = FROM_PREVIOUS + 1
"""The queue pair that all data go to, as it is on the wire."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection of a ring: a host's queue pair, and that of the host before it.

    Args:
        before: The host that sends.
        host: The host that receives.
        source_port: UDP source port of what it gets.
        base: The first packet's PSN.
    """

    before: str
    host: str
    source_port: int
    base: int = 0


def window_of(slots: int, most: int) -> int:
    """Return a connection's window in packets, of `slots` asked for and `most` that there are.

    It is a power of two, so that switches take a packet's slot from the low bits of its PSN.
    """
    return 1 << (min(slots, most, MOST_WINDOW).bit_length() - 1)


def entities(
    graph: nx.Graph[str], tree: AggregationTree, job: SwitchmlJob, ring: Sequence[Connection]
) -> dict[str, list[Any]]:
    """Return the P4Runtime entities of every switch of the tree, besides those that forward.

    Raises:
        ConfigError: If a switch has more than 64 children, or there are too many connections.
        TopologyError: If an edge of the tree is no link.
    """
    if len(ring) > RINGS:
        raise ConfigError(
            f"netreduce job {job.number}: switches know {RINGS} connections, got {len(ring)}"
        )
    by_switch: dict[str, list[Any]] = {}
    rows = [_ring(graph, job, each) for each in ring]
    for switch, switch_entities in switchml.entities(graph, tree, job).items():
        here = [each for each in ring if each.host in tree.children[switch]]
        by_switch[switch] = [
            *switch_entities,
            *rows,
            *(_delivery(graph, job, switch, each) for each in here),
        ]
    return by_switch


def _ring(graph: nx.Graph[str], job: SwitchmlJob, each: Connection) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "rings",
        match=fy.P4TableMatch(
            dst=ipv4(graph, each.host), dst_port=udp_port(job.number), dest_qp=WIRE_QP
        ),
        action=fy.P4TableAction("ring", job=job.number, base=each.base, slots=job.slots),
    )


def _delivery(
    graph: nx.Graph[str], job: SwitchmlJob, switch: str, each: Connection
) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "deliveries",
        match=fy.P4TableMatch(job=job.number, port=port(graph, switch, each.host)),
        action=fy.P4TableAction(
            "deliver",
            dmac=mac(graph, each.host, 1),
            src=ipv4(graph, each.before),
            dst=ipv4(graph, each.host),
            source_port=each.source_port,
            dest_qp=WIRE_QP,
            base=each.base,
        ),
    )
