"""netreduce.p4, packet by packet: as many packets leave as came, with the sum, and none twice."""

from __future__ import annotations

import struct

import finsy as fy
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from switch_packets import make_switch, udp

from ringleaf.switches.switch import Switch

JOB, SLOTS, QP, PORT = 3, 4, 2, 0xBED3
PARENT = 7
FIRST, MIDDLE, ACKNOWLEDGE = 0, 1, 0x11
TO_PARENT, FOR_ALL, FOR_ONE = 0, 1, 2
BASES = {1: 0, 2: 1000, 3: 0xFFFFFE}
"""The first PSN of the connection that ends at the host of a port, 24 bits."""

Out = list[tuple[int, bytes]]


def address(port: int) -> str:
    return f"10.0.0.{port}"


def before(port: int) -> int:
    """The port of the host that sends to the one at a port."""
    return port - 1 if port > 1 else 3


def node(parent: int = 0) -> Switch:
    """A switch with three hosts: the ring goes from port 1 to 2, 3 and 1 again."""
    share = {"children": 0b111, "group": JOB, "base": 0, "slots": SLOTS}
    members = {
        port: fy.P4TableAction("from_child", child=1 << port - 1, parent_port=parent, **share)
        for port in BASES
    }
    if parent:
        members[parent] = fy.P4TableAction("from_parent", **share)
    entries = [
        fy.P4TableEntry("members", match=fy.P4TableMatch(job=JOB, ingress_port=port), action=each)
        for port, each in members.items()
    ]
    for port, base in BASES.items():
        entries += [
            fy.P4TableEntry(
                "rings",
                match=fy.P4TableMatch(dst=address(port), dst_port=PORT, dest_qp=QP),
                action=fy.P4TableAction("ring", job=JOB, base=base, slots=SLOTS),
            ),
            fy.P4TableEntry(
                "deliveries",
                match=fy.P4TableMatch(job=JOB, port=port),
                action=fy.P4TableAction(
                    "deliver",
                    dmac=port,
                    src=address(before(port)),
                    dst=address(port),
                    source_port=0xC000 + port,
                    dest_qp=QP,
                    base=base,
                ),
            ),
            fy.P4TableEntry(
                "ipv4_lpm",
                match=fy.P4TableMatch(dst=f"{address(port)}/32"),
                action=fy.P4TableAction("forward", port=port, dmac=port),
            ),
        ]
    group = fy.P4MulticastGroupEntry(JOB, replicas=list(BASES))
    return make_switch("netreduce-64", 8, [group, *entries])


def packet(
    to: int, *values: int, position: int = 0, opcode: int = MIDDLE, flags: int = 0, lanes: int = 64
) -> bytes:
    """A packet of the connection that ends at a port's host, at a position of the ring."""
    psn = (position + BASES[to]) % 2**24
    bth = struct.pack(">BBHII", opcode, flags, 0xFFFF, QP, psn)
    padded = [value % 2**32 for value in values] + [0] * (lanes - len(values))
    body = bth + struct.pack(f">{lanes}I", *padded) + bytes(4)
    fields = {"src": address(before(to)), "dst": address(to)}
    return bytes(udp(**fields, sport=0xC000 + to, dport=PORT) / Raw(body))


def read(data: bytes) -> tuple[str, str, int, int, int, int]:
    """Source, destination, source port, flags, PSN and the first value of a packet."""
    found = Ether(data)
    header = found[IP]
    was = header.chksum
    del header.chksum
    assert IP(bytes(header)).chksum == was
    body = bytes(found[UDP].payload)
    _, flags, _, qp, psn = struct.unpack(">BBHII", body[:12])
    assert qp == QP
    (value,) = struct.unpack(">i", body[12:16])
    return header.src, header.dst, found[UDP].sport, flags, psn, value


def delivered(port: int, value: int, position: int = 0) -> tuple[str, str, int, int, int, int]:
    psn = (position + BASES[port]) % 2**24
    return address(before(port)), address(port), 0xC000 + port, 0, psn, value


def send(switch: Switch, to: int, *values: int, **fields: int) -> Out:
    """Let the host before one send to it."""
    return switch.process(before(to), packet(to, *values, **fields))


@pytest.mark.parametrize("position", [0, 1, 2, 5, 2**24 - 1])
def test_three_packets_come_and_three_go_on_with_the_sum(position: int) -> None:
    root = node()

    assert send(root, 2, 1, position=position) == []
    assert send(root, 3, 20, position=position) == []
    out = send(root, 1, -300, position=position)

    assert [port for port, _ in sorted(out)] == [1, 2, 3]
    assert [read(data) for _, data in sorted(out)] == [
        delivered(port, -279, position) for port in BASES
    ]


def test_a_packet_sent_again_is_not_added_again_and_gets_the_sum() -> None:
    root = node()
    send(root, 2, 1)
    assert send(root, 2, 1) == []
    send(root, 3, 20)
    send(root, 1, 300)

    for to in BASES:  # go-back-N after a loss, whatever the host now has in its memory
        ((port, data),) = send(root, to, 5)
        assert (port, read(data)) == (to, delivered(to, 321))


def test_later_positions_use_slots_again_and_earlier_ones_are_dropped() -> None:
    root = node()
    for to in BASES:
        send(root, to, 1)
    later = 2 * SLOTS
    for to in (2, 3):
        assert send(root, to, 10, position=later) == []
    assert send(root, 1, 1) == []
    out = send(root, 1, 10, position=later)
    assert [read(data)[-1] for _, data in out] == [30, 30, 30]


def test_a_sum_of_a_rack_goes_up_and_the_sum_of_all_comes_down() -> None:
    leaf = node(PARENT)
    send(leaf, 2, 1)
    send(leaf, 3, 2)
    ((port, data),) = send(leaf, 1, 3)
    assert (port, read(data)[3], read(data)[-1]) == (PARENT, TO_PARENT, 6)
    ((port, data),) = send(leaf, 1, 3)
    assert (port, read(data)[-1]) == (PARENT, 6), "sent again, as no result has come"

    out = leaf.process(PARENT, packet(2, 100, flags=FOR_ALL))
    assert [read(data) for _, data in sorted(out)] == [delivered(to, 100) for to in BASES]
    assert leaf.process(PARENT, packet(2, 100, flags=FOR_ALL)) == [], "a duplicate"
    ((port, data),) = leaf.process(PARENT, packet(3, 100, flags=FOR_ONE))
    assert (port, read(data)) == (3, delivered(3, 100)), "an answer from above passes"


def test_other_packets_are_forwarded_as_they_are() -> None:
    root = node()
    for other in (
        packet(2, 7, opcode=ACKNOWLEDGE),
        packet(2, 7)[:-8],  # shorter than its header says: forwarded, and refused by the host
        bytes(udp(src=address(1), dst=address(2), sport=1, dport=4791) / Raw(bytes(300))),
    ):
        out = root.process(1, other)
        if out:
            ((port, data),) = out
            assert port == 2
            assert data[42:] == other[42:]


def test_packets_to_another_job_s_port_are_not_of_the_ring() -> None:
    root = node()

    for port in BASES:
        to_ring = Ether(packet(port, 1))
        to_ring[UDP].dport, to_ring[UDP].chksum = PORT + 1, 0
        assert [to for to, _ in root.process(before(port), bytes(to_ring))] == [port]
