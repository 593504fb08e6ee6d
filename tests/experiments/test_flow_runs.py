"""Experiments on the network of flows: rows, what they say of errors, and what they refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.estimates import flow_errors
from ringleaf.experiments.estimates.flow_errors import ErrorCell, bin_of, read_cells
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.drawing import read_results
from ringleaf.experiments.runs.python import run
from ringleaf.experiments.runs.request import resolve
from ringleaf.experiments.setup.ranks import count_nodes
from ringleaf.experiments.workloads.graph.results import GraphResults

SMALL = {"topo": "leafspine,leaves=2,spines=2,hosts=2", "net": "flow", "figures": "no"}
KNOWN = ErrorCell("ring", "leafspine", 1.0, 64 << 10, 4, 9, -0.2, -0.1, 0.4, 0.5)
JOBS = replace(KNOWN, what="jobs by ring and fifo", worst=0.7)
FLOWS = replace(KNOWN, what="workload all-to-all", worst=0.9)


@pytest.fixture(autouse=True)
def _cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_errors, "read_cells", lambda: (KNOWN, JOBS, FLOWS))


def results_of(tmp_path: Path, **options: Any) -> Any:
    return run(**{**SMALL, "out": str(tmp_path / "run"), **options})


def test_a_row_says_what_its_time_may_be_wrong_by(tmp_path: Path) -> None:
    result = results_of(tmp_path, algo="ring", size="1M,4K")

    known, unknown = result.rows
    assert (known.wrong, known.within_percent, known.outside) == (0, 0.5, "")
    assert unknown.within_percent is None
    assert unknown.outside == "messages of 1 B and more, with an oversubscription of 1"
    assert known.packets_ps is None


@pytest.mark.parametrize(
    ("net", "how"), [("flow", "for which messages stand"), ("virtual", "carried one by one")]
)
def test_a_page_says_whether_packets_were_carried(tmp_path: Path, net: str, how: str) -> None:
    result = results_of(tmp_path, algo="ring", size="4K", net=net)

    page = result.report().read_text(encoding="utf-8")
    assert f"packets on links, {how}" in page
    assert f"{result.rows[0].packet_hops:,}" in page


def test_a_page_says_what_was_skipped_and_what_nobody_has_measured(tmp_path: Path) -> None:
    topo = "leafspine,leaves=4,spines=2,hosts=8"
    result = results_of(tmp_path, topo=topo, algo="ring", size="16M", data="none", skip="5%")

    (row,) = result.rows
    page = result.report().read_text(encoding="utf-8")
    assert row.skipped_percent > 0
    for line in (row.skipping, "nobody has measured what flows are wrong by here (docs/flow.md): "):
        assert f"ring at 16 MiB: {line}" in page
    assert "for which messages stand, but for what was skipped" in page


def test_packets_run_beside_it_if_that_is_asked_for(tmp_path: Path) -> None:
    (row,) = results_of(tmp_path, algo="ring", size="1M", check_packets="yes").rows
    (packets,) = results_of(tmp_path, algo="ring", size="1M", net="virtual").rows

    assert row.packets_ps == packets.time_ps
    assert row.found_percent == pytest.approx(100 * (row.time_ps / packets.time_ps - 1))
    assert abs(row.found_percent) < 1


@pytest.mark.parametrize(
    ("options", "outside"),
    [
        ({"algo": "tree"}, "tree on leafspine"),
        ({"topo": "fattree,k=4"}, "ring on fattree"),
        ({"topo": "leafspine,leaves=4,spines=2,hosts=2"}, "8 ranks, of at most 4"),
        (
            {"topo": "leafspine,leaves=2,spines=1,hosts=2"},
            "messages of 64 KiB and more, with an oversubscription of 2",
        ),
        ({"delay": "5us"}, "delay=5000000"),
        ({"routes": "ecmp"}, "routes=ecmp"),
        ({"queue_pairs": "2"}, "queue_pairs=2"),
        (
            {"topo": "leafspine,leaves=2,spines=2,hosts=2,rate=1G,host_rate=100G"},
            "rate=1G; messages of 64 KiB and more, with an oversubscription of 100",
        ),
        (
            {"topo": "leafspine,leaves=2,spines=2,hosts=2,host_delay=1ms,rate=100G"},
            "host_delay=1ms",
        ),
        ({"topo": "leafspine,node=2xh100,leaves=2,spines=2,hosts=1", "hosts": "4"}, "node=2xh100"),
    ],
)
def test_what_nobody_has_measured_is_said(
    tmp_path: Path, options: Mapping[str, str], outside: str
) -> None:
    (row,) = results_of(tmp_path, **{"algo": "ring", "size": "1M", **options}).rows

    assert row.within_percent is None
    assert row.outside == outside


@pytest.mark.parametrize(
    ("options", "within_percent", "outside"),
    [
        ({}, 0.7, ""),  # one piece of 2 MB, halves of which go round
        ({"scheduler": "p3"}, None, "jobs by ring and p3 on leafspine"),
        ({"jitter": "5%"}, None, "jitter=0.05"),
        (
            {"fuse": "0"},  # 53 pieces
            None,
            "messages of 4 KiB and more, with an oversubscription of 1",
        ),
        ({"counts": "3"}, None, "6 ranks, of at most 4"),
    ],
)
def test_jobs_say_what_their_times_may_be_wrong_by(
    tmp_path: Path, options: Mapping[str, str], within_percent: float | None, outside: str
) -> None:
    jobs = [{"model": "resnet50", "ranks": 2, "iterations": 1}] * 3
    given = {"topo": "leafspine,leaves=2,spines=3,hosts=3", "servers": "0", "counts": "2"}

    given |= {"algo": "ring", "size": "0.02", "fuse": "4MiB"}
    result = read_results(results_of(tmp_path, jobs=jobs, **{**given, **options}).folder)

    for row in result.rows:
        assert (row.within_percent, row.outside) == (within_percent, outside)
    assert "within_percent" in [each.name for each in result.columns]
    told = f"nobody has measured what flows are wrong by here (docs/flow.md): {outside}"
    assert [line for line in result.foot() if "nobody has measured" in line] == (
        [f"ring, {options.get('scheduler', 'fifo')}: {told}"] if outside else []
    )


@pytest.mark.parametrize(
    ("options", "within_percent", "line"),
    [
        ({}, 0.9, "by flows: like runs took up to 0.9 % more or less by packets (docs/flow.md)"),
        (
            {"workload": "incast"},
            None,
            "by flows: nobody has measured what flows are wrong by here (docs/flow.md): workload "
            "incast on leafspine",
        ),
    ],
)
def test_workloads_say_what_their_time_may_be_wrong_by(
    tmp_path: Path, options: Mapping[str, str], within_percent: float | None, line: str
) -> None:
    given = {"workload": "all-to-all", "ranks": "4", "flow_sizes": "64K"}

    result = read_results(results_of(tmp_path, **{**given, **options}).folder)

    assert isinstance(result, GraphResults)
    assert result.done.within_percent == within_percent
    assert line in list(result.foot())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"loss": "1%"}, "loss: no fluid model covers loss, got 0.01; take net=virtual"),
        ({"pfc": "64K:48K"}, "pfc: no fluid model covers priority flow control"),
        ({"cc": "dcqcn"}, "cc: no fluid model covers windows that change, got 'dcqcn'"),
        ({"pcap": "yes"}, "pcap: flows have no packets to capture"),
        ({"explain": "yes"}, "explain: needs the packets' times"),
        ({"algo": "atp", "servers": "1"}, "algo: atp has no fluid form, got net=flow"),
        ({"offload": "guo"}, "net: can't carry this workload, got 'flow'; take net=virtual"),
        ({"net": "virtual", "check_packets": "yes"}, "check_packets: is for net=flow"),
    ],
)
def test_what_flows_are_not_for_is_refused(options: Mapping[str, str], reason: str) -> None:
    given = {"algo": "ring", **SMALL, **options}
    if "offload" in options:
        given = {"net": "flow", **options}
    with pytest.raises(ConfigError, match=reason):
        check(resolve(given))


def test_jobs_end_as_by_packets(tmp_path: Path) -> None:
    job = {"model": "resnet50", "ranks": 4, "iterations": 2, "size": 0.02, "compute": 0.02}
    given = {"topo": "leafspine,leaves=2,spines=1,hosts=4", "jobs": [job, job], "servers": "0"}
    given |= {"algo": "ring", "figures": "no"}

    flows, packets, plain = (
        run(**given, **options, out=str(tmp_path / name))  # type: ignore[arg-type]
        for name, options in {
            "flow": {"net": "flow"},
            "virtual": {"net": "virtual"},
            "none": {"net": "flow", "data": "none"},
        }.items()
    )

    assert [row.wrong for row in flows.rows] == [0, 0]
    assert [row.wrong for row in plain.rows] == [None, None]
    for row, by_packets, without in zip(flows.rows, packets.rows, plain.rows, strict=True):
        assert row.jct_ps == pytest.approx(by_packets.jct_ps, rel=0.02)
        assert row.jct_ps == without.jct_ps


TWO_JOBS: dict[str, Any] = {
    "topo": "leafspine,leaves=2,spines=1,hosts=4",
    "jobs": [
        {"model": name, "ranks": 4, "iterations": 2, "size": 0.02, "compute": 0.02}
        for name in ("resnet50", "vgg16")
    ],
    "servers": "0",
    "algo": "ring",
    "figures": "no",
}


def test_urgent_pieces_of_jobs_go_first_as_by_packets(tmp_path: Path) -> None:
    """A scheduler that gives layers priorities changes a job's end, and by as much."""
    ends = {}
    for net in ("flow", "virtual"):
        result = run(**TWO_JOBS, scheduler="fifo,p3", net=net, out=str(tmp_path / net))
        ends[net] = [row.jct_ps for row in result.rows]

    assert ends["flow"] == pytest.approx(ends["virtual"], rel=0.05)
    assert ends["flow"][3] > 1.1 * ends["flow"][1]


@pytest.mark.parametrize(
    ("scheduler", "reason"),
    [
        ("varys", "scheduler: flows are not paced by hosts, got a rate of"),
        ("mercury", "scheduler: flows have no priorities that only hosts obey, got one of"),
    ],
)
def test_schedulers_that_need_packets_are_refused(
    tmp_path: Path, scheduler: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        run(**TWO_JOBS, scheduler=scheduler, net="flow", out=str(tmp_path))


def test_jobs_of_packets_have_data() -> None:
    job = {"model": "resnet50", "ranks": 4, "iterations": 2}

    with pytest.raises(ConfigError, match="data: of jobs can be none with net=flow only"):
        resolve({"jobs": [job], "data": "none"})


def test_a_graph_of_work_ends_as_by_packets(tmp_path: Path) -> None:
    """Short messages are too quick, as there are no queues, but the last one ends as by packets."""
    given = {"topo": "leafspine,leaves=2,spines=1,hosts=4", "workload": "all-to-all"}
    given |= {"ranks": "8", "figures": "no"}

    times = [
        run(**given, net=net, out=str(tmp_path / net)).rows[-1].longest_ps  # type: ignore[arg-type]
        for net in ("flow", "virtual")
    ]

    assert times[0] == pytest.approx(times[1], rel=0.01)


def test_the_table_has_a_bound_for_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    cells = read_cells()

    assert len({(c.what, c.family, c.ratio, c.least_bytes) for c in cells}) == len(cells) >= 100
    assert all(abs(c.median) <= c.worst and abs(c.mean) <= c.worst for c in cells)
    assert all(bin_of(c.least_bytes) == c.least_bytes for c in cells)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"algo": "doubletree"}, "doubletree does not say which ranks do the same"),
        ({"algo": "ring", "data": "random"}, r"there is data \(take data=none\)"),
        (
            {"algo": "ring", "size": "1000000"},
            "chunks differ in size, as 65536 do not divide 250000",
        ),
        ({"algo": "ring", "routes": "ecmp"}, "pairs of hosts are told apart by routes=ecmp"),
        (
            {"algo": "ring", "message_overhead": "1us"},
            "messages wait for processors .take message_overhead=0.",
        ),
    ],
)
def test_very_many_hosts_that_do_not_go_by_classes_are_refused_with_the_reason(
    tmp_path: Path, options: Mapping[str, str], reason: str
) -> None:
    given = {"topo": "fattree,k=64", "net": "flow", "data": "none", "size": "1M", **options}

    with pytest.raises(ConfigError, match=f"by classes of ranks .* got 65536, but {reason}; by"):
        check(resolve({**given, "out": str(tmp_path / "run")}))


def test_memory_of_very_many_hosts_is_that_of_classes(tmp_path: Path) -> None:
    """It is an eighth of what 65,536 hosts would need for the rates of their pairs alone."""
    given = {"topo": "fattree,k=64", "net": "flow", "data": "none", "size": "1M"}
    request = resolve({**given, "algo": "ring", "out": str(tmp_path / "run")})

    need = request.kind.need(request.spec, count_nodes(request.spec))

    assert need.memory_bytes < 8 << 30


def test_many_hosts_have_rows_without_timelines(tmp_path: Path) -> None:
    options = {"topo": "fattree,k=16", "algo": "halvingdoubling", "data": "none", "size": "1M"}

    results = results_of(tmp_path, **options)

    (row,) = results.rows
    assert 90 < row.bound_percent <= 100
    assert row.events < 1000
    assert row.wire_bytes > 2 * (1 << 20) * 1023 / 1024
    assert not list((tmp_path / "run").glob("**/*.trace*"))
