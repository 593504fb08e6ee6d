"""The trees of a PANAMA job, its slots, and the entries of its switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import finsy as fy
import networkx as nx

from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.core.units import format_count, serialize_ps
from ringleaf.errors import ConfigError
from ringleaf.ina.switchml import control as switchml
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.switchml.wire import VALUES_AT
from ringleaf.ina.systems import MOST_TREES, JobRequest
from ringleaf.topologies.graph import link
from ringleaf.topologies.trees import AggregationTree, aggregation_trees

LEAST_SLOTS = 8  # of a job


def choose_trees(graph: nx.Graph[str], request: JobRequest) -> list[AggregationTree]:
    """Return a job's trees: as many as asked for, at most one for each root and each slot."""
    most = min(request.trees or MOST_TREES, request.slots or MOST_TREES, MOST_TREES)
    return aggregation_trees(graph, request.members, most=most, index=request.number - 1)


def choose_job(
    graph: nx.Graph[str], trees: Sequence[AggregationTree], request: JobRequest
) -> SwitchmlJob:
    """Return the job with its slots, the same number for each tree.

    That is twice the capacity of a path at the tree's share of its busiest link.

    Raises:
        ConfigError: If they are more than the job's share of the switches, as the next one is
            another job's.
    """
    where = f"panama job {request.number}"
    first, most = request.share.cut(switchml.ENTRIES[request.lanes] // 2)
    count = len(trees)
    if most < count:
        raise ConfigError(
            f"{where}: a switch must have a slot for each of {format_count(count, 'tree')} of "
            f"{format_count(request.share.of, 'job')}, got {most} for this job; ask for fewer "
            "trees, or for more entries"
        )
    slots = request.slots
    if slots is None:
        slots = max(
            count * (2 * request.rtt_ps // turn_ps(graph, trees, request.lanes)), LEAST_SLOTS
        )
        slots = min(slots, most)
    elif slots > most:
        raise ConfigError(
            f"{where}: slots must be at most {most}, its share of a switch for "
            f"{format_count(request.share.of, 'job')}, got {slots}; ask for fewer, or for more "
            "entries"
        )
    slots = max(slots // count, 1) * count
    return SwitchmlJob(request.number, slots, first_slot=first, lanes=request.lanes)


def turn_ps(graph: nx.Graph[str], trees: Sequence[AggregationTree], lanes: int) -> int:
    """Return the time that a packet of each tree takes, all together, on the busiest link."""
    edges = Counter(
        ends
        for tree in trees
        for switch, children in tree.children.items()
        for child in children
        for ends in ((switch, child), (child, switch))
    )
    size_bytes = VALUES_AT + 4 * lanes + LINE_OVERHEAD_BYTES
    return max(
        count * serialize_ps(size_bytes, link(graph, *ends).rate_bps)
        for ends, count in edges.items()
    )


def entities(
    graph: nx.Graph[str], trees: Sequence[AggregationTree], job: SwitchmlJob
) -> dict[str, list[Any]]:
    """Return the P4Runtime entities of every switch of the trees, besides those that forward.

    A switch of several trees has a multicast group for each.

    Raises:
        ConfigError: If a switch has more than 64 children.
        TopologyError: If an edge of a tree is no link.
    """
    by_switch: dict[str, list[Any]] = {}
    for number, tree in enumerate(trees):
        for switch, switch_entities in switchml.entities(graph, tree, job).items():
            by_switch.setdefault(switch, []).extend(
                _of_tree(each, number, job) for each in switch_entities
            )
    return by_switch


def group_of(job: int, tree: int) -> int:
    """Return the number of the multicast group of a job's children in a tree."""
    return tree << 8 | job


def _of_tree(entity: Any, tree: int, job: SwitchmlJob) -> Any:
    """Return an entity of SwitchML's for one tree of several."""
    group = group_of(job.number, tree)
    if isinstance(entity, fy.P4MulticastGroupEntry):
        return replace(entity, multicast_group_id=group)
    action: Any = entity.action
    return replace(
        entity,
        match=fy.P4TableMatch({**entity.match, "tree": tree}),
        action=fy.P4TableAction(action.name, **{**action.args, "group": group}),
    )
