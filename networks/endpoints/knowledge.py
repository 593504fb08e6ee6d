"""Facts about the network for schedulers: each group's lines, and the groups it may meet there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from ringleaf.hosts.scheduling.interface import Standing
from ringleaf.networks.endpoints.assignment import Assignment
from ringleaf.networks.groups import Group
from ringleaf.topologies.graph import attachment, link
from ringleaf.topologies.routing import links_towards, routes


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A group's place in the network."""

    link_bps: int  # of its hosts' slowest line
    rivals: frozenset[int]  # groups whose packets may share a link's direction with its own


def places(graph: nx.Graph[str], groups: Sequence[Group]) -> list[Surroundings]:
    """Return the places of groups, in their order.

    All routes that switches may choose from count, so two groups that are rivals need not meet,
    but groups that are no rivals never do.
    """
    table = routes(graph)
    ways = [
        set().union(*(links_towards(graph, group.nodes, node, table=table) for node in group.nodes))
        for group in groups
    ]
    return [
        Surroundings(
            min(link(graph, node, attachment(graph, node)).rate_bps for node in group.nodes),
            frozenset(i for i, other in enumerate(ways) if i != number and other & ways[number]),
        )
        for number, group in enumerate(groups)
    ]


def first_standing(each: Assignment, place: Surroundings, *, in_order: bool) -> Standing:
    """Return the facts about a job before its first iteration."""
    model = each.job.model
    return Standing(
        layers=len(model.layers),
        iterations=each.job.iterations,
        iterations_done=0,
        size_bytes=model.size_bytes,
        compute_ps=model.compute_ps,
        weight=each.weight,
        link_bps=place.link_bps,
        rivals=place.rivals,
        in_order=in_order,
    )
