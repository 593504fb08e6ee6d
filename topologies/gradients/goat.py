"""GOAT: each part of the model is added up at few switches, which keep memory for it alone.

Fixed by the source: a model is cut into sub-models; each is added up at some switches, or at the
server, with memory of its own there, so that workers need not be in step; the bytes that travel,
times links, are to be as few as possible, within switches' memory. The relaxation is solved, and
rounded by knapsacks (KRGS): a sub-model gets as many switches as its fractions add up to, one from
each of so many groups of switches of about equal fractions; a worker goes to one of them by chance,
in proportion to its fractions, or else to the server.

Chosen here: a sub-model is the part that one of the parameter servers has, so all are equally
large, and a switch has memory for `MEMORY` of them; a switch that is full already is left out when
a rounding chooses; of `DRAWS` roundings, the cheapest is taken. Gradients for the server itself go
by its own switch, which adds up all that comes, as ATP's switches do.

Source:
    Fang et al., "GOAT: Gradient Scheduling with Collaborative In-Network Aggregation for
    Distributed Training", IWQoS 2023, and its version in IEEE/ACM Transactions on Networking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import networkx as nx

from ringleaf.topologies.gradients.places import (
    DRAWS,
    SERVER,
    AddingPlace,
    Way,
    empty_program,
    places,
    way_of,
)
from ringleaf.topologies.routing import dealt, routes

MEMORY = 1
"""Sub-models that a switch has memory for."""

Choice = tuple[str, str]
"""A worker, and the server whose part of its gradients it is."""


@dataclass(frozen=True, slots=True)
class GoatRouting:
    """A choice of places.

    Args:
        chosen: The place of each worker's gradients for each server.
        ways: The detours that lead there.
        links: Links that a block of each sub-model travels, all packets and sums together.
    """

    chosen: Mapping[Choice, AddingPlace]
    ways: tuple[Way, ...]
    links: int


def route(
    graph: nx.Graph[str],
    workers: Sequence[str],
    servers: Sequence[str],
    *,
    memory: int = MEMORY,
    rng: Random,
) -> GoatRouting:
    """Return where the gradients of each worker for each server are added up.

    Args:
        graph: A topology.
        workers: The workers' hosts.
        servers: The servers' hosts, none of them: one for each sub-model.
        memory: Sub-models that a switch has memory for.
        rng: Source of the rounding's chances.

    Raises:
        ConfigError: If SciPy is not installed.
    """
    table = dealt(graph, routes(graph))
    options = {(w, g): places(graph, w, g, table) for w in workers for g in servers}
    share, part = _relaxed(options, servers, memory)
    best: GoatRouting | None = None
    for _ in range(DRAWS):
        used: Counter[str] = Counter()
        chosen: dict[Choice, AddingPlace] = {}
        for server in servers:
            free = {s: x for s, x in share[server].items() if used[s] < memory}
            taken = _knapsacks(free, rng)
            used.update(taken)
            for worker in workers:
                chosen[worker, server] = _pick(
                    options[worker, server], taken, part[worker, server], share[server], rng
                )
        links = links_of(chosen)
        if best is None or links < best.links:
            ways = (way_of(graph, w, place, g) for (w, g), place in chosen.items())
            best = GoatRouting(chosen, tuple(way for way in ways if way), links)
    assert best is not None
    return best


def links_of(chosen: Mapping[Choice, AddingPlace]) -> int:
    """Return the links that a block of each sub-model travels: all gradients, and all sums."""
    rests = {
        (server, place.switch): len(place.rest)
        for (_, server), place in chosen.items()
        if place.switch is not None
    }
    return sum(len(place.links) for place in chosen.values()) + sum(rests.values())


def _knapsacks(share: Mapping[str, float], rng: Random) -> list[str]:
    """Return the switches of a sub-model: one of each group, groups having about equal sums."""
    count = int(sum(share.values()) + 1e-6)
    groups: list[list[str]] = [[] for _ in range(count)]
    for switch in sorted(share, key=lambda name: (-share[name], name)):
        if count:
            min(groups, key=lambda group: sum(share[each] for each in group)).append(switch)
    picks = []
    for group in groups:
        weights = [max(share[each], 0.0) for each in group]
        if sum(weights) > 0:
            picks.append(rng.choices(group, weights)[0])
    return picks


def _pick(
    options: Sequence[AddingPlace],
    taken: Sequence[str],
    part: Mapping[str, float],
    share: Mapping[str, float],
    rng: Random,
) -> AddingPlace:
    """Return a worker's place: one of the switches taken, by chance, or else the server."""
    left = rng.random()
    for place in options:
        switch = place.switch
        if switch is not None and switch in taken and share[switch] > 0:
            left -= part[switch] / share[switch]
            if left < 1e-6:
                return place
    return options[SERVER]


def _relaxed(
    options: Mapping[Choice, Sequence[AddingPlace]], servers: Sequence[str], memory: int
) -> tuple[dict[str, dict[str, float]], dict[Choice, dict[str, float]]]:
    """Return the fractions of each sub-model at switches, and of each worker's gradients there."""
    program = empty_program()
    rest = {
        (server, place.switch): len(place.rest)
        for (_, server), each in options.items()
        for place in each
        if place.switch is not None
    }
    x = {key: program.add(cost=float(links), most=1.0) for key, links in rest.items()}
    y: dict[tuple[Choice, str | None], int] = {}
    for choice, each in options.items():
        for place in each:
            variable = y[choice, place.switch] = program.add(cost=float(len(place.links)))
            if place.switch is not None:
                program.limit({variable: 1.0, x[choice[1], place.switch]: -1.0}, 0.0)
        program.limit({y[choice, place.switch]: -1.0 for place in each}, -1.0)
    for switch in sorted({switch for _, switch in rest}):
        here = {x[server, switch]: 1.0 for server in servers if (server, switch) in x}
        program.limit(here, float(memory))
    optimum = program.solve("routes goat")
    share: dict[str, dict[str, float]] = {server: {} for server in servers}
    for (server, switch), variable in x.items():
        share[server][switch] = float(optimum[variable])
    part = {
        choice: {
            place.switch: float(optimum[y[choice, place.switch]]) for place in each if place.switch
        }
        for choice, each in options.items()
    }
    return share, part
