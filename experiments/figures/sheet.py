"""The width of figures: what suits each best, or that of a paper's column.

A column leaves fonts as they are, so that texts stay legible in print. Panels that stood side by
side go below one another, legends take more lines, and titles are broken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ringleaf.core.plausible import parse_column
from ringleaf.core.wrapping import wrapped

_LETTER = 0.6  # the mean width of a letter, of the size of a font
_POINTS = 72

_column: ContextVar[float | None] = ContextVar("column", default=None)


@contextmanager
def in_column(inches: float | None) -> Iterator[None]:
    """Have figures drawn for a column; None: as wide as suits each, unless a column is set."""
    if inches is None:
        yield
        return
    token = _column.set(inches)
    try:
        yield
    finally:
        _column.reset(token)


@contextmanager
def in_column_of(options: Mapping[str, Any]) -> Iterator[None]:
    """Have figures drawn for the column that a run's options name, unless one is set."""
    text = str(options.get("column") or "")
    with in_column(parse_column(text) if text and _column.get() is None else None):
        yield


def given_to(folder: Path) -> dict[str, Any]:
    """Return the options that a run was given, as typed; none if its directory does not tell."""
    try:
        options: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))[
            "given"
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return options


def size(width: float, height: float) -> tuple[float, float]:
    """Return a figure's size in inches, given the one that suits it."""
    return _column.get() or width, height


def across(panels: int, panel: float, beside: float = 0.0) -> int:
    """Return how many panels stand side by side.

    Args:
        panels: How many do if there is room.
        panel: The least width of one.
        beside: The width of all that is beside them.
    """
    column = _column.get()
    return panels if column is None else max(1, min(panels, int((column - beside) / panel)))


def entries(labels: Iterable[str], width: float, most: int = 6, points: float = 9) -> int:
    """Return how many of a legend's entries stand side by side on a figure of this width."""
    letters = max(map(len, labels), default=1)
    each = 0.6 + letters * _LETTER * points / _POINTS
    return max(1, min(most, int(width / each)))


def broken(text: str, width: float, points: float = 11) -> str:
    """Return a text in lines that fit a width in inches."""
    return "\n".join(wrapped(text, max(12, int(width * _POINTS / (points * _LETTER)))))
