"""Cross traffic: an agent that sends packets at given times, and takes any that come.

Packets are UDP to the discard port (RFC 863), filled with zeros, and nobody answers them. A packet
that finds its host's port busy waits, and those after it, so the order stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import copy_items, handler, inline
from ringleaf.core.headers import (
    IP_LENGTH_AT,
    IP_TOS_AT,
    UDP_LENGTH_AT,
    UDP_PAYLOAD_AT,
    UDP_SRC_AT,
    put16,
    write_ip_checksum,
    write_udp,
)
from ringleaf.core.packets import HEAD_LEN, TAIL_LEN, allocate_packet, open_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import AGENT_WORDS, READY, TIMER_AT_PS, make_agent

DISCARD_PORT = 9

# The agent's words.
ROWS_AT = 0
ROWS = 1
NEXT = 2  # the first row that has not been sent
HEADS_AT = 3  # in arena.bytes
OWN_WORDS = 4

# A row: one packet.
DUE_PS = 0
SIZE_BYTES = 1  # of the frame, without FCS
HEAD = 2  # number of the head, one for each destination
SOURCE_PORT = 3
TRAFFIC_CLASS = 4  # DSCP, in the upper 6 of 8 bits
ROW_WORDS = 5


def make_cross_traffic(
    store: Store,
    *,
    host: int,
    ring: int,
    own: tuple[int, int],
    others: Sequence[tuple[int, int]],
    rows: npt.NDArray[np.int64],
) -> int:
    """Return the offset of an agent that sends packets; a network must wake it once.

    Args:
        store: The store that holds it.
        host: Its host's index.
        ring: Completion ring; it reports nothing.
        own: Its host's Ethernet and IPv4 addresses.
        others: Those of the hosts that it sends to.
        rows: (packets, ROW_WORDS), in the order of their times; HEAD is a place in `others`.
    """
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(DISCARD_PORT, DISCARD_PORT))
    rows_at = store.allocate("words", rows.size)
    heads_at = store.allocate("bytes", UDP_PAYLOAD_AT * len(others))
    words = store.arena.words
    words[rows_at : rows_at + rows.size] = rows.reshape(-1)
    for number, (mac, ipv4) in enumerate(others):
        head = store.arena.bytes[heads_at + number * UDP_PAYLOAD_AT :][:UDP_PAYLOAD_AT]
        write_udp(head, (own[0], mac), (own[1], ipv4), (DISCARD_PORT, DISCARD_PORT), 0)
    state = words[at + AGENT_WORDS : at + AGENT_WORDS + OWN_WORDS]
    state[ROWS_AT], state[ROWS], state[HEADS_AT] = rows_at, len(rows), heads_at
    await_next(store.arena, at, -1)
    return at


@inline
def await_next(arena: Arena, at: int, now_ps: int) -> None:
    """Say whether the next packet is due, or when it will be."""
    words = arena.words
    own = at + AGENT_WORDS
    due_ps = FOREVER_PS
    if words[own + NEXT] < words[own + ROWS]:
        due_ps = words[words[own + ROWS_AT] + words[own + NEXT] * ROW_WORDS + DUE_PS]
    words[at + READY] = due_ps <= now_ps
    words[at + TIMER_AT_PS] = FOREVER_PS if due_ps <= now_ps else due_ps


@handler
def receive(_arena: Arena, _at: int, _packet: int, _now_ps: int) -> int:
    """Discard a packet."""
    return 0


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the next packet, if it is due."""
    words = arena.words
    await_next(arena, at, now_ps)
    if not words[at + READY]:
        return -1
    own = at + AGENT_WORDS
    row = words[own + ROWS_AT] + words[own + NEXT] * ROW_WORDS
    words[own + NEXT] += 1
    await_next(arena, at, now_ps)
    size = words[row + SIZE_BYTES]
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    template = words[own + HEADS_AT] + words[row + HEAD] * UDP_PAYLOAD_AT
    copy_items(head, 0, arena.bytes, template, UDP_PAYLOAD_AT)
    head[IP_TOS_AT] = words[row + TRAFFIC_CLASS]
    put16(head, IP_LENGTH_AT, size - 14)
    put16(head, UDP_SRC_AT, words[row + SOURCE_PORT])
    put16(head, UDP_LENGTH_AT, size - 34)
    write_ip_checksum(head)
    view.row[HEAD_LEN], view.row[TAIL_LEN] = UDP_PAYLOAD_AT, size - UDP_PAYLOAD_AT
    return packet


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Let the next packet go."""
    await_next(arena, at, now_ps)
    return 0
