"""Timeouts of packets in flight."""

from __future__ import annotations

import pytest

from ringleaf.arena import Store
from ringleaf.ina.flight import (
    FLIGHT_WORDS,
    Flight,
    deadline_ps,
    link_slot,
    make_flight,
    note_answer,
    open_flight,
    pop_slot,
    push_first,
    unlink_slot,
)

TIMEOUT_PS = 4000  # before there is a round trip, four times the least one


def flight_of(priorities: list[int]) -> Flight:
    """Packets of these priorities, one per picosecond, from 0 on."""
    store = Store()
    at = store.allocate("words", FLIGHT_WORDS)
    make_flight(store, at, len(priorities), min_timeout_ps=TIMEOUT_PS // 4)
    flight = open_flight(store.arena, at)
    for now_ps, priority in enumerate(priorities):
        push_first(flight, now_ps)
        link_slot(flight, pop_slot(flight), 0, priority, now_ps)
    return flight


@pytest.mark.parametrize(
    ("answered", "deadline"),
    [
        (5, 3000 + TIMEOUT_PS),  # what is more urgent may have passed all the while
        (2, TIMEOUT_PS),
        (0, TIMEOUT_PS),
    ],
)
def test_what_is_more_urgent_puts_a_timeout_off(answered: int, deadline: int) -> None:
    flight = flight_of([2, answered])
    assert deadline_ps(flight) == TIMEOUT_PS

    unlink_slot(flight, 1)
    note_answer(flight, 1, 3000)

    assert deadline_ps(flight) == deadline
