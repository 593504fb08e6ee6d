"""A congestion window for ATP that shrinks by half the portion of results that met congestion."""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import handler
from ringleaf.ina.congestion import GROWTH, MARKED, WINDOW, Window


@handler
def on_round(arena: Arena, at: int, results: int, _now_ps: int) -> int:
    words = arena.words
    if words[at + MARKED]:
        words[at + WINDOW] -= words[at + WINDOW] * words[at + MARKED] // (2 * results)
    else:
        words[at + WINDOW] += words[at + GROWTH]
    return 0


@handler
def on_loss(arena: Arena, at: int, timeout: int, _now_ps: int) -> int:
    arena.words[at + WINDOW] //= 8 if timeout else 2
    return 0


INA_WINDOW = Window("portion", on_round=on_round, on_loss=on_loss)
