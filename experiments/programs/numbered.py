"""What commands create and delete, by the numbers that BMv2 gives.

Source: behavioral-model, `handle_mgr.h` and `match_units.cpp`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.words import numbers

_Thing = TypeVar("_Thing")

_PLACE_BITS = 24


def place_of(number: int) -> int:
    """Return the place that the thing of a number has, which others had before it."""
    return number & (1 << _PLACE_BITS) - 1


class Numbered(Generic[_Thing]):
    """Things by number, in the order of their places.

    A new one takes the least place that is free, so it may come before older ones: of entries of
    one priority BMv2 takes the first of that order. Entries of tables have `rounds`: the number of
    times that a place was taken before is in the upper bits of its number.

    Args:
        what: What a thing is called in messages.
        rounds: Whether numbers tell how often their place was taken.
    """

    def __init__(self, what: str, *, rounds: bool = False) -> None:
        self._what = what
        self._rounds: Counter[int] | None = Counter() if rounds else None
        self._things: dict[int, _Thing] = {}
        self._free: list[int] = []  # a heap of places
        self._places = 0

    def __iter__(self) -> Iterator[tuple[int, _Thing]]:
        return iter(sorted(self._things.items(), key=lambda each: place_of(each[0])))

    def __getitem__(self, number: int) -> _Thing:
        return self._things[number]

    def __setitem__(self, number: int, thing: _Thing) -> None:
        assert number in self._things
        self._things[number] = thing

    def add(self, thing: _Thing) -> int:
        """Keep a thing, with a number of its own; return that."""
        place = heappop(self._free) if self._free else self._places
        self._places = max(self._places, place + 1)
        rounds = self._rounds[place] if self._rounds is not None else 0
        number = rounds << _PLACE_BITS | place
        self._things[number] = thing
        return number

    def remove(self, number: int) -> None:
        """Forget a thing, whose place is free then."""
        del self._things[number]
        place = place_of(number)
        heappush(self._free, place)
        if self._rounds is not None:
            self._rounds[place] += 1

    def number(self, where: str, word: str) -> int:
        """Return the number that a word of a command says.

        Raises:
            ConfigError: If nothing has it.
        """
        (number,) = numbers(where, [word], 1)
        if number not in self._things:
            raise ConfigError(f"{where}: {self._what} must have been created, got {word!r}")
        return number
