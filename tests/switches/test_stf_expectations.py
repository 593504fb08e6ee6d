"""What has come out is compared as p4c's testbed does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.switches.stf.expectations import Mismatch, Output, compare, first_difference
from ringleaf.switches.stf.parser import parse
from ringleaf.switches.stf.statements import ExpectPacket

packets = st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=20)), max_size=6)


@given(packets, st.permutations(range(4)))
def test_what_is_expected_in_any_order_of_ports_passes(
    sent: list[tuple[int, bytes]], order: list[int]
) -> None:
    expected = [ExpectPacket(1, port, data.hex().upper(), exact=True) for port, data in sent]
    by_port = sorted(expected, key=lambda statement: order[statement.port])

    assert compare(by_port, [Output(port, data) for port, data in sent]) == []


@given(packets.filter(bool), st.data())
def test_one_packet_more_or_less_is_found(
    sent: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    outputs = [Output(port, packet) for port, packet in sent]
    missing = data.draw(st.integers(0, len(sent) - 1))
    expected = [ExpectPacket(1, port, None) for port, _ in sent]

    assert len(compare(expected, [*outputs, outputs[missing]])) == 1
    assert len(compare(expected, outputs[:missing] + outputs[missing + 1 :])) == 1


@given(st.binary(min_size=1, max_size=40), st.data())
def test_the_first_digit_that_differs_is_found(packet: bytes, data: st.DataObject) -> None:
    digits = packet.hex().upper()
    at = data.draw(st.integers(0, len(digits) - 1))
    open_ = "".join("*" if data.draw(st.booleans()) else d for d in digits[:at])
    other = "0" if digits[at] != "0" else "1"

    assert first_difference(ExpectPacket(1, 0, open_ + digits[at]), digits) is None
    assert first_difference(ExpectPacket(1, 0, open_ + other + "F"), digits) == at


def test_only_a_pattern_with_an_end_minds_what_follows() -> None:
    assert compare(parse("expect 1 AB"), [Output(1, b"\xab\xcd")]) == []
    [wrong] = compare(parse("expect 1 AB$"), [Output(1, b"\xab\xcd")])
    assert wrong.reason == "port 1: packet 1 differs at byte 1: its end expected, got 2 bytes"
    [wrong] = compare(parse("expect 1 ABCDEF"), [Output(1, b"\xab\xcd")])
    assert wrong.reason == "port 1: packet 1 differs at byte 2: 3 bytes expected, got 2"


def test_a_difference_is_marked_below_both_packets() -> None:
    statements = parse("packet 0 00\nexpect 2 *1 02 0304")

    assert compare(statements, [Output(2, bytes([1, 2, 5, 4, 6]), cause=1)]) == [
        Mismatch(
            "port 2: packet 1 differs at byte 2: 03 expected, got 05",
            (
                "line 2 expects, line 1 led to:",
                "      0  expected  *1 02 03 04",
                "         got       01 02 05 04 06",
                "                          ^",
            ),
        )
    ]


def test_a_long_report_stops_after_the_mark() -> None:
    [wrong] = compare(parse(f"expect 2 {'00' * 100}"), [Output(2, bytes(20) + b"\1" + bytes(79))])

    assert [line for line in wrong.detail if "^" in line] == [" " * 32 + "^"]
    assert wrong.detail[-1] == "  ... and 68 bytes more"


def test_ports_that_the_test_does_not_name_have_no_interface() -> None:
    statements = parse("packet 1 AA\nexpect 2 AA")

    assert compare(statements, [Output(2, b"\xaa"), Output(7, b"\xaa")]) == []
    [wrong] = compare(statements, [Output(2, b"\xaa"), Output(1, b"\xab", cause=1)])
    assert wrong.reason == "port 1: 0 packets expected, got 1"
    assert wrong.detail == ("nobody expects, line 1 led to:", "  ab")


def test_what_did_not_come_is_named() -> None:
    [wrong] = compare(parse("\nexpect 2 AA"), [])

    assert wrong == Mismatch("port 2: 1 packet expected, got 0", ("line 2 expects AA",))


@pytest.mark.parametrize("outputs", [[], [Output(1, b"")]])
def test_no_packet_says_no_more_than_that_none_is_expected(outputs: list[Output]) -> None:
    assert bool(compare(parse("packet 1 AA\nno_packet"), outputs)) is bool(outputs)
