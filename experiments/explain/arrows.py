"""Arrows of a time-space diagram: when each message was put on a line, and when it was there.

They are read off the packets of a run. Hosts' messages are arrows between hosts. Where switches add
up, each packet is an arrow per link that it crosses, as it ends in a switch and another leaves.
Where there are more arrows than a person can see, those between two lanes that begin in the same
span of time become one band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.state as s
from ringleaf.experiments.explain.findings import Arrow, Diagram
from ringleaf.experiments.explain.log import FIRST, KIND, LAST, PacketLog
from ringleaf.experiments.explain.path import PathHop, line_ps

MOST_LANES = 48
"""The most lanes of a diagram; of more nodes, neighbours share one."""

MOST_ARROWS = 1200
"""The most arrows and bands of a diagram; they take about 50 KB in a file."""

MANY = 20_000
"""Of more messages, some are drawn: bands of all would cover the whole diagram."""

SAMPLE = 500
"""About so many are drawn then; and of packets where switches add up, which are as dense."""

MOST_HOPS = 600
"""The most hops of the path that are drawn."""

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Messages:
    src: Column  # nodes
    dst: Column
    sent_ps: Column
    there_ps: Column
    again: Column  # 1: some packet was sent again


def diagram(
    log: PacketLog, names: Sequence[str], hops: Sequence[PathHop], *, in_network: bool
) -> Diagram:
    """Return the diagram of a run.

    Args:
        log: Its packets.
        names: The nodes' names, by number: switches first, then hosts.
        hops: The path of causes, last hop first.
        in_network: Whether switches add up.
    """
    messages = _on_links(log) if in_network else _between_hosts(log)
    hosts = np.flatnonzero(log.is_host).tolist()
    busy = {*messages.src.tolist(), *messages.dst.tolist()}
    shown = [*hosts, *sorted(busy - set(hosts))]
    lane, lanes = _lanes(shown, names)
    total = len(messages.src)
    if in_network or total > MANY:
        messages = _sampled(messages)
    arrows = _bundled(messages, np.array([lane.get(node, -1) for node in range(len(names))]))
    path = tuple(
        (lane[node], time_ps)
        for hop in hops[:: -(-len(hops) // MOST_HOPS) or 1][::-1]
        for node, time_ps in ((hop.src, hop.sent_ps), (hop.dst, hop.there_ps))
        if node in lane
    )
    each = "packets, each link apart" if in_network else "messages"
    return Diagram(lanes, arrows, path, total, each)


def _sampled(messages: _Messages) -> _Messages:
    """Return evenly some of the messages between each two nodes, and those sent again."""
    every = -(-len(messages.src) // SAMPLE)
    order = np.argsort(
        messages.src * (int(messages.dst.max(initial=0)) + 1) + messages.dst, kind="stable"
    )
    kept = np.zeros(len(order), np.bool_)
    kept[order[::every]] = True
    again = np.flatnonzero(messages.again)
    kept[again[:: -(-len(again) // SAMPLE) or 1]] = True
    return _Messages(*(column[kept] for column in astuple(messages)))


def _lanes(nodes: Sequence[int], names: Sequence[str]) -> tuple[dict[int, int], tuple[str, ...]]:
    """Return each node's lane, and the lanes' names."""
    width = -(-len(nodes) // MOST_LANES)
    groups = [nodes[start : start + width] for start in range(0, len(nodes), width)]
    lane = {node: number for number, group in enumerate(groups) for node in group}
    ends = [(names[group[0]], names[group[-1]]) for group in groups]
    return lane, tuple(a if a == b else f"{a} to {b}" for a, b in ends)


def _between_hosts(log: PacketLog) -> _Messages:
    """Return hosts' messages: from a first packet's sending to the last packet's arrival."""
    node = log.ports[log.port, s.NODE]
    first = log.first
    fresh = log.sent & log.is_host[node] & (log.kind & KIND == 0) & (first == np.arange(len(log)))
    starts = _by_flow(log, np.flatnonzero(fresh & (log.kind & FIRST > 0)))
    ends = _by_flow(log, np.flatnonzero(fresh & (log.kind & LAST > 0)))
    count = min(len(starts), len(ends))
    starts, ends = starts[:count], ends[:count]
    came = np.flatnonzero(~log.sent & log.is_host[node] & (log.kind & (KIND | LAST) == LAST))[::-1]
    keys, where = np.unique(log.key[came], return_index=True)
    place = np.minimum(np.searchsorted(keys, log.key[ends]), max(len(keys) - 1, 0))
    there = came[where[place]] if len(keys) else np.zeros(0, np.int64)
    known = keys[place] == log.key[ends] if len(keys) else np.zeros(count, np.bool_)
    starts, there = starts[known], there[known]
    again = _sent_again(log, first, starts)
    times = log.time_ps
    return _Messages(node[starts], node[there], times[starts], times[there], again)


def _by_flow(log: PacketLog, rows: Column) -> Column:
    """Return rows by flow, and within a flow by time."""
    return rows[np.argsort(log.flow[rows], kind="stable")]


def _sent_again(log: PacketLog, first: Column, starts: Column) -> Column:
    """Return for each message, by its first packet's row, whether packets were sent again."""
    again = np.zeros(len(starts), np.int64)
    repeated = np.unique(first[first != np.arange(len(log))])
    for row in repeated.tolist():  # few
        same = np.flatnonzero(log.flow[starts] == log.flow[row])
        before = same[starts[same] <= row]
        if len(before):
            again[before[np.argmax(starts[before])]] = 1
    return again


def _on_links(log: PacketLog) -> _Messages:
    """Return each packet of data on each link."""
    rows = np.flatnonzero(log.sent & (log.kind & KIND == 0))
    port = log.port[rows]
    ports = log.ports
    took_ps = line_ps(log.line[rows], ports[port, s.RATE_BPS]) + ports[port, s.DELAY_PS]
    again = log.first[rows] != rows
    src, dst = ports[port, s.NODE], ports[ports[port, s.PEER], s.NODE]
    times = log.time_ps[rows]
    return _Messages(src, dst, times, times + took_ps, again.astype(np.int64))


def shares(times_ps: Column, end_ps: int, parts: int) -> Column:
    """Return in which of so many equal parts of a run each time is: times * parts // end."""
    spare = max(end_ps.bit_length() + parts.bit_length() - 63, 0)  # else products overflow
    numbers: Column = (times_ps >> spare) * parts // ((end_ps >> spare) + (spare > 0))
    return numbers


def _bundled(messages: _Messages, lane: Column) -> tuple[Arrow, ...]:
    """Return an arrow for each message, or bands where there are too many."""
    if not len(messages.src):
        return ()
    src, dst = lane[messages.src], lane[messages.dst]
    pair = src * (int(lane.max()) + 1) + dst
    end_ps = int(messages.there_ps.max()) + 1
    spans = len(pair)
    group = np.arange(len(pair))
    while len(group) and int(group.max()) >= MOST_ARROWS and spans:
        spans = min(spans // 2, 4 * MOST_ARROWS)
        bin_of = shares(messages.sent_ps, end_ps, max(spans, 1))
        _, group = np.unique(pair * (max(spans, 1) + 1) + bin_of, return_inverse=True)
    count = int(group.max()) + 1
    low, high = np.full((2, count), end_ps), np.full((2, count), -1)
    for number, times in enumerate((messages.sent_ps, messages.there_ps)):
        np.minimum.at(low[number], group, times)
        np.maximum.at(high[number], group, times)
    member = np.zeros(count, np.int64)
    member[group] = np.arange(len(group))
    counts, again = np.bincount(group), np.bincount(group, messages.again)
    return tuple(
        Arrow(
            int(src[member[each]]),
            int(dst[member[each]]),
            (int(low[0, each]), int(high[0, each])),
            (int(low[1, each]), int(high[1, each])),
            int(counts[each]),
            int(again[each]),
        )
        for each in range(count)
    )
