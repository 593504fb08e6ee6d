"""Counts of the points that packets reach, in the code of observed programs.

An observed module counts in words of its own, behind the rest of the switch's state, how often
packets reach each point of the program, and keeps the keys that each table was last asked for.
All of this code is written beside the code that it observes, so both always agree on the points
that a packet reaches. Other modules have none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleaf.switches.source import Expression

if TYPE_CHECKING:
    from ringleaf.switches.generate.doubts import Doubts

# Kinds of points.
STATE = "parser state"
TRANSITION = "transition"
HIT = "table hit"
MISS = "table missed"
ACTION = "action"
CALL = "statements"  # of the pipeline itself, which p4c puts into an action
TRUE = "branch if true:"
FALSE = "branch if false:"
OUTSIDE = "access out of range"
OPEN = "decision by a header that is not there"
TIMED = "decision by time"

COVERED = (STATE, TRANSITION, HIT, MISS, ACTION, CALL, TRUE, FALSE)
"""The kinds of points that coverage counts; others are no aims."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The differences of a module from the ordinary one.

    `leftovers` gives the values of fields of headers that are not there, which P4 leaves open:
    0: all zero, 1: all one, 2: all different.
    """

    observed: bool = False
    leftovers: int = 0


ORDINARY = Variant()


@dataclass(frozen=True, slots=True)
class ReachedPoint:
    """Something that packets may reach; `where` is its P4 source line, as far as p4c says."""

    kind: str
    name: str
    where: str = ""


def action_name(action: str, table: str) -> str:
    """Return the name of the point at which a table runs an action."""
    return f"{action} by {table}"


class ObservedWords:
    """The words of an observed module, numbered from the first behind the program's own."""

    def __init__(self, at: int, doubts: Doubts) -> None:
        self.at = at
        self.doubts = doubts
        self.words = 0
        self.points: dict[ReachedPoint, int] = {}
        self.conditions: dict[ReachedPoint, Expression] = {}  # of branches
        self.keys: dict[str, tuple[int, ...]] = {}  # table -> first word of each key
        self.columns: dict[
            ReachedPoint, tuple[str, int]
        ] = {}  # of decisions: table, number of the key

    def word_of(self, point: ReachedPoint) -> int:
        """Return the word that counts a point; it is the same for all uses of the point."""
        if point not in self.points:
            self.points[point] = self._take(1)
        return self.points[point]

    def keys_of(self, table: str, counts: tuple[int, ...]) -> tuple[int, ...]:
        """Return the first words of a table's keys, which take so many words each."""
        if table not in self.keys:
            self.keys[table] = tuple(self._take(count) for count in counts)
        return self.keys[table]

    def _take(self, count: int) -> int:
        word = self.at + self.words
        self.words += count
        return word
