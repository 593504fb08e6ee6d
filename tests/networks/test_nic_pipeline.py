"""Layer pipelines through NICs: exact results, and times by formula and by hand."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nic_runs import star

from ringleaf.experiments.workloads.nic.formula import StageLine, formula, lines
from ringleaf.experiments.workloads.nic.network import MakeNicNetwork, MakeSystem, NicNetwork
from ringleaf.experiments.workloads.nic.pipeline import PipelineCase, Work
from ringleaf.experiments.workloads.nic.spec import PipelineSpec
from ringleaf.experiments.workloads.nic.workload import Row
from ringleaf.hosts.nic.pipeline.layers import divide, infer, make_layers
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.graph import Link

HOSTS = 3
WIDTHS = (96, 200, 130, 64)


def connected(graph: nx.Graph[str], options: NetworkOptions) -> MakeNicNetwork:
    def connect(make_system: MakeSystem) -> NicNetwork:
        system = make_system(options)
        return NicNetwork(VirtualNetwork(graph, replace(options, system=system)), system)

    return connect


def measured(
    case: PipelineCase,
    *,
    samples: int = 24,
    widths: tuple[int, ...] = WIDTHS,
    options: NetworkOptions | None = None,
) -> Row:
    graph = star(HOSTS)
    layers = make_layers(widths, seed=1)
    given = np.random.default_rng(1).integers(0, 128, (samples, widths[0])).astype(np.int8)
    work = Work(PipelineSpec.read({}), divide(layers, HOSTS), given, infer(layers, given))
    connect = connected(graph, options or NetworkOptions(window=512))
    return work.measure(connect, case, work.formula(graph, case))


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=HOSTS + 1, max_size=HOSTS + 3).map(tuple),
    st.integers(1, 30),
    st.integers(1, 30),
    st.sampled_from([0.0, 0.02]),
)
def test_results_are_those_of_the_layers(
    widths: tuple[int, ...], samples: int, tile: int, share: float
) -> None:
    """Also if packets are lost, duplicated and late, and whatever a message's samples are."""
    options = NetworkOptions(mtu_bytes=256, loss=share, duplicate=share, reorder=share)
    case = PipelineCase(min(tile, samples), 0, 250_000)
    row = measured(case, samples=samples, widths=widths, options=options)
    assert row["wrong"] == 0


@pytest.mark.parametrize("product_ps", [10_000, 1_000_000, 10_000_000])
@pytest.mark.parametrize("tile", [2, 24])
def test_times_are_those_of_the_formula(tile: int, product_ps: int) -> None:
    """Lines at 100 Gbit/s are the limit of fast NICs, computation of slow ones."""
    row = measured(PipelineCase(tile, 0, product_ps))
    assert row["formula_ps"] <= row["time_ps"] < 1.02 * row["formula_ps"]
    assert row["limit"] == ("line" if product_ps == 10_000 else "compute")


def test_more_messages_than_may_be_under_way_get_through() -> None:
    row = measured(PipelineCase(1, 0, 1_000_000), samples=300, widths=(8, 9, 300, 4))
    assert row["wrong"] == 0
    assert row["messages"] == 300


def test_each_host_without_nic_adds_its_latency_once() -> None:
    """Two messages' ways, one behind the other; all that follow are behind the first."""
    nic, host = (measured(PipelineCase(4, latency_ps, 1_000_000)) for latency_ps in (0, 20_000_000))
    assert host["first_ps"] - nic["first_ps"] == pytest.approx(40_000_000, abs=100_000)
    assert host["time_ps"] - nic["time_ps"] == pytest.approx(40_000_000, abs=100_000)


def test_the_formula_by_hand() -> None:
    """Two links of 8 Gbit/s and 1 us, packets of 1000 bytes at most, with 82 around each.

    A message of 1500 bytes is one of 1082 bytes and one of 582: 1.082 us and 0.582 us on a link,
    as a byte takes 1 ns. The second packet follows the first: 1.082 + 0.582 on the first link; on
    the second, it waits until the first has left, at 1.082 + 1 + 1.082 us; and 1 us of delay.
    """
    line = StageLine([Link(8 * 10**9, 1_000_000)] * 2, mtu=1000)
    over_ps = 82_000
    passage_ps = (1000_000 + over_ps) * 2 + 1_000_000 + (500_000 + over_ps) + 1_000_000
    turn_ps = 1500_000 + 2 * over_ps
    assert line.passage_ps(1500) == passage_ps
    assert line.turn_ps(1500) == turn_ps
    found = formula([2_000_000, 500_000], [1500], [line], messages=11, latency_ps=7_000_000)
    assert found.first_ps == 2_500_000 + passage_ps + 7_000_000
    assert (found.turn_ps, found.limit) == (2_000_000, "compute")
    assert found.total_ps == found.first_ps + 10 * 2_000_000
    fast = formula([1_000_000, 500_000], [1500], [line], messages=2, latency_ps=0)
    assert (fast.turn_ps, fast.limit) == (turn_ps, "line")


def test_lines_lead_from_host_to_host() -> None:
    assert [len(each.links) for each in lines(star(HOSTS), 4096)] == [2, 2]


def test_the_formula_has_the_delays_of_hosts_and_switches() -> None:
    """Each of two ways leads out of a host, through a switch, and into a host."""
    delays = {"host_delay": "1us", "switch_delay": "300ns"}
    stages = divide(make_layers(WIDTHS, seed=1), HOSTS)
    samples = np.zeros((24, WIDTHS[0]), np.int8)
    formulas = [
        Work(PipelineSpec.read(options), stages, samples, samples).formula(
            star(HOSTS), PipelineCase(1, 0, 1_000_000)
        )
        for options in ({}, delays)
    ]
    assert formulas[1].first_ps - formulas[0].first_ps == 2 * (2 * 1_000_000 + 300_000)
