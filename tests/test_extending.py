"""A package outside the repository adds a member to each family, and changes no file of ours."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from forked import Forked

from ringleaf.core.registry import Registry
from ringleaf.errors import ConfigError

ELSEWHERE = Path(__file__).with_name("elsewhere")
EXTENDING = ELSEWHERE.parents[1] / "docs" / "extending"
ALGORITHM = "gather-at-the-first-rank"


class Run(Protocol):
    """Run `ringleaf` with the package, in a folder, and return what it has printed."""

    def __call__(self, *words: str, at: Path, drawn: bool = True) -> str: ...


@pytest.fixture(scope="module")
def ringleaf() -> Iterator[Run]:
    with Forked(PYTHONPATH=str(ELSEWHERE)) as forked:

        def run(*words: str, at: Path, drawn: bool = True) -> str:
            done = forked.run(*words, at=at, drawn=drawn)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        yield run


def test_what_a_package_adds_is_found_by_the_command(tmp_path: Path) -> None:
    """In a process of its own; those of the other tests are copies of one."""
    done = subprocess.run(
        [sys.executable, "-m", "ringleaf.experiments.commands.cli", "topo", "list"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ELSEWHERE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "one switch, and hosts round it" in done.stdout


def test_what_a_package_adds_is_listed_and_drawn(ringleaf: Run, tmp_path: Path) -> None:
    assert "one switch, and hosts round it" in ringleaf("topo", "list", at=tmp_path)
    assert "tiny" in ringleaf("workload", "list", at=tmp_path)
    ringleaf("topo", "show", "star", "--out", "star.png", at=tmp_path)
    assert (tmp_path / "star.png").read_bytes().startswith(b"\x89PNG")


def test_what_a_package_adds_is_verified_and_stepped_through(ringleaf: Run, tmp_path: Path) -> None:
    assert ": correct" in ringleaf("verify", ALGORITHM, "--ranks", "5", at=tmp_path)
    told = ringleaf("step", ALGORITHM, "--ranks", "3", "--plain", at=tmp_path)
    assert "rank 0" in told


def test_what_a_package_adds_is_run(ringleaf: Run, tmp_path: Path) -> None:
    network = ("--topo", "star", "--cc", "gentle", "--discipline", "longest")
    options = (*network, "--size", "4K", "--compress", "front:100", "--figures", "no")
    printed = ringleaf("run", *options, "--algo", f"{ALGORITHM},ring", "--out", "out", at=tmp_path)

    names, unit, row = [
        line
        for line in printed.splitlines()
        if ALGORITHM in line or "(B)" in line or "#wrong" in line
    ][:3]
    assert "# wrong values: 0 OK" in printed
    assert row.split()[0] == ALGORITHM
    assert names.index("size") + 4 == unit.index("(B)") + 3  # columns stay below their names
    assert ALGORITHM in (tmp_path / "out" / "report.html").read_text()


def test_a_system_that_a_package_adds_is_run_beside_ours(ringleaf: Run, tmp_path: Path) -> None:
    options = ("--topo", "star", "--size", "16K", "--lanes", "64", "--out", "out")
    printed = ringleaf("run", *options, "--algo", "modest,switchml", at=tmp_path)
    with (tmp_path / "out" / "results.csv").open() as file:
        rows = {row["algo"]: row for row in csv.DictReader(file)}

    assert "# wrong values: 0 OK" in printed
    # 64 blocks, of which 8 are in flight: at least 8 rounds, each up and down a link of 1 us.
    assert int(rows["modest"]["time_ps"]) >= 8 * 2 * 10**6 > int(rows["switchml"]["time_ps"])
    assert rows["modest"]["bound_ps"] == rows["switchml"]["bound_ps"]  # the loads are SwitchML's
    assert "modest" in (tmp_path / "out" / "report.html").read_text()
    assert list((tmp_path / "out" / "figures").glob("*.png"))
    assert "rank 0" in ringleaf("step", "modest", "--ranks", "2", "--plain", at=tmp_path)
    assert "modest" in ringleaf("run", "--help-all", at=tmp_path)


def test_a_window_that_a_package_adds_is_run(ringleaf: Run, tmp_path: Path) -> None:
    options = ("--topo", "star", "--size", "16K", "--lanes", "64", "--loss", "2%", "--slots", "16")
    times = []
    for window in ("aimd", "portion"):
        out = tmp_path / window
        given = ("--algo", "atp", "--ina-cc", window, "--out", str(out))
        told = ringleaf("run", *options, *given, at=tmp_path, drawn=False)
        assert "# wrong values: 0 OK" in told
        with (out / "results.csv").open() as file:
            times += [int(row["time_ps"]) for row in csv.DictReader(file)]

    assert times[0] < times[1]  # only the other one takes losses for congestion


def test_a_systems_name_is_no_other_algorithms() -> None:
    others = {"mine": "in the network"}
    members: Registry[str] = Registry("nothing", "algorithm", others=others)

    assert (list(members), len(members), members["mine"]) == (["mine"], 1, "in the network")
    clashing: Registry[object] = Registry(
        "nothing", "scheduler", "hosts/schedulers", "SCHEDULER", others={"fifo": 1}
    )
    with pytest.raises(ConfigError, match="scheduler fifo: must have a name of its own, got that"):
        list(clashing)


def test_what_a_package_adds_is_trained(ringleaf: Run, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text(
        "topo: star,hosts=6\n"
        "servers: 0\n"
        f"algo: [{ALGORITHM}, switchml]\n"
        "scheduler: [last]\n"
        "memory: greedy\n"
        "jobs:\n"
        "  - {model: tiny, ranks: 3, iterations: 2}\n"
        "  - {model: tiny, ranks: 3, iterations: 2}\n"
    )
    printed = ringleaf("run", "--spec", "jobs.yaml", "--out", "out", at=tmp_path, drawn=False)

    assert "# wrong values: 0 OK" in printed


def test_a_recovery_that_a_package_adds_is_run_beside_ours(ringleaf: Run, tmp_path: Path) -> None:
    (tmp_path / "losses.yaml").write_text(
        "workload: llm\nlayers: 4\nhidden: 16\nheads: 2\nsequence: 16\npp: 2\ndp: 2\n"
        "micro_batches: 2\nrecovery: one-line, recycle\nfaults: h0 down at 1us\niterations: 2\n"
        "topo: star\ndetect: 1us\nregroup: 1us\n"
    )
    printed = ringleaf("run", "--spec", "losses.yaml", "--out", "out", at=tmp_path, drawn=False)

    assert "# wrong values: 0 OK" in printed
    with (tmp_path / "out" / "results.csv").open() as file:
        rows = [(row["recovery"], row["losses"], row["pipelines"]) for row in csv.DictReader(file)]
    assert rows[0] == ("one-line", "1", "1")


def test_a_kind_of_workload_that_a_package_adds_has_all_that_ours_have(
    ringleaf: Run, tmp_path: Path
) -> None:
    """Two links of 1 us to a host of the same switch, and as long back: 4 us."""
    asked = "topo: star,hosts=4\ndistances: 2\n"
    (tmp_path / "one.yaml").write_text(asked)
    (tmp_path / "all.yaml").write_text(f"{asked}delay: [1us, 2us]\n")

    plan = json.loads(ringleaf("run", "--spec", "one.yaml", "--dry-run", at=tmp_path))
    assert (plan["distances"], plan["estimate"]["memory_bytes"] > 0) == (2, True)
    printed = ringleaf("run", "--spec", "one.yaml", at=tmp_path)
    out = tmp_path / "runs" / "one"
    assert [row.split() for row in printed.splitlines() if row[0] != "#"] == [
        ["h1", "4.00"],
        ["h2", "4.00"],
    ]
    assert (out / "results.csv").read_text() == ("host,time_ps,wrong\nh1,4000000,0\nh2,4000000,0\n")
    trace = json.loads((out / "timelines" / "distances.json").read_text())
    bars = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(bar["ts"], bar["dur"]) for bar in bars] == [(0, 4), (0, 4)]
    (out / "report.html").unlink()
    ringleaf("plot", str(out), at=tmp_path)
    assert "<td>4.00</td>" in (out / "report.html").read_text()
    summary = json.loads(ringleaf("run", "--spec", "one.yaml", "--json", at=tmp_path))
    assert (summary["kind"], summary["complete"], summary["wrong"]) == ("distances", True, 0)

    ringleaf("run", "--spec", "all.yaml", "--out", "sweep", at=tmp_path)
    with (tmp_path / "sweep" / "sweep.csv").open() as file:
        assert [(row["delay"], row["time_ps"]) for row in csv.DictReader(file)] == [
            ("1us", "4000000"), ("1us", "4000000"), ("2us", "8000000"), ("2us", "8000000"),
        ]  # fmt: skip
    assert "<td>8.00</td>" in (tmp_path / "sweep" / "report.html").read_text()
    (tmp_path / "sweep" / "delay=2us" / "summary.json").unlink()  # as if it was interrupted
    again = ringleaf("run", "--spec", "all.yaml", "--out", "sweep", at=tmp_path)
    assert "# delay=1us: finished before, and kept" in again

    told = ringleaf("compare", str(out), str(tmp_path / "sweep" / "delay=1us"), at=tmp_path)
    assert told.splitlines()[-1] == "# 2 rows: 2 equal"


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("topology", "star.py"),
        ("algorithm", "gather.py"),
        ("codec", "halves.py"),
        ("compressor", "front.py"),
        ("scheduler", "last.py"),
        ("controller", "gentle.py"),
        ("system", "modest.py"),
        ("window", "portion.py"),
        ("allocator", "greedy.py"),
        ("discipline", "longest.py"),
        ("recovery", "one_line.py"),
        ("model", "tiny.yaml"),
        ("model", "models.py"),
        ("workload", "distances.py"),
    ],
)
def test_pages_show_what_the_tests_run(page: str, file: str) -> None:
    code = (ELSEWHERE / "elsewhere" / file).read_text()
    points = (ELSEWHERE / "elsewhere-1.0.dist-info" / "entry_points.txt").read_text()
    text = (EXTENDING / f"{page}.md").read_text()
    (group,) = re.findall(r'entry-points\."(.*)"\]', text)
    (name, value) = re.findall(r'^([\w-]+) = "(elsewhere.*)"$', text, re.MULTILINE)[0]

    assert f"\n{code}```" in text
    assert f"[{group}]\n{name} = {value}\n" in points
    assert len(code.splitlines()) < (100 if page == "workload" else 60)


def test_a_member_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ELSEWHERE)
    members: Registry[object] = Registry("schedulers", "scheduler", "hosts/schedulers", "NOTHING")

    assert {"fifo", "last"} <= set(members)
    with pytest.raises(ConfigError, match=r"scheduler fifo: can't be loaded, got '.*fifo:NOTHING'"):
        members.find("fifo")


def test_a_name_that_is_taken_is_left_out_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ringleaf.schedulers]\nfifo = other:FIFO\n")
    monkeypatch.syspath_prepend(tmp_path)
    members: Registry[object] = Registry("schedulers", "scheduler", "hosts/schedulers", "SCHEDULER")

    assert type(members["fifo"]).__name__ == "FifoScheduler"  # ours
    line = (
        "ringleaf: package other 1.0: scheduler must have a name of its own, got 'fifo', which is "
    )
    assert capsys.readouterr().err.startswith(line)


def test_members_may_be_added_for_a_while() -> None:
    members: Registry[str] = Registry("nothing", "thing")
    members.added["mine"] = "it"

    assert (list(members), len(members), members.find("mine")) == (["mine"], 1, "it")
    with pytest.raises(ConfigError, match="here: unknown thing, got 'yours'; valid: mine"):
        members.find("yours", "here")
