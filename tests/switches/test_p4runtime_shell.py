"""p4runtime-shell, unchanged and from a virtual environment of its own, on our switches."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from controller_entities import CPU_PORT, P4INFO, PATH, PORTS

from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.server import P4RuntimeServer

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-shell" / "bin" / "python"
PATIENCE_S = 100


@pytest.fixture
def address() -> Iterator[str]:
    with P4RuntimeServer([SharedDevice(1, ports=PORTS, cpu_port=CPU_PORT)]) as server:
        yield server.address


def run(command: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT
    )


@pytest.mark.shell
@pytest.mark.slow
def test_the_shell_writes_and_reads_all_it_knows(address: str) -> None:
    script = Path(__file__).with_name("shell_script.py")
    done = run([str(PYTHON), str(script), address, str(P4INFO), str(PATH)])
    assert done.returncode == 0, done.stderr
    assert re.search(r"again: .*\n.*index 0: ALREADY_EXISTS.*entry exists already", done.stdout)
    for line in [
        'destination param_id: 1\nvalue: "\\003"', "left 0", "guard 5",
        "default I.drop", "members 1", "weights 1", "replicas 2", "length 64",
        "counters [0, 0, 77, 0, 0, 0, 0, 0]",
        "peaks [0, 3, 0, 0, 0, 0, 0, 0]", "packet hello", "digests 1",
    ]:  # fmt: skip
        assert line in done.stdout


@pytest.mark.shell
@pytest.mark.slow
@pytest.mark.parametrize("at", [r"127\.0\.0\.1:\d+", "unix:.*/switch.sock"], ids=["tcp", "unix"])
def test_make_shell_opens_a_prompt(at: str, tmp_path: Path) -> None:
    grpc = ["--grpc", f"unix:{tmp_path / 'switch.sock'}"]
    if not at.startswith("unix"):
        grpc = ["--grpc", "127.0.0.1:0", "--no-token"]
    serve = [
        sys.executable,
        "-m",
        "ringleaf.experiments.commands.cli",
        "switch",
        "p4/build/forward.json",
    ]
    with subprocess.Popen(
        [*serve, *grpc, "--count", "2"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as switch:
        assert switch.stdout is not None
        ready = switch.stdout.readline()
        match = re.fullmatch(rf"P4Runtime at ({at}), devices 1 to 2: forward\n", ready)
        assert match, ready
        opened = ["-m", "ringleaf.experiments.commands.shell", f"{match[1]}/2"]
        done = run([str(PYTHON), *opened], "tables\nAPIVersion()\nexit\n")
        switch.terminate()
    assert switch.returncode == 0
    assert "Forwarding.ipv4_lpm" in done.stdout
    assert "1.5.0" in done.stdout


@pytest.mark.parametrize(
    ("switch", "message"),
    [
        ("nowhere", "SWITCH must name one live switch, got 'nowhere'"),
        ("127.0.0.1:1", "nothing listens, got 127.0.0.1:1; start a switch in another terminal"),
        ("127.0.0.1:99999/3", "nothing listens"),
    ],
)
def test_without_a_switch_there_is_advice(switch: str, message: str) -> None:
    done = run([sys.executable, "-m", "ringleaf.experiments.commands.shell", switch])
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nothing.json"], "switch: no such file, got 'nothing.json'"),
        (["--count", "0"], "count must be at least 1, got 0"),
        (["--device-id", "0"], "device id must be in"),
        (["--cpu-port", "600"], "CPU port must be in [0, 510], got 600"),
        (["--ports", "-1"], "ports must be in [1, 510], got -1"),
        (["--ports", "511"], "ports must be in [1, 510], got 511"),
        (["p4/build/forward.json", "--ports", "0"], "ports must be in [1, 510], got 0"),
    ],
)
def test_wrong_options_of_a_switch_are_refused(options: list[str], message: str) -> None:
    done = run([sys.executable, "-m", "ringleaf.experiments.commands.cli", "switch", *options])
    assert done.returncode == 2
    assert message in done.stderr
