"""Slowdowns of flows: 1 for a flow alone, and percentiles by size by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.experiments.workloads.graph.about import results
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import resolve_workload
from ringleaf.experiments.workloads.graph.messages import Messages, bin_edges
from ringleaf.experiments.workloads.graph.results import WorkResults, slowdown_figures
from ringleaf.experiments.workloads.graph.slowdown import Bin, slowdown_of_all, slowdowns

LEAVES = "leafspine,leaves=2,spines=2,hosts=4"


def replay(folder: Path, *flows: str, **options: str) -> WorkResults:
    path = folder / "flows.csv"
    path.write_text("\n".join(["source,target,size,start", *flows]))
    given_options = {"workload": str(path), "topo": LEAVES, "data": "none", "out": str(folder)}
    experiment = WorkExperiment(resolve_workload({**given_options, **options}))
    return experiment.run(lambda share, done, wanted: None, lambda hops: None)


@pytest.mark.parametrize(
    ("flow", "options"),
    [
        ("0,1,1,0", {}),  # within a rack; a packet of 4 bytes, as elements have
        ("0,5,4097,0", {}),  # two packets, between racks
        ("0,5,1000003,7us", {"mtu": "1024", "cc": "dctcp"}),
        ("5,0,64KiB,0", {"topo": f"{LEAVES},host_rate=25G,delay=3us"}),
        ("0,5,64KiB,0", {"switch_delay": "500ns", "host_delay": "1us", "message_overhead": "2us"}),
        ("0,5,20000,0", {"routes": "ecmp", "placement": "scattered"}),
        ("0,2,4096,0", {"routes": "ugal", "topo": "torus2d,x=4,y=1"}),  # 0 to 2: both ways
    ],
)
def test_a_flow_alone_has_a_slowdown_of_1(
    tmp_path: Path, flow: str, options: dict[str, str]
) -> None:
    found = replay(tmp_path, flow, **options)

    size = int(found.messages.sizes_bytes[0])
    assert found.slowdown == [Bin(size, 1, 1.0, 1.0, 1.0)]


def test_two_flows_to_one_host_slow_each_other(tmp_path: Path) -> None:
    """Together they need the last link twice as long: 1 MB is 82 us of line time, headers aside.

    The later one takes two line times and the delays; alone, one line time and the delays.
    """
    [found] = replay(tmp_path, "1,0,1MB,0", "2,0,1MB,0").slowdown

    line_us = 245 * (4096 + 82) * 8 / 100e3  # 1 MB in packets, of which the last is shorter
    delays_us = 4.0
    most = (2 * line_us + delays_us) / (line_us + delays_us)
    assert found.count == 2
    assert found.p99 == pytest.approx(most, rel=0.01)
    assert 1.5 < found.p50 <= found.p99


def test_a_fullest_queue_that_nobody_knows_is_not_said_to_be_empty(tmp_path: Path) -> None:
    """As of live BMv2s."""
    found = replay(tmp_path, "0,1,1,0")
    assert "fullest queue 0 B; 0 packets sent again" in results(found)

    unknown = replace(found, peak_queue_bytes=None)
    assert "fullest queue not known; 0 packets sent again" in results(unknown)


def messages(*rows: tuple[int, int]) -> Messages:
    """Messages by size and time."""
    return Messages(np.array([(0, 1, size, 50, 50 + time) for size, time in rows], np.int64))


def test_percentiles_are_those_of_each_size() -> None:
    """Of 20 flows of 8 bytes alone in 10 ps, 19 take up to 190 ps: 95 %."""
    rows = [(8, 10 * factor) for factor in range(20, 0, -1)] + [(4, 30)]
    found = slowdowns(messages(*rows), np.array([10] * 20 + [20]))

    assert found == [Bin(4, 1, 1.5, 1.5, 1.5), Bin(8, 20, 10.0, 19.0, 20.0)]
    assert slowdowns(Messages(np.zeros((0, 5), np.int64)), np.zeros(0, np.int64)) == []


def test_a_sweep_has_percentiles_of_flows_of_all_sizes() -> None:
    """Of 20 flows of two sizes, 10 take up to 10 times as long as alone, and 19 up to 19 times."""
    rows = [(8 if factor > 7 else 4, 10 * factor) for factor in range(1, 21)]
    found = slowdown_of_all(messages(*rows), np.full(20, 10))

    assert found == Bin(8, 20, 10.0, 19.0, 20.0)
    assert slowdown_figures(found) == {
        "slowdown_p50": 10.0,
        "slowdown_p95": 19.0,
        "slowdown_p99": 20.0,
    }
    nothing = slowdown_of_all(Messages(np.zeros((0, 5), np.int64)), np.zeros(0, np.int64))
    assert set(slowdown_figures(nothing).values()) == {None}


def test_many_sizes_are_in_ten_bins_of_as_many_flows() -> None:
    sizes = np.arange(1, 1001)
    assert bin_edges(sizes).tolist() == list(range(100, 1001, 100))
    found = slowdowns(messages(*((size, 7) for size in sizes.tolist())), np.full(1000, 7))
    assert [(each.most_bytes, each.count) for each in found] == [
        (most, 100) for most in range(100, 1001, 100)
    ]


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 1000)), min_size=1, max_size=80))
def test_each_flow_is_in_one_bin(rows: list[tuple[int, int]]) -> None:
    found = slowdowns(messages(*rows), np.ones(len(rows), np.int64))

    assert sum(each.count for each in found) == len(rows)
    assert len(found) <= 10
    edges = [each.most_bytes for each in found]
    assert edges == sorted(set(edges))
    assert edges[-1] == max(size for size, _ in rows)
    before = 0
    for each in found:
        times = sorted(time for size, time in rows if before < size <= each.most_bytes)
        assert len(times) == each.count
        assert each.p50 == times[(len(times) + 1) // 2 - 1]
        assert each.p50 <= each.p95 <= each.p99 <= times[-1]
        before = each.most_bytes
