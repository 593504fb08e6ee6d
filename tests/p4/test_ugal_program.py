"""Adaptive ways in `p4/ugal.p4`, packet by packet."""

from __future__ import annotations

from pathlib import Path

import finsy as fy
import numpy as np
import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from switch_packets import BUILD, make_switch, udp

from ringleaf.core.packets import free_packet, open_packet, write_packet
from ringleaf.core.units import PS_PER_US
from ringleaf.switches.engine.layout import DEQ_QDEPTH, EGRESS_PORT
from ringleaf.switches.stf.outcome import StfVerdict
from ringleaf.switches.stf.runner import StfTest, run_test
from ringleaf.switches.switch import Switch

USUAL, DETOUR = 1, 2
"""Ports, of a way of one link and one of two."""

GAP_US = 5
MARK = 0b100
"""In a TOS, the lowest bit of DSCP."""


def hosts() -> fy.P4TableMatch:
    return fy.P4TableMatch(src="10.0.0.1", dst="10.0.1.1")


def entry(table: str, match: fy.P4TableMatch | None, name: str, **values: int) -> fy.P4TableEntry:
    action = fy.P4TableAction(name, **values)
    if match is None:
        return fy.P4TableEntry(table, action=action, is_default_action=True)
    return fy.P4TableEntry(table, match=match, action=action)


def on_the_way() -> Switch:
    """A switch that has a detour for these hosts, and is not their first one."""
    group = {"base": 0, "count": 1, "salt": 1}
    return make_switch(
        "ugal",
        4,
        [
            entry("ipv4_lpm", fy.P4TableMatch(dst="10.0.1.1/32"), "ecmp", **group),
            entry("detours", hosts(), "take_nexthop", row=1),
            *(
                entry("ecmp_nexthop", fy.P4TableMatch(nexthop=row), "forward", port=port, dmac=7)
                for row, port in enumerate((USUAL, DETOUR))
            ),
        ],
    )


@pytest.fixture
def first() -> Switch:
    """The first switch of these hosts' packets."""
    switch = on_the_way()
    both = {"port": USUAL, "detour_port": DETOUR, "links": 1, "detour_links": 2}
    first_switch = entry("first_switch", hosts(), "weigh", **both)
    switch.write([first_switch, entry("flowlets", None, "begin_after", gap=GAP_US)])
    return switch


def leave_behind(switch: Switch, usual: int, detour: int, level: int = 0) -> None:
    """Have packets behind in both queues of a class."""
    for port, packets in ((USUAL, usual), (DETOUR, detour)):
        switch.write_register("left_behind", 8 * port + level, packets)


def way(switch: Switch, now_us: int = 100, *, tos: int = 2, sport: int = 9) -> tuple[int, int]:
    """Return the port by which a packet leaves, and its TOS then."""
    ((port, out),) = switch.process(3, bytes(udp(tos=tos, sport=sport)), now_us * PS_PER_US)
    packet = Ether(out)
    checksum = packet[IP].chksum
    del packet[IP].chksum
    assert Ether(bytes(packet))[IP].chksum == checksum
    return port, packet[IP].tos


@pytest.mark.parametrize(
    ("usual", "detour", "port"),
    [(0, 0, USUAL), (1, 0, DETOUR), (2, 1, USUAL), (3, 1, DETOUR), (7, 4, USUAL), (0, 9, USUAL)],
)
def test_the_smaller_product_of_queue_and_links_is_taken(
    first: Switch, usual: int, detour: int, port: int
) -> None:
    leave_behind(first, usual, detour)
    assert way(first) == (port, 2 | (MARK if port == DETOUR else 0))


def test_other_switches_go_by_the_mark() -> None:
    switch = on_the_way()
    leave_behind(switch, 9, 0)
    assert way(switch, tos=2) == (USUAL, 2)
    assert way(switch, tos=2 | MARK) == (DETOUR, 2 | MARK)


def test_a_mark_from_elsewhere_is_taken_away(first: Switch) -> None:
    assert way(first, tos=2 | MARK) == (USUAL, 2)


def test_packets_wait_behind_those_of_their_class(first: Switch) -> None:
    urgent = 0xC0 | 2
    leave_behind(first, 9, 0, level=0)
    leave_behind(first, 0, 0, level=6)
    assert way(first, tos=urgent, sport=1) == (USUAL, urgent)
    leave_behind(first, 9, 0, level=6)
    assert way(first, tos=urgent, sport=2) == (DETOUR, urgent | MARK)


@pytest.mark.parametrize("begin_us", [0, 100])
def test_a_flow_keeps_its_way_until_it_pauses(first: Switch, begin_us: int) -> None:
    """Each packet makes the pause begin anew; other flows decide by themselves."""
    ways = []
    for queue, now_us in ((9, 0), (0, 5), (0, 10), (0, 16), (9, 17), (9, 22), (9, 28)):
        leave_behind(first, queue, 0)
        ways.append(way(first, begin_us + now_us)[0])
    assert ways == [*[DETOUR] * 3, *[USUAL] * 3, DETOUR]
    leave_behind(first, 0, 0)
    assert way(first, begin_us + 28, sport=10)[0] == USUAL


def test_a_packet_tells_what_it_left_behind(first: Switch) -> None:
    arena = first.store.arena
    packet = write_packet(arena, bytes(udp(tos=0xC0 | 2)))
    first.program.ingress(arena, first.at, packet, 0)
    fields = open_packet(arena, packet).fields
    fields[EGRESS_PORT], fields[DEQ_QDEPTH] = np.uint64(USUAL), np.uint64(7)
    assert first.program.egress(arena, first.at, packet, 0) == 1
    free_packet(arena, packet)
    left = first.read_registers("left_behind")
    assert {queue: packets for queue, packets in left.items() if packets} == {8 * USUAL + 6: 7}


@pytest.mark.parametrize("switch", ["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def test_bmv2_chooses_the_same_ways(switch: str) -> None:
    outcome = run_test(StfTest(BUILD / "ugal.json", Path(__file__).with_name("ugal.stf"), switch))
    assert (outcome.verdict, outcome.detail) == (StfVerdict.PASSED, ()), outcome
