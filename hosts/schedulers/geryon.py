"""Geryon (Wang et al., INFOCOM 2020): several connections, one for each class of urgency.

The abstract fixes that parameters of different urgency go by several flows of different priority,
which hosts and the whole fabric respect; a survey adds that large ones are sliced. Chosen here: a
layer's class is its place in the next forward pass, there are `CLASSES` of them, and each is a
connection, which carries one slice after the other.
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.common.interface import (
    LEVELS,
    Item,
    Release,
    Situation,
    Standing,
    one_of_each_priority,
)

CLASSES = 4
SLICE_BYTES = 1 << 20


def priority(item: Item, job: Standing) -> int:
    """Return the priority of an item's connection: 7, 5, 3 or 1."""
    return LEVELS - 1 - item.piece.front * CLASSES // job.layers * (LEVELS // CLASSES)


class Geryon:
    """The Geryon scheduler."""

    name = "geryon"
    title = "Geryon"
    partition_bytes: int | None = SLICE_BYTES
    reorders = True

    def release(self, now: Situation) -> list[Release]:
        """Return the first item that waits for each connection that is idle."""
        return one_of_each_priority(now, priority)


SCHEDULER = Geryon()
