"""A journal of a collective's messages: when each was given to its agent, and when it was done."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Store
from ringleaf.hosts.plan import RECEIVE, SEND, SUM
from ringleaf.networks import outcome
from ringleaf.networks.endpoints import driver as d
from ringleaf.networks.outcome import Note

_KINDS = {SEND: outcome.SEND, RECEIVE: outcome.RECEIVE, SUM: outcome.AGGREGATE}

_END = 5  # column of a note


class Journal:
    """Notes of messages and aggregates, in the order in which they were done.

    Those of one time are in the order of their nodes.

    Args:
        store: The store that the drivers take them down in.
        messages: The number of the schedule's messages.
        most: Notes that are kept; those after them, and of the last one's time, are only counted.
        start_ps: The time from which on times are counted.
        regions: The number of drivers.
    """

    def __init__(
        self, store: Store, messages: int, *, most: int, start_ps: int, regions: int = 1
    ) -> None:
        self._store = store
        self._most = most
        self._start_ps = start_ps
        self.blocks = [store.allocate("words", d.JOURNAL_WORDS) for _ in range(regions)]
        """The drivers' blocks."""
        posted_at = store.allocate("words", messages)
        for at in self.blocks:
            notes_at = store.allocate("words", most * d.NOTE_WORDS)
            words = store.arena.words
            words[at + d.NOTES_AT], words[at + d.POSTED_AT] = notes_at, posted_at
            words[at + d.MOST_NOTES] = most

    @property
    def notes(self) -> list[Note]:
        """The notes, with times since the start."""
        rows = self._rows()
        rows[:, 4:] -= self._start_ps
        return [Note(_KINDS[kind], *rest) for kind, *rest in rows.tolist()]

    @property
    def left_out(self) -> int:
        """The number of messages and aggregates that are not among the notes."""
        return self._count() - len(self._rows())

    def _count(self) -> int:
        words = self._store.arena.words
        return sum(int(words[at + d.NOTES] + words[at + d.LEFT_OUT]) for at in self.blocks)

    def _rows(self) -> npt.NDArray[np.int64]:
        """Return the first `most` notes of all drivers, without the last time if not all are."""
        words = self._store.arena.words
        rows = np.concatenate([_table(words, at) for at in self.blocks])
        rows = rows[np.lexsort(rows.T[[3, 2, 0, 1, _END]])]
        if self._count() > self._most:
            rows = rows[rows[:, _END] < rows[self._most - 1, _END]]
        return rows


def _table(words: npt.NDArray[np.int64], at: int) -> npt.NDArray[np.int64]:
    count, start = int(words[at + d.NOTES]), int(words[at + d.NOTES_AT])
    return words[start : start + count * d.NOTE_WORDS].reshape(count, d.NOTE_WORDS)
