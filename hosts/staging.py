"""Registered memory for nodes' messages that don't go from, or to, the tensor itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringleaf.collectives.rows import Column
from ringleaf.core.arena import LINE_BYTES
from ringleaf.hosts.plan import MAX_POSTED, RECEIVE, Mask, Plans


@dataclass(frozen=True, eq=False)
class Staging:
    """The buffers of all streams, and how far messages are let in, or encoded, ahead.

    Attributes:
        depth: (streams,) messages under way at once.
        slots: (streams,) buffers.
        slot_bytes: (streams,) the size of each of a stream's buffers.
        nodes: (nodes,) bytes of all buffers of each node, and of its scratch memory.
        offset: (streams,) where a stream's buffers begin among those of its node.
        scratch: (nodes,) where each node's scratch memory begins, after its buffers.
        room_bytes: (parts,) the most bytes that each part's message can take, of those in plans.
    """

    depth: Column
    slots: Column
    slot_bytes: Column
    nodes: Column
    offset: Column
    scratch: Column
    room_bytes: Column


def lay_out(plans: Plans, item_bytes: int, *, ahead_bytes: int) -> Staging:
    """Return the buffers that executors of these plans need.

    Args:
        plans: The nodes' parts.
        item_bytes: Bytes of an element.
        ahead_bytes: Bytes of receives posted ahead per stream, at least two messages.
    """
    streams = plans.streams
    kept = slice(plans.kept_streams)
    is_receive = streams.kind[kept] == RECEIVE
    parts = plans.first_sum
    all_rooms = _room_bytes(plans, item_bytes)
    rooms = all_rooms[:parts]
    every = np.ones(parts, np.bool_)
    buffered = np.where(is_receive[plans.stream[:parts]], plans.staged[:parts], every)
    depth = np.where(is_receive, _depths(plans, rooms, every, ahead_bytes), MAX_POSTED)
    counts = _depths(plans, rooms, buffered, ahead_bytes)
    slots = np.where(is_receive | plans.coded[kept], counts, 0)
    slot_bytes = plans.of_all(_slot_bytes(plans, rooms, buffered))
    depth, slots = plans.of_all(depth), plans.of_all(slots)
    sizes = slots * slot_bytes
    ends = np.concatenate(([0], np.cumsum(sizes)))
    edges = ends[np.searchsorted(streams.node, np.arange(plans.nodes + 1))]
    offset = ends[:-1] - edges[streams.node]
    buffers = np.diff(edges)
    nodes = buffers + plans.scratch_elements * item_bytes
    return Staging(depth, slots, slot_bytes, nodes, offset, buffers, all_rooms)


def _room_bytes(plans: Plans, item_bytes: int) -> Column:
    """Return the most bytes that each part's message can take: (parts,)."""
    rooms = plans.sizes * item_bytes
    for op, codec in enumerate(plans.codecs):
        if codec is not None:
            here = plans.op == op
            sizes, place = np.unique(plans.sizes[here], return_inverse=True)
            most = [codec.most_bytes(int(size), item_bytes) for size in sizes]
            rooms[here] = np.array(most, np.int64)[place]
    return rooms


def _slot_bytes(plans: Plans, rooms: Column, chosen: Mask) -> Column:
    """Return the room for the largest of the chosen parts of each stream, in whole cache lines."""
    first = plans.streams.first[: plans.kept_streams]
    largest = np.zeros(len(first), np.int64)
    if len(largest):
        largest = np.maximum.reduceat(np.where(chosen, rooms, 0), first)
    return -(-largest // LINE_BYTES) * LINE_BYTES


def _depths(plans: Plans, rooms: Column, chosen: Mask, ahead_bytes: int) -> Column:
    """Return the number of the chosen parts of each stream that are under way at once."""
    slot_bytes = _slot_bytes(plans, rooms, chosen)
    count = np.bincount(plans.stream[: len(chosen)], chosen, plans.kept_streams).astype(np.int64)
    depth = -(-ahead_bytes // np.maximum(slot_bytes, 1))
    return np.minimum(np.minimum(np.maximum(2, depth), MAX_POSTED), count)
