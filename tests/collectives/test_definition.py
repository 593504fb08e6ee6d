"""Schedules are judged by what the collective demands: the right ones pass, all others don't."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from schedule_strategies import nonsense, schedules

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_allreduce
from ringleaf.collectives.algorithms.ring import ring_all_gather, ring_allreduce
from ringleaf.collectives.definition import EVERYONE, NOBODY, demands, find_faults
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import (
    Aggregate,
    Collective,
    Op,
    Row,
    Schedule,
    Transfer,
    check,
    rows_by_chunk,
)
from ringleaf.errors import ScheduleError


def by_hand(collective: Collective, *rows: Row, ranks: int = 3, chunks: int = 1) -> Schedule:
    return Schedule(collective, "by hand", ranks, chunks, rows)


def first(schedule: Schedule) -> str:
    return str(find_faults(schedule, schedule.collective, schedule.root).first)


def makes_sense(schedule: Schedule) -> bool:
    try:
        check(schedule)
    except ScheduleError:
        return False
    return True


def counted(schedule: Schedule) -> list[list[list[int]]]:
    """How often each rank's input is in [rank][chunk] in the end, one row after the other."""
    found = []
    for rows in rows_by_chunk(schedule):
        values = [[int(a == b) for b in range(schedule.ranks)] for a in range(schedule.places)]
        for step in sorted({row.step for _, row in rows}):
            before = [list(value) for value in values]
            for _, row in rows:
                if row.step != step:
                    continue
                if isinstance(row, Aggregate):
                    total = [
                        sum(each) for each in zip(*(before[r] for r in row.ranks), strict=True)
                    ]
                    for rank in row.ranks:
                        values[rank] = list(total)
                elif row.op is Op.REDUCE:
                    values[row.dst] = [
                        a + b for a, b in zip(values[row.dst], before[row.src], strict=True)
                    ]
                else:
                    values[row.dst] = list(before[row.src])
        found.append(values[: schedule.ranks])
    return [[chunk[rank] for chunk in found] for rank in range(schedule.ranks)]


@given(schedules())
def test_every_algorithm_keeps_its_promise(schedule: Schedule) -> None:
    faults = find_faults(schedule, schedule.collective, schedule.root)

    assert faults.first is None
    assert faults.cells.shape == (schedule.ranks, schedule.chunks)
    assert not faults.cells.any()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_more_ranks_than_a_word_has_bits(name: str) -> None:
    schedule = ALGORITHMS[name].build(67, size_bytes=1000, hierarchy=(67,))
    assert find_faults(schedule, schedule.collective).first is None


def test_of_right_schedules_no_sets_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be large; numbers of contributions have their sum, whatever the order."""
    monkeypatch.delattr("ringleaf.collectives.definition._Sets")
    for name in ("halvingdoubling", "bucket", "switchml", "alltoall"):
        schedule = ALGORITHMS[name].build(16, hierarchy=(16,))
        assert find_faults(schedule, schedule.collective).first is None


def test_servers_have_nothing_to_contribute() -> None:
    schedule = ALGORITHMS["ps"].build(5, size_bytes=1 << 16, servers=2, segments=3)
    assert schedule.servers == 2
    assert find_faults(schedule, Collective.ALLREDUCE).first is None


def test_chunks_are_followed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ringleaf.collectives.definition._BLOCK_BYTES", 7 * 2 * 8 * 2
    )  # two chunks each
    ring = ring_allreduce(7)
    rows = tuple(row for row in ring.rows if row.chunk != 5 or row.step != 8)
    for schedule in (ring, replace(ring, rows=rows)):
        cells = find_faults(schedule, Collective.ALLREDUCE).cells
        assert set(np.argwhere(cells)[:, 1].tolist()) == (set() if schedule is ring else {5})


@given(nonsense() | schedules(least=2, most=9, most_bytes=9_000), st.data())
def test_contributions_are_counted_as_they_are(schedule: Schedule, data: st.DataObject) -> None:
    """Rows are left out at random; each input must be there as often as a plain count says."""
    kept = data.draw(
        st.lists(st.booleans(), min_size=len(schedule.rows), max_size=len(schedule.rows))
    )
    rows = tuple(row for row, keep in zip(schedule.rows, kept, strict=True) if keep)
    schedule = replace(schedule, rows=rows)
    assume(makes_sense(schedule))  # scratch memory is written before it is read
    wanted = demands(schedule.collective, schedule.ranks, schedule.chunks, schedule.root)
    counts = counted(schedule)
    cells = find_faults(schedule, schedule.collective, schedule.root).cells
    for rank in range(schedule.ranks):
        for chunk in range(schedule.chunks):
            whose = wanted[rank, chunk]
            right = [int(whose in (EVERYONE, r)) for r in range(schedule.ranks)]
            is_wrong = whose != NOBODY and counts[rank][chunk] != right
            note(f"rank {rank}, chunk {chunk}: {counts[rank][chunk]}, wanted {right}")
            assert cells[rank, chunk] == is_wrong


def test_demands_by_collective() -> None:
    def of(collective: Collective, blocks: int = 3) -> list[list[int]]:
        found: list[list[int]] = demands(collective, 3, blocks, 1).tolist()
        return found

    everyone, nobody = [EVERYONE] * 3, [NOBODY] * 3
    assert of(Collective.ALLREDUCE) == [everyone] * 3
    assert of(Collective.REDUCE) == [nobody, everyone, nobody]
    assert of(Collective.BROADCAST) == [[1, 1, 1]] * 3
    assert of(Collective.REDUCE_SCATTER) == [
        [EVERYONE, NOBODY, NOBODY], [NOBODY, EVERYONE, NOBODY], [NOBODY, NOBODY, EVERYONE],
    ]  # fmt: skip
    assert of(Collective.ALL_GATHER, 6) == [[0, 0, 1, 1, 2, 2]] * 3
    assert of(Collective.ALL_TO_ALL) == [[0, 2, 1], [1, 0, 2], [2, 1, 0]]


def test_what_is_lacking_is_said() -> None:
    """In a ring of 4, chunk 2 goes from rank 2 by 3 and 0 to 1, which alone has all of it."""
    ring = ring_allreduce(4)
    halfway = tuple(row for row in ring.rows if row.step < 3 or row.chunk != 2)
    assert first(replace(ring, rows=halfway)) == (
        "rank 0 lacks the contribution of rank 1 to chunk 2"
    )
    assert first(by_hand(Collective.ALLREDUCE, ranks=8)) == (
        "rank 0 lacks contributions of ranks 1, 2, 3, 4 and 3 more to chunk 0"
    )
    assert first(by_hand(Collective.ALLREDUCE, ranks=2)) == (
        "rank 0 lacks the contribution of rank 1 to chunk 0"
    )


def test_what_does_not_belong_is_said() -> None:
    gather = ring_all_gather(2)
    row = gather.rows[0]
    assert isinstance(row, Transfer)
    assert first(replace(gather, rows=(replace(row, op=Op.REDUCE), *gather.rows[1:]))) == (
        "rank 1 has the contribution of rank 1 in chunk 0, which must not be there"
    )


def test_what_is_there_twice_is_said() -> None:
    once = in_network_allreduce(3)
    again = replace(once, rows=(*once.rows, Aggregate(1, (0, 1, 2), 0)))
    assert first(again) == "rank 0 has contributions of ranks 0, 1, 2 to chunk 0 more than once"


def test_a_row_that_is_superfluous_does_no_harm() -> None:
    row = Transfer(0, 0, 1, 0, Op.COPY)
    assert (
        find_faults(by_hand(Collective.BROADCAST, row, row, ranks=2), Collective.BROADCAST).first
        is None
    )


def test_a_schedule_is_not_believed_what_it_is() -> None:
    """One that calls itself a broadcast from rank 1 is no allreduce, and no broadcast from 0."""
    schedule = ALGORITHMS["broadcast"].build(3, root=1)
    assert find_faults(schedule, Collective.BROADCAST, root=1).first is None
    assert str(find_faults(schedule, Collective.BROADCAST).first) == (
        "rank 0 lacks the contribution of rank 0 to chunk 0"
    )
    assert find_faults(schedule, Collective.ALLREDUCE).cells.tolist() == [[True]] * 3


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (by_hand(Collective.ALLREDUCE, Transfer(0, -1, 1, 0, Op.COPY)), "ranks must be below 3"),
        (by_hand(Collective.ALLREDUCE, Transfer(0, 0, 3, 0, Op.COPY)), "ranks must be below 3"),
        (by_hand(Collective.ALLREDUCE, Transfer(0, 1, 1, 0, Op.COPY)), "ranks must differ"),
        (by_hand(Collective.ALLREDUCE, Transfer(0, 0, 1, 1, Op.COPY)), "chunk must be below 1"),
        (by_hand(Collective.ALLREDUCE, Aggregate(0, (), 0)), "there must be ranks"),
        (by_hand(Collective.ALLREDUCE, Aggregate(0, (0, 0), 0)), "ranks must differ"),
        (by_hand(Collective.ALLREDUCE, chunks=0), "chunks must be >= 1"),
        (by_hand(Collective.ALLREDUCE, ranks=0), "ranks must be >= 1"),
        (replace(ring_allreduce(2), rows=ring_allreduce(2).rows[::-1]), "step must be 1 or more"),
        (replace(ring_allreduce(2), root=2), "root must be one of 2 ranks"),
        (replace(ring_allreduce(2), servers=-1), "servers must be >= 0"),
    ],
)
def test_rows_without_sense_are_refused(schedule: Schedule, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        find_faults(schedule, Collective.ALLREDUCE)


def test_the_same_rows_are_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = find_faults(halving_doubling_allreduce(5), Collective.ALLREDUCE)
    assert find_faults(halving_doubling_allreduce(5), Collective.ALLREDUCE) is faults
    assert find_faults(halving_doubling_allreduce(5), Collective.REDUCE) is not faults

    monkeypatch.setattr("ringleaf.collectives.definition._KEPT", 1)
    find_faults(ring_allreduce(5), Collective.ALLREDUCE)
    assert find_faults(halving_doubling_allreduce(5), Collective.ALLREDUCE) is not None


@pytest.mark.parametrize(
    ("collective", "ranks", "got"),
    [
        (Collective.ALLREDUCE, 2, "got allreduce of 2 ranks"),
        (Collective.REDUCE, 3, "got reduce of 3 ranks"),
    ],
)
def test_an_algorithm_makes_what_it_is_asked_for(
    collective: Collective, ranks: int, got: str
) -> None:
    """A plug-in that forgets the number of ranks, or says another collective of itself."""
    wrong = by_hand(collective, Transfer(0, 1, 0, 0, Op.REDUCE), ranks=ranks)
    algorithm = replace(ALGORITHMS["ring"], name="mine", schedule_for=lambda _: wrong)
    with pytest.raises(ScheduleError, match=rf"mine: .* allreduce of 3 ranks, {got}"):
        algorithm.build(3)
