"""The hash tables of a table's image, one for each mask (`lookup.py`), laid out by columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ringleaf.core import native_types as types
from ringleaf.core.arena import Fields, Words
from ringleaf.core.compiled import compiled
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

    A row's place is that in the image; -1: another one counts.

    Args:
        rows: (rows, row words) at least one row, best first. Of rows with equal keys under one mask
            the first counts.
        masks: (rows, key words) each row's mask.
        start: Place of the first description in the image.
    """
    group, groups = _number_groups(rows, masks)
    kept = _first_of_equals(group, rows[:, KEYS : KEYS + masks.shape[1]])
    rows, group = rows[kept], group[kept]
    counts = np.bincount(group, minlength=len(groups))
    slots = np.array([_slots_for(count) for count in counts.tolist()], np.int64)
    base = np.cumsum(slots) - slots
    home = _home_of(rows[:, KEYS : KEYS + masks.shape[1]]) & (slots[group] - 1)
    table = np.zeros((int(slots.sum()), rows.shape[1]), np.uint64)
    settled = np.zeros_like(home)
    _settle(home, base[group], slots[group], settled, np.zeros(len(table), np.uint8))
    table[settled] = rows
    heads = np.zeros((len(groups), GROUP_KEYS + masks.shape[1]), np.uint64)
    best = np.zeros(len(groups), np.uint64)
    np.maximum.at(best, group, rows[:, RANK])
    heads[:, GROUP_RANK], heads[:, GROUP_MASK], heads[:, GROUP_KEYS:] = best, slots - 1, groups
    heads[:, GROUP_ROWS] = start + heads.size + base * rows.shape[1]
    places = np.full(len(masks), -1)
    places[kept] = start + heads.size + settled * rows.shape[1]
    return len(groups), np.concatenate([heads.ravel(), table.ravel()]), places


def empty_group(mask: Sequence[int], start: int, row_words: int) -> Fields:
    """Return the description of a group without rows at `start`, and its hash table."""
    slots = _slots_for(0)
    group = np.zeros(GROUP_KEYS + len(mask) + slots * row_words, np.uint64)
    group[GROUP_MASK], group[GROUP_ROWS] = slots - 1, start + GROUP_KEYS + len(mask)
    group[GROUP_KEYS : GROUP_KEYS + len(mask)] = mask
    return group


def _number_groups(rows: Fields, masks: Fields) -> tuple[Words, Fields]:
    """Return the number of each row's group, and the groups' masks, in falling order of rank.

    Among groups of equal rank the one that has the first row comes first.
    """
    if (masks == masks[0]).all():
        return np.zeros(len(masks), np.int64), masks[:1]
    columns = masks.ravel() if masks.shape[1] == 1 else masks  # one alone is sorted much faster
    unique_masks, first, group = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # rows come best first, so each group's first row has its rank
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[group.ravel()], unique_masks.reshape(-1, masks.shape[1])[order]


def _first_of_equals(group: Words, keys: Fields) -> Words:
    """Return the places of the rows that have no equal one in their group before them."""
    columns = [*keys.T, group]
    order = np.lexsort(columns)  # stable
    new = np.ones(len(order), bool)
    new[1:] = False
    for column in columns:
        along = column[order]
        new[1:] |= along[1:] != along[:-1]
    return np.sort(order[new])


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


@compiled(types.void(*[types.int64[::1]] * 4, types.uint8[::1]))
def _settle(
    home: Words, base: Words, slots: Words, places: Words, taken: npt.NDArray[np.uint8]
) -> None:
    """Find the place of each row: the first that is free, from its home on and around.

    Args:
        home: (rows,) the slot where each row's search starts.
        base: (rows,) the place of the first slot of each row's table.
        slots: (rows,) the size of each row's table, which has free slots for all.
        places: (rows,) what is found.
        taken: (places,) whether there is a row; zeros before.
    """
    for row in range(len(home)):
        slot = home[row]
        while taken[base[row] + slot]:
            slot = (slot + 1) & (slots[row] - 1)
        places[row] = base[row] + slot
        taken[places[row]] = 1
