"""Digests: messages from packets to the control plane, in a bounded queue of the switch.

A message is a row of `arena.fields`: the digest's place among the program's, the time, and the
values. BMv2 collects messages in lists, and leaves out those that it has sent and that are not
acknowledged yet (`src/bm_sim/learning.cpp`); here both are up to the code that passes them on.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ringleaf.core.arena import Fields, Store
from ringleaf.core.compiled import inline
from ringleaf.errors import Code, ConfigError, choose
from ringleaf.switches.engine.layout import DIGESTS_AT
from ringleaf.switches.engine.updates import DELETE, DigestMessage, DigestUpdate

DIGEST_MESSAGES = 1024  # the most messages that a switch keeps

# Columns of the queue in `arena.fields`.
ENABLED = 0  # a bit per digest
COUNT = 1
DROPPED = 2
FIRST_MESSAGE = 3

# Columns of a message.
DIGEST = 0
TIME_PS = 1
VALUES = 2

_U1 = np.uint64(1)
_ENABLED = np.uint64(ENABLED)
_COUNT = np.uint64(COUNT)
_DROPPED = np.uint64(DROPPED)
_FIRST_MESSAGE = np.uint64(FIRST_MESSAGE)
_TIME_PS = np.uint64(TIME_PS)
_VALUES = np.uint64(VALUES)
_CAPACITY = np.uint64(DIGEST_MESSAGES)
_U0 = np.uint64(0)


@inline
def begin_message(
    fields: Fields, queue: np.uint64, digest: np.uint64, words: np.uint64, now_ps: int
) -> np.uint64:
    """Return the offset of a new message's values; 0 if it is not enabled, or there is no room."""
    if (fields[queue + _ENABLED] >> digest) & _U1 == _U0:
        return _U0
    count = fields[queue + _COUNT]
    if count == _CAPACITY:
        fields[queue + _DROPPED] += _U1
        return _U0
    fields[queue + _COUNT] = count + _U1
    message = queue + _FIRST_MESSAGE + count * words
    fields[message] = digest
    fields[message + _TIME_PS] = np.uint64(now_ps)
    return message + _VALUES


class Digests:
    """The queue of the switch whose block of `arena.words` is at `at`.

    `words` are, per digest, the numbers of words of its values.
    """

    def __init__(
        self, store: Store, at: int, where: str, words: dict[str, tuple[int, ...]]
    ) -> None:
        self._store = store
        self._where = where
        self._words = words
        self._names = list(words)
        self._message_words = message_words(words.values())
        self._at = 0
        if words:
            room = FIRST_MESSAGE + DIGEST_MESSAGES * self._message_words
            self._at = store.allocate("fields", room)
            store.arena.words[at + DIGESTS_AT] = self._at

    def update(self, update: DigestUpdate) -> None:
        """Enable or disable a digest.

        Raises:
            ConfigError: If there is no such digest, or one that is not enabled is to be deleted.
        """
        name = choose(self._where, "digest", update.digest, self._names)
        bit = 1 << self._names.index(name)
        enabled = self._column(ENABLED)
        if update.verb == DELETE and not enabled & bit:
            raise ConfigError(
                f"{self._where}: digest is not enabled, got a delete of {name!r}", Code.NOT_FOUND
            )
        changed = enabled & ~bit if update.verb == DELETE else enabled | bit
        self._store.arena.fields[self._at + ENABLED] = changed

    @property
    def enabled(self) -> list[str]:
        """Return the names of the digests whose messages are kept, in the program's order."""
        mask = self._column(ENABLED) if self._names else 0
        return [name for i, name in enumerate(self._names) if mask >> i & 1]

    @property
    def dropped(self) -> int:
        """Return the number of messages for which the queue had no room."""
        return self._column(DROPPED) if self._names else 0

    def take(self) -> list[DigestMessage]:
        """Return all messages, oldest first, and forget them."""
        if not self._names:
            return []
        start, words = self._at + FIRST_MESSAGE, self._message_words
        end = start + words * self._column(COUNT)
        rows = self._store.arena.fields[start:end].reshape(-1, words).tolist()
        self._store.arena.fields[self._at + COUNT] = 0
        return [self._message(row) for row in rows]

    def _message(self, row: list[int]) -> DigestMessage:
        name = self._names[row[DIGEST]]
        values = []
        at = VALUES
        for count in self._words[name]:
            values.append(sum(row[at + i] << 64 * i for i in range(count)))
            at += count
        return DigestMessage(name, tuple(values), row[TIME_PS])

    def _column(self, column: int) -> int:
        return int(self._store.arena.fields[self._at + column])


def message_words(words: Iterable[tuple[int, ...]]) -> int:
    """Return the number of words that hold a message of any of these digests."""
    return VALUES + max((sum(counts) for counts in words), default=0)
