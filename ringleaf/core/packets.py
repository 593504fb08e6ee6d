"""The packet pool: every packet on a wire, in a queue or in a pipeline is a row of it.

A packet's bytes are its head (in the pool), then its payload (by reference, in a host's
registered memory, as a NIC's scatter list would have it), then zero bytes of tail (the ICRC of
RoCEv2, but for packets that were damaged). So a hop costs the same for 64 bytes and 4 KiB.

While a P4 pipeline has a packet, from ingress until egress has sent it, the packet also has a
header vector (PHV): the program's fields and lanes. Most packets are on wires; so there are fewer
vectors than packets, which go round and stay in the processor's caches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleaf.core.arena import Arena, Bytes, Fields, Lanes, Store, Words
from ringleaf.core.compiled import copy_items, inline
from ringleaf.core.views import window

# Columns of a packet's row in `arena.words`. A packet on a link only needs the first cache line.
HEAD_LEN = 0  # bytes used of the head
PAYLOAD_AT = 1  # offset in arena.memory
PAYLOAD_LEN = 2  # bytes
TAIL_LEN = 3  # zero bytes at the end
PLACE = 4  # number of the port of the network where its next event takes place
DUE_PS = 5  # on a link: when it arrives
ENQUEUED_PS = 5  # in a queue: when it joined it
DUE_WORD = 6  # its order and event then (`ringleaf/core/heap.py`)
AFTER = 7  # the packet that arrives after it by the same link, or -1
IN_PORT = 8  # port of the switch that it came in by, from 1
NEXT = 9  # next packet of its queue, or -1
PHV = 10  # the number of its header vector; 0: no pipeline has it
MARK = 11  # for whoever holds the packet
AGAIN = 12  # 0; of a packet on its way to ingress again: instance_type | field list << 8
PASSES = 13  # how often it came round
TWIN = 14  # the clone that egress has made of it
OWNER = 15  # number of the group that it is sent for, where there are several
ROW_WORDS = 16

# Pool geometry, at fixed places in `arena.words`, so that any component finds it.
POOL_SIZE = 0
VECTORS = 1  # header vectors, besides number 0
ROWS_AT = 3
HEADS_AT = 4
HEAD_BYTES = 5  # room for a head
FIELDS_AT = 6  # of header vector 0, which nobody has
FIELD_COUNT = 7  # room for a P4 program's scalar fields
LANES_AT = 8  # of header vector 0
LANE_COUNT = 9  # room for a P4 program's lanes
HEADER_WORDS = 64

# What each thread has for itself, in `arena.own`.
POOL_FREE = 0  # packets free now, for this thread
FREE_AT = 1  # stack of free packets
OUTBOX_AT = 2  # what left a pipeline just now: rows (packet, egress port)
PHVS_FREE = 3  # header vectors free now, for this thread
FREE_PHVS_AT = 4  # stack of free header vectors
OUTBOX_ROWS = 1024  # also the packets that must be free when a pipeline runs


class Packet(NamedTuple):
    """Views of one packet."""

    row: Words  # (ROW_WORDS,)
    head: Bytes  # (head_bytes,)
    fields: Fields  # (field_count,), of its header vector
    lanes: Lanes  # (lane_count,), of its header vector


@inline
def open_packet(arena: Arena, packet: int) -> Packet:
    """Return a packet of the pool as views: its row, its head, and its vector's fields and lanes.

    The fields and lanes are valid only while the packet has a header vector.
    """
    words = arena.words
    row = words[ROWS_AT] + packet * ROW_WORDS
    head = words[HEADS_AT] + packet * words[HEAD_BYTES]
    fields = words[FIELDS_AT] + words[row + PHV] * words[FIELD_COUNT]
    lanes = words[LANES_AT] + words[row + PHV] * words[LANE_COUNT]
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
    """Give a packet, and its header vector if it has one, back to the pool."""
    own = arena.own
    release_phv(arena, packet)
    free = own[POOL_FREE]
    arena.words[own[FREE_AT] + free] = packet
    own[POOL_FREE] = free + 1


@inline
def take_phv(arena: Arena, packet: int) -> None:
    """Give a packet that a pipeline is about to have a header vector, with anything in it.

    One that has one, as it comes round again, keeps it. The caller keeps enough free (`PHVS_FREE`).
    """
    words, own = arena.words, arena.own
    row = row_of(words, packet)
    if words[row + PHV] == 0:
        free = own[PHVS_FREE] - 1
        assert free >= 0
        own[PHVS_FREE] = free
        words[row + PHV] = words[own[FREE_PHVS_AT] + free]


@inline
def release_phv(arena: Arena, packet: int) -> None:
    """Take back a packet's header vector, if it has one."""
    words, own = arena.words, arena.own
    row = row_of(words, packet)
    phv = words[row + PHV]
    if phv != 0:
        words[own[FREE_PHVS_AT] + own[PHVS_FREE]] = phv
        own[PHVS_FREE] += 1
        words[row + PHV] = 0


@inline
def fields_of(words: Words, packet: int) -> int:
    """Where the fields of a packet's header vector start in `arena.fields`."""
    return words[FIELDS_AT] + words[row_of(words, packet) + PHV] * words[FIELD_COUNT]


@inline
def copy_packet(arena: Arena, packet: int) -> int:
    """Return a new packet that is equal in all: bytes, row and, if it has one, header vector."""
    twin = allocate_packet(arena)
    source, row = open_packet(arena, packet), open_packet(arena, twin).row
    copy_items(row, 0, source.row, 0, ROW_WORDS)
    # The copied row names the source's header vector, which must not have two owners.
    row[PHV] = 0
    if source.row[PHV] != 0:
        take_phv(arena, twin)
    target = open_packet(arena, twin)
    copy_items(target.head, 0, source.head, 0, source.row[HEAD_LEN])
    if source.row[PHV] != 0:
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
def pin_all(arena: Arena, packet: int) -> None:
    """Take the payload and the tail along in the head, which must have room for both."""
    pin_payload(arena, packet)
    view = open_packet(arena, packet)
    row = view.row
    for at in range(row[HEAD_LEN], row[HEAD_LEN] + row[TAIL_LEN]):
        view.head[at] = 0
    row[HEAD_LEN] += row[TAIL_LEN]
    row[TAIL_LEN] = 0


@inline
def row_of(words: Words, packet: int) -> int:
    """Where the packet's row starts in `arena.words`."""
    return words[ROWS_AT] + packet * ROW_WORDS


@inline
def row_bytes(words: Words, row: int) -> int:
    """Length on the wire, Ethernet header to payload (and ICRC), without FCS."""
    return words[row + HEAD_LEN] + words[row + PAYLOAD_LEN] + words[row + TAIL_LEN]


def make_pool(
    store: Store,
    *,
    size: int,
    head_bytes: int,
    field_count: int,
    lane_count: int,
    vectors: int | None = None,
) -> None:
    """Lay the pool out in `store`, which must be new; rows get these fixed widths.

    There is a header vector for each packet, unless `vectors` is another number of them.
    """
    at = store.allocate("words", HEADER_WORDS)
    assert at == 0, "the pool's geometry lies at the start of the arena"
    store.arena.own[OUTBOX_AT] = store.allocate("words", 2 * OUTBOX_ROWS)
    words = store.arena.words
    # Rows take whole cache lines of 64 bytes, so that no two packets share one.
    words[HEAD_BYTES] = -(-head_bytes // 64) * 64
    words[FIELD_COUNT] = -(-field_count // 8) * 8
    words[LANE_COUNT] = -(-lane_count // 16) * 16
    grow_packets(store, size)
    grow_vectors(store, vectors or size)


def grow_pool(store: Store, size: int) -> None:
    """Move the pool to a range for `size` packets, each with a header vector."""
    grow_packets(store, size)
    grow_vectors(store, size)


def grow_packets(store: Store, size: int) -> None:
    """Move packets to a range for `size` of them; they keep their numbers."""
    old = int(store.arena.words[POOL_SIZE])
    tables = (("words", ROWS_AT, ROW_WORDS), ("bytes", HEADS_AT, _width(store, HEAD_BYTES)))
    _grow(store, tables, old, size)
    store.arena.words[POOL_SIZE] = size
    # The end of a stack is taken first, so the numbers descend: packets in use then lie close
    # together at the pool's start.
    _restock(store, FREE_AT, POOL_FREE, np.arange(size - 1, old - 1, -1), size)


def grow_vectors(store: Store, size: int) -> None:
    """Move header vectors to a range for `size` of them, besides number 0; numbers stay."""
    old = int(store.arena.words[VECTORS])
    tables = (
        ("fields", FIELDS_AT, _width(store, FIELD_COUNT)),
        ("lanes", LANES_AT, _width(store, LANE_COUNT)),
    )
    _grow(store, tables, old + 1 if old else 0, size + 1)
    store.arena.words[VECTORS] = size
    _restock(store, FREE_PHVS_AT, PHVS_FREE, np.arange(size, old, -1), size)


def _width(store: Store, word: int) -> int:
    return int(store.arena.words[word])


def _grow(store: Store, tables: tuple[tuple[str, int, int], ...], old: int, size: int) -> None:
    """Move tables (array, word of the offset, width of a row) to ranges for `size` rows."""
    assert size > old
    for array, at_word, width in tables:
        at = store.allocate(array, size * width)
        flat = getattr(store.arena, array)
        came = int(store.arena.words[at_word])
        flat[at : at + old * width] = flat[came : came + old * width]
        store.arena.words[at_word] = at


def _restock(store: Store, at_word: int, count_word: int, new: Words, size: int) -> None:
    """Give each thread a stack for `size` numbers, and deal out the free ones and new ones."""
    # The free numbers of all threads are read before the stacks move, as `_free` looks them up
    # there.
    free = np.concatenate((_free(store, at_word, count_word), new))
    for arena in store.arenas:
        arena.own[at_word] = store.allocate("words", size)
    _deal(store, at_word, count_word, free)


def share_pool(store: Store, threads: int) -> None:
    """Have so many threads take packets from the pool, and free them, at the same time."""
    store.share(threads)
    words = store.arena.words
    packets, vectors = int(words[POOL_SIZE]), int(words[VECTORS])
    for arena in store.arenas:
        if not arena.own[OUTBOX_AT]:
            arena.own[OUTBOX_AT] = store.allocate("words", 2 * OUTBOX_ROWS)
            arena.own[FREE_AT] = store.allocate("words", packets)
            arena.own[FREE_PHVS_AT] = store.allocate("words", vectors)
    deal_packets(store)


def deal_packets(store: Store) -> None:
    """Give each thread as many free packets, and header vectors, as any other."""
    for at_word, count_word in ((FREE_AT, POOL_FREE), (FREE_PHVS_AT, PHVS_FREE)):
        _deal(store, at_word, count_word, _free(store, at_word, count_word))


def free_packets(store: Store) -> int:
    """Return the number of packets that are free."""
    return sum(int(arena.own[POOL_FREE]) for arena in store.arenas)


def packets_in_use(store: Store) -> int:
    """Return the number of packets that are under way, or lost to the pool."""
    return int(store.arena.words[POOL_SIZE]) - free_packets(store)


def free_vectors(store: Store) -> int:
    """Return the number of header vectors that are free."""
    return sum(int(arena.own[PHVS_FREE]) for arena in store.arenas)


def has_few(arena: Arena, least: int) -> bool:
    """Return whether a thread has fewer free packets, or header vectors, than these."""
    return min(int(arena.own[POOL_FREE]), int(arena.own[PHVS_FREE])) < least


def _free(store: Store, at_word: int, count_word: int) -> Words:
    """Return what is free, of all threads."""
    words = store.arena.words
    stacks = [(int(arena.own[at_word]), int(arena.own[count_word])) for arena in store.arenas]
    return np.concatenate([words[start : start + count] for start, count in stacks])


def _deal(store: Store, at_word: int, count_word: int, free: Words) -> None:
    words = store.arena.words
    for arena, part in zip(store.arenas, np.array_split(free, len(store.arenas)), strict=True):
        start = int(arena.own[at_word])
        words[start : start + len(part)] = part
        arena.own[count_word] = len(part)


def widen_pool(store: Store, *, head_bytes: int, field_count: int, lane_count: int) -> None:
    """Make the rows at least so wide; packets in use keep their numbers and what they hold."""
    packets, vectors = (POOL_SIZE, 0, FREE_AT, POOL_FREE), (VECTORS, 1, FREE_PHVS_AT, PHVS_FREE)
    widths = {
        HEAD_BYTES: ("bytes", HEADS_AT, packets, -(-head_bytes // 64) * 64),
        FIELD_COUNT: ("fields", FIELDS_AT, vectors, -(-field_count // 8) * 8),
        LANE_COUNT: ("lanes", LANES_AT, vectors, -(-lane_count // 16) * 16),
    }
    for width_word, (array, at_word, stock, width) in widths.items():
        came, old = (int(store.arena.words[word]) for word in (at_word, width_word))
        if width <= old:
            continue
        count_word, more, *free_words = stock
        size = int(store.arena.words[count_word]) + more
        at = store.allocate(array, size * width)
        flat = getattr(store.arena, array)
        # Most are free, and rows that are never written to take no memory.
        used = np.setdiff1d(np.arange(size), _free(store, *free_words))
        rows = flat[at : at + size * width].reshape(size, width)
        rows[used, :old] = flat[came : came + size * old].reshape(size, old)[used]
        store.arena.words[at_word], store.arena.words[width_word] = at, width


def empty_pool(store: Store) -> None:
    """Make all packets free; nobody may hold one any more."""
    words = store.arena.words
    _deal(store, FREE_AT, POOL_FREE, np.arange(int(words[POOL_SIZE]) - 1, -1, -1))
    _deal(store, FREE_PHVS_AT, PHVS_FREE, np.arange(int(words[VECTORS]), 0, -1))


def read_packet(arena: Arena, packet: int) -> bytes:
    """Return the packet's bytes as they are on the wire."""
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
