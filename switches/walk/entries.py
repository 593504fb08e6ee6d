"""Finds the table entry that a look-up has matched."""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.core.arena import Fields
from ringleaf.switches.engine.lookup import KEYS, RANK
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.engine.updates import InstalledEntry
from ringleaf.switches.source import ActionSource
from ringleaf.switches.walk.formats import show_match
from ringleaf.switches.walk.steps import MatchedEntry, WalkValue
from ringleaf.switches.walk.views import joined


def matched_entry(
    shape: TableShape, entries: Sequence[InstalledEntry], row: Fields
) -> MatchedEntry | None:
    """Return the entry whose row in the table's image this is."""
    for index, entry in enumerate(entries):
        if _rank(shape, entries, index) == int(row[RANK]) and _has_keys(shape, entry, row):
            return _described(shape, entry, index)
    return None


def arguments_of(action: ActionSource, shape: TableShape, row: Fields) -> tuple[WalkValue, ...]:
    """Return an action's parameters, as they are in a row."""
    values = []
    at = shape.arguments_at
    for i, (width, count) in enumerate(
        zip(action.widths, shape.argument_words[action.number], strict=True)
    ):
        name = action.parameters[i] if i < len(action.parameters) else f"argument {i}"
        values.append(WalkValue(name, joined(row[at : at + count]), width))
        at += count
    return tuple(values)


def _rank(shape: TableShape, entries: Sequence[InstalledEntry], index: int) -> int:
    """Return an entry's rank, as `images.py` gives them."""
    if not shape.prioritized:
        return entries[index].prefix + 1
    order = sorted(range(len(entries)), key=lambda i: -entries[i].precedence)
    return len(entries) - order.index(index)


def _has_keys(shape: TableShape, entry: InstalledEntry, row: Fields) -> bool:
    if shape.prioritized:
        return True  # ranks differ
    words, masks = [0] * shape.key_words, shape.masks(entry.match)
    for part in shape.parts:
        value = entry.match[part.key][0] & masks[part.key]
        bits = value >> (64 * part.source) & ((1 << part.width) - 1)
        words[part.word] |= bits << part.shift
    return words == [int(word) for word in row[KEYS : KEYS + shape.key_words]]


def _described(shape: TableShape, entry: InstalledEntry, index: int) -> MatchedEntry:
    match = tuple(
        show_match(key.kind, pair, width, key.name)
        for key, pair, width in zip(shape.table.keys, entry.match, shape.widths, strict=True)
    )
    return MatchedEntry(index, match, abs(entry.precedence) if shape.prioritized else None)
