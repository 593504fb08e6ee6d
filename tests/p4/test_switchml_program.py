"""switchml.p4, packet by packet: a root, and a switch between its children and a parent."""

from __future__ import annotations

import finsy as fy
import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from switch_packets import make_switch, switchml, udp

from ringleaf.ina.switchml.wire import MESSAGE_AT, RESULT, UPDATE
from ringleaf.switches.switch import Switch

JOB, SLOTS, BASE = 3, 4, 6
PARENT = 5
Out = list[tuple[int, bytes]]
EVENTS = ("STRANGER", "MALFORMED", "STALE", "WAITING", "ANSWERED", "SENT_AGAIN")


def node(children: int, parent: int, name: str = "switchml-64") -> Switch:
    """A switch with children at ports 1, 2, ... and, unless `parent` is 0, one above."""
    share = {"children": (1 << children) - 1, "group": JOB, "base": BASE, "slots": SLOTS}
    actions = {
        port: fy.P4TableAction("from_child", child=1 << port - 1, parent_port=parent, **share)
        for port in range(1, children + 1)
    }
    if parent:
        actions[parent] = fy.P4TableAction("from_parent", **share)
    members = [
        fy.P4TableEntry("members", match=fy.P4TableMatch(job=JOB, ingress_port=port), action=action)
        for port, action in actions.items()
    ]
    group = fy.P4MulticastGroupEntry(JOB, replicas=list(range(1, children + 1)))
    return make_switch(name, 8, [group, *members])


def up(*values: int, **fields: int) -> bytes:
    return switchml(UPDATE, values=values, **fields)


def down(*values: int, **fields: int) -> bytes:
    return switchml(RESULT, values=values, **fields)


def same(got: Out, *want: tuple[int, bytes]) -> None:
    """Compare what comes after the IP and UDP headers."""
    assert [(port, data[MESSAGE_AT:].hex()) for port, data in sorted(got)] == [
        (port, data[MESSAGE_AT:].hex()) for port, data in want
    ]


def events(switch: Switch) -> dict[str, int]:
    name = "SwitchML.aggregation.events"
    counts = {event: switch.read_counter(name, i).packets for i, event in enumerate(EVENTS)}
    return {event: count for event, count in counts.items() if count}


def to_all(*values: int, ports: range = range(1, 4), **fields: int) -> list[tuple[int, bytes]]:
    return [(port, down(*values, **fields)) for port in ports]


def test_root_answers_all_when_the_last_child_has_come() -> None:
    root = node(3, 0)

    same(root.process(2, up(1, 10, exponent=7)))
    same(root.process(1, up(2, 20, exponent=9)))
    same(root.process(3, up(3, 30, exponent=8)), *to_all(6, 60, exponent=9))
    assert events(root) == {}


def test_sums_wrap_around_and_take_signs() -> None:
    root = node(2, 0)

    root.process(1, up(2**31 - 1, -5, -(2**31)))
    out = root.process(2, up(1, 3, -1))

    same(out, *to_all(-(2**31), -2, 2**31 - 1, ports=range(1, 3)))


def test_a_packet_that_comes_again_is_not_added_again() -> None:
    root = node(2, 0)

    root.process(1, up(1))
    same(root.process(1, up(1)))
    assert events(root) == {"WAITING": 1}
    same(root.process(2, up(2)), *to_all(3, ports=range(1, 3)))


def test_who_lost_the_result_gets_it_alone() -> None:
    root = node(2, 0)
    root.process(1, up(1, exponent=4))
    root.process(2, up(2, exponent=3))

    same(root.process(1, up(1, exponent=4)), (1, down(3, exponent=4)))
    same(root.process(2, up(2, exponent=3)), (2, down(3, exponent=4)))
    assert events(root) == {"ANSWERED": 2}


def test_the_result_is_kept_while_the_other_version_runs() -> None:
    root = node(2, 0)
    for port in (1, 2):
        root.process(port, up(port))
    root.process(1, up(10, block=SLOTS, version=1))

    same(root.process(2, up(2)), (2, down(3)))
    same(
        root.process(2, up(20, block=SLOTS, version=1)),
        *to_all(30, block=SLOTS, version=1, ports=range(1, 3)),
    )


def test_a_newer_block_starts_afresh_and_an_older_one_is_dropped() -> None:
    root = node(2, 0)
    for port in (1, 2):
        root.process(port, up(port, exponent=200))
    newer = {"block": 2 * SLOTS}

    same(root.process(1, up(5, exponent=1, **newer)))
    same(root.process(2, up(2)))
    assert events(root) == {"STALE": 1}
    same(
        root.process(2, up(6, exponent=2, **newer)),
        *to_all(11, exponent=2, ports=range(1, 3), **newer),
    )


@pytest.mark.parametrize("old", [2**31, 2**32 - 1])
def test_block_numbers_compare_around_the_wrap(old: int) -> None:
    root = node(2, 0)
    root.process(1, up(1, block=old))
    new = (old + 2 * SLOTS) % 2**32

    same(root.process(1, up(5, block=new)))
    same(root.process(2, up(2, block=old)))
    same(root.process(2, up(6, block=new)), *to_all(11, block=new, ports=range(1, 3)))


def test_another_job_in_the_same_entries_starts_afresh() -> None:
    root = node(1, 0)
    root.process(1, up(1, block=1000))
    share = {"children": 1, "group": JOB, "base": BASE, "slots": SLOTS}
    action = fy.P4TableAction("from_child", child=1, parent_port=0, **share)
    match = fy.P4TableMatch(job=4, ingress_port=1)
    root.write([fy.P4TableEntry("members", match=match, action=action)])

    same(root.process(1, up(8, job=4)), (1, down(8, job=4)))


def test_slots_do_not_touch() -> None:
    root = node(2, 0)
    places = [(slot, version) for slot in range(SLOTS) for version in (0, 1)]
    for value, (slot, version) in enumerate(places):
        block = version * SLOTS + slot
        root.process(1, up(100 * value, slot=slot, version=version, block=block))

    for value, (slot, version) in enumerate(places):
        where = {"slot": slot, "version": version, "block": version * SLOTS + slot}
        same(root.process(2, up(1, **where)), *to_all(100 * value + 1, ports=range(1, 3), **where))


def test_exponents_travel_without_lanes() -> None:
    root = node(2, 0)
    bare = [switchml(UPDATE, values=None, exponent=exponent) for exponent in (120, 255)]

    same(root.process(1, bare[0]))
    result = switchml(RESULT, values=None, exponent=255)
    same(root.process(2, bare[1]), (1, result), (2, result))
    same(root.process(1, bare[0]), (1, result))


def test_a_switch_between_sends_one_sum_up_and_the_result_down() -> None:
    middle = node(3, PARENT)

    same(middle.process(1, up(1, exponent=1)))
    same(middle.process(2, up(2, exponent=5)))
    same(middle.process(3, up(3, exponent=3)), (PARENT, up(6, exponent=5)))
    same(middle.process(PARENT, down(100, exponent=9)), *to_all(100, exponent=9))
    same(middle.process(PARENT, down(100, exponent=9)))
    assert events(middle) == {"STALE": 1}


def test_a_switch_between_sends_its_sum_again_until_it_has_the_result() -> None:
    middle = node(2, PARENT)
    middle.process(1, up(1, exponent=1))
    same(middle.process(1, up(1, exponent=1)))
    middle.process(2, up(2, exponent=2))

    for _ in range(2):
        same(middle.process(1, up(1, exponent=1)), (PARENT, up(3, exponent=2)))
    middle.process(PARENT, down(100, exponent=7))
    same(middle.process(2, up(2, exponent=2)), (2, down(100, exponent=7)))
    assert events(middle) == {"WAITING": 1, "SENT_AGAIN": 2, "ANSWERED": 1}


@pytest.mark.parametrize("children", [2, 3, 4])
def test_only_its_first_childs_repetition_makes_a_switch_send_its_sum_again(children: int) -> None:
    """All children repeat their updates while the result is missing; one packet goes up."""
    middle = node(children, PARENT)
    for port in range(1, children + 1):
        middle.process(port, up(1))

    sent = [middle.process(port, up(1)) for port in range(1, children + 1)]

    same(sent[0], (PARENT, up(children)))
    assert not any(sent[1:])
    assert events(middle) == {"WAITING": children - 1, "SENT_AGAIN": 1}


def test_a_result_that_nobody_waits_for_is_dropped() -> None:
    middle = node(2, PARENT)

    same(middle.process(PARENT, down(9)))  # nothing came yet
    middle.process(1, up(1))
    same(middle.process(PARENT, down(9)))  # a child is missing
    same(middle.process(PARENT, down(9, block=2 * SLOTS)))  # another block's
    same(middle.process(2, up(2)), (PARENT, up(3)))
    assert events(middle) == {"STALE": 3}


def test_an_only_child_is_passed_through() -> None:
    middle = node(1, PARENT)

    same(middle.process(1, up(4)), (PARENT, up(4)))
    same(middle.process(PARENT, down(9)), (1, down(9)))
    same(middle.process(1, up(4)), (1, down(9)))


@pytest.mark.parametrize(
    ("port", "packet", "event"),
    [
        (7, up(1), "STRANGER"),
        (1, up(1, job=9), "STRANGER"),
        (1, down(1), "MALFORMED"),
        (PARENT, up(1), "MALFORMED"),
        (1, up(1, slot=SLOTS), "MALFORMED"),
        (1, up(1)[:-1], "MALFORMED"),
        (1, up(1, lanes=256), "MALFORMED"),
        (1, switchml(15), "MALFORMED"),
    ],
    ids=[
        *("no child", "no such job", "result from a child", "update from the parent"),
        *("no such slot", "cut off", "other lanes", "no such message"),
    ],
)
def test_what_does_not_belong_is_dropped_and_counted(port: int, packet: bytes, event: str) -> None:
    middle = node(2, PARENT)

    assert middle.process(port, packet) == []
    assert events(middle) == {event: 1}
    same(middle.process(1, up(1)))
    same(middle.process(2, up(2)), (PARENT, up(3)))


def test_a_damaged_packet_is_not_added() -> None:
    root = node(1, 0)
    damaged = bytearray(up(1))
    damaged[20] ^= 1  # in the IP header, which has a checksum

    assert root.process(1, bytes(damaged)) == []
    assert events(root) == {}


def test_results_have_a_right_ip_header() -> None:
    ((_, data),) = node(1, 0).process(1, up(1))
    packet = Ether(data)
    checksum = packet[IP].chksum
    del packet[IP].chksum

    assert Ether(bytes(packet))[IP].chksum == checksum
    assert packet[IP].dst == "239.190.224.3"
    assert packet[IP].len == len(data) - 14


@pytest.mark.parametrize("port", [0xBEDF, 0xBEF0, 0xBEE0])
def test_other_udp_packets_are_forwarded(port: int) -> None:
    """The third is to one of SwitchML's ports, but too short for its header."""
    root = node(1, 0)
    match = fy.P4TableMatch(dst="10.0.1.0/24")
    action = fy.P4TableAction("forward", port=6, dmac=1)
    root.write([fy.P4TableEntry("ipv4_lpm", match=match, action=action)])

    assert [out for out, _ in root.process(1, bytes(udp(dport=port)))] == [6]


def test_256_lanes_add_up_to_the_last() -> None:
    root = node(2, 0, "switchml-256")
    one, two = range(256), range(1000, 1256)

    root.process(1, switchml(UPDATE, values=one, lanes=256))
    out = root.process(2, switchml(UPDATE, values=two, lanes=256))

    total = switchml(RESULT, values=[a + b for a, b in zip(one, two, strict=True)], lanes=256)
    same(out, (1, total), (2, total))
