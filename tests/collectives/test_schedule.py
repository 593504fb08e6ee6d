"""What a schedule is: chunks, messages, checks."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_strategies import nonsense, schedules

from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.schedule import (
    Aggregate,
    Collective,
    Message,
    Op,
    Row,
    Schedule,
    Transfer,
    check,
    chunk_ranges,
    messages,
    owner,
    rows_by_chunk,
)
from ringleaf.errors import ScheduleError


@given(st.integers(0, 500), st.integers(1, 100))
def test_chunks_cover_the_tensor_evenly(elements: int, chunks: int) -> None:
    ranges = chunk_ranges(elements, chunks)
    assert list(chain.from_iterable(range(*ends) for ends in ranges)) == list(range(elements))
    sizes = {stop - start for start, stop in ranges}
    assert len(ranges) == chunks
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(0, 500), st.integers(1, 5), st.integers(1, 20))
def test_blocks_of_chunks_are_even_too(elements: int, blocks: int, chunks: int) -> None:
    ranges = chunk_ranges(elements, blocks * chunks)
    starts = [ranges[block * chunks][0] for block in range(blocks)]
    assert starts == [start for start, _ in chunk_ranges(elements, blocks)]


def test_impossible_chunks_are_refused() -> None:
    with pytest.raises(ScheduleError, match="chunk_ranges: elements must be >= 0, got -1"):
        chunk_ranges(-1, 3)
    with pytest.raises(ScheduleError, match="chunk_ranges: chunks must be >= 1, got 0"):
        chunk_ranges(3, 0)


def test_a_schedule_says_what_it_is() -> None:
    ring = ring_allreduce(3)
    assert str(ring) == "ring allreduce: 3 ranks, 3 chunks, 12 rows in 4 steps"
    assert ring.steps == 4
    assert ring_allreduce(1).steps == 0


def test_chunks_are_dealt_in_blocks() -> None:
    schedule = Schedule(Collective.ALL_GATHER, "by hand", 3, 6, ())
    assert [owner(schedule, chunk) for chunk in range(6)] == [0, 0, 1, 1, 2, 2]


def test_neighbouring_chunks_travel_together() -> None:
    rows: list[Row] = [
        Transfer(0, 0, 1, 0, Op.COPY),
        Transfer(0, 0, 1, 1, Op.COPY),
        Transfer(0, 0, 1, 3, Op.COPY),  # not next to the one before
        Transfer(0, 0, 1, 4, Op.REDUCE),  # another operation
        Transfer(1, 0, 1, 5, Op.REDUCE),  # another step
        Transfer(1, 0, 2, 6, Op.REDUCE),  # another destination
        Aggregate(1, (0, 1, 2), 7),
        Transfer(1, 0, 2, 7, Op.REDUCE),  # not adjacent to its like
    ]
    assert list(messages(Schedule(Collective.ALLREDUCE, "by hand", 3, 8, tuple(rows)))) == [
        Message(0, 0, 1, 0, 2, Op.COPY),
        Message(0, 0, 1, 3, 4, Op.COPY),
        Message(0, 0, 1, 4, 5, Op.REDUCE),
        Message(1, 0, 1, 5, 6, Op.REDUCE),
        Message(1, 0, 2, 6, 7, Op.REDUCE),
        rows[6],
        Message(1, 0, 2, 7, 8, Op.REDUCE),
    ]


@given(nonsense() | schedules(most=12))
def test_messages_are_the_rows_in_order(schedule: Schedule) -> None:
    rows: list[Row] = []
    for message in messages(schedule):
        if isinstance(message, Aggregate):
            rows.append(message)
            continue
        rows += (
            Transfer(message.step, message.src, message.dst, chunk, message.op, message.channel)
            for chunk in range(message.start, message.stop)
        )
    assert rows == list(schedule.rows)


def make_schedule(*rows: Row, ranks: int = 2, chunks: int = 2, root: int = 0) -> Schedule:
    return Schedule(Collective.ALLREDUCE, "by hand", ranks, chunks, rows, root)


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        (make_schedule(ranks=0), "ranks must be >= 1, got 0"),
        (make_schedule(chunks=0), "chunks must be >= 1, got 0"),
        (make_schedule(root=2), "root must be one of 2 ranks, got 2"),
        (
            make_schedule(Transfer(1, 0, 1, 0, Op.COPY), Transfer(0, 1, 0, 0, Op.COPY)),
            "row 1: step must be 1 or more, got 0",
        ),
        (make_schedule(Transfer(-1, 0, 1, 0, Op.COPY)), "row 0: step must be 0 or more, got -1"),
        (make_schedule(Transfer(0, 0, 1, 2, Op.COPY)), "row 0: chunk must be below 2, got 2"),
        (make_schedule(Transfer(0, 1, 1, 0, Op.COPY)), r"row 0: ranks must differ, got \(1, 1\)"),
        (make_schedule(Transfer(0, 0, 2, 0, Op.COPY)), r"row 0: ranks must be below 2, got \(0, 2"),
        (make_schedule(Aggregate(0, (0, 1, 0), 0)), r"row 0: ranks must differ, got \(0, 1, 0\)"),
        (make_schedule(Aggregate(0, (), 0)), r"row 0: there must be ranks, got \(\)"),
    ],
)
def test_rows_that_make_no_sense_are_refused(schedule: Schedule, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=f"by hand allreduce: {complaint}"):
        check(schedule)


@given(nonsense())
def test_chunks_share_out_the_rows(schedule: Schedule) -> None:
    parts = rows_by_chunk(schedule)
    assert {row.chunk for row in schedule.rows} == {i for i, part in enumerate(parts) if part}
    assert sorted(chain.from_iterable(parts), key=lambda part: part[0]) == list(
        enumerate(schedule.rows)
    )
