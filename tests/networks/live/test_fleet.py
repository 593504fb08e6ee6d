"""The embedded switches of one process, each with an interface that nobody sends to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from namespaces import join_outside, namespaces

from ringleaf.core.shipped import P4_BUILD
from ringleaf.core.units import FOREVER_PS, PS_PER_S
from ringleaf.errors import ConfigError
from ringleaf.networks.live.engine import LinkEnd
from ringleaf.networks.live.fleet import Fleet
from ringleaf.networks.live.line_changes import SwitchChanges
from ringleaf.networks.virtual.loop import UNTIL
from ringleaf.switches.program import Program
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.switch import Switch

pytestmark = pytest.mark.live
PATH = P4_BUILD / "hpcc.json"
SENT = "Telemetry.sent"
AN_HOUR_PS = 3_600 * PS_PER_S


@pytest.fixture(scope="module")
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


def test_a_switch_that_restarts_loses_its_registers_and_no_other_does(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second would restart in an hour, the third does not."""

    def serve(_until_ps: int) -> int:
        fleet.stop()
        return UNTIL

    monkeypatch.setattr(fleet._engine, "serve", serve)  # one turn, in which no packet comes
    switches = [load(device) for device in fleet.devices]
    fleet.disturb(SwitchChanges([], [("s1", AN_HOUR_PS), ("s0", 0)]), time.monotonic_ns())

    fleet.run()

    assert [each.read_register(SENT, 1) for each in switches] == [0, 7, 7]
    assert fleet._restarts.next_ps > AN_HOUR_PS // 2
    fleet.settle()
    assert fleet._restarts.next_ps == FOREVER_PS


def test_a_recorded_switch_and_one_that_is_not_there_do_not_restart(
    fleet: Fleet, tmp_path: Path
) -> None:
    unknown, known = (SwitchChanges([], [(name, 0)]) for name in ("s9", "s1"))
    with pytest.raises(ConfigError, match="no such name, got 's9'"):
        fleet.disturb(unknown, 0)
    fleet.record(tmp_path / "traces")
    with pytest.raises(ConfigError, match="restart: not while switches are recorded, got 's1'"):
        fleet.disturb(known, 0)
