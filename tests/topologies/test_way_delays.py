"""Delays of the ways between hosts."""

from __future__ import annotations

from itertools import permutations

import pytest

from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.registry import build
from ringleaf.topologies.ways import TopologyRoutes

SPECS = (
    "fattree,k=4",
    "fattree,k=4,delay=1us,host_delay=3us",
    "leafspine,leaves=3,spines=2,hosts=2",
    "bcube,n=2,k=2",
    "torus2d,x=3,y=4",
    "leafspine,leaves=1,spines=1,hosts=1",
)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("ecmp", [False, True])
def test_the_longest_delay_is_that_of_the_farthest_pair(spec: str, ecmp: bool) -> None:
    """Among all hosts, and among the first few."""
    ways = TopologyRoutes(build(spec), ecmp=ecmp)
    for ranks in {1, 2, 3, len(ways.hosts)}:
        if ranks <= len(ways.hosts):
            delays = [ways.delay_ps(*pair) for pair in permutations(range(ranks), 2)]
            assert ways.longest_delay_ps(ranks) == max(delays, default=0)


def test_a_detour_can_be_the_longest_way() -> None:
    graph = build("torus2d,x=3,y=3")
    farther = with_detours(graph, [("h3", "s0", "s1", "s2", "s8", "h7")])
    assert TopologyRoutes(farther).longest_delay_ps(9) > TopologyRoutes(graph).longest_delay_ps(9)
    assert TopologyRoutes(farther).longest_delay_ps(7) == TopologyRoutes(graph).longest_delay_ps(
        7
    )  # without h7
