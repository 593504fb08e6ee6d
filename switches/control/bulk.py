"""Rows of a table's image, made of columns of entries."""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Fields, Words
from ringleaf.switches.engine.columns import EntryColumns
from ringleaf.switches.engine.lookup import ACTION, COUNTER, KEYS, RANK
from ringleaf.switches.engine.shapes import TableShape


def rows_of(columns: EntryColumns, shape: TableShape, records_at: int) -> tuple[Fields, Fields]:
    """Return rows, (entries, row words), and their masks, (entries, key words), best first.

    Args:
        columns: Entries, in a table without ranges and action profile.
        shape: The table's packing.
        records_at: Offset in `arena.fields` of the entries' records, 0 for none.
    """
    order, rank = _ranked(columns, shape)
    rows = np.zeros((len(columns), shape.row_words), np.uint64)
    rows[:, RANK] = rank
    if records_at:
        rows[:, COUNTER] = records_at + shape.record_words * order
    rows[:, ACTION] = columns.action[order]
    masks = _masks(columns.masks[order], shape)
    rows[:, KEYS : KEYS + shape.key_words] = _pack(columns.values[order] & masks, shape)
    start, count = shape.arguments_at, columns.arguments.shape[1]
    rows[:, start : start + count] = columns.arguments[order]
    return rows, _pack(masks, shape)


def _masks(masks: Fields, shape: TableShape) -> Fields:
    """Return masks, (entries, keys), as `TableShape.masks` has them."""
    if not any(shape.padding):
        return masks
    full = np.array([(1 << width) - 1 for width in shape.widths], np.uint64)
    return masks << np.array(shape.padding, np.uint64) & full


def _ranked(columns: EntryColumns, shape: TableShape) -> tuple[Words, Words]:
    """Return the entries' places, best first, and their ranks; among equals the oldest first."""
    if shape.prioritized:
        order = np.argsort(-columns.precedence, kind="stable")
        return order, np.arange(len(columns), 0, -1)
    prefixes = columns.prefixes
    order = np.argsort(-prefixes, kind="stable")
    return order, prefixes[order] + 1


def _pack(keys: Fields, shape: TableShape) -> Fields:
    """Return all keys, (entries, keys), as the words of a row, (entries, key words)."""
    words = np.zeros((len(keys), shape.key_words), np.uint64)
    for part in shape.parts:
        assert part.source == 0, "columns have keys of one word"
        words[:, part.word] |= keys[:, part.key] << np.uint64(part.shift)
    return words
