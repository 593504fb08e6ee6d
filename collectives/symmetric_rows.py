"""Rows of symmetric schedules, which are made only when somebody wants all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ringleaf.collectives.circulant import CirculantRows
from ringleaf.collectives.rows import ChunkRows, Columns
from ringleaf.collectives.symmetry import Exchange, Symmetry


class SymmetricRows(ChunkRows):
    """Rows that are made when somebody wants them, of a schedule whose symmetry is known.

    Args:
        symmetry: The schedule's symmetry.
        make: Returns all rows.
        rows: The number of rows.
        steps: The number of steps.
    """

    def __init__(
        self, symmetry: Symmetry | Exchange, make: Callable[[], Columns], *, rows: int, steps: int
    ) -> None:
        self.symmetry, self._make, self._rows, self._steps = symmetry, make, rows, steps

    @cached_property
    def columns(self) -> Columns:  # type: ignore[override]
        """All rows, which are kept from now on."""
        return self._make().coalesced().numbered()

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self._steps

    @property
    def messages(self) -> int:
        """The number of messages."""
        return self.symmetry.messages

    def __reduce__(self) -> tuple[type[ChunkRows], tuple[Columns]]:
        """Take all rows along, as what makes them can't be."""
        return ChunkRows, (self.columns,)


def symmetry_of(rows: ChunkRows) -> Symmetry | Exchange | None:
    """Return the symmetry of a schedule's rows, if it is known."""
    return rows.symmetry if isinstance(rows, SymmetricRows | CirculantRows) else None
