"""Rows of which one of each step is kept are those of the schedule, however they are looked at."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from circulant_schedules import circulants
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.algorithms.ring import (
    ring_all_gather,
    ring_allreduce,
    ring_reduce_scatter,
)
from ringleaf.collectives.circulant import CirculantRows
from ringleaf.collectives.definition import demands, find_faults, turns
from ringleaf.collectives.rows import ChunkRows, Columns
from ringleaf.collectives.schedule import Collective, Message, Op, Schedule, Transfer, check
from ringleaf.collectives.verify import verify
from ringleaf.errors import ScheduleError
from ringleaf.hosts.plan import Plans, plans

Ring = Callable[[int], Schedule]

RINGS = (ring_allreduce, ring_reduce_scatter, ring_all_gather)


def same(one: Columns, other: Columns) -> bool:
    return all(map(np.array_equal, one.arrays, other.arrays))


def kept(schedule: Schedule) -> Schedule:
    """The same schedule, whose rows are all there."""
    return replace(schedule, rows=ChunkRows(schedule.columns))


@given(circulants())
def test_rows_by_number_by_chunk_and_by_rank_are_the_same(schedule: Schedule) -> None:
    check(schedule)
    whole, ranks, made = ChunkRows(schedule.columns), schedule.ranks, schedule.circulant
    assert made is not None
    assert (len(made), made.steps, made.messages) == (len(whole), whole.steps, whole.messages)
    assert list(made) == list(whole)
    first = list(made.first.messages())
    for number, row in enumerate(whole):
        of = first[number // ranks]
        assert isinstance(of, Message)
        src, dst, chunk = ((each + number) % ranks for each in (of.src, of.dst, of.start))
        assert row == Transfer(of.step, src, dst, chunk, of.op)
    later = made.of_steps(made.steps // 2, made.steps)
    steps = whole.columns.step - made.steps // 2
    assert same(later.columns, replace(whole.columns, step=steps).take(steps >= 0))
    for each in range(ranks):
        (numbers, rows), (wanted, known) = made.of_chunk(each), whole.of_chunk(each)
        assert np.array_equal(numbers, wanted)
        assert same(rows, known)
        numbers, rows = made.of_rank(each)
        ends = (whole.columns.src, whole.columns.dst)
        assert numbers.tolist() == np.flatnonzero((ends[0] == each) | (ends[1] == each)).tolist()
        assert same(rows, whole.columns.take(numbers))


@given(circulants())
def test_faults_and_proofs_are_those_of_all_rows(schedule: Schedule) -> None:
    found, wanted = (find_faults(each, schedule.collective) for each in (schedule, kept(schedule)))
    assert np.array_equal(found.cells, wanted.cells)
    assert found.first == wanted.first
    assert outcome(schedule) == outcome(kept(schedule))


def outcome(schedule: Schedule) -> object:
    try:
        return verify(schedule, repeats=True)
    except ScheduleError as error:
        return str(error)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_demands_that_turn(ranks: int) -> None:
    """A root's do not; with one rank there is nothing to turn to."""
    rooted = (Collective.REDUCE, Collective.BROADCAST)
    for collective in Collective:
        wanted = demands(collective, ranks, ranks)
        steady = collective not in (*rooted, Collective.ALL_TO_ALL)
        assert turns(wanted) == (steady or ranks == 1), collective
    assert not turns(demands(Collective.ALLREDUCE, 3, 6))


def parts_of(made: Plans, node: int) -> list[tuple[object, ...]]:
    """A node's parts, stream by stream, with what they wait for."""
    streams, found, chunks = made.streams, [], made.chunks
    turn = node if made.is_turned else 0
    for stream in np.flatnonzero(streams.node == node).tolist():
        ends = (streams.kind, streams.peer, streams.op, streams.channel)
        for part in range(streams.first[stream], streams.end[stream]):
            message, counts = int(made.message[part]), 1 if made.reads[part] else 2
            after = made.after[made.after_at[part] :][:counts]
            found.append((
                *(int(each[stream]) for each in ends),
                message - message % chunks + (message + turn) % chunks,
                (int(made.start[part]) + turn) % chunks,
                bool(made.staged[part]),
                *after.tolist(),
            ))  # fmt: skip
    return found


@given(circulants(), st.integers(0, 3))
def test_a_node_s_parts_are_the_first_one_s_turned(schedule: Schedule, more: int) -> None:
    turned = plans(schedule, schedule.ranks + more)
    whole = plans(kept(schedule), schedule.ranks + more)
    assert (turned.is_turned, whole.is_turned) == (True, False)
    assert turned.count == whole.count
    assert turned.counts(~turned.reads).tolist() == whole.counts(~whole.reads).tolist()
    assert turned.ends == whole.ends
    for node in range(schedule.ranks):
        assert parts_of(turned, node) == parts_of(whole, node)


def test_parts_are_not_turned_where_some_chunks_are_empty() -> None:
    assert not plans(ring_allreduce(5), 4).is_turned


def test_a_ring_of_three_is_as_in_the_paper() -> None:
    """Each rank passes on what it got, to the next one (Patarasuk and Yuan, figure 2)."""
    reduces = [(0, 0), (1, 1), (2, 2), (0, 2), (1, 0), (2, 1)]
    copies = [(0, 1), (1, 2), (2, 0), (0, 0), (1, 1), (2, 2)]
    rows = [
        Transfer(number // 3, src, (src + 1) % 3, chunk, Op.REDUCE if number < 6 else Op.COPY)
        for number, (src, chunk) in enumerate(reduces + copies)
    ]
    assert list(ring_allreduce(3).rows) == rows


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 64])
def test_rings_are_right(ring: Ring, ranks: int) -> None:
    schedule = ring(ranks)
    assert verify(schedule) == verify(kept(schedule))


def columns_kept(schedule: Schedule) -> bool:
    return "columns" in vars(schedule.as_rows)


def test_proof_and_plans_keep_no_more_than_a_rank_s_rows() -> None:
    schedule = ring_allreduce(300)
    verify(schedule)
    find_faults(schedule, Collective.ALLREDUCE)
    assert len(plans(schedule, 300).message) == 2 * 2 * 299
    assert not columns_kept(schedule)
    assert len(schedule.columns) == 2 * 299 * 300
    assert columns_kept(schedule)
    assert not columns_kept(pickle.loads(pickle.dumps(schedule)))


def test_equal_schedules_have_equal_rows_however_they_are_kept() -> None:
    schedule = ring_allreduce(5)
    assert schedule == replace(schedule, rows=tuple(schedule.rows))
    assert schedule != replace(schedule, rows=tuple(schedule.rows)[:-1])


def test_rows_of_another_number_of_ranks_are_refused() -> None:
    with pytest.raises(ScheduleError, match=r"row 2: ranks must be below 3, got \(2, 3\)"):
        check(replace(ring_all_gather(4), ranks=3, chunks=3))
    none = np.arange(1)
    to_itself = CirculantRows(Columns(none, none, none, none, none + 1, none, none), 4)
    with pytest.raises(ScheduleError, match=r"row 0: ranks must differ, got \(0, 0\)"):
        check(replace(ring_all_gather(4), rows=to_itself))
