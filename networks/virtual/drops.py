"""Counts and times of dropped packets by queue and source, in a table that the loop fills.

A hash table with open addressing, keyed by port, class and source address. It costs nothing until
a queue is full. Once half of its rows are taken, new keys are counted together in a row of their
own, so that totals are always right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import inline, signed
from ringleaf.core.headers import ETHERTYPE_AT, ETHERTYPE_IPV4, IP_DST_AT, IP_SRC_AT, get16, get32
from ringleaf.core.packets import HEAD_LEN, open_packet, row_bytes, row_of
from ringleaf.networks.virtual.state import NetworkState

LEAST_ROWS = 1024  # powers of two
MOST_ROWS = 1 << 16
_SCRAMBLE = 40503  # 2^16 / golden ratio (Knuth, TAOCP 3, 6.4)

# A row.
KEY = 0  # port << 3 | class, plus 1; 0: the row is free
SOURCE = 1  # IPv4 address, 0 if there is none
PACKETS = 2
BYTES = 3
FIRST_PS = 4
LAST_PS = 5


@dataclass(frozen=True, slots=True)
class DropCount:
    """The packets of one source that one queue dropped."""

    port: int  # its number in the network; -1: many ports
    level: int  # class
    source: int  # IPv4 address; 0: unknown, or several
    packets: int
    size_bytes: int
    first_ps: int
    last_ps: int


def watch_drops(store: Store, at: int) -> None:
    """Have the loop count the packets that queues drop."""
    rows = LEAST_ROWS
    while rows < min(4 * store.arena.words[at + s.PORTS], MOST_ROWS):
        rows *= 2
    table = store.allocate("words", (rows + 1) * s.DROP_WORDS)
    store.arena.words[at + s.DROPS_AT] = table
    store.arena.words[at + s.DROP_ROWS] = rows


@inline
def find_row(words: Words, at: int, key: int, source: int) -> int:
    """Return the row of a key, which is taken if it was free; the last one if too many are."""
    rows = words[at + s.DROP_ROWS]
    table = words[at + s.DROPS_AT]
    place = (((key * 31 + source) & 0xFFFFFF) * _SCRAMBLE >> 8) & (rows - 1)
    while True:
        row = table + place * s.DROP_WORDS
        if words[row + KEY] == key and words[row + SOURCE] == source:
            return row
        if words[row + KEY] == 0:
            break
        place = (place + 1) & (rows - 1)
    if 2 * words[at + s.DROP_KEYS] >= rows:
        return table + rows * s.DROP_WORDS
    words[at + s.DROP_KEYS] += 1
    words[row + KEY] = key
    words[row + SOURCE] = source
    return row


@inline
def note_drop(arena: Arena, at: int, port: int, level: int, packet: int, now_ps: int) -> None:
    """Count a packet that found no room in class `level` of a port's queues."""
    words = arena.words
    if words[at + s.DROPS_AT] == 0:
        return
    view = open_packet(arena, packet)
    source = 0
    if view.row[HEAD_LEN] >= IP_DST_AT and get16(view.head, ETHERTYPE_AT) == ETHERTYPE_IPV4:
        source = signed(get32(view.head, IP_SRC_AT))
    row = find_row(words, at, (port << 3 | level) + 1, source)
    if words[row + PACKETS] == 0:
        words[row + FIRST_PS] = now_ps
    words[row + LAST_PS] = now_ps
    words[row + PACKETS] += 1
    words[row + BYTES] += row_bytes(words, row_of(words, packet))


def clear_drops(net: NetworkState) -> None:
    """Forget all drops."""
    net.drops[:] = 0
    net.state[s.DROP_KEYS] = 0


def read_drops(nets: Iterable[NetworkState]) -> list[DropCount]:
    """Return the counts of all regions, by port, class and source."""
    taken = sorted(row for net in nets for row in net.drops[net.drops[:, PACKETS] > 0].tolist())
    return [
        DropCount(
            port=(row[KEY] - 1) >> 3,
            level=(row[KEY] - 1) & 7 if row[KEY] else 0,
            source=row[SOURCE],
            packets=row[PACKETS],
            size_bytes=row[BYTES],
            first_ps=row[FIRST_PS],
            last_ps=row[LAST_PS],
        )
        for row in taken
    ]
