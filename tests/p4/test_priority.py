"""Which queue the programs choose for a packet."""

from __future__ import annotations

from typing import Any

import finsy as fy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from switch_packets import make_switch, switchml, udp

from ringleaf.core.packets import IN_PORT, free_packet, open_packet, write_packet
from ringleaf.ina.switchml import wire
from ringleaf.networks.forwarding import tensor_queues
from ringleaf.switches.engine.layout import PRIORITY
from ringleaf.switches.switch import Switch

ROUTE = fy.P4TableEntry(
    "ipv4_lpm",
    match=fy.P4TableMatch(dst="10.0.1.0/24"),
    action=fy.P4TableAction("forward", port=1, dmac="02:00:00:00:00:07"),
)
JOB = fy.P4TableEntry(
    "members",
    match=fy.P4TableMatch(job=3, ingress_port=1),
    action=fy.P4TableAction(
        "from_child", child=1, children=3, parent_port=0, group=1, base=0, slots=1
    ),
)


def queue_of(switch: Switch, packet: Packet) -> int:
    arena = switch.store.arena
    number = write_packet(arena, bytes(packet))
    open_packet(arena, number).row[IN_PORT] = 1
    switch.program.ingress(arena, switch.at, number, 0)
    queue = int(open_packet(arena, number).fields[PRIORITY])
    free_packet(arena, number)
    return queue


def roce(job: int, tos: int) -> Packet:
    body = bytes([0, 0]) + (0x8000 | job).to_bytes(2, "big") + bytes(8 + 20)
    return udp(sport=0xC000, dport=4791, tos=tos) / Raw(body)


@pytest.mark.parametrize("name", ["forward", "switchml-64", "tensorexpress"])
def test_class_selectors_are_queues(name: str) -> None:
    switch = make_switch(name, 2, [ROUTE])

    assert [queue_of(switch, udp(tos=dscp << 2 | 2)) for dscp in range(64)] == [
        dscp >> 3 for dscp in range(64)
    ]


def test_partial_sums_and_results_keep_their_updates_class() -> None:
    switch = make_switch("switchml-64", 2, [JOB])
    update = bytearray(switchml(wire.UPDATE, values=[1]))
    update[15] = 6 << 5 | 2
    packet = Ether(bytes(update))
    del packet[IP].chksum

    assert queue_of(switch, packet) == 6


@given(
    job=st.sampled_from([1, 2, 0x7FFF]),
    dscp=st.integers(0, 63),
    rows=st.dictionaries(
        st.tuples(st.sampled_from([None, 1, 2]), st.integers(0, 7)), st.integers(0, 7), max_size=6
    ),
)
def test_tensor_queues_are_the_control_planes(
    job: int, dscp: int, rows: dict[tuple[int | None, int], int]
) -> None:
    """A row of the job's own goes before one of all jobs, and that before the class selector."""
    switch = make_switch("tensorexpress", 2, [ROUTE, *tensor_queues(rows)])
    level = dscp >> 3
    wanted: Any = rows.get((job, level), rows.get((None, level), level))

    assert queue_of(switch, roce(job, dscp << 2 | 2)) == wanted
    assert queue_of(switch, udp(tos=dscp << 2)) == level, "of no job"
