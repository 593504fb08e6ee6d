"""Rows as columns: the same rows, whether they are looked at one by one or as arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from schedule_strategies import nonsense, schedules

from ringleaf.collectives.rows import AGGREGATE, COPY, REDUCE, ChunkRows, Columns
from ringleaf.collectives.schedule import Aggregate, Op, Row, Schedule, Transfer

any_schedule = nonsense() | schedules(most=12)


def test_a_place_for_each_message() -> None:
    rows: list[Row] = [
        Transfer(0, 0, 1, 2, Op.REDUCE),
        Transfer(0, 0, 1, 3, Op.REDUCE),
        Transfer(0, 1, 0, 4, Op.REDUCE),
        Aggregate(1, (0, 1, 2), 5),
        Transfer(2, 2, 0, 5, Op.COPY),
    ]

    columns = ChunkRows(Columns.of(rows)).columns

    assert columns.step.tolist() == [0, 0, 1, 2]
    assert columns.src.tolist() == [0, 1, 0, 2]  # of the aggregation: its group
    assert columns.dst.tolist() == [1, 0, -1, 0]
    assert columns.start.tolist() == [2, 4, 5, 5]
    assert columns.stop.tolist() == [4, 5, 6, 6]
    assert columns.op.tolist() == [REDUCE, REDUCE, AGGREGATE, COPY]
    assert columns.groups == ((0, 1, 2),)


def test_transfers_are_in_the_order_of_arrays() -> None:
    step, src = np.ogrid[:2, :3]
    columns = Columns.transfers(step, src, (src + 1) % 3, 4, Op.COPY, size=2)

    assert list(ChunkRows(columns)) == [
        Transfer(step, src, dst, chunk, Op.COPY)
        for step in (0, 1)
        for src, dst in ((0, 1), (1, 2), (2, 0))
        for chunk in (4, 5)
    ]


@given(any_schedule)
def test_rows_are_those_that_were_given(schedule: Schedule) -> None:
    rows = tuple(schedule.rows)

    assert len(schedule.rows) == len(rows)
    assert tuple(ChunkRows(Columns.of(rows))) == rows
    assert ChunkRows(Columns.of(rows)) == schedule.rows
    assert len(schedule.columns.by_chunk()) == len(rows)


@given(any_schedule, st.data())
def test_a_row_is_found_by_number(schedule: Schedule, data: st.DataObject) -> None:
    rows, least = tuple(schedule.rows), -len(schedule.rows)
    if rows:
        number = data.draw(st.integers(least, len(rows) - 1))
        assert schedule.rows[number] == rows[number]
    start, stop = (
        data.draw(st.integers(least, 2 * -least)),
        data.draw(st.none() | st.integers(0, 9)),
    )
    assert schedule.rows[start:stop] == rows[start:stop]


@given(any_schedule)
def test_sorting_by_step_keeps_the_order_within_one(schedule: Schedule) -> None:
    backwards = schedule.columns.take(np.arange(len(schedule.columns))[::-1])

    again = list(backwards.in_steps().messages())

    wanted = reversed(list(schedule.columns.messages()))
    assert again == sorted(wanted, key=lambda each: each.step)


@given(any_schedule)
def test_equal_rows_are_equal_wherever_their_columns_come_from(schedule: Schedule) -> None:
    """Some of a schedule's messages refer to some of its groups only."""
    places = np.arange(len(schedule.columns))[1::2]
    some = ChunkRows(schedule.columns.take(places))

    assert some == ChunkRows(Columns.of(tuple(some)))
    assert len(some.columns.groups) == sum(isinstance(row, Aggregate) for row in some)


@given(any_schedule, any_schedule)
def test_other_rows_are_not_equal(one: Schedule, other: Schedule) -> None:
    assert (one.rows == other.rows) == (tuple(one.rows) == tuple(other.rows))
    assert one.rows != tuple(one.rows)
    if one.rows == other.rows:
        assert hash(one.rows) == hash(other.rows)
