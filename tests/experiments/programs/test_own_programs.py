"""P4 programs of the user's, in virtual time and live."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typed import ROOT, typed

from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.assign import assign
from ringleaf.experiments.programs.names import of_switches, read_paths
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.topologies.registry import build

EXAMPLES = ROOT / "examples" / "p4"
BASIC = EXAMPLES / "build" / "basic.json"
CONTROL = EXAMPLES / "basic_control.py"
PSA_ROUTER = ROOT / "tests" / "switches" / "psa" / "router.json"
SUM = EXAMPLES / "build" / "sum.json"
TOPO = "leafspine,leaves=2,spines=1,hosts=2"


def run(folder: Path, *arguments: str) -> str:
    common = ("run", "--topo", TOPO, "--size", "64K", "--out", str(folder), "--figures", "no")
    algo = () if "--algo" in arguments else ("--algo", "ring")
    done = typed(*common, *algo, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(tmp_path_factory.mktemp("ours"))


@pytest.mark.parametrize("router", [BASIC, PSA_ROUTER], ids=["v1model", "psa"])
def test_a_router_of_ones_own_carries_a_ring(router: Path, ours: str, tmp_path: Path) -> None:
    """It routes as ours does, so packets take the same times."""
    own = run(tmp_path / "own", "--program", str(router), "--control", str(CONTROL))
    assert f"# switches run {router}" in own
    assert "# wrong values: 0 OK" in own
    assert rows(own) == rows(ours)


def test_some_switches_run_ones_own_program(tmp_path: Path) -> None:
    own = run(tmp_path, "--program", f"s1={BASIC}", "--control", str(CONTROL))
    assert "# wrong values: 0 OK" in own


def test_a_variant_of_an_aggregating_program(tmp_path: Path) -> None:
    """The user's program has the tables that SwitchML's control writes."""
    build_folder = ROOT / "p4" / "build"
    for suffix in (".json", ".p4info.txtpb"):
        text = (build_folder / f"switchml-64{suffix}").read_text()
        (tmp_path / f"mine{suffix}").write_text(text)
    own = run(
        tmp_path / "out",
        *("--algo", "switchml", "--lanes", "64", "--program", str(tmp_path / "mine.json")),
    )
    assert "# wrong values: 0 OK" in own


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"program": "none.p4"}, "program: no such file, got 'none.p4'"),
        ({"program": str(CONTROL)}, r"program: must be P4 .* or BMv2 JSON .*, got"),
        ({"program": f"h0={BASIC}"}, "program: must be a file, or files of switches .*, got 'h0="),
        ({"program": f"s0={BASIC},s0={BASIC}"}, "program: .* named once, got 's0="),
        ({"program": "forwrd"}, "program: .*'forwrd'"),
        ({"control": str(CONTROL)}, "control: is for a program of yours, got"),
        ({"program": str(BASIC), "control": "none.txt"}, "control: no such file, got 'none.txt'"),
    ],
)
def test_wrong_files_are_refused_at_once(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve(options)


def test_a_switch_that_there_is_not() -> None:
    done = typed("run", "--topo", TOPO, "--program", f"s7={BASIC}", "--dry-run")
    assert done.returncode == 2
    assert f"program: no such switch, got 's7' in {TOPO}" in done.stderr


def test_entries_must_be_of_a_switch_with_a_program() -> None:
    graph = build(TOPO)
    with pytest.raises(ConfigError, match=r"control: only switches that have a program .* 's1'"):
        assign(graph, f"s0={BASIC}", f"s1={CONTROL}", lanes=64)


def test_a_program_without_our_tables_needs_entries() -> None:
    with pytest.raises(ConfigError, match=r"has no table 'detours' .* by CONTROL=FILE"):
        assign(build(TOPO), str(BASIC), "", lanes=64)


def test_files_of_all_switches_and_of_some() -> None:
    assert of_switches(read_paths(str(BASIC), ""), ["s0", "s1"]) == {"s0": BASIC, "s1": BASIC}
    some = read_paths(f"s1={BASIC},s0={SUM}", "")
    assert of_switches(some, ["s0", "s1", "s2"]) == {"s1": BASIC, "s0": SUM}


@pytest.mark.p4c
@pytest.mark.parametrize("name", ["basic", "sum"])
def test_the_examples_are_built(name: str, tmp_path: Path) -> None:
    from ringleaf.switches.stf.compiling import compile_program

    built = compile_program(EXAMPLES / f"{name}.p4")
    for suffix in (".json", ".p4info.txtpb"):
        now = built.with_name(name + suffix).read_text()
        kept = (EXAMPLES / "build" / (name + suffix)).read_text()
        assert _without_paths(now) == _without_paths(kept)


def _without_paths(text: str) -> str:
    return re.sub(r'"(program|filename)" : "[^"]*"', "", text)


@pytest.mark.live
@pytest.mark.parametrize("switch", ["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def test_a_students_sum_on_a_live_network(switch: str, tmp_path: Path) -> None:
    """Host scripts of a student's, with frames of their own type, and entries as commands."""
    worker = EXAMPLES / "sum_worker.py"
    values = ["1 2 3 4", "10 20 30 -40", "100 200 300 400"]
    lines = [
        f"h{i} python3 {worker} {i} 3 {values[i]} > {tmp_path / str(i)} {'&' * (i < 2)}"
        for i in range(3)
    ]
    lines += [f"h{i} wait" for i in range(2)]
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("ringleaf")), "net"),
            *("leafspine,leaves=1,spines=1,hosts=3", "--switch", switch),
            *("--program", f"s0={SUM}", "--control", f"s0={EXAMPLES / 'sum_commands.txt'}"),
        ],
        input="\n".join([*lines, "exit", ""]),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / str(i)).read_text() for i in range(3)] == ["111 222 333 364\n"] * 3


@pytest.mark.live
@pytest.mark.parametrize("switch", ["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def test_a_router_of_ones_own_carries_a_ring_live(switch: str, tmp_path: Path) -> None:
    own = run(
        tmp_path,
        *("--net", "mininet", "--switch", switch),
        *("--program", str(BASIC), "--control", str(CONTROL)),
    )
    assert "# wrong values: 0 OK" in own
