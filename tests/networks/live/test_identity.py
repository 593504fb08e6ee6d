"""The same SwitchML job in virtual time and live gives the same bits, and can be replayed."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scapy.utils import PcapNgReader

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.setup.network import build_topology
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.mininet.fabric import LiveSettings
from ringleaf.networks.mininet.network import LiveTestbed, MininetNetwork
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.traces.pcap_read import read_packets
from ringleaf.networks.traces.trace import open_trace
from ringleaf.networks.virtual import VirtualNetwork

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[3]
TOPOLOGY = "leafspine,leaves=2,spines=1,hosts=2"
ELEMENTS = 1500
Tensors = list[torch.Tensor]
GRAPH = build_topology(TOPOLOGY, rate_bps=10**8, delay_ps=10**6, hosts=None)


def run(network: VirtualNetwork | MininetNetwork, algorithm: str) -> tuple[Tensors, int]:
    """Run the job; return the ranks' results, and how many packets were sent again."""
    schedule = ALGORITHMS[algorithm].build(
        4, size_bytes=4 * ELEMENTS, hierarchy=GRAPH.graph["hierarchy"]
    )
    generator = torch.Generator().manual_seed(7)
    tensors = network.tensors(ELEMENTS, torch.float32, schedule)
    for tensor in tensors:
        tensor.copy_(torch.randn(ELEMENTS, generator=generator))
    result = network.run(schedule, tensors)
    network.close()
    return [tensor.clone() for tensor in tensors], result.retransmissions


def replay(folder: Path, *options: str) -> tuple[int, str]:
    """Replay as people do; return the exit status, and what was printed."""
    command = [
        sys.executable,
        "-m",
        "ringleaf.experiments.commands.cli",
        "replay",
        str(folder),
        *options,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def check_captures(traces: Path, captures: Path) -> None:
    """Each switch's port has sent something, and the capture has all of it."""
    counts = Counter(packet.sniffed_on for packet in PcapNgReader(str(captures / "capture.pcapng")))
    assert len(read_packets(captures / "capture.pcapng")) == counts.total()
    for name in ("s0", "s1", "s2"):
        for number, sent in enumerate(open_trace(traces / name).expected, start=1):
            assert sent is not None
            assert counts[f"{name}:p{number}"] == len(sent) > 0
    assert counts["h0"] > 0


def test_what_embedded_switches_do_is_the_same_in_virtual_time_and_again(tmp_path: Path) -> None:
    options = NetworkOptions(
        system=SYSTEMS["switchml"], record=tmp_path / "t", capture=tmp_path / "c"
    )

    with LiveTestbed(GRAPH, LiveSettings(scale=1)) as testbed:
        live, _ = run(MininetNetwork(testbed, options), "switchml")
    virtual, _ = run(VirtualNetwork(GRAPH, NetworkOptions(system=SYSTEMS["switchml"])), "switchml")

    assert all(torch.equal(a, b) for a, b in zip(live, virtual, strict=True))
    assert all(torch.equal(a, live[0]) for a in live)
    status, printed = replay(tmp_path / "t", "--times")
    assert status == 0, printed
    assert "3 traces: 3 equal" in printed
    check_captures(tmp_path / "t", tmp_path / "c")


@pytest.mark.bmv2
def test_what_bmv2_does_is_the_same_in_virtual_time_and_here(tmp_path: Path) -> None:
    """Of what SwitchML's packets do that were sent twice, it matters in which order they came."""
    system = NetworkOptions(system=SYSTEMS["switchml"], slots=2)

    with LiveTestbed(GRAPH, LiveSettings(switch="bmv2", scale=1, captures=True)) as testbed:
        options = replace(system, record=tmp_path / "switchml")
        live, again = run(MininetNetwork(testbed, options), "switchml")
        options = NetworkOptions(record=tmp_path / "ring", capture=tmp_path / "c")
        run(MininetNetwork(testbed, options), "ring")
    virtual, _ = run(VirtualNetwork(GRAPH, system), "switchml")

    assert all(torch.equal(a, b) for a, b in zip(live, virtual, strict=True))
    assert open_trace(tmp_path / "switchml" / "s2").manifest.unknown
    folders = ["ring"] if again else ["ring", "switchml"]
    for folder in folders:
        status, printed = replay(tmp_path / folder)
        assert status == 0, printed
        assert "3 traces: 3 equal" in printed
    check_captures(tmp_path / "ring", tmp_path / "c")
