"""Packets in flight a step at a time: rows, rings, round trips and timeouts, worked out by hand."""

from __future__ import annotations

import pytest
from test_flight import new_flight, send_one

from ringleaf.core.arena import Store
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.fifo import FIFO_COUNT
from ringleaf.ina import flight as f

COLUMNS = (
    f.SENT_PS, f.ATTEMPTS, f.NEXT, f.PREVIOUS, f.SENDING, f.WAY, f.STRAYS, f.LEVEL, f.FIRST_PS,
)  # fmt: skip


def rows(flight: f.Flight) -> list[list[int]]:
    """Return the slots' rows, and then the two rings'."""
    found: list[list[int]] = flight.slots.reshape(-1, f.SLOT_WORDS).tolist()
    return found


def row(flight: f.Flight, slot: int) -> tuple[int, ...]:
    return tuple(rows(flight)[slot][column] for column in COLUMNS)


def ends(flight: f.Flight, ring: int) -> tuple[int, int]:
    """Return a ring's first and last slot."""
    found = rows(flight)[int(flight.state[f.SLOTS]) + ring]
    return found[f.NEXT], found[f.PREVIOUS]


def words(flight: f.Flight, *places: int) -> tuple[int, ...]:
    return tuple(int(flight.state[place]) for place in places)


def drain(flight: f.Flight) -> list[int]:
    """Take all slots that wait to be sent."""
    found = []
    while f.has_waiting(flight):
        found.append(f.pop_slot(flight))
    assert flight.state[FIFO_COUNT] == 0
    return found


def resend(flight: f.Flight, slot: int, now_ps: int, way: int = 0) -> None:
    f.push_again(flight, slot)
    assert f.pop_slot(flight) == slot
    f.link_slot(flight, slot, way, 0, now_ps)


def test_a_flight_begins_with_empty_rings_and_four_times_the_least_timeout() -> None:
    store = Store()
    store.allocate("words", 70)
    at = store.allocate("words", f.FLIGHT_WORDS)
    f.make_flight(store, at, 3, 10, ways=12)
    store.arena.words[store.allocate("words", 4) :][:4] = 99
    flight = f.open_flight(store.arena, at)

    assert (flight.slots.size, flight.latest.tolist()) == (5 * f.SLOT_WORDS, [-1] * 36)
    assert flight.fifo.rows.tolist() == [0] * 3
    assert words(flight, f.SLOTS, f.WAYS, f.MIN_TIMEOUT_PS) == (3, 12, 10)
    assert words(flight, f.TIMEOUT_PS, f.RETRY_PS, f.ASKED) == (40, 40, -1)
    assert words(flight, f.PROBES, f.IS_PATIENT, f.SMOOTHED_PS, f.LEAST_PS) == (0, 0, 0, 0)
    assert [ends(flight, ring) for ring in range(2)] == [(3, 3), (4, 4)]
    assert [each[f.NEXT] for each in rows(flight)[:3]] == [-1] * 3
    assert {each[f.LEVEL] for each in rows(flight)} == {8}  # behind all of RFC 2474's classes
    assert f.deadline_ps(flight) == FOREVER_PS


def test_sent_slots_are_linked_in_the_order_of_sending() -> None:
    """Three slots send, the middle one sends again, and then the first has another packet."""
    flight = new_flight(3, 10)
    for slot, (way, priority, now_ps) in enumerate(((1, 3, 100), (0, 3, 130), (1, 3, 150))):
        f.push_first(flight, slot)
        assert rows(flight)[slot][f.WAITS] == 1
        assert f.pop_slot(flight) == slot
        f.link_slot(flight, slot, way, priority, now_ps)

    assert row(flight, 0) == (100, 1, 1, 3, 0, 1, 0, 3, 100)
    assert row(flight, 1) == (130, 1, 2, 0, 1, 0, 0, 3, 130)
    assert row(flight, 2) == (150, 1, 3, 1, 2, 1, 0, 3, 150)
    assert (ends(flight, 0), ends(flight, 1)) == ((0, 2), (4, 4))
    assert words(flight, f.SENDINGS, f.PRIORITY, f.SINCE) == (3, 3, 0)
    assert [each[f.WAITS] for each in rows(flight)[:3]] == [0, 0, 0]

    f.push_again(flight, 1)
    assert [each[f.IS_LOST] for each in rows(flight)[:3]] == [0, 1, 0]
    assert (row(flight, 0)[2], row(flight, 2)[3], row(flight, 1)[2]) == (2, 0, -1)
    assert f.pop_slot(flight) == 1
    f.link_slot(flight, 1, 0, 5, 300)
    assert row(flight, 1) == (300, 2, 4, 4, 3, 0, 0, 5, 130)  # others wait for no other result
    assert (ends(flight, 0), ends(flight, 1)) == ((0, 2), (1, 1))
    assert words(flight, f.SENDINGS, f.PRIORITY, f.SINCE) == (4, 5, 3)

    f.unlink_slot(flight, 0)
    f.unlink_slot(flight, 0)  # it is in no ring any more
    assert (ends(flight, 0), row(flight, 2)[2:4]) == ((2, 2), (3, 3))
    flight.slots[f.IS_LOST] = 1
    f.push_first(flight, 0)
    assert (rows(flight)[0][f.ATTEMPTS], rows(flight)[0][f.IS_LOST]) == (0, 0)
    f.link_slot(flight, f.pop_slot(flight), 1, 4, 310)
    assert row(flight, 0) == (310, 1, 3, 2, 4, 1, 1, 4, 310)  # more urgent than the one before


@pytest.mark.parametrize(("priority", "strays"), [(2, 0), (3, 0), (4, 1)])
def test_only_a_more_urgent_packet_than_the_slots_last_one_may_overtake_it(
    priority: int, strays: int
) -> None:
    flight = new_flight(1, 10)
    for urgency in (3, priority):
        f.push_first(flight, 0)
        f.link_slot(flight, f.pop_slot(flight), 0, urgency, 0)
        f.unlink_slot(flight, 0)
    assert rows(flight)[0][f.STRAYS] == strays
    f.push_first(flight, 0)
    assert rows(flight)[0][f.STRAYS] == 0  # until it is sent


def test_slots_that_begin_out_of_turn_stray_and_are_queued_once() -> None:
    flight = new_flight(2, 10)
    flight.state[f.OUT_OF_TURN] = 1
    for slot in (1, 0, 1):
        f.push_first(flight, slot)
    assert [each[f.STRAYS] for each in rows(flight)[:2]] == [1, 1]
    assert drain(flight) == [1, 0]


@pytest.mark.parametrize(
    ("attempts", "is_lost", "is_probe"), [(0, 0, False), (1, 0, True), (2, 0, True), (1, 1, False)]
)
def test_a_probe_goes_before_a_packet_that_is_not_known_to_be_lost(
    attempts: int, is_lost: int, is_probe: bool
) -> None:
    flight = new_flight(2, 10, probes=True)
    at = f.SLOT_WORDS
    flight.slots[at + f.ATTEMPTS], flight.slots[at + f.IS_LOST] = attempts, is_lost
    assert f.is_probe(flight, 1) == is_probe


def test_each_ring_has_a_timeout_of_its_own() -> None:
    """Slot 0 was sent at 100 and again at 700, slot 1 at 200; the timeouts are 1,000 and 50."""
    flight = new_flight(2, 10)
    flight.state[f.TIMEOUT_PS], flight.state[f.RETRY_PS] = 1000, 50
    send_one(flight, 0, 100)
    send_one(flight, 1, 200)
    assert [f.due_ps(flight, ring) for ring in range(2)] == [1100, FOREVER_PS]
    resend(flight, 0, 700)
    assert [f.due_ps(flight, ring) for ring in range(2)] == [1200, 750]
    assert f.deadline_ps(flight) == 750
    flight.state[f.RETRY_PS] = 600
    assert f.deadline_ps(flight) == 1200

    flight.state[f.ASKED_PS] = 300  # nothing was lost by then, of those that were sent once
    assert [f.due_ps(flight, ring) for ring in range(2)] == [1300, 1300]
    flight.state[f.BEHIND_PS :][:8] = range(800, 880, 10)  # by class
    for slot, level in ((0, 3), (1, 5)):
        flight.slots[slot * f.SLOT_WORDS + f.LEVEL] = level
    assert [f.due_ps(flight, ring) for ring in range(2)] == [1850, 1430]
    flight.state[f.ASKED] = 0
    assert [f.due_ps(flight, ring) for ring in range(2)] == [FOREVER_PS, 1430]


def facts(flight: f.Flight) -> tuple[int, ...]:
    return words(flight, f.LEAST_PS, f.NEWEST_PS, f.SMOOTHED_PS, f.VARIATION_PS)


def test_round_trips_are_averaged_as_rfc_6298_has_it() -> None:
    """With one slot, gains of 1/8 and 1/4: 1,000, 2,000, then 500; the most is 64 times 1,000."""
    flight = new_flight(1, 1000)
    for sample_ps, expected in (
        (1000, (1000, 1000, 1000, 500)),
        (2000, (1000, 2000, 1125, 625)),
        (509, (509, 509, 1048, 622)),  # 1125 - 77, 625 + (616 - 625) / 4
        (64_001, (509, 64_000, 8917, 16_204)),  # 1048 + 62,952 / 8, 622 + (62,952 - 622) / 4
    ):
        send_one(flight, 0, 7000)
        f.unlink_slot(flight, 0)
        f.take_sample(flight, 0, 7000 + sample_ps)
        assert facts(flight) == expected


@pytest.mark.parametrize(
    ("attempts", "is_lost", "patient", "after_ps", "sample_ps"),
    [
        (0, 0, False, 0, None),  # not sent at all
        (1, 0, False, 200, 500),
        (2, 0, False, 200, 500),  # probes alone were sent since: from the first sending on
        (1, 1, False, 200, None),
        (1, 1, True, 200, 500),  # it is to be sent again
        (2, 1, False, 99, None),
        (2, 1, True, 99, 399),  # sooner than any round trip: to the first sending
        (2, 1, True, 100, None),
        (3, 1, True, 99, None),
    ],
)
def test_ambiguous_round_trips_do_not_count(
    attempts: int, is_lost: int, patient: bool, after_ps: int, sample_ps: int | None
) -> None:
    """The slot was sent at 1,000 and last at 1,300; the shortest round trip took 100."""
    flight = new_flight(1, 1000, patient=patient)
    send_one(flight, 0, 0)
    f.take_sample(flight, 0, 100)
    flight.slots[f.ATTEMPTS], flight.slots[f.IS_LOST] = attempts, is_lost
    flight.slots[f.FIRST_PS], flight.slots[f.SENT_PS] = 1000, 1300
    f.take_sample(flight, 0, 1300 + after_ps)
    assert flight.state[f.NEWEST_PS] == (100 if sample_ps is None else sample_ps)


@pytest.mark.parametrize(
    ("attempts", "sending", "probes", "expected"),
    [
        (1, 5, False, (5, 900, 700)),
        (1, 6, False, (6, 900, 700)),
        (1, 4, False, (5, 700, 20)),  # overtaken
        (2, 6, False, (5, 700, 20)),
        (1, 6, True, (5, 700, 20)),
    ],
)
def test_the_latest_sending_answered_tells_of_the_queue(
    attempts: int, sending: int, probes: bool, expected: tuple[int, ...]
) -> None:
    flight = new_flight(2, 10, probes=probes)
    flight.state[f.FOREMOST], flight.state[f.FOREMOST_PS], flight.state[f.QUEUE_PS] = 5, 700, 20
    flight.slots[f.SLOT_WORDS + f.SENDING] = sending
    flight.slots[f.SLOT_WORDS + f.ATTEMPTS] = attempts
    f.note_foremost(flight, 1, 900)
    assert words(flight, f.FOREMOST, f.FOREMOST_PS, f.QUEUE_PS) == expected
    if expected[1] == 900:
        f.note_foremost(flight, 1, 300)
        assert words(flight, f.FOREMOST_PS, f.QUEUE_PS) == (300, 300)  # the shorter of the two


@pytest.mark.parametrize(
    ("smoothed", "queue", "variation", "timeout", "retry"),
    [
        (0, 0, 0, 400, 400),
        (500, 0, 30, 620, 1000),
        (500, 800, 30, 920, 1000),
        (50, 0, 12, 100, 100),  # the floor holds for the first sending alone
    ],
)
def test_an_answer_sets_the_timeouts_by_the_averages(
    smoothed: int, queue: int, variation: int, timeout: int, retry: int
) -> None:
    flight = new_flight(2, 100)
    flight.state[f.TIMEOUT_PS] = flight.state[f.RETRY_PS] = 9
    flight.state[f.SMOOTHED_PS], flight.state[f.QUEUE_PS] = smoothed, queue
    flight.state[f.VARIATION_PS] = variation
    f.end_backoff(flight)
    assert words(flight, f.TIMEOUT_PS, f.RETRY_PS) == (timeout, retry)


def test_the_latest_answered_sendings_of_each_way_are_kept() -> None:
    store = Store()
    at = store.allocate("words", f.FLIGHT_WORDS)
    f.make_flight(store, at, 6, 10, ways=2)
    flight = f.open_flight(store.arena, at)
    for slot, way in enumerate((1, 0, 1, 1, 1, 1)):
        f.push_first(flight, slot)
        f.link_slot(flight, f.pop_slot(flight), way, 2, slot)
    for slot, kept in (
        (3, [-1, -1, -1, 3, -1, -1]),
        (5, [-1, -1, -1, 5, 3, -1]),
        (1, [1, -1, -1, 5, 3, -1]),
        (2, [1, -1, -1, 5, 3, 2]),
        (0, [1, -1, -1, 5, 3, 2]),  # older than all that are kept
        (4, [1, -1, -1, 5, 4, 3]),
    ):
        f.note_answer(flight, slot, 100 + slot)
        assert flight.latest.tolist() == kept
        assert flight.state[f.BEHIND_PS :][:8].tolist() == [100 + slot] * 2 + [0] * 6


@pytest.mark.parametrize(
    ("attempts", "strays", "age_ps", "is_kept"),
    [(1, 0, 10, True), (2, 0, 500, True), (2, 0, 499, False), (1, 1, 600, False)],
)
def test_an_answer_that_may_be_to_an_earlier_sending_says_nothing(
    attempts: int, strays: int, age_ps: int, is_kept: bool
) -> None:
    flight = new_flight(1, 10)
    flight.state[f.SMOOTHED_PS] = 500
    send_one(flight, 0, 1000)
    flight.slots[f.ATTEMPTS], flight.slots[f.STRAYS] = attempts, strays
    f.note_answer(flight, 0, 1000 + age_ps)
    assert flight.latest.tolist() == [0 if is_kept else -1, -1, -1]


def test_patience_by_hand() -> None:
    """None; half the least timeout before there is a round trip; the latest and an average one."""
    assert f.patience_ps(new_flight(1, 1000)) == 0
    flight = new_flight(1, 1001, patient=True)
    assert f.patience_ps(flight) == 500
    flight.state[f.NEWEST_PS], flight.state[f.SMOOTHED_PS] = 70, 300
    assert f.patience_ps(flight) == 370


@pytest.mark.parametrize(
    ("latest", "since", "strays", "age_ps", "is_passed"),
    [
        ([9, 8, 7, 12, 11, 7], 6, 0, 500, True),
        ([9, 8, 7, 12, 11, 6], 6, 0, 500, False),  # two on its way alone
        ([0, 0, 0, 12, 11, 7], 6, 0, 500, True),  # of another way
        ([9, 8, 7, 12, 11, 7], 7, 0, 500, False),  # a more urgent packet follows
        ([9, 8, 7, 12, 11, 7], 6, 1, 500, False),
        ([9, 8, 7, 12, 11, 7], 6, 0, 499, False),
    ],
)
def test_three_answers_to_later_packets_on_its_way_pass_a_packet(
    latest: list[int], since: int, strays: int, age_ps: int, is_passed: bool
) -> None:
    """Sending 6 went by way 1 at 2,000, and the flight's patience is 500."""
    store = Store()
    at = store.allocate("words", f.FLIGHT_WORDS)
    f.make_flight(store, at, 2, 1000, ways=3, patient=True)
    flight = f.open_flight(store.arena, at)
    send_one(flight, 1, 2000)
    flight.slots[f.SLOT_WORDS + f.SENDING], flight.slots[f.SLOT_WORDS + f.WAY] = 6, 1
    flight.slots[f.SLOT_WORDS + f.STRAYS], flight.state[f.SINCE] = strays, since
    flight.latest[:] = [*latest, 3, 2, 1]
    assert f.is_passed(flight, 1, 2000 + age_ps) == is_passed
    f.queue_passed(flight, 2000 + age_ps)
    assert f.has_waiting(flight) == is_passed


def test_all_that_have_been_passed_are_queued_until_one_has_not() -> None:
    """Sendings 0 to 4 of slots 2 to 6, and two that were sent again; 2, 3 and 4 have answers."""
    flight = new_flight(7, 1000)
    for slot in range(7):
        send_one(flight, slot, 0)
    for slot in (0, 1):
        resend(flight, slot, 10)
    for slot, sending in enumerate((7, 8, 0, 1, 2, 3, 4)):
        flight.slots[slot * f.SLOT_WORDS + f.SENDING] = sending
    flight.latest[:] = [6, 5, 2]
    f.queue_passed(flight, 50)
    assert drain(flight) == [2, 3]
    flight.latest[:] = [90, 80, 70]
    f.queue_passed(flight, 50)
    assert drain(flight) == [4, 5, 6]  # the others wait for a timeout


@pytest.mark.parametrize("probes", [False, True])
def test_what_is_overdue_is_queued_oldest_first(probes: bool) -> None:
    """Packets of 0, 10 and 20, of which the last was sent again at 30; timeouts are 100 and 80."""
    flight = new_flight(3, 25, probes=probes)
    flight.state[f.RETRY_PS] = 80
    for slot in range(3):
        send_one(flight, slot, 10 * slot)
    resend(flight, 2, 30)
    assert not f.queue_overdue(flight, 99)
    assert not f.has_waiting(flight)

    assert f.queue_overdue(flight, 110)
    asked = [0, 2] if probes else [0, 1, 2]  # a probe asks for the others of its ring
    assert drain(flight) == asked
    assert flight.state[f.ASKED] == (0 if probes else -1)
    assert [each[f.IS_LOST] for each in rows(flight)[:3]] == ([0] * 3 if probes else [1] * 3)
    assert not f.queue_overdue(flight, 110)


@pytest.mark.parametrize(
    ("slot", "was_lost", "asked", "asked_ps", "waiting"),
    [
        (0, False, -1, 100, []),  # it was sent at 100
        (0, True, -1, 0, [1, 2]),  # these are overdue at 110
        (3, True, 0, 0, []),
        (3, False, 0, 0, []),
    ],
)
def test_the_answer_to_a_probe_holds_for_all_overdue_packets(
    slot: int, was_lost: bool, asked: int, asked_ps: int, waiting: list[int]
) -> None:
    """Packets of 0, 5, 10 and 15, with a timeout of 100; the first has probed at 100."""
    flight = new_flight(4, 25, probes=True)
    for each in range(4):
        send_one(flight, each, 5 * each)
    assert f.queue_overdue(flight, 100)
    f.link_slot(flight, f.pop_slot(flight), 0, 0, 100)

    f.end_question(flight, slot, was_lost, 110)

    assert words(flight, f.ASKED, f.ASKED_PS) == (asked, asked_ps)
    assert drain(flight) == waiting


def test_a_packet_that_is_lost_goes_again_and_then_others_that_are_overdue() -> None:
    flight = new_flight(2, 25, probes=True)
    for each in range(2):
        send_one(flight, each, 0)
    assert f.queue_overdue(flight, 100)
    f.link_slot(flight, f.pop_slot(flight), 0, 0, 100)
    f.push_lost(flight, 0, 120)
    assert [each[f.IS_LOST] for each in rows(flight)[:2]] == [1, 0]
    assert drain(flight) == [0, 1]
    assert flight.state[f.ASKED] == -1
    assert (ends(flight, 0), ends(flight, 1)) == ((2, 2), (3, 3))


def test_timeouts_double_once_per_timeout_up_to_64_times_the_least() -> None:
    flight = new_flight(1, 100)
    flight.state[f.RETRY_PS] = 2000
    for now_ps, timeout, retry in (
        (399, 400, 2000),
        (400, 800, 4000),
        (1199, 800, 4000),
        (1200, 1600, 6400),
        (2800, 3200, 6400),
        (6000, 6400, 6400),
        (99_000, 6400, 6400),
    ):
        f.back_off(flight, now_ps)
        assert words(flight, f.TIMEOUT_PS, f.RETRY_PS) == (timeout, retry)
