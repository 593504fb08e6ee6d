"""A table's entries, as the control plane sees them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ringleaf.core.arena import Fields
from ringleaf.core.units import format_count
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.control.images import Image, without_entries
from ringleaf.switches.control.profiles import Profile, check_arguments
from ringleaf.switches.engine.columns import EntryColumns
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.engine.updates import (
    InstalledEntry,
    Match,
    MemberGroup,
    ProfileMember,
    prefix_mask,
)
from ringleaf.switches.source import ActionSource

MOST_KEPT_IMAGES = 64
"""The images of a table that are kept for when it has the same entries again."""

MOST_KEPT_ENTRIES = 256
"""The entries of a table whose images are kept; those of larger ones take memory."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The last image of a table, and where it has each entry.

    Attributes:
        form: All that places depend on.
        actions: Each entry's action and arguments.
        image: The image.
        places: The place of each entry's row (`Image.places`); empty: they are not known.
    """

    form: Hashable
    actions: Sequence[tuple[int, tuple[int, ...]]]
    image: Fields
    places: Sequence[int]


class TableEntries:
    """The entries of one table of one switch; `profile` is its action profile, if it has one."""

    def __init__(
        self,
        shape: TableShape,
        actions: Mapping[int, ActionSource],
        where: str,
        profile: Profile | None,
    ) -> None:
        self._shape = shape
        self._actions = actions  # of the whole program
        self._profile = profile
        self._where = f"{where}: table {shape.table.name!r}"
        self._columns: EntryColumns | None = None  # all entries, while nobody looks at single ones
        self._made: dict[tuple[Match, int], InstalledEntry] = {}
        self._images: dict[Hashable, Fields] = {}  # by entries, default and place of records
        self._layout: TableLayout | None = None
        self._free_records: list[int] = []
        self._references: Counter[ProfileMember | MemberGroup] = Counter()
        self.records = 0  # records (of counter, meter and last hit) ever needed at once
        self.fresh: list[int] = []  # records that have changed hands and must start anew
        table = shape.table
        # p4c numbers actions anew for each table; tables that share a profile know them by name.
        names = {actions[number].name: number for number in table.actions}
        self._own = {
            number: names[action.name] for number, action in actions.items() if action.name in names
        }
        self.default = InstalledEntry((), table.default_action, table.default_arguments)
        for const in table.entries:
            match = tuple(
                const_match(key.kind, values, width)
                for key, values, width in zip(table.keys, const.keys, shape.widths, strict=True)
            )
            self._add(
                InstalledEntry(
                    match, const.action, const.arguments, -const.priority, _prefix(match)
                )
            )

    @property
    def _entries(self) -> dict[tuple[Match, int], InstalledEntry]:
        """The entries by match and precedence, oldest first."""
        if self._columns is not None:
            entries, self._columns = self._columns.entries(), None
            self._made = {(entry.match, entry.precedence): entry for entry in entries}
        return self._made

    @property
    def entries(self) -> Iterable[InstalledEntry]:
        """All entries, oldest first."""
        return self._entries.values()

    def image(self, records_at: int) -> Fields:
        """Return the table's image, for compiled code.

        Args:
            records_at: Offset in `arena.fields` of the entries' records, 0 for none.
        """
        if not (self._columns or self._made or self._profile):
            return without_entries(self._shape, self.default.action, self.default.arguments)
        if self._columns or self._profile or len(self._made) > MOST_KEPT_ENTRIES:
            return self._lay_out(self._columns or list(self._made.values()), records_at)
        # Routes that change for a while and back have the same entries again.
        entries = list(self._made.values())
        key = *map(_content, [*entries, self.default]), records_at
        if key not in self._images:
            if len(self._images) == MOST_KEPT_IMAGES:
                self._images.clear()
            self._images[key] = self._rewritten(entries, records_at)
        return self._images[key]

    def _rewritten(self, entries: Sequence[InstalledEntry], records_at: int) -> Fields:
        """Return the image of entries, most of whose rows are as in the last one.

        An entry's place depends on all keys, but on no action.
        """
        image = Image(self._shape, entries, self.default, self._profile, self._own)
        form = *map(_placing, entries), _content(self.default), records_at
        actions = [(entry.action, entry.arguments) for entry in entries]
        before = self._layout
        if before is None or before.form != form or not before.places:
            words = image.build(records_at)
            self._layout = TableLayout(form, actions, words, image.places)
            return words
        words = before.image.copy()
        pairs = zip(before.actions, actions, entries, before.places, strict=True)
        for last, now, entry, place in pairs:
            if now != last and place >= 0:
                image.rewrite(words, entry, place, records_at)
        self._layout = TableLayout(form, actions, words, before.places)
        return words

    def _lay_out(self, entries: Sequence[InstalledEntry] | EntryColumns, records_at: int) -> Fields:
        image = Image(self._shape, entries, self.default, self._profile, self._own)
        return image.build(records_at)

    def extend(self, columns: EntryColumns) -> bool:
        """Add entries to those that came by columns; return whether that could be done.

        If not, nothing has changed, and `insert` does it or says which one can't be inserted.

        Args:
            columns: Entries whose keys, actions and arguments the table can have.
        """
        if self._made or (self.records and self._columns is None) or self._is_special:
            return False
        if self._columns is not None:
            columns = self._columns.followed_by(columns)
        if len(columns) > self._shape.table.max_size or not columns.are_unique():
            return False
        self._columns = columns
        if self._shape.record_words:
            self.fresh += range(self.records, len(columns))
        self.records = len(columns)
        return True

    @property
    def _is_special(self) -> bool:
        """Whether columns lack some part of this table's entries, or none may be inserted."""
        table = self._shape.table
        is_fixed = bool(table.entries) or not table.keys
        is_masked = any(key.mask is not None for key in table.keys)
        return is_fixed or is_masked or self._profile is not None or bool(self._shape.ranges)

    def insert(self, entry: InstalledEntry) -> None:
        """Add an entry.

        Raises:
            ConfigError: If the table is constant or full, or has this match already.
        """
        self._check(entry)
        if (self._masked(entry.match), entry.precedence) in self._entries:
            raise ConfigError(
                f"{self._where}: entry exists already, got {_show(entry.match)}",
                Code.ALREADY_EXISTS,
            )
        if len(self._entries) >= self._shape.table.max_size:
            raise ConfigError(
                f"{self._where}: table is full, got entry {len(self._entries) + 1}"
                f" of {self._shape.table.max_size}",
                Code.RESOURCE_EXHAUSTED,
            )
        self._add(replace(entry, prefix=_prefix(entry.match)))

    def modify(self, entry: InstalledEntry) -> None:
        """Give an entry another action and timeout; its counter and meter go on."""
        self._check(entry)
        old = self.find(entry)
        self._refer(old, -1)
        old.action, old.arguments, old.indirect = entry.action, entry.arguments, entry.indirect
        old.idle_timeout_ns = entry.idle_timeout_ns
        self._refer(old, 1)

    def delete(self, entry: InstalledEntry) -> None:
        """Delete an entry, found by its match and precedence."""
        self._check_mutable()
        old = self.find(entry)
        self._refer(old, -1)
        self._free_records.append(old.counter)
        del self._entries[old.match, old.precedence]

    def find(self, entry: InstalledEntry) -> InstalledEntry:
        """Return the entry of this match and precedence."""
        try:
            return self._entries[self._masked(entry.match), entry.precedence]
        except KeyError:
            raise ConfigError(
                f"{self._where}: no such entry, got {_show(entry.match)}", Code.NOT_FOUND
            ) from None

    def set_default(self, entry: InstalledEntry | None) -> None:
        """Set the default action, or with None the program's again.

        Raises:
            ConfigError: If the program says that the default action is constant.
        """
        table = self._shape.table
        if entry is None:
            entry = InstalledEntry((), table.default_action, table.default_arguments)
        elif table.default_const or (table.action_const and entry.action != table.default_action):
            raise ConfigError(
                f"{self._where}: default action is constant, got a change of it",
                Code.PERMISSION_DENIED,
            )
        else:
            self._check_action(entry)
        self._refer(self.default, -1)
        self.default = InstalledEntry((), entry.action, entry.arguments, indirect=entry.indirect)
        self._refer(self.default, 1)

    def refers_to(self, reference: ProfileMember | MemberGroup) -> bool:
        """Return whether an entry refers to a member or group of the action profile."""
        return self._references[reference] > 0

    def _check(self, entry: InstalledEntry) -> None:
        self._check_mutable()
        self._check_action(entry)
        if len(entry.match) != len(self._shape.widths):
            raise ConfigError(
                f"{self._where}: has {format_count(len(self._shape.widths), 'key')}, got "
                f"{len(entry.match)}"
            )
        for (value, mask), width in zip(entry.match, self._shape.widths, strict=True):
            if not (0 <= value < 1 << width and 0 <= mask < 1 << width):
                raise ConfigError(
                    f"{self._where}: key has {format_count(width, 'bit')}, got {value:#x}/{mask:#x}"
                )

    def _check_mutable(self) -> None:
        if self._shape.table.entries:
            raise ConfigError(
                f"{self._where}: entries are constant, got a change of them",
                Code.PERMISSION_DENIED,
            )
        if not self._shape.table.keys:
            raise ConfigError(f"{self._where}: has no key, got an entry; set its default action")

    def _check_action(self, entry: InstalledEntry) -> None:
        if self._profile is not None and entry.indirect is not None:
            self._profile.check(self._where, entry.indirect)
        elif self._profile is not None or entry.indirect is not None:
            what = "an action" if self._profile is None else "a member or a group of its profile"
            got = entry.indirect or f"action {entry.action}"
            raise ConfigError(f"{self._where}: entry must name {what}, got {got}")
        elif entry.action not in self._shape.table.actions:
            raise ConfigError(f"{self._where}: not one of its actions, got {entry.action}")
        else:
            check_arguments(self._where, self._actions[entry.action], entry.arguments)

    def _add(self, entry: InstalledEntry) -> None:
        if self._free_records:
            entry.counter = self._free_records.pop()
        else:
            entry.counter = self.records
            self.records += 1
        self.fresh.append(entry.counter)
        entry.match = self._masked(entry.match)
        self._entries[entry.match, entry.precedence] = entry
        self._refer(entry, 1)

    def _refer(self, entry: InstalledEntry, count: int) -> None:
        if entry.indirect is not None:
            self._references[entry.indirect] += count

    def _masked(self, match: Match) -> Match:
        """Return the match without the bits that the program's own masks leave out.

        BMv2 does the same, before it looks for duplicates (`match_units.cpp`, `apply_big_mask`).
        """
        keys = self._shape.table.keys
        return tuple(
            pair if key.mask is None else (pair[0] & key.mask, pair[1])
            for key, pair in zip(keys, match, strict=True)
        )


def const_match(kind: str, values: tuple[int, ...], width: int) -> tuple[int, int]:
    """Return (value, mask), or (low, high), of one key of a constant entry."""
    full = (1 << width) - 1
    match kind:
        case "exact":
            return values[0], full
        case "lpm":
            return values[0], prefix_mask(width, values[1])
        case _:
            return values[0], values[1]


def _prefix(match: Match) -> int:
    return sum(mask.bit_count() for _, mask in match)


def _show(match: Match) -> str:
    return ", ".join(f"{value:#x}/{mask:#x}" for value, mask in match) or "the default"


def _placing(entry: InstalledEntry) -> Hashable:
    """Return what an entry's place in its table's image depends on, and its record's."""
    return entry.match, entry.precedence, entry.prefix, entry.counter


def _content(entry: InstalledEntry) -> Hashable:
    """Return all of an entry that its table's image is made of, if there is no profile."""
    return (
        *(entry.match, entry.action, entry.arguments, entry.precedence, entry.prefix),
        entry.counter,
    )
