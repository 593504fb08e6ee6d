"""AIMD, the published way: a mark halves the window, a round trip without marks lets it grow.

The published code looks at the mark of every window of acknowledgements alike. Losses change
nothing: only marks indicate congestion, and a loss that other workers must repair as well would
close the windows of all.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import handler
from ringleaf.ina.congestion import GROWTH, MARKED, MOST_WINDOW, WINDOW, Window


@handler
def on_round(arena: Arena, at: int, _results: int, _now_ps: int) -> int:
    """Halve the window if a result of the round trip was marked, or else add GROWTH packets."""
    words = arena.words
    if words[at + MARKED]:
        words[at + WINDOW] = max(1, words[at + WINDOW] // 2)
    else:
        words[at + WINDOW] = min(words[at + MOST_WINDOW], words[at + WINDOW] + words[at + GROWTH])
    return 0


INA_WINDOW = Window("aimd", on_round=on_round)
