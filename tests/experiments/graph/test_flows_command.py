"""Flows through the command line: patterns, files, percentiles, sweeps and refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ringleaf.experiments.commands.cli import make_app
from ringleaf.experiments.workloads.graph.figures import draw_messages, figures_of
from ringleaf.experiments.workloads.graph.messages import Messages
from ringleaf.experiments.workloads.graph.results import PERCENTILE_NAMES
from ringleaf.experiments.workloads.graph.swept import make_spending, make_times

RACK = "leafspine,leaves=1,spines=1,hosts=20,rate=100G,delay=1us"
US = 10**6  # ps


def typed(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(make_app(), list(arguments))
    return result.exit_code, result.output


def run(out: Path, *arguments: str, drawn: bool = False) -> dict[str, Any]:
    figures = () if drawn else ("--figures", "no")  # they take longer than a small run
    code, output = typed("workload", "run", *arguments, "--out", str(out), *figures)
    assert code == 0, output
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


def test_fewest_bytes_first_is_faster_for_most_flows_of_an_incast(tmp_path: Path) -> None:
    """pFabric's aim: small flows don't wait for large ones, and the last is no later."""
    words = ("incast", "--ranks", "20", "--topo", RACK)
    plain = run(tmp_path / "fixed", *words, drawn=True)
    first = run(tmp_path / "pfabric", *words, "--cc", "pfabric")
    assert first["p50_ps"] < 0.85 * plain["p50_ps"]
    assert first["p999_ps"] < 1.05 * plain["p999_ps"]
    assert plain["wrong"] == first["wrong"] == 0
    page = (tmp_path / "fixed" / "report.html").read_text()
    assert "19 messages: p50" in page
    assert (tmp_path / "fixed" / "figures" / "messages.png").stat().st_size > 10_000


def test_flows_of_a_file_start_at_their_times(tmp_path: Path) -> None:
    """A packet of 1,000 B, and its acknowledgement, take line time and delay on two links each."""
    path = tmp_path / "two.csv"
    path.write_text("source,target,size,start\n0,1,1000,5us\n1,2,64KiB,0\n0,1,1000,9us\n")
    summary = run(tmp_path / "out", str(path), "--topo", RACK)
    with (tmp_path / "out" / "messages.csv").open(newline="") as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    lone = [row for row in rows if row["source"] == 0]
    assert sorted(row["start_ps"] for row in lone) == [5 * US, 9 * US]
    assert len({row["end_ps"] - row["start_ps"] for row in lone}) == 1
    took_ps = lone[0]["end_ps"] - lone[0]["start_ps"]
    headers_bytes = 14 + 20 + 8 + 12 + 4 + 24  # up to BTH, ICRC; preamble, FCS and gap
    aeth_bytes, byte_ps = 4, 80
    assert took_ps == 4 * US + 2 * (1000 + headers_bytes + headers_bytes + aeth_bytes) * byte_ps
    # Ranks compute nothing until flows start, and these wait for nobody.
    assert summary["compute_share"] == 0
    with (tmp_path / "out" / "ranks.csv").open(newline="") as file:
        first, *_ = csv.DictReader(file)
    assert int(first["exposed_ps"]) == 4 * US + took_ps
    assert {row["wait_ps"] for row in summary["rows"]} == {0}
    bars = json.loads((tmp_path / "out" / "timeline.json").read_text())["traceEvents"]
    assert {bar["cat"] for bar in bars if bar["ph"] == "X"} == {"flow"}


def test_hosts_inject_a_rate_over_all_of_their_ports(tmp_path: Path) -> None:
    """A server of a torus of 2 x 3 has three ports; 30 % of its rate is 30 Gbit/s.

    So six of them begin a flow of 4 KiB every 0.18 us, and 60 flows in 10.9 us, on average.
    """
    given = ("--ranks", "6", "--topo", "torus2d", "--inject", "100G", "--load", "30%")
    run(tmp_path, "random", *given, "--flow-sizes", "4KiB", "--flows", "60")
    with (tmp_path / "links.csv").open(newline="") as file:
        assert {int(row["rate_bps"]) for row in csv.DictReader(file) if row["from"] == "s0"} == {
            100 * 10**9 // 3 * 3,  # to its host
            100 * 10**9 // 3,
        }
    with (tmp_path / "messages.csv").open(newline="") as file:
        last_ps = max(int(row["start_ps"]) for row in csv.DictReader(file))
    assert 7 * US < last_ps < 16 * US


def test_circuits_change_between_flows_that_are_far_apart(tmp_path: Path) -> None:
    """A controller is asked again when something has happened, and each change takes its time."""
    circuits = ("--topo", "circuits,racks=4,hosts=2", "--circuits", "helios,period=30us,dead=5us")
    drawn = ("--ranks", "8", "--flows", "20", "--interval", "40us", "--flow-sizes", "64KiB")
    summary = run(tmp_path, "random", *circuits, *drawn)
    assert summary["changes"] > 3
    assert summary["dark_ps"] == 5 * US * summary["changes"]


def test_a_sweep_has_percentiles_of_each_run(tmp_path: Path) -> None:
    path = tmp_path / "flows.yaml"
    path.write_text(
        "workload: flows\ntopo: leafspine,leaves=2,spines=1,hosts=2\nranks: 4\n"
        "flow_sizes: 4KiB,16KiB\npattern: [permutation, ring]\ncc: [fixed, swift]\n"
    )
    out = tmp_path / "out"
    code, output = typed("run", "--spec", str(path), "--out", str(out))
    assert code == 0, output
    with (out / "sweep.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["pattern"], row["cc"]) for row in rows] == [
        (pattern, control) for pattern in ("permutation", "ring") for control in ("fixed", "swift")
    ]
    for row in rows:
        assert 0 < int(row["p50_ps"]) <= int(row["p99_ps"]) <= int(row["p999_ps"])
        assert 0 < float(row["fairness"]) <= 1
        assert 1 <= float(row["slowdown_p50"]) <= float(row["slowdown_p99"])
        assert row["wrong"] == "0"
    page = (out / "report.html").read_text()
    assert "p99.9 (µs)" in page
    assert "slowdown p99" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("incast", "--ranks", "1"), "ranks: flows need 2 ranks at least, got 1"),
        (("star",), "workload: unknown workload, got 'star'"),
        (("incast", "--flow-sizes", "0"), "flow_sizes: sizes must be 1 B or more, got '0'"),
        (("none.csv",), "none.csv"),
        (("gpt13b", "--ranks", "8"), "ranks: is of flows, got 8 for workload: llm"),
        (("incast", "--tp", "2"), "tp: is of models, got 2 for flows"),
    ],
)
def test_wrong_options_are_refused(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = typed("workload", "run", *arguments)
    assert code == 2
    assert message in " ".join(output.split())
    assert not list(tmp_path.iterdir())


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50))
def test_percentiles_are_times_that_enough_messages_keep(times: list[int]) -> None:
    table = np.array([(0, 1, 8, 0, time) for time in times])
    p50, p99, p999 = Messages(table).percentiles_ps()
    assert p999 == max(times)
    assert {p50, p99} <= set(times)
    assert sum(time <= p50 for time in times) >= len(times) / 2 > sum(time < p50 for time in times)


def test_nothing_is_said_of_no_messages() -> None:
    none = Messages(np.zeros((0, 5), np.int64))
    assert none.percentiles_ps() == []
    assert none.fairness() is None


def test_a_message_that_is_the_only_one_of_its_size_is_fair_to_none() -> None:
    table = np.array([(0, 1, 8, 0, 10), (1, 0, 8, 0, 30), (0, 2, 16, 0, 70)])
    assert Messages(table).fairness() is None
    fairness = Messages(table[:2]).fairness()
    assert fairness == pytest.approx((1 / 10 + 1 / 30) ** 2 / (2 * (1 / 10**2 + 1 / 30**2)))


def test_a_size_with_one_message_has_a_dot_at_its_time() -> None:
    table = np.array([(0, 1, 8, 0, 10), (1, 0, 8, 0, 30), (0, 2, 16, 0, 70)]) * US
    [axes] = draw_messages(Messages(table), "simulated").axes
    several, single = axes.lines
    assert [line.get_markevery() for line in (several, single)] == [[-1], [-1]]
    assert single.get_marker() == "."
    assert np.asarray(single.get_data())[:, -1].tolist() == [70, 1]
    assert np.asarray(several.get_data())[:, -1].tolist() == [30, 0.5]
    assert axes.get_ylim()[1] < 2, "no share is above 1"


RUN = {
    **dict.fromkeys(("compute_share", "exposed_share", "idle_share"), 0.3),
    **dict.fromkeys(("iteration_ps", *PERCENTILE_NAMES), 5 * US),
}


@pytest.mark.parametrize(
    ("virtual", "clock"),
    [
        ([None, ""], "simulated"),
        ([7, "8"], "wall-clock"),
        (["", 7], "simulated or wall-clock"),
    ],
)
def test_axes_of_sweeps_name_the_clocks_of_their_runs(virtual: list[object], clock: str) -> None:
    """A live run has the time of its prediction besides its own."""
    lines = [RUN | {"cc": str(at), "virtual_ps": each} for at, each in enumerate(virtual)]

    [spending] = make_spending(lines, ["cc"]).axes
    [times] = make_times(lines, ["cc"]).axes

    assert spending.get_xlabel() == f"a rank's time in an iteration (ms, {clock})"
    assert times.get_xlabel() == f"time of messages (us, {clock})"


def test_a_live_runs_messages_took_time_of_the_wall_clock() -> None:
    one = Messages(np.array([(0, 1, 8, 0, US)]))
    for clock in ("simulated", "wall-clock"):
        results: Any = SimpleNamespace(messages=one, link_series=None, slowdown=[], clock=clock)
        [axes] = figures_of(results)["messages"]().axes
        assert axes.get_xlabel() == f"time (us, {clock})"


def test_drawn_flows_have_slowdowns_by_size(tmp_path: Path) -> None:
    """30 % of 8 links on average: the table, a file, a figure and the page have them."""
    code, output = typed(
        *("workload", "run", "hadoop", "--ranks", "8", "--flows", "300", "--out", str(tmp_path))
    )
    assert code == 0, output
    table = [line.split() for line in output.splitlines() if line.startswith("# ")]
    start = next(at for at, words in enumerate(table) if words[1:3] == ["slowdown", "by"])
    shown = [words[1:] for words in table[start + 2 : start + 12]]
    with (tmp_path / "slowdown.csv").open(newline="") as file:
        bins = list(csv.DictReader(file))
    assert [[row["most_bytes"], row["count"], f"{float(row['p99']):.2f}"] for row in bins] == [
        [words[0], words[1], words[4]] for words in shown
    ]
    assert sum(int(row["count"]) for row in bins) == 300
    assert all(1 <= float(row["p50"]) <= float(row["p95"]) <= float(row["p99"]) for row in bins)
    with (tmp_path / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) <= 10  # sizes share rows, of which there would be 300
    most = [int(row["size_bytes"]) for row in rows]
    assert most == sorted(set(most)) == [int(row["most_bytes"]) for row in bins]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert sum(int(row["count"]) for row in rows) == 300
    sizes = sum(int(row["total_bytes"]) for row in rows)
    with (tmp_path / "messages.csv").open(newline="") as file:
        messages = list(csv.DictReader(file))
    assert sizes == sum(int(row["size_bytes"]) for row in messages)
    last_ps = max(int(row["start_ps"]) for row in messages)
    assert 0.1 < sizes * 8 * 10**12 / last_ps / (8 * 100e9) < 0.9  # 0.3, but for the few flows
    assert summary["config"]["load"] is None
    assert "Slowdown of flows" in (tmp_path / "report.html").read_text()
    before = (tmp_path / "figures" / "slowdown.png").read_bytes()
    code, output = typed("plot", str(tmp_path))
    assert code == 0, output
    assert (tmp_path / "figures" / "slowdown.png").read_bytes() == before


def test_a_spec_names_a_workload_as_the_command_does(tmp_path: Path) -> None:
    words = ["--ranks", "4", "--topo", "leafspine,leaves=2,spines=1,hosts=2"]
    run(tmp_path / "command", "incast", *words)
    spec = tmp_path / "incast.yaml"
    spec.write_text("workload: incast\nranks: 4\ntopo: leafspine,leaves=2,spines=1,hosts=2\n")
    code, output = typed(
        "run", "--spec", str(spec), "--out", str(tmp_path / "spec"), "--figures", "no"
    )
    assert code == 0, output
    for name in ("messages.csv", "slowdown.csv", "results.csv"):
        assert (tmp_path / "spec" / name).read_bytes() == (tmp_path / "command" / name).read_bytes()


def test_controls_are_a_list_in_the_command_and_in_specs(tmp_path: Path) -> None:
    words = ("--ranks", "4", "--topo", "leafspine,leaves=2,spines=1,hosts=2")
    out = tmp_path / "command"
    code, output = typed("workload", "run", "incast", *words, "--cc", "fixed,swift", "--out", out)  # type: ignore[arg-type]
    assert code == 0, output
    spec = tmp_path / "incast.yaml"
    spec.write_text(
        "workload: [incast, permutation]\nranks: 4\ncc: [fixed, swift]\n"
        "topo: leafspine,leaves=2,spines=1,hosts=2\n"
    )
    code, output = typed("run", "--spec", str(spec), "--out", str(tmp_path / "spec"))
    assert code == 0, output
    with (out / "sweep.csv").open(newline="") as file:
        two = list(csv.DictReader(file))
    with (tmp_path / "spec" / "sweep.csv").open(newline="") as file:
        four = list(csv.DictReader(file))
    assert [row["cc"] for row in two] == ["fixed", "swift"]
    assert [(row["workload"], row["cc"]) for row in four] == [
        (name, cc) for name in ("incast", "permutation") for cc in ("fixed", "swift")
    ]
    assert [row["p99_ps"] for row in two] == [row["p99_ps"] for row in four[:2]]


def test_the_header_says_what_sizes_are_drawn(tmp_path: Path) -> None:
    """Half are of 64 B, others between it and 2,048: on average (64 + (64 + 2,048) / 2) / 2."""
    path = tmp_path / "cdf.txt"
    path.write_text("64 0\n64 50\n2048 100\n")
    words = ("random", "--flow-sizes", str(path), "--flows", "9", "--ranks", "4", "--topo", RACK)
    out = ("--out", str(tmp_path / "out"), "--figures", "no")
    code, output = typed("workload", "run", *words, *out)
    assert code == 0, output
    assert "# sizes are drawn: 64 B to 2 KiB, 560 B on average\n" in output

    code, output = typed("workload", "run", str(path))
    assert code == 2
    assert "a distribution of sizes, which --flow-sizes takes" in " ".join(output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("incats",), "workload: unknown workload, got 'incats'; did you mean 'incast'? valid: g"),
        (("incast", "--load", "30%"), "load: is of flows that start at random, got 0.3 for patte"),
        (("random", "--load", "0"), "load: must be above 0, got '0'; write it like 30%"),
        (("random", "--load", "120%"), "load: must be in [0, 1), got '120%'"),
        (("random", "--flow-sizes", "websurch"), "flow_sizes: not understood, got 'websurch'"),
        (("incast", "--cc", "fixed,swfit"), "got 'swfit'; did you mean 'swift'? valid: dcqcn"),
    ],
)
def test_wrong_names_and_loads_are_refused(arguments: tuple[str, ...], message: str) -> None:
    code, output = typed("workload", "run", *arguments)
    assert code == 2
    assert message in " ".join(output.split())


PLAN = '{"name": "a", "collective": "allreduce", "gpus": [{"id": 0}]}'


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (("workload", "run"), PLAN, "an execution plan of MSCCL++; files that are read: NAME.goal"),
        (("workload", "show"), "66 1 65\n0\n", "a topology of HPCC's ns-3; files that are read: *"),
        (
            ("workload", "run"),
            "\x7f\x10\0\0\0\0\0\0",
            "in LogGOPSim's binary form; files that are ",
        ),
        (("verify",), PLAN, "algo: can't be the algorithm, got the file 'ring'"),
        (("run", "--algo"), PLAN, "MSCCL++; files that are read: *.csv, *.xml; names: a2tp"),
        (("run", "--compress"), PLAN, "compress: can't be the compressor, got the file 'ring'"),
    ],
)
def test_a_file_is_never_a_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    text: str,
    message: str,
) -> None:
    """Not even if it is called almost as something is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ringz").write_text(text)
    code, output = typed(*words, "ringz")
    assert code == 2
    assert message.replace("'ring'", "'ringz'") in " ".join(output.split())


NS3 = """\
5 1 4
0
0 1 100Gbps 1us 0
0 2 100Gbps 1us 0
0 3 100Gbps 1us 0
0 4 10Gbps 1us 0
"""


def test_flows_of_ns3_go_between_the_nodes_of_its_topology(tmp_path: Path) -> None:
    """The switch is node 0 there, so node 4, at 10 Gbit/s, is the fourth host."""
    (tmp_path / "net.topo").write_text(NS3)
    (tmp_path / "flow.txt").write_text("2\n1 2 3 100 1000000 0\n4 1 3 100 1000000 0\n")
    flows, topo = str(tmp_path / "flow.txt"), str(tmp_path / "net.topo")
    run(tmp_path / "out", flows, "--topo", topo)
    with (tmp_path / "out" / "messages.csv").open(newline="") as file:
        fast, slow = [{key: int(each[key]) for key in each} for each in csv.DictReader(file)]
    assert (fast["source"], fast["target"], slow["source"], slow["target"]) == (0, 1, 3, 0)
    assert fast["end_ps"] < 100 * US < 800 * US < slow["end_ps"] < 900 * US


def test_flows_may_name_hosts_as_the_topology_does(tmp_path: Path) -> None:
    (tmp_path / "rack.edges").write_text("a tor\nb tor\nc tor\n")
    (tmp_path / "named.csv").write_text("src,dst,bytes,start\nc,a,1000,0\n0,b,1000,0\n")
    flows, topo = str(tmp_path / "named.csv"), str(tmp_path / "rack.edges")
    run(tmp_path / "out", flows, "--topo", topo)
    with (tmp_path / "out" / "messages.csv").open(newline="") as file:
        ends = [(each["source"], each["target"]) for each in csv.DictReader(file)]
    assert sorted(ends) == [("0", "1"), ("2", "0")]
    code, output = typed("workload", "run", flows, "--topo", RACK)
    assert (code, "source: must be a rank, a whole number from 0 on, got 'c'" in output) == (
        2,
        True,
    )
