"""esa.p4, packet by packet: more urgent blocks take aggregators, and sums lose nothing by it."""

from __future__ import annotations

from typing import Any

import finsy as fy
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from switch_packets import atp, make_switch
from test_atp_program import AGGREGATORS, ALL, SERVER_PORT, WINDOW, gradient

from ringleaf.ina.atp.layers import ATP
from ringleaf.ina.atp.wire import COLLISION, MESSAGE_AT, PARAMETER, RESEND
from ringleaf.switches.switch import Switch

JOB, OTHER = 3, 4
HOMES = {JOB: ("10.0.1.1", 5), OTHER: ("10.0.2.1", 6)}
"""Each job's parameter server, and the port that it is behind."""


def urgent(level: int, worker: int, *values: int, **fields: Any) -> bytes:
    job = fields.get("job", JOB)
    return gradient(worker, *values, tos=level << 5 | 2, dst=HOMES[job][0], **fields)


def esa(fading: int = 1) -> Switch:
    """A switch with workers at ports 1 to 3 and two jobs' servers behind ports 5 and 6."""
    entries: list[Any] = []
    share = {"complete": ALL, "aggregators": AGGREGATORS, "window": WINDOW, "fading": fading}
    for job, (address, port) in HOMES.items():
        match = fy.P4TableMatch(job=job, server=0)
        home = {
            "address": int.from_bytes(bytes(map(int, address.split(".")))),
            "udp_port": 0xA700 + job,
            "rack": 0,
            "complete": ALL,
        }
        entries += [
            fy.P4TableEntry("shares", match=match, action=fy.P4TableAction("aggregate", **share)),
            fy.P4TableEntry("homes", match=match, action=fy.P4TableAction("send_home", **home)),
            fy.P4TableEntry(
                "ipv4_lpm",
                match=fy.P4TableMatch(dst=f"{address}/32"),
                action=fy.P4TableAction("forward", port=port, dmac=1),
            ),
        ]
    return make_switch("esa-64", 8, entries)


def taken(switch: Switch) -> int:
    return switch.read_counter("Atp.aggregators.outcomes", 10).packets


def test_a_more_urgent_block_takes_the_aggregator_and_the_sum_goes_home() -> None:
    switch = esa()
    switch.process(1, urgent(1, 0, 5, -7, sequence=9))
    switch.process(2, urgent(1, 1, 10, 20, sequence=9))

    ((port, data),) = switch.process(3, urgent(2, 2, 100, 200, job=OTHER))

    frame = Ether(data)
    packet, values = frame[ATP], frame[ATP].payload.values
    assert (port, frame[IP].dst, frame[UDP].dport) == (SERVER_PORT, "10.0.1.1", 0xA700 + JOB)
    assert (packet.job, packet.sequence, packet.workers, packet.rack) == (JOB, 9, 0b011, 0)
    assert values[:3] == [15, 13, 0]
    assert frame[IP].tos >> 5 == 1
    assert data[MESSAGE_AT] & COLLISION
    checked = IP(bytes(frame[IP]))
    del checked.chksum
    assert IP(bytes(checked)).chksum == frame[IP].chksum
    # The other job's block goes on in the aggregator.
    switch.process(1, urgent(2, 0, 1, 2, job=OTHER))
    ((port, data),) = switch.process(2, urgent(2, 1, 10, 20, job=OTHER))
    assert (port, Ether(data)[ATP].workers) == (6, ALL)
    assert Ether(data)[ATP].payload.values[:2] == [111, 222]
    assert taken(switch) == 1


@pytest.mark.parametrize("level", [0, 2])
def test_a_block_that_is_not_more_urgent_is_passed_on(level: int) -> None:
    switch = esa(fading=0)
    switch.process(1, urgent(2, 0, 5))
    for _ in range(3):
        ((port, data),) = switch.process(2, urgent(level, 1, 7, job=OTHER))
        assert (port, Ether(data)[ATP].workers, data[MESSAGE_AT] & COLLISION) == (
            6,
            0b10,
            COLLISION,
        )
    assert taken(switch) == 0


def test_urgency_fades_with_each_gradient_that_is_kept_out() -> None:
    """5, 2, 1: a gradient of urgency 2 is kept out twice, and takes the aggregator then."""
    switch = esa(fading=1)
    switch.process(1, urgent(5, 0, 5))
    found = []
    for _ in range(3):
        switch.process(2, urgent(2, 1, 7, job=OTHER))
        found.append(taken(switch))
    assert found == [0, 0, 1]


def test_a_sum_that_was_sent_already_is_not_sent_again() -> None:
    switch = esa()
    for worker in range(3):
        switch.process(worker + 1, urgent(1, worker, 1))

    assert switch.process(2, urgent(2, 1, 7, job=OTHER)) == []
    assert taken(switch) == 1


def test_a_resend_takes_nothing() -> None:
    switch = esa()
    switch.process(1, urgent(1, 0, 5))
    ((port, data),) = switch.process(2, urgent(7, 1, 7, job=OTHER, flags=RESEND))
    assert (port, Ether(data)[ATP].workers) == (6, 0b10)
    assert taken(switch) == 0


def test_an_evicted_sum_has_its_marks_and_the_new_block_its_own() -> None:
    switch = esa()
    marked = gradient(0, 5, tos=1 << 5 | 3)
    switch.process(1, marked)
    ((_, data),) = switch.process(2, urgent(2, 1, 7, job=OTHER))
    assert Ether(data)[IP].tos & 3 == 3
    switch.process(1, urgent(2, 0, 1, job=OTHER))
    ((_, data),) = switch.process(3, urgent(2, 2, 1, job=OTHER))
    assert Ether(data)[IP].tos & 3 == 2


def test_a_result_frees_the_new_block_only() -> None:
    switch = esa()
    switch.process(1, urgent(1, 0, 5))
    switch.process(2, urgent(2, 1, 7, job=OTHER))
    switch.process(SERVER_PORT, atp(PARAMETER, values=(3,), dst="10.0.2.1", job=JOB))
    assert switch.read_register("Atp.aggregators.arrived", 7) == 0b10
    switch.process(SERVER_PORT, atp(PARAMETER, values=(3,), dst="10.0.2.1", job=OTHER))
    assert switch.read_register("Atp.aggregators.arrived", 7) == 0
