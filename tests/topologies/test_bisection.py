"""Bisection bandwidth, also of networks that are not regular."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleaf.topologies import bisection as module
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.metrics import max_flow_bps
from ringleaf.topologies.registry import build
from ringleaf.topologies.terminal import terminal

GBPS = 10**9


def racks(folder: Path, sizes: tuple[int, ...], uplinks: tuple[int, ...]) -> nx.Graph[str]:
    """Return racks of hosts with links of 100 Gbit/s, below one switch."""
    lines = [f"t{rack} core rate={gbps}G" for rack, gbps in enumerate(uplinks)]
    for rack, size in enumerate(sizes):
        lines += [f"h{rack}.{host} t{rack}" for host in range(size)]
    (folder / "n.edges").write_text("\n".join(lines))
    return build(str(folder / "n.edges"))


@pytest.mark.parametrize(
    ("sizes", "uplinks", "gbps"),
    [
        ((2, 2, 4), (10, 100, 200), 110),  # the two small racks
        ((2, 2, 4), (100, 100, 70), 70),
        ((4, 4, 4), (100, 100, 10), 210),  # the slow rack, and two hosts of another
        ((4, 4, 4), (100, 100, 100), 300),
        ((4, 4, 4), (400, 400, 400), 600),
        ((4, 4, 4, 4), (10, 10, 10, 10), 20),
        ((4, 4, 4, 4), (10, 400, 400, 400), 410),
        ((1, 3), (10, 10), 110),  # the lone host and one of the other rack
    ],
)
def test_the_worst_halves_of_racks(
    tmp_path: Path, sizes: tuple[int, ...], uplinks: tuple[int, ...], gbps: int
) -> None:
    found = bisection(racks(tmp_path, sizes, uplinks))
    assert found.is_exact
    assert found.bps == gbps * GBPS


def test_a_large_irregular_network_has_a_bound_that_is_called_so(tmp_path: Path) -> None:
    """Eighteen racks, of which nine lie behind one link of 10 Gbit/s."""
    lines = [f"t{rack} {'left' if rack % 2 else 'right'}" for rack in range(18)]
    lines += [f"h{rack} t{rack}" for rack in range(18)]
    (tmp_path / "n.edges").write_text("\n".join([*lines, "left right rate=10G"]))
    graph = build(str(tmp_path / "n.edges"))
    assert bisection(graph) == module.Bisection(10 * GBPS, is_exact=False)
    assert "bisection at most 10 Gbit/s: at most 1.111 Gbit/s for" in terminal(graph)


def test_an_odd_number_of_racks_is_no_regular_network() -> None:
    assert not bisection(build("leafspine,leaves=15,spines=4,hosts=2")).is_exact
    assert bisection(build("fattree,k=8")).is_exact


def test_a_square_of_servers_may_be_a_worse_half_than_half_of_each_row() -> None:
    """Rows of 4 and of 2 in 6 cut 2 links each, five of them; columns of 5 cut 1, of 4 cut 2."""
    graph = build("bcube,n=6,k=1", rate_bps=1000)
    square = [*(6 * row + column for row in range(4) for column in range(4)), 24, 25]
    assert max_flow_bps(graph, [f"h{server}" for server in square]) == 1000 * (5 * 2 + 2 + 4)
    assert not bisection(graph).is_exact


@pytest.mark.parametrize(
    ("spec", "is_exact"),
    [
        ("bcube,n=4,k=1", True),
        ("bcube,n=4,k=2", False),
        ("bcube,n=2,k=4", True),
        ("hammingmesh,a=2,b=2,x=2,y=2", True),
        ("hammingmesh,a=1,b=1,x=6,y=4", False),
        ("leafspine,leaves=2,spines=2,hosts=1,node=4xh100", True),
        ("debruijn,n=2,k=2,hosts=1,node=2xh100", False),
    ],
)
def test_a_bisection_is_exact_where_no_other_halves_can_be_worse(spec: str, is_exact: bool) -> None:
    assert bisection(build(spec)).is_exact is is_exact


def random_graph(folder: Path, data: st.DataObject) -> nx.Graph[str]:
    """Draw a few switches with hosts, joined by a tree and more; rates differ by direction."""
    rates = st.integers(1, 20).map(lambda gbps: f"rate={gbps}G")
    backs = st.just("") | st.integers(1, 20).map(lambda gbps: f"rate_back={gbps}G")
    count = data.draw(st.integers(1, 5))
    pairs = {(data.draw(st.integers(0, b - 1)), b) for b in range(1, count)}
    if count > 1:
        more = st.sampled_from([*combinations(range(count), 2)])
        pairs |= data.draw(st.sets(more, max_size=4))
    lines = [f"s{a} s{b} {data.draw(rates)} {data.draw(backs)}" for a, b in sorted(pairs)]
    for host in range(data.draw(st.integers(2, 6))):
        lines.append(f"h{host} role=host")
        switch = data.draw(st.integers(0, count - 1))
        lines.append(f"h{host} s{switch} {data.draw(rates)} {data.draw(backs)}")
    (folder / "n.edges").write_text("\n".join(lines))
    return build(str(folder / "n.edges"))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_it_is_the_least_flow_of_all_halves(tmp_path: Path, data: st.DataObject) -> None:
    graph = random_graph(tmp_path, data)
    members = hosts(graph)
    half = len(members) // 2
    sizes = {half, len(members) - half}
    every = [halves for size in sizes for halves in combinations(members, size)]
    least = min(max_flow_bps(graph, halves) for halves in every)
    assert bisection(graph) == module.Bisection(least, is_exact=True)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_bound_is_never_below_the_truth(tmp_path: Path, data: st.DataObject) -> None:
    graph = random_graph(tmp_path, data)
    exact = bisection(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_SWITCHES", 0)
        bound = bisection(graph)
    assert not bound.is_exact
    assert bound.bps >= exact.bps


@pytest.mark.parametrize("spec", ["dcell,n=3,k=1", "dcell,n=2,k=1", "dragonfly,a=3,p=1,h=1"])
def test_a_bound_is_the_cut_that_all_sets_have(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    """Sets of near switches alone cut 400 Gbit/s of a DCell of 12 servers, where 300 are least."""
    exact = bisection(build(spec))
    monkeypatch.setattr(module, "MOST_SWITCHES", 0)
    assert exact.is_exact
    assert bisection(build(spec)) == module.Bisection(exact.bps, is_exact=False)
