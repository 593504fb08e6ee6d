"""PANAMA from tensor to tensor, on links that misbehave and mark; its trees, windows and loads."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import Fate, Network, PanamaJob, misbehaving, on_time

from ringleaf.core.arena import Store
from ringleaf.core.headers import ECN_MARKED, IP_AT, IP_TOS_AT
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.congestion import CONTROL_WORDS, MARKED, MOST_WINDOW, WINDOW, begin_window
from ringleaf.ina.loads import Aggregation
from ringleaf.ina.panama.control import choose_job, choose_trees, group_of
from ringleaf.ina.panama.loads import demand
from ringleaf.ina.panama.pacing import IN_FLIGHT, TREE_WORDS
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.switchml.state import EXTRAS_AT
from ringleaf.ina.switchml.wire import BLOCK_AT, TREE_AT, VALUES_AT
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.ina.window_registry import find_window
from ringleaf.topologies.graph import attachment, hosts, natural
from ringleaf.topologies.registry import build
from ringleaf.topologies.ways import TopologyRoutes

SPINES = "leafspine,leaves=3,spines=3,hosts=2"


def marked(packet: bytes) -> bytes:
    """The packet as a switch with a long queue would send it."""
    head = bytearray(packet)
    head[IP_TOS_AT] |= ECN_MARKED
    head[IP_AT + 10 : IP_AT + 12] = bytes(2)
    words = (int.from_bytes(head[at : at + 2]) for at in range(IP_AT, IP_AT + 20, 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    head[IP_AT + 10 : IP_AT + 12] = (~total & 0xFFFF).to_bytes(2)
    return bytes(head)


class Marking(Network):
    """A network that marks some of the packets on its links."""

    def __init__(self, graph: object, job: PanamaJob, fate: Fate, share: float, seed: int) -> None:
        self.rng, self.share = Random(seed), share
        super().__init__(graph, [job], fate)  # type: ignore[arg-type]

    def send(self, src: str, dst: str, packet: bytes) -> None:
        super().send(src, dst, marked(packet) if self.rng.random() < self.share else packet)

    def windows(self, rank: int) -> list[int]:
        """A worker's windows, tree by tree."""
        at = self.parties[0].agents[rank].block + AGENT_WORDS + EXTRAS_AT
        first, job = int(self.words[at]), self.jobs[0]
        assert isinstance(job, PanamaJob)
        return [int(self.words[first + tree * TREE_WORDS + WINDOW]) for tree in range(job.trees)]


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    trees=st.integers(1, 3),
    each=st.integers(1, 4),
    loss=st.sampled_from([0.0, 0.01, 0.2]),
    strange=st.sampled_from([0.0, 0.2]),
    share=st.sampled_from([0.0, 0.05, 0.5]),
    counts=st.lists(st.integers(0, 900), min_size=1, max_size=3),
)
def test_every_sum_is_right_whatever_links_do_and_however_small_windows_become(
    seed: int, trees: int, each: int, loss: float, strange: float, share: float, counts: list[int]
) -> None:
    rng = Random(seed)
    job = PanamaJob(7, trees * each, trees=trees)
    network = Marking(build(SPINES), job, misbehaving(rng, loss, strange, strange), share, seed)
    generator = np.random.default_rng(seed)
    tensors = [
        generator.integers(-(2**31), 2**31, (6, count)).astype(np.int32)
        if rng.random() < 0.3
        else generator.standard_normal((6, count)).astype(np.float32)
        for count in counts
    ]

    for part in (tensors[:1], tensors[1:]):
        for run in network.stream(*part):
            run.check()
    for agent in network.parties[0].agents:
        first = int(network.words[agent.block + AGENT_WORDS + EXTRAS_AT])
        left = [int(network.words[first + t * TREE_WORDS + IN_FLIGHT]) for t in range(trees)]
        assert left == [0] * trees


class Crossed(Marking):
    """h0 loses the result of block 2, and h1 that of block 3, so they go on with 5 and with 4.

    Then all windows shrink to one packet, and h0 has sent 5 but not 4, h1 has sent 4 but not 5.
    """

    def __init__(self) -> None:
        self.lost: set[tuple[str, int]] = set()
        self.sent: set[tuple[str, int]] = set()
        super().__init__(build(SPINES), PanamaJob(1, 2), self.lose, 0.0, 1)

    def lose(self, src: str, dst: str, packet: bytes) -> list[int]:
        place = dst, int.from_bytes(packet[BLOCK_AT : BLOCK_AT + 4])
        if place in {("h0", 2), ("h1", 3)} - self.lost:
            self.lost.add(place)
            return []
        return on_time(src, dst, packet)

    def send(self, src: str, dst: str, packet: bytes) -> None:
        super().send(src, dst, packet)
        self.sent.add((src, int.from_bytes(packet[BLOCK_AT : BLOCK_AT + 4])))
        if {("h0", 5), ("h1", 4)} <= self.sent and self.share == 0:
            assert not {("h0", 4), ("h1", 5)} & self.sent
            self.share = 1.0
            for agent in self.parties[0].agents:
                at = agent.block + AGENT_WORDS + EXTRAS_AT
                self.words[int(self.words[at]) + WINDOW] = 1


def test_workers_that_go_on_in_different_orders_do_not_wait_for_one_another() -> None:
    network = Crossed()

    (run,) = network.stream(np.ones((6, 64 * 40), np.int32))

    run.check()
    assert network.share == 1
    assert network.windows(0) == network.windows(1) == [1]


def test_blocks_are_dealt_to_trees_and_each_link_up_has_its_part() -> None:
    """12 blocks and 3 trees: each leaf sends 4 blocks to each spine, and gets as many back."""
    network = Marking(build(SPINES), PanamaJob(1, 6, trees=3), on_time, 0, 1)
    network.stream(np.ones((6, 64 * 12), np.int32))

    each = Counter((src, dst) for src, dst, _ in network.hops if {src[0], dst[0]} == {"s"})
    leaves, spines = ("s0", "s1", "s2"), ("s3", "s4", "s5")
    assert each == {
        way: 4 for leaf in leaves for spine in spines for way in ((leaf, spine), (spine, leaf))
    }
    trees = {packet[TREE_AT] for src, _, packet in network.hops if src == "h0"}
    assert trees == {0, 1, 2}


def test_groups_of_a_jobs_trees_have_the_job_in_their_lowest_byte() -> None:
    """So 16 bits have room for 256 trees of 256 jobs."""
    assert [group_of(job, tree) for job, tree in ((255, 0), (0, 1), (5, 255))] == [255, 256, 0xFF05]


def test_marks_anywhere_shrink_the_window_of_all_workers_and_of_that_tree_alone() -> None:
    class OneLink(Marking):
        def send(self, src: str, dst: str, packet: bytes) -> None:
            self.share = float(src == "h5" and packet[TREE_AT] == 1)
            super().send(src, dst, packet)

    network = OneLink(build(SPINES), PanamaJob(1, 24, trees=3), on_time, 0, 1)
    network.stream(np.ones((6, 64 * 240), np.int32))

    for rank in range(6):
        most, shrunk, other = network.windows(rank)
        assert most == other == 8
        assert shrunk < 4


def test_dctcp_by_hand() -> None:
    """alpha is 1 at first; half of the results marked: 15/16 + 1/32, then the window is cut."""
    store = Store()
    at = store.allocate("words", CONTROL_WORDS)
    block = store.arena.words[at : at + CONTROL_WORDS]
    window = find_window("dctcp")
    begin_window(block, window, most=32, growth=9)
    assert block[WINDOW] == block[MOST_WINDOW] == 32

    block[MARKED] = 8
    window.on_round(store.arena, at, 16, 0)
    assert block[WINDOW] == int(32 * (1 - (15 / 16 + 1 / 32) / 2))  # 16.5
    block[MARKED] = 0
    window.on_round(store.arena, at, 16, 0)
    assert block[WINDOW] == 17  # 17.5
    block[MARKED] = 1
    window.on_round(store.arena, at, 16, 0)
    alpha = ((15 / 16 + 1 / 32) * 15 / 16) * 15 / 16 + 1 / 256
    assert block[WINDOW] == int(17.5 * (1 - alpha / 2))


def request(graph: object, **changed: int | None) -> JobRequest:
    given: dict[str, object] = {
        "number": 1,
        "members": hosts(graph),  # type: ignore[arg-type]
        "servers": (),
        "share": ResourceShare(),
        "ring": 0,
        "lanes": 64,
        "slots": None,
        "rtt_ps": 8_000_000,
        "ecmp": False,
        **changed,
    }
    return JobRequest(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("topology", "changed", "count"),
    [
        (SPINES, {}, 3),
        (SPINES, {"trees": 2}, 2),
        (SPINES, {"slots": 2}, 2),
        ("fattree,k=4", {}, 4),
        ("leafspine,leaves=1,spines=2,hosts=3", {}, 1),
    ],
)
def test_there_is_a_tree_for_each_root_or_as_many_as_asked_for(
    topology: str, changed: dict[str, int], count: int
) -> None:
    graph = build(topology)
    asked = request(graph, **changed)
    trees = choose_trees(graph, asked)
    job = choose_job(graph, trees, asked)

    assert len({tree.root for tree in trees}) == len(trees) == count
    assert job.slots % count == 0
    if "slots" in changed:
        assert job.slots == changed["slots"]


def test_jobs_of_one_tree_take_the_roots_in_turn() -> None:
    graph = build(SPINES)
    racks = {attachment(graph, host) for host in hosts(graph)}
    spines = sorted(set(graph) - racks - set(hosts(graph)), key=natural)
    given = [choose_trees(graph, request(graph, number=job, trees=1)) for job in (1, 2, 3, 4)]
    assert [[tree.root for tree in trees] for trees in given] == [
        [spines[0]], [spines[1]], [spines[2]], [spines[0]],
    ]  # fmt: skip


def test_a_share_without_a_slot_for_each_tree_is_refused() -> None:
    graph = build(SPINES)
    few = request(graph, share=ResourceShare(0, 2, 4))  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match="panama job 1: a switch must have a slot for each of 3 t"
    ):
        choose_job(graph, choose_trees(graph, few), few)
    many = request(graph, slots=10_000)
    with pytest.raises(
        ConfigError, match=r"panama job 1: slots must be at most 4096, .* got 10000"
    ):
        choose_job(graph, choose_trees(graph, many), many)


def test_the_load_of_the_busiest_link_falls_by_the_number_of_trees() -> None:
    """60 blocks, on links between switches four times as slow as hosts'."""
    ways = TopologyRoutes(build("leafspine,leaves=2,spines=3,hosts=2,rate=25G,host_rate=100G"))
    members = (0, 1, 2, 3)
    frame_ps = {25: (VALUES_AT + 256 + 24) * 8 * 40, 100: (VALUES_AT + 256 + 24) * 8 * 10}

    one, three = (
        demand(ways, Aggregation(members, (), 60 * 64, is_float=False, lanes=64, trees=trees))
        for trees in (1, None)
    )

    # The last block must still go on by the other links: a hop of 1 us, and the frame again.
    rest_ps = 1_000_000 + frame_ps[100] + 1_000_000
    assert one.loads.least_ps() == pytest.approx(60 * frame_ps[25] + 2 * rest_ps, rel=0.2)
    busy = [60 * frame_ps[25], 20 * frame_ps[25]]
    assert one.loads.least_ps() - three.loads.least_ps() == pytest.approx(busy[0] - busy[1])


def test_panama_is_a_system_with_programs_of_its_own() -> None:
    assert SYSTEMS["panama"].program(256) == "panama-256"
    with pytest.raises(ConfigError, match="panama: lanes must be one of"):
        SYSTEMS["panama"].program(65)
