"""Faults as people write them (`--faults`), drawn for cases of any kind, and what they excuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import networkx as nx

from ringleaf.core.faults import CORRUPT, DOWN, LOSS, RATE, SLOW, NetworkFault
from ringleaf.core.units import PS_PER_US
from ringleaf.networks.faults import PROPERTIES, Direction, left_of, links_of
from ringleaf.networks.virtual.patience import MOST_LOSS
from ringleaf.topologies.graph import hosts, switches
from ringleaf.topologies.registry import build

MOST_FAULTS = 3
"""The largest number of a case's faults."""

LATEST_US = (0, 10, 100, 300)
"""The times by which a fault has begun, one of which is drawn: runs may be short."""

LONGEST_US = (5, 50, 300)
"""Likewise, the longest that a fault lasts."""

SHARES = (0.01, 0.1, 0.5)
"""Shares of packets that are lost or damaged; to the end, no more than `MOST_LOSS`."""

RATES_BPS = (500_000_000, 10**9, 2_500_000_000, 9_999_999_999)
"""Rates of links that are slow; no link of a case has a lower one otherwise."""


def draw_faults(
    topo: str, random: Random, kinds: Sequence[str], *, lasting: bool, restarts: bool = True
) -> str:
    """Return up to `MOST_FAULTS` faults of a topology's links and nodes, as typed.

    A node is a switch, a host, a NIC of a machine, or a server that forwards; some links flap.

    Args:
        topo: The topology.
        random: The source of randomness.
        kinds: The kinds of faults, each as likely as others; hosts alone are slow.
        lasting: Whether some faults stay to the end.
        restarts: Whether switches may be down as a whole.
    """
    graph = build(topo)
    joined = [f"{a}-{b}" for a, b in sorted(graph.edges)]
    taken: set[tuple[frozenset[str], str]] = set()
    faults = []
    for _ in range(random.randint(1, MOST_FAULTS)):
        kind = random.choice(kinds)
        nodes = switches(graph) if restarts or kind != DOWN else joined
        places = (joined, joined, hosts(graph), nodes) if kind != SLOW else (hosts(graph),)
        place = random.choice(random.choice(places))
        fault = _draw_fault(place, kind, random, lasting=lasting)
        changed = PROPERTIES.get(kind, SLOW)  # of links, or of the host itself
        own = {(frozenset(ends), changed) for ends in links_of(graph, place)}
        if not own & taken:
            taken |= own
            faults.append(str(fault))
    return ", ".join(faults)


def draw_losses(topo: str, random: Random) -> str:
    """Return faults of some hosts, each of which is lost for good."""
    names = hosts(build(topo))
    lost = random.sample(names, random.randint(1, min(MOST_FAULTS, max(len(names) - 2, 1))))
    times_us = (random.randint(0, random.choice(LATEST_US)) for _ in lost)
    faults = (
        NetworkFault(host, DOWN, 0, at_us * PS_PER_US)
        for host, at_us in zip(lost, times_us, strict=True)
    )
    return ", ".join(map(str, faults))


def _draw_fault(place: str, kind: str, random: Random, *, lasting: bool) -> NetworkFault:
    value: float = 0
    if kind == RATE:
        value = random.choice(RATES_BPS)
    elif kind == SLOW:
        value = random.choice((1.5, 3, 20))
    elif kind != DOWN:
        value = random.choice(SHARES)
    at_ps = random.randint(0, random.choice(LATEST_US)) * PS_PER_US
    if lasting and random.random() < 0.1:
        share = min(value, MOST_LOSS) if kind in (LOSS, CORRUPT) else value
        return NetworkFault(place, kind, share, at_ps)
    lasting_ps = random.randint(1, random.choice(LONGEST_US)) * PS_PER_US
    if random.random() < 0.7:
        return NetworkFault(place, kind, value, at_ps, lasting_ps)
    every_ps = lasting_ps + random.randint(1, 20) * PS_PER_US
    return NetworkFault(place, kind, value, at_ps, lasting_ps, every_ps, random.randint(2, 12))


def down_for_good(graph: nx.Graph[str], faults: Sequence[NetworkFault]) -> Iterator[Direction]:
    """Yield the links that some faults take away, and that do not come back."""
    for fault in faults:
        if fault.kind == DOWN and fault.lasting_ps is None:
            yield from links_of(graph, fault.place)


def cut_off(
    graph: nx.Graph[str], faults: Sequence[NetworkFault], *, reroutes: bool = False
) -> bool:
    """Return whether hosts may lose each other for good, so that a run may end without a result.

    Args:
        graph: The topology.
        faults: The faults.
        reroutes: Whether routes lead around what is down, if any way does.
    """
    down = list(down_for_good(graph, faults))
    if not down or not reroutes:
        return bool(down)
    inner = set(switches(graph))
    if any(not inner.issuperset(ends) for ends in down):
        return True
    left = left_of(graph, down)
    left.remove_nodes_from([node for node in inner if node not in _with_hosts(left)])
    return not nx.is_connected(left)


def _with_hosts(graph: nx.Graph[str]) -> set[str]:
    """Return the nodes from which there is a way to a host."""
    ends = set(hosts(graph))
    return {node for part in nx.connected_components(graph) if part & ends for node in part}


def restarts_of(graph: nx.Graph[str], faults: Sequence[NetworkFault]) -> int:
    """Return how often switches restart: those that were down as a whole, and came back."""
    names = set(switches(graph))
    return sum(
        each.times
        for each in faults
        if each.kind == DOWN and each.place in names and each.lasting_ps is not None
    )


KINDS = (DOWN, DOWN, LOSS, CORRUPT, RATE)
"""Kinds of faults of a network, those of which two reactions depend most twice."""
