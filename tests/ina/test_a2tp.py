"""A2TP from tensor to tensor: workers agree on shares; its formulas, by hand; feedback."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from atp_network import SHAPES, job_on, message, sequence, small, with_mark
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import DELAY_PS, A2tpJob, Fate, Network, misbehaving, tree_of

from ringleaf.core.arena import Arena, Store
from ringleaf.core.headers import ECN_CAPABLE, ECN_MARKED, IP_AT, IP_CHECKSUM_AT, IP_TOS_AT
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp import shares, state
from ringleaf.ina.atp.wire import (
    CONGESTED,
    GRADIENT,
    LATE,
    MESSAGE_AT,
    PARAMETER,
    PROPOSAL_AT,
    RACK_AT,
    RESEND,
    SENDER_AT,
    VALUES_AT,
    WANTED,
)
from ringleaf.ina.congestion import (
    CONTROL_WORDS,
    MARKED,
    ON_ROUND,
    SHARE,
    TIMELY,
    WINDOW,
    begin_window,
)
from ringleaf.ina.congestion import WANTED as BLOCK_WANTED
from ringleaf.ina.window_registry import find_window
from ringleaf.ina.windows.a2tp import HASTE
from ringleaf.topologies.graph import hosts


def a2tp_on(graph: object, servers: int = 1, *, number: int = 1, aggregators: int = 6) -> A2tpJob:
    plain = job_on(graph, servers, number=number, aggregators=aggregators)  # type: ignore[arg-type]
    return A2tpJob(number, plain.workers, plain.servers, aggregators=aggregators, window=8)


class Marking(Network):
    """A network that marks some packets."""

    def __init__(self, graph: object, jobs: list[A2tpJob], fate: Fate, seed: int) -> None:
        self.rng = Random(seed)
        super().__init__(graph, jobs, fate)  # type: ignore[arg-type]

    def send(self, src: str, dst: str, packet: bytes) -> None:
        super().send(src, dst, with_mark(packet) if self.rng.random() < 0.1 else packet)

    def alone(self, job: A2tpJob) -> dict[int, set[bool]]:
        """Whether the first gradients of each block, of all workers, take no aggregators."""
        first: dict[tuple[int, int], bool] = {}
        for src, _, packet in self.hops:
            if (
                src[0] == "h"
                and message(packet) == GRADIENT
                and packet[MESSAGE_AT + 1] == job.number
            ):
                key = (sequence(packet), packet[SENDER_AT])
                first.setdefault(key, bool(packet[MESSAGE_AT] & RESEND))
        found = defaultdict(set)
        for (block, _), is_alone in first.items():
            found[block].add(is_alone)
        return found


@settings(max_examples=15)
@given(
    shape=st.sampled_from(SHAPES),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.01, 0.2]),
    strange=st.sampled_from([0.0, 0.2]),
    aggregators=st.sampled_from([1, 4, 16]),
    counts=st.lists(st.integers(0, 900), min_size=1, max_size=3),
)
def test_sums_are_right_and_workers_agree_whatever_links_do(
    shape: tuple[int, ...], seed: int, loss: float, strange: float, aggregators: int,
    counts: list[int],
) -> None:  # fmt: skip
    graph = tree_of(shape)
    jobs = [
        a2tp_on(graph, servers, number=number, aggregators=aggregators)
        for number, servers in ((1, 1), (2, 0))
    ]
    rng = Random(seed)
    network = Marking(graph, jobs, misbehaving(rng, loss, strange, strange), seed)

    for count in counts:
        tensors = [small(rng, len(job.workers), count) for job in jobs]
        for run in network.reduce(*tensors):
            run.check()

    for job in jobs:
        assert all(len(each) == 1 for each in network.alone(job).values())


def test_a_job_that_is_in_the_way_takes_fewer_aggregators() -> None:
    """Two jobs of two aggregators: results say so, and some blocks pass them by from the first."""
    graph = tree_of((4,))
    jobs = [a2tp_on(graph, number=number, aggregators=2) for number in (1, 2)]
    network = Network(graph, jobs, misbehaving(Random(1), 0, 0, 0.5))
    for run in network.reduce(*(np.ones((3, 64 * 400), np.float32) for _ in jobs)):
        run.check()

    wanted = [p for _, _, p in network.hops if message(p) == PARAMETER and p[RACK_AT] & WANTED]
    assert wanted
    firsts = [p for src, _, p in network.hops if src == "h0" and message(p) == GRADIENT]
    assert any(p[MESSAGE_AT] & RESEND for p in firsts)


def test_a_job_alone_takes_aggregators_for_all_its_blocks() -> None:
    graph = tree_of((4,))
    network = Network(graph, [a2tp_on(graph, aggregators=64)])
    network.reduce(np.ones((3, 64 * 400), np.float32))

    assert not any(p[MESSAGE_AT] & RESEND for _, _, p in network.hops)
    assert network.retransmissions == 0


def test_a_straggler_is_known_to_all_workers() -> None:
    """h0's line is slow: gradients of any worker say so in what the server sends to all."""
    graph = tree_of((4,))

    def fate(src: str, dst: str, _packet: bytes) -> list[int]:
        return [40 * DELAY_PS if "h0" in (src, dst) else DELAY_PS]

    network = Network(graph, [a2tp_on(graph, aggregators=64)], fate)
    network.reduce(np.ones((3, 64 * 100), np.float32))

    late = [p for _, dst, p in network.hops if dst == "h2" and message(p) == PARAMETER]
    flags = [bool(p[MESSAGE_AT] & 4) for p in late]  # of a parameter: a worker was late
    assert sum(flags) > len(flags) // 2
    assert len(hosts(graph)) == 4


@pytest.mark.parametrize(
    ("name", "wanted", "marked", "timely", "share", "window"),
    [
        # b = 1/8: above H by 0.025; c stays 1: 20 * (1 - 0.025 / 1.9) = 19.7
        ("a2tp", 20, 0, 20, 19, 21),
        # c = 63/64: 0.025 ** (63/64) = 0.0265
        ("a2tp", 20, 0, 0, 19, 21),
        # b = 1/16 is below H; a = 1/8: 20 * (1 - 1/16) = 18.75, and the share is no more
        ("a2tp", 10, 20, 20, 18, 18),
        ("a2tp", 0, 0, 20, 21, 21),
        # b = 1/16: above 0.05 by 0.0125: 20 * (1 - 0.0125 / 2) = 19.9
        ("a2tp-ns3", 20, 0, 20, 19, 25),
        ("a2tp-ns3", 0, 0, 20, 25, 25),
    ],
)
def test_windows_change_as_the_sources_formulas_say(
    name: str, wanted: int, marked: int, timely: int, share: int, window: int
) -> None:
    store = Store()
    at = store.allocate("words", CONTROL_WORDS)
    block = store.arena.words[at : at + CONTROL_WORDS]
    chosen = find_window(name)
    begin_window(block, chosen, most=40, growth=5)
    assert (block[WINDOW], block[SHARE]) == (20, 20)
    block[BLOCK_WANTED], block[MARKED], block[TIMELY] = wanted, marked, timely

    chosen.on_round(store.arena, at, 20, 0)

    assert (block[SHARE], block[WINDOW]) == (share, window)


@pytest.mark.parametrize("results", [0, 1, 2, 20])
def test_a_round_in_which_all_results_are_in_time_leaves_haste_at_1(results: int) -> None:
    """Also one of a single result; without any, none is late and none is in time."""
    store = Store()
    at = store.allocate("words", CONTROL_WORDS)
    block = store.arena.words[at : at + CONTROL_WORDS]
    chosen = find_window("a2tp")
    begin_window(block, chosen, most=40, growth=5)
    before = int(block[HASTE])
    block[TIMELY] = results
    chosen.on_round(store.arena, at, results, 0)
    assert (block[HASTE] == before) == (results > 0)


@pytest.mark.parametrize("timely", [20, 0])
def test_shares_follow_smoothed_portions(timely: int) -> None:
    """Ten rounds in which all blocks were wanted, in floats: b rises, and c stays 1 or falls."""
    store = Store()
    at = store.allocate("words", CONTROL_WORDS)
    block = store.arena.words[at : at + CONTROL_WORDS]
    chosen = find_window("a2tp")
    begin_window(block, chosen, most=2000, growth=5)
    share, b, c = 1000, 0.0, 1.0
    for _ in range(10):
        block[BLOCK_WANTED], block[TIMELY] = block[SHARE], timely
        chosen.on_round(store.arena, at, 20, 0)
        b, c = b + (1 - b) / 8, c + (timely / 20 - c) / 64
        share = int(share * (1 - (b - 0.1) ** c / 1.9))
    assert abs(block[SHARE] - share) <= 2


def test_marks_that_one_worker_alone_has_seen_go_back_in_its_next_gradient() -> None:
    """A mark that the server has heard of, from anybody, is no news to it."""
    graph = tree_of((3,))
    network = Network(graph, [a2tp_on(graph)])
    mine = state.open_worker(network.store.arena, network.parties[0].agents[0].block)
    marks = mine.rows.reshape(-1, state.POSITION_WORDS)[:, state.MARKS]
    head = np.zeros(VALUES_AT, np.uint8)
    cases = [  # flags, congestion bits, rack; the result's marks, and whether they are echoed
        (0, 0, 0, 0, 0),
        (CONGESTED, 0, 0, 1, 0),
        (0, ECN_MARKED, 5, 0, 1),
        (0, ECN_CAPABLE, 0, 0, 0),
        (CONGESTED, ECN_MARKED, WANTED | 5, 1 | 2, 0),
        (LATE, 0, WANTED, 2 | 4, 0),
    ]
    for flags, congestion, rack, wanted, echo in cases:
        mine.state[state.ECHO] = 0
        head[MESSAGE_AT], head[IP_TOS_AT], head[RACK_AT] = flags, congestion, rack
        shares.note_marks(mine, 2, head)
        assert (marks[2], mine.state[state.ECHO]) == (wanted, echo)

    head[:] = 0
    head[IP_AT], head[IP_TOS_AT] = 0x45, ECN_CAPABLE
    mine.state[state.ECHO], mine.state[state.IS_LATE] = 1, 0
    shares.write_echoes(mine, head)
    assert head[IP_TOS_AT] == ECN_MARKED
    # 0x4503 and zeros: the checksum is the complement
    assert head[IP_CHECKSUM_AT : IP_CHECKSUM_AT + 2].tolist() == [0xBA, 0xFC]
    assert head[PROPOSAL_AT : PROPOSAL_AT + 2].tolist() == [0, 0]
    assert mine.state[state.ECHO] == 0
    head[IP_TOS_AT], mine.state[state.IS_LATE] = ECN_CAPABLE, 1
    shares.write_echoes(mine, head)
    assert head[IP_TOS_AT] == ECN_CAPABLE
    assert head[PROPOSAL_AT : PROPOSAL_AT + 2].tolist() == [0, 1]


def test_a_round_ends_with_the_blocks_that_were_allowed_at_its_start(
    plain_address: Callable[[Callable[..., int]], int],
) -> None:
    """The window allows 4 blocks, 2 of them with aggregators; one of the first 4 is congested, two
    are wanted, and one was late. The round ends 7 ps after its start, and a trip takes 6.
    """
    told: list[tuple[list[int], int, int]] = []

    def note(_arena: Arena, block: int, results: int, now_ps: int) -> int:
        assert block == at + AGENT_WORDS + state.CONTROL
        told.append((own[facts].tolist(), results, now_ps))
        return 0

    graph = tree_of((3,))
    network = Network(graph, [a2tp_on(graph)])
    arena = network.store.arena
    at = network.parties[0].agents[0].block
    mine = state.open_worker(arena, at)
    own, rows = mine.state, mine.rows.reshape(-1, state.POSITION_WORDS)
    own[state.BASE], own[state.NEXT] = 8, 11  # 11 has not been sent
    own[state.LIMIT], own[state.ROUND_END], own[state.SHARE_END] = 12, 12, 10
    own[[state.ALLOWED, state.SHARE]], own[state.BASE_PS] = (4, 2), 6
    own[state.ROUND_PS] = 100
    rows[:, state.SEQUENCE] = state.ANSWERED
    rows[[0, 1, 2, 3], state.MARKS] = 1 | 2, 2, 4, 0
    arena.words[at + AGENT_WORDS + state.CONTROL + ON_ROUND] = plain_address(note)
    shares.advance(arena, at, mine, 106)
    facts = [state.BASE, state.RESULTS, state.MARKED, state.WANTED, state.TIMELY, state.IS_LATE]
    assert own[facts].tolist() == [11, 3, 1, 2, 2, 0]
    assert own[[state.LIMIT, state.ROUND_END]].tolist() == [15, 12]
    assert rows[[4, 5, 6], state.IS_ALONE].tolist() == [1, 1, 1]  # behind the round's two

    own[state.NEXT] = 12
    shares.advance(arena, at, mine, 107)
    assert told == [([12, 4, 1, 2, 3, 1], 4, 107)]
    assert own[facts].tolist() == [12, 0, 0, 0, 0, 1]
    limit = 15
    assert own[[state.ROUND_END, state.ROUND_PS]].tolist() == [limit, 107]
    assert own[state.SHARE_END] == limit + own[state.SHARE]
    assert rows[7, state.IS_ALONE] == 0


def test_haste_is_smoothed_over_64_rounds() -> None:
    """All results late: 1 - 1/64, in units of 2^-20."""
    store = Store()
    at = store.allocate("words", CONTROL_WORDS)
    block = store.arena.words[at : at + CONTROL_WORDS]
    window = find_window("a2tp")
    begin_window(block, window, most=8, growth=1)
    window.on_round(store.arena, at, 8, 0)
    assert block[HASTE] == 2**20 - 2**14
