"""GRID: gradients are added up at switches chosen so that all workers send as fast as possible.

Fixed by the source: the program GRIA. Each worker's gradients are added up at one switch or at the
server; a switch adds up so much per second; a sum is as fast as its fastest worker; the server's
link carries the sums and the gradients that no switch added up; the slowest worker's rate is to be
as large as possible. Its relaxation is solved, and each worker goes to a place by chance, in
proportion to its rates there (R-GRIA).

Chosen here: links between switches are limits, too, where the source takes them to be sufficient
(in its example they are not); among optima, gradients travel few links; of `DRAWS` roundings, and
of all workers at their own switches and at the server, the best is taken, and all workers get the
rate that then fits. Rates are not enforced: ATP's
windows find them. With several servers, each has its own solution, and an equal part of everything.

Source:
    Fang et al., "GRID: Gradient Routing with In-network Aggregation for Distributed Training",
    IEEE/ACM Transactions on Networking, 2023, sections 3 and 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import networkx as nx

from ringleaf.topologies.gradients.places import (
    DRAWS,
    OWN,
    SERVER,
    AddingPlace,
    Link,
    Way,
    empty_program,
    places,
    rate_of,
    sums,
    way_of,
)
from ringleaf.topologies.graph import attachment
from ringleaf.topologies.routing import dealt, routes

FEW_LINKS = 1e-6
"""The worth of a link less on a gradient's way, in parts of the rate."""


@dataclass(frozen=True, slots=True)
class GridRouting:
    """A choice of places.

    Args:
        chosen: The place of each worker's gradients.
        ways: The detours that lead there.
        rate_bps: The rate at which all workers can send, as the model has it.
    """

    chosen: Mapping[str, AddingPlace]
    ways: tuple[Way, ...]
    rate_bps: int


def route(
    graph: nx.Graph[str],
    workers: Sequence[str],
    server: str,
    *,
    adds_bps: int | None = None,
    rng: Random,
) -> GridRouting:
    """Return where the gradients of each worker for a server are added up.

    Args:
        graph: A topology.
        workers: The workers' hosts.
        server: The server's host, none of them.
        adds_bps: The most that a switch adds up, in bit/s of gradients; None: whatever comes.
        rng: Source of the rounding's chances.

    Raises:
        ConfigError: If SciPy is not installed.
    """
    table = dealt(graph, routes(graph))
    options = {worker: places(graph, worker, server, table) for worker in workers}
    limit = None if adds_bps is None else adds_bps / 1e9
    rates = _relaxed(graph, options, server, limit)
    usual = [{w: each[end] for w, each in options.items()} for end in (OWN, SERVER)]
    drawn = ({w: each[_pick(rates[w], rng)] for w, each in options.items()} for _ in range(DRAWS))

    def worth(chosen: Mapping[str, AddingPlace]) -> tuple[float, int]:
        links = sum(len(place.links) for place in chosen.values())
        return rate_with(graph, chosen, server, limit), -links

    chosen = max((*usual, *drawn), key=worth)
    rate, _ = worth(chosen)
    ways = (way_of(graph, worker, place, server) for worker, place in chosen.items())
    return GridRouting(chosen, tuple(way for way in ways if way), round(rate * 1e9))


def rate_with(
    graph: nx.Graph[str], chosen: Mapping[str, AddingPlace], server: str, adds: float | None
) -> float:
    """Return the largest rate of all workers, in Gbit/s, with these places."""
    added = Counter(place.switch for place in chosen.values() if place.switch is not None)
    load: Counter[Link] = Counter()
    for place in chosen.values():
        load.update(place.links)
    for rest in {place.switch: place.rest for place in chosen.values() if place.switch}.values():
        load.update(rest)
    last = attachment(graph, server), server
    load[last] = len(added) + sum(place.switch is None for place in chosen.values())
    limits = [rate_of(graph, ends) / count for ends, count in load.items()]
    if adds is not None:
        limits += [adds / count for count in added.values()]
    return min(limits)


def _pick(rates: Sequence[float], rng: Random) -> int:
    """Return a place's number, by chance in proportion to its rate."""
    weights = [max(rate, 0.0) for rate in rates]
    return rng.choices(range(len(weights)), weights if sum(weights) > 0 else None)[0]


def _relaxed(
    graph: nx.Graph[str],
    options: Mapping[str, Sequence[AddingPlace]],
    server: str,
    adds: float | None,
) -> dict[str, list[float]]:
    """Return each worker's rate at each of its places, by the relaxation of GRIA."""
    program = empty_program()
    slowest = program.add(cost=-1.0)
    names = sorted({place.switch for each in options.values() for place in each if place.switch})
    sum_of = {name: program.add() for name in names}
    rate = {
        (worker, i): program.add(cost=FEW_LINKS * len(place.links) / len(options))
        for worker, each in options.items()
        for i, place in enumerate(each)
    }
    used: list[tuple[Link, int]] = []
    into_server = dict.fromkeys(sum_of.values(), 1.0)
    rest: dict[str, tuple[Link, ...]] = {}
    for worker, each in options.items():
        own = [rate[worker, i] for i in range(len(each))]
        program.limit({slowest: 1.0, **dict.fromkeys(own, -1.0)}, 0.0)
        for variable, place in zip(own, each, strict=True):
            used += [(ends, variable) for ends in place.links if ends[1] != server]
            if place.switch is None:
                into_server[variable] = 1.0
            else:
                program.limit({variable: 1.0, sum_of[place.switch]: -1.0}, 0.0)
                rest.setdefault(place.switch, place.rest)
    for name, links in rest.items():
        used += [(ends, sum_of[name]) for ends in links if ends[1] != server]
    for ends, row in sums(used).items():
        program.limit(row, rate_of(graph, ends))
    program.limit(into_server, rate_of(graph, (attachment(graph, server), server)))
    if adds is not None:
        for name in names:
            here = [
                rate[worker, i]
                for worker, each in options.items()
                for i, place in enumerate(each)
                if place.switch == name
            ]
            program.limit(dict.fromkeys(here, 1.0), adds)
    optimum = program.solve("routes grid")
    return {
        worker: [float(optimum[rate[worker, i]]) for i in range(len(each))]
        for worker, each in options.items()
    }
