"""Three hosts around one embedded switch, which is a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from namespaces import join_outside, namespaces

from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.shipped import P4_BUILD
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.networks.live.client import Daemon
from ringleaf.networks.live.engine import LinkEnd
from ringleaf.networks.live.host_process import LivePlace
from ringleaf.networks.live.hosts import LiveHosts
from ringleaf.networks.live.surroundings import CrewSurroundings
from ringleaf.networks.mininet.programming import SwitchProgramming, program_switches
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.registry import build

pytestmark = pytest.mark.live
RATE_BPS = 200_000_000
TOPOLOGY = "leafspine,leaves=1,spines=1,hosts=3,rate=200M"
ELEMENTS = 10_007


@contextmanager
def star(folder: Path, pfc: str = "") -> Iterator[tuple[Daemon, list[LivePlace]]]:
    """Yield a daemon whose switch s0 has three hosts, and where they are."""
    with namespaces(3) as paths, Daemon(folder / "control", folder / "log") as daemon:
        ports = [join_outside(number, "eth0") for number in range(3)]
        lines = [LinkEnd(name, RATE_BPS, pfc=pfc) for name in ports]
        daemon.add({"s0": (1, lines)})
        end = LinkEnd("eth0", RATE_BPS, pfc=pfc)
        yield daemon, [LivePlace(f"h{i}", end, path) for i, path in enumerate(paths)]


def step(
    daemon: Daemon, places: list[LivePlace], algorithm: str, options: NetworkOptions
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Run a collective of integers; return what the ranks have, and what they should have."""
    graph = build(TOPOLOGY)
    crew = LiveHosts(graph, options)
    schedule = ALGORITHMS[algorithm].build(3, size_bytes=4 * ELEMENTS, hierarchy=(3,))
    tensors = crew.tensors(ELEMENTS, dtype=torch.int32, schedule=schedule)
    for rank, tensor in enumerate(tensors):
        tensor.copy_(torch.arange(ELEMENTS, dtype=torch.int32) * (rank + 1))
    expected = execute(schedule, [tensor.clone() for tensor in tensors])
    name = "forward" if options.system is None else options.system.program(256)
    told = [*forwarding_entities(graph)["s0"], *crew.entities.get("s0", [])]
    program = P4_BUILD / f"{name}.json"
    info = program.with_suffix(".p4info.txtpb")
    program_switches([SwitchProgramming("s0", daemon.address, 1, program, info, told)])
    crew.run(schedule, tensors, CrewSurroundings(places))
    return list(tensors), list(expected)


@pytest.mark.parametrize("algorithm", ["ring", "switchml"])
def test_a_collective_through_a_live_switch(algorithm: str, tmp_path: Path) -> None:
    options = NetworkOptions(system=SYSTEMS.get(algorithm))

    with star(tmp_path) as (daemon, places):
        tensors, expected = step(daemon, places, algorithm, options)
        counted = daemon.counters()["s0"]
        again = daemon.counters()["s0"]

    for tensor, right in zip(tensors, expected, strict=True):
        assert torch.equal(tensor, right)
    assert all(port["tx_packets"] > 0 and port["received"] > 0 for port in counted)
    assert all(port["peak_queue_bytes"] > 0 for port in counted)
    assert all(port["peak_queue_bytes"] == 0 for port in again), "nothing has come since"
