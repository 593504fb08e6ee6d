"""Systems that add up in switches on live networks, through the command line, as root."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from live_commands import BOTH, PATIENCE_S, start

pytestmark = pytest.mark.live

TOPOLOGY = "leafspine,leaves=2,spines=1,hosts=2"
OPTIONS = ("--net", "mininet", "--scale", "1", "--lanes", "64", "--mtu", "1024", "--size", "4K")
SPARSE = ("--density", "30%", "--cluster", "64")
SIGNS = ("--compress", "signsgd")
TERNARY = ("--compress", "terngrad")
LOSSES = {"embedded": ("--rate", "10M", "--loss", "1%"), "bmv2": ("--rate", "2M")}
SYSTEMS = ["panama", "netreduce", "omnireduce-switch", "sharp"]


@pytest.mark.parametrize(
    ("algos", "data"), [(SYSTEMS, SPARSE), (["vote"], SIGNS), (["tern"], TERNARY)]
)
@pytest.mark.parametrize("switch", BOTH)
def test_sums_of_switches_are_right(
    switch: str, algos: list[str], data: Sequence[str], tmp_path: Path
) -> None:
    """One run, so one network per program; with BMv2, losses would need a kernel's netem."""
    out = tmp_path / "out"
    algo = ",".join(algos)
    process = start(
        *("run", "--topo", TOPOLOGY, "--algo", algo, "--switch", switch, "--out", str(out)),
        *(*OPTIONS, *data, *LOSSES[switch]),
    )
    output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, output
    assert "# wrong values: 0 OK" in output
    with (out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["algo"] for row in rows] == algos
    assert all(int(row["wire_bytes"]) > 0 for row in rows)
