"""Receives whose messages are given a place when they begin to come."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rc_wire import Wire, kinds

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import address_of, handler
from ringleaf.hosts import rc
from ringleaf.hosts.rc.landing import ASKED, CHOOSE, CLAIM_WORDS, COPY, INT32, TARGET

SIZE = 64
NOWHERE = -1
PLACE = CLAIM_WORDS  # a claim here knows where, and how, its message will land
HOW = CLAIM_WORDS + 1
ASKED_TIMES = CLAIM_WORDS + 2


@handler
def take_place(arena: Arena, claim: int, _what: int, _now_ps: int) -> int:
    arena.words[claim + TARGET] = arena.words[claim + PLACE]
    arena.words[claim + ASKED_TIMES] += 1
    how: int = arena.words[claim + HOW]
    return how


def claim_for(wire: Wire, tag: int, place: int, how: int = COPY) -> int:
    """Post a receive at the wire's second end."""
    claim = wire.store.allocate("words", ASKED_TIMES + 1)
    arena = wire.store.arena
    arena.words[claim + CHOOSE], arena.words[claim + TARGET] = address_of(take_place), NOWHERE
    arena.words[claim + PLACE], arena.words[claim + HOW] = place, how
    assert rc.post_receive(arena, wire.ends[1], 0, claim, SIZE, tag, ASKED)
    return claim


def test_a_place_is_asked_for_when_the_message_begins() -> None:
    wire = Wire()
    claims = [claim_for(wire, tag, NOWHERE) for tag in range(2)]
    wire.run()
    words = wire.store.arena.words
    assert [words[claim + TARGET] for claim in claims] == [NOWHERE, NOWHERE]

    words[claims[0] + PLACE] = 4096  # known only now
    wire.post(0, b"a message of more than one packet", 0, tag=0)
    wire.run()
    assert wire.store.arena.memory[4096:4129].tobytes() == b"a message of more than one packet"
    assert [words[claim + ASKED_TIMES] for claim in claims] == [1, 0]
    assert kinds(wire) == [(rc.RECEIVED, 0), (rc.SENT, 0)]


def test_a_message_may_be_added_where_it_is_told_to() -> None:
    wire = Wire()
    there = wire.store.arena.memory[4096 : 4096 + 40].view(np.int32)
    there[:] = np.arange(10)
    claim_for(wire, 0, 4096, INT32)
    wire.post(0, np.full(10, 7, np.int32).tobytes(), 0, tag=0)
    wire.run()
    assert there.tolist() == list(range(7, 17))


@given(
    sizes=st.lists(st.integers(0, SIZE), min_size=1, max_size=8),
    seed=st.integers(0, 1 << 30),
    loss=st.sampled_from([0.0, 0.3]),
    twice=st.sampled_from([0.0, 0.3]),
    late=st.sampled_from([0.0, 0.3]),
)
def test_each_message_asks_once_under_loss(
    sizes: list[int], seed: int, loss: float, twice: float, late: float
) -> None:
    """Also one without data, and one whose first packet comes twice."""
    wire = Wire(seed=seed, loss=loss, twice=twice, late=late)
    payload = random.Random(seed)
    messages = [payload.randbytes(size) for size in sizes]
    claims = []
    for tag, data in enumerate(messages):
        claims.append(claim_for(wire, tag, 32768 + SIZE * tag))
        wire.post(0, data, 8192 + SIZE * tag, tag)
    wire.run()

    words, memory = wire.store.arena.words, wire.store.arena.memory
    assert [words[claim + ASKED_TIMES] for claim in claims] == [1] * len(sizes)
    for tag, data in enumerate(messages):
        assert memory[32768 + SIZE * tag :][: len(data)].tobytes() == data
