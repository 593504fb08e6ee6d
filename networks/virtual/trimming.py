"""Packets whose payload is cut off where a queue is full, so that at least their headers arrive.

A switch's queue that has no room for a packet of data cuts it behind its headers, and puts it in
class 7, which other switches then read in its DSCP, too. So it overtakes the data, and the receiver
knows at once which packet is missing (`hosts/rc/trimming.py`). Headers have room of their own
beside the queue's. Other packets, and headers that find no room either, are dropped.

Source:
    Handley et al., "Re-architecting datacenter networks and stacks for low latency and high
    performance" (NDP), SIGCOMM 2017, section 3; Ultra Ethernet 1.0 trims likewise. There, queues
    are served 10 to 1, and half of the packets are cut at the queue's end; here headers go first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Bytes, Store
from ringleaf.core.compiled import address_of, handler, inline, signed
from ringleaf.core.headers import PRIORITIES, write_ip_checksum, write_priority
from ringleaf.core.packets import (
    HEAD_LEN,
    PAYLOAD_LEN,
    TAIL_LEN,
    open_packet,
    row_bytes,
    row_of,
)
from ringleaf.errors import ConfigError
from ringleaf.hosts.rc.wire import (
    HEAD_BYTES,
    OPCODE_AT,
    SEND_ONLY,
    TELEMETRY_MASK,
    UDP_PORT,
    telemetry_bytes,
)
from ringleaf.networks.virtual.bins import note_queues
from ringleaf.networks.virtual.lines import await_idle
from ringleaf.networks.virtual.state import node_row, open_network, port_row
from ringleaf.networks.virtual.stations import udp_port
from ringleaf.switches.engine.layout import PRIORITY
from ringleaf.switches.engine.queues import (
    BYTES,
    CAPACITY_BYTES,
    CLASS_BYTES,
    DROPPED,
    TRIMMED,
    push,
)
from ringleaf.switches.source import FieldSource
from ringleaf.switches.switch import Switch

# The block at TRIM_AT of the network's: the handler's address, then the room for headers.
ROOM = 1  # bytes per port
BLOCK_WORDS = 8

URGENT = PRIORITIES - 1
DSCP_SHIFT = 3  # of a class selector in a DSCP
DSCP = FieldSource("ipv4", "dscp")


def lay_out_trimming(
    store: Store, network: int, switches: Mapping[str, Switch], room_bytes: int
) -> None:
    """Have a network's switches trim packets; regions copy its block later.

    Args:
        store: The store that holds the network.
        network: Its block's offset.
        switches: Its switches, in their order.
        room_bytes: Room for headers per port.

    Raises:
        ConfigError: If a switch's program has no field for the DSCP.
    """
    block = store.allocate("words", BLOCK_WORDS)
    words = store.arena.words
    words[block], words[block + ROOM] = address_of(trim), room_bytes
    words[network + s.TRIM_AT] = block
    nodes = open_network(store.arena, network).nodes
    for row, (name, switch) in zip(nodes, switches.items(), strict=False):
        slots = switch.program.module.storage.slots
        if DSCP not in slots:
            raise ConfigError(
                f"trim: {name} must run a program with ipv4.dscp, which says that a packet is "
                f"urgent, got {switch.program.name!r}"
            )
        row[s.DSCP_SLOT] = slots[DSCP]


@inline
def headers_of(arena: Arena, packet: int) -> int:
    """Return the bytes that a packet of rc's data keeps when it is cut; 0 if it can't be."""
    if udp_port(arena, packet) != UDP_PORT:
        return 0
    view = open_packet(arena, packet)
    opcode = int(view.head[OPCODE_AT])
    keeps = HEAD_BYTES + telemetry_bytes(opcode)
    if telemetry_bytes(opcode) > 0:
        opcode &= ~TELEMETRY_MASK
    is_longer = view.row[HEAD_LEN] + view.row[PAYLOAD_LEN] > keeps >= HEAD_BYTES
    return keeps if opcode <= SEND_ONLY and is_longer and view.row[HEAD_LEN] >= keeps else 0


@inline
def push_beside(arena: Arena, queues: int, packet: int, level: int, more_bytes: int) -> None:
    """Append a packet to queues that have so much more room for it."""
    words = arena.words
    words[queues + CAPACITY_BYTES] += more_bytes
    push(words, queues, packet, level)
    words[queues + CAPACITY_BYTES] -= more_bytes
    words[queues + DROPPED] -= 1  # of the attempt before


@inline
def cut(arena: Arena, packet: int, keeps: int, slot: int) -> None:
    """Cut a packet behind its headers, and make it urgent."""
    view = open_packet(arena, packet)
    view.row[HEAD_LEN] = keeps
    view.row[PAYLOAD_LEN] = view.row[TAIL_LEN] = 0
    head: Bytes = view.head
    write_priority(head, URGENT)
    write_ip_checksum(head)
    view.fields[PRIORITY] = np.uint64(URGENT)
    view.fields[slot] = np.uint64(URGENT << DSCP_SHIFT)


@handler
def trim(arena: Arena, at: int, packed: int, now_ps: int) -> int:
    """Queue a packet that found no room, without its payload if it has to be.

    Args:
        arena: The network's memory.
        at: The network's block.
        packed: The packet's number, and above PACKET_BITS its port's.
        now_ps: The time.

    Returns:
        1 if it is in a queue, 0 if it must be dropped.
    """
    words = arena.words
    packet, port = packed & (1 << s.PACKET_BITS) - 1, packed >> s.PACKET_BITS
    here = port_row(words, at, port)
    queues, room = words[here + s.QUEUES_AT], words[words[at + s.TRIM_AT] + ROOM]
    urgent_bytes = words[queues + CLASS_BYTES + URGENT]
    size = row_bytes(words, row_of(words, packet))
    level = signed(open_packet(arena, packet).fields[PRIORITY]) & 7
    if words[queues + BYTES] - urgent_bytes + size <= words[queues + CAPACITY_BYTES]:
        if level == URGENT and urgent_bytes + size > room:
            return 0
        push_beside(arena, queues, packet, level, urgent_bytes + size)
    else:
        keeps = headers_of(arena, packet)
        if keeps == 0 or urgent_bytes + keeps > room:
            return 0
        node = node_row(words, at, words[here + s.NODE])
        cut(arena, packet, keeps, words[node + s.DSCP_SLOT])
        words[queues + TRIMMED] += 1
        push_beside(arena, queues, packet, URGENT, urgent_bytes + size)
    await_idle(words, at, port)
    if words[at + s.QUEUE_BINS_AT]:
        note_queues(words, at, port, now_ps)
    return 1
