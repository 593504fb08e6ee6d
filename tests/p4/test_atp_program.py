"""atp.p4, packet by packet: the rack of three workers, and the way to the parameter server."""

from __future__ import annotations

from typing import Any

import finsy as fy
import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from switch_packets import atp, make_switch, switchml, udp

from ringleaf.ina.atp.wire import (
    COLLISION,
    GRADIENT,
    MESSAGE_AT,
    PARAMETER,
    RAW,
    RESEND,
    SENT_BEFORE,
)
from ringleaf.ina.switchml.wire import UPDATE
from ringleaf.switches.switch import Switch

JOB, GROUP, SERVER_PORT, AGGREGATORS, WINDOW = 3, 259, 5, 16, 8
ALL = 0b111
MAX, MIN = 2**31 - 1, -(2**31)
Out = list[tuple[int, bytes]]
OUTCOMES = (
    *("TAKEN", "ADDED", "COMPLETED", "REPEATED", "PASSED"),
    *("COLLIDED", "MERGED", "REPLACED", "CROSSED", "FREED"),
)


def rack(complete: int = ALL, name: str = "atp-64", **more: int) -> Switch:
    """A switch with workers at ports 1 to 3 and the server behind port 5; `more`: of a rack."""
    match = fy.P4TableMatch(job=JOB, server=0)
    other = fy.P4TableMatch(job=4, server=0)
    share = {"complete": complete, "aggregators": AGGREGATORS, "window": WINDOW} | more
    what = fy.P4TableAction("aggregate_rack" if "rack" in more else "aggregate", **share)
    return make_switch(
        name,
        8,
        [
            fy.P4MulticastGroupEntry(GROUP, replicas=[1, 2, 3]),
            fy.P4TableEntry(
                "deliveries", match=match, action=fy.P4TableAction("multicast", group=GROUP)
            ),
            *(fy.P4TableEntry("shares", match=job, action=what) for job in (match, other)),
            fy.P4TableEntry(
                "ipv4_lpm",
                match=fy.P4TableMatch(dst="10.0.1.0/24"),
                action=fy.P4TableAction("forward", port=SERVER_PORT, dmac=1),
            ),
        ],
    )


def gradient(worker: int, *values: int, **fields: Any) -> bytes:
    return atp(GRADIENT, values=values, **({"workers": 1 << worker, "sender": worker} | fields))


def total(workers: int, *values: int, **fields: Any) -> bytes:
    return atp(GRADIENT, values=values, workers=workers, **fields)


def same(got: Out, *want: tuple[int, bytes]) -> None:
    """Compare what comes after the IP and UDP headers, but for the sender."""
    assert [(port, strip(data)) for port, data in got] == [
        (port, strip(data)) for port, data in want
    ]


def strip(data: bytes) -> str:
    return data[MESSAGE_AT : MESSAGE_AT + 20].hex() + " " + data[MESSAGE_AT + 21 :].hex()


def outcomes(switch: Switch) -> dict[str, int]:
    name = "Atp.aggregators.outcomes"
    counts = {each: switch.read_counter(name, i).packets for i, each in enumerate(OUTCOMES)}
    return {each: count for each, count in counts.items() if count}


def test_the_last_gradient_takes_the_sum_to_the_server() -> None:
    switch = rack()

    same(switch.process(2, gradient(1, 1, 10)))
    same(switch.process(1, gradient(0, 2, 20)))
    same(switch.process(3, gradient(2, 3, -40)), (SERVER_PORT, total(ALL, 6, -10)))
    assert outcomes(switch) == {"TAKEN": 1, "ADDED": 1, "COMPLETED": 1}


def test_the_result_frees_the_aggregator_and_goes_to_all() -> None:
    switch = rack()
    for worker in range(3):
        switch.process(worker + 1, gradient(worker, 1))
    result = atp(PARAMETER, values=(3,), dst="239.167.3.0")

    assert [port for port, _ in switch.process(SERVER_PORT, result)] == [1, 2, 3]
    assert outcomes(switch)["FREED"] == 1
    same(switch.process(1, gradient(0, 5, sequence=1)))
    assert outcomes(switch)["TAKEN"] == 2


def test_an_answer_to_one_worker_frees_it_too() -> None:
    switch = rack()
    switch.process(1, gradient(0, 1))
    result = atp(PARAMETER, values=(3,), dst="10.0.1.7")

    assert [port for port, _ in switch.process(1, result)] == [SERVER_PORT]
    assert outcomes(switch)["FREED"] == 1


def test_a_result_of_another_block_frees_nothing() -> None:
    switch = rack()
    switch.process(1, gradient(0, 1))
    for fields in ({"sequence": 1}, {"job": 4}, {"aggregator": 8}):
        switch.process(SERVER_PORT, atp(PARAMETER, values=(3,), dst="239.167.3.0", **fields))

    assert "FREED" not in outcomes(switch)


def test_what_another_block_holds_is_passed_on_marked() -> None:
    switch = rack()
    switch.process(1, gradient(0, 1))

    for other in ({"sequence": 1}, {"job": 4}, {"sequence": 2**32 - WINDOW}):
        want = gradient(1, 5, flags=COLLISION, **other)
        same(switch.process(2, gradient(1, 5, **other)), (SERVER_PORT, want))
    assert outcomes(switch) == {"TAKEN": 1, "COLLIDED": 3}
    same(switch.process(2, gradient(1, 2)))
    same(switch.process(3, gradient(2, 3)), (SERVER_PORT, total(ALL, 6)))


def test_a_block_takes_over_from_one_of_its_job_that_must_be_done() -> None:
    switch = rack()
    switch.process(1, gradient(0, 1, sequence=2**32 - 1))

    same(switch.process(2, gradient(1, 5, sequence=WINDOW - 1)))
    assert outcomes(switch) == {"TAKEN": 2}


def test_a_packet_that_comes_twice_is_not_added_twice() -> None:
    switch = rack()
    switch.process(1, gradient(0, 1))

    same(switch.process(1, gradient(0, 1)))
    assert outcomes(switch) == {"TAKEN": 1, "REPEATED": 1}
    switch.process(2, gradient(1, 2))
    same(switch.process(3, gradient(2, 3)), (SERVER_PORT, total(ALL, 6)))
    same(switch.process(3, gradient(2, 3)))


def test_a_resend_takes_along_what_is_there_and_frees_it() -> None:
    switch = rack()
    switch.process(1, gradient(0, 1))
    switch.process(2, gradient(1, 2))

    want = (SERVER_PORT, total(ALL, 6, flags=RESEND))
    same(switch.process(3, gradient(2, 3, flags=RESEND)), want)
    assert outcomes(switch)["MERGED"] == 1
    # Late ones of this block are not waited for: they go on.
    same(switch.process(3, gradient(2, 3)), (SERVER_PORT, gradient(2, 3)))
    same(switch.process(3, gradient(2, 3, sequence=1)))


def test_a_resend_of_what_is_there_stands_for_all_that_is_there() -> None:
    switch = rack()
    switch.process(1, gradient(0, 1))
    switch.process(2, gradient(1, 2))

    want = (SERVER_PORT, total(0b11, 3, flags=RESEND))
    same(switch.process(1, gradient(0, 1, flags=RESEND)), want)
    assert outcomes(switch)["REPLACED"] == 1
    same(
        switch.process(2, gradient(1, 2, flags=RESEND)),
        (SERVER_PORT, gradient(1, 2, flags=RESEND)),
    )


def test_a_lost_sum_is_sent_again_whole() -> None:
    switch = rack()
    for worker in range(3):
        switch.process(worker + 1, gradient(worker, 1))

    want = (SERVER_PORT, total(ALL, 3, flags=RESEND | SENT_BEFORE))
    same(switch.process(1, gradient(0, 1, flags=RESEND)), want)


def test_a_resend_without_aggregator_passes_unmarked_and_takes_none() -> None:
    switch = rack()
    for other in ({}, {"sequence": 1}):
        packet = gradient(0, 1, flags=RESEND, **other)
        same(switch.process(1, packet), (SERVER_PORT, packet))
    same(switch.process(1, gradient(0, 1, sequence=2)))
    assert outcomes(switch) == {"PASSED": 2, "TAKEN": 1}


def test_a_sum_that_was_sent_before_takes_nothing_along() -> None:
    """The parameter server may have it, and could not tell other values in it apart."""
    switch = rack()
    switch.process(3, gradient(2, 5))

    again = total(0b011, 3, flags=RESEND | SENT_BEFORE)
    same(switch.process(1, again), (SERVER_PORT, again))
    assert outcomes(switch) == {"TAKEN": 1, "PASSED": 1}
    fresh = total(0b011, 3, flags=RESEND)
    same(switch.process(1, fresh), (SERVER_PORT, total(ALL, 8, flags=RESEND)))


def test_sums_that_overlap_in_part_are_kept_apart() -> None:
    switch = rack()
    switch.process(1, total(0b011, 3))

    same(switch.process(2, total(0b110, 5)), (SERVER_PORT, total(0b110, 5)))
    crossed = total(0b110, 5, flags=RESEND)
    same(switch.process(2, crossed), (SERVER_PORT, crossed))
    assert outcomes(switch) == {"TAKEN": 1, "PASSED": 1, "CROSSED": 1}
    assert switch.read_register("Atp.aggregators.arrived", 7) == 0


def test_sums_of_racks_and_lone_gradients_add_up() -> None:
    switch = rack()
    switch.process(1, total(0b101, 10))

    same(switch.process(2, gradient(1, 5)), (SERVER_PORT, total(ALL, 15)))


def test_complete_sums_and_strange_workers_pass() -> None:
    switch = rack(complete=0b11)
    for workers in (0b11, 0b100, 0b101):
        same(switch.process(1, total(workers, 1)), (SERVER_PORT, total(workers, 1)))
    assert outcomes(switch) == {"PASSED": 3}


WHOLE = 1 << 40
"""The bit of rack 2 among those of its job."""


def counting() -> Switch:
    """The switch of a rack of three, of a job that has too many workers for one bitmap."""
    return rack(rack=2, whole=WHOLE)


def test_a_whole_rack_goes_on_as_one_bit_of_the_job() -> None:
    switch = counting()
    for worker in range(2):
        same(switch.process(worker + 1, gradient(worker, 1, rack=2)))

    out = switch.process(3, gradient(2, 5, rack=2))
    same(out, (SERVER_PORT, total(WHOLE, 7)))
    assert outcomes(switch) == {"TAKEN": 1, "ADDED": 1, "COMPLETED": 1}
    same(switch.process(1, gradient(0, 1, rack=2)))  # a copy
    probe = total(0, flags=RESEND, rack=2)
    same(switch.process(1, probe), (SERVER_PORT, total(WHOLE, 7, flags=RESEND | SENT_BEFORE)))


def test_a_part_of_a_rack_keeps_its_bits() -> None:
    switch = counting()
    for worker in range(2):
        switch.process(worker + 1, gradient(worker, 1, rack=2))

    probe = total(0, flags=RESEND, rack=2)
    same(switch.process(3, probe), (SERVER_PORT, total(0b11, 2, flags=RESEND, rack=2)))


def test_a_repeated_gradient_may_complete_its_rack() -> None:
    switch = counting()
    for worker in range(2):
        switch.process(worker + 1, gradient(worker, 1, rack=2))

    out = switch.process(3, gradient(2, 5, rack=2, flags=RESEND))
    same(out, (SERVER_PORT, total(WHOLE, 7, flags=RESEND)))


@pytest.mark.parametrize("other", [0, 1, 3])
@pytest.mark.parametrize("flags", [0, RESEND])
@pytest.mark.parametrize("bits", [0b1, 0b10, ALL])
def test_bits_of_another_rack_are_not_added(other: int, flags: int, bits: int) -> None:
    switch = counting()
    switch.process(1, gradient(0, 1, rack=2))

    packet = total(bits, 9, rack=other, flags=flags)
    same(switch.process(2, packet), (SERVER_PORT, packet))
    assert outcomes(switch) == {"TAKEN": 1, "PASSED": 1}


def test_the_servers_switch_adds_racks_and_lets_their_parts_pass() -> None:
    switch = rack()
    same(switch.process(1, total(0b1, 1)))
    part = total(0b10, 5, rack=2)
    same(switch.process(2, part), (SERVER_PORT, part))

    probe = total(0, flags=RESEND, rack=2)
    same(switch.process(2, probe), (SERVER_PORT, total(0b1, 1, flags=RESEND)))
    same(switch.process(2, probe), (SERVER_PORT, probe))
    assert outcomes(switch) == {"TAKEN": 1, "REPLACED": 1, "PASSED": 2}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((MAX - 5, 10, -100), MAX),
        ((MIN + 5, -10, 100), MIN),
        ((MAX, -1, -1), MAX),
        ((-1, MIN, 5), MIN),
        ((1, 2, MAX), MAX),
        ((MAX, MIN, 0), MAX),
        ((MAX - 1, 0, 0), MAX - 1),
        ((MIN + 1, 1, -1), MIN + 1),
    ],
)
def test_sums_saturate_and_stay_so(values: tuple[int, int, int], expected: int) -> None:
    switch = rack()
    for worker, value in enumerate(values[:2]):
        switch.process(worker + 1, gradient(worker, 0, value))

    same(switch.process(3, gradient(2, 0, values[2])), (SERVER_PORT, total(ALL, 0, expected)))


def test_all_256_lanes_are_added() -> None:
    switch = rack(name="atp-256")
    for worker in range(2):
        switch.process(worker + 1, gradient(worker, *range(256), lanes=256))

    out = switch.process(3, gradient(2, *range(256), lanes=256))
    same(out, (SERVER_PORT, total(ALL, *(3 * i for i in range(256)), lanes=256)))


def test_a_mark_of_any_gradient_is_the_sums() -> None:
    switch = rack()
    switch.process(1, gradient(0, 1))
    switch.process(2, gradient(1, 2, tos=3))

    ((_, data),) = switch.process(3, gradient(2, 3))

    assert Ether(data)[IP].tos & 3 == 3
    checksum = Ether(data)[IP].chksum
    frame = Ether(data)
    del frame[IP].chksum
    assert Ether(bytes(frame))[IP].chksum == checksum
    switch.process(1, gradient(0, 1, sequence=1, aggregator=9))
    switch.process(2, gradient(1, 1, sequence=1, aggregator=9))
    ((_, data),) = switch.process(3, gradient(2, 1, sequence=1, aggregator=9))
    assert Ether(data)[IP].tos & 3 == 2


@pytest.mark.parametrize(
    "packet",
    [
        gradient(0, 1, flags=RAW),
        gradient(0, 1, job=9),
        gradient(0, 1, server=1),
        gradient(0, 1, aggregator=AGGREGATORS),
        gradient(0, 1)[:-1],
        atp(GRADIENT, values=(1,), lanes=256),
        atp(15, values=(1,)),
        bytes(udp(dport=0xA700)),
    ],
    ids=[
        *("raw", "no such job", "no such server", "no such aggregator", "cut off"),
        *("other lanes", "no such message", "no header"),
    ],
)
def test_what_is_not_aggregated_is_forwarded(packet: bytes) -> None:
    switch = rack()

    assert [port for port, _ in switch.process(1, packet)] == [SERVER_PORT]
    assert outcomes(switch) == {}


def test_results_of_strange_jobs_and_damaged_packets_are_dropped() -> None:
    switch = rack()
    assert switch.process(1, atp(PARAMETER, values=(1,), job=9, dst="239.167.9.0")) == []
    damaged = bytearray(gradient(0, 1))
    damaged[20] ^= 1  # in the IP header, which has a checksum
    assert switch.process(1, bytes(damaged)) == []
    assert outcomes(switch) == {}


def test_one_program_serves_both_systems() -> None:
    switch = rack(name="atp-switchml-64")
    match = fy.P4TableMatch(job=JOB, ingress_port=1)
    share = {"child": 1, "children": 1, "parent_port": 0, "group": JOB, "base": 0, "slots": 4}
    action = fy.P4TableAction("from_child", **share)
    switch.write(
        [
            fy.P4MulticastGroupEntry(JOB, replicas=[1]),
            fy.P4TableEntry("members", match=match, action=action),
        ]
    )

    assert [port for port, _ in switch.process(1, switchml(UPDATE, values=(4,)))] == [1]
    for worker in range(2):
        same(switch.process(worker + 1, gradient(worker, 1)))
    same(switch.process(3, gradient(2, 1)), (SERVER_PORT, total(ALL, 3)))


def test_goat_figure_2_without_routing() -> None:
    """Fang et al., "GOAT", 2023, figure 2: one aggregator in each switch, and parts A, B and C.

    The first worker of a rack sends all three before the second does. A takes the aggregator, and
    is the only part that is added up: five packets leave each rack. The server's switch gets ten,
    and adds up B, which takes its aggregator: seven packets.
    """
    parts = (1, 2, 3)
    out: list[list[bytes]] = []
    for first in (0, 2):
        switch = rack(complete=0b11 << first, aggregators=1)
        sent = [
            switch.process(1 + worker % 2, gradient(worker, 1, sequence=part, aggregator=0))
            for worker in (first, first + 1)
            for part in parts
        ]
        out.append([data for each in sent for _, data in each])
    assert [len(each) for each in out] == [5, 5]

    last = rack(complete=0b1111, aggregators=1)
    sent = [
        last.process(port, data)
        for pair in zip(*out, strict=True)
        for port, data in enumerate(pair, start=1)
    ]
    assert sum(map(len, sent)) == 7
