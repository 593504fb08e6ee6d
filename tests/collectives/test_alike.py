"""Chunks are alike where one proof holds for all: the outcome is as if each were proved alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_strategies import schedules

from ringleaf.collectives import verify as verify_module
from ringleaf.collectives.algorithms.ring import ring_all_gather
from ringleaf.collectives.chunk_symmetry import alike
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Op, Row, Schedule, Transfer
from ringleaf.collectives.verify import Proof, verify
from ringleaf.errors import ScheduleError


def each_alone(schedule: Schedule) -> Iterator[list[int]]:
    for chunk in range(schedule.chunks):
        yield [chunk]


def outcome(schedule: Schedule) -> Proof | str:
    try:
        return verify(schedule, repeats=True)
    except ScheduleError as error:
        return str(error)


def classes(schedule: Schedule) -> list[list[int]]:
    return list(alike(schedule))


@given(schedules(least=2, most=12, most_bytes=50_000), st.data())
def test_the_outcome_is_as_if_each_chunk_were_proved_alone(
    schedule: Schedule, data: st.DataObject
) -> None:
    """Also where some rows are left out, doubled or changed, so that some chunks are not alike."""
    rows: list[Row] = list(schedule.rows)
    for _ in range(data.draw(st.integers(0, 2))):
        if rows:
            place = data.draw(st.integers(0, len(rows) - 1))
            row = rows[place]
            changed: list[list[Row]] = [[], [row, row]]
            if isinstance(row, Transfer):
                other = data.draw(st.integers(0, schedule.ranks - 1))
                changed.append([replace(row, op=Op.COPY if row.op is Op.REDUCE else Op.REDUCE)])
                changed += [[replace(row, src=other)]] if other != row.dst else []
            rows[place : place + 1] = data.draw(st.sampled_from(changed))
    schedule = replace(schedule, rows=tuple(rows))
    found = outcome(schedule)
    with patch.object(verify_module, "alike", each_alone):
        assert found == outcome(schedule)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("ring", 7), ("allgather", 7), ("reducescatter", 7), ("biring", 5)],
)
def test_regular_schedules_have_one_kind_of_chunk(name: str, ranks: int) -> None:
    schedule = ALGORITHMS[name].build(ranks, size_bytes=1 << 20)
    kinds = classes(schedule)
    assert kinds[0][0] == 0
    assert sorted(chain.from_iterable(kinds)) == list(range(schedule.chunks))
    assert len(kinds) <= 2  # a bidirectional ring's chunks go round either way


def test_a_chunk_without_a_row_of_the_others_is_not_alike() -> None:
    schedule = ring_all_gather(4)
    rows = list(schedule.rows)
    missing = next(place for place, row in enumerate(rows) if row.chunk == 2)
    del rows[missing]
    assert classes(replace(schedule, rows=tuple(rows))) == [[0, 1, 3], [2]]


def test_chunks_with_other_demands_are_not_alike() -> None:
    """Chunk 1 of an all-gather is rank 1's; rows that send rank 0's for it are wrong."""
    rows = tuple(Transfer(0, 0, 1, chunk, Op.COPY) for chunk in range(2))
    schedule = replace(ring_all_gather(2), rows=rows)
    assert classes(schedule) == [[0], [1]]
    with pytest.raises(ScheduleError, match="rank 0, chunk 1: lacks the contribution of rank 1"):
        verify(schedule)
