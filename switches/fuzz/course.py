"""The parts of a program that packets have reached so far, as a guide for drawing the next.

All of it comes from the observed engine (`switches/generate/observing.py`): the points that each
packet has reached, and the keys by which tables were looked up.
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
    ObservedWords,
    ReachedPoint,
)
from ringleaf.switches.source import Expression

MOST_SEEDS = 200
MOST_KEYS = 60  # remembered per table

PLURALS = {
    **{STATE: "parser states", TRANSITION: "transitions", ACTION: "actions"},
    **{HIT: "tables hit", MISS: "tables missed", CALL: "blocks of statements"},
    **{TRUE: "branches if true", FALSE: "branches if false"},
}


class FuzzCourse:
    """The way of a campaign through one program.

    `seeds` are the packets that were the first to reach something, and `asked` the keys that tables
    were looked up by, the latest last.
    """

    def __init__(self, observer: ObservedWords) -> None:
        self.points = tuple(point for point in observer.points if point.kind in COVERED)
        self.reached: dict[ReachedPoint, None] = {}
        self.seeds: list[Packet] = []
        self.asked: dict[str, deque[Keys]] = {
            table: deque(maxlen=MOST_KEYS) for table in observer.keys
        }
        self._conditions = observer.conditions

    def note(self, packet: Packet, before: Mapping[ReachedPoint, int], side: EngineSide) -> None:
        """Note the points that a compared packet has reached.

        Args:
            packet: The packet, which becomes a seed if a point is new.
            before: The counts of all points before it.
            side: The engine, after the packet.
        """
        touched = self.note_keys(before, side)
        new = [point for point in self.points if point in touched and point not in self.reached]
        if new:
            self.seeds = [*self.seeds, packet][-MOST_SEEDS:]
        self.reached.update(dict.fromkeys(new))

    def note_keys(self, before: Mapping[ReachedPoint, int], side: EngineSide) -> set[ReachedPoint]:
        """Note the keys that tables were looked up by; return the points that were reached."""
        now = side.counts()
        touched = {point for point, count in now.items() if count > before[point]}
        for point in touched:
            if point.kind in (HIT, MISS):
                keys = side.asked(point.name)
                if keys not in self.asked[point.name]:
                    self.asked[point.name].append(keys)
        return touched

    def missing(self) -> list[ReachedPoint]:
        """Return the points that were never reached, in the order of the program's code."""
        return [point for point in self.points if point not in self.reached]

    def conditions(self) -> list[tuple[Expression, bool]]:
        """Return conditions, each with the outcome that it has never had."""
        return [
            (self._conditions[point], point.kind == TRUE)
            for point in self.missing()
            if point.kind in (TRUE, FALSE)
        ]

    def by_kind(self) -> Iterator[tuple[str, int, int]]:
        """Yield each kind of point, with the number reached and the number of all."""
        for kind in COVERED:
            points = [point for point in self.points if point.kind == kind]
            if points:
                yield kind, sum(point in self.reached for point in points), len(points)
