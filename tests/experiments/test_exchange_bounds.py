"""Bounds of exchanges without rows are those of all rows, to the picosecond."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.bounds import exchange
from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.topologies.pair_links import PairLinks
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import routes
from ringleaf.topologies.ways import RouteLinks, least_ps

TOPOLOGIES = [
    "leafspine,leaves=2,spines=1,hosts=1",
    "railoptimised",
    "fattree,k=4",
    "leafspine,leaves=4,spines=1,hosts=4",
    "leafspine,leaves=2,spines=4,hosts=3",
    "torus2d,x=4,y=3",
    "hammingmesh,a=2,b=2,x=2,y=2",
    "bcube,n=3,k=1",
]


def by_pairs(graph: nx.Graph[str], ranks: int, size_bytes: int) -> int:
    """Return the bound of messages of one size, without rows."""
    bounds = Bounds(graph)
    parts = min(size_bytes, 4096), size_bytes, (size_bytes - 1) % 4096 + 1
    first, whole, last = (bounds.line_bytes(each) for each in parts)
    return exchange.exchange_ps(PairLinks(graph, routes(graph)), ranks, (first, whole, last))


@pytest.mark.parametrize("topo", TOPOLOGIES)
@settings(max_examples=8, deadline=None)
@given(
    delay_ps=st.sampled_from([0, 1_000, 1_000_000]),
    rate_bps=st.integers(10**9, 4 * 10**11),
    elements=st.sampled_from([1, 1_023, 1_024, 30_001]),
)
def test_bounds_of_exchanges_are_those_of_their_rows(
    topo: str, delay_ps: int, rate_bps: int, elements: int
) -> None:
    graph = build(topo, rate_bps=rate_bps, delay_ps=delay_ps)
    ranks = sum(name.startswith("h") for name in graph)
    schedule = ALGORITHMS["alltoall"].build(ranks)
    by_rows_ps = Bounds(graph).least_ps(schedule, 4 * ranks * elements, 4)

    assert by_pairs(graph, ranks, 4 * elements) == by_rows_ps


def test_blocks_of_pairs_are_followed_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = build("fattree,k=4", rate_bps=100_000_000_000, delay_ps=1_000_000)
    expected_ps = by_pairs(graph, 16, 64)

    monkeypatch.setattr(exchange, "_BLOCK", 40)

    assert by_pairs(graph, 16, 64) == expected_ps


@given(
    rates=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    packets=st.integers(1, 5),
    last_bytes=st.integers(84, 4178),
)
def test_a_message_alone_takes_as_long_as_by_its_way(
    rates: list[int], packets: int, last_bytes: int
) -> None:
    """Links may be of any rates: the packets wait in front of the slowest one."""
    first_bytes = 4178 if packets > 1 else last_bytes
    sizes = first_bytes, (packets - 1) * first_bytes + last_bytes, last_bytes
    way = RouteLinks(0, tuple(rate * 10**9 for rate in rates))
    times_ps = [[[least_ps(size, rate) for rate in way.rates_bps]] for size in sizes]

    assert exchange._alone_ps(np.array(times_ps, np.int64)).tolist() == [way.alone_ps(*sizes)]
