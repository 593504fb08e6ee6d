"""Facts about the network for schedulers: each group's lines, and the groups it may meet there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from ringleaf.collectives.rows import AGGREGATE
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.units import PS_PER_S
from ringleaf.hosts.schedulers.common.forecast import foresee
from ringleaf.hosts.schedulers.common.hooks import Prospect
from ringleaf.hosts.schedulers.common.interface import Standing
from ringleaf.networks.endpoints.assignment import JobAssignment
from ringleaf.networks.groups import Group
from ringleaf.topologies.graph import attachment, link
from ringleaf.topologies.loads import link_loads
from ringleaf.topologies.routing import dealt, links_towards, routes

LinkPs = dict[tuple[str, str], float]
"""By link's direction: the time that a byte of a gradient keeps it busy."""


@dataclass(frozen=True, slots=True)
class GroupSurroundings:
    """A group's place in the network."""

    link_bps: int  # of its hosts' slowest line
    rivals: frozenset[int]  # groups whose packets may share a link's direction with its own


def places(graph: nx.Graph[str], groups: Sequence[Group]) -> list[GroupSurroundings]:
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
        GroupSurroundings(
            min(link(graph, node, attachment(graph, node)).rate_bps for node in group.nodes),
            frozenset(i for i, other in enumerate(ways) if i != number and other & ways[number]),
        )
        for number, group in enumerate(groups)
    ]


def sharing(teams: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the numbers of teams that have hosts in common, directly or by way of others."""
    graph: nx.Graph[int | str] = nx.Graph(
        (i, host) for i, team in enumerate(teams) for host in team
    )
    components = (
        sorted(n for n in part if isinstance(n, int)) for part in nx.connected_components(graph)
    )
    return sorted(part for part in components if len(part) > 1)


def busy_links(
    graph: nx.Graph[str], group: Group, schedule: Schedule, *, ecmp: bool = False
) -> LinkPs:
    """Return how long each link's direction is busy with a byte of a gradient.

    Where switches may choose among ports (`ecmp`), each gets an equal part. Where switches add up,
    each link that the group may use carries every byte once.
    """
    table = routes(graph) if ecmp else dealt(graph, routes(graph))
    rows = schedule.columns
    if (rows.op == AGGREGATE).any():
        ways = (links_towards(graph, group.nodes, node, table=table) for node in group.nodes)
        loads = dict.fromkeys(sorted(set().union(*ways)), 1.0)
    else:
        amounts = np.zeros((len(group.nodes), len(group.nodes)))
        ends = rows.dst % schedule.nodes, rows.src % schedule.nodes
        np.add.at(amounts, ends, (rows.stop - rows.start) / schedule.chunks)
        np.fill_diagonal(amounts, 0)
        demand = {
            name: {group.nodes[src]: float(row[src]) for src in np.flatnonzero(row)}
            for name, row in zip(group.nodes, amounts, strict=False)
            if row.any()
        }
        loads = link_loads(graph, demand, table)
    return {each: 8 * PS_PER_S * load / link(graph, *each).rate_bps for each, load in loads.items()}


def prospect(each: JobAssignment, link_ps: LinkPs) -> Prospect:
    """Return what a job will do if it is alone."""
    job = each.job

    def by_link_ps(size_bytes: int) -> int:
        return round(size_bytes * max(link_ps.values(), default=0.0))

    forecast = foresee(job.model, job.pieces, each.collective_ps or by_link_ps, job.steps)
    return Prospect(job.start_ps, forecast.period_ps, forecast.busy_ps, link_ps)


def first_standing(
    each: JobAssignment, group: Group, place: GroupSurroundings, *, in_order: bool, link_ps: LinkPs
) -> Standing:
    """Return the facts about a job before its first iteration."""
    lines = (time_ps for ends, time_ps in link_ps.items() if not set(ends).isdisjoint(group.nodes))
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
        link_ps=link_ps,
        line_ps=max(lines, default=0.0),
    )
