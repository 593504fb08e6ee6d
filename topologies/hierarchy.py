"""The hierarchy of a network that nobody has told: groups of hosts that are near one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx


def find_hierarchy(graph: nx.Graph[str]) -> tuple[int, ...]:
    """Return the sizes of groups of hosts, innermost first; their product is the number of hosts.

    For each distance, in links between switches, the hosts that are no farther from one another
    are a group if they are so for all: groups don't overlap, have one size, and consecutive ranks.
    A leaf-spine has the hosts of its leaves and the leaves; a torus has one group, all hosts.
    """
    import numpy as np

    from ringleaf.topologies.arrays import SwitchArrays

    arrays = SwitchArrays.of(graph)
    count = len(arrays.hosts)
    distance = arrays.distances[arrays.at][:, arrays.leaf]  # (hosts, hosts)
    numbers = np.arange(count)
    sizes = []
    inner = 1
    for limit in np.unique(distance).tolist():
        near = distance <= limit
        size = int(near[0].sum())
        block = numbers // size
        if size % inner or size == inner or count % size:
            continue
        if (near == (block[:, None] == block)).all():
            sizes.append(size // inner)
            inner = size
    return tuple(sizes) or (count,)
