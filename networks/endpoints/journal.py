"""A journal of a collective's messages: when each was given to its agent, and when it was done."""

from __future__ import annotations

from ringleaf.arena import Store
from ringleaf.hosts.plan import RECEIVE, SEND, SUM
from ringleaf.networks import outcome
from ringleaf.networks.endpoints import driver as d
from ringleaf.networks.outcome import Note

_KINDS = {SEND: outcome.SEND, RECEIVE: outcome.RECEIVE, SUM: outcome.AGGREGATE}


class Journal:
    """Notes of messages and aggregates, in the order in which they were done.

    Args:
        store: The store that the driver takes them down in.
        messages: The number of the schedule's messages.
        most: Notes that are kept; those after them are only counted.
        start_ps: The time from which on times are counted.
    """

    def __init__(self, store: Store, messages: int, *, most: int, start_ps: int) -> None:
        self._store = store
        self._start_ps = start_ps
        self.at = store.allocate("words", d.JOURNAL_WORDS)
        notes_at = store.allocate("words", most * d.NOTE_WORDS)
        posted_at = store.allocate("words", messages)
        words = store.arena.words
        words[self.at + d.NOTES_AT], words[self.at + d.POSTED_AT] = notes_at, posted_at
        words[self.at + d.MOST_NOTES] = most

    @property
    def notes(self) -> list[Note]:
        """The notes, with times since the start."""
        words = self._store.arena.words
        count, start = int(words[self.at + d.NOTES]), int(words[self.at + d.NOTES_AT])
        rows = words[start : start + count * d.NOTE_WORDS].reshape(count, d.NOTE_WORDS).copy()
        rows[:, 4:] -= self._start_ps
        return [Note(_KINDS[kind], *rest) for kind, *rest in rows.tolist()]

    @property
    def left_out(self) -> int:
        """The number of messages and aggregates that are not among the notes."""
        return int(self._store.arena.words[self.at + d.LEFT_OUT])
