"""The contract of a format: text to a `ScheduleSource` with a collective's facts, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleaf.collectives.collective import Collective

if TYPE_CHECKING:
    from ringleaf.collectives.schedule import Schedule

MOST_BYTES = 1 << 26  # of a file; parsing takes some seconds then
MOST_CELLS = 1 << 24  # ranks x chunks: their contents are followed as sets
MOST_RANKS = 4096


@dataclass(frozen=True, slots=True)
class Loaded:
    """A schedule from a file, and the places in the file that its rows come from.

    Attributes:
        schedule: The schedule.
        place: Returns the place of a row, by its number, as messages name it: `line 7`.
    """

    schedule: Schedule
    place: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class ScheduleSource:
    """A file that has been parsed; its rows are made when they are asked for.

    Attributes:
        collective: The collective that the file says it performs.
        ranks: Its number of ranks.
        title: The name that the file gives to the algorithm.
        load: Returns the schedule for a tensor of some bytes (0: unknown), cut into a number of
            pieces that go one after the other (None: as many as suit the size).
        notes: Lines on parts of the file that have no effect, for people.
    """

    collective: Collective
    ranks: int
    title: str
    load: Callable[[int, int | None], Loaded]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleFormat:
    """One kind of file.

    Attributes:
        title: Its name in texts.
        read: Returns the source of a text; the second argument is how messages begin, which is
            the file's name. Raises ScheduleError.
        write: Returns the text of a schedule. Raises ScheduleError if the format can't hold it.
    """

    title: str
    read: Callable[[str, str], ScheduleSource]
    write: Callable[[Schedule], str]
