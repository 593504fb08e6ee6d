"""Trees and slots that a job of several trees takes, where they are not those asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import networkx as nx

from ringleaf.collectives.registry import SYSTEMS
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.ina.registry import find_system
from ringleaf.topologies.trees import best_roots

Teams = Mapping[str, Sequence[Sequence[str]]]
"""By algorithm, the hosts of each group of ranks that reduces by it."""


def fewer_trees(spec: NetworkSpec, graph: nx.Graph[str], teams: Teams) -> Iterator[str]:
    """Yield lines on systems that have fewer trees, or slots, than what was asked for, if any.

    There is a tree for each switch that is as good a root as any, and a slot at least for each
    tree; all trees have as many slots.
    """
    slots: int | None = getattr(spec, "slots", None)
    if spec.trees is None and slots is None:
        return
    for name, hosts in teams.items():
        if name not in SYSTEMS or not find_system(name).has_trees:
            continue
        asked = [each for each in (spec.trees, slots) if each is not None]
        counts = sorted({min(*asked, len(best_roots(graph, team))) for team in hosts})
        if spec.trees is not None and counts != [spec.trees]:
            yield f"trees={spec.trees}: {name} has {_either(counts)}, {_reason(counts, slots)}"
        taken = sorted({slots // count * count for count in counts}) if slots else []
        if taken not in ([], [slots]):
            yield f"slots={slots}: {name} takes {_either(taken)}, as many for each tree"


def _either(counts: Sequence[int]) -> str:
    return " or ".join(map(str, counts))


def _reason(counts: Sequence[int], slots: int | None) -> str:
    return "one for each slot" if counts == [slots] else "one for each of the best roots"
