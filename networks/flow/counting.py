"""Bytes that flows have carried, by link and time, as networks of packets count theirs."""

from __future__ import annotations

import ringleaf.networks.flow.filling as f
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
    """Count a message on its links, evenly since it began; and its acknowledgements on theirs."""
    row = n.flow_at(words, at, flow)
    answers = (packets + words[row + n.ANSWERS_EACH] - 1) // words[row + n.ANSWERS_EACH]
    count_way(words, at, flow, row, size, packets, now_ps)
    count_way(words, at, words[row + n.BACK], row, answers * ANSWER_BYTES, answers, now_ps)


@inline
def count_way(
    words: Words, at: int, way: int, row: int, size: int, packets: int, now_ps: int
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
    spread(words, at, here, words[row + n.OWNER], words[row + n.BEGAN_PS], now_ps, size)


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
    count_way(arena.words, at, flow, n.flow_at(arena.words, at, flow), size, packets, now_ps)
