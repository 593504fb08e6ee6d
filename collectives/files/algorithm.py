"""Algorithms that are files: read once, and built like any other."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Algorithm, Request
from ringleaf.collectives.cost import Cost
from ringleaf.collectives.files.format import MOST_BYTES, Loaded, ScheduleSource
from ringleaf.collectives.files.registry import find_format
from ringleaf.core.inputs import decode, read_input
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError, ScheduleError

if TYPE_CHECKING:
    from ringleaf.collectives.schedule import Schedule

_KEPT = 4  # schedules of a file, for different sizes


def read_algorithm(path: Path) -> Algorithm:
    """Return a file as an algorithm; a file that has not changed is read once in a process.

    Raises:
        ConfigError: If it can't be read, or has a suffix of no format.
        ScheduleError: If it holds no schedule; the message names the file and the line.
    """
    return _read(path, _text(path))


@lru_cache(maxsize=16)
def _read(path: Path, text: str) -> Algorithm:
    source = find_format(path, "schedule").read(text, str(path))
    loaded: dict[tuple[int, int | None], Schedule] = {}

    def schedule_for(request: Request) -> Schedule:
        _check_request(request, source, path)
        key = request.size_bytes, request.segments
        if key not in loaded:
            if len(loaded) == _KEPT:
                del loaded[next(iter(loaded))]
            loaded[key] = _verified(source.load(*key), path)
        return loaded[key]

    return Algorithm(
        path.name,
        source.collective,
        source.title,
        schedule_for,
        lambda request: _cost(schedule_for(request), request.size_bytes),
        ranks=source.ranks,
        notes=source.notes,
    )


def _text(path: Path) -> str:
    try:
        data = read_input(path, MOST_BYTES)
    except (OSError, ValueError) as error:  # the latter of a name with a zero in it
        problem = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"schedule: can't read, got {str(path)!r}: {problem}") from error
    try:
        return decode(data)
    except UnicodeDecodeError as error:
        line = 1 + data[: error.start].count(b"\n")
        raise ScheduleError(
            f"{path}: line {line}: must be text in UTF-8, got {data[error.start : error.end]!r}; "
            "write it anew, or say its encoding in its <?xml>"
        ) from None


def _check_request(request: Request, source: ScheduleSource, path: Path) -> None:
    if request.ranks != source.ranks:
        raise ScheduleError(
            f"{path}: is for {format_count(source.ranks, 'rank')}, got {request.ranks}; give as "
            "many hosts"
        )
    if request.servers:
        raise ScheduleError(f"{path}: has no servers, got {request.servers}; leave them out")


def _verified(loaded: Loaded, path: Path) -> Schedule:
    """Return a schedule that does what its collective promises.

    Raises:
        ScheduleError: If it does not; the message names the file, and the place in it.
    """
    from ringleaf.collectives.definition import find_faults
    from ringleaf.collectives.verify import verify

    schedule = loaded.schedule
    faults = find_faults(schedule, schedule.collective, schedule.root)
    if faults.first is not None:
        verify(schedule, repeats=True, place=loaded.place)  # names the row
        raise ScheduleError(f"{path}: {faults.first}")
    return schedule


def _cost(schedule: Schedule, size_bytes: int) -> Cost:
    from ringleaf.collectives.critical_path import sent_bytes

    return Cost(0, max(sent_bytes(schedule, size_bytes, element_bytes=1)), schedule.steps)
