"""Rounds of a contest, each with entries and packets of its own; the same seed, the same rounds."""

from __future__ import annotations

import random
from collections.abc import Iterator

from switches.fuzz.contest import Contest, Round
from switches.fuzz.entries import EntryMaker
from switches.fuzz.numbers import Numbers
from switches.fuzz.packets import Packet, PacketMaker
from switches.program import Program
from switches.updates import Update


def draw_round(
    program: Program, seed: int, number: int, packets: int
) -> tuple[list[Update], list[Packet]]:
    """Return the updates and packets of one round."""
    rng = random.Random(f"{seed}/{number}")
    numbers = Numbers(program.source, rng)
    updates = EntryMaker(program, numbers, rng).updates()
    maker = PacketMaker(program, updates, numbers, rng)
    return updates, [maker.draw() for _ in range(packets)]


def run_rounds(
    program: Program, contest: Contest, *, seed: int, packets: int, rounds: int
) -> Iterator[Round]:
    """Compare round by round."""
    for number in range(rounds):
        yield contest.run(*draw_round(program, seed, number, packets))
