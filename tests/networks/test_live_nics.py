"""Workloads on NICs, live: the same bytes as in virtual time, and exact results."""

import csv
from pathlib import Path

import pytest
from live_commands import COMMAND, run

pytestmark = pytest.mark.live

TOPO = ("--topo", "leafspine,leaves=1,spines=1,hosts=3")
LIVE = ("--net", "mininet")


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_an_exchange_live_sends_the_bytes_of_virtual_time(tmp_path: Path) -> None:
    """Caches outlast the hosts' processes, which end with each pass."""
    words = ("nic", "guo", *TOPO, "--rows", "64", "--dim", "4", "--bags", "3", "--per-bag", "4",
             "--cache", "8", "--policy", "lfu", "--pool", "yes", "--iterations", "2")  # fmt: skip
    found = []
    for name, more in (("virtual", ()), ("live", (*LIVE, "--loss", "1%"))):
        done = run(*COMMAND, *words, *more, "--out", str(tmp_path / name))
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(rows(tmp_path / name))
    for virtual, live in zip(*found, strict=True):
        assert live["wrong"] == "0"
        for name in ("hit_percent", "index_bytes", "vector_bytes", "coherence_bytes"):
            assert live[name] == virtual[name]


def test_a_pipeline_live(tmp_path: Path) -> None:
    """A latency of 20 ms delays two of the three hosts, however busy the machine is."""
    done = run(
        *(*COMMAND, "nic", "fcsn", *TOPO, *LIVE, "--widths", "64,64,64,64", "--samples", "8"),
        *("--tile", "4", "--host-latency", "20ms", "--out", str(tmp_path)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    nic, host = rows(tmp_path)
    assert (nic["wrong"], host["wrong"]) == ("0", "0")
    assert float(host["time_ps"]) >= 2 * 20e9
    assert float(host["formula_ps"]) - float(nic["formula_ps"]) == 2 * 20e9
