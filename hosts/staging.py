"""Registered memory for a rank's messages that don't go from, or to, the tensor itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from ringleaf.hosts.plan import MAX_POSTED, Plan, PlannedMessage, Stream

LINE_BYTES = 64

Slots = dict[Stream, list[int]]
"""Addresses of each stream's free buffers."""


class Staging(NamedTuple):
    """A rank's free buffers, for messages it sends and receives."""

    sends: Slots
    receives: Slots


def room_bytes(row: PlannedMessage, ranges: list[tuple[int, int]], item: int) -> int:
    """Return the most bytes that a row's message can take."""
    elements = ranges[row.stop - 1][1] - ranges[row.start][0]
    return elements * item if row.codec is None else row.codec.most_bytes(elements, item)


def depth(
    rows: Collection[PlannedMessage], ranges: list[tuple[int, int]], item: int, ahead_bytes: int
) -> int:
    """Return the number of a stream's messages that are let in, or encoded, ahead."""
    wanted = -(-ahead_bytes // _slot_bytes(rows, ranges, item))
    return min(max(2, wanted), MAX_POSTED, len(rows))


def staging_bytes(plan: Plan, ranges: list[tuple[int, int]], item: int, *, ahead_bytes: int) -> int:
    """Return the registered memory that an executor of this plan needs besides its tensor."""
    return sum(
        depth(rows, ranges, item, ahead_bytes) * _slot_bytes(rows, ranges, item)
        for _, _, rows in _buffered(plan)
    )


def lay_out(
    plan: Plan, ranges: list[tuple[int, int]], item: int, staging: int, ahead_bytes: int
) -> Staging:
    """Cut the memory from address `staging` on, `staging_bytes` of it, into buffers."""
    made = Staging({}, {})
    for place, stream, rows in _buffered(plan):
        size = _slot_bytes(rows, ranges, item)
        count = depth(rows, ranges, item, ahead_bytes)
        made[place][stream] = [staging + size * number for number in range(count)]
        staging += size * count
    return made


def _buffered(plan: Plan) -> Iterator[tuple[int, Stream, list[PlannedMessage]]]:
    """Yield the place of slots in `Staging`, a stream, and its rows that need buffers."""
    for stream, rows in plan.sends.items():
        if encoded := [row for row in rows if row.codec is not None]:
            yield 0, stream, encoded
    for stream, rows in plan.receives.items():
        if staged := [row for row in rows if row.staged]:
            yield 1, stream, staged


def _slot_bytes(rows: Collection[PlannedMessage], ranges: list[tuple[int, int]], item: int) -> int:
    """Return the room for the largest of these rows' messages, in whole cache lines."""
    largest = max(room_bytes(row, ranges, item) for row in rows)
    return -(-largest // LINE_BYTES) * LINE_BYTES
