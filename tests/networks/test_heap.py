"""Events come by their times; at one time, own ones as they were made, then arrivals by port."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Store
from ringleaf.core.heap import (
    ARRIVES,
    CAPACITY,
    COUNT,
    EVENT_BITS,
    LAST_OWN,
    NUMBER_BITS,
    OWN,
    PORT_BITS,
    first_event,
    first_time_ps,
    grow_heap,
    make_heap,
    order_at,
    order_own,
    pop_event,
    push_event,
    remove_events,
    renumber,
    second_event,
)

Step = tuple[int, int]
"""Time, and port: 0 for an own event, otherwise that of an arrival."""

steps_of = st.tuples(st.integers(0, 3), st.integers(0, 2))


def push(store: Store, at: int, step: Step, number: int) -> None:
    time_ps, port = step
    words = store.arena.words
    if words[at + COUNT] == words[at + CAPACITY]:
        grow_heap(store, at, 2 * int(words[at + CAPACITY]))
        words = store.arena.words
    order = order_at(port, number) if port else order_own(words, at)
    push_event(words, at, time_ps, number, order)


@given(st.lists(st.one_of(st.none(), steps_of), max_size=60))
def test_events_come_in_order(steps: list[Step | None]) -> None:
    """None takes the first; those of one time and port come as they were made."""
    store = Store()
    at = make_heap(store, 2)
    waiting: list[tuple[int, int, int]] = []  # time, port and number, in the order made
    for number, step in enumerate([*steps, *[None] * len(steps)]):
        if step is not None:
            push(store, at, step, number)
            waiting.append((*step, number))
        elif waiting:
            first = min(waiting)
            waiting.remove(first)
            words = store.arena.words
            assert first_event(words, at) == first[2]
            if waiting:
                assert second_event(words, at) == min(waiting)[2]
            assert (first_time_ps(words, at), pop_event(words, at)) == (first[0], first[2])
    assert not waiting


@given(st.lists(st.tuples(steps_of, st.booleans()), max_size=60), st.lists(steps_of, max_size=60))
def test_events_that_are_removed_never_come(
    before: list[tuple[Step, bool]], after: list[Step]
) -> None:
    store = Store()
    at = make_heap(store, 120)
    words = store.arena.words
    for number, (step, _) in enumerate(before):
        push(store, at, step, number)
    remove_events(words, at, [number for number, (_, goes) in enumerate(before) if goes])
    left = [(*step, number) for number, (step, goes) in enumerate(before) if not goes]
    assert words[at + COUNT] == len(left)
    for number, step in enumerate(after, len(before)):
        push(store, at, step, number)
        left.append((*step, number))
    for time_ps, _, number in sorted(left):
        assert (first_time_ps(words, at), pop_event(words, at)) == (time_ps, number)


@given(st.lists(steps_of, max_size=60), st.lists(steps_of, max_size=60))
def test_renumbering_keeps_the_order(before: list[Step], after: list[Step]) -> None:
    store = Store()
    at = make_heap(store, 120)
    words = store.arena.words
    words[at + OWN] = LAST_OWN - 60
    for number, step in enumerate(before):
        push(store, at, step, number)
    renumber(words, at)
    assert words[at + OWN] == sum(port == 0 for _, port in before)
    for number, step in enumerate(after, len(before)):
        push(store, at, step, number)
    for time_ps, _, number in sorted((*s, n) for n, s in enumerate([*before, *after])):
        assert (first_time_ps(words, at), pop_event(words, at)) == (time_ps, number)


def test_the_largest_of_all_fit_beside_one_another() -> None:
    store = Store()
    at = make_heap(store, 4)
    words = store.arena.words
    port, number, event = (1 << bits for bits in (PORT_BITS, NUMBER_BITS, EVENT_BITS))
    words[at + OWN] = LAST_OWN
    push_event(words, at, 7, event - 1, order_at(port - 1, number - 1))
    push_event(words, at, 7, event - 2, order_at(port - 1, number - 2))
    push_event(words, at, 7, event - 3, order_at(port - 2, number - 1))
    push_event(words, at, 7, event - 4, order_own(words, at))
    assert order_own(words, at) < ARRIVES
    assert [event - pop_event(words, at) for _ in range(4)] == [4, 3, 2, 1]
