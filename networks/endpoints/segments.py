"""Memory of workers' tensors, whose sums switches make, a segment at a time.

A worker has memory for a segment of its tensor from when it first reads it until all its results
are there (`ringleaf.ina.leases`). All workers have the same results: the first that has a segment's
keeps it in its tensor, and others find theirs there. So most segments are in a few buffers of a
rank's, which are used again and again, and stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.arena import Store
from ringleaf.core.tensors import Array
from ringleaf.ina.leases import (
    CLOSE,
    LEFT,
    OPEN,
    PLACE,
    SEGMENT_BYTES,
    SEGMENT_WORDS,
    SEGMENTS,
)
from ringleaf.networks.endpoints.leases import Fill, Leases

BUFFERS = 4
"""A rank's; more segments are only wanted after losses, and go where the tensor has them."""

_LINE_WORDS = 8  # of the cache: threads' tables do not share one


def is_one_sum(schedule: Schedule) -> bool:
    """Return whether a schedule is nothing but one sum, of all, over all ranks."""
    groups = schedule.groups
    return (
        schedule.as_rows.messages == len(groups) == 1
        and schedule.codec is None
        and (schedule.chunks, schedule.nodes, len(groups[0])) == (1, *2 * (schedule.ranks,))
    )


def room_bytes(ranks: int) -> int:
    """Return the memory that ranks' buffers take."""
    return ranks * BUFFERS * SEGMENT_BYTES


class SegmentLeases(Leases):
    """The leases of workers' segments; threads that run the workers may call them.

    Args:
        store: The store that holds the workers; registered memory must not move from now on.
        tensors: Each rank's, in registered memory; nothing is in them.
        fill: Writes ranks' inputs.
        room: Address of `room_bytes` of registered memory.
    """

    def __init__(self, store: Store, tensors: Sequence[Array], fill: Fill, room: int) -> None:
        size, step = tensors[0].size, SEGMENT_BYTES // tensors[0].itemsize
        super().__init__(tensors, np.array([*range(0, size, step), size]))
        self._store, self._fill = store, fill
        self._free = [
            [room + SEGMENT_BYTES * (rank * BUFFERS + number) for number in range(BUFFERS)]
            for rank in range(len(tensors))
        ]
        words = SEGMENTS + self.pieces * SEGMENT_WORDS
        self._stride = -(-words // _LINE_WORDS) * _LINE_WORDS
        self._at = store.allocate("words", len(tensors) * self._stride)
        self.tables = [self._at + rank * self._stride for rank in range(len(tensors))]
        """The address of each rank's table of segments."""
        for rank, table in enumerate(self.tables):
            rows = self._rows(table)
            rows[:, PLACE] = self._own[rank] - store.arena.memory.ctypes.data
            rows[:, LEFT] = np.diff(self.edges) * tensors[0].itemsize

    def connect(self, opened: int, closed: int) -> None:
        """Have these functions called, given by their addresses: `open` and `close`."""
        for table in self.tables:
            self._store.arena.words[[table + OPEN, table + CLOSE]] = opened, closed

    def open(self, segment: int) -> int:
        """Have memory for a segment, and write to it what the rank brings in."""
        rank, piece = self._find(segment)
        if self._free[rank]:
            self._store.arena.words[segment + PLACE] = self._free[rank].pop()
        place = int(self._store.arena.words[segment + PLACE])
        start, stop = self.edges[piece : piece + 2].tolist()
        out = self._store.arena.memory[place : place + self._bytes(piece)]
        self._fill(rank, start, out.view(self._tensors[rank].dtype))
        return stop - start

    def close(self, segment: int) -> int:
        """Have a result in the tensor, if it is not elsewhere, and the buffer free again."""
        rank, piece = self._find(segment)
        memory, place = self._store.arena.memory, int(self._store.arena.words[segment + PLACE])
        self._keep(rank, piece, memory.ctypes.data + place)
        if memory.ctypes.data + place != self._own[rank, piece]:
            self._free[rank].append(place)
        return 0

    def _rows(self, table: int) -> Array:
        words = self._store.arena.words[table + SEGMENTS :][: self.pieces * SEGMENT_WORDS]
        return words.reshape(self.pieces, SEGMENT_WORDS)

    def _find(self, segment: int) -> tuple[int, int]:
        """Return the rank and the piece of a segment."""
        rank, offset = divmod(segment - self._at, self._stride)
        return rank, (offset - SEGMENTS) // SEGMENT_WORDS
