"""A switch's tables and their places in the arena: of its image, and of its entries' records.

A record is an entry's counter, meter and the time of its last hit, as far as the table has them
(`shapes.py`); the image says where each entry's is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.core.arena import Fields, Store
from ringleaf.errors import ConfigError, choose
from ringleaf.switches.control.profiles import Profile
from ringleaf.switches.control.tables import TableEntries
from ringleaf.switches.engine.columns import EntryColumns
from ringleaf.switches.engine.meters import METER_WORDS
from ringleaf.switches.engine.shapes import COUNTER_WORDS, TableShape
from ringleaf.switches.engine.updates import (
    INSERT,
    MODIFY,
    InstalledEntry,
    MemberGroup,
    MemberGroupUpdate,
    MemberUpdate,
    ProfileMember,
    TableUpdate,
)
from ringleaf.switches.generate.state import TABLES_AT
from ringleaf.switches.program import Program


class InstalledTable:
    """A table of one switch; `word` is the one of `arena.words` that says where its image is."""

    def __init__(self, store: Store, word: int, shape: TableShape, entries: TableEntries) -> None:
        self.entries = entries
        self.shape = shape
        self._store = store
        self._word = word
        self._room = 0  # words for the image
        self._records_at = 0
        self._records_room = 0  # records
        self._reported: dict[int, int] = {}  # record -> last hit of its entry when found idle
        self.is_stale = True

    def commit(self, now_ps: int) -> None:
        """Write the image, to a new and larger range where the old one is too small."""
        self._place_records(now_ps)
        image = self.entries.image(self._records_at)
        store, at = self._store, int(self._store.arena.words[self._word])
        if image.size > self._room:
            # The store never takes ranges back; doubling bounds what a growing table leaves behind.
            self._room = max(image.size, 2 * self._room)
            at = store.allocate("fields", self._room)
            store.arena.words[self._word] = at
        store.arena.fields[at : at + image.size] = image
        self.is_stale = False

    def extend(self, columns: EntryColumns) -> bool:
        """Add entries, or change nothing and return False if they must be added one by one."""
        done = self.entries.extend(columns)
        self.is_stale = self.is_stale or done
        return done

    def counter(self, entry: InstalledEntry, now_ps: int) -> Fields:
        """Return a view of an entry's counter: packets, bytes."""
        return self._record(entry, now_ps)[:COUNTER_WORDS]

    def meter(self, entry: InstalledEntry, now_ps: int) -> Fields:
        """Return a view of an entry's meter."""
        return self._record(entry, now_ps)[self.shape.meter_at :][:METER_WORDS]

    def touch(self, entry: InstalledEntry, now_ps: int) -> None:
        """Let an entry's idle time start anew."""
        if self.shape.table.timed:
            self._record(entry, now_ps)[self.shape.hit_at] = now_ps + 1

    def last_hit_ps(self, entry: InstalledEntry, now_ps: int) -> int:
        """Return when an entry of a table with timeouts was last hit, inserted or modified."""
        return int(self._record(entry, now_ps)[self.shape.hit_at]) - 1

    def take_idle(self, now_ps: int) -> list[InstalledEntry]:
        """Return the entries that have become idle, each once until it is hit again.

        As in BMv2 (`sweep_entries`), whole timeouts must have passed since the last hit.
        """
        if not self.shape.table.timed:
            return []
        idle = []
        for entry in self.entries.entries:
            if not entry.idle_timeout_ns:
                continue
            hit = self.last_hit_ps(entry, now_ps)
            if 1000 * entry.idle_timeout_ns <= now_ps - hit:
                if self._reported.get(entry.counter) != hit:
                    idle.append(entry)
                self._reported[entry.counter] = hit
        return idle

    def clear_counters(self) -> None:
        """Set all direct counters of the table to zero."""
        if self.shape.table.counted:
            words = self.shape.record_words
            end = self._records_at + self._records_room * words
            for column in range(COUNTER_WORDS):
                self._store.arena.fields[self._records_at + column : end : words] = 0

    def _record(self, entry: InstalledEntry, now_ps: int) -> Fields:
        """Return a view of an entry's record; the default entry's is all zeros, and not kept."""
        words = self.shape.record_words
        if not entry.match:
            return np.zeros(words, np.uint64)
        self._place_records(now_ps)
        start = self._records_at + self.entries.find(entry).counter * words
        return self._store.arena.fields[start : start + words]

    def _place_records(self, now_ps: int) -> None:
        """Give every entry a record; records of new entries start at zero, and as if hit now."""
        words, count = self.shape.record_words, self.entries.records
        if not words:
            return
        if count > self._records_room or not self._records_at:
            start, end = self._records_at, self._records_at + self._records_room * words
            old = self._store.arena.fields[start:end].copy()
            self._records_room = max(count, 2 * self._records_room, 8)
            self._records_at = self._store.allocate("fields", self._records_room * words)
            self._store.arena.fields[self._records_at :][: old.size] = old
            self.is_stale = True
        fresh, end = self.entries.fresh, self._records_at + self._records_room * words
        records = self._store.arena.fields[self._records_at : end].reshape(-1, words)
        records[fresh] = 0
        if self.shape.table.timed:
            records[fresh, self.shape.hit_at] = now_ps + 1
        for record in fresh if self._reported else ():
            self._reported.pop(record, None)
        self.entries.fresh.clear()


class InstalledTables:
    """The tables and action profiles of the switch whose block is `at`, by their names."""

    def __init__(self, store: Store, at: int, program: Program, name: str) -> None:
        self._store = store
        self._at = at
        self._source = program.source
        self._name = name
        self._profiles = self._make_profiles()
        self._tables = {
            shape.table.name: self._make_table(number, shape)
            for number, shape in enumerate(program.module.shapes)
        }

    def __iter__(self) -> Iterator[InstalledTable]:
        return iter(self._tables.values())

    def __getitem__(self, name: str) -> InstalledTable:
        return self._tables[choose(self._name, "table", name, self._tables)]

    def profile(self, name: str) -> Profile:
        """Return the action profile of a name.

        Raises:
            ConfigError: If there is none.
        """
        return self._profiles[choose(self._name, "action profile", name, self._profiles)]

    def counted(self, name: str) -> InstalledTable:
        """Return a table with direct counters, by its own name or theirs."""
        table = self[self._source.direct_counters.get(name, name)]
        if not table.shape.table.counted:
            raise ConfigError(f"{self._name}: table has no direct counters, got {name!r}")
        return table

    def metered(self, name: str) -> InstalledTable:
        """Return a table with direct meters, by its own name or theirs."""
        meter = self._source.meters.get(name)
        table = self[meter.table if meter else name]
        if not table.shape.table.meter:
            raise ConfigError(f"{self._name}: table has no direct meters, got {name!r}")
        return table

    def commit(self, now_ps: int) -> None:
        """Make updates visible to packets; may move the store's arrays."""
        for table in self:
            if table.is_stale:
                table.commit(now_ps)

    def update(self, update: TableUpdate, now_ps: int) -> None:
        """Carry out an update of a table; packets meet it when the table's image is written."""
        table = self[update.table]
        if update.is_default:
            table.entries.set_default(update.entry)
        else:
            assert update.entry is not None
            if update.verb == INSERT:
                table.entries.insert(update.entry)
            elif update.verb == MODIFY:
                table.entries.modify(update.entry)
                table.touch(update.entry, now_ps)
            else:
                table.entries.delete(update.entry)
        table.is_stale = True

    def update_profile(self, update: MemberUpdate | MemberGroupUpdate) -> None:
        """Carry out an update of a profile, and mark the tables that use it as stale."""
        profile = self.profile(update.profile)
        if isinstance(update, MemberUpdate):
            profile.update_member(update)
        else:
            profile.update_group(update)
        for table in self._tables_of(update.profile):
            table.is_stale = True

    def _make_profiles(self) -> dict[str, Profile]:
        source = self._source
        tables = [*source.ingress.tables, *source.egress.tables]
        return {
            name: Profile(
                profile,
                {
                    number: source.actions[number]
                    for table in tables
                    if table.profile == name
                    for number in table.actions
                },
                self._name,
                self._is_used,
            )
            for name, profile in source.profiles.items()
        }

    def _make_table(self, number: int, shape: TableShape) -> InstalledTable:
        profile = self._profiles.get(shape.table.profile)
        entries = TableEntries(shape, self._source.actions, self._name, profile)
        return InstalledTable(self._store, self._at + TABLES_AT + number, shape, entries)

    def _is_used(self, profile: str, reference: ProfileMember | MemberGroup) -> bool:
        return any(table.entries.refers_to(reference) for table in self._tables_of(profile))

    def _tables_of(self, profile: str) -> Iterator[InstalledTable]:
        return (table for table in self if table.shape.table.profile == profile)
