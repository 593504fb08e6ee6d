"""Rows that follow a rule are those of the schedule, whichever way they are looked at."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ringleaf.collectives import rules
from ringleaf.collectives.ring import ring_all_gather, ring_allreduce, ring_reduce_scatter
from ringleaf.collectives.rows import Columns, Rows
from ringleaf.collectives.rules import RuledRows
from ringleaf.collectives.schedule import Op, Schedule, Transfer, check
from ringleaf.collectives.verify import verify
from ringleaf.errors import ScheduleError

Ring = Callable[[int], Schedule]

RINGS = (ring_allreduce, ring_reduce_scatter, ring_all_gather)


def same(one: Columns, other: Columns) -> bool:
    return all(map(np.array_equal, one.arrays, other.arrays))


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("ranks", [*range(1, 10), 64])
def test_rows_by_number_by_chunk_and_in_pieces_are_the_same(ring: Ring, ranks: int) -> None:
    schedule = ring(ranks)
    kept, ruled = Rows(schedule.columns), schedule.as_rows
    assert isinstance(ruled, RuledRows)
    assert (len(ruled), ruled.steps) == (len(kept), kept.steps)
    assert list(ruled) == list(kept)
    assert same(Columns.joined(ruled.pieces()), kept.columns)
    for chunk in range(ranks):
        (numbers, rows), (wanted, known) = ruled.of_chunk(chunk), kept.of_chunk(chunk)
        assert np.array_equal(numbers, wanted)
        assert same(rows, known)


def test_a_ring_of_three_is_as_in_the_paper() -> None:
    """Each rank passes on what it got, to the next one (Patarasuk and Yuan, figure 2)."""
    reduces = [(0, 0), (1, 1), (2, 2), (0, 2), (1, 0), (2, 1)]
    copies = [(0, 1), (1, 2), (2, 0), (0, 0), (1, 1), (2, 2)]
    rows = [
        Transfer(number // 3, src, (src + 1) % 3, chunk, Op.REDUCE if number < 6 else Op.COPY)
        for number, (src, chunk) in enumerate(reduces + copies)
    ]
    assert list(ring_allreduce(3).rows) == rows


def columns_kept(schedule: Schedule) -> bool:
    return "columns" in vars(schedule.as_rows)


def test_a_proof_keeps_no_more_than_a_chunk_s_rows() -> None:
    schedule = ring_allreduce(300)
    verify(schedule)
    assert not columns_kept(schedule)
    assert len(schedule.columns) == 2 * 299 * 300
    assert columns_kept(schedule)
    assert not columns_kept(pickle.loads(pickle.dumps(schedule)))


def test_equal_schedules_have_equal_rows_however_they_are_kept() -> None:
    schedule = ring_allreduce(5)
    assert schedule == replace(schedule, rows=tuple(schedule.rows))
    assert schedule != replace(schedule, rows=tuple(schedule.rows)[:-1])


class Sloppy:
    """A ring's rule, with one thing changed."""

    def __init__(self, *, at_step: int = -1, of_chunk: int = -1) -> None:
        self._right = ring_all_gather(4)
        self._at_step, self._of_chunk = at_step, of_chunk
        self.count, self.steps = len(self._right.rows), self._right.steps

    def at(self, numbers: np.ndarray) -> Columns:
        rows = self._right.columns.take(numbers)
        return replace(rows, step=np.where(rows.step == self._at_step, 0, rows.step))

    def of_chunk(self, chunk: int) -> np.ndarray:
        numbers, _ = self._right.as_rows.of_chunk(chunk)
        return numbers[1:] if chunk == self._of_chunk else numbers


@pytest.mark.parametrize("piece", [4, 5, 100])
def test_a_rule_is_not_trusted(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step has four rows, and so may a piece have."""
    monkeypatch.setattr(rules, "_PIECE", piece)
    right = ring_all_gather(4)
    verify(replace(right, rows=RuledRows(Sloppy())))
    with pytest.raises(ScheduleError, match="row 8: step must be 1 or more, got 0"):
        check(replace(right, rows=RuledRows(Sloppy(at_step=2))))
    with pytest.raises(AssertionError, match="each row must belong to a chunk"):
        verify(replace(right, rows=RuledRows(Sloppy(of_chunk=1))))
