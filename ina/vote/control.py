"""The entries of switches for a vote: SwitchML's, and the number of a majority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import finsy as fy
import networkx as nx

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.ina.switchml import control as switchml
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.vote.wire import MOST_WORKERS, PLANES
from ringleaf.topologies.trees import AggregationTree


def bias_of(workers: int) -> int:
    """Return the number that makes a count 64 or more just if it is a majority; ties are."""
    return (1 << PLANES) - (workers + 1) // 2


def entities(
    graph: nx.Graph[str], tree: AggregationTree, job: SwitchmlJob
) -> Mapping[str, list[Any]]:
    """Return the P4Runtime entities of every switch of the tree, besides those that forward.

    Raises:
        ConfigError: If there are more workers than counts have room for.
    """
    workers = sum(child not in tree.children for each in tree.children.values() for child in each)
    if workers > MOST_WORKERS:
        raise ConfigError(
            f"vote job {job.number}: switches count to {MOST_WORKERS}, got "
            f"{format_count(workers, 'worker')}"
        )
    by_switch = switchml.entities(graph, tree, job)
    return {
        name: [_with_bias(each, workers) for each in switch_entities]
        for name, switch_entities in by_switch.items()
    }


def _with_bias(entity: Any, workers: int) -> Any:
    action = getattr(entity, "action", None)
    if action is None or action.name != "from_child":
        return entity
    return replace(
        entity, action=fy.P4TableAction(action.name, **action.args, bias=bias_of(workers))
    )
