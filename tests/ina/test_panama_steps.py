"""PANAMA's windows a step at a time: who goes first, who has room, and when a round trip is over.

Six slots are dealt to two trees: 0, 2 and 4, and 1, 3 and 5. All runs as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ringleaf.core.arena import Arena, Store
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import make_ring
from ringleaf.ina import flight
from ringleaf.ina.congestion import (
    GROWTH,
    MARKED,
    MOST_WINDOW,
    ON_ROUND,
    RESULTS,
    WINDOW,
    Window,
)
from ringleaf.ina.panama import pacing as p
from ringleaf.ina.switchml import state as s

Address = Callable[[Callable[[Arena, int, int, int], int]], int]


class Paced:
    """A worker with windows of at most three packets."""

    def __init__(self, slots: int = 6, lanes: int = 64) -> None:
        self.store = Store()
        self.at = s.make_worker(
            self.store, host=0, ring=make_ring(self.store, 8), job=1, workers=2, slots=slots,
            lanes=lanes, mac=1, address=2, min_timeout_ps=1000, trees=2,
        )  # fmt: skip
        self.store.allocate("words", 500)
        p.make_paces(self.store, self.at, Window("still"))
        self.worker = s.open_worker(self.store.arena, self.at)
        self.paces = p.open_paces(self.store.arena, self.worker)

    def tree(self, tree: int, *columns: int) -> list[int]:
        row = tree * p.TREE_WORDS
        return [int(self.paces.trees[row + column]) for column in columns]

    def set(self, tree: int, column: int, value: int) -> None:
        self.paces.trees[tree * p.TREE_WORDS + column] = value

    def put(self, slot: int, tensor: int, position: int) -> None:
        """Give a slot a block."""
        self.worker.slots[slot * s.SLOT_WORDS + s.TENSOR] = tensor
        self.worker.slots[slot * s.SLOT_WORDS + s.POSITION] = position

    def strays(self) -> list[int]:
        rows = self.worker.flight.slots.reshape(-1, flight.SLOT_WORDS)
        return [int(each) for each in rows[:6, flight.STRAYS]]

    def drain(self) -> list[int]:
        """Take the slots that may go."""
        found = []
        while flight.has_waiting(self.worker.flight):
            found.append(int(flight.pop_slot(self.worker.flight)))
        return found


@pytest.mark.parametrize(
    ("slots", "lanes", "most", "growth"), [(6, 24, 3, 10), (8, 256, 4, 1), (2, 64, 1, 4)]
)
def test_each_tree_begins_with_half_of_its_slots(
    slots: int, lanes: int, most: int, growth: int
) -> None:
    """A segment of TCP is ten packets of 52 + 96 bytes, and hardly one of 52 + 1,024."""
    paced = Paced(slots, lanes)
    columns = WINDOW, MOST_WINDOW, GROWTH, p.LEFT, p.IN_FLIGHT, p.HELD, p.LATEST_READY
    window = max(most // 2, 1)
    for tree in range(2):
        assert paced.tree(tree, *columns) == [window, most, growth, window, 0, 0, 0]
    assert paced.paces.slots.tolist() == [p.FREE] * slots
    assert paced.worker.state[s.EXTRAS_AT] == paced.paces.at
    after = paced.store.allocate("words", 1)
    assert after >= paced.paces.at + 2 * p.TREE_WORDS + slots


def test_places_count_blocks_through_all_tensors() -> None:
    paced = Paced()
    assert p.place_of(paced.worker, 1) == FOREVER_PS
    paced.put(1, 2, -5)  # the exponent of block 1
    assert p.place_of(paced.worker, 1) == (2 << 40) + 1
    paced.put(1, 2, 3)
    assert p.place_of(paced.worker, 1) == (2 << 40) + 9


def test_the_earliest_of_a_tree_is_found_by_state() -> None:
    paced = Paced()
    for slot, tensor, position in ((0, 0, 8), (1, 0, 1), (2, 0, 2), (3, 1, -3), (4, 0, 4)):
        paced.put(slot, tensor, position)
    paced.paces.slots[:] = [p.WAITS, p.WAITS, p.WAITS, p.ADMITTED, p.ADMITTED, p.WAITS]
    found = {
        (tree, state): p.earliest(paced.worker, paced.paces, tree, state)
        for tree in range(2)
        for state in (p.WAITS, p.ADMITTED, p.FREE)
    }
    assert found == {
        (0, p.WAITS): 2, (0, p.ADMITTED): 4, (0, p.FREE): -1,
        (1, p.WAITS): 1, (1, p.ADMITTED): 3, (1, p.FREE): -1,
    }  # fmt: skip
    paced.paces.slots[1] = p.FREE
    assert p.earliest(paced.worker, paced.paces, 1, p.WAITS) == -1  # slot 5 has no block


@pytest.mark.parametrize(
    ("in_flight", "state", "position", "has_room"),
    [
        (1, p.ADMITTED, 9, True),
        (2, p.FREE, 9, True),  # none is under way that could be earlier
        (2, p.ADMITTED, 9, False),
        (2, p.ADMITTED, 5, False),
        (2, p.ADMITTED, 3, True),  # the earliest of all goes in any case
    ],
)
def test_room_by_hand(in_flight: int, state: int, position: int, has_room: bool) -> None:
    """Tree 1 has a window of two; slot 3 has block 5."""
    paced = Paced()
    paced.set(1, WINDOW, 2)
    paced.set(1, p.IN_FLIGHT, in_flight)
    paced.put(3, 0, 5)
    paced.put(1, 0, position)
    paced.paces.slots[3] = state
    assert p.has_room(paced.worker, paced.paces, 1, 1) == has_room


def test_slots_go_in_the_order_of_blocks_as_long_as_there_is_room() -> None:
    """Tree 0 has a window of one: the first goes, a later one waits, an earlier one goes, too."""
    paced = Paced()
    for slot, position in ((0, 6), (2, 8), (4, 4)):
        paced.put(slot, 0, position)
    columns = p.IN_FLIGHT, p.HELD, p.LATEST_READY
    p.hold(paced.worker, paced.paces, 0)
    assert (paced.drain(), paced.tree(0, *columns)) == ([0], [1, 0, 12])
    p.hold(paced.worker, paced.paces, 2)
    assert (paced.drain(), paced.tree(0, *columns)) == ([], [1, 1, 14])
    p.hold(paced.worker, paced.paces, 4)
    assert (paced.drain(), paced.tree(0, *columns)) == ([4], [2, 1, 14])
    assert paced.paces.slots.tolist() == [p.ADMITTED, 0, p.WAITS, 0, p.ADMITTED, 0]
    assert paced.strays() == [0, 0, 0, 0, 1, 0]  # another worker may send it behind block 8
    assert paced.tree(1, *columns) == [0, 0, 0]
    paced.set(0, WINDOW, 3)
    p.admit(paced.worker, paced.paces, 0)
    assert (paced.drain(), paced.tree(0, *columns)) == ([2], [3, 0, 14])
    p.hold(paced.worker, paced.paces, 2)
    assert paced.strays() == [0, 0, 0, 0, 1, 0]  # as late as the latest is not before it


def test_a_block_waits_in_its_own_tree_alone() -> None:
    paced = Paced()
    for slot in (1, 3, 5):
        paced.put(slot, 0, slot)
        p.hold(paced.worker, paced.paces, slot)
    assert (paced.drain(), paced.tree(1, p.IN_FLIGHT, p.HELD)) == ([1], [1, 2])
    paced.set(1, p.IN_FLIGHT, 0)
    paced.set(1, WINDOW, 2)
    p.admit(paced.worker, paced.paces, 1)
    assert (paced.drain(), paced.tree(1, p.IN_FLIGHT, p.HELD)) == ([3, 5], [2, 0])


def test_a_worker_looks_for_slots_only_while_some_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paced = Paced()
    looked: list[tuple[int, int]] = []

    def earliest(_worker: object, _paces: object, tree: int, state: int) -> int:
        looked.append((tree, state))
        return -1

    monkeypatch.setattr(p, "earliest", earliest)
    for tree in range(2):
        p.admit(paced.worker, paced.paces, tree)
    assert looked == []
    paced.set(1, p.HELD, 1)
    p.admit(paced.worker, paced.paces, 1)
    assert (looked, paced.tree(1, p.IN_FLIGHT, p.HELD)) == ([(1, p.WAITS)], [0, 1])


def test_a_round_trip_ends_with_as_many_results_as_packets_were_under_way(
    plain_address: Address,
) -> None:
    """Tree 1 awaits three results, of which two are marked; two more packets are under way then."""
    told = []

    def on_round(arena: Arena, at: int, results: int, now_ps: int) -> int:
        told.append((at, results, int(arena.words[at + MARKED]), now_ps))
        return 0

    paced = Paced()
    paced.set(1, ON_ROUND, plain_address(on_round))
    for column, value in ((p.LEFT, 3), (p.IN_FLIGHT, 5), (WINDOW, 3)):
        paced.set(1, column, value)
    paced.paces.slots[:] = p.ADMITTED
    columns = RESULTS, MARKED, p.LEFT, p.IN_FLIGHT
    arena, at = paced.store.arena, paced.paces.at + p.TREE_WORDS
    for slot, marked, now_ps, after in (
        (1, True, 10, [1, 1, 2, 4]),
        (3, False, 20, [2, 1, 1, 3]),
        (5, True, 30, [0, 0, 2, 2]),
    ):
        assert told == []
        p.note_result(arena, paced.worker, paced.paces, slot, marked, now_ps)
        assert paced.paces.slots[slot] == p.FREE
        assert paced.tree(1, *columns) == after
    assert told == [(at, 3, 2, 30)]
    for now_ps in (40, 50):
        p.note_result(arena, paced.worker, paced.paces, 1, False, now_ps)
    assert told[1:] == [(at, 2, 0, 50)]
    assert paced.tree(1, *columns) == [0, 0, 1, 0]  # none is under way: the next result ends it
    assert paced.tree(0, *columns) == [0, 0, 1, 0]
    assert paced.paces.slots.tolist()[::2] == [p.ADMITTED] * 3
