"""Columns of tables: what a row's values are called, and how they are written.

The table on stdout has as many columns as fit, or all of them: scripts read `results.csv`, whose
columns stay; a table is for people. Rows suit awk as ever: blanks are between columns only. Pages
have all columns.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

from ringleaf.core.units import PS_PER_MS, PS_PER_US

LETTERS = 100
"""The width of a table that goes to no terminal."""
_LEAST = 40  # a narrower terminal gets lines that it must break
_NUMBER = re.compile(r"-?\d{4,}(\.\d+)?")


def value_of(row: Any, name: str) -> Any:
    """Return a value of a row, which is a mapping or an object."""
    return row[name] if isinstance(row, Mapping) else getattr(row, name)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a kind of rows.

    Args:
        name: The value's name in a row.
        title: The column's head.
        unit: The text below it: `us`.
        width: Letters at least.
        show: Makes a text of the value.
        missing: The text where there is no value.
        on_page: Makes a text of the value for pages; None: as `show`, with digits in groups.
        is_share: Whether pages show the value, in percent, as a bar.
        is_swept: Whether the page of a sweep has it.
    """

    name: str
    title: str
    unit: str = ""
    width: int = 0
    show: Callable[[Any], str] = str
    missing: str = "-"
    on_page: Callable[[Any], str] | None = None
    is_share: bool = False
    is_swept: bool = False

    def text(self, row: Any) -> str:
        """Return a row's value as text."""
        value = value_of(row, self.name)
        return self.missing if value is None else self.show(value)

    def cell(self, row: Any) -> str:
        """Return a row's value as text for a page."""
        value = value_of(row, self.name)
        if self.on_page is None or value is None:
            return grouped(self.text(row))
        return self.on_page(value)

    @property
    def heading(self) -> str:
        """The column's head on a page: `time (µs)`."""
        unit = self.unit if self.on_page is None else ""
        return f"{self.title} ({unit})".replace("(us)", "(µs)") if unit else self.title


def grouped(text: str) -> str:
    """Return a text; if it is a number of four digits or more, with commas: `12,345.67`."""
    if not _NUMBER.fullmatch(text):
        return text
    whole, point, part = text.partition(".")
    return f"{int(whole):,}{point}{part}"


def as_us(time_ps: float) -> str:
    """Return a time in microseconds."""
    return f"{time_ps / PS_PER_US:.2f}"


def as_ms(time_ps: float) -> str:
    """Return a time in milliseconds."""
    return f"{time_ps / PS_PER_MS:.3f}"


def fixed(digits: int) -> Callable[[float], str]:
    """Return a function that writes a number with so many digits behind the point."""
    return lambda value: f"{value:.{digits}f}"


def bandwidth(gb_s: float) -> str:
    """Return a bandwidth in 10^9 bytes/s with two significant digits, however small it is."""
    if gb_s >= 0.1 or not gb_s:
        return f"{gb_s:.2f}"
    return f"{gb_s:.4f}" if gb_s >= 0.001 else f"{gb_s:.1e}"


def widened(columns: Iterable[Column], texts: Mapping[str, Iterable[str]]) -> list[Column]:
    """Return columns that are at least as wide as texts, which are given by columns' names."""
    return [
        replace(each, width=max([each.width, *map(len, texts.get(each.name, ()))]))
        for each in columns
    ]


def letters(*, wide: bool) -> int | None:
    """Return how wide a table may be: as the terminal, or 100 letters; None: as it likes."""
    if wide:
        return None
    if not sys.stdout.isatty():
        return LETTERS
    return max(shutil.get_terminal_size((LETTERS, 24)).columns, _LEAST)


def fitting(columns: Sequence[Column], spare: Sequence[str], most: int | None) -> list[Column]:
    """Return the columns that fit into a line.

    Args:
        columns: All columns.
        spare: Names of those that can be left out, the least important first.
        most: The letters of a line; None: all columns are kept.
    """
    kept = list(columns)
    for name in spare:
        if most is None or sum(each.width + 1 for each in kept) - 1 <= most:
            break
        kept = [each for each in kept if each.name != name]
    return kept


def line(texts: Iterable[str], columns: Sequence[Column]) -> str:
    """Return texts below one another's columns, at their right."""
    parts = (f"{text:>{each.width}}" for text, each in zip(texts, columns, strict=True))
    return " ".join(parts).rstrip()


def titles(columns: Sequence[Column]) -> Iterator[str]:
    """Yield the two lines above the rows: names, and units."""
    yield "#" + line((each.title for each in columns), columns)[1:]
    units = (f"({each.unit})" if each.unit else "" for each in columns)
    yield "#" + line(units, columns)[1:]


def fold(lines: Iterable[str], most: int | None) -> Iterator[str]:
    """Yield comments so that each fits: what is too long goes on in the next line."""
    for each in lines:
        if most is None or len(each) <= most:
            yield each
        else:
            yield from wrap(
                each, most, subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
            )
