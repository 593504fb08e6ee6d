"""forward.p4, packet by packet; scapy knows what a right packet is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import finsy as fy
import numpy as np
import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw
from switch_packets import make_switch, udp

from ringleaf.core.packets import free_packet, open_packet, read_packet, write_packet
from ringleaf.networks.forwarding import salt
from ringleaf.switches.engine.layout import ENQ_QDEPTH
from ringleaf.switches.switch import Switch

NEXT_MAC = "02:00:00:00:00:07"


def route(dst: str, action: fy.P4TableAction) -> fy.P4TableEntry:
    return fy.P4TableEntry("ipv4_lpm", match=fy.P4TableMatch(dst=dst), action=action)


def forward(port: int) -> fy.P4TableAction:
    return fy.P4TableAction("forward", port=port, dmac=NEXT_MAC)


def rows(base: int, ports: list[int]) -> list[fy.P4TableEntry]:
    return [
        fy.P4TableEntry(
            "ecmp_nexthop", match=fy.P4TableMatch(nexthop=base + i), action=forward(port)
        )
        for i, port in enumerate(ports)
    ]


@pytest.fixture(params=["forward", "switchml-64", "tensorexpress", "hpcc"])
def switch(request: pytest.FixtureRequest) -> Switch:
    """10.0.1.0/24 by port 1, but 10.0.1.9 by port 2; 10.2.0.0/16 by ports 3, 4 and 5."""
    group = fy.P4TableAction("ecmp", base=10, count=3, salt=salt("s1"))
    entities = [
        route("10.0.1.0/24", forward(1)),
        route("10.0.1.9/32", forward(2)),
        route("10.2.0.0/16", group),
        *rows(10, [3, 4, 5]),
    ]
    return make_switch(request.param, 8, entities)


def test_a_hop_costs_one_ttl_and_keeps_the_checksum_right(switch: Switch) -> None:
    sent = udp() / Raw(b"some payload")

    ((port, out),) = switch.process(6, bytes(sent))

    want = sent.copy()
    want[IP].ttl -= 1
    want[Ether].src, want[Ether].dst = sent[Ether].dst, NEXT_MAC
    assert (port, out) == (1, bytes(want))


def test_a_detour_is_for_one_source_and_destination(switch: Switch) -> None:
    match = fy.P4TableMatch(src="10.0.0.7", dst="10.2.0.1")
    action = fy.P4TableAction("take_nexthop", row=11)
    switch.write([fy.P4TableEntry("detours", match=match, action=action)])

    def ways(src: str, dst: str) -> set[int]:
        packets = [bytes(udp(src=src, dst=dst, sport=sport)) for sport in range(40)]
        return {port for packet in packets for port, _ in switch.process(1, packet)}

    assert ways("10.0.0.7", "10.2.0.1") == {4}
    assert ways("10.0.0.7", "10.2.0.2") == ways("10.0.0.8", "10.2.0.1") == {3, 4, 5}


def test_the_longest_prefix_wins(switch: Switch) -> None:
    assert [port for port, _ in switch.process(1, bytes(udp(dst="10.0.1.9")))] == [2]


def broken_checksum() -> Packet:
    packet = Ether(bytes(udp()))
    packet[IP].chksum ^= 1
    return packet


@pytest.mark.parametrize(
    "packet",
    [
        udp(dst="10.9.9.9"),
        udp(ttl=1),
        udp(ttl=0),
        broken_checksum(),
        udp(options=[b"\x01" * 4]),
        Ether() / ARP(),
        Ether() / IPv6(),
        Ether(bytes(udp())[:20]),
    ],
    ids=["no route", "last hop", "no hops", "damaged", "options", "ARP", "IPv6", "cut off"],
)
def test_what_cannot_be_forwarded_is_dropped(switch: Switch, packet: Packet) -> None:
    assert switch.process(1, bytes(packet)) == []


def flow_port(switch: Switch, packet: Packet) -> int:
    ((port, _),) = switch.process(1, bytes(packet))
    return port


def test_flows_spread_over_a_group_and_stay_in_order(switch: Switch) -> None:
    flows = [udp(dst="10.2.3.4", sport=49152 + i, dport=4791) for i in range(300)]
    ports = [flow_port(switch, flow) for flow in flows]

    assert ports == [flow_port(switch, flow / Raw(b"more")) for flow in flows]
    shares = Counter(ports)
    assert set(shares) == {3, 4, 5}
    assert min(shares.values()) > 70


@pytest.mark.parametrize(
    "changed",
    [{"src": "10.0.0.2"}, {"dst": "10.2.3.5"}, {"sport": 1}, {"dport": 2}],
    ids=lambda changed: next(iter(changed)),
)
def test_each_field_of_the_flow_matters(switch: Switch, changed: dict[str, object]) -> None:
    plain = [{"dst": "10.2.3.4", "src": f"10.0.{i}.1"} for i in range(20)]
    kept = [flow_port(switch, udp(**flow)) for flow in plain]
    moved = [flow_port(switch, udp(**(flow | changed))) for flow in plain]

    assert kept != moved


@pytest.mark.parametrize(
    "make",
    [
        lambda host: IP(src=host, dst="10.2.0.1") / ICMP(),
        lambda host: IP(src=host, dst="10.2.0.1") / TCP(sport=1, dport=2),
        lambda host: IP(src=host, dst="10.2.0.1", frag=5) / UDP(sport=1, dport=2),
    ],
    ids=["ICMP", "TCP", "later fragment"],
)
def test_other_protocols_spread_too(switch: Switch, make: Callable[[str], Packet]) -> None:
    ports = {flow_port(switch, Ether() / make(f"10.0.0.{i}")) for i in range(40)}

    assert ports == {3, 4, 5}


def test_fragments_follow_their_addresses(switch: Switch) -> None:
    """Their bytes where ports would be are payload."""
    fragments = [udp(dst="10.2.0.1", frag=5, sport=i) for i in range(20)]

    assert len({flow_port(switch, fragment) for fragment in fragments}) == 1


def test_two_tiers_split_flows_independently() -> None:
    """Flows that one switch sends the same way must not all go the same way at the next."""
    tiers = [
        make_switch(
            "forward",
            4,
            [
                route("10.0.0.0/8", fy.P4TableAction("ecmp", base=0, count=2, salt=salt(name))),
                *rows(0, [1, 2]),
            ],
        )
        for name in ("s4", "s9")
    ]
    shares = Counter(
        tuple(flow_port(tier, udp(sport=49152 + i, dport=4791)) for tier in tiers)
        for i in range(400)
    )

    assert len(shares) == 4
    assert min(shares.values()) > 60


def mark(switch: Switch, packet: Packet, depth: int) -> Packet:
    """What egress makes of a packet that met `depth` others in its queue."""
    arena = switch.store.arena
    number = write_packet(arena, bytes(packet))
    switch.program.ingress(arena, switch.at, number, 0)
    open_packet(arena, number).fields[ENQ_QDEPTH] = np.uint64(depth)
    assert switch.program.egress(arena, switch.at, number, 0) == 1
    out = read_packet(arena, number)
    free_packet(arena, number)
    return Ether(out)


@pytest.mark.parametrize(("depth", "share"), [(5, 0.0), (15, 0.25), (24, 0.475), (25, 1.0)])
def test_between_two_depths_it_is_chance_that_marks(depth: int, share: float) -> None:
    """Kmin 5, Kmax 25, Pmax 50 %: 1/2 of (15 - 5) / (25 - 5), for instance."""
    runs = []
    for seed in (1, 1, 2):
        switch = make_switch("forward", 4, [route("10.0.0.0/8", forward(1))], seed=seed)
        action = fy.P4TableAction("mark_between", least=5, full=25, last=39)
        switch.write([fy.P4TableEntry("ecn_threshold", action=action, is_default_action=True)])
        runs.append([mark(switch, udp(tos=2), depth)[IP].tos & 3 == 3 for _ in range(400)])

    assert runs[0] == runs[1], "a seed says what is marked"
    assert (runs[0] != runs[2]) == (0 < share < 1)
    assert abs(sum(runs[0]) / 400 - share) <= 4 * (share * (1 - share) / 400) ** 0.5


@pytest.mark.parametrize(
    ("threshold", "depth", "before", "after"),
    [
        (5, 5, 2, 3),
        (5, 6, 1, 3),
        (5, 4, 2, 2),
        (5, 9, 0, 0),
        (5, 9, 3, 3),
        (0, 9, 2, 2),
    ],
)
def test_long_queues_are_marked(
    switch: Switch, threshold: int, depth: int, before: int, after: int
) -> None:
    action = fy.P4TableAction("mark_from", threshold=threshold)
    switch.write([fy.P4TableEntry("ecn_threshold", action=action, is_default_action=True)])

    out = mark(switch, udp(tos=0x28 | before), depth)

    assert out[IP].tos == 0x28 | after
    checksum = out[IP].chksum
    del out[IP].chksum
    assert Ether(bytes(out))[IP].chksum == checksum
