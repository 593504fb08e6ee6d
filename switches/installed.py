"""Where a table lies in the arena: its image, and the records of its entries.

A record is an entry's counter, meter and the time of its last hit, as far as the table has them
(`shapes.py`); the image says where each entry's is.
"""

from __future__ import annotations

import numpy as np

from ringleaf.arena import Fields, Store
from switches.meters import METER_WORDS
from switches.shapes import COUNTER_WORDS, Shape
from switches.tables import TableEntries
from switches.updates import Entry


class InstalledTable:
    """A table of one switch; `word` is the one of `arena.words` that says where its image is."""

    def __init__(self, store: Store, word: int, shape: Shape, entries: TableEntries) -> None:
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
            self._room = max(image.size, 2 * self._room)
            at = store.allocate("fields", self._room)
            store.arena.words[self._word] = at
        store.arena.fields[at : at + image.size] = image
        self.is_stale = False

    def counter(self, entry: Entry, now_ps: int) -> Fields:
        """Return a view of an entry's counter: packets, bytes."""
        return self._record(entry, now_ps)[:COUNTER_WORDS]

    def meter(self, entry: Entry, now_ps: int) -> Fields:
        """Return a view of an entry's meter."""
        return self._record(entry, now_ps)[self.shape.meter_at :][:METER_WORDS]

    def touch(self, entry: Entry, now_ps: int) -> None:
        """Let an entry's idle time start anew."""
        if self.shape.table.timed:
            self._record(entry, now_ps)[self.shape.hit_at] = now_ps + 1

    def last_hit_ps(self, entry: Entry, now_ps: int) -> int:
        """Return when an entry of a table with timeouts was last hit, inserted or modified."""
        return int(self._record(entry, now_ps)[self.shape.hit_at]) - 1

    def take_idle(self, now_ps: int) -> list[Entry]:
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
        if self.shape.table.counted:
            words = self.shape.record_words
            end = self._records_at + self._records_room * words
            for column in range(COUNTER_WORDS):
                self._store.arena.fields[self._records_at + column : end : words] = 0

    def _record(self, entry: Entry, now_ps: int) -> Fields:
        """Return a view of an entry's record; the default entry's is of zeros, and kept nowhere."""
        words = self.shape.record_words
        if not entry.match:
            return np.zeros(words, np.uint64)
        self._place_records(now_ps)
        start = self._records_at + self.entries.find(entry).counter * words
        return self._store.arena.fields[start : start + words]

    def _place_records(self, now_ps: int) -> None:
        """Give every entry a record; those of new entries start at zero, and hit now."""
        words, wanted = self.shape.record_words, self.entries.records
        if not words:
            return
        if wanted > self._records_room or not self._records_at:
            start, end = self._records_at, self._records_at + self._records_room * words
            old = self._store.arena.fields[start:end].copy()
            self._records_room = max(wanted, 2 * self._records_room, 8)
            self._records_at = self._store.allocate("fields", self._records_room * words)
            self._store.arena.fields[self._records_at :][: old.size] = old
            self.is_stale = True
        for record in self.entries.fresh:
            start = self._records_at + record * words
            self._store.arena.fields[start : start + words] = 0
            if self.shape.table.timed:
                self._store.arena.fields[start + self.shape.hit_at] = now_ps + 1
            self._reported.pop(record, None)
        self.entries.fresh.clear()
