"""What a live switch did while it was recorded, it does again."""

from __future__ import annotations

import resource
from pathlib import Path

import finsy as fy
import pytest
import torch
from test_live_switch import TOPOLOGY, star

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.shipped import P4_BUILD
from ringleaf.errors import BackendError
from ringleaf.experiments.replay.command import ReplayRequest, replay
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.networks.live.client import Daemon
from ringleaf.networks.live.host_process import LivePlace
from ringleaf.networks.live.hosts import LiveHosts
from ringleaf.networks.live.surroundings import CrewSurroundings
from ringleaf.networks.mininet.programming import SwitchProgramming, in_child, program_switches
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.traces.find import find_traces
from ringleaf.networks.traces.trace import open_trace
from ringleaf.topologies.registry import build

pytestmark = pytest.mark.live
ELEMENTS = 3001
PROGRAM = P4_BUILD / "forward.json"
INFO = PROGRAM.with_suffix(".p4info.txtpb")


def run_program(daemon: Daemon) -> None:
    entities = forwarding_entities(build(TOPOLOGY))["s0"]
    program_switches([SwitchProgramming("s0", daemon.address, 1, PROGRAM, INFO, entities)])


def mark_all(daemon: Daemon) -> None:
    """Have the switch mark packets from a queue of one packet on."""
    address = daemon.address
    action = fy.P4TableAction("mark_from", threshold=1)
    entry = fy.P4TableEntry("ecn_threshold", action=action, is_default_action=True)

    def write() -> None:
        from finsy import P4Schema

        from ringleaf.switches.server.client import PrimaryController

        with PrimaryController(address, 1, "s0") as controller:
            controller.take_control()
            controller.write([~entry], P4Schema(INFO))

    in_child(write)


def run_collective(places: list[LivePlace]) -> None:
    crew = LiveHosts(build(TOPOLOGY), NetworkOptions())
    schedule = ALGORITHMS["alltoall"].build(3, size_bytes=4 * ELEMENTS, hierarchy=(3,))
    tensors = crew.tensors(ELEMENTS, dtype=torch.int32, schedule=schedule)
    for tensor in tensors:
        tensor.zero_()
    crew.run(schedule, tensors, CrewSurroundings(places))


def test_entries_of_later_and_programs_of_later_are_replayed(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    with star(tmp_path) as (daemon, places):
        daemon.record(folder)
        run_program(daemon)
        run_collective(places)
        mark_all(daemon)
        run_collective(places)
        run_program(daemon)
        run_collective(places)
        with pytest.raises(BackendError, match="record: goes on already"):
            daemon.record(tmp_path / "other")
        assert daemon.save() == ["s0", "s0-2"]

    printed: list[str] = []
    assert replay(find_traces([folder]), ReplayRequest(times=True), printed.append) == 0, printed
    first, second = (open_trace(folder / name) for name in ("s0", "s0-2"))
    assert [write.at_ps > 0 for write in first.manifest.writes] == [False, True]
    assert len(second.manifest.writes) == 1
    assert len(first.arrivals) > len(second.arrivals) > 0
    assert sorted(path.name for path in folder.iterdir()) == ["s0", "s0-2"]


def test_what_can_not_be_recorded_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    with star(tmp_path) as (daemon, places):
        with pytest.raises(BackendError, match="save: nothing is recorded"):
            daemon.save()
        daemon.record(folder)
        run_program(daemon)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        run_collective(places)
        with pytest.raises(
            BackendError, match=r"traces can't be written to .*, got File too large"
        ):
            daemon.save()
        assert list(folder.iterdir()) == []
        with pytest.raises(BackendError, match="record: folder must be new or empty"):
            daemon.record(tmp_path)
