"""PANAMA's packets for examples and measurements of its P4 programs: SwitchML's, in one tree."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx

from ringleaf.ina.panama.control import entities
from ringleaf.ina.switchml import samples
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.systems import LANES
from ringleaf.topologies.trees import AggregationTree


def _entities(
    graph: nx.Graph[str], tree: AggregationTree, job: SwitchmlJob
) -> dict[str, list[Any]]:
    return entities(graph, [tree], job)


EXAMPLES = {f"panama-{lanes}": partial(samples.example, lanes, _entities) for lanes in LANES}
ROUNDS = {f"panama-{lanes}": partial(samples.slots_round, lanes, _entities) for lanes in LANES}
