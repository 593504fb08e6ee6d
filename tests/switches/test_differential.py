"""Thousands of random packets through BMv2 and through the engine: the same bytes come out.

A BMv2 that was built without its checks dies of those that access arrays out of their range, so
such packets are kept away from it; the last line of a run says how many.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from draws import PORTS
from program_cases import CASES, Case, make_switch
from wide_cases import WIDE_CASES

from ringleaf.switches.bmv2 import process as bmv2
from ringleaf.switches.bmv2.build import has_checks
from ringleaf.switches.fuzz.packets import Packet
from ringleaf.switches.fuzz.sides import EngineSide
from ringleaf.switches.generate.observing import OUTSIDE, Variant
from ringleaf.switches.program import Program

pytestmark = pytest.mark.bmv2

PACKETS = 2000
KEPT_AWAY = "packets kept away from BMv2"
FEWER = {"wide": 300}  # of 2.7 KB each


@pytest.mark.parametrize("case", CASES + WIDE_CASES, ids=lambda case: case.name)
def test_engine_does_as_bmv2(case: Case, record_property: Callable[[str, object], None]) -> None:
    packets = case.packets(FEWER.get(case.name, PACKETS), seed=11)
    if not has_checks():
        drawn = len(packets)
        packets = in_range(case, packets)
        record_property(KEPT_AWAY, drawn - len(packets))
    switch = make_switch(case)

    with bmv2.Bmv2(case.path, case.p4info) as other:
        other.write(case.entities())
        theirs = other.process(packets)
        registers = {name: other.read_registers(name) for name in case.registers}

    ours = [sorted(switch.process(port, data)) for port, data in packets]
    for number, packet in enumerate(packets):
        # BMv2 lets packets out of ports that are none of the switch's.
        sent = [(port, data) for port, data in theirs[number] if 1 <= port <= PORTS]
        assert ours[number] == sent, f"packet {number}: port {packet[0]}, {packet[1].hex()}"
    for name, cells in registers.items():
        assert [switch.read_register(name, i) for i in range(len(cells))] == cells, name


def in_range(case: Case, packets: list[Packet]) -> list[Packet]:
    """Return the packets that access no array out of its range, as the engine says.

    Its switch has all ports: BMv2 runs egress for packets to any of them.
    """
    program = Program.load(case.path, case.p4info, Variant(observed=True))
    assert program.module.observer is not None
    if not any(point.kind == OUTSIDE for point in program.module.observer.points):
        return packets
    side = EngineSide(program, [])
    side.switch.write(case.entities())
    return [packet for packet in packets if side.stays_inside(packet)]
