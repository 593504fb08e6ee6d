"""Our own controller, by which networks of BMv2 get their entries."""

from __future__ import annotations

from finsy import P4MeterConfig, P4MeterEntry, P4Schema
from program_cases import PROGRAMS

from ringleaf.switches.engine.updates import MeterRates
from ringleaf.switches.program import Program
from ringleaf.switches.server.client import PrimaryController
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.server.server import P4RuntimeServer

PATH = PROGRAMS / "meters.json"


def test_meters_have_no_verb_of_their_own() -> None:
    """They are there from the start, so finsy's objects can't be inserted."""
    device = SharedDevice(1, ports=4)
    device.pipelines.load(Program.load(PATH), PATH.read_bytes())
    config = P4MeterConfig(cir=5, cburst=6, pir=7, pburst=8)
    with P4RuntimeServer([device]) as server, PrimaryController(server.address, 1, "s") as one:
        one.take_control()
        one.write(
            P4MeterEntry("by_bytes", index=2, config=config),
            P4Schema(PROGRAMS / "meters.p4info.txtpb"),
        )
        switch = device.switch
        assert switch is not None
        assert switch.read_meter("I.by_bytes", 2) == MeterRates(5, 6, 7, 8)
        assert switch.read_meter("I.by_bytes", 1) is None
