"""How threads meet and agree, a step at a time and as plain Python; other threads are played."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringleaf.networks.virtual.state as s
import ringleaf.networks.virtual.team as team
from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.heap import CAPACITY, COUNT, make_heap, push_event
from ringleaf.core.units import FOREVER_PS
from ringleaf.networks.endpoints import driver as d
from ringleaf.networks.virtual.loop import EMPTY, NEEDS_ROOM, REPORTED, UNTIL
from ringleaf.networks.virtual.room import EVENTS_AT_ONCE, lacks_room_for_mail

run_region: Callable[[Arena, int, int], int] = getattr(team.run_region, "function", team.run_region)
GRID_PS = 10


class Team:
    """Regions with a network block each, and boxes; the grid is 10 ps wide."""

    def __init__(self, regions: int = 2) -> None:
        self.store = Store()
        self.store.allocate("words", 64)
        self.at = self.store.allocate("words", team.team_words(regions))
        blocks_at = self.store.allocate("words", regions)
        self.blocks = [
            s.make_network(self.store, ports=1, nodes=1, agents=0, ring=0, bins=2, seed=1)
            for _ in range(regions)
        ]
        boxes = [self.store.allocate("words", 2 * regions * s.BOX_WORDS) for _ in self.blocks]
        words = self.words
        words[self.at + team.REGIONS], words[self.at + team.GRID_PS] = regions, GRID_PS
        words[self.at + team.BLOCKS_AT] = blocks_at
        words[blocks_at : blocks_at + regions] = self.blocks
        for region, (block, box) in enumerate(zip(self.blocks, boxes, strict=True)):
            words[block + s.TEAM], words[block + s.REGION] = self.at, region
            words[block + s.MAIL_AT], words[block + s.MAIL_PS] = box, FOREVER_PS

    @property
    def words(self) -> Words:
        return self.store.arena.words

    def event(self, region: int, time_ps: int) -> None:
        push_event(self.words, int(self.words[self.blocks[region] + s.HEAP_AT]), time_ps, 0, 0)


# Meetings.


@pytest.mark.parametrize("sleepers", [0, 1])
def test_the_last_to_come_wakes_those_who_sleep(
    sleepers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second meeting of two: three have come before."""
    met = Team()
    woken: list[int] = []
    monkeypatch.setattr(team, "wake_sleepers", lambda _, at: woken.append(at))
    met.words[[met.at + team.MET, met.at + team.SLEEPERS]] = 3, sleepers
    met.words[met.blocks[1] + s.MEETINGS] = 1
    assert team.meet(met.words, met.blocks[1])
    assert met.words[met.at + team.MET] == 4
    assert met.words[met.blocks[1] + s.MEETINGS] == 2
    assert woken == sleepers * [met.at + team.MET]


@pytest.mark.parametrize(
    ("comes_at", "sleeps"),
    [(2, []), (4, []), (6, []), (7, [1])],
)
def test_the_first_to_come_looks_for_a_while_and_then_sleeps(
    comes_at: int, sleeps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look is at two words. Before sleep, the sixth one is whether all have come now.

    Who sleeps is counted before that look, so that the last to come wakes him, or he sees it.
    """
    met = Team()
    looked: list[int] = []
    slept: list[int] = []

    def load(words: Words, at: int) -> int:
        looked.append(at - met.at)
        if len(looked) == comes_at:
            words[met.at + team.MET] = 2
        if len(looked) == 6:
            assert words[met.at + team.SLEEPERS] == 1
        return int(words[at])

    def sleep(words: Words, at: int, value: int) -> None:
        assert (at, words[met.at + team.SLEEPERS]) == (met.at + team.MET, 1)
        slept.append(value)

    monkeypatch.setattr(team, "_PATIENCE", 2)
    monkeypatch.setattr(team, "load_atomically", load)
    monkeypatch.setattr(team, "sleep_while", sleep)
    assert team.meet(met.words, met.blocks[0])
    assert slept == sleeps
    assert met.words[met.at + team.SLEEPERS] == 0
    kinds = 2 * [team.IS_ABORTED, team.MET] + [team.IS_ABORTED, team.MET, team.MET]
    assert looked[:7] == kinds[: len(looked)]


def test_nobody_waits_for_a_thread_that_has_failed() -> None:
    met = Team()
    met.words[met.at + team.IS_ABORTED] = 1
    assert not team.meet(met.words, met.blocks[0])
    assert met.words[met.at + team.MET] == 1


# Windows.


def test_a_region_goes_on_with_what_comes_first() -> None:
    """An event, mail that it has left, a processor that is done, or reports of the last instant."""
    met = Team()
    words, at = met.words, met.blocks[0]
    assert team.next_ps(words, at) == FOREVER_PS
    met.event(0, 70)
    assert team.next_ps(words, at) == 70
    words[at + s.MAIL_PS] = 60
    assert team.next_ps(words, at) == 60
    driver = met.store.allocate("words", d.DRIVER_WORDS)
    calendar, ring = make_heap(met.store, 8), met.store.allocate("words", 8)
    words = met.words
    words[at + s.DRIVER] = driver
    words[driver + d.RING_AT], words[driver + d.CALENDAR_AT] = ring, calendar
    words[driver + d.NOW_PS] = 40
    assert team.next_ps(words, at) == 60
    push_event(words, calendar, 50, 0, 0)
    assert team.next_ps(words, at) == 50
    words[ring] = 1
    assert team.next_ps(words, at) == 40
    words[at + s.MAIL_PS] = 30
    assert team.next_ps(words, at) == 30


@given(
    times=st.lists(st.integers(0, 99) | st.just(FOREVER_PS), min_size=3, max_size=3),
    reasons=st.lists(st.sampled_from((0, 0, NEEDS_ROOM, REPORTED)), min_size=3, max_size=3),
    until_ps=st.integers(0, 99),
    half=st.integers(0, 1),
)
def test_all_agree_on_the_window_of_the_first_event(
    times: list[int], reasons: list[int], until_ps: int, half: int
) -> None:
    """It ends with the grid's, or behind the last time wanted; nobody goes on if one has stopped.

    What was announced for the other half of windows does not count.
    """
    met = AGREED
    for region, (block, time_ps, reason) in enumerate(zip(met.blocks, times, reasons, strict=True)):
        met.words[block + s.MAIL_PS], met.words[block + s.HALF] = time_ps, half
        team.announce(met.words, block, reason)
        met.words[block + s.MAIL_PS], met.words[block + s.HALF] = region, 1 - half
        team.announce(met.words, block, 7 + region)
    first_ps = min(times)
    if any(reasons):
        expected = -max(reasons)
    elif first_ps == FOREVER_PS:
        expected = -EMPTY
    elif first_ps > until_ps:
        expected = -UNTIL
    else:
        expected = min(first_ps - first_ps % GRID_PS + GRID_PS, until_ps + 1)
    assert {team.agree(met.words, block, half, until_ps) for block in met.blocks} == {expected}


AGREED = Team(3)


def test_a_window_begins_with_the_mail_of_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the half that is over; the box is empty then, and the other half is written."""
    met = Team(3)
    words, at = met.words, met.blocks[1]
    came: list[tuple[int, int]] = []
    monkeypatch.setattr(
        team, "join_line", lambda _, to, time_ps, word: came.append((int(time_ps), int(word)))
    )
    boxes = {}
    for region in range(3):
        for half in range(2):
            box = boxes[region, half] = s.box_of(words, met.blocks[region], 1, half)
            words[box] = 2
            numbers = 100 * region + 10 * half + np.arange(4)
            words[box + s.BOX_HEADER : box + s.BOX_HEADER + 4] = numbers
    for block in met.blocks:
        words[block + s.MAIL_PS] = 35
        team.announce(words, block, 0)
    assert team.start_window(words, at, 0, 99) == 40
    assert came == [(0, 1), (2, 3), (200, 201), (202, 203)]
    assert [int(words[box]) for box in boxes.values()] == [0, 2, 2, 2, 0, 2]
    assert (words[at + s.HALF], words[at + s.MAIL_PS]) == (1, FOREVER_PS)
    team.start_window(words, at, 1, 99)
    assert words[at + s.HALF] == 0
    assert came[4:] == [(10, 11), (12, 13), (210, 211), (212, 213)]


@pytest.mark.parametrize(
    ("ends", "done", "expected"),
    [
        ([UNTIL], 0, 0),
        ([EMPTY], 0, 0),
        ([REPORTED, REPORTED, UNTIL], 0, 0),
        ([REPORTED, UNTIL], 1, REPORTED),
        ([EMPTY], 1, REPORTED),
        ([NEEDS_ROOM], 1, NEEDS_ROOM),
    ],
)
def test_a_window_is_gone_through_whatever_is_reported(
    ends: list[int], done: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = Team()
    driver = met.store.allocate("words", d.DRIVER_WORDS)
    met.words[driver + d.FIRST_DONE] = done
    met.words[met.blocks[0] + s.DRIVER] = driver
    asked: list[int] = []

    def run(_arena: Arena, _at: int, until_ps: int) -> int:
        asked.append(until_ps)
        return ends.pop(0)

    monkeypatch.setattr(team, "run", run)
    assert team.run_window(met.store.arena, met.blocks[0], 40) == expected
    assert set(asked) == {39}
    assert ends == []


def test_without_a_driver_a_window_reports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    met = Team()
    met.words[d.FIRST_DONE] = 1  # where a driver's block would be, were it at 0
    monkeypatch.setattr(team, "run", lambda *_: UNTIL)
    assert team.run_window(met.store.arena, met.blocks[0], 40) == 0


@pytest.mark.parametrize("more", [0, 1])
def test_a_window_needs_room_for_the_mail_of_two(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that two others leave in two windows, beside what one event may lead to."""
    met = Team(3)
    words, at = met.words, met.blocks[0]
    heap = int(words[at + s.HEAP_AT])
    words[heap + CAPACITY] = 2 * 2 * s.BOX_ROWS + EVENTS_AT_ONCE + 5
    words[heap + COUNT] = 5 + more
    monkeypatch.setattr(team, "run", lambda *_: UNTIL)
    assert lacks_room_for_mail(words, at) == (more > 0)
    assert team.run_window(met.store.arena, at, 40) == (NEEDS_ROOM if more else 0)
    words[at + s.TEAM] = 0
    assert not lacks_room_for_mail(words, at)


@pytest.mark.parametrize(("reason", "is_met"), [(UNTIL, True), (REPORTED, True), (0, False)])
def test_a_thread_goes_from_window_to_window(
    reason: int, is_met: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It announces why it has stopped, meets the others, and ends with them; 0 is an end, too."""
    met = Team()
    at = met.blocks[1]
    met.words[at + s.HALF] = 1
    did: list[tuple[object, ...]] = []
    ends, reasons = [20, 0, -reason], [0, 3]

    def start(_words: Words, _at: int, half: int, until_ps: int) -> int:
        did.append(("start", half, until_ps))
        return ends.pop(0)

    def run(_arena: Arena, _at: int, end_ps: int) -> int:
        did.append(("run", end_ps))
        return reasons.pop(0)

    def meet(_words: Words, _at: int) -> bool:
        did.append(("meet",))
        return is_met or len(did) < 4

    monkeypatch.setattr(team, "announce", lambda _, __, told: did.append(("tell", told)))
    monkeypatch.setattr(team, "meet", meet)
    monkeypatch.setattr(team, "start_window", start)
    monkeypatch.setattr(team, "run_window", run)
    found = run_region(met.store.arena, at, 77)
    window = [("meet",), ("start", 1, 77)]
    if not is_met:
        assert found == team.ABORTED
        assert did == [("tell", 0), *window, ("run", 20), ("tell", 0), ("meet",)]
        return
    assert found == reason
    assert did == [
        ("tell", 0), *window, ("run", 20), ("tell", 0), *window, ("run", 0), ("tell", 3), *window,
    ]  # fmt: skip
