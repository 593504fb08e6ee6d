"""The parts of a program that packets have reached so far, and what is drawn next because of it.

All of it is told by the observed engine (`switches/generate/observing.py`): which points each
packet has reached, and by which keys tables were looked up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from ringleaf.switches.fuzz.entries import Keys
from ringleaf.switches.fuzz.packets import Packet
from ringleaf.switches.fuzz.sides import EngineSide
from ringleaf.switches.generate.observing import (
    ACTION,
    CALL,
    COVERED,
    FALSE,
    HIT,
    MISS,
    STATE,
    TRANSITION,
    TRUE,
    Observer,
    Point,
)
from ringleaf.switches.source import Expression

MOST_SEEDS = 200
MOST_KEYS = 60  # that are remembered of a table

PLURALS = {
    **{STATE: "parser states", TRANSITION: "transitions", ACTION: "actions"},
    **{HIT: "tables hit", MISS: "tables missed", CALL: "blocks of statements"},
    **{TRUE: "branches if true", FALSE: "branches if false"},
}


class Course:
    """The way of a campaign through one program.

    `seeds` are the packets that reached something first, and `asked` the keys that tables were
    looked up by, the last ones last.
    """

    def __init__(self, observer: Observer) -> None:
        self.points = tuple(point for point in observer.points if point.kind in COVERED)
        self.reached: dict[Point, None] = {}
        self.seeds: list[Packet] = []
        self.asked: dict[str, deque[Keys]] = {
            table: deque(maxlen=MOST_KEYS) for table in observer.keys
        }
        self._conditions = observer.conditions

    def note(self, packet: Packet, before: Mapping[Point, int], side: EngineSide) -> None:
        """Take what a packet has reached that is compared.

        Args:
            packet: Which is a seed if something is new.
            before: How often each point was reached before it.
            side: The engine after it.
        """
        touched = self.note_keys(before, side)
        new = [point for point in self.points if point in touched and point not in self.reached]
        if new:
            self.seeds = [*self.seeds, packet][-MOST_SEEDS:]
        self.reached.update(dict.fromkeys(new))

    def note_keys(self, before: Mapping[Point, int], side: EngineSide) -> set[Point]:
        """Take the keys that tables were looked up by; return the points that were reached."""
        now = side.counts()
        touched = {point for point, count in now.items() if count > before[point]}
        for point in touched:
            if point.kind in (HIT, MISS):
                keys = side.asked(point.name)
                if keys not in self.asked[point.name]:
                    self.asked[point.name].append(keys)
        return touched

    def missing(self) -> list[Point]:
        """Return what was never reached, in the order of the program's code."""
        return [point for point in self.points if point not in self.reached]

    def conditions(self) -> list[tuple[Expression, bool]]:
        """Return conditions, and how each must turn out to reach what was not reached."""
        return [
            (self._conditions[point], point.kind == TRUE)
            for point in self.missing()
            if point.kind in (TRUE, FALSE)
        ]

    def by_kind(self) -> Iterator[tuple[str, int, int]]:
        """Return per kind of point how many were reached, of how many there are."""
        for kind in COVERED:
            points = [point for point in self.points if point.kind == kind]
            if points:
                yield kind, sum(point in self.reached for point in points), len(points)
