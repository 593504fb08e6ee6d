"""The largest share of all demands that links carry at once, of networks worked out by hand."""

from random import Random

import pytest

from ringleaf.errors import ConfigError
from ringleaf.topologies.graph import attachment, hosts
from ringleaf.topologies.registry import build
from studies.capacity import permutation, served, share


@pytest.mark.parametrize(
    ("topo", "demand", "part"),
    [
        ("leafspine,leaves=2,spines=1,hosts=2", {("s0", "s1"): 2.0}, 0.5),
        ("leafspine,leaves=2,spines=3,hosts=2", {("s0", "s1"): 2.0}, 1.5),  # by three ways
        ("leafspine,leaves=2,spines=1,hosts=2,rate=40G,host_rate=10G", {("s0", "s1"): 2.0}, 2.0),
        # One link goes to two switches: what is for one passes through the other, or the spine.
        ("leafspine,leaves=3,spines=1,hosts=1", {("s0", "s1"): 1.0, ("s0", "s2"): 1.0}, 0.5),
        ("leafspine,leaves=3,spines=1,hosts=1", {("s0", "s2"): 1.0, ("s1", "s2"): 3.0}, 0.25),
        ("fattree,k=2", {("s0", "s1"): 1.0, ("s1", "s0"): 1.0}, 1.0),  # each direction its own
    ],
)
def test_a_share(topo: str, demand: dict[tuple[str, str], float], part: float) -> None:
    assert share(build(topo), demand) == pytest.approx(part)


@pytest.mark.parametrize(
    ("demand", "part"),
    [
        ({("s0", "s1"): 2.0}, 1.0),  # three ways, and two servers that fill their own links
        ({("s0", "s1"): 6.0}, 0.5),
        ({}, 1.0),  # each sends to one of its own switch
    ],
)
def test_servers_send_at_their_own_rate_at_most(
    demand: dict[tuple[str, str], float], part: float
) -> None:
    graph = build("leafspine,leaves=2,spines=3,hosts=2")
    assert served(graph, demand) == pytest.approx(part)


def test_a_server_alone_has_nobody_to_send_to() -> None:
    with pytest.raises(ConfigError, match="servers need another one, got 'leafspine"):
        permutation(build("leafspine,leaves=1,spines=1,hosts=1"), Random(1))


def test_a_fat_tree_carries_what_its_servers_send_and_half_of_one_that_is_oversubscribed() -> None:
    """Al-Fares et al., SIGCOMM 2008: it is rearrangeably non-blocking."""
    graph, half = build("fattree,k=4"), build("fattree,k=4,edge=2")
    for seed in range(3):
        demand = permutation(graph, Random(seed))
        assert share(graph, demand) == pytest.approx(1.0)
        assert share(half, demand) == pytest.approx(0.5)  # both servers of a switch send away


def test_each_server_sends_to_another_and_each_has_one_that_sends_to_it() -> None:
    graph = build("leafspine,leaves=8,spines=1,hosts=1")
    leaves = sorted(attachment(graph, host) for host in hosts(graph))
    for seed in range(20):
        demand = permutation(graph, Random(seed))
        assert sorted(a for a, _ in demand) == sorted(b for _, b in demand) == leaves
        assert set(demand.values()) == {1.0}
