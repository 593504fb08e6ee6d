"""Columns of the tables on stdout: as many as fit, or all of them.

Scripts read `results.csv`, whose columns stay; a table is for people, and has the most important
columns that fit. Rows suit awk as ever: blanks are between columns only.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

LETTERS = 100
"""The width of a table that goes to no terminal."""
_LEAST = 40  # a narrower terminal gets lines that it must break

Column = tuple[str, str, int]
"""Name, unit and least width."""


def letters(*, wide: bool) -> int | None:
    """Return how wide a table may be: as the terminal, or 100 letters; None: as it likes."""
    if wide:
        return None
    if not sys.stdout.isatty():
        return LETTERS
    return max(shutil.get_terminal_size((LETTERS, 24)).columns, _LEAST)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table that are printed.

    Args:
        columns: All of them.
        kept: The places of those that are printed.
    """

    columns: Sequence[Column]
    kept: tuple[int, ...]

    @classmethod
    def fitting(
        cls,
        columns: Sequence[Column],
        spare: Sequence[str],
        most: int | None,
        without: Sequence[str] = (),
    ) -> Columns:
        """Return the columns that fit.

        Args:
            columns: All columns.
            spare: Names of those that can be left out, the least important first.
            most: The letters of a line; None: all columns are kept.
            without: Names of those that have nothing to say, and are left out in any case.
        """
        kept = [i for i, column in enumerate(columns) if column[0] not in without]
        for name in spare:
            if most is None or sum(columns[i][2] + 1 for i in kept) - 1 <= most:
                break
            kept = [i for i in kept if columns[i][0] != name]
        return cls(columns, tuple(kept))

    def line(self, cells: Iterable[str]) -> str:
        """Return a row, of which all cells are given, as a line."""
        every = list(cells)
        assert len(every) == len(self.columns)
        return " ".join(f"{every[i]:>{self.columns[i][2]}}" for i in self.kept).rstrip()

    def titles(self) -> Iterator[str]:
        """Yield the two lines above the rows: names, and units."""
        for part in (0, 1):
            yield "#" + self.line(str(each[part]) for each in self.columns)[1:]


def fold(lines: Iterable[str], most: int | None) -> Iterator[str]:
    """Yield comments so that each fits: what is too long goes on in the next line."""
    for line in lines:
        if most is None or len(line) <= most:
            yield line
        else:
            yield from wrap(
                line, most, subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
            )
