"""The kernel of a stage: computes its layers on each message, and sends the result on.

The first stage has its samples in the task's memory, and the last one leaves its results there. A
message's tag is its number; of one that the first stage has in its memory, likewise.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import copy_items, handler, inline, signed
from ringleaf.core.views import int8_at, int64_at
from ringleaf.hosts.nic.agent import expect, finish, put_off, send_to, spend
from ringleaf.hosts.nic.pipeline.layers import LARGEST
from ringleaf.hosts.nic.pipeline.state import (
    ACKNOWLEDGED,
    AT_ONCE,
    COMPUTED,
    EXPECTED,
    FIRST_PS,
    IN_AT,
    INPUTS,
    LAST_PS,
    LAYER_WORDS,
    LAYERS,
    MESSAGES,
    NUMBERS,
    OUT_AT,
    OUTPUTS,
    POSTED,
    PRODUCT_PS,
    PRODUCTS,
    SAMPLES,
    SCRATCH_AT,
    STAGE,
    STAGES,
    TILE,
    WIDEST,
    open_stage,
)
from ringleaf.hosts.nic.state import (
    AHEAD,
    ARRIVED,
    BEGIN,
    HANDLE,
    PREPARE,
    SENT,
    STATE_AT,
    TAG,
    TARGET_AT,
)

MILLION = 1_000_000


@inline
def samples_of(n: Words, message: int) -> int:
    """Return the samples of a message."""
    return min(n[TILE], n[SAMPLES] - message * n[TILE])


@inline
def time_of(n: Words, message: int) -> int:
    """Return the time that a message's multiplications take."""
    return samples_of(n, message) * n[PRODUCTS] * n[PRODUCT_PS] // MILLION


@inline
def multiply(arena: Arena, layer: Words, target_at: int, source_at: int, samples: int) -> None:
    """Compute one layer on some samples."""
    inputs, outputs, shift, weights_at = layer[0], layer[1], layer[2], layer[3]
    weights = int8_at(arena.memory, weights_at, inputs * outputs)
    source = int8_at(arena.memory, source_at, samples * inputs)
    target = int8_at(arena.memory, target_at, samples * outputs)
    for sample in range(samples):
        for output in range(outputs):
            total = 0
            for place in range(inputs):
                weight = signed(weights[output * inputs + place])
                total += weight * signed(source[sample * inputs + place])
            target[sample * outputs + output] = min(max(total >> shift, 0), LARGEST)


@inline
def compute(arena: Arena, at: int, n: Words, message: int) -> None:
    """Compute all layers on a message's samples."""
    first, samples = message * n[TILE], samples_of(n, message)
    source = (arena.words[at + TARGET_AT] if n[STAGE] == 0 else n[IN_AT]) + first * n[INPUTS]
    rows_at = arena.words[at + STATE_AT] + 8 * NUMBERS
    for number in range(n[LAYERS]):
        layer = int64_at(arena.memory, rows_at + 8 * LAYER_WORDS * number, LAYER_WORDS)
        target = n[SCRATCH_AT] + (number & 1) * n[TILE] * n[WIDEST]
        multiply(arena, layer, target, source, samples)
        source = target
    size = samples * n[OUTPUTS]
    results = n[OUT_AT] if n[STAGE] < n[STAGES] - 1 else arena.words[at + TARGET_AT]
    copy_items(arena.memory, results + first * n[OUTPUTS], arena.memory, source, size)


@inline
def expect_more(arena: Arena, at: int, n: Words) -> None:
    """Post memory for the messages to come, as many as may be under way."""
    while n[EXPECTED] < min(n[MESSAGES], n[COMPUTED] + AT_ONCE):
        message = n[EXPECTED]
        target = n[IN_AT] + message * n[TILE] * n[INPUTS]
        size = samples_of(n, message) * n[INPUTS]
        expect(arena, at, n[STAGE] - 1, target, size, message)
        n[EXPECTED] += 1


@inline
def start_over(arena: Arena, at: int, n: Words) -> None:
    """Expect the messages of a task, unless that is done."""
    if arena.words[at + AHEAD] == 0:
        n[EXPECTED] = n[COMPUTED] = 0
        if n[STAGE] > 0:
            expect_more(arena, at, n)
    arena.words[at + AHEAD] = 0


@inline
def end(arena: Arena, at: int, n: Words, now_ps: int) -> None:
    """Report the task, and expect the next one's messages, so that its senders have credit."""
    start_over(arena, at, n)
    arena.words[at + AHEAD] = 1
    finish(arena, at, now_ps)


@inline
def post_more(arena: Arena, at: int, n: Words, now_ps: int) -> None:
    """Send what has been computed, as far as not too much is under way."""
    while n[POSTED] < min(n[COMPUTED], n[ACKNOWLEDGED] + AT_ONCE):
        message = n[POSTED]
        source = n[OUT_AT] + message * n[TILE] * n[OUTPUTS]
        size = samples_of(n, message) * n[OUTPUTS]
        send_to(arena, at, n[STAGE] + 1, source, size, message, now_ps)
        n[POSTED] += 1
        if n[POSTED] == n[MESSAGES]:
            end(arena, at, n, now_ps)


@inline
def handle(arena: Arena, at: int, n: Words, now_ps: int) -> None:
    """Go on after a message has been computed."""
    compute(arena, at, n, arena.words[at + TAG])
    n[COMPUTED] += 1
    if n[COMPUTED] == 1:
        n[FIRST_PS] = now_ps
    n[LAST_PS] = now_ps
    if n[STAGE] > 0:
        expect_more(arena, at, n)
    if n[STAGE] < n[STAGES] - 1:
        post_more(arena, at, n, now_ps)
    elif n[COMPUTED] == n[MESSAGES]:
        end(arena, at, n, now_ps)


@handler
def kernel(arena: Arena, at: int, event: int, now_ps: int) -> int:
    """Take note of an event; return the time to compute for a message that has come."""
    n = open_stage(arena, at).numbers
    if event == PREPARE:
        start_over(arena, at, n)
    elif event == BEGIN:
        n[POSTED] = n[ACKNOWLEDGED] = 0
        for message in range(n[MESSAGES] if n[STAGE] == 0 else 0):
            put_off(arena, at, spend(arena, at, time_of(n, message), now_ps), message, 0)
    elif event == ARRIVED:
        return time_of(n, arena.words[at + TAG])
    elif event == HANDLE:
        handle(arena, at, n, now_ps)
    elif event == SENT:
        n[ACKNOWLEDGED] += 1
        post_more(arena, at, n, now_ps)
    return 0
