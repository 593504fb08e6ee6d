"""Rows that follow a rule: made by number or by chunk, and not kept unless somebody wants them all.

A ring of 4,096 ranks has 33 million rows. Whoever looks at them piece by piece, as the verifier
does, never has them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np

from ringleaf.collectives.rows import Column, Columns, Rows

_PIECE = 1 << 18  # rows, whose columns fit in a cache


class Rule(Protocol):
    """The rows of a regular schedule as functions of numbers; none of them aggregates."""

    @property
    def count(self) -> int:
        """The number of rows."""

    @property
    def steps(self) -> int:
        """The number of steps."""

    def at(self, numbers: Column) -> Columns:
        """Return the rows with these numbers, a chunk each."""

    def of_chunk(self, chunk: int) -> Column:
        """Return the numbers of a chunk's rows, in order."""


class RuledRows(Rows):
    """The rows of a schedule that follow a rule.

    Args:
        rule: The rule. Pickled rows are pickled rules.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    @cached_property
    def columns(self) -> Columns:  # type: ignore[override]
        """All rows, which are kept from now on."""
        return Rows(self._rule.at(np.arange(self._rule.count))).columns

    def __reduce__(self) -> tuple[type[RuledRows], tuple[Rule]]:
        """Leave the columns out."""
        return RuledRows, (self._rule,)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rule.count

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self._rule.steps

    def pieces(self) -> Iterator[Columns]:
        """Yield all rows, some after the other."""
        for first in range(0, len(self), _PIECE):
            yield self._rule.at(np.arange(first, min(first + _PIECE, len(self))))

    def of_chunk(self, chunk: int) -> tuple[Column, Columns]:
        """Return the numbers of a chunk's rows, and the rows."""
        numbers = self._rule.of_chunk(chunk)
        return numbers, self._rule.at(numbers)
