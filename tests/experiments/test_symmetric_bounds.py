"""Bounds by classes of ranks are those of all rows, or lower; and never above the time."""

from __future__ import annotations

import numpy as np
import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.symmetric_rows import symmetry_of
from ringleaf.experiments.bounds import symmetric
from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.networks.flow.class_search import find_classes
from ringleaf.networks.flow.network import FlowNetwork
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.pair_links import PairLinks
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import routes

SYMMETRIC = [name for name in ALGORITHMS.shipped() if ALGORITHMS[name].symmetric]


@pytest.mark.parametrize("topo", ["fattree,k=4", "leafspine,leaves=4,spines=1,hosts=4"])
@pytest.mark.parametrize("elements", [16 * 10, 16 * 20_000])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_bounds_of_classes_are_no_more_than_those_of_rows(
    name: str, elements: int, topo: str
) -> None:
    graph = build(topo, rate_bps=100_000_000_000, delay_ps=1_000_000)
    schedule = ALGORITHMS[name].build(16, segments=4, hierarchy=(4, 4))
    symmetry = symmetry_of(schedule.as_rows)
    assert symmetry is not None
    classes = find_classes(symmetry, PairLinks(graph, routes(graph)), np.arange(16))
    assert classes is not None
    edges = np.arange(schedule.chunks + 1) * (elements // schedule.chunks)
    bounds = Bounds(graph)
    network = FlowNetwork(graph, NetworkOptions(has_data=False))
    taken_ps = network.run(schedule, network.arrays(elements, schedule=schedule)).time_ps

    by_classes_ps = symmetric.least_ps(classes, edges, 4, 4096, bounds.line_bytes)

    by_rows_ps = bounds.least_ps(schedule, 4 * elements, 4)
    assert by_classes_ps <= by_rows_ps <= taken_ps
    if symmetry.is_chain and topo.startswith("fattree"):  # else links are shared
        assert by_classes_ps > 0.9 * by_rows_ps
