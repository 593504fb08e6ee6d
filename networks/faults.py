"""Disturbances of a run: links that lose, damage or slow packets, restarts of switches, new routes.

They happen between events, at a time of their own. A link that is down loses everything; a burst
of losses is a loss rate that is set and reset; a loss in one direction concerns one port. Faults as
people write them (`ringleaf.core.faults`) become disturbances of a topology here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import networkx as nx

from ringleaf.core.faults import CORRUPT, DOWN, LOSS, RATE, SLOW, NetworkFault
from ringleaf.core.units import FOREVER_PS, exact_rate, format_count
from ringleaf.errors import ConfigError
from ringleaf.topologies.detours import detours
from ringleaf.topologies.graph import hosts, index, link, neighbors, switches

if TYPE_CHECKING:
    from ringleaf.ina.systems import System

Direction = tuple[str, str]
"""A direction of a link: its sending and its receiving end."""


@dataclass(frozen=True, slots=True)
class LinkLoss:
    """A change of the probability with which one direction of a link loses packets.

    Attributes:
        after_ps: Time since the run's start.
        link: The direction.
        loss: Probability, 0 to 1; None restores that of the link.
    """

    after_ps: int
    link: Direction
    loss: float | None


@dataclass(frozen=True, slots=True)
class LinkDamage:
    """A change of the probability with which a packet gets a wrong bit in one direction of a link.

    Attributes:
        after_ps: Time since the run's start.
        link: The direction.
        share: Probability, 0 to 1, of packets that are not lost; None: 0 again.
    """

    after_ps: int
    link: Direction
    share: float | None


@dataclass(frozen=True, slots=True)
class LinkRate:
    """A change of the rate of one direction of a link; packets already on the line keep theirs.

    Attributes:
        after_ps: Time since the run's start.
        link: The direction.
        rate_bps: The rate; None restores that of the link.
    """

    after_ps: int
    link: Direction
    rate_bps: int | None


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart of a switch: it loses registers, counters and queues; its tables are written anew.

    Attributes:
        after_ps: Time since the run's start.
        switch: Its name.
    """

    after_ps: int
    switch: str


@dataclass(frozen=True, slots=True)
class Reroute:
    """New routes of all switches, which lead around links that are down.

    Attributes:
        after_ps: Time since the run's start.
        without: Those links, by their ends; where no way leads around them, routes stay.
    """

    after_ps: int
    without: frozenset[Direction]


Disturbance = LinkLoss | LinkDamage | LinkRate | Restart | Reroute

PROPERTIES = {DOWN: LOSS, LOSS: LOSS, CORRUPT: CORRUPT, RATE: RATE}
"""Kind of fault -> what of a link it changes, as one fault at a time may."""


def disturbances_of(
    faults: Sequence[NetworkFault], graph: nx.Graph[str], reroute_ps: int | None = None
) -> list[Disturbance]:
    """Return what faults do to a topology.

    Args:
        faults: The faults.
        graph: The topology.
        reroute_ps: The time from when links between switches go down, or come back, until switches
            have routes that know of it; None: routes stay as they are.

    Raises:
        ConfigError: If a place is none of the topology, a link would be faster than it is without
            faults, or the topology's routes can't lead around links.
    """
    changes: list[Disturbance] = []
    restarting = frozenset(switches(graph))
    for fault in faults:
        _check_possible(fault, graph)
    check_apart(faults, graph)
    spans = [(start_ps, end_ps, fault) for fault in faults for start_ps, end_ps in fault.spans()]
    # What begins first is over first, so that a fault may begin when another one of its link ends.
    for start_ps, end_ps, fault in sorted(spans, key=lambda each: each[0]):
        changes += _steps(fault, links_of(graph, fault.place), start_ps, end_ps)
        if fault.kind == DOWN and fault.place in restarting and end_ps is not None:
            changes.append(Restart(end_ps, fault.place))
    if reroute_ps is not None:
        _check_routes(graph)
        changes += _reroutes(faults, graph, reroute_ps)
    return changes


def check_verified(
    kinds: Iterable[str], systems: Iterable[System], *, trims: bool, where: str = ""
) -> None:
    """Check that packets with a wrong bit are noticed, if there will be some.

    Args:
        kinds: The kinds of all faults.
        systems: The network's aggregation systems.
        trims: Whether switches trim packets.
        where: The beginning of the message.

    Raises:
        ConfigError: If some packets have nothing by which they would be.
    """
    if CORRUPT not in kinds:
        return
    if trims:
        raise ConfigError(
            f"{where}faults: packets that switches trim have no ICRC any more, by which receivers "
            f"find a wrong bit, got {CORRUPT} and trim; leave out either of them"
        )
    for system in systems:
        if not system.has_icrc:
            raise ConfigError(
                f"{where}faults: nothing that adds up {system.name}'s packets verifies a checksum "
                f"of their values, so sums would be wrong, got {CORRUPT}; take {LOSS}, or an "
                "algorithm of hosts"
            )


def _check_possible(fault: NetworkFault, graph: nx.Graph[str]) -> None:
    """Check that a network can have a fault; links get no faster, as bounds are of their rates."""
    if fault.kind == SLOW:
        raise ConfigError(
            f"faults: a network computes nothing, got {str(fault)!r}; hosts of workloads do "
            "(ringleaf workload run)"
        )
    for ends in links_of(graph, fault.place) if fault.kind == RATE else ():
        usual_bps = link(graph, *ends).rate_bps
        if fault.value > usual_bps:
            raise ConfigError(
                f"faults: a link can't get faster than {exact_rate(usual_bps)}, which it has, got "
                f"{str(fault)!r}; raise rate, or the topology's rates"
            )


class LiveDisturbances(NamedTuple):
    """What faults do to a live network: to its links, its switches and its routes."""

    changes: list[LinkLoss | LinkDamage | LinkRate]
    restarts: list[Restart]
    reroutes: list[Reroute]


def live_disturbances(disturbances: Iterable[Disturbance]) -> LiveDisturbances:
    """Return disturbances by what they are of."""
    by_kind = LiveDisturbances([], [], [])
    for each in disturbances:
        if isinstance(each, Restart):
            by_kind.restarts.append(each)
        elif isinstance(each, Reroute):
            by_kind.reroutes.append(each)
        else:
            by_kind.changes.append(each)
    return by_kind


def check_restarts(
    disturbances: Iterable[Disturbance], *, records: bool, pauses: bool, where: str = ""
) -> None:
    """Check that nothing counts on what a switch has, if one restarts.

    Args:
        disturbances: All of them.
        records: Whether traces are recorded.
        pauses: Whether ports pause one another.
        where: The beginning of the message.

    Raises:
        ConfigError: If a switch restarts, and something does.
    """
    restart = next((each for each in disturbances if isinstance(each, Restart)), None)
    if restart is not None and (records or pauses):
        why = (
            "a trace has one beginning of each switch, got record or pcap"
            if records
            else "a switch would lose its counts of who is paused, got pfc"
        )
        raise ConfigError(
            f"{where}faults: {why} and {restart.switch!r} down and back; leave out either of them"
        )


def check_fluid(faults: Sequence[NetworkFault], *, adds: bool) -> None:
    """Check that flows have a form for faults.

    Args:
        faults: The faults.
        adds: Whether switches add up flows.

    Raises:
        ConfigError: If they have none for one of them.
    """
    for fault in faults:
        if adds and fault.kind == DOWN:
            raise ConfigError(
                "faults: no fluid model covers aggregation by switches on links that fail, got "
                f"{str(fault)!r}; take net=virtual"
            )


def _check_routes(graph: nx.Graph[str]) -> None:
    """Check that routes of a topology can be computed again with fewer links."""
    rule = graph.graph["routing"]
    if rule != "shortest":
        raise ConfigError(
            f"reroute: routes by a rule lead around nothing, got {rule} of {graph.name}; "
            "leave it out"
        )
    if ways := detours(graph):
        raise ConfigError(
            "reroute: is for routes dealt and ecmp, got routes of "
            f"{format_count(len(ways), 'pair')} of hosts; leave it out"
        )


def check_apart(faults: Iterable[NetworkFault], graph: nx.Graph[str]) -> None:
    """Check that no two faults change one property of a link at the same time.

    Args:
        faults: Faults of links and nodes.
        graph: The topology.

    Raises:
        ConfigError: If some do, or a place is none of the topology.
    """
    taken: dict[tuple[frozenset[str], str], list[tuple[int, int, NetworkFault]]] = {}
    for fault in faults:
        for ends in links_of(graph, fault.place):
            own = taken.setdefault((frozenset(ends), PROPERTIES[fault.kind]), [])
            own += [(at, FOREVER_PS if end is None else end, fault) for at, end in fault.spans()]
    for spans in taken.values():
        spans.sort(key=lambda each: each[:2])
        for (_, end_ps, one), (start_ps, _, other) in pairwise(spans):
            if start_ps < end_ps:
                raise ConfigError(
                    f"faults: two must not be at one link together, got {str(one)!r} and "
                    f"{str(other)!r}"
                )


def lost_hosts(faults: Sequence[NetworkFault], graph: nx.Graph[str]) -> dict[str, int]:
    """Return when hosts are lost: links go down for good, and no way is left to most others.

    Of parts with as many hosts, the one with the first host stays.
    """
    lasting = [each for each in faults if each.kind == DOWN and each.lasting_ps is None]
    names, lost = hosts(graph), dict[str, int]()
    left: nx.Graph[str] = nx.Graph(graph.edges)
    for fault in sorted(lasting, key=lambda each: each.at_ps):
        left.remove_edges_from(links_of(graph, fault.place))
        if fault.place in names:
            lost.setdefault(fault.place, fault.at_ps)
        parts = [
            [host for host in names if host in part and host not in lost]
            for part in nx.connected_components(left)
        ]
        most = max(parts, key=lambda part: (len(part), [-index(host) for host in part]))
        for host in chain.from_iterable(part for part in parts if part is not most):
            lost[host] = fault.at_ps
    return lost


def links_of(graph: nx.Graph[str], place: str) -> list[Direction]:
    """Return the links of a place, by their ends: a link's one, or all of a node's.

    Raises:
        ConfigError: If there is no such node or link.
    """
    if place in graph:
        return [(place, peer) for peer in neighbors(graph, place).values()]
    parts = place.split("-")
    for number in range(1, len(parts)):
        ends = "-".join(parts[:number]), "-".join(parts[number:])
        if graph.has_edge(*ends):
            return [ends]
    some = next(iter(graph.edges), ("s0", "s1"))
    raise ConfigError(f"faults: no such node or link, got {place!r}; like {'-'.join(some)}")


def _steps(
    fault: NetworkFault, links: Sequence[Direction], start_ps: int, end_ps: int | None
) -> Iterator[Disturbance]:
    """Yield how a fault changes both directions of its links, and how it ends."""
    directions = [each for a, b in links for each in ((a, b), (b, a))]
    for each in directions:
        yield _change(fault, start_ps, each)
    for each in directions if end_ps is not None else ():
        yield _change(fault, end_ps or 0, each, is_over=True)


def _change(
    fault: NetworkFault, at_ps: int, direction: Direction, *, is_over: bool = False
) -> Disturbance:
    """Return how a fault changes a direction of a link when it begins, or when it is over."""
    if fault.kind == RATE:
        return LinkRate(at_ps, direction, None if is_over else int(fault.value))
    share = 1.0 if fault.kind == DOWN else fault.value
    change = LinkDamage if fault.kind == CORRUPT else LinkLoss
    return change(at_ps, direction, None if is_over else share)


def _reroutes(
    faults: Sequence[NetworkFault], graph: nx.Graph[str], delay_ps: int
) -> Iterator[Reroute]:
    """Yield new routes for each time at which links between switches go down or come back.

    And for each time at which switches do, even if no others are beside them: what they held is
    lost, and trees of aggregation hear of it at the same time.
    """
    ends = frozenset(hosts(graph))
    whole = frozenset(switches(graph))
    spans = [
        (start_ps, end_ps, each)
        for fault in faults
        if fault.kind == DOWN
        for each in links_of(graph, fault.place)
        if fault.place in whole or not ends & set(each)
        for start_ps, end_ps in fault.spans()
    ]
    times = {start for start, _, _ in spans} | {end for _, end, _ in spans if end is not None}
    for time_ps in sorted(times):
        down = frozenset(
            each
            for start, end, each in spans
            if not ends & set(each) and start <= time_ps and (end is None or time_ps < end)
        )
        yield Reroute(time_ps + delay_ps, down)


def left_of(graph: nx.Graph[str], without: Iterable[Direction]) -> nx.Graph[str]:
    """Return what is left of a topology without some links, for routes and trees.

    Switches that are cut off and have no hosts keep one link, as no way of others can lead over
    it: else there would be no routes at all, as these have none.
    """
    left = graph.copy()
    lost = sorted({(min(ends), max(ends)) for ends in without})
    left.remove_edges_from(lost)
    groups = nx.utils.UnionFind(left)
    for ends in left.edges:
        groups.union(*ends)
    with_hosts = {groups[host] for host in hosts(graph)}
    kept = set()
    for ends in lost:
        sides = [groups[each] in with_hosts for each in ends]
        if not all(sides) and groups[ends[0]] != groups[ends[1]]:
            kept.add(ends)
            groups.union(*ends)
            if any(sides):
                with_hosts.add(groups[ends[0]])
    left = graph.copy()
    left.remove_edges_from(ends for ends in lost if ends not in kept)
    return left


class Upcoming(Protocol):
    """Something that happens in a run."""

    @property
    def after_ps(self) -> int:
        """Time since the run's start."""


T = TypeVar("T", bound=Upcoming)


class Agenda(Generic[T]):
    """The remaining disturbances of one run.

    Args:
        disturbances: In any order. Those of one instant happen in the order given.
        start_ps: Start time of the run.
    """

    def __init__(self, disturbances: Iterable[T], start_ps: int) -> None:
        self._left = sorted(disturbances, key=lambda each: each.after_ps)
        self._start_ps = start_ps

    @property
    def next_ps(self) -> int:
        """Time of the next disturbance; `FOREVER_PS` if there is none."""
        return self._start_ps + self._left[0].after_ps if self._left else FOREVER_PS

    def take_due(self, now_ps: int) -> list[T]:
        """Remove and return the disturbances that are due by now."""
        due = [each for each in self._left if self._start_ps + each.after_ps <= now_ps]
        del self._left[: len(due)]
        return due

    def take_rest(self) -> list[T]:
        """Remove and return the disturbances that are not due yet."""
        rest, self._left = self._left, []
        return rest
