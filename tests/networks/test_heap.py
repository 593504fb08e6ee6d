"""Events come by their times, and at one time by place, then tie, then number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.arena import Store
from ringleaf.heap import (
    CAPACITY,
    COUNT,
    EVENT_BITS,
    LAST_TIE,
    PLACE_BITS,
    TIES,
    first_event,
    first_time_ps,
    grow_heap,
    make_heap,
    next_tie,
    order_at,
    pop_event,
    push_event,
    renumber,
)


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)),
        ),
        max_size=60,
    )
)
def test_events_come_in_order(steps: list[tuple[int, int, int, int] | None]) -> None:
    """A step is an event's time, place, tie and number; None takes the first."""
    store = Store()
    at = make_heap(store, 2)
    waiting: list[tuple[int, int, int, int]] = []
    for step in [*steps, *[None] * len(steps)]:
        words = store.arena.words
        if step is not None:
            if words[at + COUNT] == words[at + CAPACITY]:
                grow_heap(store, at, 2 * int(words[at + CAPACITY]))
            time_ps, place, tie, number = step
            push_event(store.arena.words, at, time_ps, number, order_at(place, tie))
            waiting.append(step)
        elif waiting:
            first = min(waiting)
            waiting.remove(first)
            assert first_event(words, at) == first[3]
            assert (first_time_ps(words, at), pop_event(words, at)) == (first[0], first[3])
    assert not waiting


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), max_size=60),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), max_size=60),
)
def test_renumbering_keeps_the_order(
    before: list[tuple[int, int, bool]], after: list[tuple[int, int, bool]]
) -> None:
    """Each is a time, a place, and whether there is a tie: those without one come first."""
    store = Store()
    at = make_heap(store, 120)
    words = store.arena.words
    words[at + TIES] = LAST_TIE - 60
    wanted = []
    for number, (time_ps, place, is_tied) in enumerate([*before, *after]):
        if number == len(before):
            renumber(words, at)
            assert words[at + TIES] == sum(tied for _, _, tied in before)
        tie = next_tie(words, at) if is_tied else 0
        push_event(words, at, time_ps, number, order_at(place, tie))
        wanted.append((time_ps, place, is_tied, number))
    for time_ps, _, _, number in sorted(wanted):
        assert (first_time_ps(words, at), pop_event(words, at)) == (time_ps, number)


def test_the_largest_of_all_fit_beside_one_another() -> None:
    store = Store()
    at = make_heap(store, 4)
    place, event = (1 << PLACE_BITS) - 1, (1 << EVENT_BITS) - 1
    push_event(store.arena.words, at, 7, event, order_at(place, LAST_TIE))
    push_event(store.arena.words, at, 7, event - 1, order_at(place, LAST_TIE - 1))
    push_event(store.arena.words, at, 7, event, order_at(place - 1, LAST_TIE))
    found = [pop_event(store.arena.words, at) for _ in range(3)]
    assert found == [event, event - 1, event]
