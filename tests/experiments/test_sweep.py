"""Specs that ask for several runs, and what is made of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_network import FakeConnect

import ringleaf
from ringleaf.collectives.sparse.models import BEST_PS, Setting, ring_ps
from ringleaf.errors import ConfigError
from ringleaf.experiments.figures import sorting
from ringleaf.experiments.records import config, named_files
from ringleaf.experiments.runs import session, sweep
from ringleaf.experiments.runs.compare import options_of, read
from ringleaf.experiments.runs.request import RunRequest
from ringleaf.experiments.runs.spec_file import read_cases, swept
from ringleaf.experiments.runs.sweep_files import draw, redraw, rows_of, write
from ringleaf.experiments.workloads.collective import sparse_figure
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.results import CollectiveResults
from ringleaf.topologies.registry import TOPOLOGIES

SPECS = Path(__file__).resolve().parents[2] / "experiments" / "specs"


def cases_of(tmp_path: Path, text: str) -> list[dict[str, str]]:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return read_cases(path)


def test_lists_and_cases_multiply(tmp_path: Path) -> None:
    cases = cases_of(
        tmp_path,
        "algo: [ring, switchml]\nsize: [1K, 2K]\nseed: [1, 2]\n"
        "cases: [{hosts: 8}, {hosts: 16, servers: 8}]\n",
    )
    assert len(cases) == 4
    assert {case["algo"] for case in cases} == {"ring,switchml"}
    assert swept(cases) == ["servers", "hosts", "seed"]
    assert cases[0] == {"algo": "ring,switchml", "size": "1K,2K", "seed": "1", "hosts": "8"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("cases: 3", "cases must be a list of mappings, got 3"),
        ("cases: []", r"cases must be a list of mappings, got \[\]"),
        ("loss: []", r"spec .*: loss: must have a value, got \[\]; leave it out"),
        ("size: []", r"size: must have a value, got \[\]"),
        ("cases: [{loss: []}]", r"loss: must have a value, got \[\]"),
        ("loss: [0, 1%]\nout: [a, b]", "out: all runs of a sweep have one, got a, b; give one"),
        ("cases: [{seed: 1}, {seed: 2, figures: no}]", "figures: all .* got none, False; give one"),
        ("schema_version: 1", "a run has recorded; take the spec.yaml beside it"),
        ("cases: [{host: 8}]", "unknown option, got 'host'; did you mean 'hosts'"),
    ],
)
def test_other_cases_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        cases_of(tmp_path, text)


def test_a_sweep_is_in_the_home_folder_if_its_spec_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    cases = cases_of(tmp_path, "seed: [1, 2]\nout: ~/runs\n")
    assert sweep.folder_of(cases, "spec") == tmp_path / "runs"


@pytest.mark.parametrize(
    "path",
    sorted([*SPECS.glob("sparse*.yaml"), SPECS / "algorithms.yaml"]),
    ids=lambda path: path.stem,
)
def test_specs_that_come_along_are_understood(path: Path) -> None:
    assert yaml.safe_load(path.read_text())
    for case in read_cases(path):
        resolve(case)


def test_a_sweep_over_densities_draws_speed_ups(tmp_path: Path) -> None:
    lines: list[str] = []
    cases = [
        {"topo": "leafspine,leaves=1,spines=1,hosts=6", "algo": algos, "size": "32K",
         "servers": "2", "density": density, "cluster": "64", "out": str(tmp_path)}
        for algos in ("ring,omnireduce,ssar-split,ssar-double,dsar-split",)
        for density in ("1%", "100%")
    ]  # fmt: skip
    assert sweep.run(cases, name="sparse", emit=lines.append)

    with (tmp_path / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    assert {row["clock"] for row in rows} == {"simulated"}
    assert {row["density"] for row in rows} == {"1%", "100%"}
    assert all(row["wrong"] == "0" and row["ranks"] == "4" for row in rows)
    assert all(0 < float(row["bound_percent"]) <= 100 for row in rows)
    assert (tmp_path / "speedup.png").stat().st_size > 10_000
    assert (tmp_path / "density=1%" / "results.csv").exists()
    times = {(row["algo"], row["density"]): int(row["time_ps"]) for row in rows}
    assert times["ring", "1%"] == times["ring", "100%"]
    for algo in BEST_PS:
        assert times[algo, "1%"] < times[algo, "100%"]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<figure>") == 2
    assert "Speed-up by sparsity" in page


@pytest.mark.parametrize(
    ("rows", "draws"),
    [
        ([("ring", "1%"), ("tree", "1%"), ("ring", "5%"), ("tree", "5%")], True),
        ([("ring", "1%"), ("tree", "1%"), ("tree", "5%")], False),  # no ring at 5 %
        ([("ring", "1%"), ("ring", "1%"), ("ring", "5%")], False),  # several, of other sizes
        ([("ring", "1%"), ("tree", "1%")], False),
    ],
)
def test_speed_ups_are_drawn_where_each_run_has_one_ring(
    rows: list[tuple[str, str]], draws: bool
) -> None:
    lines = [
        {"algo": algo, "density": density, "cluster": None, "ranks": 4} for algo, density in rows
    ]
    assert sparse_figure.fits(sparse_figure.as_texts(lines)) is draws


def test_what_is_compressed_is_compared_as_it_is_sent(tmp_path: Path) -> None:
    case = {"topo": "leafspine", "hosts": "3", "algo": "ring,ssar-split", "size": "16K"}
    cases = [
        {**case, "compress": compress, "out": str(tmp_path)} for compress in ("topk:5%", "topk:7")
    ]
    assert sweep.run(cases, name="compressed", emit=lambda _: None)


def test_cases_with_many_jobs_have_folders_of_short_names(tmp_path: Path) -> None:
    """Texts of jobs are longer than a name may be; runs that differ in nothing else stay apart."""
    model = tmp_path / "small.yaml"
    model.write_text("name: small\nlayers: [{elements: 2000, forward: 2us, backward: 4us}]\n")
    job = {"model": str(model), "ranks": "2", "iterations": "1"}
    case = {"topo": "leafspine,leaves=2,spines=1,hosts=5", "algo": "ring", "servers": "0"}
    cases = [
        {**case, "out": str(tmp_path / "runs"), "jobs": [job] * 3 + [{**job, "weight": weight}]}
        for weight in ("1", "2")
    ]
    cases.append({**cases[0], "mtu": "256"})

    assert sweep.run(cases, name="many", emit=lambda _: None)

    folders = sorted(path.name for path in (tmp_path / "runs").iterdir() if path.is_dir())
    assert len(folders) == 3
    assert sum(name.startswith("mtu=256-jobs=") for name in folders) == 1
    assert all(len(name.encode()) < 255 for name in folders)
    with (tmp_path / "runs" / "sweep.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 3 * 4


def test_no_two_runs_have_one_folder(tmp_path: Path) -> None:
    """Letters that a folder's name has not are replaced, as in `a/net.json` and `a_net.json`."""
    files = ("сеть.json", "граф.json", "a/net.json", "a_net.json", "b.json")
    cases = [{"topo": name, "out": str(tmp_path)} for name in files]
    places = sweep._places(cases, ["topo"])
    assert len(set(places)) == len(files)
    assert places[-1] == "topo=b.json"


def test_published_formulas_at_their_corners() -> None:
    dense = Setting(8, 1 << 20, 1.0, 1.0, 10**11, 0)
    gain = ring_ps(dense) / BEST_PS["omnireduce"](dense)
    assert gain == pytest.approx(2 * 7 / 8)
    sparse = Setting(8, 1 << 20, 0.01, 0.1, 10**11, 0)
    assert ring_ps(sparse) / BEST_PS["omnireduce"](sparse) == pytest.approx(10 * gain)
    assert ring_ps(sparse) / BEST_PS["ssar-split"](sparse) == pytest.approx(50)
    assert ring_ps(sparse) / BEST_PS["ssar-double"](sparse) == pytest.approx(50 * 2 * 7 / 8 / 3)
    assert ring_ps(sparse) / BEST_PS["dsar-split"](sparse) == pytest.approx(2)
    assert ring_ps(dense) / BEST_PS["ssar-split"](dense) == pytest.approx(1)


def set_commit(monkeypatch: pytest.MonkeyPatch, commit: str) -> None:
    monkeypatch.setattr(config, "git_commit", lambda: commit)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders of runs that were really done, on a network without packets."""
    done: list[str] = []
    real = session.run

    def run(request: RunRequest, **options: Any) -> CollectiveResults:
        if len(done) == 1 and done[0] != "again":
            done.append("interrupted")
            raise KeyboardInterrupt
        done.append(request.spec.out.name)
        found = real(request, connect=FakeConnect(), **options)
        assert isinstance(found, CollectiveResults)
        return found

    monkeypatch.setattr(session, "run", run)
    set_commit(monkeypatch, "0" * 40)
    return done


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path: Path, runs: list[str]) -> None:
    case = {"topo": "leafspine", "hosts": "3", "algo": "ring", "out": str(tmp_path)}
    cases = [{**case, "size": size} for size in ("1K", "2K", "4K")]
    with pytest.raises(KeyboardInterrupt):
        sweep.run(cases, name="x", emit=lambda _: None)
    lines: list[str] = []

    assert sweep.run(cases, name="x", emit=lines.append)

    assert runs == ["size=1K", "interrupted", "size=2K", "size=4K"]
    assert "# size=1K: finished before, and kept" in lines
    with (tmp_path / "sweep.csv").open() as file:
        assert [row["size"] for row in csv.DictReader(file)] == ["1K", "2K", "4K"]

    sweep.run(cases, name="x", emit=lambda _: None)  # all was finished: all is done anew
    assert runs[4:] == ["size=1K", "size=2K", "size=4K"]


def test_what_other_code_or_options_have_measured_is_not_kept(
    tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = {"topo": "leafspine", "hosts": "3", "algo": "ring", "out": str(tmp_path)}
    cases = [{**case, "size": size} for size in ("1K", "2K")]
    with pytest.raises(KeyboardInterrupt):
        sweep.run(cases, name="x", emit=lambda _: None)

    set_commit(monkeypatch, "1" * 40)
    sweep.run(cases, name="x", emit=lambda _: None)

    assert runs == ["size=1K", "interrupted", "size=1K", "size=2K"]


@pytest.mark.parametrize(("before", "after"), [("0" * 40, "0" * 40 + "+"), ("0" * 40 + "+",) * 2])
def test_sources_that_are_edited_are_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    """Git alone can't tell one edit from the next."""
    set_commit(monkeypatch, before)
    first = config.code()
    assert config.code() == first
    set_commit(monkeypatch, after)
    monkeypatch.setattr(config, "own_state", lambda: "edited")
    assert config.code() != first


def test_sources_of_a_commit_need_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their times are others in each clone, and on each machine."""
    set_commit(monkeypatch, "0" * 40)
    assert config.code()["sources"] is None


def change_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("h0 s0\nh1 s0\nh2 s0 rate=1G\n")


def change_object(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the topology's name be that of an object, which may be another one by now."""
    monkeypatch.setitem(TOPOLOGIES.added, str(file), TOPOLOGIES["leafspine"])


def change_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert file.exists()


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (change_nothing, ["size=2K"]),
        (change_file, ["size=1K", "size=2K"]),
        (change_object, ["size=1K", "size=2K"]),
    ],
)
def test_runs_are_kept_while_what_options_name_is_the_same(
    tmp_path: Path,
    runs: list[str],
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, pytest.MonkeyPatch], None],
    again: list[str],
) -> None:
    file = tmp_path / "net.edges"
    file.write_text("h0 s0\nh1 s0\nh2 s0\n")
    case = {"topo": str(file), "algo": "ring", "threads": "1", "out": str(tmp_path / "runs")}
    cases = [{**case, "size": size} for size in ("1K", "2K")]
    with pytest.raises(KeyboardInterrupt):
        sweep.run(cases, name="x", emit=lambda _: None)
    change(file, monkeypatch)

    sweep.run(cases, name="x", emit=lambda _: None)

    assert runs == ["size=1K", "interrupted", *again]


def test_files_are_known_by_what_they_hold_wherever_options_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").mkdir()
    for name in ("a.csv", "b.csv", "s0.p4", "rules/s0.txt", "gpt.0.et", "gpt.1.et", "tiny.yaml"):
        (tmp_path / name).write_text("abc")
    options = {
        "algo": "ring, a.csv,b.csv",
        "program": "s0=s0.p4",
        "control": "rules",
        "files": "gpt",
        "jobs": [{"model": "./tiny.yaml", "ranks": 2}],
        "seed": "1",
    }
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4
    names = ["a.csv", "b.csv", "s0.p4", "rules/s0.txt", "gpt.0.et", "gpt.1.et", "./tiny.yaml"]
    assert named_files.digests(options) == dict.fromkeys(names, abc)


def test_runs_of_an_earlier_sweep_are_not_among_those_of_a_later_one(
    tmp_path: Path, runs: list[str]
) -> None:
    """They stay until they are replaced, for who has typed another option by mistake."""
    case = {"topo": "leafspine", "hosts": "3", "algo": "ring", "out": str(tmp_path)}
    cases = [{**case, "size": size} for size in ("1K", "2K")]
    runs.append("again")
    sweep.run(cases, name="x", emit=lambda _: None)
    runs.clear()
    with pytest.raises(KeyboardInterrupt):
        sweep.run([{**each, "rate": "25G"} for each in cases], name="x", emit=lambda _: None)

    assert [run.folder.name for run in ringleaf.load(tmp_path).runs] == ["size=1K"]
    assert options_of(tmp_path)["rate_bps"] == "25000000000"
    redraw(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "size=1K" in page
    assert "size=2K" not in page
    assert (tmp_path / "size=2K" / "results.csv").exists()


def row(size_bytes: int, **options: str) -> dict[str, object]:
    return {"algo": "ring", "size_bytes": size_bytes, **options}


def test_a_sweep_is_drawn_along_the_option_with_most_values() -> None:
    lines = [
        row(size, loss=loss, topo=topo)
        for size in (1024, 4096)
        for topo in ("fattree", "bcube")
        for loss in ("", "1%", "2%")
    ]
    assert sorting.axis_of(lines, ["topo", "loss"]) == "loss"
    panels = sorting.panels_of(lines, ["topo"])
    assert {title: len(found) for title, found in panels.items()} == {
        "topo fattree, 1 KiB": 3,
        "topo bcube, 1 KiB": 3,
        "topo fattree, 4 KiB": 3,
        "topo bcube, 4 KiB": 3,
    }
    assert list(sorting.panels_of(lines[:1], ["loss"])) == ["loss default, 1 KiB"]


def test_of_too_many_panels_the_largest_size_is_shown() -> None:
    lines = [row(size, seed=str(seed)) for seed in range(8) for size in (1024, 4096)]
    panels = sorting.panels_of(lines, ["seed"])
    assert list(panels) == [f"seed {seed}, 4 KiB" for seed in range(8)]


def test_a_sweep_has_a_report(tmp_path: Path, runs: list[str]) -> None:
    runs.append("again")  # nobody interrupts
    case = {"topo": "leafspine", "hosts": "3", "algo": "ring", "out": str(tmp_path / "<b>")}
    assert sweep.run([{**case, "size": s} for s in ("1K", "2K")], name="x", emit=lambda _: None)

    page = (tmp_path / "<b>" / "report.html").read_text()
    assert "<h1>Sweep &lt;b&gt;</h1>" in page
    assert "2 runs that differ in size" in page
    assert "<li>size=1K</li>" in page
    assert (tmp_path / "<b>" / "sweep.png").stat().st_size > 5_000


CALL = {
    **{"call": "broadcast", "group": "world", "ranks": 2, "size_bytes": 96, "dtype": "int64"},
    **{"redop": "", "algo": "broadcast", "count": 1, "time_ps": 6_056_000, "total_ps": 6_056_000},
    **{"busbw_gb_s": 0.02, "wrong": 0},
}
STAGES = {
    **{"system": "nic", "products": 1e12, "latency_ps": 0, "tile": 1, "messages": 8},
    **{"first_ps": 8_122_336, "time_ps": 8_263_456, "formula_ps": 8_235_104, "limit": "line"},
    **{"rate": 968117.9, "wrong": 0, "retransmissions": 0},
}
TRAINING = {
    **{"part": "a", "model": "cnn", "method": "none", "algo": "ring", "workload": "sync"},
    **{"steps": 8, "loss": 1.5, "right_percent": 54.0, "time_ps": 386_000_000, "wrong": 0},
}


@pytest.mark.parametrize(
    ("options", "swept_name", "values", "own", "head"),
    [
        ({"script": "train.py"}, "algo", ("ring", "tree"), CALL, "<th>time (µs)</th>"),
        ({"offload": "fcsn"}, "rate", ("10G", "100G"), STAGES, "<th>rate (1/s)</th>"),
        ({"converge": "all"}, "loss", ("0", "1%"), TRAINING, "<th>loss</th>"),
    ],
)
def test_a_sweep_keeps_options_and_results_of_one_name_apart(
    tmp_path: Path,
    options: dict[str, str],
    swept_name: str,
    values: tuple[str, str],
    own: dict[str, Any],
    head: str,
) -> None:
    lines = []
    for value in values:
        case = {**options, swept_name: value, "out": str(tmp_path / value)}
        (tmp_path / value).mkdir()
        for name, content in (("summary", {"rows": [own]}), ("config", {"given": case})):
            text = json.dumps(content | {"schema_version": config.SCHEMA_VERSION})
            (tmp_path / value / f"{name}.json").write_text(text)
        lines += rows_of(case, [swept_name])

    assert lines == [{f"asked_{swept_name}": value, **own} for value in values]
    write(tmp_path / "sweep.csv", lines)
    assert [key[0] for key in read(tmp_path).times_ps] == [*values]
    [report] = draw(tmp_path, values, lines, [swept_name], with_figures=False)
    assert f"<th>asked_{swept_name}</th>" in report.read_text()
    assert head in report.read_text()
