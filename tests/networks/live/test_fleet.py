"""The embedded switches of one process, each with an interface that nobody sends to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from namespaces import join_outside, namespaces

from ringleaf.core.shipped import P4_BUILD
from ringleaf.errors import ConfigError
from ringleaf.networks.live.engine import LinkEnd
from ringleaf.networks.live.fleet import Fleet
from ringleaf.switches.program import Program
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.switch import Switch

pytestmark = pytest.mark.live
PATH = P4_BUILD / "hpcc.json"
SENT = "Telemetry.sent"
SOON_PS, LATE_PS = 10**6, 3_600 * 10**12


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """Three switches without a program, s0 to s2."""
    with namespaces(3):
        fleet = Fleet()
        for i in range(3):
            fleet.add(f"s{i}", i + 1, [LinkEnd(join_outside(i, "eth0"), 1_000_000)])
        yield fleet
        fleet.close()


def load(device: SharedDevice) -> Switch:
    """Give a switch a program with a register, which is not 0."""
    device.pipelines.load(Program.load(PATH), PATH.read_bytes())
    device.switch.write_register(SENT, 1, 7)
    return device.switch


@contextmanager
def running(fleet: Fleet) -> Iterator[None]:
    thread = threading.Thread(target=fleet.run)
    thread.start()
    try:
        yield
    finally:
        fleet.stop()
        thread.join()


def test_a_switch_that_restarts_loses_its_registers_and_no_other_does(fleet: Fleet) -> None:
    """The second would restart in an hour, the third does not."""
    first, second, third = map(load, fleet.devices)
    start_ns = time.monotonic_ns()

    with running(fleet):
        fleet.disturb([], [("s1", LATE_PS), ("s0", SOON_PS)], start_ns)
        while time.monotonic_ns() < start_ns + 30 * 10**9:
            with fleet.turns:
                if first.read_register(SENT, 1) == 0:
                    break
        fleet.settle()

    assert [each.read_register(SENT, 1) for each in (first, second, third)] == [0, 7, 7]
    assert fleet._restarts.take_rest() == []


def test_a_recorded_switch_and_one_that_is_not_there_do_not_restart(
    fleet: Fleet, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no such name, got 's9'"):
        fleet.disturb([], [("s9", 0)], 0)
    fleet.record(tmp_path / "traces")
    with pytest.raises(ConfigError, match="restart: not while switches are recorded, got 's9'"):
        fleet.disturb([], [("s9", 0)], 0)
