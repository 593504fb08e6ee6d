"""Rows of circulant schedules: one of each step is kept, the others are this one, turned.

A ring of 4,096 ranks has 33 million rows, and 8,190 that say what they are. Whoever needs a chunk's
rows, or a rank's, has them made.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from ringleaf.collectives.rows import ChunkRows, Column, Columns
from ringleaf.collectives.symmetry import Symmetry
from ringleaf.core.distinct import distinct


class CirculantRows(ChunkRows):
    """Steps of as many rows as there are ranks: each rank does as the one before it, turned.

    Row r of a step is its row 0, with r added to both ranks and to the chunk, modulo the number of
    ranks. So messages, and communication graphs, are circulant.

    Args:
        first: Row 0 of each step: a transfer of one chunk between ranks.
        ranks: The number of ranks, and of chunks.
    """

    def __init__(self, first: Columns, ranks: int) -> None:
        self.first, self.ranks = first, ranks

    @cached_property
    def columns(self) -> Columns:  # type: ignore[override]
        """All rows, which are kept from now on."""
        return self.at(np.arange(len(self)))

    def __reduce__(self) -> tuple[type[CirculantRows], tuple[Columns, int]]:
        """Leave the columns out."""
        return CirculantRows, (self.first, self.ranks)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.first) * self.ranks

    @property
    def messages(self) -> int:
        """The number of messages."""
        return len(self)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each aggregation: there are none."""
        return ()

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.first)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells these rows from others."""
        return self.first.digest, self.ranks

    @cached_property
    def symmetry(self) -> Symmetry:
        """All ranks are of one kind; a peer is as far from each."""
        rank = np.arange(self.ranks)[:, None]
        distances = np.unique((self.first.dst - self.first.src) % self.ranks)
        return Symmetry(
            kind=np.zeros(self.ranks, np.int64),
            peers=np.concatenate((rank + distances, rank - distances), axis=1) % self.ranks,
            rows_of=lambda rank: self.of_rank(rank)[1],
            is_even=True,
            messages=len(self),
            is_chain=len(distances) == 1,
        )

    def of_steps(self, first: int, stop: int) -> CirculantRows:
        """Return the rows of the steps from `first` to `stop` (excluded), numbered from 0."""
        kept = self.first.take(np.arange(first, stop))
        return CirculantRows(replace(kept, step=kept.step - first), self.ranks)

    def at(self, numbers: Column) -> Columns:
        """Return the rows with these numbers."""
        step, turn = np.divmod(numbers, self.ranks)
        src, dst, start = (
            _turned(each[step], turn, self.ranks)
            for each in (self.first.src, self.first.dst, self.first.start)
        )
        return Columns(step, src, dst, start, start + 1, self.first.op[step], np.zeros_like(step))

    def of_chunk(self, chunk: int) -> tuple[Column, Columns]:
        """Return the numbers of a chunk's rows, and the rows."""
        numbers = self._numbers(chunk - self.first.start)
        return numbers, self.at(numbers)

    def of_rank(self, rank: int) -> tuple[Column, Columns]:
        """Return the numbers of the rows that a rank sends or receives, and the rows."""
        ends = (self._numbers(rank - each) for each in (self.first.src, self.first.dst))
        numbers = distinct(np.concatenate(list(ends)))
        return numbers, self.at(numbers)

    def _numbers(self, turn: Column) -> Column:
        """Return the number of the row of each step that is turned so far."""
        numbers: Column = np.arange(self.steps) * self.ranks + turn % self.ranks
        return numbers


def _turned(column: Column, turn: Column, ranks: int) -> Column:
    places = column + turn
    places[places >= ranks] -= ranks
    return places
