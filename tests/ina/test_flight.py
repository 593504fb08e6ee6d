"""Timeouts of packets in flight."""

from __future__ import annotations

import pytest

from ringleaf.arena import Store
from ringleaf.ina.flight import (
    FLIGHT_WORDS,
    NEWEST_PS,
    SMOOTHED_PS,
    Flight,
    deadline_ps,
    has_waiting,
    link_slot,
    make_flight,
    note_answer,
    open_flight,
    pop_slot,
    push_again,
    push_first,
    queue_passed,
    take_sample,
    unlink_slot,
)

TIMEOUT_PS = 4000  # before there is a round trip, four times the least one


def flight_of(priorities: list[int], *, patient: bool = False) -> Flight:
    """Packets of these priorities, one per picosecond, from 0 on."""
    store = Store()
    at = store.allocate("words", FLIGHT_WORDS)
    make_flight(store, at, len(priorities), min_timeout_ps=TIMEOUT_PS // 4, patient=patient)
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


@pytest.mark.parametrize(("age_ps", "is_lost"), [(2999, False), (3000, True)])
def test_a_patient_flight_waits_for_the_latest_round_trip_and_one_more(
    age_ps: int, is_lost: bool
) -> None:
    """By hand: the latest round trip took 2,000 ps, and the average one takes 1,000."""
    flight = flight_of([0] * 6, patient=True)
    flight.state[NEWEST_PS], flight.state[SMOOTHED_PS] = 2000, 1000
    answer(flight, [1, 2, 3, 4], age_ps)

    queue_passed(flight, age_ps)

    assert has_waiting(flight) == is_lost


def test_an_answer_sooner_than_any_round_trip_is_one_to_the_first_sending() -> None:
    """By hand: the shortest round trip took 1,000 ps, and the resend is answered after 999."""
    for after_ps, sample_ps in ((999, 4999), (1000, 1000)):
        flight = flight_of([0] * 2, patient=True)
        send(flight, [0], 0)
        take_sample(flight, 0, 1000)
        answer(flight, [0], 1000)
        send(flight, [0], 1000)
        push_again(flight, 0)
        link_slot(flight, pop_slot(flight), 0, 0, 5000)

        take_sample(flight, 0, 5000 + after_ps)

        assert flight.state[NEWEST_PS] == sample_ps
