"""NICs that die, through the command: names of places, queue pairs, and what rows and heads say."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from test_cli import call

from ringleaf.experiments.runs import drawing, perform

MACHINES = ("--topo", "leafspine,leaves=1,spines=0,hosts=2,node=4xh100")
NIC = "s13"  # the first of the first machine: after 8 GPUs, an NVSwitch and 4 PCIe switches


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "redraw", lambda *_, **__: [])
    monkeypatch.setattr(perform, "drawer", lambda _: None)


def test_topologies_name_the_nics(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("topo", "show", MACHINES[1]) == 0

    [line] = [text for text in capsys.readouterr().out.splitlines() if text.startswith("nic  ")][:1]
    assert line.split()[1] == NIC


@pytest.mark.parametrize("net", ["virtual", "flow"])
@pytest.mark.parametrize("algo", ["hierring,ring", "alltoall"])
def test_rows_of_a_dead_nic_are_right(
    net: str, algo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*MACHINES, "--algo", algo, "--size", "64K", "--net", net, "--queue", "16M"]
    dead = ["--faults", f"{NIC} down at 1us", "--reroute", "3us", "--routes", "ecmp"]
    for name, more in (("usual", ()), ("cut", ("--queue-pairs", "4"))):
        assert call("run", *words, *dead, *more, "-o", tmp_path / name) == 0
    head = " ".join(capsys.readouterr().out.replace("#", " ").split())

    assert head.count("messages cut among 4 queue pairs") == 1
    usual, cut = (
        list(csv.DictReader((tmp_path / name / "results.csv").open())) for name in ("usual", "cut")
    )
    assert [row["wrong"] for row in usual + cut] == ["0"] * len(usual + cut)
    assert all(int(b["wire_bytes"]) > int(a["wire_bytes"]) for a, b in zip(usual, cut, strict=True))


def test_a_machines_only_nic_is_waited_for_in_vain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--topo", f"{MACHINES[1]},nics=1", "--algo", "ring", "--size", "64K")
    assert call("run", *words, "--faults", f"{NIC} down", "--reroute", "3us", "-o", tmp_path) != 0

    assert "waits for" in capsys.readouterr().err
