"""Live experiments that something ends: it is named, and what was measured is kept."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_commands import PATIENCE_S, Leavings, end, start, strangers

from ringleaf.networks.mininet.state import clean_stale

pytestmark = pytest.mark.live
OPTIONS = {
    "topo": "leafspine,leaves=1,spines=1,hosts=2",
    "net": "mininet",
    "algo": "ring",
    "size": "1K,4M",  # the second takes half a minute, and next to nothing of the processor
    "rate": "1M",
    "scale": "1",
    "stall": "2s",
}


class Experiment(Leavings):
    """An experiment that has measured one row of two."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self._folder = folder
        assert process.stdout
        while (line := process.stdout.readline()).split()[:2] != ["ring", "1024"]:
            assert line, "it has ended too early"
        super().__init__(process.pid)

    def wait(self) -> tuple[int, str]:
        """Its exit code, and what it has printed."""
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, output

    def measured(self) -> list[str]:
        """The sizes in the results that it has left."""
        with (self._folder / "results.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert not json.loads((self._folder / "summary.json").read_text())["complete"]
        return [row["size_bytes"] for row in rows]


@contextlib.contextmanager
def experiment(folder: Path, switch: str = "embedded") -> Iterator[Experiment]:
    options = [f"--{name}={value}" for name, value in OPTIONS.items()]
    process = start("run", *options, "--switch", switch, "--out", str(folder))
    try:
        yield Experiment(process, folder)
    finally:
        end(process)
        clean_stale()


@pytest.mark.parametrize(
    ("switch", "victim", "message"),
    [
        ("embedded", "h1", "h1: its agent has ended in the middle of a run, got signal SIGKILL"),
        ("embedded", "switch daemon", "switch daemon: has ended, got signal 9; see "),
        pytest.param("bmv2", "s1", "s1: has ended, got signal 9; see ", marks=pytest.mark.bmv2),
    ],
)
def test_who_dies_is_named(switch: str, victim: str, message: str, tmp_path: Path) -> None:
    with strangers() as foreign, experiment(tmp_path, switch) as running:
        agent = running.agent("h1")
        os.kill(agent if victim == "h1" else running.processes[victim][0], signal.SIGKILL)
        code, output = running.wait()

        assert f"ringleaf: {message}" in output
        assert code == 1
        assert running.measured() == ["1024"]
        assert running.left() == []
        assert foreign.untouched()


def test_a_cut_link_is_named_with_who_waits_for_whom(tmp_path: Path) -> None:
    with experiment(tmp_path) as running:
        running.agent("h1")
        cut = f"{running.name}-s0-1"
        subprocess.run(["ip", "link", "set", "dev", cut, "down"], check=True)
        code, output = running.wait()

        assert "run: nothing has got through for 2 s, got hosts that are not finished" in output
        assert "\n  h0: waits for h1 to take " in output
        assert f"\n  link s0 to h0: {cut} is down" in output
        assert code == 1
        assert running.measured() == ["1024"]
        assert running.left() == []


def test_the_next_start_removes_what_a_kill_has_left_and_ctrl_c_leaves_nothing(
    tmp_path: Path,
) -> None:
    with strangers() as foreign, experiment(tmp_path / "first") as killed:
        killed.agent("h0")
        killed.process.kill()
        killed.wait()
        assert killed.measured() == ["1024"]
        assert killed.left()
        with experiment(tmp_path / "second") as running:
            assert killed.left() == []
            running.agent("h1")
            os.killpg(running.process.pid, signal.SIGINT)
            code, output = running.wait()

            assert output.splitlines()[-1].startswith("ringleaf: interrupted; ")
            assert code == 130
            assert running.measured() == ["1024"]
            assert running.left() == []
            assert foreign.untouched()
