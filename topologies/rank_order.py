"""Orders of hosts in which neighbours are near, and cycles of hosts that share no link."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ringleaf.topologies.cycles import Cycle, grid_cycles

if TYPE_CHECKING:
    import networkx as nx


def host_grid(graph: nx.Graph[str], count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes of the grid of a topology's hosts, and the number of the host at each place.

    Both are empty if there is none, or if it is not one of `count` hosts.
    """
    sizes: tuple[int, ...] = graph.graph.get("grid", ())
    if not sizes or prod(sizes) != count:
        return (), ()
    return sizes, graph.graph.get("in_grid", tuple(range(count)))


def host_cycles(graph: nx.Graph[str], count: int) -> tuple[Cycle, ...]:
    """Return cycles of the first `count` hosts whose neighbours are joined, and share no link.

    Where none are known, there is one: the order in which each host is near the one before.
    """
    sizes, hosts = host_grid(graph, count)
    found = grid_cycles(tuple(size for size in sizes if size > 1)) if sizes else ()
    if not found:
        return (near_order(graph, count),)
    return tuple(tuple(hosts[place] for place in cycle) for cycle in found)


def near_order(graph: nx.Graph[str], count: int) -> Cycle:
    """Return an order of the first `count` hosts that always goes on to the nearest one left.

    Hosts of a switch thus follow one another, and then those of the switches nearest to it:
    in a fat-tree rack by rack and pod by pod. Of hosts that are as near, the first one comes next.
    """
    import numpy as np

    from ringleaf.topologies.arrays import SwitchArrays

    arrays = SwitchArrays.of(graph)
    at, leaf = arrays.at[:count], arrays.leaf[:count]
    left = np.ones(count, bool)
    order = [0]
    left[0] = False
    while len(order) < count:
        away = arrays.distances[at[order[-1]], leaf]
        away = np.where(left, away, np.iinfo(away.dtype).max)
        order.append(int(away.argmin()))
        left[order[-1]] = False
    return tuple(order)
