"""No command opens a door by which another user of this machine, or of another one, comes in.

A library that is loaded before all others (`tests/listened.c`) notes each socket at which a command
or one of its processes listens, however short it is. And each command runs in a folder where
somebody has left modules that are called as Python's and others'.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import Forked

from ringleaf.experiments.commands.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
STAR = ("--topo", "leafspine,leaves=1,spines=1,hosts=2")
SMALL = (*STAR, "--size", "1K", "--algo", "ring")

PLANTED = ("json", "multiprocessing", "numpy", "runpy", "selectors", "torch", "typer", "yaml")

SWEEP = "topo: 'leafspine,leaves=1,spines=1,hosts=2'\nalgo: ring\nsize: 1K\nseed: [1, 2, 3]\n"
MODEL = "name: small\nlayers: [{elements: 2000, forward: 2us, backward: 4us}]\n"
JOBS = (
    "topo: 'leafspine,leaves=1,spines=1,hosts=2'\nservers: 0\n"
    "jobs: [{model: small.yaml, ranks: 2, iterations: 1, algo: ring}]\n"
)

LINES: dict[str, list[tuple[str, ...]]] = {
    "run": [
        (*SMALL, "--out", "out"),
        ("--spec", "sweep.yaml", "-j", "2"),
        ("--spec", "jobs.yaml"),
    ],
    "plot": [("out",)],
    "compare": [("out", "out")],
    "train": [(str(TESTS / "experiments/train/scripts/meets.py"), "--ranks", "2")],
    "nic": [("fcsn", *STAR, "--widths", "24,8,4", "--samples", "4", "--tile", "2", "--out", "nic")],
    "step": [("ring", "--ranks", "3", "--html", "step.html")],
    "verify": [("ring", "--ranks", "3", "--export", "ring.csv")],
    "synth": [("tacos", "--topo", "torus2d,x=2,y=2", "--size", "4K")],
    "grade": [("assignment.yaml", str(ROOT / "examples/grade/ring.csv"))],
    "rows": [()],
    "topo": [
        ("list",),
        ("show", "fattree"),
        ("export", "--topo", "fattree,k=4", "--out", "net.graphml"),
    ],
    "workload": [
        ("list",),
        ("run", str(ROOT / "docs/workloads/ping.goal"), *STAR, "--out", "ping"),
    ],
    "replay": [(str(TESTS / "traces/l2l3"),)],
    "trace": [("forward", "--example")],
    "dissector": [()],
    "stf": [
        (str(TESTS / "switches/programs/tables.json"), str(TESTS / "switches/stf/tables.stf")),
        ("--suite", "suite", "--jobs", "2"),
    ],
}
"""Each command's words. Those of `fuzz`, `net` and `switch` are in tests of their own."""

APART = {"fuzz", "net", "switch"}

KNOWN = {f"simple_switch_grpc stream {address}" for address in ("0.0.0.0", "127.0.0.1")}
"""Doors of others that no option closes (docs/security.md): Thrift of a live network's BMv2.

Some builds of BMv2 open it to their own machine only.
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that notes sockets."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    made = tmp_path_factory.mktemp("library") / "listened.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(made), str(TESTS / "listened.c"), "-ldl"]
    subprocess.run(command, check=True)
    return made


@pytest.fixture(scope="module")
def original(library: Path) -> Iterator[Forked]:
    """The process of which each command is a copy."""
    with Forked(LD_PRELOAD=str(library), AROUND=str(os.getpid())) as original:
        yield original


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which somebody else has left modules, which note that they were run."""
    folder = tmp_path_factory.mktemp("folder")
    for name in PLANTED:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'owned')!r}, 'a').write('{name} ')")
    (folder / "sweep.yaml").write_text(SWEEP)
    (folder / "small.yaml").write_text(MODEL)
    (folder / "jobs.yaml").write_text(JOBS)
    text = (ROOT / "examples/grade/allreduce.yaml").read_text()
    (folder / "assignment.yaml").write_text(text.partition("  - name: right when")[0])
    (folder / "suite").mkdir()
    for name in ("programs/tables.json", "stf/tables.stf"):
        ending = Path(name).suffix
        shutil.copy(TESTS / "switches" / name, folder / "suite" / f"tables-bmv2{ending}")
    return folder


def doors(noted: Path) -> list[str]:
    """Return the sockets that others can connect to."""
    lines = noted.read_text().splitlines() if noted.exists() else []
    return [line for line in lines if not line.endswith(" private")]


@pytest.mark.parametrize(
    ("command", "number"),
    [(command, number) for command, lines in LINES.items() for number in range(len(lines))],
)
def test_a_command_opens_no_door(
    command: str, number: int, original: Forked, folder: Path, tmp_path: Path
) -> None:
    noted = tmp_path / "noted"
    words = (command, *LINES[command][number])
    done = original.run(*words, at=folder, drawn=False, variables={"LISTENED": str(noted)})

    assert done.returncode == 0, done.stdout + done.stderr
    assert doors(noted) == []
    assert not (folder / "owned").exists()
    if command == "train":  # its ranks come by a socket of the run
        assert "fabric private" in noted.read_text()


def test_every_command_is_looked_at() -> None:
    assert LINES.keys() | APART == COMMANDS.keys()


@pytest.mark.parametrize(
    ("code", "door"),
    [
        ("socket.create_server(('127.0.0.1', 0))", "stream 127.0.0.1:"),
        ("socket.create_server(('::', 0), family=socket.AF_INET6)", "stream [::]:"),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(('', 0))", "datagram 0.0.0.0:"),
        ("one.bind('\\0name'); one.listen()", "stream @name open"),
        ("os.umask(0); one.bind('open'); one.listen()", "stream open open"),
        ("os.umask(0o77); one.bind('own'); one.listen()", "stream own private"),
        ("os.umask(0); os.mkdir('in', 0o700); one.bind('in/x'); one.listen()", "in/x private"),
    ],
)
def test_doors_are_noticed(code: str, door: str, library: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for above in list(tmp_path.parents)[:3]:  # pytest's own folders are private
        above.chmod(0o755)
    noted = tmp_path / "noted"
    environment = {"LD_PRELOAD": str(library), "LISTENED": str(noted), "AROUND": str(os.getpid())}
    begin = "import os, socket; one = socket.socket(socket.AF_UNIX); "
    subprocess.run(
        [sys.executable, "-c", begin + code], env=os.environ | environment, cwd=tmp_path, check=True
    )
    assert door in noted.read_text()
    assert len(doors(noted)) == (not door.endswith("private"))


def typed(library: Path, noted: Path, *words: str | Path) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    environment = {"LD_PRELOAD": str(library), "LISTENED": str(noted), "AROUND": str(os.getpid())}
    return subprocess.Popen(
        [Path(sys.executable).parent / "ringleaf", *words],
        env=os.environ | environment | {"XDG_RUNTIME_DIR": str(noted.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=noted.parent,
    )


@pytest.mark.parametrize("how", ["default", "token"])
def test_a_switch_opens_no_door(how: str, library: Path, tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    words = {"default": (), "token": ("--grpc", "127.0.0.1:0", "--token", tmp_path / "token")}[how]
    with typed(library, noted, "switch", *words) as running:
        assert running.stdout is not None
        said = running.stdout.readline()
        running.send_signal(signal.SIGTERM)
    assert said.startswith("P4Runtime at " + {"default": "unix:/", "token": "127.0.0.1:"}[how])
    if how == "default":
        assert doors(noted) == []
        assert "switch.sock private" in noted.read_text()
    else:  # a port, whose callers need the token
        (door,) = doors(noted)
        assert "127.0.0.1" in door


@pytest.mark.bmv2
def test_a_comparison_with_bmv2_opens_no_door(library: Path, tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    with typed(library, noted, "fuzz", "forward", "-n", "5", "--rounds", "1") as running:
        said, _ = running.communicate()
    assert running.returncode == 0, said
    assert doors(noted) == []
    assert "simple_switch" in noted.read_text()


@pytest.mark.live
@pytest.mark.parametrize("switch", ["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def test_a_live_network_opens_no_door_but_thrift(
    switch: str, library: Path, tmp_path: Path
) -> None:
    noted = tmp_path / "noted"
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(f"open('{tmp_path / 'owned'}', 'a')")
    topo = "leafspine,leaves=1,spines=1,hosts=2"
    with typed(library, noted, "net", topo, "--switch", switch) as running:
        said, _ = running.communicate("h0 true\nexit\n")
    assert running.returncode == 0, said
    assert {line.partition(":")[0] for line in doors(noted)} <= KNOWN
    assert ".grpc private" in noted.read_text()
    assert not (tmp_path / "owned").exists()
