"""Events come by their times, and at one time in the order they were made in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.arena import Store
from ringleaf.heap import (
    CAPACITY,
    COUNT,
    EVENT_BITS,
    FIRST_SEQUENCE,
    SEQUENCE,
    first_event,
    first_time_ps,
    grow_heap,
    make_heap,
    pop_event,
    push_event,
    renumber,
)


@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=60))
def test_events_come_in_order(steps: list[int | None]) -> None:
    """A number is the time of an event that is made; None takes the first."""
    store = Store()
    at = make_heap(store, 2)
    waiting: list[tuple[int, int]] = []  # time and number, in the order they were made in
    for number, step in enumerate([*steps, *[None] * len(steps)]):
        words = store.arena.words
        if step is not None:
            if words[at + COUNT] == words[at + CAPACITY]:
                grow_heap(store, at, 2 * int(words[at + CAPACITY]))
            push_event(store.arena.words, at, step, number)
            waiting.append((step, number))
        elif waiting:
            first = min(waiting)
            waiting.remove(first)
            assert first_event(words, at) == first[1]
            assert (first_time_ps(words, at), pop_event(words, at)) == first
    assert not waiting


@given(st.lists(st.integers(0, 3), max_size=60), st.lists(st.integers(0, 3), max_size=60))
def test_renumbering_keeps_the_order(before: list[int], after: list[int]) -> None:
    """Both are times; events of one time keep the order they were made in."""
    store = Store()
    at = make_heap(store, 120)
    words = store.arena.words
    for number, time_ps in enumerate(before):
        push_event(words, at, time_ps, number)
    words[at + SEQUENCE] = 1 << 20
    renumber(words, at)
    assert words[at + SEQUENCE] == FIRST_SEQUENCE + len(before)
    for number, time_ps in enumerate(after, len(before)):
        push_event(words, at, time_ps, number)
    events = sorted((time_ps, number) for number, time_ps in enumerate([*before, *after]))
    assert [(first_time_ps(words, at), pop_event(words, at)) for _ in events] == events


def test_sequences_below_zero_do_not_touch_the_event() -> None:
    """The first sequence is negative, and events may have all their bits set."""
    store = Store()
    at = make_heap(store, 4)
    largest = (1 << EVENT_BITS) - 1
    for event in (largest, 0, largest - 1):
        push_event(store.arena.words, at, 7, event)
    assert [pop_event(store.arena.words, at) for _ in range(3)] == [largest, 0, largest - 1]
