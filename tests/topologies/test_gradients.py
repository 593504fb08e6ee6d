"""Gradient routing: what the papers' examples come to, and what holds on any topology."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.gradients import goat, grid
from ringleaf.topologies.gradients.places import AddingPlace, places
from ringleaf.topologies.graph import (
    Link,
    add_host,
    add_switch,
    attachment,
    connect,
    hosts,
    new_graph,
    switches,
)
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import dealt, routes

pytest.importorskip("scipy")

G = 10**9
SPECS = (
    *("leafspine,leaves=3,spines=2,hosts=3", "leafspine,leaves=2,spines=1,hosts=4,rate=25G"),
    *("fattree,k=4", "torus2d,x=3,y=3", "bcube,n=3,k=1", "leafspine,leaves=1,spines=1,hosts=4"),
)


def triangle(racks: tuple[int, int, int], fast: int = 3) -> nx.Graph[str]:
    """Three switches, all joined by 3 Gbit/s; the last host, a server, has `fast` times as much."""
    graph = new_graph("triangle", (sum(racks),))
    for number in range(3):
        add_switch(graph, number, 0, "switch", (float(number), 0.0))
    for one, other in ((0, 2), (0, 1), (1, 2)):
        connect(graph, f"s{one}", f"s{other}", Link(3 * G, 1000))
    for host in range(sum(racks)):
        rack = (host >= racks[0]) + (host >= racks[0] + racks[1])
        rate = fast if host == sum(racks) - 1 else 1
        add_host(graph, host, (float(host), 1.0))
        connect(graph, f"s{rack}", f"h{host}", Link(rate * 3 * G, 1000))
    return graph


@pytest.mark.parametrize("seed", range(4))
def test_grid_moves_one_worker_of_the_crowded_rack_to_the_next(seed: int) -> None:
    """GRID, figure 1: switches add 9 Gbit/s; with 3 at each of two switches, all have 3."""
    workers = [f"h{i}" for i in range(8)]
    found = grid.route(triangle((4, 2, 3)), workers, "h8", adds_bps=9 * G, rng=Random(seed))

    ((worker, switch, server),) = found.ways
    assert worker in workers[:4]
    assert (switch, server) == ("s1", "h8")
    assert found.rate_bps == 3 * G


def test_grid_leaves_all_where_they_are_if_their_switches_can_add() -> None:
    workers = [f"h{i}" for i in range(8)]
    found = grid.route(triangle((4, 2, 3)), workers, "h8", rng=Random(1))

    assert found.ways == ()
    assert found.rate_bps == 3 * G


def test_rates_of_places_by_hand() -> None:
    """Eight workers as ATP places them, and switches that add 6 Gbit/s: 6 / 4 for the first rack.

    Without switches that add, the first rack's link of 3 Gbit/s has four gradients: 0.75 each.
    """
    graph, workers = triangle((4, 2, 3)), [f"h{i}" for i in range(8)]
    usual = grid.route(graph, workers, "h8", rng=Random(1)).chosen

    assert grid.rate_with(graph, usual, "h8", 6.0) == pytest.approx(1.5)
    alone = {
        worker: AddingPlace(None, tuple(pairwise(nodes)), ())
        for worker in workers
        for nodes in [nx.shortest_path(graph, worker, "h8")]
    }
    assert grid.rate_with(graph, alone, "h8", 6.0) == pytest.approx(0.75)


@settings(max_examples=15)
@given(
    spec=st.sampled_from(SPECS),
    servers=st.integers(1, 2),
    adds=st.sampled_from([None, 30, 100, 250]),
    seed=st.integers(0, 99),
)
def test_grid_is_no_slower_than_the_usual_places(
    spec: str, servers: int, adds: int | None, seed: int
) -> None:
    graph = build(spec)
    names = hosts(graph)
    workers, server = names[:-servers], names[-1]
    adds_bps = None if adds is None else adds * G
    found = grid.route(graph, workers, server, adds_bps=adds_bps, rng=Random(seed))

    assert list(found.chosen) == workers
    turned = with_detours(graph, found.ways)  # each is a way
    assert len(turned.graph["detours"]) == len(found.ways)
    table = dealt(graph, routes(graph))
    for end in (0, -1):  # all at their own switches, or at the server
        chosen = {worker: places(graph, worker, server, table)[end] for worker in workers}
        assert found.rate_bps >= 0.999e9 * grid.rate_with(graph, chosen, server, adds)
    first = min(graph.edges[w, attachment(graph, w)]["link"].rate_bps for w in workers)
    assert 0 < found.rate_bps <= first
    if adds_bps is not None:
        here = Counter(place.switch for place in found.chosen.values() if place.switch)
        assert max(here.values(), default=0) * found.rate_bps <= adds_bps * 1.001


@pytest.mark.parametrize("seed", range(4))
def test_goat_has_each_part_added_up_by_one_switch(seed: int) -> None:
    """GOAT, figure 2: a block of all three parts travels 25 links, sums included.

    Two parts: two workers to their own switch, two by one link more, and two links for the sum, 8;
    the third: four workers by two links each, and one for the sum, 9.
    """
    workers, servers = ["h0", "h1", "h2", "h3"], ["h4", "h5", "h6"]
    found = goat.route(triangle((2, 2, 3), fast=1), workers, servers, rng=Random(seed))

    assert found.links == 25
    where = {server: {found.chosen[w, server].switch for w in workers} for server in servers}
    assert sorted(map(str, where.values())) == ["{'s0'}", "{'s1'}", "{'s2'}"]


@settings(max_examples=15)
@given(
    spec=st.sampled_from(SPECS),
    servers=st.integers(1, 3),
    memory=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_goat_keeps_to_memory_and_is_no_worse_than_servers_alone(
    spec: str, servers: int, memory: int, seed: int
) -> None:
    graph = build(spec)
    names = hosts(graph)
    workers, helpers = names[:-servers], names[-servers:]
    found = goat.route(graph, workers, helpers, memory=memory, rng=Random(seed))

    assert len(found.chosen) == len(workers) * servers
    held: dict[str, set[str]] = {switch: set() for switch in switches(graph)}
    for (_, server), place in found.chosen.items():
        if place.switch is not None:
            held[place.switch].add(server)
    assert max(map(len, held.values())) <= memory
    alone = sum(len(nx.shortest_path(graph, w, s)) - 1 for w in workers for s in helpers)
    assert found.links <= alone
    with_detours(graph, found.ways)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleaf.core.extras.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"routes grid: needs the package scipy.*\[routing\]"):
        grid.route(triangle((1, 1, 2)), ["h0", "h1"], "h3", rng=Random(1))
