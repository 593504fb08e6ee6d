"""Decisions that another value of a missing header, or another time, may turn out otherwise.

An observed program notes them (`switches/generate/doubts.py`). A look-up in a table is one only if
an entry that all other keys allow looks at the key in doubt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ringleaf.switches.engine.updates import Match, Update
from ringleaf.switches.fuzz.packets import matches_of
from ringleaf.switches.fuzz.sides import EngineSide
from ringleaf.switches.generate.observing import HIT, MISS, ReachedPoint
from ringleaf.switches.program import Program
from ringleaf.switches.source import MatchKey

Counts = Mapping[ReachedPoint, int]


class Decisions:
    """Return the notes on decisions in a program with some updates."""

    def __init__(self, observed: Program, updates: Sequence[Update]) -> None:
        observer = observed.module.observer
        assert observer is not None
        self._columns = observer.columns
        self._points = tuple(observer.points)
        self._shapes = {shape.table.name: shape for shape in observed.module.shapes}
        self._matches = {
            shape.table.name: matches_of(shape, updates) for shape in observed.module.shapes
        }

    def differ(
        self, kind: str, notes: Counts, others: Counts, before: Counts, side: EngineSide
    ) -> bool:
        """Return whether a decision that matters has other notes elsewhere.

        Args:
            kind: The kind of decisions.
            notes: The notes of `side` after a packet.
            others: Those to compare with.
            before: The notes of `side` before the packet.
            side: The engine.
        """
        keys: dict[str, set[int]] = defaultdict(set)
        for point in self._points:
            if point.kind == kind and notes[point] != others[point]:
                if point not in self._columns:
                    return True
                table, number = self._columns[point]
                keys[table].add(number)
        return any(
            self._matters(table, numbers, side, once=self._lookups(table, notes, before) == 1)
            for table, numbers in keys.items()
        )

    def _lookups(self, table: str, notes: Counts, before: Counts) -> int:
        own = (p for p in self._points if p.kind in (HIT, MISS) and p.name == table)
        return sum(notes[point] - before[point] for point in own)

    def _matters(self, table: str, numbers: set[int], side: EngineSide, *, once: bool) -> bool:
        """Return whether an entry that may be hit looks at keys of these numbers.

        The other keys are known if the table was looked up once: those of the last look-up.
        """
        shape, asked = self._shapes[table], side.asked(table)
        keys = shape.table.keys
        certain = [number for number in range(len(keys)) if number not in numbers]

        def may_be_hit(match: Match) -> bool:
            masks = shape.masks(match)
            return not once or all(
                _fits(keys[n], asked[n], (match[n][0], masks[n])) for n in certain
            )

        return any(
            may_be_hit(match)
            for match in self._matches[table]
            if any(not _takes_all(keys[n], shape.widths[n], match[n]) for n in numbers)
        )


def _takes_all(key: MatchKey, width: int, pair: tuple[int, int]) -> bool:
    return pair == (0, (1 << width) - 1) if key.kind == "range" else pair[1] == 0


def _fits(key: MatchKey, value: int, pair: tuple[int, int]) -> bool:
    value = value if key.mask is None else value & key.mask
    if key.kind == "range":
        return pair[0] <= value <= pair[1]
    return (value ^ pair[0]) & pair[1] == 0
