"""Bytes that flows have carried, by link and time, as networks of packets count theirs."""

from __future__ import annotations

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
import ringleaf.networks.virtual.state as s
from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import compiled, inline
from ringleaf.core.native_types import ARENA
from ringleaf.hosts.rc.wire import ACK_HEAD_BYTES, ICRC_BYTES
from ringleaf.networks.virtual.bins import find_bin
from ringleaf.networks.virtual.lines import line_bytes
from ringleaf.networks.virtual.state import port_row

ANSWER_BYTES = line_bytes(ACK_HEAD_BYTES + ICRC_BYTES)
MOST_PRODUCT = (1 << 63) - 1  # of bytes and picoseconds, as whole numbers


@inline
def count_bytes(words: Words, at: int, flow: int, size: int, packets: int, now_ps: int) -> None:
    """Count a message, evenly since it began, and its acknowledgements."""
    each = words[n.flow_at(words, at, flow) + n.ANSWERS_EACH]
    count(words, at, flow, size, packets, (packets + each - 1) // each, now_ps)


@inline
def count(
    words: Words, at: int, flow: int, size: int, packets: int, answers: int, now_ps: int
) -> None:
    """Count a flow's bytes, with packets and acknowledgements, as `spread` puts them into bins.

    They reach its links later: those of a bin when another one begins, and all by `settle`.
    """
    row, net = n.flow_at(words, at, flow), words[at + n.NET_AT]
    if words[row + n.COUNTED_PACKETS] == 0:
        words[words[at + n.COUNTED_AT] + words[at + n.COUNTED]] = flow
        words[at + n.COUNTED] += 1
        words[row + n.CROSSED] = crossed(words, at, flow)
        words[row + n.ANSWERS_CROSSED] = crossed(words, at, words[row + n.BACK])
    words[row + n.COUNTED_BYTES] += size
    words[row + n.COUNTED_PACKETS] += packets
    words[row + n.COUNTED_ANSWERS] += answers
    hops = packets * words[row + n.CROSSED] + answers * words[row + n.ANSWERS_CROSSED]
    words[net + s.HOPS] += hops
    spread(words, at, flow, size - words[row + n.PART_BYTES], answers * ANSWER_BYTES, now_ps)
    words[row + n.PART_BYTES] = 0


@inline
def spread(words: Words, at: int, flow: int, left: int, answers_left: int, now_ps: int) -> None:
    """Put bytes into bins, evenly since the message began, or since a part of it was counted."""
    row, net = n.flow_at(words, at, flow), words[at + n.NET_AT]
    from_ps = max(words[row + n.BEGAN_PS], words[row + n.PART_PS])
    if from_ps < words[row + n.BIN_FROM_PS] or now_ps >= words[row + n.BIN_UNTIL_PS]:
        find_bin(words, net, now_ps)  # bins may get wider
        width, since_ps = words[net + s.BIN_PS], words[net + s.BINS_FROM_PS]
        from_ps = max(from_ps, since_ps)
        last_ps = since_ps + (now_ps - since_ps) // width * width
        while from_ps < last_ps:
            until_ps = since_ps + ((from_ps - since_ps) // width + 1) * width
            part = part_of(left, until_ps - from_ps, now_ps - from_ps)
            answers_part = part_of(answers_left, until_ps - from_ps, now_ps - from_ps)
            put_in_bin(words, at, flow, from_ps, part, answers_part)
            left -= part
            answers_left -= answers_part
            from_ps = until_ps
    put_in_bin(words, at, flow, now_ps, left, answers_left)


@inline
def part_of(size: int, part_ps: int, whole_ps: int) -> int:
    """Return the bytes of a part of a time, rounded down; of very many, the first 15 digits."""
    if size <= MOST_PRODUCT // part_ps:
        return size * part_ps // whole_ps
    return int(size * (part_ps / whole_ps))


@inline
def crossed(words: Words, at: int, way: int) -> int:
    """Return how many links a flow crosses, times the flows that it stands for on each."""
    filling = words[at + n.FILLING_AT]
    here, links = f.flow_row(words, filling, way), 0
    first = words[here + f.FIRST_ENTRY]
    for entry in range(first, first + words[here + f.ENTRY_COUNT]):
        links += f.times(words, f.entry_row(words, filling, entry))
    return links


@inline
def put_in_bin(
    words: Words, at: int, flow: int, time_ps: int, size: int, answers_size: int
) -> None:
    """Count bytes of a flow, and of its acknowledgements, in the bin of a time."""
    row = n.flow_at(words, at, flow)
    if time_ps < words[row + n.BIN_FROM_PS] or time_ps >= words[row + n.BIN_UNTIL_PS]:
        close_bin(words, at, flow)
        open_bin(words, at, row, time_ps)
    words[row + n.BIN_BYTES] += size
    words[row + n.BIN_ANSWERS_BYTES] += answers_size


@inline
def open_bin(words: Words, at: int, row: int, time_ps: int) -> None:
    """Have a flow's bytes counted together that are of the bin of a time."""
    net = words[at + n.NET_AT]
    width, since_ps = words[net + s.BIN_PS], words[net + s.BINS_FROM_PS]
    number = (time_ps - since_ps) // width
    # Nothing is told apart before the first bin.
    words[row + n.BIN_FROM_PS] = since_ps + number * width if number > 0 else 0
    words[row + n.BIN_UNTIL_PS] = since_ps + (number + 1) * width


@inline
def close_bin(words: Words, at: int, flow: int) -> None:
    """Count on its links what is counted of a flow in its bin."""
    row = n.flow_at(words, at, flow)
    if words[row + n.BIN_BYTES] > 0:
        # Bins may have got wider, but none ends within another one.
        cells = find_bin(words, words[at + n.NET_AT], words[row + n.BIN_UNTIL_PS] - 1)
        owner, back = words[row + n.OWNER], words[row + n.BACK]
        count_way(words, at, flow, cells + owner, words[row + n.BIN_BYTES])
        count_way(words, at, back, cells + owner, words[row + n.BIN_ANSWERS_BYTES])
    words[row + n.BIN_BYTES] = words[row + n.BIN_ANSWERS_BYTES] = 0


@inline
def count_way(words: Words, at: int, way: int, cells: int, size: int) -> None:
    """Count bytes in a bin on the links of a flow's way, given where the first link's are."""
    filling, owners = words[at + n.FILLING_AT], words[words[at + n.NET_AT] + s.OWNERS]
    here = f.flow_row(words, filling, way)
    first = words[here + f.FIRST_ENTRY]
    for entry in range(first, first + words[here + f.ENTRY_COUNT]):
        there = f.entry_row(words, filling, entry)
        words[cells + words[there + f.LINK] * owners] += f.times(words, there) * size


@compiled(types.void(ARENA, types.int64))
def settle(arena: Arena, at: int) -> None:
    """Count on links what is counted of all flows, before anybody looks, or ways are others."""
    words = arena.words
    for i in range(words[at + n.COUNTED]):
        flow = words[words[at + n.COUNTED_AT] + i]
        close_bin(words, at, flow)
        row = n.flow_at(words, at, flow)
        packets, answers = words[row + n.COUNTED_PACKETS], words[row + n.COUNTED_ANSWERS]
        settle_way(words, at, flow, words[row + n.COUNTED_BYTES], packets)
        settle_way(words, at, words[row + n.BACK], answers * ANSWER_BYTES, answers)
        words[row + n.COUNTED_BYTES] = words[row + n.COUNTED_PACKETS] = 0
        words[row + n.COUNTED_ANSWERS] = words[row + n.BIN_UNTIL_PS] = 0
    words[at + n.COUNTED] = 0


@inline
def settle_way(words: Words, at: int, way: int, size: int, packets: int) -> None:
    """Count bytes and packets in all on the links of a flow's way."""
    net, filling = words[at + n.NET_AT], words[at + n.FILLING_AT]
    here = f.flow_row(words, filling, way)
    first = words[here + f.FIRST_ENTRY]
    for entry in range(first, first + words[here + f.ENTRY_COUNT]):
        there = f.entry_row(words, filling, entry)
        times, port = f.times(words, there), port_row(words, net, words[there + f.LINK])
        words[port + s.TX_BYTES] += times * size
        words[port + s.TX_PACKETS] += times * packets


@compiled(types.void(ARENA, *[types.int64] * 4))
def count_part(arena: Arena, at: int, flow: int, size: int, now_ps: int) -> None:
    """Count by time what is carried so far of a flow's message, for Python, as its rate changes."""
    words = arena.words
    row = n.flow_at(words, at, flow)
    more = size - words[row + n.PART_BYTES]
    if more > 0:
        spread(words, at, flow, more, 0, now_ps)
        words[row + n.PART_BYTES] = size
        words[row + n.PART_PS] = now_ps


@compiled(types.void(ARENA, *[types.int64] * 5))
def count_stream(arena: Arena, at: int, flow: int, size: int, packets: int, now_ps: int) -> None:
    """Count a sum of the switches on its links, for Python."""
    count(arena.words, at, flow, size, packets, 0, now_ps)
