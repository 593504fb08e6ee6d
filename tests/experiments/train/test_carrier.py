"""Ranks' calls on a real virtual network: results, times, and networks that are built anew."""

from collections.abc import Callable, Generator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wires import Rank, Wires

from ringleaf.core.units import PS_PER_US, serialize_ps
from ringleaf.experiments.workloads.train.account import Account
from ringleaf.experiments.workloads.train.calls import CollectiveCall
from ringleaf.experiments.workloads.train.carrier import CollectiveCarrier
from ringleaf.experiments.workloads.train.definition import wrong_elements
from ringleaf.experiments.workloads.train.parts import CallError, MatchedCalls, RankCall
from ringleaf.experiments.workloads.train.planned_carrier import AheadCarrier
from ringleaf.experiments.workloads.train.rules import parse_rules
from ringleaf.experiments.workloads.train.ways import CallCarriers
from ringleaf.networks.endpoints.operation import CollectiveOperation

Steps = Generator[list[int], None, None]


def sums(count: int, dtype: str = "float32", op: str = "sum") -> CollectiveCall:
    return CollectiveCall("all_reduce", dtype, op, count)


def test_a_sum_takes_the_time_of_its_bytes_from_the_last_call_on() -> None:
    count = 50_000

    def script(rank: Rank) -> Steps:
        rank.compute(10 * PS_PER_US * rank.rank)
        number = rank.call(sums(count), np.full(count, rank.rank + 1, np.float32))
        yield [number]

    wires = Wires([script, script]).run()

    # Each of two ranks sends half of the tensor twice, over two links of 100 Gbit/s and 1 us.
    least_ps = 2 * (serialize_ps(2 * count, 100_000_000_000) + 2 * PS_PER_US)
    taken_ps = wires.ends_ps[0] - 10 * PS_PER_US
    assert least_ps < taken_ps < 1.3 * least_ps
    assert wires.ends_ps[0] == wires.ends_ps[1]
    assert wires.ranks[0].result(0, "float32") == [3.0] * count
    assert [each.wrong for each in wires.carried] == [0]


def test_computing_hides_a_call_that_nobody_waits_for_yet() -> None:
    def script(rank: Rank) -> Steps:
        number = rank.call(sums(1000), np.ones(1000, np.float32))
        rank.compute(1000 * PS_PER_US)
        yield [number]

    assert Wires([script] * 4).run().ends_ps == [1000 * PS_PER_US] * 4


def test_networks_are_built_for_the_groups_that_switches_serve() -> None:
    def script(rank: Rank) -> Steps:
        pair = f"pair {rank.rank // 2}"
        yield [rank.call(sums(300), np.full(300, rank.rank, np.float32))]
        before_ps = rank.clock_ps
        yield [rank.call(sums(300), np.full(300, rank.rank, np.float32), group=pair)]
        assert rank.clock_ps > before_ps
        yield [rank.call(sums(300, "int32", "max"), np.full(300, rank.rank, np.int32))]

    wires = Wires(
        [script] * 4,
        rules="allreduce@2:atp, switchml",
        groups={"pair 0": [0, 1], "pair 1": [2, 3]},
    ).run()

    everyone, pairs = ("switchml", (0, 1, 2, 3)), [("atp", (0, 1)), ("atp", (2, 3))]
    assert wires.built == [[everyone], [everyone, *pairs]]
    assert [rank.result(0, "float32")[0] for rank in wires.ranks] == [6.0] * 4
    assert [rank.result(1, "float32")[0] for rank in wires.ranks] == [1.0, 1.0, 5.0, 5.0]
    assert [rank.result(2, "int32")[0] for rank in wires.ranks] == [3] * 4
    assert sum(each.wrong or 0 for each in wires.carried) == 0


@given(st.permutations(range(4)))
@settings(deadline=None, max_examples=5)
def test_times_do_not_depend_on_the_order_in_which_ranks_run(order: list[int]) -> None:
    def script(rank: Rank) -> Steps:
        rank.compute(rank.rank * 700_000)
        first = rank.call(sums(5000), np.ones(5000, np.float32))
        other = rank.call(sums(3000), np.ones(3000, np.float32), group=f"pair {rank.rank % 2}")
        rank.compute(3 * PS_PER_US)
        yield [other]
        yield [
            rank.call(
                CollectiveCall("all_gather", "int8", count=900), np.ones(900, np.int8), room=3600
            )
        ]
        yield [first]

    groups = {"pair 0": [0, 2], "pair 1": [1, 3]}
    usual = Wires([script] * 4, groups=groups).run()

    assert Wires([script] * 4, groups=groups, order=order).run().ends_ps == usual.ends_ps


def test_connections_are_made_while_others_are_at_work_on_lossy_links() -> None:
    """Each new kind of call needs queue pairs, and agents' tables move while packets wait."""

    def script(rank: Rank) -> Steps:
        numbers = []
        for distance in range(1, 4):
            to, source = (rank.rank + distance) % 4, (rank.rank - distance) % 4
            values = np.full(60_000, 10 * rank.rank + distance, np.uint8)
            numbers.append(
                rank.call(CollectiveCall("send", "uint8", count=60_000, root=to), values)
            )
            taken = CollectiveCall("recv", "uint8", count=60_000, root=source)
            numbers.append(rank.call(taken, room=60_000))
            yield numbers[:1]
            numbers.append(rank.call(sums(20_000), np.ones(20_000, np.float32)))
        yield numbers

    wires = Wires([script] * 4, loss=0.01).run()

    assert sum(each.wrong or 0 for each in wires.carried) == 0
    assert sum(each.retransmissions for each in wires.outcomes) > 0
    for rank in wires.ranks:
        assert set(rank.result(1, "uint8")) == {10 * ((rank.rank - 1) % 4) + 1}


def test_a_rank_passes_on_what_it_has_received_without_a_round_trip() -> None:
    """Two links of 1 us, four to the other rack, and two; a packet has 90 bytes on the line.

    The network hears of an end when its window is over, a link's time later at most.
    """

    def script(rank: Rank) -> Steps:
        if rank.rank:
            yield [rank.call(CollectiveCall("recv", "int32", count=2, root=rank.rank - 1), room=8)]
        if rank.rank < 3:
            values = np.full(2, 7, np.int32)
            yield [rank.call(CollectiveCall("send", "int32", count=2, root=rank.rank + 1), values)]

    wires = Wires([script] * 4).run()

    link_ps = PS_PER_US + serialize_ps(90, 100_000_000_000)
    assert 8 * link_ps <= wires.ends_ps[3] <= 10 * link_ps
    assert wires.ends_ps[3] < wires.ends_ps[2], "its sender has the acknowledgement later"
    assert wires.ranks[3].result(0, "int32") == [7, 7]
    assert [each.wrong for each in wires.carried] == [0] * 3


@pytest.mark.parametrize("carrier", [CollectiveCarrier, AheadCarrier])
def test_messages_wait_for_no_credit_whatever_went_before(
    carrier: type[CollectiveCarrier],
) -> None:
    """Two links of 1 us; packets have 90 bytes on the line."""

    def script(rank: Rank) -> Steps:
        yield [rank.call(sums(2), np.ones(2, np.float32))]
        for _ in range(3):
            call = CollectiveCall("recv" if rank.rank else "send", "int32", "", 2, 1 - rank.rank)
            yield [rank.call(call, np.ones(2, np.int32), room=8)]

    wires = Wires([script, script], carrier=carrier).run()

    message_ps = 2 * (PS_PER_US + serialize_ps(90, 100_000_000_000))
    assert [each.end_ps - each.begin_ps for each in wires.carried[1:]] == [message_ps] * 3


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8"])
@pytest.mark.parametrize("op", ["product", "min"])
def test_other_reductions_are_carried_by_hosts(dtype: str, op: str) -> None:
    values = [np.array([3, 2, 5], dtype), np.array([2, 4, 1], dtype)]

    def script(rank: Rank) -> Steps:
        yield [rank.call(sums(3, dtype, op), values[rank.rank])]

    wires = Wires([script, script], rules="switchml").run()

    assert wires.ranks[1].result(0, dtype) == ([6, 8, 5] if op == "product" else [2, 2, 1])
    assert wires.carried[0].wrong == 0


def test_ranks_that_never_meet_are_named() -> None:
    def script(rank: Rank) -> Steps:
        yield [rank.call(CollectiveCall("recv", "int8", count=4, root=1 - rank.rank), room=4)]

    with pytest.raises(
        CallError, match=r"rank 1 waits at 0 for recv\(int8\[4\], from=0\) in world"
    ):
        Wires([script, script]).run()


def test_calls_of_nothing_and_of_one_rank_are_over_at_once() -> None:
    def script(rank: Rank) -> Steps:
        yield [rank.call(sums(0), np.zeros(0, np.float32))]
        alone = np.full(5, 7, np.float32)
        yield [rank.call(sums(5), alone, group=f"just {rank.rank}")]

    wires = Wires([script, script], groups={"just 0": [0], "just 1": [1]}).run()

    assert wires.ends_ps == [0, 0]
    assert wires.ranks[1].result(1, "float32") == [7.0] * 5


def test_what_a_rank_sends_to_itself_is_there_at_once() -> None:
    """As by NCCL, whose all-to-alls of messages have one to oneself."""

    def script(rank: Rank) -> Steps:
        values = np.array([rank.rank, 7], np.int32)
        given = rank.call(CollectiveCall("send", "int32", count=2, root=rank.rank), values)
        taken = rank.call(CollectiveCall("recv", "int32", count=2, root=rank.rank), room=8)
        yield [given, taken]

    wires = Wires([script, script]).run()

    assert wires.ends_ps == [0, 0]
    assert [rank.result(1, "int32") for rank in wires.ranks] == [[0, 7], [1, 7]]
    assert [each.wrong for each in wires.carried] == [0, 0]


def test_rates_of_gathers_and_uneven_exchanges_are_those_that_a_link_carries() -> None:
    """Their busbw is half of the algbw of two ranks, as nccl-tests has it."""
    counts = [(1, 3), (5, 3)]  # for each rank

    def script(rank: Rank) -> Steps:
        yield [rank.call(CollectiveCall("gather", "int32", count=2), np.ones(2, np.int32), room=16)]
        sends, takes = counts[rank.rank], tuple(each[rank.rank] for each in counts)
        exchange = CollectiveCall("all_to_all", "int32", sends=sends, takes=takes)
        yield [rank.call(exchange, np.ones(sum(sends), np.int32), room=32)]

    account = Account(2)
    for each in Wires([script, script]).run().carried:
        account.add(each, "world")

    rows = account.rows()
    assert {row.call: row.size_bytes for row in rows} == {"gather": 16, "all_to_all": 24}
    for row in rows:
        assert row.busbw_gb_s == pytest.approx(row.size_bytes / 2 * 1000 / row.time_ps)


def parts_of(call: CollectiveCall, ranks: int) -> MatchedCalls:
    parts = tuple(RankCall(rank, 0, call, 0) for rank in range(ranks))
    return MatchedCalls("world", tuple(range(ranks)), parts, 0, 0)


def test_wrong_results_are_found() -> None:
    ways = CallCarriers(parse_rules("ring"))
    ones = [np.ones(4, np.float32).view(np.uint8) for _ in range(2)]
    made = parts_of(sums(4), 2)
    way = ways.way([sums(4)] * 2, 4)

    def wrong(*values: list[float]) -> int:
        results = [np.array(each, np.float32).view(np.uint8) for each in values]
        return wrong_elements(made, way, ones, results, item_bytes=4, lanes=64)

    assert wrong([2, 2, 2, 2], [2, 2, 2, 2]) == 0
    assert wrong([2, 2, 2, 2], [2, 2, 2, 2.0000002]) == 1
    assert wrong([2, 3, 2, 2], [2, 3, 2, 2]) == 1

    copied = CollectiveCall("broadcast", "float32", count=4, root=1)
    way = ways.way([copied] * 2, 4)
    results = [ones[0], np.zeros(16, np.uint8)]
    assert wrong_elements(parts_of(copied, 2), way, ones, results, item_bytes=4, lanes=64) == 4


def iterating(iterations: int) -> Callable[[Rank], Steps]:
    """A script whose iterations call the same: in a pair each, of all, and from rank to rank."""

    def script(rank: Rank) -> Steps:
        for number in range(iterations):
            pair = f"pair {rank.rank // 2}"
            mine = rank.call(sums(900), np.full(900, rank.rank + 1, np.float32), group=pair)
            all_of = np.full(700, rank.rank + number, np.int32)
            yield [mine, rank.call(sums(700, "int32", "max"), all_of)]
            assert rank.result(mine, "float32") == [3.0 if rank.rank < 2 else 7.0] * 900
            assert rank.result(mine + 1, "int32") == [3 + number] * 700
            if rank.rank % 2 == 0:
                yield [
                    rank.call(
                        CollectiveCall("send", "int32", count=8, root=rank.rank + 1), all_of[:8]
                    )
                ]
            else:
                number_of = rank.call(
                    CollectiveCall("recv", "int32", count=8, root=rank.rank - 1), room=32
                )
                yield [number_of]
                assert rank.result(number_of, "int32") == [rank.rank - 1 + number] * 8

    return script


PAIRS = {"pair 0": [0, 1], "pair 1": [2, 3]}


class Watched(AheadCarrier):
    """Sees to it that operations under way have channels of their own."""

    def start(self, now_ps: int) -> None:
        super().start(now_ps)
        self.busy: set[tuple[int, int]] = set()

    def take_operations(self) -> list[CollectiveOperation]:
        operations = super().take_operations()
        for place in [(each.group, each.channel) for each in operations]:
            assert place not in self.busy
            self.busy.add(place)
        return operations

    def finish(self, operation: CollectiveOperation, now_ps: int) -> None:
        self.busy.remove((operation.group, operation.channel))
        super().finish(operation, now_ps)


@pytest.mark.parametrize("rules", ["ring", "allreduce@2:switchml, ring"])
def test_rooms_that_are_made_ahead_serve_all_iterations(rules: str) -> None:
    wires = [
        Wires([iterating(iterations)] * 4, rules=rules, groups=PAIRS, carrier=Watched).run()
        for iterations in (1, 4)
    ]

    assert len(wires[0].built) == len(wires[1].built) <= 3
    for each in wires:
        assert sum(carried.wrong or 0 for carried in each.carried) == 0
    assert len(wires[1].carried) == 4 * len(wires[0].carried) == 4 * 5


def test_rooms_that_are_made_ahead_change_no_times_once_they_are_there() -> None:
    def spans(carrier: type[CollectiveCarrier]) -> list[int]:
        wires = Wires([iterating(3)] * 4, groups=PAIRS, carrier=carrier).run()
        return [each.end_ps - each.begin_ps for each in wires.carried[-5:]]

    assert spans(AheadCarrier) == spans(CollectiveCarrier)
