"""Geryon (Wang et al., INFOCOM 2020): several connections, one for each class of urgency.

The abstract fixes that parameters of different urgency go by several flows of different priority,
which hosts and the whole fabric respect; a survey adds that large ones are sliced. Chosen here: a
layer's class is its place in the next forward pass, there are `CLASSES` of them, and each is a
connection, which carries one slice after the other.
"""

from __future__ import annotations

from ringleaf.hosts.scheduling.interface import LEVELS, Item, Release, Situation, Standing

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
        busy = {(each.item.job, each.priority) for each in now.under_way}
        wanted = [Release(item, priority(item, now.jobs[item.job])) for item in now.waiting]
        released = []
        for each in sorted(wanted, key=lambda each: -each.priority):
            place = each.item.job, each.priority
            if place not in busy or now.jobs[each.item.job].in_order:
                busy.add(place)
                released.append(each)
        return released


SCHEDULER = Geryon()
