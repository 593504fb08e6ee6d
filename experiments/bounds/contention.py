"""The time of links that messages share, if they are sent step by step.

Bounds count a link's bytes over the whole collective. Where ranks wait for one another at every
step, it is the busiest link of each step that counts: in Swing it is another one each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringleaf.collectives.rows import Column
from ringleaf.core.units import PS_PER_S
from ringleaf.topologies.ways import Outlet, TopologyRoutes


@dataclass(frozen=True, slots=True)
class HostMessages:
    """Messages between hosts: (messages,) source, destination and bytes on the line."""

    src: Column
    dst: Column
    line_bytes: Column


def busy_ps(ways: TopologyRoutes, walk: HostMessages, step: Column) -> int:
    """Return the sum over steps of the time that the step's busiest link takes.

    Args:
        ways: The ways of the topology.
        walk: All messages.
        step: (messages,) the step of each: the schedule's, or the number of messages that it has
            to wait for. A pipeline's links are shared by steps, independent messages' by waits.
    """
    if not len(step):
        return 0
    hosts = len(ways.hosts)
    pairs, pair_of = np.unique(walk.src * hosts + walk.dst, return_inverse=True)
    numbers: dict[Outlet, int] = {}
    routes = [
        [numbers.setdefault(each, len(numbers)) for each in outlets]
        for outlets in ways.outlets(*np.divmod(pairs, hosts))
    ]
    longest = max(len(each) for each in routes)
    passed = np.array([each + [-1] * (longest - len(each)) for each in routes], np.int64)
    ps_per_byte = np.array([8 * PS_PER_S / ways.rate_bps(outlet) for outlet in numbers])
    steps, step_of = np.unique(step, return_inverse=True)
    bytes_of = np.zeros((len(steps), len(numbers)), np.int64)
    for column in passed[pair_of].T:
        there = column >= 0
        np.add.at(bytes_of, (step_of[there], column[there]), walk.line_bytes[there])
    return int((bytes_of * ps_per_byte).max(axis=1).sum())
