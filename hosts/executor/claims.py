"""Where a message lands whose receive was posted with a claim.

It was not yet its turn, or it may bring a result that stays in another node's memory.
"""

from __future__ import annotations

import ringleaf.hosts.executor.layout as x
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.hosts.executor import parts, walk
from ringleaf.hosts.rc.landing import COPY, LAND, SHIFT, TARGET, land


@handler
def choose(arena: Arena, claim: int, _what: int, _now_ps: int) -> int:
    """Choose where a message lands that begins to come, in place or in a buffer, and return how.

    Its turn may have come since its receive was posted. Only messages under way have buffers.
    """
    words = arena.words
    slot = claim - x.CLAIM
    part = words[slot + x.PART]
    at = parts.executor_of(words, part)
    if not walk.lands_in_place(words, at, part):
        words[claim + TARGET] = walk.take_buffer(words, words[part + x.STREAM], slot)
        return COPY
    words[claim + TARGET] = parts.home_of(words, at, part)
    if walk.may_share(words, at, part):
        return begin_to_share(words, at, part)
    walk.open_chunks(words, at, part)
    return walk.landing_in_place(words, part)


@handler
def share(arena: Arena, claim: int, what: int, _now_ps: int) -> int:
    """Have a node's result where the sender of its message has it, if it may, and return how.

    A packet whose data comes from elsewhere, as a switch or a fault has changed it, ends that:
    then the result lands in the node's own memory.
    """
    words = arena.words
    lease = claim - x.SHARED
    part = words[lease + x.BRINGS]
    at = parts.executor_of(words, part)
    if what == LAND:
        source = words[claim + TARGET] + words[claim + SHIFT]
        words[claim + SHIFT] = 0
        walk.call_python(words, at, x.OPEN, lease)
        land(arena, COPY, words[claim + TARGET], arena.memory, source, parts.bytes_of(words, part))
        return COPY
    return begin_to_share(words, at, part)


@inline
def begin_to_share(words: Words, at: int, part: int) -> int:
    """Return how a message lands that may be shared: its claim, or as a copy.

    It is shared if the sender's chunk is as its last write has left it, and so changes no more. The
    node reads it there from now on, and sends it from there, too.
    """
    chunk, peer = words[part + x.START], words[words[part + x.STREAM] + x.PEER]
    lease = parts.lease_of(words, at, chunk)
    claim = lease + x.SHARED
    words[lease + x.BRINGS] = part
    words[claim + SHIFT] = 0  # a sender may begin again, as on another queue pair
    words[claim + TARGET] = parts.home_of(words, at, part)
    sender = at + (peer - words[at + x.NODE]) * x.EXECUTOR_WORDS
    lent = parts.lease_of(words, sender, chunk)
    applied = words[words[sender + x.CHUNKS_AT] + chunk * x.CHUNK_WORDS + x.APPLIED]
    if applied != words[lent + x.LAST_APPLIED]:
        walk.open_chunks(words, at, part)
        return COPY
    if words[lent + x.SHARED + SHIFT] == 0:
        words[lent + x.IS_LENT] = 1
    words[lease + x.STATE] = x.COVERED
    words[claim + SHIFT] = parts.home_of(words, sender, part) - words[claim + TARGET]
    return claim
