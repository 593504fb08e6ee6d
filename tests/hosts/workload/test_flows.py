"""Patterns of flows are what their names say, and files of flows are read as they are written."""

from __future__ import annotations

import re
from collections import Counter
from math import exp
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.flow_sizes import DISTRIBUTIONS
from ringleaf.hosts.workload.flows import (
    AT_RANDOM,
    FlowFile,
    TimedFlow,
    Traffic,
    graph_of,
    make_flows,
)
from ringleaf.hosts.workload.formats.flows import read_flows
from ringleaf.hosts.workload.graph import NodeKind
from ringleaf.hosts.workload.meetings import match

US = 10**6  # ps


def traffic(pattern: str, ranks: int, seed: int = 1) -> Traffic:
    return Traffic(pattern, ranks, (100, 100, 700), flows=50, interval_ps=US, seed=seed)


ranks_of = st.integers(2, 40)
seeds = st.integers(0, 99)


@given(ranks_of, seeds)
def test_all_others_send_to_one_in_an_incast(ranks: int, seed: int) -> None:
    flows = make_flows(traffic("incast", ranks, seed))
    assert len({flow.source for flow in flows}) == len(flows) == ranks - 1
    (target,) = {flow.target for flow in flows}
    assert target not in {flow.source for flow in flows}


@given(ranks_of, seeds)
def test_a_permutation_is_one_cycle(ranks: int, seed: int) -> None:
    follows = {flow.source: flow.target for flow in make_flows(traffic("permutation", ranks, seed))}
    rank, gone = 0, 0
    while gone == 0 or rank != 0:
        rank, gone = follows[rank], gone + 1
    assert gone == ranks


@given(ranks_of, seeds)
def test_all_pairs_exchange_in_an_all_to_all(ranks: int, seed: int) -> None:
    flows = make_flows(traffic("all-to-all", ranks, seed))
    pairs = Counter((flow.source, flow.target) for flow in flows)
    assert set(pairs) == {(a, b) for a in range(ranks) for b in range(ranks) if a != b}
    assert max(pairs.values()) == 1
    sizes = Counter(flow.size_bytes for flow in flows)
    assert sizes[700] == len(flows) // 3  # they go round


@given(seeds)
def test_random_flows_start_one_after_the_other(seed: int) -> None:
    flows = make_flows(traffic("random", 8, seed))
    starts = [flow.start_ps for flow in flows]
    assert len(flows) == 50
    assert starts == sorted(starts)
    assert len(set(starts)) > 40
    assert all(flow.source != flow.target for flow in flows)
    assert flows == make_flows(traffic("random", 8, seed))
    assert flows != make_flows(traffic("random", 8, seed + 1))


def test_mean_time_between_random_starts() -> None:
    many = Traffic("random", 8, (1,), flows=20_000, interval_ps=US, seed=1)
    assert make_flows(many)[-1].start_ps / 20_000 == pytest.approx(US, rel=0.03)


@pytest.mark.parametrize("pattern", AT_RANDOM)
def test_starts_are_a_poisson_process(pattern: str) -> None:
    """Gaps are exponential: as spread as long, and of e^-x / mean those longer than x.

    Of 20,000 gaps, five standard deviations of the shares are less than 0.018.
    """
    sizes = (1,) if pattern == "random" else ()
    drawn = DISTRIBUTIONS.get(pattern)
    flows = make_flows(Traffic(pattern, 8, sizes, 20_000, US, seed=2, drawn=drawn))
    starts = np.array([0, *(flow.start_ps for flow in flows)]) / US
    gaps = np.diff(starts)
    assert gaps.std() == pytest.approx(1, rel=0.04)
    for least in (0.1, 0.5, 1.0, 2.0, 4.0):
        assert (gaps > least).mean() == pytest.approx(exp(-least), abs=0.018)
    sources = Counter(flow.source for flow in flows)
    assert all(count == pytest.approx(2500, abs=5 * 47) for count in sources.values())


def test_a_ring_passes_on_what_it_received() -> None:
    """Each of three ranks sends four messages; all but the first wait for a received one."""
    flows = make_flows(traffic("ring", 3))
    assert Counter((flow.source, flow.target) for flow in flows) == {
        (0, 1): 4,
        (1, 2): 4,
        (2, 0): 4,
    }
    assert {flow.size_bytes for flow in flows} == {100}
    graph = graph_of("ring", flows, in_turn=True)
    for work in graph.ranks:
        receives = [node.id for node in work.nodes if node.kind is NodeKind.RECEIVE]
        sends = [node for node in work.nodes if node.kind is NodeKind.SEND]
        assert [node.after for node in sends] == [(), *((each,) for each in receives[:3])]
    match(graph)  # nobody waits forever


def test_flows_start_at_their_times_and_beside_one_another() -> None:
    graph = graph_of(
        "two", [TimedFlow(0, 1, 8, 5 * US), TimedFlow(0, 1, 16), TimedFlow(0, 2, 8, 7 * US)]
    )
    assert [len(work.nodes) for work in graph.ranks] == [5, 2, 1]
    waits = [node for node in graph.ranks[0].nodes if node.kind is NodeKind.COMPUTE]
    assert [node.duration_ps for node in waits] == [5 * US, 7 * US]
    assert len({node.stream for node in waits}) == 2
    meetings = match(graph).meetings
    assert sorted((each.ranks, each.size_bytes) for each in meetings) == [
        ((0, 1), 8),
        ((0, 1), 16),
        ((0, 2), 8),
    ]


def test_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("start, source,target, size\n0,0,1, 64KiB\n1.5us,3,2,100\n")
    assert read_flows(path) == FlowFile(
        [TimedFlow(0, 1, 65536, 0), TimedFlow(3, 2, 100, 1_500_000)]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: must be source,target,size,start, got ''"),
        ("source,target\n1,2\n", "line 1: must be source,target,size,start, got 'source,target'"),
        ("source,target,size,start\n", "must have a flow at least, got none"),
        ("source,target,size,start\n0,0,1,0\n", "line 2: target must be another rank than source"),
        ("source,target,size,start\n0,-1,1,0\n", "line 2: target: must be a rank"),
        ("source,target,size,start\n0,1,0,0\n", "line 2: size must be 1 B or more, got '0'"),
        ("source,target,size,start\n0,1,1Mb,0\n", "line 2: size: must be in bytes"),
        ("source,target,size,start\n0,1,1,2 parsec\n", "line 2: start: unit must be"),
        ("source,target,size,start\n0,1,1\n", "line 2: must have 4 cells"),
        ("# none\n\n", "line 1: must be source,target,size,start, got ''"),
        ("# one\nsrc,source,size,start\n", "line 2: must be source,target,size,start, got 'src,s"),
        ("source,target,size,start\n0,1,1,0,9\n", "line 2: must have 4 cells"),
        ("source,target,size,start\n0,99999,1,0\n", "line 2: target: must have 1 to 4096 ranks"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(message)):
        read_flows(path)


def test_one_rank_has_nobody_to_send_to() -> None:
    with pytest.raises(ConfigError, match="ranks: flows need 2 ranks at least, got 1"):
        make_flows(traffic("incast", 1))


@pytest.mark.parametrize(
    "text",
    [
        "source;target;size;start\n0;1;64KiB;1us\n",
        "start\tsize\tsource\ttarget\r\n1us\t64KiB\t0\t1\r\n",
        "\ufeffSource, Target, Size, Start\n0, 1, 64KiB, 1us\n",
        "source,target,size,start,,\n0,1,64KiB,1us,,\n,,,,,\n",
        '"# flows, of mine",,,\n\nsource;target;size;start\n# the only one\n0;1;64KiB;1us\n',
        "src,dst,bytes,start\n0,1,65536,1us\n",
    ],
)
def test_spreadsheets_write_the_same_flows(tmp_path: Path, text: str) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(text, encoding="utf-8")
    assert read_flows(path).flows == [TimedFlow(0, 1, 65536, US)]


@pytest.mark.parametrize(
    ("header", "start", "start_ps"),
    [
        ("src,dst,size_bytes,start_ns", "5", 5000),
        ("Source,Destination,Size (bytes),Start (us)", "2.5", 2_500_000),
        ("src,dst,bytes,start_ps", "7", 7),
        ("src,dst,size,start_us", "3ns", 3000),  # its own unit counts
    ],
)
def test_columns_may_have_units_in_their_names(
    header: str, start: str, start_ps: int, tmp_path: Path
) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"{header}\n0,1,1000,{start}\n")
    [flow] = read_flows(file).flows
    assert (flow.size_bytes, flow.start_ps) == (1000, start_ps)


@pytest.mark.parametrize("header", ["src,dst,size_us,start", "src,dst,size,start_bytes"])
def test_a_column_has_units_of_its_own_kind(header: str, tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text(f"{header}\n0,1,1000,0\n")
    with pytest.raises(ConfigError, match="must be source,target,size,start"):
        read_flows(file)
