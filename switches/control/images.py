"""The image of a table: its entries as compiled code searches them (`lookup.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from ringleaf.core.arena import Fields
from ringleaf.switches.control.bulk import rows_of
from ringleaf.switches.control.hashed import empty_group, lay_groups
from ringleaf.switches.control.profiles import Profile
from ringleaf.switches.engine.columns import EntryColumns
from ringleaf.switches.engine.lookup import (
    ACTION,
    COUNTER,
    DEFAULT_ROW,
    GROUP_ACTION,
    GROUPS,
    KEYS,
    MEMBERS,
    RANK,
)
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.engine.updates import InstalledEntry, MemberUpdate, ProfileMember
from ringleaf.switches.source import NO_ACTION

WORD_MASK = (1 << 64) - 1


class Image:
    """Lays out a table's entries."""

    def __init__(
        self,
        shape: TableShape,
        entries: Sequence[InstalledEntry] | EntryColumns,
        default: InstalledEntry,
        profile: Profile | None,
        own: Mapping[int, int],
    ) -> None:
        self._shape = shape
        self._entries = entries
        self._default = default
        self._profile = profile
        self._own = own  # the table's own number of each action
        self._groups_at: dict[int, int] = {}  # group -> index of its first member's row
        self._member_rows: list[Fields] = []
        self.places: list[int] = []
        """The place in the image of each entry's row; -1: it is never met, as another one is."""

    def build(self, records_at: int) -> Fields:
        """Return the image; `records_at` is where the entries' records are, 0 for none."""
        shape = self._shape
        default = self._row(self._default, 0, 0)
        if shape.ranges:
            assert not isinstance(self._entries, EntryColumns)
            rows = [self._row(entry, rank, records_at) for rank, entry in _ranked(self._entries)]
            count, body = len(rows), np.array(rows, np.uint64).ravel()
        else:
            count, body = self._groups(records_at)
        first = np.zeros(DEFAULT_ROW, np.uint64)
        first[GROUPS] = count
        default[MEMBERS] = first.size + default.size + body.size
        return np.concatenate([first, default, body, *self._member_rows])

    def _groups(self, records_at: int) -> tuple[int, Fields]:
        """Return the number of groups of equal mask, and all of them."""
        shape = self._shape
        start = DEFAULT_ROW + shape.row_words
        if not self._entries:
            if shape.kind != "exact":
                return 0, np.zeros(0, np.uint64)
            return 1, empty_group(self._masks_of_exact(), start, shape.row_words)
        if isinstance(self._entries, EntryColumns):
            count, body, _ = lay_groups(*rows_of(self._entries, shape, records_at), start)
            return count, body
        ordered = self._in_order(self._entries)
        count, body, places = lay_groups(*self._rows_and_masks(ordered, records_at), start)
        place_of = {
            id(entry): place for (_, entry), place in zip(ordered, places.tolist(), strict=True)
        }
        self.places = [place_of[id(entry)] for entry in self._entries]
        return count, body

    def rewrite(self, image: Fields, entry: InstalledEntry, place: int, records_at: int) -> None:
        """Write the row of an entry with another action over the one that it has in an image."""
        row = self._row(entry, int(image[place + RANK]), records_at)
        image[place : place + len(row)] = row

    def _rows_and_masks(
        self, ordered: Sequence[tuple[int, InstalledEntry]], records_at: int
    ) -> tuple[Fields, Fields]:
        """Return the rows of entries with ranks and the masks of their keys, in this order."""
        shape = self._shape
        rows = np.zeros((len(ordered), shape.row_words), np.uint64)
        masks = np.zeros((len(ordered), shape.key_words), np.uint64)
        for place, (rank, entry) in enumerate(ordered):
            rows[place] = self._row(entry, rank, records_at)
            masks[place] = self._pack(shape.masks(entry.match))
        return rows, masks

    def _in_order(self, entries: Sequence[InstalledEntry]) -> list[tuple[int, InstalledEntry]]:
        if self._shape.prioritized:
            return _ranked(entries)
        ranked = [(entry.prefix + 1, entry) for entry in entries]
        return sorted(ranked, key=lambda pair: -pair[0])

    def _masks_of_exact(self) -> tuple[int, ...]:
        return self._pack([(1 << width) - 1 for width in self._shape.widths])

    def _pack(self, values: list[int]) -> tuple[int, ...]:
        """Return the values of all keys as the words of a row."""
        words = [0] * self._shape.key_words
        for part in self._shape.parts:
            value = values[part.key] >> (64 * part.source) & ((1 << part.width) - 1)
            words[part.word] |= value << part.shift
        return tuple(words)

    def _limits(self, values: list[int]) -> list[int]:
        """Return the words of one limit of each range."""
        counts = self._shape.range_words
        pairs = zip(values, counts, strict=True)
        return [value >> 64 * i & WORD_MASK for value, count in pairs for i in range(count)]

    def _row(self, entry: InstalledEntry, rank: int, records_at: int) -> Fields:
        shape = self._shape
        row = np.zeros(shape.row_words, np.uint64)
        row[RANK] = rank
        row[COUNTER] = records_at + shape.record_words * entry.counter if records_at else 0
        action, arguments = self._action(entry)
        row[ACTION] = action
        if entry.match:
            # Ranges are compared with their limits, in columns behind the masks.
            looked = zip((value for value, _ in entry.match), shape.masks(entry.match), strict=True)
            pairs = [(0, 0) if i in shape.ranges else pair for i, pair in enumerate(looked)]
            # A look-up masks the packet's key and compares the rest, so an entry's key is masked,
            # too.
            keys = self._pack([value & mask for value, mask in pairs])
            row[KEYS : KEYS + len(keys)] = keys
            if shape.ranges:
                masks = self._pack([mask for _, mask in pairs])
                lows = self._limits([entry.match[i][0] for i in shape.ranges])
                highs = self._limits([entry.match[i][1] for i in shape.ranges])
                columns = [*masks, *lows, *highs]
                start = KEYS + len(keys)
                row[start : start + len(columns)] = columns
        self._put_arguments(row, action, arguments)
        return row

    def _put_arguments(self, row: Fields, action: int, arguments: tuple[int, ...]) -> None:
        at = self._shape.arguments_at
        for value, count in zip(arguments, self._shape.argument_words[action], strict=True):
            for i in range(count):
                row[at + i] = value >> 64 * i & WORD_MASK
            at += count

    def _action(self, entry: InstalledEntry) -> tuple[int, tuple[int, ...]]:
        """Return the action that an entry leads to; for a group, the members' number and place."""
        if entry.indirect is None:
            return entry.action, entry.arguments
        assert self._profile is not None
        number = entry.indirect.number
        if isinstance(entry.indirect, ProfileMember):
            member = self._profile.members[number]
            return self._own[member.action], member.arguments
        slots = self._profile.slots(number)
        if not slots:
            return NO_ACTION, ()  # BMv2's `empty_action`
        if number not in self._groups_at:
            self._groups_at[number] = len(self._member_rows)
            self._member_rows += [self._member_row(member) for member in slots]
        return GROUP_ACTION, (len(slots), self._groups_at[number])

    def _member_row(self, member: MemberUpdate) -> Fields:
        """Return a row that has only an action."""
        row = np.zeros(self._shape.row_words, np.uint64)
        action = self._own[member.action]
        row[ACTION] = action
        self._put_arguments(row, action, member.arguments)
        return row


@lru_cache(maxsize=1024)
def without_entries(shape: TableShape, action: int, arguments: tuple[int, ...]) -> Fields:
    """Return the image of a table that has only a default action: many switches have the same."""
    image = Image(shape, (), InstalledEntry((), action, arguments), None, {}).build(0)
    image.flags.writeable = False
    return image


def _ranked(entries: Sequence[InstalledEntry]) -> list[tuple[int, InstalledEntry]]:
    """Return (rank, entry), best first; among equals the first that came."""
    ordered = sorted(entries, key=lambda entry: -entry.precedence)
    return [(len(ordered) - i, entry) for i, entry in enumerate(ordered)]
