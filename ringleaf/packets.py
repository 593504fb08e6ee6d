"""The packet pool: every packet on a wire, in a queue or in a pipeline is a row of it.

A packet's bytes are its head (in the pool), then its payload (by reference, in a host's
registered memory, as a NIC's scatter list would have it), then zero bytes of tail (the
ICRC of RoCEv2, which nothing here computes). So a hop costs the same for 64 bytes and 4 KiB.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleaf.arena import Arena, Bytes, Fields, Lanes, Store, Words
from ringleaf.compiled import copy_items, inline
from ringleaf.views import window

# Columns of a packet's row in `arena.words`.
HEAD_LEN = 0  # bytes used of the head
PAYLOAD_AT = 1  # offset in arena.memory
PAYLOAD_LEN = 2  # bytes
TAIL_LEN = 3  # zero bytes at the end
IN_PORT = 4  # port of the switch that it came in by, from 1
PLACE = 5  # number of the port of the network where its next event takes place
NEXT = 6  # next packet of its queue, or -1
ENQUEUED_PS = 7  # when it joined its queue
MARK = 8  # for whoever holds the packet
AGAIN = 9  # 0; of a packet on its way to ingress again: instance_type | field list << 8
PASSES = 10  # how often it came round
TWIN = 11  # the clone that egress has made of it
OWNER = 12  # number of the group that it is sent for, where there are several
DUE_PS = 13  # on a link: when it arrives
DUE_WORD = 14  # its order and event then (`ringleaf/heap.py`)
AFTER = 15  # the packet that arrives after it by the same link, or -1
ROW_WORDS = 16

# Pool geometry, at fixed places in `arena.words`, so that any component finds it.
POOL_SIZE = 0
ROWS_AT = 3
HEADS_AT = 4
HEAD_BYTES = 5  # room for a head
FIELDS_AT = 6
FIELD_COUNT = 7  # room for a P4 program's scalar fields
LANES_AT = 8
LANE_COUNT = 9  # room for a P4 program's lanes
HEADER_WORDS = 64

# What each thread has for itself, in `arena.own`.
POOL_FREE = 0  # packets free now, for this thread
FREE_AT = 1  # stack of free packets
OUTBOX_AT = 2  # what left a pipeline just now: rows (packet, egress port)
OUTBOX_ROWS = 1024  # also the packets that must be free when a pipeline runs


class Packet(NamedTuple):
    """Views of one packet."""

    row: Words  # (ROW_WORDS,)
    head: Bytes  # (head_bytes,)
    fields: Fields  # (field_count,), the P4 fields while a pipeline has the packet
    lanes: Lanes  # (lane_count,)


@inline
def open_packet(arena: Arena, packet: int) -> Packet:
    words = arena.words
    row = words[ROWS_AT] + packet * ROW_WORDS
    head = words[HEADS_AT] + packet * words[HEAD_BYTES]
    fields = words[FIELDS_AT] + packet * words[FIELD_COUNT]
    lanes = words[LANES_AT] + packet * words[LANE_COUNT]
    return Packet(
        window(words, row, ROW_WORDS),
        window(arena.bytes, head, words[HEAD_BYTES]),
        window(arena.fields, fields, words[FIELD_COUNT]),
        window(arena.lanes, lanes, words[LANE_COUNT]),
    )


@inline
def allocate_packet(arena: Arena) -> int:
    """Return a packet whose row is zeroed and whose bytes are whatever they were.

    The caller keeps enough packets free (`POOL_FREE`): running out is our bug.
    """
    words, own = arena.words, arena.own
    free = own[POOL_FREE] - 1
    assert free >= 0
    own[POOL_FREE] = free
    packet = words[own[FREE_AT] + free]
    row = words[ROWS_AT] + packet * ROW_WORDS
    for word in range(row, row + ROW_WORDS):
        words[word] = 0
    return packet


@inline
def free_packet(arena: Arena, packet: int) -> None:
    own = arena.own
    free = own[POOL_FREE]
    arena.words[own[FREE_AT] + free] = packet
    own[POOL_FREE] = free + 1


@inline
def copy_packet(arena: Arena, packet: int) -> int:
    """Return a new packet that is equal in all: bytes, row, fields and lanes."""
    twin = allocate_packet(arena)
    source = open_packet(arena, packet)
    target = open_packet(arena, twin)
    copy_items(target.row, 0, source.row, 0, ROW_WORDS)
    copy_items(target.head, 0, source.head, 0, source.row[HEAD_LEN])
    copy_items(target.fields, 0, source.fields, 0, source.fields.size)
    copy_items(target.lanes, 0, source.lanes, 0, source.lanes.size)
    return twin


@inline
def pin_payload(arena: Arena, packet: int) -> None:
    """Take the payload along in the head: what it refers to may change before it arrives."""
    view = open_packet(arena, packet)
    row = view.row
    count = row[PAYLOAD_LEN]
    copy_items(view.head, row[HEAD_LEN], arena.memory, row[PAYLOAD_AT], count)
    row[HEAD_LEN] += count
    row[PAYLOAD_LEN] = 0


@inline
def row_of(words: Words, packet: int) -> int:
    """Where the packet's row starts in `arena.words`."""
    return words[ROWS_AT] + packet * ROW_WORDS


@inline
def row_bytes(words: Words, row: int) -> int:
    """Length on the wire, Ethernet header to payload (and ICRC), without FCS."""
    return words[row + HEAD_LEN] + words[row + PAYLOAD_LEN] + words[row + TAIL_LEN]


def make_pool(
    store: Store, *, size: int, head_bytes: int, field_count: int, lane_count: int
) -> None:
    """Lay the pool out in `store`, which must be new; rows get these fixed widths."""
    at = store.allocate("words", HEADER_WORDS)
    assert at == 0, "the pool's geometry lies at the start of the arena"
    store.arena.own[OUTBOX_AT] = store.allocate("words", 2 * OUTBOX_ROWS)
    words = store.arena.words
    words[HEAD_BYTES] = -(-head_bytes // 64) * 64
    words[FIELD_COUNT] = -(-field_count // 8) * 8
    words[LANE_COUNT] = -(-lane_count // 16) * 16
    grow_pool(store, size)


def grow_pool(store: Store, size: int) -> None:
    """Move the pool to a range for `size` packets; packets keep their numbers."""
    header = store.arena.words[:HEADER_WORDS].copy()
    old = int(header[POOL_SIZE])
    assert size > old
    for array, at_word, width in (
        ("words", ROWS_AT, ROW_WORDS),
        ("bytes", HEADS_AT, int(header[HEAD_BYTES])),
        ("fields", FIELDS_AT, int(header[FIELD_COUNT])),
        ("lanes", LANES_AT, int(header[LANE_COUNT])),
    ):
        at = store.allocate(array, size * width)
        flat = getattr(store.arena, array)
        came = int(header[at_word])
        flat[at : at + old * width] = flat[came : came + old * width]
        store.arena.words[at_word] = at
    free = _free_packets(store)
    for arena in store.arenas:
        arena.own[FREE_AT] = store.allocate("words", size)
    store.arena.words[POOL_SIZE] = size
    _deal(store, np.concatenate((free, np.arange(size - 1, old - 1, -1))))


def share_pool(store: Store, threads: int) -> None:
    """Have so many threads take packets from the pool, and free them, at the same time."""
    store.share(threads)
    size = int(store.arena.words[POOL_SIZE])
    for arena in store.arenas:
        if not arena.own[OUTBOX_AT]:
            arena.own[OUTBOX_AT] = store.allocate("words", 2 * OUTBOX_ROWS)
            arena.own[FREE_AT] = store.allocate("words", size)
    deal_packets(store)


def deal_packets(store: Store) -> None:
    """Give each thread as many free packets as any other; they leave them where they end."""
    _deal(store, _free_packets(store))


def free_packets(store: Store) -> int:
    """Return the number of packets that are free."""
    return sum(int(arena.own[POOL_FREE]) for arena in store.arenas)


def _free_packets(store: Store) -> Words:
    """Return the free packets, of all threads."""
    words = store.arena.words
    stacks = [(int(arena.own[FREE_AT]), int(arena.own[POOL_FREE])) for arena in store.arenas]
    return np.concatenate([words[start : start + count] for start, count in stacks])


def _deal(store: Store, free: Words) -> None:
    words = store.arena.words
    for arena, packets in zip(store.arenas, np.array_split(free, len(store.arenas)), strict=True):
        start = int(arena.own[FREE_AT])
        words[start : start + len(packets)] = packets
        arena.own[POOL_FREE] = len(packets)


def widen_pool(store: Store, *, head_bytes: int, field_count: int, lane_count: int) -> None:
    """Make the rows at least so wide; packets keep their numbers and what they hold."""
    wanted = {
        HEAD_BYTES: ("bytes", HEADS_AT, -(-head_bytes // 64) * 64),
        FIELD_COUNT: ("fields", FIELDS_AT, -(-field_count // 8) * 8),
        LANE_COUNT: ("lanes", LANES_AT, -(-lane_count // 16) * 16),
    }
    for width_word, (array, at_word, width) in wanted.items():
        came, old = (int(store.arena.words[word]) for word in (at_word, width_word))
        if width <= old:
            continue
        size = int(store.arena.words[POOL_SIZE])
        at = store.allocate(array, size * width)
        flat = getattr(store.arena, array)
        rows = flat[at : at + size * width].reshape(size, width)
        rows[:, :old] = flat[came : came + size * old].reshape(size, old)
        store.arena.words[at_word], store.arena.words[width_word] = at, width


def empty_pool(store: Store) -> None:
    """Make all packets free; nobody may hold one any more."""
    _deal(store, np.arange(int(store.arena.words[POOL_SIZE]) - 1, -1, -1))


def read_packet(arena: Arena, packet: int) -> bytes:
    """The packet's bytes as they are on the wire."""
    view = open_packet(arena, packet)
    row = view.row
    payload_at = row[PAYLOAD_AT]
    return (
        view.head[: row[HEAD_LEN]].tobytes()
        + arena.memory[payload_at : payload_at + row[PAYLOAD_LEN]].tobytes()
        + bytes(int(row[TAIL_LEN]))
    )


def write_packet(arena: Arena, data: bytes) -> int:
    """Return a new packet of these bytes, all in the head.

    Longer packets than the pool's heads must have their payload in registered memory.
    """
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    assert len(data) <= view.head.size, f"head of {len(data)} bytes, room for {view.head.size}"
    view.head[: len(data)] = np.frombuffer(data, np.uint8)
    view.row[HEAD_LEN] = len(data)
    return packet
