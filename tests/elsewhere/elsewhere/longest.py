"""A port discipline that serves the class with the most bytes."""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import handler
from ringleaf.core.disciplines import CLASSES, Discipline
from ringleaf.switches.engine.queues import CLASS_BYTES


@handler
def choose(arena: Arena, at: int, _unused: int, _now_ps: int) -> int:
    longest = 0
    for level in range(1, CLASSES):
        if arena.words[at + CLASS_BYTES + level] > arena.words[at + CLASS_BYTES + longest]:
            longest = level
    return longest


DISCIPLINE = Discipline("longest", choose)
