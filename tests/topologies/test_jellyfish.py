"""Jellyfish: formulas of the paper, bounds of random graphs, and seeds.

Source of bounds:
    Mean path: Cerf, Cowan, Mullin and Stanton, "A lower bound on the average shortest path length
    in regular graphs", Networks 4(4), 1974. Bisection: Bollobas, "The isoperimetric number of
    random regular graphs", European Journal of Combinatorics 9(3), 1988.
"""

from __future__ import annotations

from math import log, sqrt
from statistics import mean

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shape_of import between_switches, mean_path, shape_of

from ringleaf.errors import TopologyError
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.graph import attachment, hosts
from ringleaf.topologies.registry import build, count


def least_mean_path(switches: int, degree: int) -> float:
    """Return the mean if each switch had as many others at each distance as there can be."""
    left, ring, distance, total = switches - 1, degree, 1, 0
    while left > 0:
        total += distance * min(ring, left)
        left, ring, distance = left - ring, ring * (degree - 1), distance + 1
    return total / (switches - 1)


@given(st.integers(3, 20), st.integers(2, 8), st.integers(1, 4), st.integers(0, 1000))
def test_jellyfish(switches: int, degree: int, per_switch: int, seed: int) -> None:
    """RRG(N, k, r): N switches of k ports, r of them to switches, so N (k - r) hosts.

    If N r is odd, one port is left over.
    """
    if degree >= switches:
        return
    text = f"jellyfish,switches={switches},degree={degree},hosts={per_switch},seed={seed}"
    graph = build(text)
    found = shape_of(graph)

    assert (found.hosts, found.switches) == (switches * per_switch, switches)
    assert found.links == switches * degree // 2
    odd = switches * degree % 2
    assert found.radix == tuple(range(degree + per_switch - odd, degree + per_switch + 1))
    assert mean_path(graph) >= least_mean_path(switches, degree) - 1e-9
    racks = [attachment(graph, host) for host in hosts(graph)]
    assert racks == [f"s{i}" for i in range(switches) for _ in range(per_switch)]


BOUNDS = [
    (10, 3, 1.6667),  # the Petersen graph has it
    (50, 7, 1.8571),  # the Hoffman-Singleton graph has it
    *((20, 4, 1.9474), (40, 6, 1.9231), (64, 8, 1.873), (245, 11, 2.459), (320, 24, 1.9248)),
]


@pytest.mark.parametrize(("switches", "degree", "least"), BOUNDS)
def test_mean_paths_are_above_the_least(switches: int, degree: int, least: float) -> None:
    assert round(least_mean_path(switches, degree), 4) == least
    graph = build(f"jellyfish,switches={switches},degree={degree},hosts=1")
    assert least - 5e-5 <= mean_path(graph)


@pytest.mark.parametrize(("switches", "degree"), [(64, 8), (100, 5)])
def test_mean_paths_are_those_of_random_graphs(switches: int, degree: int) -> None:
    """NetworkX draws by another procedure, which is proved to be nearly uniform."""
    text = f"jellyfish,switches={switches},degree={degree},hosts=1"
    ours = mean(mean_path(build(f"{text},seed={seed}")) for seed in range(12))
    theirs = mean(
        nx.average_shortest_path_length(nx.random_regular_graph(degree, switches, seed))
        for seed in range(12)
    )
    assert ours == pytest.approx(theirs, rel=0.01)


@pytest.mark.parametrize(("switches", "degree", "least"), [(64, 8, 52.65), (320, 24, 1267)])
def test_bisection_is_that_of_random_graphs(switches: int, degree: int, least: float) -> None:
    """At least N (r/4 - sqrt(r ln 2)/2) links in nearly all; at most the mean cut, N r/4."""
    assert switches * (degree / 4 - sqrt(degree * log(2)) / 2) == pytest.approx(least, abs=0.5)
    sizes = f"switches={switches},degree={degree},hosts=1"
    found = bisection(build(f"jellyfish,{sizes},rate=1G,host_rate=400G"))
    assert not found.is_exact
    assert least <= found.bps / 10**9 <= switches * degree / 4


def test_a_seed_gives_one_graph_always() -> None:
    """Drawn once; who has results of a seed must get the same network from all versions."""
    edges = between_switches(build("jellyfish,switches=8,degree=3,hosts=2,seed=5")).edges
    assert " ".join(sorted("-".join(sorted(ends)) for ends in edges)) == SEED_5
    other = between_switches(build("jellyfish,switches=8,degree=3,hosts=2,seed=6")).edges
    assert set(other) != set(edges)


SEED_5 = "s0-s3 s0-s6 s0-s7 s1-s2 s1-s3 s1-s6 s2-s4 s2-s5 s3-s6 s4-s5 s4-s7 s5-s7"


def test_as_many_neighbours_as_there_are_is_the_complete_graph() -> None:
    edges = between_switches(build("jellyfish,switches=4,degree=3,hosts=1,seed=9")).edges
    ends = {"-".join(sorted(pair)) for pair in edges}
    assert ends == {"s0-s1", "s0-s2", "s0-s3", "s1-s2", "s1-s3", "s2-s3"}


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("switches=4,degree=4", "degree must be below the number of switches, 4, got 4"),
        ("switches=1", "switches must be >= 2, got 1"),
        ("degree=1", "degree must be >= 2, got 1"),
        ("hosts=0", "hosts must be >= 1, got 0"),
    ],
)
def test_impossible_sizes_are_refused(sizes: str, message: str) -> None:
    for make in (build, count):
        with pytest.raises(TopologyError, match=message):
            make(f"jellyfish,{sizes}")


def test_no_connected_graph_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleaf.topologies.families.jellyfish.MOST_DRAWS", 0)
    with pytest.raises(TopologyError, match="no connected graph was drawn, got seed 1"):
        build("jellyfish")


@given(st.integers(1, 300))
def test_hosts_that_must_find_room_choose_the_size(needed: int) -> None:
    assert needed <= count("jellyfish", hosts=needed).hosts <= max(needed + 1, 4)
