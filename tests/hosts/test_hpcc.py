"""HPCC: updates computed by hand from its equations, and telemetry on its way."""

from __future__ import annotations

import struct

import pytest
from cc_sender import LINE_BPS, Sender
from rc_wire import MTU, Wire, kinds
from scapy.layers.l2 import Ether
from uncompiled import run_uncompiled, starts_uncompiled

from ringleaf.hosts import rc
from ringleaf.hosts.congestion.control import HEARD_AT, IN_FLIGHT, RATE_BPS, WINDOW
from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES
from ringleaf.hosts.controllers import hpcc
from ringleaf.hosts.rc.layers import ICRC, RoceData, Telemetry
from ringleaf.hosts.rc.wire import ACK_HEAD_BYTES, ACKNOWLEDGE, HEAD_BYTES, ICRC_BYTES

KBPS = LINE_BPS // 1000
BDP_BYTES = LINE_BPS * 8 // 10**6 // 8
Hop = tuple[int, int, int]  # bytes sent, packets queued, time in us


def telemetry(*hops: Hop) -> bytes:
    """Return what `p4/hpcc.p4` writes for these hops, given in the order of the way."""
    told = b"".join(struct.pack(">4I", KBPS, *hop) for hop in reversed(hops))
    return (bytes([len(hops), 0]) + told).ljust(TELEMETRY_BYTES, b"\0")


def acknowledge(sender: Sender, *hops: Hop, in_flight: int = 0) -> None:
    heard_at = sender.word(HEARD_AT)
    for place, byte in enumerate(telemetry(*hops)):
        sender.store.arena.bytes[heard_at + place] = byte
    sender.set(IN_FLIGHT, in_flight)
    sender.controller.on_ack(sender.store.arena, sender.at, 1, 0)


def rate(sender: Sender) -> float:
    return (sender.word(RATE_BPS) or LINE_BPS) / LINE_BPS


def sender_of(rate_bps: int) -> Sender:
    sender = Sender(hpcc.CONTROLLER)
    sender.set(hpcc.CURRENT_BPS, rate_bps)
    return sender


def test_starts_at_the_lines_rate_with_a_round_trips_window() -> None:
    sender = Sender(hpcc.CONTROLLER)
    assert rate(sender) == 1
    assert sender.word(WINDOW) == -(-BDP_BYTES // 4178)


def test_rate_is_divided_by_utilisation_over_095() -> None:
    """A full link for a round trip, and at least 12 packets of 4,178 bytes queued."""
    sender = sender_of(LINE_BPS)
    acknowledge(sender, (0, 12, 100))
    assert rate(sender) == 1, "one sample is no throughput"
    acknowledge(sender, (BDP_BYTES, 20, 108))
    over = (1 + 12 * 4178 / BDP_BYTES) / 0.95
    assert rate(sender) == pytest.approx(1 / over + 1 / 2000, rel=1e-5)
    assert sender.word(WINDOW) == pytest.approx(BDP_BYTES * rate(sender) / 4178, abs=1)


def test_the_most_utilised_link_counts() -> None:
    sender = sender_of(LINE_BPS)
    acknowledge(sender, (0, 0, 50), (7, 0, 90), (9, 0, 70))
    acknowledge(sender, (0, 0, 58), (7 + 2 * BDP_BYTES, 0, 98), (9, 0, 78))
    assert rate(sender) == pytest.approx(0.95 / 2 + 1 / 2000, rel=1e-5)


def test_average_weighs_by_time_so_early_and_late_samples_count_alike() -> None:
    sender = sender_of(LINE_BPS // 2)
    acknowledge(sender, (0, 0, 0))
    acknowledge(sender, (BDP_BYTES // 2, 0, 2))  # twice the line's rate, for a quarter
    assert sender.word(hpcc.UTILISATION) / hpcc.ONE == pytest.approx(0.75 + 0.25 * 2)
    before = sender.word(hpcc.UTILISATION)
    acknowledge(sender, (BDP_BYTES, 0, 3))
    assert sender.word(hpcc.UTILISATION) == before, "one microsecond is too little"


def test_counters_wrap() -> None:
    sender = sender_of(LINE_BPS)
    acknowledge(sender, (2**32 - 1000, 0, 2**32 - 4))
    acknowledge(sender, (2 * BDP_BYTES - 1000, 0, 4))
    assert rate(sender) == pytest.approx(0.95 / 2 + 1 / 2000, rel=1e-5)


def test_rate_is_raised_by_steps_five_times_and_then_to_fill_the_link() -> None:
    """Links carry half of what they could; the rate is a tenth of the line's."""
    sender = sender_of(LINE_BPS // 10)
    rates = []
    for trip in range(7):
        acknowledge(sender, (trip * BDP_BYTES // 2, 0, 8 * trip))
        rates.append(rate(sender))
    steps = [0.1 + step / 2000 for step in range(1, 6)]
    assert rates[1:6] == pytest.approx(steps, rel=1e-5)
    assert rates[6] == pytest.approx(0.1025 * 0.95 / 0.5 + 1 / 2000, rel=1e-5)


def test_within_a_round_trip_changes_start_from_the_rate_that_lasts() -> None:
    sender = sender_of(LINE_BPS)
    acknowledge(sender, (0, 0, 0))
    acknowledge(sender, (2 * BDP_BYTES, 0, 8), in_flight=10)
    lasting = 0.475 + 1 / 2000
    assert sender.word(hpcc.CURRENT_BPS) / LINE_BPS == pytest.approx(lasting, rel=1e-5)
    for trip in (2, 3):
        acknowledge(sender, (trip * 2 * BDP_BYTES, 0, 8 * trip), in_flight=10)
        assert rate(sender) == pytest.approx(lasting * 0.475 + 1 / 2000, rel=1e-5)


def test_data_has_room_for_telemetry_and_answers_bring_it_back() -> None:
    wire = Wire(window=16, controller="hpcc")
    size = 20 * MTU + 3
    wire.expect(1, 4096, size, tag=0)
    wire.post(0, bytes(range(size)), 0, tag=0)
    wire.run()
    assert {(rc.SENT, 0), (rc.RECEIVED, 0)} <= set(kinds(wire))
    assert bytes(wire.store.arena.memory[4096 : 4096 + size]) == bytes(range(size))
    data = [f for f in wire.sent if f[42] & 0xF0 == 0xD0]
    answers = [f for f in wire.sent if f[42] == ACKNOWLEDGE]
    assert {len(f) for f in data[:-1]} == {HEAD_BYTES + TELEMETRY_BYTES + MTU + ICRC_BYTES}
    assert {len(f) for f in answers} == {ACK_HEAD_BYTES + TELEMETRY_BYTES + ICRC_BYTES}


def test_scapy_shows_telemetry_in_data_and_answers() -> None:
    wire = Wire(window=16, controller="hpcc")
    wire.expect(1, 4096, MTU, tag=0)
    wire.post(0, bytes(range(MTU)), 0, tag=0)
    wire.run()
    data, answer = (next(Ether(f) for f in wire.sent if f[42] == o) for o in (0xD4, ACKNOWLEDGE))
    assert [len(each[Telemetry].hop) for each in (data, answer)] == [5, 5]
    assert data[RoceData].load == bytes(range(MTU))
    assert ICRC in data
    assert ICRC in answer


@starts_uncompiled
def test_it_is_the_same_uncompiled() -> None:
    """NumPy refuses in a byte what a compiled program takes."""
    assert "1 x is what this test starts" in run_uncompiled(__file__)
