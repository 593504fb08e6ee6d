"""New routes of live switches while packets are under way, written by a process of its own."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import networkx as nx

from ringleaf.core.units import PS_PER_NS
from ringleaf.errors import TopologyError
from ringleaf.ina.holdings import Updates
from ringleaf.ina.rebuilding import Rebuilder
from ringleaf.networks.faults import Agenda, Reroute, Restart, left_of
from ringleaf.networks.forwarding import forwarding_rows, route_updates
from ringleaf.networks.live.members import hear, listen, say
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
        trees: What is written to switches while hosts stand still, as jobs have other trees then.
        undo_trees: What has the usual trees again after that.
        groups: The groups of these jobs.
    """

    after_ps: int
    updates: Updates
    undo: Updates
    trees: Updates = field(default_factory=dict)
    undo_trees: Updates = field(default_factory=dict)
    groups: tuple[int, ...] = ()


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
        try:
            after = forwarding_rows(
                left_of(graph, each.without), ecmp=options.ecmp, ecn=options.ecn
            )
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


def with_trees(
    graph: nx.Graph[str],
    changes: Sequence[RouteChange],
    reroutes: Iterable[Reroute],
    rebuilders: Mapping[int, Rebuilder],
    restarts: Iterable[Restart] = (),
) -> list[RouteChange]:
    """Return changes with what they write where jobs, by group, get other trees at these times.

    Switches that have restarted by then have lost their sums.
    """
    planners = {group: copy(each) for group, each in rebuilders.items()}
    routes = {each.after_ps: each for each in changes}
    agenda = Agenda(restarts, 0)
    complete: list[RouteChange] = []
    undo: Updates = {}
    for each in sorted(reroutes, key=lambda each: each.after_ps):
        change = routes.get(each.after_ps, RouteChange(each.after_ps, {}, undo))
        undo = change.undo
        left = left_of(graph, each.without)
        for restart in agenda.take_due(each.after_ps):
            for planner in planners.values():
                planner.note_restart(restart.switch)
        planned = {group: planner.plan(left) for group, planner in planners.items()}
        moving = {group: updates for group, updates in planned.items() if updates is not None}
        back = (copy(planner).plan(None) or {} for planner in planners.values())
        trees, undo_trees = _together(moving.values()), _together(back)
        complete.append(replace(change, trees=trees, undo_trees=undo_trees, groups=tuple(moving)))
    return complete


def _together(parts: Iterable[Updates]) -> Updates:
    """Return all of these updates, by switch."""
    by_switch: dict[str, list[Any]] = {}
    for part in parts:
        for name, updates in part.items():
            by_switch.setdefault(name, []).extend(updates)
    return by_switch


class Rerouting(ControlProcess):
    """The process that writes routes in one run, and trees when hosts stand still.

    Args:
        door: Writes to the switches, from that process alone.
        changes: What it writes, in the order of time.
    """

    def __init__(self, door: Door, changes: Sequence[RouteChange]) -> None:
        super().__init__("routes", partial(_be_rerouting, door, changes))

    @property
    def call(self) -> int:
        """The descriptor that becomes readable when trees are to be written."""
        return self._member.control.fileno()

    def hear_groups(self) -> list[int]:
        """Return the groups whose trees are to be written; their hosts must stand still."""
        groups: list[int] = hear(self._member)["trees"]
        return groups

    def write_trees(self) -> None:
        """Have them written, and wait until they are."""
        say(self._member.control, {"write": True})
        self._await("written")


def _be_rerouting(door: Door, changes: Sequence[RouteChange], control: socket.socket) -> None:
    """Write changes of routes at their times, and have the usual ones when the run is over."""
    # Which connects.
    door({name: () for change in changes for name in (*change.updates, *change.trees)})
    say(control, {"ready": True})
    start_ns = hear_start(control)
    if start_ns is not None:
        door(_write(door, changes, start_ns, control))
    say(control, {"settled": True})


def _write(
    door: Door, changes: Sequence[RouteChange], start_ns: int, control: socket.socket
) -> Updates:
    """Write changes until the run is over; return what has the usual entries again."""
    undo: Updates = {}
    undo_trees: Updates = {}
    for change in changes:
        if is_over(control, start_ns + change.after_ps // PS_PER_NS):
            break
        door(change.updates)
        undo = change.undo
        if change.groups:
            say(control, {"trees": change.groups})
            if "write" not in (listen(control) or {}):  # likewise, before hosts stood still
                return _together([undo, undo_trees])
            door(change.trees)
            undo_trees = change.undo_trees
            say(control, {"written": True})
    listen(control)
    return _together([undo, undo_trees])
