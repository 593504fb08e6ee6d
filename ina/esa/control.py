"""The table entries of an ESA job: ATP's, and where sums go that lose their aggregators."""

from __future__ import annotations

import finsy as fy
import networkx as nx

from ringleaf.ina.atp import control
from ringleaf.ina.atp.control import AtpJob, Entities
from ringleaf.ina.atp.roster import Adder, make_roster
from ringleaf.ina.atp.wire import gradient_port
from ringleaf.topologies.addresses import ipv4

FADING = 1
"""Bits that a block's urgency loses with each gradient that it keeps out."""


def entities(graph: nx.Graph[str], job: AtpJob) -> dict[str, Entities]:
    """Return the P4Runtime entities of every switch that the job needs, besides those that forward.

    Raises:
        ConfigError: If there are more workers in a rack, or more racks, than bits.
        TopologyError: If a server's switch can't reach all workers.
    """
    by_switch = control.entities(graph, job, fading=FADING)
    for server, host in enumerate(job.servers):
        address = ipv4(graph, host)
        for switch, adder in make_roster(graph, job.workers, host, job.bits).adders.items():
            by_switch[switch].append(_home(job, server, address, adder))
    return by_switch


def _home(job: AtpJob, server: int, address: int, adder: Adder) -> fy.P4TableEntry:
    action = fy.P4TableAction(
        "send_home",
        address=address,
        udp_port=gradient_port(job.number),
        rack=adder.rack,
        complete=adder.complete,
    )
    return fy.P4TableEntry(
        "homes", match=fy.P4TableMatch(job=job.number, server=server), action=action
    )
