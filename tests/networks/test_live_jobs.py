"""Training jobs on live networks, through the command line, as root."""

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
from live_commands import BOTH, PATIENCE_S, Leavings, end, start, strangers, wait_for

from ringleaf.networks.mininet.state import clean_stale

pytestmark = pytest.mark.live
MODEL = """\
name: small
layers:
  - {name: a, elements: 500, forward: 5ms, backward: 10ms}
  - {name: b, elements: 3000, forward: 5ms, backward: 10ms}
  - {name: c, elements: 0, forward: 5ms, backward: 10ms}
  - {name: d, elements: 1500, forward: 5ms, backward: 10ms}
"""
COMPUTE_PS = 60 * 10**9
SPEC = """\
rate: 4M
delay: 10us
net: mininet
scale: 1
mtu: 1024
lanes: 64
jobs:
  - {{model: {model}, ranks: 2, iterations: {first}}}
  - {{model: {model}, ranks: 2, iterations: {second}, compute: {compute}, start: 10ms}}
"""
WORKLOAD = """\
workload: llm
layers: 2
hidden: 64
heads: 4
sequence: 64
tp: 2
pp: 2
dp: 1
micro_batches: 2
topo: leafspine,leaves=2,spines=1,hosts=2
rate: 10M
delay: 10us
net: mininet
scale: 1
flops: 50M
mtu: 1024
"""


def write_spec(folder: Path, *, first: int, second: int, compute: int, **more: str) -> Path:
    model, spec = folder / "small.yaml", folder / "spec.yaml"
    model.write_text(MODEL)
    more = {"topo": "leafspine,leaves=2,spines=1,hosts=3", "stall": "2s"} | more
    lines = [f"{name}: {value}" for name, value in more.items()]
    text = SPEC.format(model=model, first=first, second=second, compute=compute)
    spec.write_text("\n".join([text, *lines, ""]))
    return spec


def read_rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open() as file:
        return list(csv.DictReader(file))


CASES = {
    "embedded": {"algo": "[ring, atp]", "scheduler": "[p3, geryon]", "memory": "inalloc"},
    "bmv2": {"algo": "switchml", "scheduler": "[fifo, tensorexpress]", "memory": "equal"},
}


@pytest.mark.parametrize("switch", BOTH)
def test_jobs_share_a_live_network_and_all_sums_are_right(switch: str, tmp_path: Path) -> None:
    """Under several schedulers, with servers and switches that add up, beside virtual time.

    Switches' memory moves between jobs over P4Runtime, as the second one comes later.
    """
    options = {**CASES[switch], "entries": "32", "servers": "1"}
    spec = write_spec(tmp_path, first=2, second=2, compute=1, **options)
    process = start("run", "--spec", str(spec), "--switch", switch, "--out", str(tmp_path / "out"))
    output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, output
    assert "# wrong values: 0 OK" in output
    assert "changes of jobs' parts of switches' memory" in output
    rows = read_rows(tmp_path / "out")
    assert len(rows) == (8 if switch == "embedded" else 4)
    for row in rows:
        least_ps = 2 * COMPUTE_PS  # two iterations, whatever the network takes
        assert int(row["virtual_jct_ps"]) >= least_ps
        assert int(row["jct_ps"]) >= least_ps
        assert int(row["iterations"]) == 2
        assert int(row["compute_ps"]) == COMPUTE_PS
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["time"], summary["complete"]) == ("wall clock", True)


def test_jobs_in_switches_go_on_when_their_root_has_failed(tmp_path: Path) -> None:
    """The first job's tree has the spine that fails for good; the second one's has the other."""
    options = {"algo": "switchml", "servers": "0", "scheduler": "fifo", "placement": "spread"}
    options |= {"topo": "leafspine,leaves=2,spines=2,hosts=2", "stall": "8s"}
    options |= {"faults": "[s2 down at 60ms]", "reroute": "20ms"}
    spec = write_spec(tmp_path, first=2, second=2, compute=1, **options)
    process = start("run", "--spec", str(spec), "--out", str(tmp_path / "out"))
    output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, output
    assert "# wrong values: 0 OK" in output
    assert {(row["wrong"], row["rebuilt"]) for row in read_rows(tmp_path / "out")} == {("0", "1")}


def test_a_workload_runs_live_with_its_time_in_virtual_time(tmp_path: Path) -> None:
    spec = tmp_path / "work.yaml"
    spec.write_text(WORKLOAD)
    process = start("run", "--spec", str(spec), "--out", str(tmp_path / "out"))
    output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, output
    assert "# wrong values: 0 OK" in output
    assert "# in virtual time the iteration takes " in output
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["time"] == "wall clock"
    busiest = max(sum_of_computing(tmp_path / "out"))
    assert summary["iteration_ps"] >= busiest
    assert summary["virtual_ps"] >= busiest


def sum_of_computing(folder: Path) -> list[int]:
    """The time that each rank computes."""
    with (folder / "ranks.csv").open() as file:
        return [int(row["compute_ps"]) for row in csv.DictReader(file)]


class Training(Leavings):
    """A command that has measured the first case, and would need half a minute for the second."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self._folder = folder
        assert process.stdout
        while (line := process.stdout.readline()).split()[:2] != ["1", "ring"]:
            assert line, "it has ended too early"
        super().__init__(process.pid)

    def child(self, name: str) -> int:
        """A process that was forked, by its name, once it plays the second case."""

        def look() -> int | None:
            found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            for pid in map(int, found.read_text().split()):
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{pid}/comm").read_text() == f"{name}\n":
                        return pid
            return None

        return wait_for(look)

    def wait(self) -> tuple[int, str]:
        """Its exit code, and what it has printed."""
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, output

    def measured(self) -> list[tuple[str, str]]:
        """The jobs in the results that it has left: how many there were, and which."""
        assert not json.loads((self._folder / "summary.json").read_text())["complete"]
        return [(row["jobs"], row["job"]) for row in read_rows(self._folder)]


@contextlib.contextmanager
def training(folder: Path, switch: str = "embedded") -> Iterator[Training]:
    spec = write_spec(folder, first=1, second=60, compute=10, counts="[1, 2]", servers="0")
    out = folder / "out"
    process = start("run", "--spec", str(spec), "--switch", switch, "--out", str(out))
    try:
        yield Training(process, out)
    finally:
        end(process)
        clean_stale()


@pytest.mark.parametrize(
    ("switch", "victim", "message"),
    [
        (
            "embedded",
            "coordinator",
            "coordinator: its process has ended in the middle of a run, got signal SIGKILL",
        ),
        ("embedded", "h1", "h1: its agent has ended in the middle of a run, got signal SIGKILL"),
        pytest.param("bmv2", "s1", "s1: has ended, got signal 9; see ", marks=pytest.mark.bmv2),
    ],
)
def test_who_dies_is_named_and_measured_rows_are_kept(
    switch: str, victim: str, message: str, tmp_path: Path
) -> None:
    with strangers() as foreign, training(tmp_path, switch) as running:
        coordinator = running.child("coordinator")
        forked = {"coordinator": coordinator, "h1": running.child("h1")}
        os.kill(forked.get(victim) or running.processes[victim][0], signal.SIGKILL)
        code, output = running.wait()

        assert f"ringleaf: {message}" in output
        assert code == 1
        assert running.measured() == [("1", "1")]
        assert running.left() == []
        assert not Path(f"/proc/{coordinator}").exists()
        assert foreign.untouched()


def test_a_cut_link_is_named_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    with training(tmp_path) as running:
        running.child("coordinator")
        cut = f"{running.name}-s0-1"
        subprocess.run(["ip", "link", "set", "dev", cut, "down"], check=True)
        code, output = running.wait()

        assert "run: nothing has got through for 2 s, got hosts that are not finished: " in output
        assert f"\n  link s0 to h0: {cut} is down" in output
        assert (code, running.left(), running.measured()) == (1, [], [("1", "1")])

    with training(tmp_path) as running:
        running.child("coordinator")
        os.killpg(running.process.pid, signal.SIGINT)
        code, output = running.wait()

        assert output.splitlines()[-1].startswith("ringleaf: interrupted; ")
        assert (code, running.left(), running.measured()) == (130, [], [("1", "1")])
