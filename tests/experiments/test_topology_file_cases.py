"""Files as people have them, through the commands: each with the figures that are right for it."""

from __future__ import annotations

import csv
from pathlib import Path

import networkx as nx
import pytest
from test_cli import call
from typed import ROOT

import ringleaf as package
from ringleaf.experiments.runs import drawing, perform
from ringleaf.topologies.graph import hosts, link
from ringleaf.topologies.registry import build

FILES = ROOT / "tests" / "topologies" / "files"
GBPS = 10**9


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "redraw", lambda *_, **__: [])
    monkeypatch.setattr(perform, "drawer", lambda _: None)


def ring_us(topo: str, size: str, folder: Path) -> float:
    """Run a ring allreduce, and return its time."""
    what = ("--algo", "ring", "--size", size, "--out", folder / "out")
    assert call("run", "--topo", topo, *what) == 0
    with (folder / "out" / "results.csv").open() as file:
        [row] = csv.DictReader(file)
    assert row["wrong"] == "0"
    return float(row["time_ps"]) / 10**6


def rates(name: str) -> dict[frozenset[str], int]:
    """Return the Gbit/s of links by the labels of their ends, without those inside servers."""
    graph = build(str(FILES / name))
    label = nx.get_node_attributes(graph, "label")
    return {
        frozenset((label[a], label[b])): link(graph, a, b).rate_bps // GBPS
        for a, b in graph.edges
        if label[a] != label[b]
    }


def test_parallel_links(capsys: pytest.CaptureFixture[str]) -> None:
    """Between Beta and Gamma there are two links of 10 Gbit/s."""
    assert call("topo", "show", FILES / "parallel.graphml") == 0
    said = capsys.readouterr().out
    assert "# links side by side are one, with their rates added: Beta-Gamma\n" in said
    assert "Beta - Gamma      1  20 Gbit/s" in said


@pytest.mark.usefixtures("undrawn")
def test_routers_without_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topo = str(FILES / "routers.graphml")
    assert call("run", "--topo", topo, "--out", tmp_path / "none") == 2
    assert f"for a host at every node, write {topo},hosts=each\n" in capsys.readouterr().err
    graph = build(f"{topo},hosts=each")
    ways = [nx.shortest_path_length(graph, f"h{i}", f"h{(i + 1) % 4}") for i in range(4)]
    assert ways == [3, 3, 3, 3]
    # Six rounds of 16 KiB at 100 Gbit/s, over a link of 1 us: 1.3 us and the delay, at least.
    assert 6 * 2.3 < ring_us(f"{topo},hosts=each", "64K", tmp_path) < 6 * 3
    assert "allreduce of 4 ranks" in capsys.readouterr().out


@pytest.mark.usefixtures("undrawn")
def test_rates_by_the_topology_zoos_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ring of two ranks sends 512 KiB twice, at 10 Gbit/s."""
    least_us = 2 * 524288 * 8 / 10e9 * 1e6
    assert least_us < ring_us(str(FILES / "speed.graphml"), "1M", tmp_path) < 1.1 * least_us
    said = capsys.readouterr().out
    assert "# rates of links are by LinkSpeedRaw\n" in said
    assert "# no node has a role, so the 2 with one link are hosts (Alpha, Delta); " in said


def test_amd_gpus_and_their_xgmi() -> None:
    assert rates("xgmi.xml") == {
        frozenset(("gpu0", "gpu1")): 768,
        frozenset(("gpu2", "gpu3")): 768,
        frozenset(("gpu0", "gpu2")): 192,
        frozenset(("gpu1", "gpu3")): 192,
    }


def test_a_clouds_template() -> None:
    left, right = "ffff:ff:01.0", "ffff:ff:02.0"
    assert rates("cloud.xml") == {
        **{frozenset((f"gpu{i}", left if i < 2 else right)): 192 for i in range(4)},
        frozenset((left, "cpu0")): 192,
        frozenset((right, "cpu1")): 192,
        frozenset(("cpu0", "cpu1")): 128,
    }


def test_a_network_of_astra_sim() -> None:
    assert rates("ring8.yml") == {
        frozenset((f"npu{i}", f"npu{(i + 1) % 8}")): 400 for i in range(8)
    }
    assert link(build(str(FILES / "ring8.yml")), "s0", "s1").delay_ps == 500_000


@pytest.mark.usefixtures("undrawn")
def test_a_topology_of_simai_in_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six rounds of 256 KiB at 2.4 Tbit/s are 5.24 us; the same as an edge list takes 5.92."""
    monkeypatch.chdir(FILES)
    assert len(hosts(build("hpn.topo"))) == 4
    assert ring_us("hpn.topo", "1M", tmp_path) == pytest.approx(5.92, abs=0.005)


def test_a_file_without_an_ending_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures need the run directory alone, also if the name says nothing any more."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "map").write_bytes((FILES / "routers.graphml").read_bytes())
    package.run(topo="map,hosts=each", algo="ring", size="16K", out=tmp_path / "run")
    assert (tmp_path / "run" / "topology").read_bytes() == (tmp_path / "map").read_bytes()
    (tmp_path / "map").unlink()
    assert (tmp_path / "run" / "report.html") in drawing.redraw(tmp_path / "run")
