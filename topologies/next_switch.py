"""Routings by rule: from the numbers of two switches follows the switch that comes next.

Each rule gives one way for a switch and a destination, which need not be a shortest one. A graph
says by its attribute `shape` how its switches are numbered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from ringleaf.topologies.cells import cell_sizes

Numbers = npt.NDArray[np.int64]

NextSwitches = Callable[[int, Numbers, Sequence[int]], Numbers]
"""A switch, (leaves,) the switches of destinations, and the shape -> (leaves,) the next ones.

A switch that is the destination has itself.
"""


def dimension_order(switch: int, leaves: Numbers, shape: Sequence[int]) -> Numbers:
    """Return the next switches in a torus: each dimension in turn, the shorter way round.

    Args:
        switch: Where the packets are.
        leaves: (leaves,) where they go.
        shape: Servers of each dimension, the one that changes fastest first.

    Source: Dally and Towles, "Principles and Practices of Interconnection Networks", 8.4.2.
    """
    following = np.full(len(leaves), switch)
    below = [prod(shape[:axis]) for axis in range(len(shape))]
    for size, stride in reversed(list(zip(shape, below, strict=True))):
        here, there = switch // stride % size, leaves // stride % size
        ahead = (there - here) % size
        step = np.where(2 * ahead <= size, 1, -1)
        peer = switch + ((here + step) % size - here) * stride
        following = np.where(ahead > 0, peer, following)  # the first dimension has the last word
    return following


def torus_links(shape: Sequence[int]) -> Numbers:
    """Return the links (from, to) of a torus of this shape, (links, 2), that routes may take."""
    here = np.arange(prod(shape))
    links = []
    for axis, size in enumerate(shape):
        stride = prod(shape[:axis])
        place = here // stride % size
        steps = (1, -1)[: size - 1]
        links += [here + ((place + step) % size - place) * stride for step in steps]
    ends = [np.stack([here, there], axis=1) for there in links]
    return np.concatenate(ends) if ends else np.zeros((0, 2), np.int64)


def dragonfly_minimal(switch: int, leaves: Numbers, shape: Sequence[int]) -> Numbers:
    """Return the next switches in a Dragonfly: to the group's way out, across, and to the router.

    Such a way has one global link. A shortest path may have two, and one link less.

    Args:
        switch: Where the packets are.
        leaves: (leaves,) where they go.
        shape: Routers per group, and global links per router.

    Source: Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology",
        ISCA 2008, 4.1.
    """
    routers, links = shape
    here, there = switch // routers, leaves // routers
    out = here * routers + (there - (there > here)) // links
    across = there * routers + (here - (here > there)) // links
    between = np.where(switch == out, across, out)
    return np.where(there == here, leaves, between)


def dcell_routing(switch: int, leaves: Numbers, shape: Sequence[int]) -> Numbers:
    """Return the next switches in a DCell: by the link between the two parts that hold both ends.

    The way to that link is found likewise, in the smaller part. Servers come first, then the
    switches of the smallest cells.

    Args:
        switch: Where the packets are.
        leaves: (leaves,) the servers where they go.
        shape: Servers of a smallest cell, and the number of levels, its own included.

    Source: Guo et al., "DCell: A Scalable and Fault-Tolerant Network Structure for Data
        Centers", SIGCOMM 2008, 4.1: DCellRouting.
    """
    ports, levels = shape
    sizes = cell_sizes(ports, levels - 1)
    servers = sizes[-1]
    cell = switch // ports if switch < servers else switch - servers
    here = cell * ports  # a server of the same smallest cell
    target, following = leaves, np.full(len(leaves), -1)
    for size in reversed(sizes[:-1]):
        mine, theirs = here // size, target // size  # of all cells of this size
        first = here // (size * (size + 1)) * (size + 1)  # the first one of the same larger cell
        a, b = mine - first, theirs - first
        near = mine * size + np.where(a < b, b - 1, b)
        far = theirs * size + np.where(a < b, a, a - 1)
        apart = (following < 0) & (a != b)
        is_near = near // ports == cell if switch >= servers else near == switch
        ahead = np.where(is_near, far if switch < servers else near, -1)
        following = np.where(apart, ahead, following)
        target = np.where(apart, near, target)
    inside = target if switch >= servers else np.where(target == switch, switch, servers + cell)
    return np.where(following < 0, inside, following)
