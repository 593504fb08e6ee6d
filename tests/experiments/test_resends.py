"""Nothing is sent again, and no queue runs over, where nothing is lost; at defaults."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.commands.cli import perform_alone
from studies import resends as study
from studies.resends import Tried, resends_command, run_case

FEW_LINKS = (
    "torus2d,x=3,y=5",  # hosts' lines are four times as fast as the links between them
    "bcube,n=3,k=1",
    "leafspine,leaves=2,spines=2,hosts=4,rate=25G,host_rate=100G",
)
OFFENDERS = (
    ("omnireduce", "torus2d,x=3,y=5"),
    ("omnireduce", "bcube,n=3,k=1"),
    ("omnireduce", "leafspine,leaves=2,spines=2,hosts=4,rate=25G,host_rate=100G"),
    ("atp", "torus3d"),
    ("atp", "torus2d"),
    ("ssar-double", "torus2d,x=3,y=5"),
)
"""Each sent thousands again when windows fitted hosts' lines alone, or timers knew no queues."""


def main(*words: str) -> int:
    return perform_alone("python -m studies.resends", resends_command, words)


@pytest.mark.parametrize("topo", FEW_LINKS)
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_nothing_is_sent_again_without_a_loss(algo: str, topo: str) -> None:
    outcome = run_case(Tried(topo, algo, "64KiB"))
    assert (outcome.retransmissions, outcome.drops, outcome.lost) == (0, 0, 0)


@pytest.mark.parametrize(("algo", "topo"), OFFENDERS)
def test_nothing_is_sent_again_where_much_was(algo: str, topo: str) -> None:
    outcome = run_case(Tried(topo, algo, "1MiB"))
    assert (outcome.retransmissions, outcome.drops, outcome.lost) == (0, 0, 0)


def test_a_window_fits_the_one_path_to_a_server() -> None:
    """Of two spines, the routes to one server take one: half the rate that there is."""
    case = Tried(FEW_LINKS[2], "omnireduce", "64KiB", (("servers", "1"),))
    assert run_case(case).retransmissions == 0


def test_a_row_per_case_and_the_status_says_what_was_wasted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = ["--topo", "leafspine,leaves=1,spines=1,hosts=2", "--algo", "ring", "--size", "1KiB"]
    assert main(*few) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line[0] != "#"]
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [("ring", "1KiB", "0", "0")]


JOBS = """
topo: "leafspine,leaves=2,spines=2,hosts=8"
routes: ecmp
program: tensorexpress
jobs:
  - {model: resnet50, ranks: 3, iterations: 1}
  - {model: vgg16, ranks: 3, iterations: 1}
  - {model: resnet50, ranks: 3, iterations: 1}
  - {model: vgg16, ranks: 3, iterations: 1}
counts: [2, 4]
algo: [atp]
scheduler: [fifo, jpas]
servers: 1
size: 0.001
compute: 0
lanes: 64
entries: 64
"""
"""Many collide, and job after job waits behind others' higher priorities."""


def test_four_jobs_send_nothing_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "four.yaml"
    spec.write_text(JOBS)
    assert main("--jobs", str(spec)) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line[0] != "#"]
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [
        ("atp", "fifo", "0", "0"),
        ("atp", "jpas", "0", "0"),
    ]


@pytest.mark.parametrize(("resends", "drops", "status"), [(0, 0, 0), (1, 0, 1), (0, 1, 1)])
def test_the_status_tells_of_jobs_waste(
    resends: int, drops: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's row with 599,999 hops is of fewer than 100,000 packets for sure."""

    class Row:
        algo, scheduler, jct_ps, packet_hops = "atp", "fifo", 1, 599_999

    row = Row()
    vars(row).update(retransmissions=resends, drops=drops)
    monkeypatch.setattr(study, "run_jobs", lambda *_: [row])
    assert main("--jobs", "any.yaml") == status


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ({"retransmissions": 1}, 1),
        ({"drops": 1}, 1),
        ({"retransmissions": 1, "lost": 1}, 0),  # what is lost must be sent again
    ],
)
def test_the_status_tells_of_waste(
    counts: dict[str, int], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ["--topo", "leafspine,leaves=1,spines=1,hosts=2", "--algo", "ring", "--size", "1KiB"]
    found = replace(run_case(Tried(few[1], "ring", "1KiB")), **counts)  # type: ignore[arg-type]
    monkeypatch.setattr(study, "run_case", lambda _: found)
    assert main(*few) == status


@pytest.mark.parametrize(
    ("spec", "message"),
    [("", "nope.yaml.*No such file"), (JOBS, "algo must have one of those asked for, got ring")],
)
def test_what_cannot_be_run_is_an_error_and_no_good_result(
    spec: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nope.yaml"
    if spec:
        path.write_text(spec)
    assert main("--jobs", str(path), "--algo", "ring") == 2
    assert re.search(message, capsys.readouterr().err)
