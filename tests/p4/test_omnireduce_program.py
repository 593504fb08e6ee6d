"""omnireduce.p4, packet by packet: updates without values, and the least of the next blocks."""

from __future__ import annotations

import finsy as fy
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from switch_packets import make_switch

from ringleaf.ina.omnireduce_switch.layers import SparseSwitchML
from ringleaf.ina.switchml.layers import SwitchMLLanes
from ringleaf.ina.switchml.wire import RESULT, SIZE_NONE, UPDATE
from ringleaf.switches.switch import Switch

JOB, SLOTS, PARENT, LANES = 3, 4, 5, 64
Told = tuple[int, int, int, list[int]]


def node(children: int, parent: int = 0) -> Switch:
    share = {"children": (1 << children) - 1, "group": 9, "base": 0, "slots": SLOTS}
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
    group = fy.P4MulticastGroupEntry(9, replicas=list(range(1, children + 1)))
    return make_switch("omnireduce-64", 8, [group, *members])


def packet(following: int, exponent: int, value: int | None = None, message: int = UPDATE) -> bytes:
    """A packet of slot 0's first round; `value` is its first one, None: it has none."""
    header = SparseSwitchML(
        message=message,
        size=SIZE_NONE if value is None else 1,
        job=JOB,
        exponent=exponent,
        next=following,
    )
    lanes = b"" if value is None else SwitchMLLanes(values=[value] + [0] * 63)
    ports = UDP(sport=0xBEF3, dport=0xBEF3, chksum=0)
    return bytes(Ether() / IP(src="10.0.0.1", dst="10.0.1.1") / ports / header / lanes)


def told(out: list[tuple[int, bytes]]) -> list[Told]:
    """Port, next block, exponent and first values of packets, whose lengths must be right."""
    found = []
    for port, data in sorted(out):
        ether = Ether(data)
        assert ether[IP].len == len(data) - 14
        assert ether[UDP].len == len(data) - 34
        head = ether[SparseSwitchML]
        values = ether[SwitchMLLanes].values[:1] if SwitchMLLanes in ether else []
        assert len(data) == 56 + (4 * LANES if values else 0)
        assert (head.size == SIZE_NONE) == (not values)
        found.append((port, head.next, head.exponent, values))
    return found


def test_the_least_next_block_goes_with_the_largest_exponent_of_those_who_named_it() -> None:
    root = node(3)
    assert root.process(1, packet(8, 140, 5)) == []
    assert root.process(2, packet(4, 120, 6)) == []
    assert told(root.process(3, packet(4, 130))) == [(port, 4, 130, [11]) for port in (1, 2, 3)]

    other = node(3)
    other.process(1, packet(4, 130))
    other.process(2, packet(4, 120))
    assert told(other.process(3, packet(8, 200, 7))) == [(p, 4, 130, [7]) for p in (1, 2, 3)]


def test_values_that_come_after_updates_without_any_do_not_meet_an_older_block() -> None:
    root = node(2)
    root.process(1, packet(4, 1, 100))
    root.process(2, packet(4, 1, 100))

    def newer(data: bytes) -> bytes:
        ether = Ether(data)
        ether[SparseSwitchML].block = 2 * SLOTS
        return bytes(ether)

    root.process(1, newer(packet(8, 1)))
    assert told(root.process(2, newer(packet(8, 1, 3)))) == [(1, 8, 1, [3]), (2, 8, 1, [3])]


def test_who_asks_again_without_values_gets_the_sum() -> None:
    root = node(2)
    root.process(1, packet(9, 7))
    root.process(2, packet(5, 3, 4))
    assert told(root.process(1, packet(9, 7))) == [(1, 5, 3, [4])]


def test_a_switch_below_sends_its_sum_up_again_and_then_the_result() -> None:
    leaf = node(2, PARENT)
    leaf.process(1, packet(9, 7, 1))
    assert told(leaf.process(2, packet(9, 8))) == [(PARENT, 9, 8, [1])]
    assert told(leaf.process(1, packet(9, 7, 1))) == [(PARENT, 9, 8, [1])]
    result = packet(6, 99, 50, RESULT)
    assert told(leaf.process(PARENT, result)) == [(1, 6, 99, [50]), (2, 6, 99, [50])]
    assert told(leaf.process(2, packet(9, 8))) == [(2, 6, 99, [50])]


def test_a_sum_without_values_goes_up_without_and_its_result_may_have_some() -> None:
    leaf = node(2, PARENT)
    leaf.process(1, packet(9, 7))
    assert told(leaf.process(2, packet(12, 8))) == [(PARENT, 9, 7, [])]
    assert told(leaf.process(PARENT, packet(6, 9, 5, RESULT))) == [(1, 6, 9, [5]), (2, 6, 9, [5])]
    assert told(leaf.process(1, packet(9, 7))) == [(1, 6, 9, [5])]
