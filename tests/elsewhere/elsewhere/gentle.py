"""A congestion controller that keeps to half a window for good after the first loss."""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import handler
from ringleaf.hosts.congestion.control import MOST_WINDOW, WINDOW, Controller


@handler
def on_loss(arena: Arena, at: int, _timeout: int, _now_ps: int) -> int:
    arena.words[at + WINDOW] = max(arena.words[at + MOST_WINDOW] // 2, 1)
    return 0


CONTROLLER = Controller("gentle", on_loss=on_loss)
