"""Times of a sweep by what was run, of which each has one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def note_time(times: dict[Key, int], key: Key, time_ps: int) -> None:
    """Note the time of a run.

    Args:
        times: Times in ps so far, which the run is added to.
        key: The run.
        time_ps: Its time.

    Raises:
        ValueError: If the same has another time, as in a sweep of sizes or seeds.
    """
    if times.setdefault(key, time_ps) != time_ps:
        what = ", ".join(map(str, key)) if isinstance(key, tuple) else key
        raise ValueError(f"{what} has several times; sweep one size and seed")
