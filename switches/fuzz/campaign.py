"""Rounds of a contest, each with its own entries and packets; the same seed gives the same rounds.

A round's entries are drawn twice: some blindly, and then some for the keys that the engine looked
tables up by when it was given a few packets alone. Packets are drawn one by one, as the points that
a packet has reached determine how the next ones are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ringleaf.switches.engine.updates import Update
from ringleaf.switches.fuzz.contest import Contest, FuzzRound
from ringleaf.switches.fuzz.course import FuzzCourse
from ringleaf.switches.fuzz.entries import EntryMaker
from ringleaf.switches.fuzz.numbers import NumberDraw
from ringleaf.switches.fuzz.packets import PacketMaker
from ringleaf.switches.fuzz.sides import EngineSide
from ringleaf.switches.fuzz.sieve import Shadows
from ringleaf.switches.program import Program

SCOUTINGS = 2
SCOUTS = 30  # packets
MOST_DRAWN = 2  # times the packets to compare, as some can't be compared


def draw_round(
    program: Program, shadows: Shadows, course: FuzzCourse, seed: int, number: int
) -> tuple[list[Update], PacketMaker]:
    """Return the updates of one round, and the maker of its packets."""
    rng = random.Random(f"{seed}/{number}")
    numbers = NumberDraw(program.source, rng)
    entries = EntryMaker(program, numbers, rng, course.missing())
    updates = entries.updates()
    for _ in range(SCOUTINGS):
        side = EngineSide(shadows.observed, updates)
        maker = PacketMaker(program, updates, numbers, rng, course)
        for _ in range(SCOUTS):
            before = side.counts()
            side.process(maker.draw())
            course.note_keys(before, side)
        updates += entries.answers(course.asked)
    return updates, PacketMaker(program, updates, numbers, rng, course)


def run_rounds(
    program: Program, contest: Contest, *, seed: int, packets: int, rounds: int
) -> Iterator[FuzzRound]:
    """Yield the outcome of each round of comparison."""
    for number in range(rounds):
        updates, maker = draw_round(program, contest.shadows, contest.course, seed, number)
        drawn = (maker.draw() for _ in range(MOST_DRAWN * packets))
        yield contest.run(updates, drawn, packets)
