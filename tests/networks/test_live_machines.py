"""Machines with several GPUs on Mininet: each inner link is a link, each part a switch."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_commands import COMMAND, run

pytestmark = pytest.mark.live


@pytest.mark.parametrize("machine", ["2xh100", "2xpcie,gpudirect=no"])
def test_collectives_run_on_machines(tmp_path: Path, machine: str) -> None:
    topo = f"leafspine,leaves=1,spines=0,hosts=2,node={machine}"
    what = ("--algo", "hierring,switchml", "--size", "64K", "--net", "mininet", "--loss", "0.5%")
    done = run(*COMMAND, "run", "--topo", topo, *what, "--scale", "2000", "-o", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "# wrong values: 0 OK" in done.stdout
