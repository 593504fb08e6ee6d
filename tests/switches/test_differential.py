"""Thousands of random packets through BMv2 and through the engine: the same bytes come out."""

from __future__ import annotations

import pytest
from program_cases import CASES, PORTS, Case, make_switch
from wide_cases import WIDE_CASES

from switches import bmv2

pytestmark = pytest.mark.bmv2

PACKETS = 2000
FEWER = {"wide": 300}  # of 2.7 KB each


@pytest.mark.parametrize("case", CASES + WIDE_CASES, ids=lambda case: case.name)
def test_engine_does_as_bmv2(case: Case) -> None:
    packets = case.packets(FEWER.get(case.name, PACKETS), seed=11)
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
