"""The benchmark measures what it says: the packets go through; how fast is not asserted."""

from __future__ import annotations

import pytest
from program_cases import CASES, PROGRAMS, make_switch

from bench.switch import measure, measure_compile
from ringleaf.errors import ConfigError
from ringleaf.switches.switch import Switch

STATEFUL = next(case for case in CASES if case.name == "stateful")
VALUE_AT = 3  # of `value` in a packet; its upper half


@pytest.fixture
def switch() -> Switch:
    return make_switch(STATEFUL)


def operation(op: int, index: int, group: int = 0) -> bytes:
    return bytes([op, 0, index]) + bytes(8) + group.to_bytes(2, "big") + bytes(5)


def test_packets_are_counted_as_received_and_sent(switch: Switch) -> None:
    packets = [(1, operation(0, 0)), (1, operation(6, 0, group=1)), (1, operation(6, 0, group=9))]
    speed = measure(switch, packets, seconds=0.02)

    # One goes out as it is, one to the group's three members, one to no group.
    assert speed.sent_per_s == pytest.approx(speed.received_per_s * 4 / 3)
    assert speed.ns_per_packet == pytest.approx(1e9 / speed.received_per_s)
    rounds = switch.read_counter("I.seen", 0).packets
    assert switch.read_counter("I.seen", 6) == (2 * rounds, 36 * rounds)


def test_number_grows_from_round_to_round(switch: Switch) -> None:
    measure(switch, [(1, operation(1, 5))], number_at=VALUE_AT, number_step=3, seconds=0.02)

    rounds = switch.read_counter("I.seen", 1).packets
    assert rounds > 1
    assert switch.read_register("I.longs", 5) >> 32 == 3 * (rounds - 1)


def test_measuring_nothing_is_refused(switch: Switch) -> None:
    with pytest.raises(ConfigError, match="measure: needs packets, got none"):
        measure(switch, [])


def test_packets_longer_than_heads_are_refused(switch: Switch) -> None:
    with pytest.raises(ConfigError, match="must fit a head of 192 bytes, got 193"):
        measure(switch, [(1, bytes(193))])


def test_compile_times_are_of_two_processes() -> None:
    times = measure_compile(PROGRAMS / "padding.json")
    assert 0 < times.cached_s < times.cold_s
