"""The verifier accepts every algorithm, and nothing that differs from one in a row."""

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from schedule_strategies import schedules

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.alltoall import pairwise_all_to_all
from ringleaf.collectives.algorithms.blueconnect import blueconnect_allreduce
from ringleaf.collectives.algorithms.ring import ring_all_gather, ring_allreduce
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Aggregate, Collective, Op, Row, Schedule, Transfer
from ringleaf.collectives.verify import Proof, demanded, verify
from ringleaf.errors import ScheduleError


def make_schedule(
    collective: Collective, *rows: Row, ranks: int = 3, chunks: int = 1, root: int = 0
) -> Schedule:
    return Schedule(collective, "by hand", ranks, chunks, rows, root)


def transfers(schedule: Schedule) -> list[Transfer]:
    return [row for row in schedule.rows if isinstance(row, Transfer)]


@given(schedules())
def test_drawn_algorithms_are_right_and_free_of_waits(schedule: Schedule) -> None:
    check_proof(schedule)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_is_right_and_free_of_waits(name: str) -> None:
    """For which draws from all of them are too few."""
    check_proof(ALGORITHMS[name].build(6, size_bytes=1000))


def check_proof(schedule: Schedule) -> None:
    proof = verify(schedule)
    assert proof.identical
    if schedule.collective is Collective.ALL_TO_ALL:  # scratch memory is free at first
        sent = {(row.step, row.src, row.chunk) for row in transfers(schedule)}
        to_tensors = {n: r for n, r in enumerate(transfers(schedule)) if r.dst < schedule.nodes}
        assert proof.waits == tuple(to_tensors)
        at_once = [n for n, r in to_tensors.items() if (r.step, r.dst, r.chunk) in sent]
        assert proof.landings == tuple(at_once)
    elif schedule.algorithm == "ssar-double":  # both of a pair add at once
        assert proof.landings == proof.waits
    elif schedule.algorithm == "recursivedoubling":  # scratch memory keeps it for a step
        assert proof.landings == ()
    else:
        assert proof == verify(schedule, strict=True) == Proof((), (), True)


@pytest.mark.parametrize("hierarchy", [(2, 3), (2, 3, 2), (4, 1, 3)])
def test_blueconnect_is_right_on_unequal_levels(hierarchy: tuple[int, ...]) -> None:
    assert verify(blueconnect_allreduce(prod(hierarchy), hierarchy), strict=True).identical


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_rank_has_nothing_to_do(name: str) -> None:
    schedule = ALGORITHMS[name].build(1, size_bytes=100)
    assert not schedule.rows
    assert verify(schedule) == Proof((), (), True)


def swap_op(row: Transfer) -> Transfer:
    return replace(row, op=Op.COPY if row.op is Op.REDUCE else Op.REDUCE)


@given(schedules(least=2, most=12, most_bytes=50_000), st.data())
def test_a_schedule_with_a_row_changed_is_wrong(schedule: Schedule, data: st.DataObject) -> None:
    rows = schedule.rows
    number = data.draw(st.integers(0, len(rows) - 1), "row")
    row = rows[number]
    changed: dict[str, tuple[Row, ...]] = {"dropped": (), "doubled": (row, row)}
    if isinstance(row, Transfer):
        changed["swapped"] = (swap_op(row),)
    for how, replacement in changed.items():
        note(f"row {number} {how}")
        mutant = replace(schedule, rows=(*rows[:number], *replacement, *rows[number + 1 :]))
        with pytest.raises(ScheduleError, match=r"row \d+|no row|place \d+"):
            verify(mutant)


def test_what_is_lacking_is_named() -> None:
    ring = ring_allreduce(3)
    with pytest.raises(
        ScheduleError,
        match=r"^ring allreduce: rank 0, chunk 0: lacks the contribution of rank 0; "
        r"last written by row 7 \(step 2: 2 -> 0, copy chunk 0\)$",
    ):
        verify(replace(ring, rows=ring.rows[1:]))


def test_many_that_are_lacking_are_counted() -> None:
    with pytest.raises(ScheduleError, match=r"rank 1, 2, 3, 4 and 3 more; last written by no row$"):
        verify(make_schedule(Collective.ALLREDUCE, ranks=8))


def test_the_row_that_doubles_is_named() -> None:
    ring = ring_allreduce(3)
    with pytest.raises(
        ScheduleError,
        match=r"chunk 0: has rank 0's contribution twice, "
        r"since row 1 \(step 0: 0 -> 1, reduce chunk 0\)",
    ):
        verify(replace(ring, rows=(ring.rows[0], *ring.rows)))


def test_what_does_not_belong_is_named() -> None:
    gather = ring_all_gather(2)
    row = gather.rows[0]
    assert isinstance(row, Transfer)
    with pytest.raises(
        ScheduleError,
        match=r"^ring all_gather: rank 1, chunk 0: has a contribution that does not belong "
        r"there, of rank 1; last written by row 0 \(step 0: 0 -> 1, reduce chunk 0\)$",
    ):
        verify(replace(gather, rows=(swap_op(row), *gather.rows[1:])))


def test_a_row_that_brings_nothing_new_is_named() -> None:
    row = Transfer(0, 0, 1, 0, Op.COPY)
    with pytest.raises(
        ScheduleError,
        match=r"^by hand broadcast: row 1 \(step 0: 0 -> 1, copy chunk 0\): "
        r"rank 1 already holds what it brings$",
    ):
        verify(make_schedule(Collective.BROADCAST, row, row, ranks=2))


def test_a_second_aggregation_is_named() -> None:
    once = in_network_allreduce(4)
    with pytest.raises(ScheduleError, match=r"row 1 \(step 0: aggregate chunk 0\): rank 0 already"):
        verify(replace(once, rows=(*once.rows, *once.rows)))
    again = (*once.rows, Aggregate(1, (0, 1, 2, 3), 0))
    with pytest.raises(ScheduleError, match=r"twice, since row 1 \(step 1: aggregate chunk 0\)"):
        verify(replace(once, rows=again))


def test_a_doubled_sum_that_is_overwritten_does_no_harm() -> None:
    proof = verify(
        make_schedule(
            Collective.BROADCAST,
            Transfer(0, 0, 1, 0, Op.REDUCE),
            Transfer(1, 0, 1, 0, Op.REDUCE),
            Transfer(2, 0, 1, 0, Op.COPY),
            ranks=2,
        )
    )
    assert proof == Proof((), (), True)


def test_rows_out_of_order_are_refused() -> None:
    ring = ring_allreduce(2)
    with pytest.raises(ScheduleError, match="row 2: step must be 1 or more, got 0"):
        verify(replace(ring, rows=ring.rows[::-1]))


def test_an_overwritten_send_has_to_be_waited_for() -> None:
    schedule = make_schedule(
        Collective.REDUCE,
        Transfer(0, 0, 1, 0, Op.REDUCE),
        Transfer(0, 2, 1, 0, Op.REDUCE),
        Transfer(1, 2, 0, 0, Op.COPY),  # rank 2 can't know whether row 0 has arrived
        root=1,
    )
    assert verify(schedule) == Proof((2,), (), True)
    with pytest.raises(
        ScheduleError,
        match=r"^by hand reduce: row 2 \(step 1: 2 -> 0, copy chunk 0\): "
        r"overwrites what rank 0 sends, and only an acknowledgement",
    ):
        verify(schedule, strict=True)


def test_what_comes_back_from_the_receiver_need_not_wait() -> None:
    schedule = make_schedule(
        Collective.ALLREDUCE,
        Transfer(0, 0, 1, 0, Op.REDUCE),
        Transfer(1, 1, 2, 0, Op.REDUCE),
        Transfer(2, 2, 0, 0, Op.COPY),  # has been through rank 1
        Transfer(2, 2, 1, 0, Op.COPY),
    )
    assert verify(schedule, strict=True) == Proof((), (), True)


def test_an_exchange_within_a_step_needs_landing_buffers() -> None:
    rows = (Transfer(0, 0, 1, 0, Op.REDUCE), Transfer(0, 1, 0, 0, Op.REDUCE))
    schedule = make_schedule(Collective.ALLREDUCE, *rows, ranks=2)
    # a + b and b + a have the same bits, so the results are identical nevertheless
    assert verify(schedule) == Proof((0, 1), (0, 1), True)
    with pytest.raises(ScheduleError, match="overwrites what rank 1 sends"):
        verify(pairwise_all_to_all(2), strict=True)


def test_sums_in_different_order_are_not_called_identical() -> None:
    everyone = [(src, dst) for src in range(3) for dst in range(3) if src != dst]
    rows = [Transfer(0, src, dst, 0, Op.REDUCE) for src, dst in everyone]
    assert not verify(make_schedule(Collective.ALLREDUCE, *rows)).identical


def test_demands_by_collective() -> None:
    def demands(collective: Collective, rank: int) -> list[int | None]:
        schedule = make_schedule(collective, ranks=3, chunks=3, root=1)
        return [demanded(schedule, rank, chunk) for chunk in range(3)]

    assert demands(Collective.ALLREDUCE, 2) == [0b111, 0b111, 0b111]
    assert demands(Collective.REDUCE, 1) == [0b111, 0b111, 0b111]
    assert demands(Collective.REDUCE, 2) == [None, None, None]
    assert demands(Collective.BROADCAST, 2) == [0b010, 0b010, 0b010]
    assert demands(Collective.REDUCE_SCATTER, 2) == [None, None, 0b111]
    assert demands(Collective.ALL_GATHER, 2) == [0b001, 0b010, 0b100]
    assert demands(Collective.ALL_TO_ALL, 1) == [0b010, 0b001, 0b100]
