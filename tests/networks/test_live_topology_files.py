"""Topology files on Mininet: each direction's rate, delay, loss and queue is that of its sender."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_commands import COMMAND, run

from ringleaf.core.shipped import built_program
from ringleaf.topologies.registry import build

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "topologies"
pytestmark = pytest.mark.live


def test_each_direction_has_its_own_terms(tmp_path: Path) -> None:
    from ringleaf.networks.forwarding import forwarding_entities
    from ringleaf.networks.mininet.fabric import LiveSettings, MininetFabric

    (tmp_path / "net.edges").write_text(
        "a s rate=10G\n"
        "b t rate=10G rate_back=4G loss_back=1% buffer_back=32KiB\n"
        "s t rate=20G delay=2ms delay_back=3ms\n"
    )
    graph = build(str(tmp_path / "net.edges"))
    settings = LiveSettings(scale=1000, loss=0.25, queue_bytes=1 << 20)
    program = built_program("forward")
    with MininetFabric(
        graph, settings, program=program, entities=forwarding_entities(graph)
    ) as fabric:
        lines = {switch.name: switch.lines for switch in fabric.net.switches}
    terms = {
        name: [(line.rate_bps, line.delay_ps, line.loss, line.queue_bytes) for line in own]
        for name, own in lines.items()
    }
    millisecond = 10**9
    assert terms == {
        "s0": [(10**7, 10**6, 0.25, 1 << 20), (2 * 10**7, 2 * millisecond, 0.25, 1 << 20)],
        "s1": [(4 * 10**6, 10**6, 0.01, 32 << 10), (2 * 10**7, 3 * millisecond, 0.25, 1 << 20)],
    }


def test_a_collective_runs_on_a_file(tmp_path: Path) -> None:
    what = ("--algo", "ring,switchml", "--size", "64K", "--net", "mininet", "-o", str(tmp_path))
    done = run(*COMMAND, "run", "--topo", str(EXAMPLES / "two_racks.edges"), *what)
    assert done.returncode == 0, done.stderr
    assert "# wrong values: 0 OK" in done.stdout
