"""A small network of each family, live, through the command line, as root."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_commands import PATIENCE_S, start

pytestmark = pytest.mark.live

TOPOLOGIES = [
    ("jellyfish,switches=5,degree=2,hosts=1", "ksp:2"),
    ("dragonfly,a=2,p=1,h=1", "valiant"),
    ("dragonfly,a=2,p=1,h=1", "ugal"),
    ("dcell,n=2,k=1", "dcell"),
    ("slimfly,q=3,hosts=1", "ecmp"),
    ("railonly,nodes=2,rails=2", "dealt"),
    ("debruijn,n=2,k=2,hosts=1", "ecmp"),
    ("railoptimised,pods=2,nodes=1,spines=1,node=2xh100", "dealt"),
]


@pytest.mark.parametrize(("topo", "routes"), TOPOLOGIES)
def test_sums_are_right(topo: str, routes: str, tmp_path: Path) -> None:
    algos = "alltoall" if routes == "ugal" else "ring,switchml"  # its switches aggregate nothing
    process = start(
        *("run", "--topo", topo, "--routes", routes, "--hosts", "4", "--algo", algos),
        *("--size", "4K", "--net", "mininet", "--rate", "10M", "--scale", "1"),
        *("--mtu", "1024", "--lanes", "64", "--figures", "no", "--out", str(tmp_path / "out")),
    )
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output
    assert "# wrong values: 0 OK" in output
