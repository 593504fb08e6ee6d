"""Small schedules whose time can be worked out by hand: a byte takes a ps, latency is 100 ps."""

import pytest
from hypothesis import given
from layered_schedules import layered
from schedule_strategies import nonsense, schedules

from ringleaf.collectives.algorithms.alltoall import pairwise_all_to_all
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_allreduce
from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.critical_path import CriticalPath, critical_path, sent_bytes
from ringleaf.collectives.schedule import (
    Aggregate,
    Collective,
    Op,
    Row,
    Schedule,
    Transfer,
    messages,
)
from ringleaf.errors import ScheduleError

FABRIC = AlphaBeta(rate_bps=8_000_000_000_000, alpha_ps=100)


def time_of(*rows: Row, size_bytes: int = 1000, ranks: int = 4, chunks: int = 1) -> CriticalPath:
    schedule = Schedule(Collective.ALLREDUCE, "by hand", ranks, chunks, rows)
    return critical_path(schedule, size_bytes, FABRIC)


def test_nothing_takes_no_time() -> None:
    assert time_of() == CriticalPath(0, (0, 0, 0, 0))


def test_a_message_leaves_and_arrives() -> None:
    assert time_of(Transfer(0, 0, 1, 0, Op.COPY)).rank_ps == (1000, 1100, 0, 0)


def test_a_port_sends_one_message_after_the_other() -> None:
    path = time_of(Transfer(0, 0, 1, 0, Op.COPY), Transfer(0, 0, 2, 0, Op.COPY))
    assert path.rank_ps == (2000, 1100, 2100, 0)


def test_a_port_receives_one_message_after_the_other() -> None:
    path = time_of(Transfer(0, 1, 0, 0, Op.REDUCE), Transfer(0, 2, 0, 0, Op.REDUCE))
    assert path.rank_ps == (2100, 1000, 1000, 0)


def test_a_message_waits_for_what_it_carries() -> None:
    path = time_of(Transfer(0, 0, 1, 0, Op.COPY), Transfer(1, 1, 2, 0, Op.COPY))
    assert path.rank_ps == (1000, 2100, 2200, 0)


def test_other_chunks_are_not_waited_for() -> None:
    path = time_of(Transfer(0, 0, 1, 0, Op.COPY), Transfer(1, 1, 2, 1, Op.COPY), chunks=2)
    assert path.rank_ps == (500, 600, 600, 0)


def test_both_directions_of_a_port_work_at_once() -> None:
    path = time_of(Transfer(0, 0, 1, 0, Op.COPY), Transfer(0, 1, 0, 1, Op.COPY), chunks=2)
    assert path.rank_ps == (600, 600, 0, 0)


def test_rows_apply_in_order() -> None:
    # The second row arrives first, and waits for the first to be applied.
    path = time_of(
        Transfer(0, 1, 0, 0, Op.REDUCE),
        Transfer(1, 0, 2, 0, Op.COPY),
        Transfer(1, 3, 0, 0, Op.COPY),
        Transfer(2, 0, 1, 0, Op.COPY),
    )
    # 3 -> 0 uses the port from 1100 to 2100, but may only overwrite when 2 has it, at 2200;
    # only then is there anything to send to 1.
    assert path.rank_ps == (3200, 3300, 2200, 1000)


def test_a_port_serves_earlier_rows_first() -> None:
    path = time_of(
        Transfer(0, 0, 1, 0, Op.COPY),  # leaves from 0 to 400
        Transfer(0, 0, 1, 2, Op.COPY),  # leaves from 400 to 800
        Transfer(0, 3, 0, 1, Op.COPY),  # is there at 500
        Transfer(1, 0, 2, 1, Op.COPY),  # leaves from 800 to 1200, before
        Transfer(2, 0, 3, 3, Op.COPY),  # which could have left first
        size_bytes=1600,
        chunks=4,
    )
    assert path.rank_ps == (1600, 900, 1300, 1700)


def test_empty_chunks_are_not_sent() -> None:
    schedule = ring_allreduce(4)
    assert critical_path(schedule, 0, FABRIC).time_ps == 0
    # One element: its chunk goes round, 3 steps to be summed and 3 to be copied.
    assert critical_path(schedule, 4, FABRIC).time_ps == 6 * 104


def test_an_aggregate_takes_its_bytes_and_a_round_trip() -> None:
    path = time_of(Aggregate(0, (0, 1, 2), 0), Transfer(1, 2, 3, 0, Op.COPY))
    assert path.rank_ps == (1100, 1100, 2100, 2200)


def test_an_aggregate_waits_for_its_last_rank() -> None:
    path = time_of(Transfer(0, 3, 2, 0, Op.REDUCE), Aggregate(1, (0, 1, 2), 0))
    assert path.rank_ps == (2200, 2200, 2200, 1000)


def test_an_empty_aggregate_takes_no_time() -> None:
    assert time_of(Aggregate(0, (0, 1, 2), 0), size_bytes=0).time_ps == 0


def test_latency_may_differ_by_pair() -> None:
    matrix = [[0, 50], [10, 0]]
    for alpha_ps in (matrix, lambda src, dst: matrix[src][dst]):
        fabric = AlphaBeta(rate_bps=8_000_000_000_000, alpha_ps=alpha_ps)
        path = critical_path(ring_allreduce(2), 2000, fabric)
        # Out, 50 or 10, and back the other way: both ranks are done after both latencies.
        assert path.rank_ps == (2060, 2060)


def test_overhead_and_headers_occupy_the_ports() -> None:
    fabric = AlphaBeta(8_000_000_000_000, 100, overhead_ps=5, wire_bytes=lambda size: size + 20)
    assert critical_path(ring_allreduce(2), 2000, fabric).time_ps == 2 * (100 + 5 + 20 + 1000)


def test_a_swap_within_a_step_does_not_hang() -> None:
    path = critical_path(pairwise_all_to_all(4), 4000, FABRIC)
    assert path.rank_ps == (3100, 3100, 3100, 3100)


def test_rows_may_travel_one_by_one() -> None:
    schedule = halving_doubling_allreduce(8)
    together = critical_path(schedule, 8000, FABRIC).time_ps
    assert together == 6 * 100 + 2 * 7000
    # Chunks are passed on while others still arrive, so most latencies hide.
    assert critical_path(schedule, 8000, FABRIC, coalesce=False).time_ps < together
    aggregate = Schedule(Collective.ALLREDUCE, "by hand", 2, 1, (Aggregate(0, (0, 1), 0),))
    assert critical_path(aggregate, 1000, FABRIC, coalesce=False).time_ps == 1100


@given(nonsense() | layered() | schedules(most=10, most_bytes=50_000))
def test_everything_arrives_and_no_port_is_faster_than_its_rate(schedule: Schedule) -> None:
    size_bytes = 4 * 97
    path = critical_path(schedule, size_bytes, FABRIC)
    sent = sent_bytes(Schedule(**{**vars(schedule), "rows": only_transfers(schedule)}), size_bytes)
    assert path.time_ps == max(path.rank_ps)
    assert all(done >= busy for done, busy in zip(path.rank_ps, sent, strict=True))
    assert path.time_ps <= sum(1 for _ in messages(schedule)) * (100 + size_bytes)


def only_transfers(schedule: Schedule) -> tuple[Row, ...]:
    return tuple(row for row in schedule.rows if isinstance(row, Transfer))


def test_sent_bytes_by_rank() -> None:
    rows = (Transfer(0, 0, 1, 0, Op.COPY), Aggregate(1, (1, 2), 1))
    schedule = Schedule(Collective.ALLREDUCE, "by hand", 3, 2, rows)
    assert sent_bytes(schedule, 12) == [4, 8, 8]
    assert sent_bytes(schedule, 3, element_bytes=1) == [1, 2, 2]


def test_sizes_that_do_not_fit_are_refused() -> None:
    for ask in (
        lambda: critical_path(ring_allreduce(2), 6, FABRIC),
        lambda: sent_bytes(ring_allreduce(2), 6),
    ):
        with pytest.raises(
            ScheduleError, match="ring allreduce: size must be a multiple of 4 bytes, got 6"
        ):
            ask()
    with pytest.raises(ScheduleError, match="size must be a multiple of 4 bytes, got -4"):
        sent_bytes(ring_allreduce(2), -4)


def test_rows_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ScheduleError, match="row 0: chunk must be below 1, got 1"):
        time_of(Transfer(0, 0, 1, 1, Op.COPY))
