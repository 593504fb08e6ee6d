"""Events come by their times, and at one time in the order they were made in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.arena import Store
from ringleaf.heap import (
    CAPACITY,
    COUNT,
    first_time_ps,
    grow_heap,
    make_heap,
    pop_event,
    push_event,
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
            assert (first_time_ps(words, at), pop_event(words, at)) == first
    assert not waiting
