"""Workloads through the command line: specs, traces, exports, results and refusals."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import make_app
from ringleaf.experiments.commands.usage import EXAMPLES
from ringleaf.experiments.commands.workload.graphs import given_for
from ringleaf.experiments.runs.drawing import read_results
from ringleaf.experiments.workloads.graph.about import about
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import resolve_workload
from ringleaf.experiments.workloads.graph.loading import load
from ringleaf.experiments.workloads.graph.names import WORKLOADS
from ringleaf.experiments.workloads.graph.results import GraphResults

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "workloads"

MODEL = "layers: 4\nhidden: 64\nheads: 4\nsequence: 64\ntp: 2\npp: 2\ndp: 2\nmicro_batches: 2\n"
SPEC = f"workload: llm\n{MODEL}"


SMALL_MODEL = {"workload": "gpt13b", "tp": 2, "dp": 1, "pp": 1, "layers_per_stage": 1}


def typed(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(make_app(), list(arguments))
    return result.exit_code, result.output


def figures(drawn: bool) -> tuple[str, ...]:
    return () if drawn else ("--figures", "no")


def run(folder: Path, spec: str, *more: str, drawn: bool = False) -> tuple[dict[str, Any], str]:
    """The summary of a run, and its output; figures take longer than a small run."""
    path = folder / "work.yaml"
    path.write_text(spec)
    out = folder / "out"
    code, output = typed("run", "--spec", str(path), "--out", str(out), *more, *figures(drawn))
    assert code == 0, output
    return json.loads((out / "summary.json").read_text()), output


def test_a_model_in_parallel_runs_and_is_checked(tmp_path: Path) -> None:
    summary, output = run(tmp_path, SPEC, drawn=True)

    assert "# wrong values: 0 OK" in output
    assert "bubble by formula 50.00 %" in output
    rows = {row["label"]: row for row in summary["rows"]}
    # 4 ranks of a stage, 2 layers, 4 all-reduces for each of 2 micro-batches; in pairs
    assert (rows["tp"]["count"], rows["tp"]["size_bytes"]) == (8 * 2 * 4 * 2 // 2, 64 * 64 * 2)
    assert (rows["pp"]["count"], rows["pp"]["call"]) == (4 * 2 * 2, "message")
    assert (rows["dp"]["count"], rows["dp"]["ranks"]) == (4 * 2, 2)
    shares = [summary[f"{name}_share"] for name in ("compute", "exposed", "idle")]
    assert sum(shares) == pytest.approx(1)
    out = tmp_path / "out"
    files = {path.name for path in out.iterdir()}
    listed = {line.split("/")[0] for line in (out / "files.txt").read_text().splitlines()}
    assert files == listed - {"drops.csv", "slowdown.csv"}
    with (out / "ranks.csv").open(newline="") as file:
        spent = [sum(map(int, row.values())) for row in csv.DictReader(file)]
    assert spent == [summary["iteration_ps"]] * 8
    page = (out / "report.html").read_text()
    assert "<svg" in page
    assert "iteration, simulated" in page


@pytest.mark.parametrize("net", ["virtual", "flow"])
def test_a_slow_host_takes_longer_to_compute(tmp_path: Path, net: str) -> None:
    spec = f"{SPEC}flops: 1T\n"
    usual, _ = run(tmp_path, spec, "--net", net)
    slow, output = run(tmp_path, spec, "--net", net, "--faults", "h3 slow 5")

    assert slow["iteration_ps"] > usual["iteration_ps"]
    assert slow["compute_share"] * slow["iteration_ps"] == pytest.approx(
        usual["compute_share"] * usual["iteration_ps"] * (7 + 5) / 8, rel=1e-6
    )
    assert "h3 slow 5 at 0" in output


def test_collectives_refuse_slow_hosts() -> None:
    code, output = typed("run", "--size", "4K", "--faults", "h3 slow 5", "--dry-run")
    assert code == 2
    assert "faults: slow is for workloads that compute, got 'h3 slow 5 at 0'" in output


def test_figures_are_drawn_again_from_the_files(tmp_path: Path) -> None:
    run(tmp_path, SPEC, drawn=True)
    out = tmp_path / "out"
    before = (out / "report.html").read_bytes(), (out / "figures" / "ranks.png").read_bytes()
    shutil.rmtree(out / "figures")

    code, output = typed("plot", str(out))

    assert code == 0, output
    after = (out / "report.html").read_bytes(), (out / "figures" / "ranks.png").read_bytes()
    assert after == before


def test_the_same_spec_gives_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for threads in ("1", "2"):
        run(tmp_path, SPEC, "--threads", threads)
        names = ("results.csv", "ranks.csv", "timeline.json")
        found.append([(tmp_path / "out" / name).read_bytes() for name in names])

    assert found[0] == found[1]


def test_the_timeline_shows_each_rank_s_nodes(tmp_path: Path) -> None:
    summary, _ = run(tmp_path, SPEC)
    timeline = json.loads((tmp_path / "out" / "timeline.json").read_text())
    bars = [event for event in timeline["traceEvents"] if event["ph"] == "X"]

    assert {bar["pid"] for bar in bars} == set(range(8))
    assert {bar["cat"] for bar in bars} == {"compute", "tp", "pp", "dp"}
    assert max(bar["args"]["end_ps"] for bar in bars) == summary["iteration_ps"]
    found = read_results(tmp_path / "out")
    assert isinstance(found, GraphResults)
    assert len(found.done.timeline.bars) == len(bars)


def times(summary: dict[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "algo"} for row in summary["rows"]]


def test_a_chakra_trace_takes_the_time_of_the_model_that_it_was_made_of(tmp_path: Path) -> None:
    """The round trip: what was written after a run is replayed, to the picosecond."""
    first, _ = run(tmp_path, SPEC, "--chakra")
    shutil.copytree(tmp_path / "out" / "chakra", tmp_path / "trace")
    files = str(tmp_path / "trace" / "llm.*.et")

    second, output = run(tmp_path, f"workload: trace\nfiles: '{files}'\n")

    assert "# wrong values: 0 OK" in output
    assert second["iteration_ps"] == first["iteration_ps"]
    assert times(second) == times(first)


def test_jobs_leave_traces_that_take_their_time(tmp_path: Path) -> None:
    """One layer at a time is on the wire, so that both ways to run it have the same order."""
    model = tmp_path / "small.yaml"
    layers = "[{name: a, elements: 9000, forward: 20us, backward: 40us}]"
    model.write_text(f"name: small\nlayers: {layers}\n")
    topo = "topo: leafspine,leaves=2,spines=1,hosts=2\n"
    jobs = f"jobs: [{{model: {model}, ranks: 4, iterations: 3, start: 5us}}]\nservers: 0\n"
    spec = f"{topo}{jobs}placement: packed\nchakra: yes\n"
    ran, _ = run(tmp_path, spec)
    shutil.copytree(tmp_path / "out" / "chakra" / "1-ring-fifo", tmp_path / "trace")
    files = str(tmp_path / "trace" / "job1.*.et")

    again, _ = run(tmp_path, f"{topo}workload: trace\nfiles: '{files}'\n")

    [row] = ran["rows"]
    assert again["iteration_ps"] == row["jct_ps"] + 5_000_000
    assert again["rows"][0]["count"] == 3


def test_a_goal_schedule_has_the_messages_of_an_algorithm(tmp_path: Path) -> None:
    made = tmp_path / "made.yaml"
    made.write_text(SPEC)
    options = [f"--{k.replace('_', '-')}" for k in yaml.safe_load(MODEL)]
    values = [str(value) for value in yaml.safe_load(MODEL).values()]
    pairs = [text for pair in zip(options, values, strict=True) for text in pair]
    code, output = typed(
        "workload", "export", "gpt13b", *pairs, "--format", "goal", "--kv-heads", "4",
        "--ffn", "256", "-o", str(tmp_path),
    )  # fmt: skip
    assert code == 0, output

    code, output = typed(
        "workload", "run", str(tmp_path / "gpt13b.goal"), "-o", str(tmp_path / "out"),
        *figures(drawn=False),
    )  # fmt: skip

    assert code == 0, output
    assert "# wrong values: 0 OK" in output
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    sent = sum(row["total_bytes"] for row in summary["rows"])
    ring = 2 * (2 - 1) * 2  # of both ranks of a group of two, per byte: 2 (n - 1) / n each
    assert sent == 8 * 2 * 4 * 2 // 2 * 8192 * ring // 2 + 4 * 2 * 49152 * ring // 2 + 16 * 8192


@pytest.mark.parametrize("algo", ["switchml", "atp", "netreduce", "halvingdoubling,alltoall"])
def test_any_algorithm_adds_up(tmp_path: Path, algo: str) -> None:
    summary, output = run(tmp_path, SPEC, "--algo", algo)

    assert summary["wrong"] == 0, output
    assert summary["rows"][0]["algo"] == algo.split(",")[0]


def test_every_call_of_a_trace_is_checked(tmp_path: Path) -> None:
    from ringleaf.hosts.workload.formats.files import write_trace
    from ringleaf.hosts.workload.graph import (
        CalledCollective,
        CallGroup,
        Graph,
        NodeKind,
        RankWork,
        WorkNode,
    )

    calls = [
        WorkNode(
            i,
            NodeKind.COLLECTIVE,
            "",
            0,
            0 if call is CalledCollective.BARRIER else 4096,
            call,
            0,
            2,
        )
        for i, call in enumerate(CalledCollective)
    ]
    groups = (CallGroup("all", (2, 0, 1)),)
    graph = Graph("calls", (RankWork(tuple(calls)),) * 3, groups)
    write_trace(graph, "chakra", tmp_path, "calls")

    summary, _ = run(tmp_path, f"workload: trace\nfiles: '{tmp_path / 'calls.*.et'}'\n")

    assert summary["wrong"] == 0
    assert {row["call"] for row in summary["rows"]} == {call.value for call in CalledCollective}


def test_wrong_data_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringleaf.experiments.workloads.graph import ledger

    right = ledger.RandomData.fill

    def spoil(self: Any, number: int, tensors: Any) -> None:
        right(self, number, tensors)
        tensors[0][0] += 1  # of the first rank, which all others add or copy

    monkeypatch.setattr(ledger.RandomData, "fill", spoil)
    path = tmp_path / "work.yaml"
    path.write_text(SPEC)
    code, output = typed(
        "run", "--spec", str(path), "--out", str(tmp_path / "out"), *figures(drawn=False)
    )

    assert code == 1
    assert "FAILED" in output


def test_the_header_says_what_is_left_out(tmp_path: Path) -> None:
    _, output = run(tmp_path, SPEC + "layers_per_stage: 1\ndata: none\n")

    assert "# ONLY 1 of 2 layers per stage are simulated" in output
    assert "# nothing was checked, as messages had sizes only" in output


@pytest.mark.parametrize(
    ("options", "unused"),
    [
        ({"workload": "incast", "ranks": 2, "algo": "tree"}, "tree"),
        ({"workload": "incast", "ranks": 2}, ""),
        ({**SMALL_MODEL, "algo": "ring,alltoall"}, "alltoall"),
        ({**SMALL_MODEL, "algo": "ring"}, ""),
    ],
)
def test_algorithms_of_collectives_that_nobody_calls_are_told(
    options: dict[str, Any], unused: str
) -> None:
    """A model without experts has no all-to-all, and flows have no collectives."""
    options = options | {"topo": "leafspine,leaves=1,spines=0,hosts=2"}
    lines = about(WorkExperiment(resolve_workload(options)))
    idle = [line for line in lines if line.startswith("without effect")]
    line = f"without effect here: algo={unused} (no such collectives are called)"
    assert idle == ([line] if unused else [])


def test_a_limit_of_messages_is_told_where_there_are_none() -> None:
    """A model without a pipeline has collectives only; one in two stages sends activations."""
    topo = {"topo": "leafspine,leaves=1,spines=0,hosts=2", "eager_limit": "1KiB"}
    line = "without effect here: eager_limit (there are no messages)"
    alone, staged = (
        about(WorkExperiment(resolve_workload({**SMALL_MODEL, **topo, **split})))
        for split in ({"tp": 2, "pp": 1}, {"tp": 1, "pp": 2})
    )

    assert line in alone
    assert line not in staged


@pytest.mark.parametrize("algo", ["ring", "recursivedoubling"])  # one has scratch memory
def test_packet_hops_are_counted_beforehand(tmp_path: Path, algo: str) -> None:
    given = yaml.safe_load(SPEC) | {"out": str(tmp_path / "out"), "sequence": 2048, "algo": algo}
    experiment = WorkExperiment(resolve_workload(given))

    found = experiment.run(lambda *_: None, lambda hops: None)

    assert 1 <= found.packet_hops / experiment.packet_hops < 1.25  # the rest acknowledges


def test_a_slow_host_that_is_not_there_is_refused_before_a_run_begins(tmp_path: Path) -> None:
    given = yaml.safe_load(SPEC) | {"out": str(tmp_path / "out"), "faults": "h99 slow 2"}
    with pytest.raises(ConfigError, match="got 'h99 slow 2 at 0'; like one of h0, h1, h2"):
        WorkExperiment(resolve_workload(given))


def test_scattered_ranks_go_further(tmp_path: Path) -> None:
    given = yaml.safe_load(SPEC) | {"out": str(tmp_path), "topo": "leafspine,leaves=4"}
    near, far = (
        WorkExperiment(resolve_workload(given | {"placement": placement}))
        for placement in ("packed", "scattered")
    )

    assert near.hosts == [f"h{rank}" for rank in range(8)]
    assert sorted(far.hosts) == sorted(near.hosts) != far.hosts
    assert near.packet_hops < far.packet_hops


@pytest.mark.parametrize("name", ["llm.yaml", "ping.yaml"])
def test_specs_of_the_pages_run(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "ping.yaml":
        code, output = typed(
            "workload", "export", "resnet50", "--ranks", "4", "--iterations", "1", "-o", "traces"
        )
        assert code == 0, output
        code, output = typed("workload", "show", "traces/resnet50.*.et")
        assert "4 ranks, 1 group, 648 nodes, 54 meetings" in output
    code, output = typed("run", "--spec", str(PAGES / name), *figures(drawn=False))

    assert code == 0, output
    assert (tmp_path / "runs" / Path(name).stem / "report.html").exists()


def test_the_page_s_goal_schedule_runs(tmp_path: Path) -> None:
    """2 us, a message of 1 MiB (84 us and headers), 10 us, and a short one back."""
    ping = str(PAGES / "ping.goal")
    code, output = typed("workload", "show", ping)
    assert "2 ranks, 0 groups, 7 nodes, 2 meetings" in output

    code, output = typed("workload", "run", ping, "-o", str(tmp_path), *figures(drawn=False))

    assert code == 0, output
    iteration_ps = json.loads((tmp_path / "summary.json").read_text())["iteration_ps"]
    least_ps = 2_000_000 + (1 << 20) * 80 + 10_000_000
    assert least_ps < iteration_ps < 1.2 * least_ps


def test_work_without_messages_has_a_time_and_a_page(tmp_path: Path) -> None:
    """Rank 0 computes 1,000 ns, and rank 1 nothing."""
    (tmp_path / "alone.goal").write_text("num_ranks 2\nrank 0 {\na: calc 1000\n}\nrank 1 {\n}\n")
    summary, output = run(tmp_path, f"workload: trace\nfiles: {tmp_path}/alone.goal\n")

    assert summary["rows"] == []
    assert "# iteration: 1 us; of a rank's time: computing 50.0 %" in output
    assert "iteration, simulated" in (tmp_path / "out" / "report.html").read_text()
    assert typed("plot", str(tmp_path / "out"))[0] == 0


def test_runs_of_several_values_are_a_sweep(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(SPEC + "schedule: [gpipe, 1f1b]\n")

    code, output = typed("run", "--spec", str(path), "--out", str(tmp_path / "out"))

    assert code == 0, output
    with (tmp_path / "out" / "sweep.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["schedule"] for row in rows] == ["gpipe", "1f1b"]
    assert all(int(row["iteration_ps"]) > 0 and row["wrong"] == "0" for row in rows)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<td>gpipe</td>" in page
    assert "exposed (%)" in page
    assert (tmp_path / "out" / "sweep.png").exists()


def test_a_plan_has_places_and_packets(tmp_path: Path) -> None:
    path = tmp_path / "work.yaml"
    path.write_text(SPEC)

    code, output = typed("run", "--spec", str(path), "--dry-run")

    plan = json.loads(output)
    assert code == 0
    assert (plan["ranks"], plan["hidden"], plan["schedule"]) == (8, 64, "1f1b")
    assert plan["hosts_of_ranks"][3] == "h3"


@pytest.mark.parametrize(
    ("spec", "kv_heads"),
    [
        ("preset: gpt13b\nheads: 8\n", 8),  # as many as heads
        ("preset: gpt13b\nheads: 16\nkv_heads: 8\n", 8),
        ("preset: llama70b\nheads: 32\n", 8),  # which several heads share
    ],
)
def test_heads_of_a_preset_keep_their_own_keys(tmp_path: Path, spec: str, kv_heads: int) -> None:
    path = tmp_path / "work.yaml"
    path.write_text(f"workload: llm\n{spec}hosts: 1024\ntopo: fattree,k=16\n")

    code, output = typed("run", "--spec", str(path), "--dry-run")

    assert code == 0
    assert json.loads(output)["kv_heads"] == kv_heads


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("workload: lm\n", "workload, got 'lm'; did you mean 'llm'? valid: llm, trace"),
        ("workload: llm\n", "layers: must be given where there is no preset, got none"),
        ("workload: llm\npreset: gpt3\n", "got 'gpt3'; did you mean 'gpt13b'? valid: gpt13b"),
        (SPEC + "files: x.goal\n", "files: are of traces, got 'x.goal'"),
        (SPEC.replace("pp: 2", "pp: 3"), "layers: must be a multiple of pp times chunks, 3, got 4"),
        (SPEC + "schedule: 1b1f\n", "schedule: unknown schedule, got '1b1f'"),
        (SPEC + "algo: [ring, tree]\n", "one algorithm for each collective, got 'ring' and 'tree'"),
        (SPEC + "algo: switchml\ndata: none\n", "switches add up data, got 'none' and 'switchml'"),
        (SPEC + "algo: ssar-split\ndata: none\n", "data: can't be none with algo=ssar-split, got"),
        (SPEC + "topo: leafspine,leaves=1,spines=0,hosts=4\nhosts: 4\n",
         "hosts: each of 8 ranks needs one, got 4"),
        (SPEC + "flops: 0\n", "flops: must be above 0"),
        (SPEC + "jobs: 3\n", "unknown option, got 'jobs'"),
        (SPEC + "servers: 3\n", "unknown option, got 'servers'"),
        ("workload: trace\n", "files: a trace has files, got none"),
        ("workload: trace\nfiles: x.goal\ntp: 3\n", "tp: is of models, got 3 for a trace"),
        ("workload: trace\nfiles: x.txt\n", "files: must be of a kind that is read, got 'x.txt'"),
        ("workload: trace\nfiles: nowhere.goal\n", "nowhere.goal: can't read, got No such file"),
    ],
)  # fmt: skip
def test_wrong_specs_are_refused(tmp_path: Path, spec: str, message: str) -> None:
    path = tmp_path / "work.yaml"
    path.write_text(spec)

    code, output = typed("run", "--spec", str(path), "--out", str(tmp_path / "out"))

    assert code == 2
    assert message in output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_ranks 2\nrank 0 {\na: send 8b to 1\n}\n",
         "bad.goal: rank 0, node 0 'a': rank 1"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na requires a\n}\n",
         "bad.goal: rank 0, node 0 'a': nodes must not wait for each other in a circle"),
        ("num_ranks 2\nrank 0 {\na: send 8b to 1\n}\nrank 1 {\nb: recv 7b from 0\n}\n",
         "bad.goal: rank 1, node 0 'b': must be as long as its message or longer"),
        ("num_ranks 1\nrank 0 {\n", "bad.goal: line 2: the rank must end with }"),
    ],
)  # fmt: skip
def test_broken_traces_are_refused_before_anything_runs(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "bad.goal"
    path.write_text(text)

    for command in ("run", "show", "export"):
        code, output = typed("workload", command, str(path))
        assert code == 2
        assert message in output


def test_a_trace_that_is_cut_off_is_refused_by_the_command(tmp_path: Path) -> None:
    typed("workload", "export", "vgg16", "--ranks", "2", "--iterations", "1", "-o", str(tmp_path))
    path = tmp_path / "vgg16.1.et"
    path.write_bytes(path.read_bytes()[:-5])

    code, output = typed("workload", "run", str(tmp_path / "vgg16.*.et"))

    assert code == 2
    assert "vgg16.1.et: byte " in output
    assert "the file is cut off" in output


def test_names_of_workloads_are_known(tmp_path: Path) -> None:
    code, output = typed("workload", "run", "gpt3")
    assert code == 2
    assert (
        "unknown workload, got 'gpt3'; did you mean 'gpt13b'? valid: gpt13b, llama70b, moe8x7b"
        in output
    )
    code, output = typed("workload", "show", "gpt13b", "-o", str(tmp_path / "x.png"))
    assert code == 2
    assert "only models of layers are drawn" in output
    code, output = typed("workload", "export", "gpt13b", "--format", "csv")
    assert code == 2
    assert "unknown format, got 'csv'; valid: chakra, goal" in output


@pytest.mark.parametrize(
    "example", [each for name in ("workload", "workload run") for each in EXAMPLES[name]]
)
def test_examples_of_help_are_possible(example: str, tmp_path: Path) -> None:
    """A file of the documentation stands for theirs."""
    _, _, run, name, *words = example.replace("job.goal", "docs/workloads/ping.goal").split()
    names = [each.removeprefix("--").replace("-", "_") for each in words[::2]]
    options = dict(zip(names, words[1::2], strict=True))

    spec = resolve_workload(given_for(name, {**options, "cc": "fixed", "out": str(tmp_path)}))

    assert run == "run"
    assert spec.workload in WORKLOADS


def test_flows_that_have_changed_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    for size in (1000, 20_000):
        path.write_text(f"source,target,size,start\n0,1,{size},0\n")
        (meeting,) = load(resolve_workload({"workload": "flows", "files": str(path)})).meetings
        assert meeting.size_bytes == size


def test_a_trace_is_read_again_if_ranks_or_groups_have_changed(tmp_path: Path) -> None:
    options = {"workload": "trace", "files": str(tmp_path / "t.*.json")}

    def write_ranks(size: int) -> None:
        attributes = [
            {"name": "comm_type", "int64_val": 0},
            {"name": "comm_size", "int64_val": size},
            {"name": "pg_name", "string_val": "1"},
        ]
        node = {"id": 1, "name": "n", "type": "COMM_COLL_NODE", "attr": attributes}
        text = json.dumps({"version": "0.0.4"}) + "\n" + json.dumps(node)
        for rank in (0, 1):
            (tmp_path / f"t.{rank}.json").write_text(text)

    def sizes() -> list[int]:
        graph = load(resolve_workload(options)).graph
        return [node.size_bytes for work in graph.ranks for node in work.nodes]

    groups = tmp_path / "comm_group.json"
    groups.write_text('{"1": [0, 1]}')
    write_ranks(4000)
    assert sizes() == [4000, 4000]
    write_ranks(8000)
    assert sizes() == [8000, 8000]
    groups.write_text('{"1": [0]}')
    with pytest.raises(ConfigError, match="group"):
        sizes()


def test_files_of_further_ranks_are_not_mixed_in(tmp_path: Path) -> None:
    """Those of three ranks stayed beside a trace of two, and were read with it."""

    def export(ranks: int) -> tuple[int, str]:
        size = ("--ranks", str(ranks), "--flow-sizes", "4KiB")
        return typed("workload", "export", "all-to-all", *size, "-o", str(tmp_path))

    assert export(3)[0] == 0
    first = (tmp_path / "all-to-all.0.et").read_bytes()

    code, output = export(2)

    assert code == 2
    assert "must be the files of 2 ranks, got one of rank 2, of another trace; remove" in " ".join(
        output.split()
    )
    assert (tmp_path / "all-to-all.0.et").read_bytes() == first  # nothing is written
    (tmp_path / "all-to-all.2.et").unlink()
    assert [export(2)[0], export(3)[0]] == [0, 0]
