"""Runs compared row by row: by hand, on files as runs write them, and through the command."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from typed import ROOT, typed
from typer.testing import CliRunner

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import make_app
from ringleaf.experiments.runs import drawing, perform
from ringleaf.experiments.runs.compare import (
    Change,
    MeasuredRows,
    changed_options,
    compare,
    failed,
    options_of,
    read,
    table,
)

ROWS = [
    {"algo": "ring", "size_bytes": 1024, "time_ps": 1_000_000, "wrong": 0},
    {"algo": "ring", "size_bytes": 4096, "time_ps": 2_000_000, "wrong": 0},
    {"algo": "tree", "size_bytes": 1024, "time_ps": 3_000_000, "wrong": 0},
]


def write(folder: Path, rows: Sequence[Mapping[str, object]], name: str = "results.csv") -> Path:
    folder.mkdir(exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    (folder / name).write_text(text.getvalue())
    return folder


def changes(tmp_path: Path, *after: Mapping[str, object], threshold: float = 0.001) -> list[Change]:
    before = read(write(tmp_path / "before", ROWS))
    return [
        each.change for each in compare(before, read(write(tmp_path / "after", after)), threshold)
    ]


@pytest.mark.parametrize(
    ("time_ps", "change"),
    [
        (1_000_000, Change.EQUAL),
        (1_001_000, Change.NEAR),
        (999_000, Change.NEAR),
        (1_001_001, Change.SLOWER),
        (998_999, Change.FASTER),
    ],
)
def test_a_threshold_is_part_of_what_is_near(tmp_path: Path, time_ps: int, change: Change) -> None:
    assert changes(tmp_path, ROWS[0] | {"time_ps": time_ps}, *ROWS[1:])[0] is change


def test_rows_that_only_one_has_and_wrong_ones_are_named(tmp_path: Path) -> None:
    new = ROWS[2] | {"size_bytes": 4096}
    found = changes(tmp_path, ROWS[0], ROWS[2] | {"wrong": 1}, new)
    assert found == [Change.EQUAL, Change.MISSING, Change.WRONG, Change.NEW]


@pytest.mark.parametrize(
    ("change", "fails", "fails_both_ways"),
    [
        ({"time_ps": 1_100_000}, True, True),
        ({"time_ps": 900_000}, False, True),
        ({"wrong": 2}, True, True),
        ({}, False, False),
        ({"size_bytes": 2048}, True, True),  # one is missing, one is new
    ],
)
def test_what_closes_the_gate(
    tmp_path: Path, change: dict[str, int], fails: bool, fails_both_ways: bool
) -> None:
    before, after = (
        read(write(tmp_path / name, [ROWS[0] | more, *ROWS[1:]]))
        for name, more in (("a", {}), ("b", change))
    )
    differences = compare(before, after, 0.001)
    assert failed(differences) is fails
    assert failed(differences, both_ways=True) is fails_both_ways


def test_sweeps_are_told_apart_by_their_options(tmp_path: Path) -> None:
    rows = [
        {"loss": loss, "algo": "ring", "clock": "simulated", "ranks": 4, "size_bytes": 1024,
         "time_ps": 7, "wrong": 0}
        for loss in ("0", "1%")
    ]  # fmt: skip
    found = read(write(tmp_path / "sweep", rows, "sweep.csv"))
    assert found.names == ("loss", "algo", "size_bytes")
    assert list(found.times_ps) == [("0", "ring", "1024"), ("1%", "ring", "1024")]


def sweep(folder: Path, times_ps: Mapping[tuple[str, str], int]) -> MeasuredRows:
    rows = [
        {"loss": loss, "queue": queue, "clock": "simulated", "algo": "ring", "size_bytes": 1024,
         "time_ps": time_ps, "wrong": 0}
        for (loss, queue), time_ps in times_ps.items()
    ]  # fmt: skip
    return read(write(folder, rows, "sweep.csv"))


def test_rows_of_sweeps_are_the_same_if_their_options_mean_the_same(tmp_path: Path) -> None:
    before = sweep(tmp_path / "a", {("0", "64K"): 3, ("0.3%", "64K"): 5, ("0.3%", ""): 6})
    after = sweep(tmp_path / "b", {("0", "65536"): 3, ("0.003", "64KiB"): 7, ("1%", "64K"): 9})
    found = {each.key[:2]: each.change for each in compare(before, after, 0.001)}
    assert found == {
        ("0", "64K"): Change.EQUAL,
        ("0.3%", "64K"): Change.SLOWER,
        ("0.3%", ""): Change.MISSING,
        ("1%", "64K"): Change.NEW,
    }


def test_options_of_one_sweep_that_mean_the_same_stay_apart(tmp_path: Path) -> None:
    before = sweep(tmp_path / "a", {("0.3%", "64K"): 5})
    for others in (("0.003", "0.3%"), ("0.003", "0.0030")):
        after = sweep(tmp_path / "b", {(loss, "64K"): 5 for loss in others})
        assert len(compare(before, after, 0.001)) == 3 - ("0.3%" in others)


def test_jobs_are_told_apart_by_case_and_number(tmp_path: Path) -> None:
    rows = [
        {"jobs": 2, "algo": "ring", "scheduler": "fifo", "entries": "", "job": job,
         "model": "vgg16", "jct_ps": 5, "size_bytes": 9, "wrong": 0}
        for job in (1, 2)
    ]  # fmt: skip
    found = read(write(tmp_path / "jobs", rows))
    assert found.times_ps == {("2", "ring", "fifo", "", "1"): 5, ("2", "ring", "fifo", "", "2"): 5}


def test_jobs_of_an_earlier_version_are_compared_with_those_of_this_one(tmp_path: Path) -> None:
    """0.1.0 called the ports' discipline `scheduler`, and the scheduler of flows `order`."""
    row = {"jobs": 1, "algo": "ring", "entries": "", "job": 1, "jct_ps": 5, "wrong": 0}
    older = {"scheduler": "drr", **row, "order": "p3"}
    newer = {"discipline": "drr", **row, "scheduler": "p3"}
    before = read(write(tmp_path / "older", [older], "sweep.csv"))
    after = read(write(tmp_path / "newer", [newer], "sweep.csv"))
    assert before.names[0] == "discipline"
    assert before == after


def test_rows_of_each_kind_are_told_apart_by_their_own_columns(tmp_path: Path) -> None:
    """Those of a replay by traffic, call and sizes; of a sweep of replays, by options alone."""
    row = {"label": "tp", "call": "allreduce", "algo": "ring", "ranks": 2, "size_bytes": 64}
    rows = [row | {"label": label, "count": 3, "time_ps": 7} for label in ("tp", "dp")]
    found = read(write(tmp_path / "replay", rows))
    assert found.names == ("label", "call", "algo", "ranks", "size_bytes")
    assert list(found.times_ps.values()) == [7, 7]
    swept = [
        {"cc": cc, "workload": "incast", "iteration_ps": 9, "bubble": 0.5, "wrong": 0}
        for cc in ("dctcp", "swift")
    ]
    found = read(write(tmp_path / "sweep", swept, "sweep.csv"))
    assert found.times_ps == {("dctcp", "incast"): 9, ("swift", "incast"): 9}


CALL = {"label": "p2p", "call": "message", "algo": "direct", "ranks": 2, "size_bytes": 64}


def replay(folder: Path, iteration_ps: int | None, wrong: int | None = 0) -> MeasuredRows:
    """Write a replay of one call, and its summary unless there is no iteration; read it."""
    write(folder, [CALL | {"count": 1, "time_ps": 7}])
    if iteration_ps is not None:
        summary = {"schema_version": 2, "iteration_ps": iteration_ps, "wrong": wrong}
        (folder / "summary.json").write_text(json.dumps(summary))
    return read(folder)


@pytest.mark.parametrize(
    ("before_ps", "after_ps", "wrong", "expected"),
    [
        (1000, 1000, None, [Change.EQUAL, Change.EQUAL]),  # None: without data
        (1000, 2000, 0, [Change.EQUAL, Change.SLOWER]),
        (1000, 1000, 3, [Change.EQUAL, Change.WRONG]),
        (None, 1000, 0, [Change.EQUAL]),  # a baseline of rows alone
        (1000, None, 0, [Change.EQUAL]),
        (None, 1000, 3, [Change.EQUAL, Change.WRONG]),
    ],
)
def test_iterations_of_replays_are_compared_and_not_their_calls_alone(
    tmp_path: Path,
    before_ps: int | None,
    after_ps: int | None,
    wrong: int | None,
    expected: list[Change],
) -> None:
    """Computations that take longer leave calls as they are, and have no rows."""
    before = replay(tmp_path / "before", before_ps)
    differences = compare(before, replay(tmp_path / "after", after_ps, wrong), 0.001)
    assert [each.change for each in differences] == expected
    if len(differences) == 2:
        assert differences[1].key == ("iteration", "", "", "", "")


def test_both_passes_of_an_exchange_are_compared(tmp_path: Path) -> None:
    row = {"system": "nic", "policy": "lru", "pool": "no", "cache": 64, "forward_ps": 9}
    before, after = (
        read(write(tmp_path / str(backward_ps), [row | {"backward_ps": backward_ps, "wrong": 0}]))
        for backward_ps in (5, 8)
    )
    assert before.names == ("system", "policy", "pool", "cache", "time")
    kinds = {each.key[-1]: each.change for each in compare(before, after, 0.001)}
    assert kinds == {"forward": Change.EQUAL, "backward": Change.SLOWER}


def test_the_table_has_what_differs(tmp_path: Path) -> None:
    before = read(write(tmp_path / "a", ROWS))
    after = read(write(tmp_path / "b", [ROWS[0] | {"time_ps": 1_500_000}, *ROWS[1:]]))
    differences = compare(before, after, 0.001)
    assert list(table(before.names, differences)) == [
        "algo  size_bytes  before (us)  after (us)  change (%)",
        "ring        1024        1.000       1.500     +50.000  slower",
        "# 3 rows: 2 equal, 1 slower",
    ]
    assert list(table(before.names, differences, markdown=True)) == [
        "| algo | size_bytes | before (us) | after (us) | change (%) |  |",
        "|---|---|---|---|---|---|",
        "| ring | 1024 | 1.000 | 1.500 | +50.000 | slower |",
        "",
        "3 rows: 2 equal, 1 slower",
    ]


def config(folder: Path, **options: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"schema_version": 2, "options": options}))


def test_options_that_differ_are_named(tmp_path: Path) -> None:
    config(tmp_path / "a", mtu_bytes=4096, seed=1, ecn={"least": 0})
    config(tmp_path / "b", mtu_bytes=1024, ecn={"least": 0}, pfc="8K")

    before, after = options_of(tmp_path / "a"), options_of(tmp_path / "b")

    assert list(changed_options(before, after)) == [
        "option mtu_bytes differs: 4096 before, 1024 after",
        "option seed differs: 1 before, not given after",
        "option pfc differs: not given before, 8K after",
    ]
    assert list(changed_options(before, before)) == []
    assert options_of(tmp_path) == {}
    assert list(changed_options({}, {"topo": "fattree"})) == [
        "options before are not known, as there is no config.json"
    ]
    assert list(changed_options({"seed": "1"}, {"seed": "1", "topo": "fattree"})) == [
        "option topo differs: not given before, fattree after"
    ]


def test_an_option_that_says_the_same_in_other_words_is_no_difference(tmp_path: Path) -> None:
    """leafspine has 4 leaves, 4 spines and 4 hosts per leaf; looks change no results."""
    links = {"rate_bps": 100000000000, "delay_ps": 1000000}
    config(tmp_path / "a", topo="leafspine", hosts=None, wide=True, **links)
    same = "leafspine,hosts=4,leaves=4,spines=4,rate=100G,delay=1us"
    config(tmp_path / "b", topo=same, hosts=None, threads=2, **links)
    config(tmp_path / "c", topo="leafspine,hosts=5", **links)
    config(tmp_path / "d", topo="leafspine,delay=2us", **links)
    first, second, *others = (options_of(tmp_path / name) for name in "abcd")

    assert list(changed_options(first, second)) == []
    for other in others:
        line = f"option topo differs: leafspine before, {other['topo']} after"
        assert line in changed_options(first, other)


def test_options_of_other_kinds_are_compared_as_they_were_understood(tmp_path: Path) -> None:
    for name, given in (("a", {}), ("b", {"cc": "fixed", "wide": "yes"})):
        (tmp_path / name).mkdir()
        known = {"kind": "workload", "cc": "fixed", "seed": 1, "packet_hops": 9, "given": given}
        (tmp_path / name / "config.json").write_text(json.dumps({"schema_version": 2, **known}))

    assert options_of(tmp_path / "a") == options_of(tmp_path / "b") == {"cc": "fixed", "seed": "1"}


def test_a_sweep_has_the_options_that_its_runs_share(tmp_path: Path) -> None:
    plan = {"schema_version": 2, "options": ["loss"], "runs": ["loss=0", "loss=1%"]}
    (tmp_path / "sweep.json").write_text(json.dumps(plan))
    config(tmp_path / "loss=0", loss=0.0, seed=3)
    config(tmp_path / "loss=1%", loss=0.01, seed=3)

    assert options_of(tmp_path) == {"seed": "3"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing was measured"),
        ("algo,size_bytes\nring,1\n", "no times in it"),
        ("algo,size_bytes,time_ps,wrong\nring,1,x,0\n", "invalid literal"),
        ("algo,size_bytes,time_ps,wrong\nring,1,5,0\nring,1,5,0\n", "two rows of ring, 1"),
        ("algo,size_bytes,time_ps,wrong\nring,1,500,0\nring,2,37\n", "row 2 .* 4 cells, got 3, as"),
    ],
)
def test_files_that_are_no_results_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "results.csv").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read(tmp_path)


def test_a_file_in_no_known_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_bytes("algo,time_ps\n".encode("utf-16"))
    with pytest.raises(ConfigError, match="not text in UTF-8"):
        read(tmp_path)


def test_a_spreadsheet_may_have_saved_the_rows(tmp_path: Path) -> None:
    """Excel writes a mark before UTF-8, semicolons where commas are decimal, and CRLF."""
    text = "algo;size_bytes;time_ps;wrong\r\nring;1024;1000;0\r\n"
    (tmp_path / "results.csv").write_bytes(text.encode("utf-8-sig"))
    assert read(tmp_path).times_ps == {("ring", "1024"): 1000}


def test_the_command_compares_a_run_with_itself(tmp_path: Path) -> None:
    write(tmp_path / "a", ROWS)
    write(tmp_path / "b", [ROWS[0] | {"time_ps": 2_000_000}, *ROWS[1:]])

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(make_app(), ["compare", *words])
        return done.exit_code, done.output

    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert run(a, a) == (0, f"# before: {a}; after: {a}\n# 3 rows: 3 equal\n")
    assert run(a, b)[0] == 1
    assert run(b, a)[0] == 0
    assert run(b, a, "--both-ways")[0] == 1
    assert run(a, b, "--threshold", "99.9%")[0] == 1
    assert (
        run(f"{a}/results.csv", b)[1] == f"# before: {a}/results.csv" + run(a, b)[1][len(a) + 10 :]
    )
    code, text = run(a, b, "c")
    assert code == 2
    assert "only commits run with options, got 'c'" in text
    code, text = run(a, str(tmp_path / "none"))
    assert code == 2
    assert "no sweep.csv or results.csv there" in text
    code, text = run(".", ".")
    assert code == 2
    assert "commits need something to run" in text


def test_code_as_it_is_takes_as_long_as_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of this code, by name and by folder."""
    monkeypatch.setattr(perform, "drawer", lambda _: None)
    monkeypatch.setattr(drawing, "redraw", lambda *_, **__: [])
    options = ["--topo", "leafspine,leaves=1,spines=1,hosts=3", "--algo", "ring", "--size", "1K"]
    typed("run", *options, "--out", tmp_path).check_returncode()
    done = typed("compare", tmp_path, ".", "--", *options)
    said = done.stdout.splitlines()
    assert (done.returncode, said[-1]) == (0, "# 1 row: 1 equal")
    assert said[0] == f"# before: {tmp_path}; after: the files now in {ROOT}"
