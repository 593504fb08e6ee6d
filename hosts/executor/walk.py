"""The steps of executors: requests that may be made, and reports that let others go on.

A report may let parts go on that waited for its chunks, whose writes let others go on, and so
forth. Each is followed to its end before the next, as if by calls: frames on a stack say what
is left.
"""

from __future__ import annotations

import ringleaf.hosts.executor.layout as x
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import call_back, inline
from ringleaf.hosts.executor.arithmetic import NOTHING, OTHER
from ringleaf.hosts.executor.parts import (
    bytes_of,
    executor_of,
    flags_of,
    free_part,
    home_of,
    lease_of,
    make,
    next_part,
)
from ringleaf.hosts.plan import LOCAL, RECEIVE, SEND, SUM
from ringleaf.hosts.rc.landing import ASKED, CHOOSE, COPY, ELEMENT_BYTES, land
from ringleaf.hosts.rc.state import MTU


@inline
def start(arena: Arena, at: int) -> None:
    """Make an executor's first requests."""
    words = arena.words
    streams, sends = words[at + x.STREAMS_AT], words[at + x.SENDS]
    # Receives are posted first, so that peers have credit for their first messages.
    for number in range(sends, sends + words[at + x.RECEIVES]):
        post_receives(words, streams + number * x.STREAM_WORDS)
    for number in range(sends):
        post_sends(arena, at, streams + number * x.STREAM_WORDS)
        finish(arena, at)
    locals_at = sends + words[at + x.RECEIVES]
    for number in range(locals_at, locals_at + words[at + x.LOCALS]):
        work_locally(arena, at, streams + number * x.STREAM_WORDS)
        finish(arena, at)
    post_sums(words, at)


@inline
def sent(arena: Arena, part: int) -> None:
    """Note that the peer has the whole message of a part."""
    words = arena.words
    at, stream = executor_of(words, part), words[part + x.STREAM]
    words[stream + x.UNDER_WAY] -= 1
    words[at + x.LEFT] -= 1
    is_coded = flags_of(words, part) & x.IS_CODED
    if is_coded:
        free_slot(words, stream, words[part + x.HELD])
    first, stop = words[part + x.START], words[part + x.STOP]
    free_part(words, stream, part)
    post_sends(arena, at, stream)
    if not is_coded:
        count(words, at, first, stop, x.ACKED)
    finish(arena, at)


@inline
def received(arena: Arena, part: int, size_bytes: int) -> None:
    """Note that the message of a part, of this size, has landed at the requested address."""
    words = arena.words
    at = executor_of(words, part)
    words[part + x.SIZE_BYTES] = size_bytes
    if is_empty(words, at) and flags_of(words, part) & x.IS_STAGED:
        apply_empty(words, at, part)
    elif words[part + x.HELD]:
        apply(arena, at, part)
    else:
        end_write(words, at, part)
    finish(arena, at)


@inline
def summed(arena: Arena, part: int) -> None:
    """Note that the network's sum has replaced the node's chunk."""
    words = arena.words
    at = executor_of(words, part)
    words[at + x.LEFT] -= 1
    words[at + x.SUMS_UNDER_WAY] -= 1
    count(words, at, words[part + x.START], words[part + x.STOP], x.APPLIED)
    finish(arena, at)


@inline
def take_request(words: Words, at: int) -> int:
    """Return the part of an executor's next request; 0: there is none."""
    part = words[at + x.FIRST_REQUEST]
    if part:
        words[at + x.FIRST_REQUEST] = words[part + x.LATER]
    return part


@inline
def request(words: Words, at: int, part: int) -> None:
    """Append a part to the executor's list of requests; `take_request` takes the first."""
    words[part + x.LATER] = 0
    if words[at + x.FIRST_REQUEST]:
        words[words[at + x.LAST_REQUEST] + x.LATER] = part
    else:
        words[at + x.FIRST_REQUEST] = part
    words[at + x.LAST_REQUEST] = part


@inline
def missing(words: Words, at: int, part: int) -> int:
    """Return the first chunk of a part that waits for an earlier write or send; 0 if none."""
    size = words[part + x.STOP] - words[part + x.START]
    first = words[at + x.CHUNKS_AT] + words[part + x.START] * x.CHUNK_WORDS
    after = words[words[part + x.PLANNED] + x.PLANNED_AFTER]
    for i in range(size):
        if words[first + i * x.CHUNK_WORDS + x.APPLIED] < words[after + i]:
            return first + i * x.CHUNK_WORDS
    # A write must also wait until earlier sends of the chunk are acknowledged: they may be resent
    # from this memory.
    if not flags_of(words, part) & x.IS_READ:
        for i in range(size):
            if words[first + i * x.CHUNK_WORDS + x.ACKED] < words[after + size + i]:
                return first + i * x.CHUNK_WORDS
    return 0


@inline
def must_wait(words: Words, at: int, part: int, wait: int) -> bool:
    """Return whether a part must wait; if so, have `wait` looked at when that may have changed."""
    chunk = missing(words, at, part)
    if chunk == 0:
        return False
    if words[wait + x.CHUNK] != chunk:
        if words[wait + x.NEXT]:
            unlink(words, wait)
        last = words[chunk + x.PREVIOUS]
        words[wait + x.NEXT], words[wait + x.PREVIOUS] = chunk, last
        words[last + x.NEXT] = words[chunk + x.PREVIOUS] = wait
        words[wait + x.CHUNK] = chunk
    return True


@inline
def unlink(words: Words, wait: int) -> None:
    """Take a wait out of its list."""
    after, before = words[wait + x.NEXT], words[wait + x.PREVIOUS]
    words[before + x.NEXT] = after
    words[after + x.PREVIOUS] = before
    words[wait + x.NEXT] = words[wait + x.CHUNK] = 0


@inline
def post_sends(arena: Arena, at: int, stream: int) -> None:
    """Request the sends of a stream that may go; not while it waits for a chunk."""
    words = arena.words
    if words[stream + x.CHUNK]:
        return
    while words[stream + x.UNDER_WAY] < words[stream + x.DEPTH]:
        part = next_part(words, stream)
        if part == 0 or must_wait(words, at, part, stream):
            return
        is_coded = flags_of(words, part) & x.IS_CODED
        if is_coded and words[stream + x.FREE] == 0:
            return  # a buffer comes back when a message has been sent
        words[stream + x.NEXT_PART] = 0
        words[stream + x.UNDER_WAY] += 1
        if is_coded:
            words[part + x.HELD] = take_slot(words, stream, part)
            take_buffer(words, stream, words[part + x.HELD])
            words[part + x.SIZE_BYTES] = max(call_python(words, at, x.ENCODE, part), 0)
            request(words, at, part)
            words[push_frame(words, at) + x.FRAME_STREAM] = stream
            # The message is a copy, not the tensor itself.
            count(words, at, words[part + x.START], words[part + x.STOP], x.ACKED)
            return
        open_chunks(words, at, part)
        request(words, at, part)


@inline
def work_locally(arena: Arena, at: int, stream: int) -> None:
    """Copy or add within the node, if the next parts of a stream may; `finish` goes on."""
    words = arena.words
    reads = next_part(words, stream)
    if reads == 0:
        return
    writes = words[stream + x.FREE_PART]
    planned = words[stream + x.NEXT_PLANNED]
    make(words, planned, writes)
    # A wait belongs to one chunk at a time. If the second one has to wait, the first is asked
    # again, too.
    if must_wait(words, at, reads, stream) or must_wait(words, at, writes, stream):
        return
    words[stream + x.NEXT_PART] = 0
    words[stream + x.NEXT_PLANNED] = planned + x.PLANNED_WORDS
    element = words[words[at + x.OPERATION] + x.ELEMENT]
    if element != NOTHING:
        how = element if flags_of(words, writes) & x.IS_REDUCED else COPY
        source, target = home_of(words, at, reads), home_of(words, at, writes)
        land(arena, how, target, arena.memory, source, bytes_of(words, reads))
    words[at + x.LEFT] -= 2
    words[at + x.FINISH_PS] = -1
    words[push_frame(words, at) + x.FRAME_STREAM] = stream
    count(words, at, words[reads + x.START], words[reads + x.STOP], x.ACKED)
    count(words, at, words[writes + x.START], words[writes + x.STOP], x.APPLIED)
    free_part(words, stream, reads)


@inline
def post_receives(words: Words, stream: int) -> None:
    """Request the receives of a stream that may be let in."""
    at = words[stream + x.OWNER]
    while words[stream + x.UNDER_WAY] < words[stream + x.DEPTH]:
        part = next_part(words, stream)
        if part == 0:
            return
        if flags_of(words, part) & x.IS_REDUCED and lands_in_place(words, at, part):
            words[part + x.HELD] = 0
            open_chunks(words, at, part)
        elif flags_of(words, part) & x.IS_STAGED:
            if words[stream + x.FREE] == 0:
                return  # a buffer comes back when a held write is applied
            if is_empty(words, at):
                words[stream + x.FREE] -= 1
                words[part + x.HELD] = 0
            else:
                words[part + x.HELD] = take_slot(words, stream, part)
        elif must_wait(words, at, part, stream):
            return
        elif may_share(words, at, part):
            words[lease_of(words, at, words[part + x.START]) + x.BRINGS] = part
        else:
            open_chunks(words, at, part)
        words[stream + x.NEXT_PART] = 0
        words[stream + x.UNDER_WAY] += 1
        request(words, at, part)


@inline
def may_share(words: Words, at: int, part: int) -> bool:
    """Return whether a message whose turn has come may bring a result that is elsewhere, too.

    So it may if nothing is in the chunk's memory, and nobody writes to it after this.
    """
    if words[at + x.LEASES_AT] == 0 or flags_of(words, part) & (x.IS_CODED | x.IS_REDUCED):
        return False
    chunk = words[part + x.START]
    lease = lease_of(words, at, chunk)
    if words[lease + x.SHARED + CHOOSE] == 0 or words[lease + x.STATE] != x.EMPTY:
        return False
    applied = words[words[at + x.CHUNKS_AT] + chunk * x.CHUNK_WORDS + x.APPLIED]
    return applied + 1 == words[lease + x.LAST_APPLIED]


@inline
def claim_of(words: Words, part: int) -> int:
    """Return the claim of a received message: its slot's, or its chunk's lease's."""
    if words[part + x.HELD]:
        return words[part + x.HELD] + x.CLAIM
    return lease_of(words, executor_of(words, part), words[part + x.START]) + x.SHARED


@inline
def lands_in_place(words: Words, at: int, part: int) -> bool:
    """Return whether a message may go to the tensor as its packets come, without a buffer.

    So it is if its turn has come. If it is added to what is there, packets must hold whole
    elements.
    """
    if flags_of(words, part) & x.IS_CODED:
        return False
    if flags_of(words, part) & x.IS_REDUCED:
        if words[words[at + x.OPERATION] + x.ELEMENT] in (OTHER, NOTHING):
            return False
        # An element that lies in two packets could not be added from either.
        if words[words[at + x.AGENT] + MTU] % ELEMENT_BYTES != 0:
            return False
    return missing(words, at, part) == 0


@inline
def landing_of(words: Words, part: int) -> int:
    """Return how a message's data lands where it is received, as its receive is posted."""
    if words[part + x.HELD]:
        return ASKED
    at = executor_of(words, part)
    if not words[at + x.LEASES_AT]:
        return landing_in_place(words, part)
    is_claimed = words[lease_of(words, at, words[part + x.START]) + x.BRINGS] == part
    return ASKED if is_claimed else landing_in_place(words, part)


@inline
def landing_in_place(words: Words, part: int) -> int:
    """Return how a message's data lands in the tensor."""
    if not flags_of(words, part) & x.IS_REDUCED:
        return COPY
    return words[words[executor_of(words, part) + x.OPERATION] + x.ELEMENT]


@inline
def post_sums(words: Words, at: int) -> None:
    """Request the sums of the network that may go; the rest wait for the first one's chunk."""
    sums, left = words[at + x.SUMS_AT], 0
    for number in range(words[at + x.SUMS]):
        part = words[sums + number]
        # Each sum is of chunks of its own, so one that is ready may pass others that are not.
        if missing(words, at, part):
            words[sums + left] = part
            left += 1
        else:
            words[at + x.SUMS_UNDER_WAY] += 1
            request(words, at, part)
    words[at + x.SUMS] = left
    if left:
        must_wait(words, at, words[sums], at)


@inline
def is_empty(words: Words, at: int) -> bool:
    """Return whether messages have no contents."""
    return bool(words[words[at + x.OPERATION] + x.ELEMENT] == NOTHING)


@inline
def apply_empty(words: Words, at: int, part: int) -> None:
    """Count a staged message without contents as applied, when its turn has come.

    It has needed no buffer, so it has a slot only while it waits for its turn.
    """
    stream, slot = words[part + x.STREAM], words[part + x.HELD]
    if slot == 0 and missing(words, at, part):
        words[stream + x.FREE_BUFFERS] -= 1
        entry = words[stream + x.SLOTS_AT] + words[stream + x.FREE_BUFFERS] * x.SLOT_WORDS
        slot = words[entry + x.FREE_SLOT]
        words[part + x.HELD], words[slot + x.PART] = slot, part
    if slot and must_wait(words, at, part, slot):
        return
    open_chunks(words, at, part)
    if slot:
        entry = words[stream + x.SLOTS_AT] + words[stream + x.FREE_BUFFERS] * x.SLOT_WORDS
        words[entry + x.FREE_SLOT] = slot
        words[stream + x.FREE_BUFFERS] += 1
    words[stream + x.FREE] += 1  # one more receive may be posted
    end_write(words, at, part)


@inline
def apply(arena: Arena, at: int, part: int) -> None:
    """Move a staged message into the tensor, when its turn has come."""
    words = arena.words
    slot, flags = words[part + x.HELD], flags_of(words, part)
    if must_wait(words, at, part, slot):
        return
    open_chunks(words, at, part)
    operation = words[at + x.OPERATION]
    element = words[operation + x.ELEMENT]
    if words[slot + x.BUFFER] < 0:
        pass  # it has landed in place
    elif flags & x.IS_CODED or element == OTHER:
        call_python(words, at, x.APPLY, part)
    else:
        source, size = words[slot + x.BUFFER], bytes_of(words, part)
        target = home_of(words, at, part)
        how = element if flags & x.IS_REDUCED else COPY
        land(arena, how, target, arena.memory, source, size)
    free_slot(words, words[part + x.STREAM], slot)
    end_write(words, at, part)


@inline
def call_python(words: Words, at: int, word: int, number: int) -> int:
    """Call back for a part, or a lease; note it if that fails."""
    operation = words[at + x.OPERATION]
    result = call_back(words[operation + word], number)
    if result < 0:
        words[operation + x.FAILED] = 1
    return result


@inline
def end_write(words: Words, at: int, part: int) -> None:
    """Count a received part as applied to its chunks, and post the stream's next receives."""
    stream = words[part + x.STREAM]
    words[at + x.LEFT] -= 1
    words[stream + x.UNDER_WAY] -= 1
    first, stop = words[part + x.START], words[part + x.STOP]
    free_part(words, stream, part)
    post_receives(words, stream)
    count(words, at, first, stop, x.APPLIED)


@inline
def take_slot(words: Words, stream: int, part: int) -> int:
    """Return a free slot of a stream for a part: the one that was used most recently."""
    # The slot that was freed last is the likeliest to be in the cache.
    words[stream + x.FREE] -= 1
    entry = words[stream + x.SLOTS_AT] + words[stream + x.FREE] * x.SLOT_WORDS
    slot = words[entry + x.FREE_SLOT]
    words[slot + x.PART] = part
    return slot


@inline
def free_slot(words: Words, stream: int, slot: int) -> None:
    """Free a slot, and the buffer that its message has."""
    entry = words[stream + x.SLOTS_AT] + words[stream + x.FREE] * x.SLOT_WORDS
    words[entry + x.FREE_SLOT] = slot
    words[stream + x.FREE] += 1
    if words[slot + x.BUFFER] >= 0:
        entry = words[stream + x.SLOTS_AT] + words[stream + x.FREE_BUFFERS] * x.SLOT_WORDS
        words[entry + x.FREE_BUFFER] = words[slot + x.BUFFER]
        words[stream + x.FREE_BUFFERS] += 1
        words[slot + x.BUFFER] = -1


@inline
def take_buffer(words: Words, stream: int, slot: int) -> int:
    """Return the buffer that a slot's message gets: the one that was used most recently."""
    words[stream + x.FREE_BUFFERS] -= 1
    entry = words[stream + x.SLOTS_AT] + words[stream + x.FREE_BUFFERS] * x.SLOT_WORDS
    words[slot + x.BUFFER] = words[entry + x.FREE_BUFFER]
    return words[slot + x.BUFFER]


@inline
def push_frame(words: Words, at: int) -> int:
    """Return a new frame, for a stream; it has an empty list."""
    operation = words[at + x.OPERATION]
    frame = words[operation + x.TOP]
    words[operation + x.TOP] = frame + x.FRAME_WORDS
    words[frame + x.NEXT] = words[frame + x.PREVIOUS] = frame
    words[frame + x.FRAME_STOP] = 0
    return frame


@inline
def count(words: Words, at: int, first: int, stop: int, word: int) -> None:
    """Count chunks that are applied or acknowledged; have the waits for them looked at."""
    chunks, waits = words[at + x.CHUNKS_AT], False
    for number in range(first, stop):
        chunk = chunks + number * x.CHUNK_WORDS
        words[chunk + word] += 1
        waits |= words[chunk + x.NEXT] != chunk
    # What waits for these chunks is put on a stack, which `finish` works off. Calls would nest as
    # deep as the chain of waits is long.
    if waits:
        frame = push_frame(words, at)
        words[frame + x.FRAME_CHUNK], words[frame + x.FRAME_STOP] = first, stop
    if words[at + x.LEASES_AT]:
        close_chunks(words, at, first, stop)


@inline
def open_chunks(words: Words, at: int, part: int) -> None:
    """Have memory for the chunks of a part that is about to read or write them."""
    if words[at + x.LEASES_AT] == 0:
        return
    # A chunk that is only overwritten needs no earlier contents, so its memory need not be filled.
    overwrites = flags_of(words, part) & (x.IS_READ | x.IS_REDUCED) == 0
    for chunk in range(words[part + x.START], words[part + x.STOP]):
        lease = lease_of(words, at, chunk)
        if words[lease + x.STATE] == x.EMPTY:
            words[lease + x.STATE] = x.COVERED if overwrites else x.FILLED
            call_python(words, at, x.OPEN, lease)


@inline
def close_chunks(words: Words, at: int, first: int, stop: int) -> None:
    """Give back the memory of those chunks that nobody reads or changes any more."""
    for number in range(first, stop):
        chunk = words[at + x.CHUNKS_AT] + number * x.CHUNK_WORDS
        lease = lease_of(words, at, number)
        applied, acked = words[chunk + x.APPLIED], words[chunk + x.ACKED]
        if applied == words[lease + x.LAST_APPLIED] and acked == words[lease + x.LAST_ACKED]:
            words[lease + x.STATE] = x.KEPT
        elif applied == words[lease + x.DROP_APPLIED] and acked == words[lease + x.DROP_ACKED]:
            words[lease + x.STATE] = x.EMPTY
        else:
            continue
        call_python(words, at, x.CLOSE, lease)


@inline
def finish(arena: Arena, at: int) -> None:
    """Do what has been put off, and all that follows from it."""
    words = arena.words
    operation = words[at + x.OPERATION]
    while words[operation + x.TOP] > words[operation + x.STACK_AT]:
        frame = words[operation + x.TOP] - x.FRAME_WORDS
        stop, wait = words[frame + x.FRAME_STOP], words[frame + x.NEXT]
        if stop == 0:
            words[operation + x.TOP] = frame
            try_again(arena, at, words[frame + x.FRAME_STREAM])
        elif wait != frame:
            unlink(words, wait)
            try_again(arena, at, wait)
        elif words[frame + x.FRAME_CHUNK] < stop:
            chunk = words[at + x.CHUNKS_AT] + words[frame + x.FRAME_CHUNK] * x.CHUNK_WORDS
            words[frame + x.FRAME_CHUNK] += 1
            take_waits(words, frame, chunk)
        else:
            words[operation + x.TOP] = frame


@inline
def take_waits(words: Words, frame: int, chunk: int) -> None:
    """Move all waits for a chunk to a frame, whose list is empty."""
    first, last = words[chunk + x.NEXT], words[chunk + x.PREVIOUS]
    # An empty list's ends point to the chunk itself.
    if first == chunk:
        return
    words[frame + x.NEXT], words[frame + x.PREVIOUS] = first, last
    words[first + x.PREVIOUS] = words[last + x.NEXT] = frame
    words[chunk + x.NEXT] = words[chunk + x.PREVIOUS] = chunk
    wait = first
    while wait != frame:
        words[wait + x.CHUNK] = 0
        wait = words[wait + x.NEXT]


@inline
def try_again(arena: Arena, at: int, wait: int) -> None:
    """Go on with work, by its kind, that has waited for a chunk or has been put off."""
    kind = arena.words[wait + x.KIND]
    if kind == SEND:
        post_sends(arena, at, wait)
    elif kind == RECEIVE:
        post_receives(arena.words, wait)
    elif kind == SUM:
        post_sums(arena.words, at)
    elif kind == LOCAL:
        work_locally(arena, at, wait)
    elif is_empty(arena.words, at):
        apply_empty(arena.words, at, arena.words[wait + x.PART])
    else:
        apply(arena, at, arena.words[wait + x.PART])
