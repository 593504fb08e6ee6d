"""Machines with several GPUs through the command: collectives, losses, workloads, the study."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest
import yaml
from test_cli import call
from typed import ROOT

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import perform_alone
from ringleaf.experiments.runs import drawing, perform
from ringleaf.experiments.workloads.collective.kind import OPTIONS
from ringleaf.experiments.workloads.graph.placement import place_ranks
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build, parse
from studies import nodes

PAGE = (ROOT / "docs" / "how-to" / "nodes.md").read_text()
SPEC = ROOT / "experiments" / "specs" / "nodes.yaml"


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "redraw", lambda *_, **__: [])
    monkeypatch.setattr(perform, "drawer", lambda _: None)


def measured(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "results.csv").open() as file:
        return {row["algo"]: row for row in csv.DictReader(file)}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("loss", ["0", "0.5%"])
@pytest.mark.parametrize(
    "topo",
    [
        "leafspine,leaves=2,spines=1,hosts=1,node=4xh100",
        "leafspine,leaves=1,spines=0,hosts=2,node=dgx1,gpudirect=no",
        "leafspine,leaves=2,spines=1,hosts=1,node=4xpcie,nics=1",
        "torus2d,x=2,y=2,node=2xh100,gpudirect=no",
    ],
)
def test_collectives_are_right_on_machines(tmp_path: Path, topo: str, loss: str) -> None:
    what = ("--algo", "ring,blueconnect,hierring,switchml,atp", "--size", "64K", "--loss", loss)
    assert call("run", "--topo", topo, *what, "-o", tmp_path / "run") == 0
    for row in measured(tmp_path / "run").values():
        assert row["wrong"] == "0"
        assert int(row["bound_ps"]) <= int(row["time_ps"])
        if loss == "0":
            assert row["retransmissions"] == "0"


@pytest.mark.usefixtures("undrawn")
def test_a_machine_of_its_own_is_summed_by_its_nvswitch(tmp_path: Path) -> None:
    """Each GPU sends its tensor once, and gets the sum once; a ring sends it 1.75 times."""
    topo = "leafspine,leaves=1,spines=0,hosts=1,node=8xh100"
    what = ("--algo", "ring,switchml", "--size", "1M")
    assert call("run", "--topo", topo, *what, "-o", tmp_path / "run") == 0
    rows = measured(tmp_path / "run")

    assert int(rows["switchml"]["wire_bytes"]) < 1.25 * 2**20
    assert int(rows["ring"]["wire_bytes"]) > 1.75 * 2**20
    assert int(rows["switchml"]["time_ps"]) < 0.7 * int(rows["ring"]["time_ps"])


@pytest.mark.usefixtures("undrawn")
def test_gpudirect_spares_a_hop_on_each_side(tmp_path: Path) -> None:
    """A message and its acknowledgement pass a link more on each side: 200 ns, at 384 Gbit/s."""
    taken = []
    for number, option in enumerate(("", ",gpudirect=no")):
        topo = f"leafspine,leaves=1,spines=0,hosts=2,node=1xh100{option}"
        out = tmp_path / str(number)
        assert call("run", "--topo", topo, "--algo", "broadcast", "--size", "4", "-o", out) == 0
        taken.append(int(measured(out)["broadcast"]["time_ps"]))

    assert 4 * 200_000 < taken[1] - taken[0] < 4 * 202_000


def test_tensor_parallel_ranks_share_a_machine() -> None:
    graph = build("fattree,k=4,node=8xh100")
    placed = place_ranks(hosts(graph), 64, "packed", 1)

    assert placed == [f"h{rank}" for rank in range(64)]
    assert graph.graph["machine"][0] == 8


@pytest.mark.usefixtures("undrawn")
def test_tensor_parallelism_stays_inside_machines(tmp_path: Path) -> None:
    """Its all-reduces take less than the delay of two links of the network, 1 us each."""
    assert (
        call("run", "--spec", ROOT / "examples/nodes/transformer.yaml", "-o", tmp_path / "w") == 0
    )
    with (tmp_path / "w" / "results.csv").open() as file:
        rows = {row["label"]: row for row in csv.DictReader(file)}

    assert rows["tp"]["ranks"] == "8"
    assert int(rows["tp"]["longest_ps"]) < 2_000_000 < int(rows["dp"]["longest_ps"])


@pytest.mark.usefixtures("undrawn")
def test_the_pages_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0]
    for line in first.splitlines():
        words = shlex.split(line)[1:]
        words = [str(ROOT / word) if word.startswith("examples/") else word for word in words]
        assert call(*words) == 0, line


def test_the_page_has_the_figures_of_the_machines() -> None:
    for name, together in (("h100", "2966.4"), ("dgx1", "960")):
        inside = parse(f"fattree,node={name}").inside
        assert inside is not None
        assert inside.nvlink().rate_bps == float(together) * 1e9
        assert f"{together} Gbit/s" in PAGE


def test_the_committed_sweep_is_of_topologies_that_exist() -> None:
    spec = yaml.safe_load(SPEC.read_text())

    assert set(spec) <= set(OPTIONS)
    assert [parse(topo).inside is not None for topo in spec["topo"]] == [True] * 10


@pytest.mark.parametrize(
    ("machines", "gpus", "ratio", "expected"),
    [(2, 8, 1, 1.0), (2, 8, 4, 10 / 3), (4, 8, 1, 1.0), (2, 1, 7, 1.0), (2, 8, 1e12, 15)],
)
def test_the_expected_gain_by_hand(machines: int, gpus: int, ratio: float, expected: float) -> None:
    assert nodes.expected_gain(machines, gpus, ratio) == pytest.approx(expected)


@pytest.mark.usefixtures("undrawn")
def test_blueconnect_beats_a_ring_by_the_ratio_of_bandwidths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "few.yaml").write_text(
        "algo: [ring, blueconnect]\nsize: 4MiB\ndelay: 100ns\ndata: none\ntopo:\n"
        "  - leafspine,leaves=1,spines=0,hosts=2,node=8xh100,nvlink_rate=200G\n"
        "  - leafspine,leaves=1,spines=0,hosts=2,node=8xh100,nvlink_rate=400G\n"
        "  - leafspine,leaves=1,spines=0,hosts=2,node=8xh100,gpudirect=no\n"
    )
    assert call("run", "--spec", tmp_path / "few.yaml", "-o", tmp_path / "out") == 0
    sweep = tmp_path / "out" / "sweep.csv"
    two, four = nodes.read_points(sweep, 10**11)

    assert (two.ratio, four.ratio) == (2, 4)
    assert 0.9 * two.expected < two.ours <= two.expected
    assert 0.85 * four.expected < four.ours <= four.expected
    capsys.readouterr()
    words = [str(sweep), "--figure", str(tmp_path / "nodes.png")]
    assert perform_alone("nodes", nodes.nodes_command, words) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert (tmp_path / "nodes.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_that_is_no_such_sweep_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sweep.csv").write_text("topo,algo,time_ps,ranks\nfattree,ring,5,16\n")
    with pytest.raises(ConfigError, match="must have ring and blueconnect on machines, got"):
        nodes.read_points(tmp_path / "sweep.csv", 10**11)
    with pytest.raises(ConfigError, match=r"must be a sweep of nodes\.yaml, got"):
        nodes.read_points(tmp_path / "none.csv", 10**11)
    assert perform_alone("nodes", nodes.nodes_command, [str(tmp_path / "none.csv")]) == 2


def test_a_sweep_of_several_sizes_is_refused(tmp_path: Path) -> None:
    rows = "fattree,ring,5,16\nfattree,ring,6,16\n"
    (tmp_path / "sweep.csv").write_text(f"topo,algo,time_ps,ranks\n{rows}")
    with pytest.raises(ConfigError, match="ring has several times; sweep one size and seed"):
        nodes.read_points(tmp_path / "sweep.csv", 10**11)
