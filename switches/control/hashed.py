"""The hash tables of a table's image, one for each mask (`lookup.py`), laid out by columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringleaf.core import native_types as types
from ringleaf.core.arena import Fields, Words
from ringleaf.core.compiled import compiled, inline
from ringleaf.switches.engine.lookup import (
    GROUP_KEYS,
    GROUP_MASK,
    GROUP_RANK,
    GROUP_ROWS,
    KEYS,
    MIX,
    RANK,
)

_MIX = np.uint64(MIX)
_U32 = np.uint64(32)


def lay_groups(rows: Fields, masks: Fields, start: int) -> tuple[int, Fields, Words]:
    """Return the number of groups; their descriptions, followed by their hash tables; rows' places.

    A row's place is that in the image; -1: another one counts. Each table has slots for all rows of
    its mask, also for those that do not count.

    Args:
        rows: (rows, row words) at least one row, best first. Of rows with equal keys under one mask
            the first counts.
        masks: (rows, key words) each row's mask.
        start: Place of the first description in the image.
    """
    group, first, slots, places = np.zeros((4, len(rows)), np.int64)
    met = np.full(_slots_for(len(rows)), -1)
    groups = _number_groups(masks, _home_of(masks), met, group, first, slots)
    first, slots = first[:groups], slots[:groups]
    heads = groups * (GROUP_KEYS + masks.shape[1])
    image = np.zeros(heads + int(slots.sum()) * rows.shape[1], np.uint64)
    _describe(rows, masks, first, slots, start, image)
    home = _home_of(rows[:, KEYS : KEYS + masks.shape[1]])
    _settle(rows, masks.shape[1], home, group, start, image, places)
    return groups, image, places


def empty_group(mask: Sequence[int], start: int, row_words: int) -> Fields:
    """Return the description of a group without rows at `start`, and its hash table."""
    slots = _slots_for(0)
    group = np.zeros(GROUP_KEYS + len(mask) + slots * row_words, np.uint64)
    group[GROUP_MASK], group[GROUP_ROWS] = slots - 1, start + GROUP_KEYS + len(mask)
    group[GROUP_KEYS : GROUP_KEYS + len(mask)] = mask
    return group


def _slots_for(count: int) -> int:
    """Return the size of a table of so many rows, a power of two: it is at most half full."""
    return 1 << max((2 * count - 1).bit_length(), 1)


def _home_of(keys: Fields) -> Words:
    """Return the number that, cut to a table's size, is the slot where each key's search starts."""
    slot = np.zeros(len(keys), np.uint64)
    for key in keys.T:
        slot = (slot ^ key) * _MIX
        slot ^= slot >> _U32
    return slot.astype(np.int64)  # only the lowest bits count


@inline
def _are_equal(words: Fields, others: Fields) -> bool:
    """Return whether words of equal number are the same."""
    same = True
    for place in range(len(words)):
        same = same and words[place] == others[place]
    return same


@compiled(types.int64(types.uint64[:, ::1], *[types.int64[::1]] * 5))
def _number_groups(
    masks: Fields, home: Words, met: Words, group: Words, first: Words, slots: Words
) -> int:
    """Return how many groups of equal masks there are, numbered as they come.

    As rows come best first, so do groups.

    Args:
        masks: (rows, key words) each row's mask.
        home: (rows,) where, cut to the size of `met`, the search for each row's mask starts.
        met: (a power of two,) a hash table of groups, with more places than rows; all -1 before.
        group: (rows,) the group of each row, which is found.
        first: (rows,) the first row of each group, which is found.
        slots: (rows,) the slots of each group's table, as many as by `_slots_for`, which are found;
            zeros before.
    """
    groups = 0
    for row in range(len(masks)):
        place = home[row] & (len(met) - 1)
        while met[place] >= 0 and not _are_equal(masks[first[met[place]]], masks[row]):
            place = (place + 1) & (len(met) - 1)
        if met[place] < 0:
            met[place] = groups
            first[groups] = row
            groups += 1
        group[row] = met[place]
        slots[met[place]] += 1
    for number in range(groups):
        rows = slots[number]
        slots[number] = 2
        while slots[number] < 2 * rows:
            slots[number] *= 2
    return groups


@compiled(
    types.void(*[types.uint64[:, ::1]] * 2, *[types.int64[::1]] * 2, types.int64, types.uint64[::1])
)
def _describe(
    rows: Fields, masks: Fields, first: Words, slots: Words, start: int, image: Fields
) -> None:
    """Write the groups' descriptions.

    Args:
        rows: (rows, row words) the rows.
        masks: (rows, key words) their masks.
        first: (groups,) the first row of each group.
        slots: (groups,) the number of slots of each group's table.
        start: Where `image` begins in the table's image.
        image: What is written to.
    """
    head = 0
    at = len(first) * (GROUP_KEYS + masks.shape[1])
    for group in range(len(first)):
        image[head + GROUP_RANK] = rows[first[group], RANK]
        image[head + GROUP_MASK] = slots[group] - 1
        image[head + GROUP_ROWS] = start + at
        for word in range(masks.shape[1]):
            image[head + GROUP_KEYS + word] = masks[first[group], word]
        head += GROUP_KEYS + masks.shape[1]
        at += slots[group] * rows.shape[1]


@compiled(
    types.void(
        types.uint64[:, ::1],
        types.int64,
        *[types.int64[::1]] * 2,
        types.int64,
        types.uint64[::1],
        types.int64[::1],
    )
)
def _settle(
    rows: Fields,
    key_words: int,
    home: Words,
    group: Words,
    start: int,
    image: Fields,
    places: Words,
) -> None:
    """Write each row to the first free slot from its home on and around, unless its keys are met.

    Args:
        rows: (rows, row words) the rows.
        key_words: Words of a row's keys.
        home: (rows,) the slot, cut to a table's size, where each row's search starts.
        group: (rows,) each row's group.
        start: Where `image` begins in the table's image.
        image: What is written to; it has the groups' descriptions, and zeros.
        places: (rows,) each row's place in the table's image, or -1, which is found.
    """
    for row in range(len(rows)):
        head = group[row] * (GROUP_KEYS + key_words)
        last = np.int64(image[head + GROUP_MASK])
        table = np.int64(image[head + GROUP_ROWS]) - start
        slot = home[row] & last
        place = table + slot * rows.shape[1]
        keys = slice(KEYS, KEYS + key_words)
        while image[place + RANK] != 0 and not _are_equal(image[place:][keys], rows[row][keys]):
            slot = (slot + 1) & last
            place = table + slot * rows.shape[1]
        if image[place + RANK] != 0:
            places[row] = -1
            continue
        for word in range(rows.shape[1]):
            image[place + word] = rows[row, word]
        places[row] = start + place
