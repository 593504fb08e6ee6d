"""New routes of live switches while packets are under way, written by a process of its own."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import networkx as nx

from ringleaf.core.units import PS_PER_NS
from ringleaf.errors import TopologyError
from ringleaf.ina.holdings import Updates
from ringleaf.networks.faults import Reroute
from ringleaf.networks.forwarding import forwarding_rows, route_updates
from ringleaf.networks.live.members import listen, say
from ringleaf.networks.mininet.control_process import ControlProcess, hear_start, is_over
from ringleaf.networks.mininet.programming import Door
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.graph import switches


@dataclass(frozen=True, slots=True)
class RouteChange:
    """A change of routes.

    Attributes:
        after_ps: Time since the run's start.
        updates: What is written to switches then.
        undo: What has the usual routes again after it.
    """

    after_ps: int
    updates: Updates
    undo: Updates


def route_changes(
    graph: nx.Graph[str], options: NetworkOptions, reroutes: Iterable[Reroute]
) -> list[RouteChange]:
    """Return what each change of routes writes to live switches.

    Switches whose entities are a user's own keep them. Where no way leads around links, routes
    stay.
    """
    names = [
        name
        for name in switches(graph)
        if name not in options.assigned or options.assigned[name].entities is None
    ]
    usual = routes = forwarding_rows(graph, ecmp=options.ecmp, ecn=options.ecn)
    changes: list[RouteChange] = []
    for each in sorted(reroutes, key=lambda each: each.after_ps):
        left = graph.copy()
        left.remove_edges_from(each.without)
        try:
            after = forwarding_rows(left, ecmp=options.ecmp, ecn=options.ecn)
        except TopologyError:  # packets wait for the old way
            continue
        updates, undo = _updates(names, routes, after), _updates(names, after, usual)
        changes.append(RouteChange(each.after_ps, updates, undo))
        routes = after
    return changes


def _updates(
    names: Iterable[str], before: Mapping[str, Sequence[Any]], after: Mapping[str, Sequence[Any]]
) -> Updates:
    updates = {name: route_updates(before[name], after[name]) for name in names}
    return {name: each for name, each in updates.items() if each}


def rerouting(door: Door, changes: Sequence[RouteChange]) -> ControlProcess:
    """Return a process that writes routes in one run.

    Args:
        door: Writes to the switches, from that process alone.
        changes: What it writes, in the order of time.
    """
    return ControlProcess("routes", partial(_be_rerouting, door, changes))


def _be_rerouting(door: Door, changes: Sequence[RouteChange], control: socket.socket) -> None:
    """Write changes of routes at their times, and have the usual ones when the run is over."""
    door({name: () for change in changes for name in change.updates})  # which connects
    say(control, {"ready": True})
    undo: Updates = {}
    start_ns = hear_start(control)
    if start_ns is not None:
        for change in changes:
            if is_over(control, start_ns + change.after_ps // PS_PER_NS):
                break
            door(change.updates)
            undo = change.undo
        listen(control)
    door(undo)
    say(control, {"settled": True})
