"""Timeouts of packets in flight."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Store
from ringleaf.ina.flight import (
    FLIGHT_WORDS,
    NEWEST_PS,
    SMOOTHED_PS,
    Flight,
    back_off,
    deadline_ps,
    end_backoff,
    has_waiting,
    link_slot,
    make_flight,
    note_answer,
    open_flight,
    pop_slot,
    push_again,
    push_first,
    queue_overdue,
    queue_passed,
    take_sample,
    unlink_slot,
)

TIMEOUT_PS = 4000  # before there is a round trip, four times the least one


def new_flight(
    slots: int,
    least_ps: int,
    *,
    patient: bool = False,
    probes: bool = False,
    quiet_ps: int = 0,
    host: int = 0,
) -> Flight:
    store = Store()
    at = store.allocate("words", FLIGHT_WORDS)
    make_flight(
        *(store, at, slots, least_ps), patient=patient, probes=probes, quiet_ps=quiet_ps, host=host
    )
    return open_flight(store.arena, at)


def flight_of(priorities: list[int], *, patient: bool = False) -> Flight:
    """Packets of these priorities, one per picosecond, from 0 on."""
    flight = new_flight(len(priorities), TIMEOUT_PS // 4, patient=patient)
    send(flight, priorities, 0)
    return flight


def send(flight: Flight, priorities: list[int], since_ps: int) -> None:
    for slot, priority in enumerate(priorities):
        push_first(flight, slot)
        link_slot(flight, pop_slot(flight), 0, priority, since_ps + slot)


def send_one(flight: Flight, slot: int, now_ps: int) -> None:
    push_first(flight, slot)
    link_slot(flight, pop_slot(flight), 0, 0, now_ps)


def take_answer(flight: Flight, slot: int, now_ps: int) -> None:
    """Take an answer as workers do."""
    unlink_slot(flight, slot)
    take_sample(flight, slot, now_ps)
    end_backoff(flight)
    note_answer(flight, slot, now_ps)


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


@given(slots=st.integers(1, 32), steps=st.integers(8, 60), calm=st.integers(1, 200))
def test_a_growing_queue_of_others_lets_nothing_be_sent_again(
    slots: int, steps: int, calm: int
) -> None:
    """A window of packets on a way whose queue grows steadily, from a round trip to ten of them.

    The growth of each packet's round trip is at most an eighth of one. The deviation then follows
    until the round trip is at the floor, which is two round trips.
    """
    base_ps, now_ps = 10**6, 0
    flight = new_flight(slots, 2 * base_ps)
    due = deque[tuple[int, int]]()
    for number in range(slots + calm + 10 * steps):
        if number >= slots:
            now_ps, slot = due.popleft()
            assert deadline_ps(flight) > now_ps
            take_answer(flight, slot, now_ps)
        grown_ps = max(number - slots - calm, 0) * base_ps // steps
        send_one(flight, number % slots, now_ps)
        answer_ps = max(now_ps + base_ps + grown_ps, due[-1][0] + base_ps // slots if due else 0)
        due.append((answer_ps, number % slots))


@pytest.mark.parametrize(
    ("order", "probes", "expected_ps"),
    [
        ([1, 2, 3], False, 3000),  # sent in this order, so the next packet is behind both late ones
        ([2, 0, 1], False, 1278),  # overtaken, so the answers waited for another worker
        ([1, 0, 3], False, 1278),  # only the last one has not been overtaken
        ([1, 2, 3], True, 1278),
    ],
)
def test_two_late_answers_in_order_tell_how_long_the_next_one_may_take(
    order: list[int], probes: bool, expected_ps: int
) -> None:
    """By hand, with gains of RFC 6298 a fourth as large, as four packets share a round trip.

    Round trips of 1,000, 3,000 and 8,000 ps: the average is 1,000 ps, 1,000 + 2,000 / 32 ps, and
    1,062 + 6,938 / 32 ps; the deviation 500 ps, 500 + 1,500 / 16 ps, and 593 + 6,345 / 16 ps.
    """
    flight = new_flight(4, 1000, probes=probes)
    for each in range(4):
        send_one(flight, each, 0)

    for slot, now_ps in zip(order, (1000, 3000, 8000), strict=True):
        take_answer(flight, slot, now_ps)

    assert deadline_ps(flight) == expected_ps + 4 * 989


def backed_off(slots: int, host: int = 0) -> Flight:
    """Slots that were sent in vain until timeouts grow no more."""
    flight = new_flight(slots, TIMEOUT_PS // 4, host=host)
    send(flight, [0] * slots, 0)
    for _ in range(4):  # 4, 8, 16 and 32 times the least one; then 64 times
        assert resend(flight) == list(range(slots))
    return flight


def resend(flight: Flight) -> list[int]:
    """Let the next timeout come; return the slots that are sent then."""
    now_ps = deadline_ps(flight) + len(flight.slots)  # when all that were sent together are overdue
    assert queue_overdue(flight, now_ps)
    back_off(flight, now_ps)
    sent = []
    while has_waiting(flight):
        sent.append(pop_slot(flight))
        link_slot(flight, sent[-1], 0, 0, now_ps)
    return sent


def test_fewer_are_sent_again_if_nothing_gets_through() -> None:
    """All five once more after the longest timeout; then two, then one, those that waited longest.

    Each answer allows one more.
    """
    flight = backed_off(5)
    assert resend(flight) == [0, 1, 2, 3, 4]
    assert [resend(flight) for _ in range(3)] == [[0, 1], [2], [3]]

    take_answer(flight, 3, deadline_ps(flight))
    assert resend(flight) == [4, 0]


def test_hosts_hold_slots_back_for_unlike_times() -> None:
    waits = set()
    for host in range(8):
        flight = backed_off(4, host)
        resend(flight)
        before_ps = deadline_ps(flight)
        resend(flight)
        waits.add((deadline_ps(flight) - before_ps) // 1000)
    assert len(waits) == 8
    assert max(waits) - min(waits) > 16
    assert max(waits) < 130


def test_a_networks_quiet_time_is_added_once_to_each_timeout() -> None:
    """Sent at 0, its timeout of 4,000 ps is over at 4,500; again then, with twice the timeout."""
    flight = new_flight(1, TIMEOUT_PS // 4, quiet_ps=500)
    send_one(flight, 0, 0)
    assert deadline_ps(flight) == TIMEOUT_PS + 500
    assert not queue_overdue(flight, TIMEOUT_PS + 499)
    assert queue_overdue(flight, TIMEOUT_PS + 500)
    back_off(flight, TIMEOUT_PS + 500)
    link_slot(flight, pop_slot(flight), 0, 0, TIMEOUT_PS + 500)
    assert deadline_ps(flight) == TIMEOUT_PS + 500 + 2 * TIMEOUT_PS + 500
