"""Timeouts of packets in flight."""

from __future__ import annotations

import pytest

from ringleaf.arena import Store
from ringleaf.ina.flight import (
    FLIGHT_WORDS,
    Flight,
    deadline_ps,
    has_waiting,
    link_slot,
    make_flight,
    note_answer,
    open_flight,
    pop_slot,
    push_first,
    queue_passed,
    unlink_slot,
)

TIMEOUT_PS = 4000  # before there is a round trip, four times the least one


def flight_of(priorities: list[int]) -> Flight:
    """Packets of these priorities, one per picosecond, from 0 on."""
    store = Store()
    at = store.allocate("words", FLIGHT_WORDS)
    make_flight(store, at, len(priorities), min_timeout_ps=TIMEOUT_PS // 4)
    flight = open_flight(store.arena, at)
    send(flight, priorities, 0)
    return flight


def send(flight: Flight, priorities: list[int], since_ps: int) -> None:
    for slot, priority in enumerate(priorities):
        push_first(flight, slot)
        link_slot(flight, pop_slot(flight), 0, priority, since_ps + slot)


def answer(flight: Flight, slots: list[int], now_ps: int) -> None:
    for slot in slots:
        unlink_slot(flight, slot)
        note_answer(flight, slot, now_ps)


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


@pytest.mark.parametrize(("priority", "is_lost"), [(2, True), (3, False)])
def test_whoever_may_wait_for_a_less_urgent_result_was_not_passed(
    priority: int, is_lost: bool
) -> None:
    """The result of the round before is less urgent than this one's, so other workers may not have
    it yet, and can't have sent what this slot waits for."""
    flight = flight_of([2] * 5)
    answer(flight, [0, 1, 2, 3, 4], 1000)
    send(flight, [priority] * 5, 1000)
    answer(flight, [1, 2, 3, 4], 2000)

    queue_passed(flight, 2000)

    assert has_waiting(flight) == is_lost
