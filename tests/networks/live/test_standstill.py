"""Hosts that stand still while trees become others, by sockets in this process."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import Any

from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.faults import Reroute, Restart
from ringleaf.networks.live.members import listen, say
from ringleaf.networks.live.standstill import Moved, move_trees, rebuilt
from ringleaf.networks.mininet.rerouting import RouteChange, route_changes, with_trees
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import TreeRebuilt
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build


@dataclass
class Calls:
    """A process that calls, and notes what hosts have been told when it writes."""

    hosts: list[socket.socket]
    told: list[list[dict[str, Any]]] = field(default_factory=list)
    call: int = 0

    def hear_groups(self) -> list[int]:
        return [0, 2]

    def write_trees(self) -> None:
        self.told.append([_next(each) for each in self.hosts])
        for each in self.hosts:
            each.setblocking(False)
            try:
                assert not each.recv(1), "no host may go on before switches are told"
            except BlockingIOError:
                each.setblocking(True)


@dataclass
class Leader:
    """A process that leads hosts over these sockets."""

    controls: list[socket.socket]

    @property
    def count(self) -> int:
        return len(self.controls)

    def tell(self, message: dict[str, Any]) -> None:
        for each in self.controls:
            say(each, message)

    def hear(self, number: int) -> dict[str, Any]:
        return _next(self.controls[number])


def _next(control: socket.socket) -> dict[str, Any]:
    message = listen(control)
    assert message is not None
    return message


def test_hosts_go_on_from_the_least_rounds_when_switches_have_been_told() -> None:
    """By hand: two hosts, of which the second has finished something meanwhile."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    hosts = [theirs for _, theirs in pairs]
    leader = Leader([ours for ours, _ in pairs])
    say(hosts[0], {"rounds": [[0, [4, 5]], [2, [7]]]})
    say(hosts[1], {"finished": 12})
    say(hosts[1], {"rounds": [[0, [5, 5]]]})
    calls, noted = Calls(hosts), list[tuple[int, dict[str, Any]]]()

    moved = move_trees(calls, leader, lambda number, message: noted.append((number, message)))

    assert moved.groups == (0, 2)
    assert calls.told == [[{"halt": [0, 2]}] * 2]
    assert noted == [(1, {"finished": 12})]
    assert [_next(each) for each in hosts] == [{"go_on": [[0, [4, 5]], [2, [7]]]}] * 2
    for pair in pairs:
        for each in pair:
            each.close()


def test_each_group_has_its_changes_and_knows_when_its_hosts_went_on() -> None:
    """By hand: three jobs, of which the second had no result after the last change."""
    moves = [Moved(1_000, (0, 1)), Moved(1_500, (0,)), Moved(1_700, (1, 2))]
    counters: list[dict[str, Any]] = [
        {"resumed": [(0, 900_000), (1, None), (2, 800_000)]},
        {"resumed": [(0, 950_000), (1, 990_000)]},
        {"resumed": []},  # a host that works for none of them
    ]

    assert rebuilt(moves, 900, counters) == (
        TreeRebuilt(100_000, None),
        TreeRebuilt(100_000, None),
        TreeRebuilt(600_000, 950_000),
        TreeRebuilt(800_000, None),
        TreeRebuilt(800_000, 800_000),
    )


def test_changes_of_routes_have_those_of_trees_and_what_undoes_them() -> None:
    """By hand: the root fails, then the other spine does when the first is back."""
    options = NetworkOptions(system=SYSTEMS["switchml"], reroute_ps=1)
    graph = build("leafspine,leaves=2,spines=2,hosts=1")
    rebuilders = VirtualNetwork(graph, options).endpoints.rebuilders
    spines = [frozenset((spine, leaf) for leaf in ("s0", "s1")) for spine in ("s2", "s3")]
    reroutes = [
        Reroute(10, spines[0]),
        Reroute(20, frozenset()),
        Reroute(30, spines[1]),
        Reroute(40, frozenset()),
    ]

    def planned(*restarts: Restart) -> list[RouteChange]:
        routes = route_changes(graph, options, reroutes)
        return with_trees(graph, routes, reroutes, rebuilders, restarts)

    changes = planned()
    assert [(each.after_ps, each.groups) for each in changes] == [
        (10, (0,)),
        (20, ()),
        (30, (0,)),
        (40, ()),
    ]
    assert [set(each.trees) for each in changes if each.groups] == [{"s0", "s1", "s2", "s3"}] * 2
    assert [bool(each.undo_trees) for each in changes] == [True, True, False, False]
    assert [each.groups for each in planned()] == [each.groups for each in changes]

    later = planned(Restart(25, "s9"), Restart(15, "s0"))  # a leaf, which has lost its sums
    assert [each.groups for each in later] == [(0,), (0,), (0,), ()]
