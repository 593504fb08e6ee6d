"""Orders of hosts in which neighbours are near, and cycles of hosts that share no link."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from ringleaf.topologies.cycles import Cycle, grid_cycles

if TYPE_CHECKING:
    import networkx as nx


def host_grid(graph: nx.Graph[str], count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes of the grid of a topology's hosts, and the number of the host at each place.

    Two dimensions of two hosts are one of four, which is a ring. Both are empty if there is no
    grid, or if it is not one of `count` hosts.
    """
    sizes: tuple[int, ...] = graph.graph.get("grid", ())
    if not sizes or prod(sizes) != count:
        return (), ()
    hosts: tuple[int, ...] = graph.graph.get("in_grid", tuple(range(count)))
    longer = tuple(size for size in sizes if size > 2)
    pairs = sizes.count(2)
    order = [axis for axis, size in enumerate(sizes) if size > 2]
    order += [axis for axis, size in enumerate(sizes) if size == 2]
    numbers = _turned(sizes, order)
    for done in range(pairs // 2):
        numbers = _round(numbers, prod(longer) * 4**done)
    merged = (*longer, *(4,) * (pairs // 2), *(2,) * (pairs % 2))
    return merged or (1,), tuple(hosts[number] for number in numbers)


def _turned(sizes: tuple[int, ...], order: list[int]) -> list[int]:
    """Return the number of each place if dimensions are counted in another order."""
    numbers = [0]
    for axis in order:
        stride = prod(sizes[:axis])
        numbers = [number + at * stride for at in range(sizes[axis]) for number in numbers]
    return numbers


def _round(numbers: list[int], stride: int) -> list[int]:
    """Return the numbers with the third and fourth of four in a dimension exchanged."""
    swapped = (0, 1, 3, 2)
    return [
        numbers[place + (swapped[at] - at) * stride]
        for place, at in ((place, place // stride % 4) for place in range(len(numbers)))
    ]


def host_cycles(graph: nx.Graph[str], count: int) -> tuple[Cycle, ...]:
    """Return cycles of the first `count` hosts whose neighbours are joined, and share no link.

    Where none are known, there is one: the order in which each host is near the one before.
    """
    if "optical" in graph.graph and prod(graph.graph["hierarchy"]) == count:
        return _strides(graph, count)
    sizes, hosts = host_grid(graph, count)
    cycles = grid_cycles(sizes)
    if not cycles:
        return (near_order(graph, count),)
    return tuple(tuple(hosts[place] for place in cycle) for cycle in cycles)


def _strides(graph: nx.Graph[str], count: int) -> tuple[Cycle, ...]:
    """Return rings of racks that circuits may join, as many as a rack's circuits or strides.

    The graph's `strides` names the rule by which their controller takes them.
    """
    from ringleaf.topologies.graph import attachment, hosts
    from ringleaf.topologies.switching.strides import PAPER, RULES, candidates

    racks: dict[str, list[int]] = {}
    for number, host in enumerate(hosts(graph)):
        racks.setdefault(attachment(graph, host), []).append(number)
    own = list(racks.values())
    if len(own) < 2:
        return (tuple(range(count)),)
    choose = RULES[graph.graph.get("strides", PAPER)]
    rings = choose(len(own), min(graph.graph["optical"], len(candidates(len(own)))))
    return tuple(around(own, stride) for stride in rings)


def around(racks: Sequence[Sequence[int]], stride: int) -> Cycle:
    """Return a way round racks at a stride, coprime to their number, by all members of each."""
    steps = range(len(racks))
    return tuple(each for step in steps for each in racks[step * stride % len(racks)])


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
