"""Experiments with training jobs, through the command line."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from bench import jobs as bench_jobs
from ringleaf.collectives.algorithm import Request
from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Op, Schedule, Transfer
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import make_app
from ringleaf.experiments.runs import perform
from ringleaf.experiments.runs.drawing import redraw
from ringleaf.experiments.workloads.jobs import figures
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.experiments.workloads.jobs.results import JobsCase, jain
from ringleaf.topologies.delays import host_delay_ps, switch_delay_ps
from ringleaf.topologies.graph import link

MODEL = """\
name: small
layers:
  - {name: a, elements: 2000, forward: 2us, backward: 4us}
  - {name: b, elements: 9000, forward: 2us, backward: 4us}
"""
SPEC = """\
topo: leafspine,leaves=2,spines=1,hosts=2
jobs:
  - {{model: {model}, ranks: 2, iterations: 2}}
  - {{model: {model}, ranks: 2, iterations: 2, start: 3us}}
counts: [1, 2]
algo: [ring, switchml]
scheduler: tensorexpress
entries: 16
servers: 0
lanes: 64
loss: 0.001
"""
BACKGROUND = """\
topo: leafspine,leaves=2,spines=1,hosts=2
rate: 1G
jobs:
  - {{model: {model}, ranks: 2, iterations: 2}}
  - {{model: {model}, ranks: 2, background: yes}}
counts: [1, 2]
servers: 0
"""

NO_FIGURES = ("--figures", "no")  # drawing takes longer than these runs


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(MODEL)
    return path


@pytest.fixture
def spec(tmp_path: Path, model: Path) -> Path:
    path = tmp_path / "two-jobs.yaml"
    path.write_text(SPEC.format(model=model))
    return path


def run(spec: Path, out: Path, *more: str) -> tuple[int, str]:
    result = CliRunner().invoke(make_app(), ["run", "--spec", str(spec), "--out", str(out), *more])
    return result.exit_code, result.output


def read_rows(out: Path) -> list[dict[str, str]]:
    with (out / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_spec_of_jobs_gives_a_table_results_and_figures_and_the_same_again(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, text = run(spec, tmp_path / "first", "--pcap")
    assert status == 0, text
    assert "wrong values: 0 OK" in text
    rows = read_rows(tmp_path / "first")
    assert [(row["jobs"], row["algo"], row["job"]) for row in rows] == [
        ("1", "ring", "1"),
        ("1", "switchml", "1"),
        ("2", "ring", "1"),
        ("2", "ring", "2"),
        ("2", "switchml", "1"),
        ("2", "switchml", "2"),
    ]
    for row in rows:
        assert int(row["jct_ps"]) >= 2 * int(row["compute_ps"])
        assert 0 < float(row["links_percent"]) <= float(row["busiest_percent"]) <= 100
        in_use = (float(row["memory_mean"]), int(row["memory_peak"]))
        assert in_use == (0, 0) if row["algo"] == "ring" else 0 < in_use[0] <= in_use[1] <= 16
    drawn = {path.name for path in (tmp_path / "first" / "figures").iterdir()}
    assert drawn >= {"jct.png", "wait.png", "links.png", "queues.png", "memory.png"}

    again: list[JobsCase] = []

    page = (tmp_path / "first" / "report.html").read_text()
    assert page.count("<svg") == 5 + 2  # the figures, and a timeline of each crowded case

    def figures_of(cases: Sequence[JobsCase]) -> dict[str, Callable[[], Figure]]:
        again.extend(cases)
        return {}

    monkeypatch.setattr(figures, "figures_of", figures_of)
    redrawn = CliRunner().invoke(make_app(), ["plot", str(tmp_path / "first")])
    assert (redrawn.exit_code, redrawn.output) == (
        0,
        f"# report: {tmp_path / 'first' / 'report.html'}\n",
    )
    assert all(case.spans for case in again)

    monkeypatch.setattr(figures, "figures_of", lambda _: {})  # takes longest
    monkeypatch.setattr(perform, "drawer", lambda _: None)
    assert run(spec, tmp_path / "second", "--pcap")[0] == 0
    assert [str(row.jct_ps) for case in again for row in case.rows] == [
        row["jct_ps"] for row in rows
    ]
    for case in again:  # what was drawn of links is what hosts have sent over them
        assert case.link_series is not None
        assert case.link_series.sum() > 0
        assert (case.memory_series is None) == (case.combination.algo == "ring")
    names = sorted(path.relative_to(tmp_path / "first") for path in (tmp_path / "first").rglob("*"))
    captures = [name for name in names if name.suffix == ".pcapng"]
    assert Path("pcap/2-switchml-tensorexpress-16/capture.pcapng") in captures
    for name in (Path("results.csv"), Path("summary.json"), *captures):
        first, second = ((tmp_path / run / name).read_bytes() for run in ("first", "second"))
        assert first == second, name


def test_a_wrong_collective_of_jobs_is_seen(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody's own ring, which copies on what is not complete, for each of 11,000 elements."""

    def shifted(request: Request) -> Schedule:
        right = ring_allreduce(2)
        copies = [Transfer(1, src, 1 - src, src, Op.COPY) for src in range(2)]
        return replace(right, rows=(*right.rows[:2], *copies))

    mine = replace(ALGORITHMS["ring"], name="mine", schedule_for=shifted)
    monkeypatch.setitem(ALGORITHMS.added, "mine", mine)
    spec.write_text(
        spec.read_text().replace("[ring, switchml]", "mine").replace("[1, 2]", "1")
        + "check: no\nwide: yes\n"
    )
    _, text = run(spec, tmp_path / "out", *NO_FIGURES)
    assert "# wrong values: 22000 FAILED" in text
    assert (
        "# job 1 of 1 by mine, tensorexpress: the schedule is wrong: "
        "rank 0 lacks the contribution of rank 1 to chunk 0"
    ) in text
    [row] = read_rows(tmp_path / "out")
    assert row["wrong"] == "22000"


def test_background_goes_on_while_others_run_and_slows_them(model: Path, tmp_path: Path) -> None:
    spec = tmp_path / "background.yaml"
    spec.write_text(BACKGROUND.format(model=model))
    status, text = run(spec, tmp_path / "out", *NO_FIGURES)
    assert status == 0, text
    alone, crowded, background = read_rows(tmp_path / "out")
    assert int(crowded["jct_ps"]) > int(alone["jct_ps"])
    assert int(crowded["iterations"]) == 2
    assert int(background["iterations"]) >= 1
    assert int(background["jct_ps"]) < 2 * int(crowded["jct_ps"])  # it ends with the others


def test_a_dry_run_says_what_would_be_done(spec: Path, tmp_path: Path) -> None:
    status, text = run(spec, tmp_path / "out", "--dry-run")
    assert status == 0
    plan = json.loads(text)
    assert plan["cases"][0] == "1-ring-tensorexpress-16"
    assert [job["model"] for job in plan["jobs"]] == ["small", "small"]
    assert not (tmp_path / "out").exists()


def test_json_in_place_of_the_table(spec: Path, tmp_path: Path) -> None:
    spec.write_text(spec.read_text().replace("[ring, switchml]", "ring").replace("[1, 2]", "1"))
    status, text = run(spec, tmp_path / "out", "--json", *NO_FIGURES)
    assert status == 0
    summary = json.loads(text)
    assert (summary["wrong"], len(summary["rows"])) == (0, 1)


def test_a_bench_says_what_jobs_took(
    spec: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    began_s = time.time()
    monkeypatch.setattr(
        bench_jobs, "_measure_apart", lambda path, case: bench_jobs.measure(path, case, began_s)
    )
    spec.write_text(spec.read_text().replace("[ring, switchml]", "ring"))
    lines: list[str] = []

    found = bench_jobs.run(lines.append, spec)

    assert list(found) == ["1-ring-tensorexpress-16", "2-ring-tensorexpress-16"]
    for timing in found.values():
        assert timing["wrong"] == 0
        assert timing["packet_hops"] > 0
        assert timing["peak_bytes"] > timing["gradient_bytes"] == 44_000
    assert [line.split()[0] for line in lines[2:]] == list(found)


def test_typed_options_go_before_those_of_a_spec_of_jobs(spec: Path, tmp_path: Path) -> None:
    """A list is replaced as a whole; what is of collectives alone is refused."""
    status, text = run(
        spec, tmp_path / "out",
        "--scheduler", "fifo", "--algo", "ring", "--counts", "2", *NO_FIGURES,
    )  # fmt: skip
    assert status == 0
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    assert [row[:3] for row in rows] == [["2", "ring", "fifo"]] * 2

    status, text = run(spec, tmp_path / "out", "--dtype", "int32")
    assert status == 2
    assert "unknown option, got 'dtype'" in text


def test_options_of_jobs_need_jobs(tmp_path: Path) -> None:
    result = CliRunner().invoke(make_app(), ["run", "--scheduler", "fifo"])
    assert result.exit_code == 2
    assert "scheduler: is an option of training jobs, got 'fifo'; give a spec that has jobs" in (
        result.output
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"scheduler": "lifo"}, "scheduler: unknown scheduler, got .lifo.; did you mean .fifo"),
        ({"algo": "broadcast"}, "broadcast"),
        ({"counts": [3]}, "spec: counts: must be at most 1, got 3"),
        ({"jobs": [{"ranks": 2}]}, "job 1: must be a mapping with a 'model'"),
        ({"jobs": [{"model": "gpt17"}]}, "gpt17"),
        ({"jobs": [{"model": "vgg16", "background": True}]}, "must not all be background"),
        (
            {"jobs": [{"model": "vgg16", "algo": "ring,tree"}]},
            "job 1: algo: one run has one value, got 'ring,tree'",
        ),
        (
            {"jobs": [{"model": "vgg16", "algo": ["ring", "tree"]}]},
            "job 1: algo: one run has one value, got 'ring,tree'",
        ),
        (
            {"jobs": [{"model": "vgg16", "background": True, "deadline": "2ms"}]},
            "job 1: deadline: must be of a job that ends by itself, got 2ms and background",
        ),
        ({"loss": -1}, "loss: .*got .-1."),
        ({"size": 1e308}, "spec: size: must be a number from 0 to 1e\\+06, got '1e\\+308'"),
        ({"compute": float("nan")}, "compute: must be a number from 0 to 1e\\+06, got 'nan'"),
        ({"mtu": 1000}, "mtu: unknown value, got '1000'; valid: 256, 512"),
        ({"lanes": 1}, "lanes: unknown value, got '1'; valid: 64, 256"),
        ({"pcap": "maybe"}, "pcap: unknown answer, got 'maybe'; valid: yes"),
        ({"discipline": "lifo"}, "discipline: unknown discipline, got 'lifo'; valid: strict"),
    ],
)
def test_what_is_wrong_with_a_spec_is_said(
    spec: Path, change: dict[str, object], complaint: str
) -> None:
    job = {"model": str(spec.parent / "small.yaml")}
    with pytest.raises(ConfigError, match=complaint):
        resolve_jobs({"jobs": [job]} | change, "spec: ")


def test_jobs_that_do_not_run_need_no_hosts(model: Path) -> None:
    """Six hosts have room for the first two jobs, of four and two, and not for all three."""
    jobs = [{"model": str(model), "ranks": ranks} for ranks in (4, 2, 2)]
    options = {"jobs": jobs, "topo": "leafspine,leaves=2,spines=1,hosts=3", "servers": "0"}
    made = JobsExperiment(resolve_jobs({**options, "counts": "1,2"}))
    assert made.results.about[0].startswith("2 training jobs on leafspine,")
    with pytest.raises(ConfigError, match=r"the 6 hosts of .*, got 8 with 0 servers for each of 3"):
        JobsExperiment(resolve_jobs(options))


def test_a_quoted_no_is_no(spec: Path) -> None:
    job = {"model": str(spec.parent / "small.yaml")}
    assert not resolve_jobs({"jobs": [job], "pcap": "no"}, "spec: ").pcap


def test_jain() -> None:
    assert jain([2.0, 2.0, 2.0]) == 1.0
    assert jain([1.0, 0.0, 0.0, 0.0]) == 0.25


def test_jobs_networks_take_the_times_of_their_nodes(model: Path) -> None:
    """And a server with two ports has half of what its host injects on each."""
    given = {"topo": "bcube,n=2,k=1", "servers": 0, "jobs": [{"model": str(model), "ranks": 2}]}
    times = {"switch_delay": "400ns", "host_delay": "600ns", "message_overhead": "1us"}
    plain = JobsExperiment(resolve_jobs(given, "spec: "))
    late = JobsExperiment(resolve_jobs({**given, **times, "inject": "100G"}, "spec: "))

    assert (switch_delay_ps(plain.graph), host_delay_ps(plain.graph)) == (0, 0)
    assert (switch_delay_ps(late.graph), host_delay_ps(late.graph)) == (400_000, 600_000)
    assert link(late.graph, "s0", "s4").rate_bps == 50 * 10**9
    assert (
        "switches and hosts take no time (SWITCH_DELAY=0, HOST_DELAY=0, MESSAGE_OVERHEAD=0); "
        "a host injects up to 200 Gbit/s"
    ) in plain.results.about
    assert (
        "each packet: SWITCH_DELAY 400 ns, HOST_DELAY 600 ns; each message: MESSAGE_OVERHEAD "
        "1 us; a host injects up to 100 Gbit/s"
    ) in late.results.about
    with pytest.raises(ConfigError, match="spec: inject: can't go with rate, got 1G"):
        resolve_jobs({**given, "inject": "1G", "rate": "1G"}, "spec: ")


def test_jobs_wait_for_processors(model: Path) -> None:
    """Two ranks' ring sums a layer in two steps of a message each way: at least o + o per step."""
    given = {
        "topo": "leafspine,leaves=1,spines=1,hosts=2",
        "servers": 0,
        "jobs": [{"model": str(model), "ranks": 2, "iterations": 1}],
    }
    plain, late = (
        next(JobsExperiment(resolve_jobs({**given, "message_overhead": o}, "spec: ")).run())
        for o in ("0", "1ms")
    )

    assert late.rows[0].jct_ps >= plain.rows[0].jct_ps + 4 * 10**9
    assert late.rows[0].wrong == 0


def test_runs_of_jobs_that_can_not_be_drawn_say_why(tmp_path: Path) -> None:
    summary = {"schema_version": 2, "kind": "jobs", "rows": [], "cases": []}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(ConfigError, match=r"plot: can't read the series, got '.*series.npz'; run"):
        redraw(tmp_path)
    np.savez(tmp_path / "series.npz")
    with pytest.raises(ConfigError, match="plot: nothing was measured in this run, got"):
        redraw(tmp_path)


def test_jobs_are_not_started_where_nothing_can_be_written(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, text = run(spec, tmp_path / "file")
    assert status == 2
    assert "out: must be a folder" in text


@pytest.mark.parametrize(
    ("check", "says", "fact"),
    [
        ("yes", 0, "of all values, each checked"),
        ("no", 1, "of the values that were checked"),
    ],
)
def test_sums_that_are_not_all_checked_are_told(
    spec: Path, tmp_path: Path, check: str, says: int, fact: str
) -> None:
    only = ("--counts", "1", "--algo", "ring", "--check", check, *NO_FIGURES)
    code, output = run(spec, tmp_path / "out", *only)

    assert code == 0, output
    assert " ".join(output.split()).count("the first of each size is compared") == says
    assert fact in (tmp_path / "out" / "report.html").read_text()
