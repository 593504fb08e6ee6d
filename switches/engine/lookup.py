"""Looks up a packet's entry in a table, in compiled code.

A table's image is a range of `arena.fields`: the number of groups, the default entry's row,
then per group its greatest rank, the mask of its slot numbers, where its rows begin (from the
image's start), and its key masks. Entries of equal mask form a group, a hash table with open
addressing; groups lie in falling order of rank, so that the search ends as soon as no better
entry can come. Tables with ranges are one list of rows in falling order of rank.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Fields
from ringleaf.core.compiled import inline

# Columns of an image.
GROUPS = 0  # number of groups; in tables with ranges, of rows
DEFAULT_ROW = 1

# Columns of a group.
GROUP_RANK = 0
GROUP_MASK = 1
GROUP_ROWS = 2
GROUP_KEYS = 3

# Columns of a row.
RANK = 0  # 0: no entry
COUNTER = 1  # offset in arena.fields of the entry's record, or 0
ACTION = 2
KEYS = 3  # keys, then (in tables with ranges) masks, lows and highs, then parameters

GROUP_ACTION = (1 << 32) - 2
"""The action of a row for a group: its parameters are the number of members and the first one."""

MEMBERS = 0  # of the default row: where the rows of groups' members begin, from the image's start

MIX = 0x9E3779B97F4A7C15  # 2^64 / golden ratio (Knuth, TAOCP 3, 6.4)

_MIX = np.uint64(MIX)
_U0 = np.uint64(0)
_U1 = np.uint64(1)
_U32 = np.uint64(32)
_DEFAULT_ROW = np.uint64(DEFAULT_ROW)
_GROUP_MASK = np.uint64(GROUP_MASK)
_GROUP_ROWS = np.uint64(GROUP_ROWS)
_GROUP_KEYS = np.uint64(GROUP_KEYS)
_KEYS = np.uint64(KEYS)
_MEMBERS = np.uint64(MEMBERS)
_HASH_MASK = np.uint64(0xFFFFFFFF)


@inline
def find_exact(
    fields: Fields, image: np.uint64, keys: tuple[np.uint64, ...], row_words: np.uint64
) -> np.uint64:
    """Return the offset of the row whose keys are equal, or of the default row."""
    group = image + _DEFAULT_ROW + row_words
    mask = fields[group + _GROUP_MASK]
    rows = image + fields[group + _GROUP_ROWS]
    slot = _U0
    for i in range(len(keys)):
        slot = (slot ^ keys[i]) * _MIX
        slot ^= slot >> _U32
    while True:
        slot &= mask
        row = rows + slot * row_words
        if fields[row] == _U0:
            return image + _DEFAULT_ROW
        same = True
        for i in range(len(keys)):
            same = same and fields[row + _KEYS + np.uint64(i)] == keys[i]
        if same:
            return row
        slot += _U1


@inline
def find_masked(
    fields: Fields, image: np.uint64, keys: tuple[np.uint64, ...], row_words: np.uint64
) -> np.uint64:
    """Return the offset of the row of highest rank that matches, or of the default row."""
    best = image + _DEFAULT_ROW
    best_rank = _U0
    group = best + row_words
    for _ in range(fields[image]):
        if fields[group] <= best_rank:
            break
        mask = fields[group + _GROUP_MASK]
        rows = image + fields[group + _GROUP_ROWS]
        slot = _U0
        for i in range(len(keys)):
            key = keys[i] & fields[group + _GROUP_KEYS + np.uint64(i)]
            slot = (slot ^ key) * _MIX
            slot ^= slot >> _U32
        while True:
            slot &= mask
            row = rows + slot * row_words
            if fields[row] == _U0:
                break
            same = True
            for i in range(len(keys)):
                key = keys[i] & fields[group + _GROUP_KEYS + np.uint64(i)]
                same = same and fields[row + _KEYS + np.uint64(i)] == key
            if same:
                if fields[row] > best_rank:
                    best = row
                    best_rank = fields[row]
                break
            slot += _U1
        group += _GROUP_KEYS + np.uint64(len(keys))
    return best


@inline
def _keys_match(fields: Fields, at: np.uint64, keys: tuple[np.uint64, ...]) -> bool:
    """Return whether keys, masked, equal a row's; its values are at `at`, its masks behind them."""
    key_count = np.uint64(len(keys))
    same = True
    for i in range(len(keys)):
        mask = fields[at + key_count + np.uint64(i)]
        same = same and fields[at + np.uint64(i)] == (keys[i] & mask)
    return same


@inline
def find_in_ranges(
    fields: Fields,
    image: np.uint64,
    keys: tuple[np.uint64, ...],
    values: tuple[np.uint64, ...],
    row_words: np.uint64,
) -> np.uint64:
    """Return the offset of the first row whose keys match and whose ranges hold the values."""
    row = image + _DEFAULT_ROW + row_words
    key_count = np.uint64(len(keys))
    value_count = np.uint64(len(values))
    for _ in range(fields[image]):
        at = row + _KEYS
        same = _keys_match(fields, at, keys)
        at += key_count + key_count
        for i in range(len(values)):
            low = fields[at + np.uint64(i)]
            high = fields[at + value_count + np.uint64(i)]
            same = same and low <= values[i] and values[i] <= high
        if same:
            return row
        row += row_words
    return image + _DEFAULT_ROW


@inline
def find_in_wide_ranges(
    fields: Fields,
    image: np.uint64,
    keys: tuple[np.uint64, ...],
    values: tuple[np.uint64, ...],
    begins: tuple[bool, ...],
    row_words: np.uint64,
) -> np.uint64:
    """Do the same as `find_in_ranges` for values of several words.

    `begins` says which words are a key's lowest.
    """
    row = image + _DEFAULT_ROW + row_words
    key_count = np.uint64(len(keys))
    value_count = np.uint64(len(values))
    for _ in range(fields[image]):
        at = row + _KEYS
        same = _keys_match(fields, at, keys)
        at += key_count + key_count
        outside = False
        for i in range(len(values)):
            low = fields[at + np.uint64(i)]
            high = fields[at + value_count + np.uint64(i)]
            if begins[i]:
                same = same and not outside
                below = above = False
            # The highest words that differ decide.
            below = values[i] < low or (below and values[i] == low)
            above = values[i] > high or (above and values[i] == high)
            outside = below or above
        if same and not outside:
            return row
        row += row_words
    return image + _DEFAULT_ROW


@inline
def count_packet(fields: Fields, row: np.uint64, length: int) -> None:
    """Count a packet at its entry; the default entry does not count (as in BMv2)."""
    counter = fields[row + np.uint64(COUNTER)]
    if counter != _U0:
        fields[counter] += _U1
        fields[counter + _U1] += np.uint64(length)


@inline
def pick_member(
    fields: Fields,
    image: np.uint64,
    arguments: np.uint64,
    hashed: np.uint64,
    row_words: np.uint64,
) -> np.uint64:
    """Return the row of a group's member for a packet; `arguments` locate the group's parameters.

    The hash is cut to 32 bits first, as `ActionProfile::choose_from_group` does.
    """
    slot = fields[arguments + _U1] + (hashed & _HASH_MASK) % fields[arguments]
    return image + fields[image + _DEFAULT_ROW + _MEMBERS] + slot * row_words


@inline
def note_hit(fields: Fields, row: np.uint64, hit_at: np.uint64, now_ps: int) -> None:
    """Keep the time of an entry's last hit, so that the entry may become idle."""
    record = fields[row + np.uint64(COUNTER)]
    if record != _U0:
        fields[record + hit_at] = np.uint64(now_ps) + _U1
