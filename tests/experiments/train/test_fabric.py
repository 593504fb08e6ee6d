"""The state machine of ranks and calls, with neither network nor processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.units import FOREVER_PS
from ringleaf.experiments.workloads.train.calls import ANY, CollectiveCall
from ringleaf.experiments.workloads.train.fabric import CallDone, Go, TrainingRanks
from ringleaf.experiments.workloads.train.parts import CallError, MatchedCalls, RankCall

SUM = CollectiveCall("all_reduce", "float32", "sum", 8)


def make_fabric(ranks: int) -> TrainingRanks:
    fabric = TrainingRanks(ranks)
    for rank in range(ranks):
        fabric.join(rank, "all", range(ranks))
    return fabric


def call(
    fabric: TrainingRanks,
    rank: int,
    number: int,
    made: CollectiveCall,
    clock_ps: int,
    group: str = "all",
) -> None:
    fabric.call(group, RankCall(rank, number, made, clock_ps))


def begin(fabric: TrainingRanks, now_ps: int) -> list[MatchedCalls]:
    found = list(fabric.ready(now_ps))
    for each in found:
        fabric.begin(each)
    return found


def test_a_collective_begins_when_its_last_rank_has_come() -> None:
    fabric = make_fabric(2)
    call(fabric, 0, 0, SUM, 10)
    fabric.wait(0, [0], 10)
    assert fabric.next_ps() == FOREVER_PS
    assert fabric.running == [1]

    call(fabric, 1, 0, SUM, 70)
    fabric.wait(1, [0], 75)

    assert fabric.next_ps() == 70
    assert begin(fabric, 69) == []
    [begun] = begin(fabric, 70)
    fabric.finish(begun, 200)
    assert fabric.take_answers() == [
        CallDone(0, 0, 200),
        Go(0, 200),
        CallDone(1, 0, 200),
        Go(1, 200),
    ]
    assert fabric.running == [0, 1]


def test_a_wait_that_begins_after_the_end_costs_nothing() -> None:
    fabric = make_fabric(1)
    call(fabric, 0, 0, SUM, 0)
    [begun] = begin(fabric, 0)
    fabric.finish(begun, 30)
    fabric.take_answers()

    fabric.wait(0, [0], 50)

    assert fabric.take_answers() == [Go(0, 50)]


def test_calls_of_a_group_take_place_one_after_the_other() -> None:
    fabric = make_fabric(2)
    for rank in (0, 1):
        call(fabric, rank, 0, SUM, 0)
        call(fabric, rank, 1, SUM, 5)
        fabric.wait(rank, [0, 1], 5)

    [first] = begin(fabric, 10)
    assert begin(fabric, 10) == []
    fabric.finish(first, 40)
    assert fabric.running == []
    [second] = begin(fabric, 40)

    assert (first.number, second.number) == (0, 1)
    fabric.finish(second, 60)
    assert fabric.running == [0, 1]


def test_calls_of_different_groups_take_place_side_by_side() -> None:
    fabric = make_fabric(4)
    for rank in range(4):
        fabric.join(rank, f"pair {rank % 2}", [rank % 2, rank % 2 + 2])
        call(fabric, rank, 0, SUM, 0, f"pair {rank % 2}")

    assert [each.members for each in begin(fabric, 0)] == [(0, 2), (1, 3)]


def test_a_watched_call_lets_a_rank_go_on_before_the_one_it_waits_for() -> None:
    fabric = make_fabric(2)
    for rank in (0, 1):
        call(fabric, rank, 0, SUM, 0)
        call(fabric, rank, 1, SUM, 0)
        fabric.wait(rank, [1], 0, watched=[0] if rank == 0 else [])

    [first] = begin(fabric, 0)
    fabric.finish(first, 10)

    assert fabric.running == [0]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            CollectiveCall("all_reduce", "float32", "sum", 9),
            r"all_reduce\(float32\[8\], sum\) from rank 0 and",
        ),
        (
            CollectiveCall("all_reduce", "float64", "sum", 8),
            r"all_reduce\(float64\[8\], sum\) from rank 1",
        ),
        (CollectiveCall("all_reduce", "float32", "max", 8), r"max\) from rank 1"),
        (
            CollectiveCall("broadcast", "float32", "", 8),
            r"broadcast\(float32\[8\], root=0\) from rank 1",
        ),
    ],
)
def test_calls_that_differ_are_named_with_their_ranks(other: CollectiveCall, message: str) -> None:
    fabric = make_fabric(2)
    call(fabric, 0, 0, SUM, 0)

    with pytest.raises(
        CallError, match=r"call 0 in world: all ranks must make the same.*" + message
    ):
        call(fabric, 1, 0, other, 0)


def test_blocks_of_an_exchange_must_have_one_size_at_both_ends() -> None:
    fabric = make_fabric(2)
    call(fabric, 0, 0, CollectiveCall("all_to_all", "float32", sends=(1, 2), takes=(1, 4)), 0)

    with pytest.raises(CallError, match="2 elements from rank 0, and 3 expected by rank 1"):
        call(fabric, 1, 0, CollectiveCall("all_to_all", "float32", sends=(4, 1), takes=(3, 1)), 0)


def test_a_rank_that_waits_may_not_call() -> None:
    fabric = make_fabric(2)
    call(fabric, 0, 0, SUM, 0)
    fabric.wait(0, [0], 0)

    with pytest.raises(CallError, match=r"while it waits .* by one thread at a time"):
        call(fabric, 0, 1, SUM, 0)


def test_a_soft_wait_ends_when_its_rank_says_something() -> None:
    fabric = make_fabric(2)
    call(fabric, 0, 0, SUM, 3)
    fabric.wait(0, [], 3, watched=[0], is_soft=True)
    assert fabric.running == [1]
    assert fabric.has_soft

    call(fabric, 0, 1, SUM, 8)

    assert fabric.running == [0, 1]
    assert fabric.take_answers() == [Go(0, 3)]


def test_a_group_must_have_the_same_ranks_everywhere() -> None:
    fabric = make_fabric(3)
    fabric.join(0, "some", [0, 1])

    with pytest.raises(CallError, match=r"rank 1: group 'some' must have.*\[0, 1\], got \[0, 2\]"):
        fabric.join(1, "some", [0, 2])
    with pytest.raises(CallError, match=r"rank 2: all_reduce.* in a group that it has not joined"):
        call(fabric, 2, 0, SUM, 0, "some")


def test_who_waits_for_whom_is_told() -> None:
    fabric = make_fabric(3)
    for rank in (0, 1):
        call(fabric, rank, 0, SUM, 2_000_000)
        fabric.wait(rank, [0], 2_000_000)
    call(fabric, 2, 0, CollectiveCall("recv", "int8", count=3, root=1, tag=7), 0)
    fabric.wait(2, [0], 0)

    assert fabric.deadlock().splitlines() == [
        "no rank can go on:",
        "  rank 0 waits at 2 us for all_reduce(float32[8], sum) in world",
        "  rank 1 waits at 2 us for all_reduce(float32[8], sum) in world",
        "  rank 2 waits at 0 for recv(int8[3], from=1, tag=7) in world",
        "  call 0 in world, all_reduce(float32[8], sum), was made by ranks 0, 1, and not by rank 2",
        "  recv(int8[3], from=1, tag=7) of rank 2 in world is not sent",
    ]


@given(st.permutations([(1, 30), (2, 10), (3, 20)]))
def test_a_receive_from_anybody_takes_the_earliest_send(order: list[tuple[int, int]]) -> None:
    """The order in which this machine runs ranks does not matter."""
    fabric = make_fabric(4)
    for number in range(3):
        call(fabric, 0, number, CollectiveCall("recv", "int8", count=1, root=ANY), 0)
    for rank, clock_ps in order:
        call(fabric, rank, 0, CollectiveCall("send", "int8", count=1, root=0), clock_ps)

    fabric.match()

    met = {each.parts[1].number: each.parts[0].rank for each in fabric.ready(FOREVER_PS)}
    assert met == {0: 2, 1: 3, 2: 1}


def test_messages_meet_by_tag_and_must_have_one_size() -> None:
    fabric = make_fabric(2)
    call(fabric, 0, 0, CollectiveCall("send", "int8", count=1, root=1, tag=1), 0)
    call(fabric, 0, 1, CollectiveCall("send", "int8", count=2, root=1, tag=2), 0)
    call(fabric, 1, 0, CollectiveCall("recv", "int8", count=2, root=0, tag=2), 0)
    fabric.match()
    [met] = fabric.ready(FOREVER_PS)
    assert [part.number for part in met.parts] == [1, 0]

    call(fabric, 1, 1, CollectiveCall("recv", "int8", count=2, root=0, tag=1), 0)
    with pytest.raises(CallError, match=r"got send\(int8\[1\].*rank 0 and recv\(int8\[2\]"):
        fabric.match()


def test_a_look_goes_on_at_its_time() -> None:
    fabric = make_fabric(1)
    fabric.wait(0, [], 40, until_ps=40)
    assert (fabric.running, fabric.next_ps()) == ([], 40)

    fabric.reach(40)

    assert fabric.take_answers() == [Go(0, 40)]
