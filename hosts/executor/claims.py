"""Where a message lands whose receive was posted with a claim, as it was not yet its turn."""

from __future__ import annotations

import ringleaf.hosts.executor.layout as x
from ringleaf.core.arena import Arena
from ringleaf.core.compiled import handler
from ringleaf.hosts.executor import walk
from ringleaf.hosts.rc.landing import COPY, TARGET


@handler
def choose(arena: Arena, claim: int, _what: int, _now_ps: int) -> int:
    """Choose where a message lands that begins to come, in place or in a buffer, and return how.

    Its turn may have come since its receive was posted. Only messages under way have buffers.
    """
    words = arena.words
    slot = claim - x.CLAIM
    part = words[slot + x.PART]
    at = walk.executor_of(words, part)
    if walk.lands_in_place(words, at, part):
        walk.open_chunks(words, at, part)
        words[claim + TARGET] = walk.home_of(words, at, part)
        return walk.landing_in_place(words, part)
    words[claim + TARGET] = walk.take_buffer(words, words[part + x.STREAM], slot)
    return COPY
