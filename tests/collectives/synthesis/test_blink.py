"""Blink: rates on DGX-1's links, exact packings, and schedules that are right on any network."""

from __future__ import annotations

from collections import Counter
from itertools import product

import networkx as nx
import pytest
from drawn_wires import GBPS, connected
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.synthesis.methods.blink import SYNTHESISER, solve
from ringleaf.collectives.synthesis.packing import cheapest_tree, pack
from ringleaf.collectives.synthesis.problem import Problem
from ringleaf.collectives.verify import verify
from ringleaf.collectives.wires import Pair, RankNetwork
from ringleaf.topologies.machines.dgx1 import DOUBLE, SINGLE


def dgx1(members: tuple[int, ...]) -> dict[Pair, int]:
    """Return NVLinks between some GPUs of a DGX-1, by the place of each in `members`."""
    place = {gpu: at for at, gpu in enumerate(members)}
    units = dict.fromkeys(DOUBLE, 2) | dict.fromkeys(SINGLE, 1)
    both = {ends: count for (a, b), count in units.items() for ends in ((a, b), (b, a))}
    return {(place[a], place[b]): count for (a, b), count in both.items() if {a, b} <= place.keys()}


@pytest.mark.parametrize(
    ("members", "rate"),
    [
        (tuple(range(8)), 6),
        ((0, 1, 2, 3), 4),
        ((0, 1, 4, 5), 3),
        ((0, 1, 2, 3, 4), 2),
        ((1, 3, 5, 7), 2),
        ((0, 1, 2, 4), 2),
        ((0, 3, 4, 7), 2),
        ((1, 4, 5, 7), 1),
    ],
)
def test_trees_take_as_many_nvlinks_as_a_maximum_flow(members: tuple[int, ...], rate: int) -> None:
    packing = pack(dgx1(members), len(members), 0, limit_s=5)
    assert packing.optimum == packing.rate == rate
    assert len(packing.trees) <= rate
    assert packing.many_rate >= 0.95 * rate


@given(connected(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_packing_fits_the_links_and_reaches_the_maximum_flow(
    wires: RankNetwork, data: st.DataObject
) -> None:
    root = data.draw(st.integers(0, wires.ranks - 1))
    capacity = {pair: rate // GBPS for pair, rate in wires.rates_bps.items()}
    packing = pack(capacity, wires.ranks, root, limit_s=0.2)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_weighted_edges_from([(a, b, c) for (a, b), c in capacity.items()], "capacity")
    flows = [nx.maximum_flow_value(graph, root, r) for r in range(wires.ranks) if r != root]
    assert packing.rate == min(flows)
    load: Counter[Pair] = Counter()
    for tree, rate in packing.trees.items():
        links = [(parent, rank) for rank, parent in enumerate(tree) if rank != root]
        assert nx.is_arborescence(nx.DiGraph(links))
        load.update(dict.fromkeys(links, rate))
    assert all(load[pair] <= capacity[pair] for pair in load)


@given(connected(most=5), st.data())
@settings(max_examples=60, deadline=None)
def test_the_cheapest_tree_is_the_cheapest(wires: RankNetwork, data: st.DataObject) -> None:
    costs = {pair: float(data.draw(st.integers(1, 20))) for pair in wires.ways}
    tree = cheapest_tree(costs, wires.ranks, 0)
    choices = [[src for src, dst in costs if dst == rank] for rank in range(1, wires.ranks)]
    best = min(
        sum(costs[parent, rank] for rank, parent in enumerate(parents, 1))
        for parents in product(*choices)
        if nx.is_arborescence(nx.DiGraph((p, rank) for rank, p in enumerate(parents, 1)))
    )
    assert sum(costs[parent, rank] for rank, parent in enumerate(tree) if rank) == best


@given(connected(), st.sampled_from(SYNTHESISER.collectives), st.integers(1, 3), st.data())
@settings(max_examples=40, deadline=None)
def test_a_schedule_is_right_on_any_connected_network(
    wires: RankNetwork, collective: Collective, chunks: int, data: st.DataObject
) -> None:
    root = data.draw(st.integers(0, wires.ranks - 1))
    root = 0 if collective is Collective.ALLREDUCE else root
    plan = solve(Problem(wires, collective, 9999, chunks, root, limit_s=0.5))
    verify(plan.schedule)
    assert plan.expected_ps >= plan.bound_ps


def test_a_long_broadcast_nearly_reaches_the_rate_of_its_trees() -> None:
    """Six NVLinks of 20 GB/s leave the root: 240 MB take 2 ms."""
    links = [(a, b, count * 160 * GBPS, 300_000) for (a, b), count in dgx1(tuple(range(8))).items()]
    plan = solve(Problem(RankNetwork.direct(8, links), Collective.BROADCAST, 240_000_000))
    assert plan.bound_ps == 2 * 10**9
    assert plan.gap < 0.1
    assert dict(plan.notes)["rate of trees"] == "960 Gbit/s"
