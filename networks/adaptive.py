"""Table entries by which switches route adaptively, as `p4/ugal.p4` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np

from ringleaf.core.units import PS_PER_US
from ringleaf.switches.p4runtime.table_rows import Call, TableRows
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.detours import Pair, detours, with_usual_ways
from ringleaf.topologies.graph import port, switches
from ringleaf.topologies.routing import dealt, longest_rtt_ps, path, routes

PACKET_BYTES = 4096
"""The size of the packets whose round trip is the pause between two flowlets."""

WEIGH: Call = ("weigh", ("port", "detour_port", "links", "detour_links"))
PART: Call = ("begin_after", ("gap",))

Ways = Mapping[Pair, Sequence[str]]


def adaptive_rows(graph: nx.Graph[str]) -> dict[str, Sequence[TableRows]]:
    """Return the rows of each switch, for a topology that `with_ugal` has made.

    The first switch of a pair has a row with the ports and the links of its two ways. All
    switches have the pause after which a flow may change its way.
    """
    usual, pause = _usual_ways(graph), _flowlets(graph)
    return {switch: (_first_switch(graph, switch, usual), pause) for switch in switches(graph)}


def _usual_ways(graph: nx.Graph[str]) -> Ways:
    """Return the usual way of each pair that has a detour, too."""
    plain = with_usual_ways(graph)
    table = dealt(plain, routes(plain))
    return {pair: path(plain, *pair, table=table) for pair in detours(graph)}


def _first_switch(graph: nx.Graph[str], switch: str, usual: Ways) -> TableRows:
    """Return the rows of the pairs whose packets come to this switch first.

    Links are those between switches, as both ways have the hosts' own.
    """
    ends: list[list[int]] = []
    rows: list[list[int]] = []
    for pair, nodes in usual.items():
        if nodes[1] == switch:
            both = nodes, detours(graph)[pair].nodes
            ends.append([ipv4(graph, host) for host in pair])
            ports = [port(graph, switch, each[2]) for each in both]
            rows.append([*ports, *(len(each) - 3 for each in both)])
    src, dst = np.array(ends, np.uint64).reshape(-1, 2).T
    calls = np.zeros(len(rows), np.int64)
    arguments = np.array(rows, np.uint64).reshape(-1, len(WEIGH[1]))
    return TableRows("first_switch", {"src": (src,), "dst": (dst,)}, (WEIGH,), calls, arguments)


def _flowlets(graph: nx.Graph[str]) -> TableRows:
    """Return the pause between flowlets: the default action of a table without keys.

    A sender that waited for a round trip has mostly heard of all that it sent, so what follows by
    the other way can't overtake it.
    """
    gap_us = -(-longest_rtt_ps(graph, PACKET_BYTES) // PS_PER_US)
    arguments = np.array([[gap_us]], np.uint64)
    return TableRows("flowlets", {}, (PART,), np.zeros(1, np.int64), arguments)
