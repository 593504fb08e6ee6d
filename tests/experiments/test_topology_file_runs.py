"""Topology files through the commands, as people type them."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cli import call, ringleaf
from typed import ROOT

import ringleaf as package
from ringleaf.experiments.runs import drawing, perform
from ringleaf.experiments.runs.sweep import _finished
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.topologies.files.format import FORMATS, written

FOLDER = ROOT / "examples" / "topologies"
EXAMPLES = sorted(FOLDER.iterdir())


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "redraw", lambda *_, **__: [])
    monkeypatch.setattr(perform, "drawer", lambda _: None)


def measured(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("topo", "name"),
    [
        *(("fattree,k=4", name) for name in written()),
        ("torus2d,x=3,y=2,rate=50G", "graphml"),
        ("bcube,n=2,k=1", "nodelink"),
        ("dragonfly,a=2,p=1,h=1", "graphml"),
        ("dcell,n=2,k=1", "graphml"),
        ("jellyfish,switches=6,degree=3,hosts=1", "edgelist"),
        ("hammingmesh,a=2,b=2,x=2,y=1", "infragraph"),
        ("leafspine,leaves=2,spines=2,hosts=3,host_rate=25G", "nccl"),
    ],
)
def test_a_family_runs_the_same_from_its_file(tmp_path: Path, topo: str, name: str) -> None:
    file = tmp_path / f"net{FORMATS[name].endings[0]}"
    assert call("topo", "export", "--topo", topo, "--format", name, "-o", file) == 0
    what = ("--algo", "ring,blueconnect,switchml", "--size", "20000")
    assert call("run", "--topo", topo, *what, "-o", tmp_path / "family") == 0
    assert call("run", "--topo", file, *what, "-o", tmp_path / "file") == 0
    for kept in ("results.csv", "links.npz"):
        mine, theirs = (tmp_path / side / kept for side in ("family", "file"))
        assert mine.read_bytes() == theirs.read_bytes()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(tmp_path: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    what = ("--algo", "ring,switchml", "--size", "64K", "-o", tmp_path / "run")
    assert call("run", "--topo", path, *what) == 0
    for row in measured(tmp_path / "run"):
        assert row["wrong"] == "0"
        assert float(row["bound_ps"]) <= float(row["time_ps"])
    assert call("topo", "show", path) == 0
    named_as_ours = " h0 " in f" {' '.join(path.read_text().split())} "
    assert ("names in the file: h0 " in capsys.readouterr().out) is not named_as_ours


@pytest.mark.usefixtures("undrawn")
def test_each_direction_has_its_own_rate(tmp_path: Path) -> None:
    """A broadcast leaves rank 0 at 10 Gbit/s, and a reduction comes there at 100."""
    (tmp_path / "net.edges").write_text("a s rate=10G rate_back=100G\nb s rate=100G\n")
    took = {}
    for algo in ("broadcast", "reduce"):
        what = ("--algo", algo, "--size", "4M", "-o", tmp_path / algo)
        assert call("run", "--topo", tmp_path / "net.edges", *what) == 0
        took[algo] = int(measured(tmp_path / algo)[0]["time_ps"])
    line_ps = (4 << 20) * 8 * 1000  # at 1 Gbit/s
    assert line_ps / 10 < took["broadcast"] < 1.1 * line_ps / 10
    assert line_ps / 100 < took["reduce"] < 1.1 * line_ps / 100


@pytest.mark.usefixtures("undrawn")
def test_a_small_buffer_drops_in_its_direction_only(tmp_path: Path) -> None:
    slow = "h0 s rate=100G rate_back=20G buffer_back=16KiB\n"
    (tmp_path / "net.edges").write_text(f"{slow}h1 s\nh2 s\nh3 s\n")
    what = ("--algo", "alltoall", "--size", "1M", "--window", "64", "-o", tmp_path / "run")
    assert call("run", "--topo", tmp_path / "net.edges", *what) == 0
    with (tmp_path / "run" / "drops.csv").open() as file:
        dropped = list(csv.DictReader(file))
    assert {(row["switch"], row["peer"]) for row in dropped} == {("s0", "h0")}


@pytest.mark.usefixtures("undrawn")
def test_a_lossy_link_loses_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.edges").write_text("a s loss_back=5%\nb s\n")
    what = ("--size", "1M", "-o", tmp_path / "run")
    assert call("run", "--topo", tmp_path / "net.edges", "--algo", "ring", *what) == 0
    [row] = measured(tmp_path / "run")
    assert int(row["lost"]) > 0
    assert row["wrong"] == "0"
    assert "losses of links' own" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["run", "net.graphml-algo=ring,ps-size=16K,32K"])
def test_figures_are_drawn_from_the_copy(tmp_path: Path, name: str) -> None:
    """A run directory has all that figures need, though the file is gone.

    Folders that no option names are called by the run's options, commas included.
    """
    file = tmp_path / "net.graphml"
    shutil.copy(FOLDER / "degraded.graphml", file)
    folder = tmp_path / name
    package.run(topo=str(file), algo="ring", size="16K", out=folder)
    assert (folder / "topology.graphml").read_bytes() == file.read_bytes()
    file.unlink()
    assert (folder / "report.html") in drawing.redraw(folder)


@pytest.mark.usefixtures("undrawn")
def test_a_sweep_repeats_runs_of_a_file_that_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "net.edges"
    file.write_text("a s\nb s\n")
    cases = {
        size: {"topo": str(file), "algo": "ring", "size": size, "out": str(tmp_path / size)}
        for size in ("1K", "2K")
    }
    for case in cases.values():
        call("run", *(word for name, value in case.items() for word in (f"--{name}", value)))
    both = cases | {"4K": {**cases["2K"], "size": "4K", "out": str(tmp_path / "4K")}}
    assert _finished(both) == ["1K", "2K"]
    file.write_text("a s\nb s rate=1G\n")
    assert _finished(both) == []


@pytest.mark.usefixtures("undrawn")
def test_jobs_run_on_a_file(tmp_path: Path) -> None:
    spec = tmp_path / "jobs.yaml"
    given = {
        "topo": str(FOLDER / "two_racks.edges"),
        "algo": "ring",
        "size": 0.001,
        "jobs": [{"model": "resnet50", "ranks": 2, "iterations": 1}] * 2,
    }
    spec.write_text(json.dumps(given))
    assert call("run", "--spec", spec, "-o", tmp_path / "run") == 0
    assert (tmp_path / "run" / "topology.edges").exists()


def test_a_file_can_be_stepped_through(capsys: pytest.CaptureFixture[str]) -> None:
    path = FOLDER / "two_racks.edges"
    assert call("step", "ring", "--topo", path, "--plain", "--elements", "12") == 0
    assert "two_racks.edges" in capsys.readouterr().out


@pytest.mark.usefixtures("undrawn")
def test_k_shortest_paths_carry_a_collective(tmp_path: Path) -> None:
    what = ("--algo", "alltoall", "--size", "64K", "-o", tmp_path / "run")
    assert call("run", "--topo", "torus2d,x=3,y=3", "--routes", "ksp:4", *what) == 0
    assert measured(tmp_path / "run")[0]["wrong"] == "0"
    with np.load(tmp_path / "run" / "links.npz") as arrays:
        carried = arrays["alltoall.65536.bytes"].sum(axis=1)
    assert (carried > 0).all()


@pytest.mark.parametrize("command", [("run",), ("step", "ring"), ("topo", "export")])
def test_a_broken_file_ends_a_command_at_once(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "net.edges").write_text("a s\nb t\n")
    done = ringleaf(*command, "--topo", tmp_path / "net.edges")
    assert done.returncode == 2
    assert "net.edges line 2: node 'b': must be connected with 'a'" in done.stderr


def test_a_format_that_can_not_be_read_back_is_refused(tmp_path: Path) -> None:
    done = ringleaf("topo", "export", "--format", "edgelist", "-o", tmp_path / "net.json")
    assert done.returncode == 2
    assert "format" in done.stderr


@st.composite
def networks(draw: st.DrawFn) -> str:
    """Return an edge list: a tree of switches with some links more, and hosts anywhere."""
    switches, hosts = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    pairs = {(draw(st.integers(0, number - 1)), number) for number in range(1, switches)}
    more = st.tuples(st.integers(0, switches - 1), st.integers(0, switches - 1))
    pairs |= {(a, b) for a, b in draw(st.lists(more, max_size=4)) if a < b}
    ends = [(f"s{a}", f"s{b}") for a, b in sorted(pairs)]
    ends += [(f"h{rank}", f"s{draw(st.integers(0, switches - 1))}") for rank in range(hosts)]
    rate, delay = st.integers(1, 100), st.integers(0, 5000)
    links = [
        f"{a} {b} rate={draw(rate)}G rate_back={draw(rate)}G "
        f"delay={draw(delay)}ns delay_back={draw(delay)}ns\n"
        for a, b in ends
    ]
    roles = [f"h{rank} role=host\n" for rank in range(hosts)]
    used = {end for pair in ends for end in pair}
    return "".join(
        [*roles, *(f"s{n} role=switch\n" for n in range(switches) if f"s{n}" in used), *links]
    )


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(networks(), st.sampled_from(["dealt", "ecmp", "ksp:3"]))
def test_nothing_is_faster_than_its_bounds_on_any_network(
    tmp_path: Path, text: str, ways: str
) -> None:
    (tmp_path / "net.edges").write_text(text)
    algos = "ring,tree,halvingdoubling,switchml,atp"
    options = {"topo": str(tmp_path / "net.edges"), "algo": algos, "size": "20000", "routes": ways}
    for measured in CollectiveExperiment(resolve(options)).run():
        assert measured.row.wrong == 0
        assert measured.row.time_ps >= measured.row.bound_ps > 0
        assert measured.row.time_ps >= measured.row.floor_ps
