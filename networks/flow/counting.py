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


@inline
def count_bytes(words: Words, at: int, flow: int, size: int, packets: int, now_ps: int) -> None:
    """Count a message, evenly since it began, and its acknowledgements.

    Messages of one bin are counted on links together, when one of another bin comes, or the loop
    pauses (`settle`).
    """
    row = n.flow_at(words, at, flow)
    answers = (packets + words[row + n.ANSWERS_EACH] - 1) // words[row + n.ANSWERS_EACH]
    if words[row + n.BEGAN_PS] < words[row + n.COUNTED_FROM_PS] or (
        now_ps >= words[row + n.COUNTED_UNTIL_PS]
    ):
        settle_flow(words, at, flow)
        open_bin(words, at, row, now_ps)
    if words[row + n.BEGAN_PS] < words[row + n.COUNTED_FROM_PS]:
        began_ps = words[row + n.BEGAN_PS]
        count_way(words, at, flow, row, size, packets, began_ps, now_ps)
        back = words[row + n.BACK]
        count_way(words, at, back, row, answers * ANSWER_BYTES, answers, began_ps, now_ps)
        return
    words[row + n.COUNTED_BYTES] += size
    words[row + n.COUNTED_PACKETS] += packets
    words[row + n.COUNTED_ANSWERS] += answers
    if not words[row + n.IS_COUNTED]:
        words[row + n.IS_COUNTED] = 1
        words[words[at + n.COUNTED_AT] + words[at + n.COUNTED]] = flow
        words[at + n.COUNTED] += 1


@inline
def open_bin(words: Words, at: int, row: int, now_ps: int) -> None:
    """Have messages counted together that are carried within the bin of a time."""
    net = words[at + n.NET_AT]
    find_bin(words, net, now_ps)  # bins may get wider
    width, since_ps = words[net + s.BIN_PS], words[net + s.BINS_FROM_PS]
    number = (now_ps - since_ps) // width
    # Nothing is told apart before the first bin.
    words[row + n.COUNTED_FROM_PS] = since_ps + number * width if number > 0 else 0
    words[row + n.COUNTED_UNTIL_PS] = since_ps + (number + 1) * width


@inline
def settle_flow(words: Words, at: int, flow: int) -> None:
    """Count on its links what is counted of a flow's messages."""
    row = n.flow_at(words, at, flow)
    packets, answers = words[row + n.COUNTED_PACKETS], words[row + n.COUNTED_ANSWERS]
    if packets == 0:
        return
    # Bins may have got wider, but none ends within another one.
    last_ps = words[row + n.COUNTED_UNTIL_PS] - 1
    count_way(words, at, flow, row, words[row + n.COUNTED_BYTES], packets, last_ps, last_ps)
    back = words[row + n.BACK]
    count_way(words, at, back, row, answers * ANSWER_BYTES, answers, last_ps, last_ps)
    words[row + n.COUNTED_BYTES] = 0
    words[row + n.COUNTED_PACKETS] = words[row + n.COUNTED_ANSWERS] = 0


@inline
def settle(words: Words, at: int) -> None:
    """Count on links what is counted of all flows, before anybody looks."""
    for i in range(words[at + n.COUNTED]):
        flow = words[words[at + n.COUNTED_AT] + i]
        settle_flow(words, at, flow)
        row = n.flow_at(words, at, flow)
        words[row + n.IS_COUNTED] = words[row + n.COUNTED_UNTIL_PS] = 0
    words[at + n.COUNTED] = 0


@inline
def count_way(
    words: Words,
    at: int,
    way: int,
    row: int,
    size: int,
    packets: int,
    began_ps: int,
    now_ps: int,
) -> None:
    """Count bytes of a flow on the links of a way, its own or that of its acknowledgements."""
    net, filling = words[at + n.NET_AT], words[at + n.FILLING_AT]
    here = f.flow_row(words, filling, way)
    first = words[here + f.FIRST_ENTRY]
    for entry in range(first, first + words[here + f.ENTRY_COUNT]):
        there = f.entry_row(words, filling, entry)
        link, times = words[there + f.LINK], f.times(words, there)
        port = port_row(words, net, link)
        words[port + s.TX_BYTES] += times * size
        words[port + s.TX_PACKETS] += times * packets
        words[net + s.HOPS] += times * packets
    spread(words, at, here, words[row + n.OWNER], began_ps, now_ps, size)


@inline
def spread(
    words: Words, at: int, flow: int, owner: int, began_ps: int, now_ps: int, size: int
) -> None:
    """Count bytes of a flow in the bins of a time, as many in each as it has of the time.

    All links of a way have the same in each bin, so bins are found once for all of them.
    """
    net = words[at + n.NET_AT]
    row = find_bin(words, net, now_ps)  # bins may get wider
    width, since_ps = words[net + s.BIN_PS], words[net + s.BINS_FROM_PS]
    left, from_ps = size, max(began_ps, since_ps)
    until_ps = since_ps + (now_ps - since_ps) // width * width  # the last bin's begin
    if from_ps >= until_ps:
        count_row(words, at, flow, owner, row, left)
        return
    while left > 0:
        until_ps = min(since_ps + ((from_ps - since_ps) // width + 1) * width, now_ps)
        part = left
        if until_ps < now_ps:
            part = left * (until_ps - from_ps) // (now_ps - from_ps)
        count_row(words, at, flow, owner, find_bin(words, net, from_ps), part)
        left -= part
        from_ps = until_ps


@inline
def count_row(words: Words, at: int, flow: int, owner: int, row: int, size: int) -> None:
    """Count bytes on all links of a flow, given its row and that of a bin."""
    net, filling = words[at + n.NET_AT], words[at + n.FILLING_AT]
    owners = words[net + s.OWNERS]
    first = words[flow + f.FIRST_ENTRY]
    for entry in range(first, first + words[flow + f.ENTRY_COUNT]):
        there = f.entry_row(words, filling, entry)
        words[row + words[there + f.LINK] * owners + owner] += f.times(words, there) * size


@compiled(types.void(ARENA, *[types.int64] * 5))
def count_stream(arena: Arena, at: int, flow: int, size: int, packets: int, now_ps: int) -> None:
    """Count a sum of the switches on its links, for Python."""
    row = n.flow_at(arena.words, at, flow)
    count_way(arena.words, at, flow, row, size, packets, arena.words[row + n.BEGAN_PS], now_ps)
