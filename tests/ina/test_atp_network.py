"""ATP from tensor to tensor, through the real P4 program, on links that misbehave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import DELAY_PS, LINK, Fate, Network, misbehaving, on_time, tree_of
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from test_switchml_network import floats, integers

from ringleaf.headers import ECN_MARKED
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp.control import Job
from ringleaf.ina.atp.ledger import ECMP
from ringleaf.ina.atp.state import ALLOWED, FLIGHT, INCREASE
from ringleaf.ina.atp.wire import (
    COLLISION,
    GRADIENT,
    JOB_AT,
    MESSAGE_AT,
    PARAMETER,
    RAW,
    RESEND,
    SEQUENCE_AT,
    WORKERS_AT,
)
from ringleaf.ina.flight import SMOOTHED_PS
from ringleaf.ina.switchml.control import Job as SwitchMLJob
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.graph import add_host, add_switch, connect, hosts, new_graph
from ringleaf.topologies.registry import build

ONE_RACK, TWO_RACKS, THREE_TIERS = (5,), (2, 3), (2, 2, 2)
SHAPES = [(2,), ONE_RACK, TWO_RACKS, (3, 2), THREE_TIERS]


def job_on(
    graph: nx.Graph[str],
    servers: int = 1,
    *,
    number: int = 1,
    aggregators: int = 64,
    window: int = 8,
    lanes: int = 64,
) -> Job:
    """All hosts; the last ones are servers, or each has one if there are to be none."""
    names = hosts(graph)
    workers = names[: len(names) - servers]
    return Job(
        number,
        tuple(workers),
        tuple(names[len(workers) :] or names),
        aggregators=aggregators,
        window=window,
        lanes=lanes,
    )


def wide(rng: Random, ranks: int, count: int) -> np.ndarray:
    """Some values that do not fit, and sums that saturate on the way."""
    return floats(rng, ranks, count) * np.float32(10.0 ** rng.randint(-2, 3))


def small(rng: Random, ranks: int, count: int) -> np.ndarray:
    """Values whose sums fit."""
    values = np.random.default_rng(rng.getrandbits(32)).uniform(-1, 1, (ranks, count))
    return values.astype(np.float32)


def message(packet: bytes) -> int:
    return packet[MESSAGE_AT] >> 4


def sequence(packet: bytes) -> int:
    return int.from_bytes(packet[SEQUENCE_AT : SEQUENCE_AT + 4], "big")


def free_aggregators(network: Network) -> bool:
    """Whether no switch keeps anything."""
    return not any(
        switch.read_register("Atp.aggregators.arrived", aggregator)
        for switch in network.switches.values()
        for aggregator in range(64)
    )


@settings(max_examples=30)
@given(
    shape=st.sampled_from(SHAPES),
    servers=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
    twice=st.sampled_from([0.0, 0.1]),
    late=st.sampled_from([0.0, 0.3]),
    aggregators=st.sampled_from([1, 2, 5, 8, 64]),
    window=st.sampled_from([1, 2, 8]),
    counts=st.lists(st.integers(0, 700), min_size=1, max_size=3),
)
def test_every_sum_is_right_whatever_links_do(
    shape: tuple[int, ...],
    servers: int,
    seed: int,
    loss: float,
    twice: float,
    late: float,
    aggregators: int,
    window: int,
    counts: list[int],
) -> None:
    rng = Random(seed)
    graph = tree_of(shape)
    servers = min(servers, len(hosts(graph)) - 1)
    job = job_on(graph, servers, number=rng.randint(1, 255), aggregators=aggregators, window=window)
    network = Network(graph, [job], misbehaving(rng, loss, twice, late))

    tensors = [
        rng.choice([floats, integers, wide])(rng, len(job.workers), count) for count in counts
    ]
    for part in (tensors[:1], tensors[1:]):  # those of a part follow one another without a gap
        for run in network.stream(*part):
            run.check()


@settings(max_examples=5)
@given(
    spec=st.sampled_from(
        [
            *("fattree,k=4", "leafspine,leaves=3,spines=2,hosts=3", "torus2d,x=3,y=4"),
            *("bcube,n=4,k=1", "hammingmesh,a=2,b=2,x=2,y=2"),
        ]
    ),
    servers=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
    strange=st.sampled_from([0.0, 0.02]),
)
def test_sums_are_right_on_every_topology(
    spec: str, servers: int, seed: int, strange: float
) -> None:
    rng = Random(seed)
    graph = build(spec)
    job = job_on(graph, servers)
    network = Network(graph, [job], misbehaving(rng, strange, strange, strange))

    for count in (rng.randint(1, 1000), 65):
        for run in network.reduce(floats(rng, len(job.workers), count)):
            run.check()


@settings(max_examples=8)
@given(
    shape=st.sampled_from([ONE_RACK, TWO_RACKS, THREE_TIERS]),
    seed=st.integers(0, 2**32 - 1),
    strange=st.sampled_from([0.0, 0.1]),
    aggregators=st.sampled_from([1, 3, 16]),
    beside_switchml=st.booleans(),
)
def test_jobs_share_too_few_aggregators(
    shape: tuple[int, ...], seed: int, strange: float, aggregators: int, beside_switchml: bool
) -> None:
    rng = Random(seed)
    graph = tree_of(shape)
    jobs = [
        job_on(graph, servers, number=number, aggregators=aggregators)
        for number, servers in ((1, 1), (2, 0), (30, 2))
    ]
    ranks = [len(job.workers) for job in jobs]
    everyone: list[Job | SwitchMLJob] = [*jobs, *[SwitchMLJob(1, 3)] * beside_switchml]
    ranks += [len(hosts(graph))] * beside_switchml
    network = Network(graph, everyone, misbehaving(rng, strange, strange, strange))

    for _ in range(2):
        tensors = [floats(rng, each, rng.randint(0, 600)) for each in ranks]
        for run in network.reduce(*tensors):
            run.check()


@pytest.mark.parametrize("shape", [ONE_RACK, TWO_RACKS])
def test_packets_of_256_lanes(shape: tuple[int, ...]) -> None:
    rng = Random(1)
    graph = tree_of(shape)
    job = job_on(graph, lanes=256)
    network = Network(graph, [job], misbehaving(rng, 0.1, 0.1, 0.1))

    for make in (floats, integers, wide):
        for run in network.reduce(make(rng, len(job.workers), 2000)):
            run.check()


@pytest.mark.parametrize("servers", [1, 3])
def test_sequence_numbers_wrap_around(servers: int) -> None:
    rng = Random(2)
    graph = tree_of((3, 2))
    job = job_on(graph, servers)
    fate = misbehaving(rng, 0.1, 0.1, 0.1)
    network = Network(graph, [job], fate, first=2**32 - 10)

    for _ in range(2):
        for run in network.reduce(floats(rng, len(job.workers), 64 * 20)):
            run.check()
    seen = {sequence(packet) for _, _, packet in network.hops}
    assert {2**32 - 10, 2**32 - 1, 0, 29} <= seen


def test_64_workers() -> None:
    graph = tree_of((8, 8))
    names = hosts(graph)
    job = Job(1, tuple(names), (names[5],), aggregators=64, window=4)
    network = Network(graph, [job], misbehaving(Random(3), 0.01, 0.01, 0.01))

    (run,) = network.reduce(integers(Random(3), 64, 300))

    run.check()


def test_nan_and_infinity_come_back_where_they_were() -> None:
    graph = tree_of(TWO_RACKS)
    job = job_on(graph)
    parts = np.ones((len(job.workers), 200), np.float32)
    parts[1, 70], parts[2, 130], parts[3, 199] = np.nan, np.inf, 1e30

    (run,) = Network(graph, [job]).reduce(parts)

    expected = parts.sum(axis=0)
    for result in run.results:
        assert result.tolist() == pytest.approx(expected.tolist(), nan_ok=True)


def test_a_quiet_network_carries_each_block_once_per_link_and_direction() -> None:
    graph = tree_of(TWO_RACKS)  # racks s1: h0 to h2, s2: h3, h4 and the server h5
    job = job_on(graph)
    network = Network(graph, [job])
    network.reduce(np.ones((5, 64 * 10), np.float32))

    assert network.retransmissions == 0
    each = Counter((src, dst) for src, dst, _ in network.hops)
    gradients = {("s1", "s0"), ("s0", "s2"), ("s2", "h5"), *((f"h{i}", "s1") for i in range(3))}
    gradients |= {("h3", "s2"), ("h4", "s2")}
    parameters = {(dst, src) for src, dst in gradients}
    assert each == dict.fromkeys(gradients | parameters, 10)
    network.settle()
    assert free_aggregators(network)


def lose(network_hops: list[tuple[int, str, str]]) -> Fate:
    """Lose what is listed (message, from, to), once per time that it is there."""
    left = Counter(network_hops)

    def fate(src: str, dst: str, packet: bytes) -> list[int]:
        key = (message(packet), src, dst)
        if left[key]:
            left[key] -= 1
            return []
        return [DELAY_PS]

    return fate


@pytest.mark.parametrize(
    "losses",
    [
        [(GRADIENT, "h0", "s1")],
        [(GRADIENT, "s1", "s0")],
        [(GRADIENT, "s2", "h5")],
        [(PARAMETER, "h5", "s2")],
        [(PARAMETER, "s0", "s1")],
        [(PARAMETER, "s1", "h0")],
        [(GRADIENT, "h0", "s1")] * 2,
        [(GRADIENT, "h0", "s1"), (GRADIENT, "h1", "s1"), (GRADIENT, "h3", "s2")],
        [(GRADIENT, "s1", "s0")] * 2,
        [(GRADIENT, "s1", "s0"), (PARAMETER, "h5", "s2")],
        [(PARAMETER, "s1", "h0"), (PARAMETER, "s1", "h0")],
        [(GRADIENT, "h0", "s1"), (PARAMETER, "h5", "s2"), (PARAMETER, "s1", "h0")],
    ],
)
@pytest.mark.parametrize("blocks", [1, 9])
def test_a_lost_packet_is_made_good(losses: list[tuple[int, str, str]], blocks: int) -> None:
    graph = tree_of(TWO_RACKS)
    network = Network(graph, [job_on(graph)], lose(losses))

    for run in network.reduce(floats(Random(4), 5, 64 * blocks)):
        run.check()
    network.settle()
    assert free_aggregators(network)
    assert network.retransmissions > 0


def test_a_probe_takes_the_partial_sum_along() -> None:
    graph = tree_of((4,))
    network = Network(graph, [job_on(graph)], lose([(GRADIENT, "h0", "s0")]))
    (run,) = network.reduce(np.ones((3, 64), np.float32))

    run.check()
    to_server = [packet for src, dst, packet in network.hops if (src, dst) == ("s0", "h3")]
    assert all(packet[MESSAGE_AT] & RESEND for packet in to_server)
    # All time out; h0's probe is first, and takes h1 and h2 along. Only h0 has to send again.
    assert to_server[0][WORKERS_AT + 7] == 0b110
    assert network.retransmissions == 1


def test_what_waits_in_an_aggregator_for_one_that_has_passed_is_fetched() -> None:
    """h0's block of job 2 collides, and h2's takes the aggregator that is free by then."""
    graph = tree_of((4,))
    jobs = [
        Job(number, ("h0", other), ("h3",), aggregators=1, window=1)
        for number, other in ((1, "h1"), (2, "h2"))
    ]
    network = Network(graph, jobs, slow({("h2", "s0"): 10}))

    for run in network.reduce(*(small(Random(6), 2, 64) for _ in jobs)):
        run.check()
    second = [
        (packet[MESSAGE_AT] & (COLLISION | RESEND), packet[WORKERS_AT + 7])
        for _, dst, packet in network.hops
        if dst == "h3" and packet[JOB_AT] == 2
    ]
    assert second[:2] == [(COLLISION, 0b01), (RESEND, 0b10)]
    assert network.retransmissions == 0


def slow(hops: Mapping[tuple[str, str], int]) -> Fate:
    """These links take so many times as long as others; they lose nothing, nor reorder."""

    def fate(src: str, dst: str, _packet: bytes) -> list[int]:
        return [DELAY_PS * hops.get((src, dst), 1)]

    return fate


@settings(max_examples=15)
@given(
    shape=st.sampled_from([ONE_RACK, TWO_RACKS, THREE_TIERS]),
    seed=st.integers(0, 2**32 - 1),
    aggregators=st.sampled_from([1, 3, 16]),
    window=st.sampled_from([2, 8, 32]),
    most=st.sampled_from([1, 20, 200]),
)
def test_nothing_is_sent_again_where_nothing_is_lost(
    shape: tuple[int, ...], seed: int, aggregators: int, window: int, most: int
) -> None:
    """Whatever collides, and however long links take; timeouts are at 20 hops."""
    rng = Random(seed)
    graph = tree_of(shape)
    jobs = [
        job_on(graph, servers, number=number, aggregators=aggregators, window=window)
        for number, servers in ((1, 1), (2, 0), (30, 2))
    ]
    ends = [(a, b) for pair in graph.edges for a, b in (pair, pair[::-1])]
    network = Network(graph, jobs, slow({pair: rng.randint(1, most) for pair in ends}))

    tensors = [small(rng, len(job.workers), rng.randint(0, 1500)) for job in jobs]
    for run in network.reduce(*tensors):
        run.check()
    assert network.retransmissions == 0


def again_from(network: Network, host: str) -> list[bytes]:
    """Probes and resends of a host, as they left it."""
    return [
        packet
        for src, _, packet in network.hops
        if src == host and message(packet) == GRADIENT and packet[MESSAGE_AT] & RESEND
    ]


def test_one_probe_asks_for_all_that_only_wait() -> None:
    """h1 is 90 hops late; the first timeout is at 80."""
    graph = tree_of((3,))
    network = Network(graph, [job_on(graph, window=8)], slow({("h1", "s0"): 90}))

    for run in network.reduce(floats(Random(5), 2, 64 * 4)):
        run.check()
    assert len(again_from(network, "h0")) == 1
    assert network.retransmissions == 0


def test_a_request_lets_probes_ask_for_all_that_are_overdue() -> None:
    """All are lost. The first timeout is at 80 hops, the next one would be at 160."""
    graph = tree_of((3,))
    network = Network(graph, [job_on(graph, window=8)], lose([(GRADIENT, "h0", "s0")] * 4))

    for run in network.reduce(floats(Random(5), 2, 64 * 4)):
        run.check()
    assert len(again_from(network, "h0")) == 8  # each probed and sent again
    assert network.retransmissions == 4
    assert network.now_ps < 120 * DELAY_PS


@pytest.mark.parametrize(("ecmp", "probes"), [(0, 1), (1, 2)])
def test_where_paths_are_hashed_a_second_probe_tells_of_a_loss(ecmp: int, probes: int) -> None:
    graph = tree_of((3,))
    network = Network(graph, [job_on(graph)], lose([(GRADIENT, "h0", "s0")]))
    server = network.parties[0].agents[-1]
    network.words[server.block + AGENT_WORDS + ECMP] = ecmp

    for run in network.reduce(floats(Random(5), 2, 64)):
        run.check()
    assert len(again_from(network, "h0")) == probes + 1
    assert network.retransmissions == 1


def test_round_trips_of_what_was_mended_are_no_samples() -> None:
    """The timeout of a worker that waited for another's loss stays as it was before a sample."""
    graph = tree_of((3,))
    network = Network(graph, [job_on(graph)], lose([(GRADIENT, "h0", "s0")]))
    network.reduce(floats(Random(5), 2, 64))

    own = [agent.block + AGENT_WORDS + FLIGHT for agent in network.parties[0].agents[:2]]
    assert [network.words[at + SMOOTHED_PS] for at in own] == [0, 0]


def test_what_was_sent_before_three_answered_ones_is_sent_again_at_once() -> None:
    graph = tree_of((3,))
    network = Network(graph, [job_on(graph)], lose([(GRADIENT, "h0", "s0")]))

    for run in network.reduce(floats(Random(5), 2, 64 * 16)):
        run.check()
    assert network.now_ps < 40 * DELAY_PS  # the first timeout would be after 80


def test_collisions_lead_to_other_aggregators() -> None:
    """Two jobs begin with the same few, and find their own among many."""
    graph = tree_of((3,))
    jobs = [job_on(graph, number=number, aggregators=24) for number in (1, 2)]
    network = Network(graph, jobs)
    tensors = [floats(Random(6), 2, 64 * 150) for _ in jobs]

    for run in network.reduce(*tensors):
        run.check()
    collided = [
        bool(packet[MESSAGE_AT] & COLLISION)
        for _, dst, packet in network.hops
        if dst == "h2" and message(packet) == GRADIENT
    ]
    half = len(collided) // 2
    assert sum(collided[:half]) > sum(collided[half:]) == 0


def test_only_overflowing_blocks_go_raw() -> None:
    graph = tree_of((4,))
    parts = np.full((3, 64 * 4), 100.0, np.float32)
    parts[:, 64:128] = 1500.0  # each fits, their sum does not
    parts[1, 130] = 5000.0  # does not fit
    network = Network(graph, [job_on(graph)])

    (run,) = network.reduce(parts)

    run.check()
    raw = {sequence(packet) for _, _, packet in network.hops if packet[MESSAGE_AT] & RAW}
    assert raw == {1, 2}


def test_saturated_sums_do_not_come_back() -> None:
    """Overflow up and then down again by a third worker must not look like a sum."""
    graph = tree_of((2, 2))
    for order in ([2000.0, 2000.0, -2000.0], [-2000.0, -1000.0, 2000.0]):
        parts = np.tile(np.array(order, np.float32)[:, None], (1, 64))

        (run,) = Network(graph, [job_on(graph)]).reduce(parts)

        assert run.results.tolist() == [[sum(order)] * 64] * 3


def test_congestion_marks_reach_all_workers_through_a_sum() -> None:
    """One marked gradient of one of three workers halves the windows of all, once."""
    graph = tree_of((4,))
    job = job_on(graph, window=64)
    network = Network(graph, [job])
    send = network.send
    unmarked = [True]

    def mark(src: str, dst: str, packet: bytes) -> None:
        if unmarked[0] and src == "h1" and message(packet) == GRADIENT:
            unmarked[0] = False
            packet = with_mark(packet)
        send(src, dst, packet)

    network.send = mark  # type: ignore[method-assign]
    network.reduce(np.ones((3, 64 * 32), np.float32))

    own = [agent.block + AGENT_WORDS for agent in network.parties[0].agents[:3]]
    assert [network.words[at + ALLOWED] - network.words[at + INCREASE] for at in own] == [16] * 3


def test_a_tensor_does_not_wait_for_the_one_before() -> None:
    graph = tree_of((3,))
    network = Network(graph, [job_on(graph, window=8)])
    network.stream(*(np.ones((2, count), np.float32) for count in (64, 0, 65, 1)))
    answered = next(i for i, (_, dst, _) in enumerate(network.hops) if dst == "h0")
    assert sum(src == "h0" for src, _, _ in network.hops[:answered]) == 4


def with_mark(packet: bytes) -> bytes:
    """A packet that has met a long queue."""
    frame = Ether(packet)
    frame[IP].tos |= ECN_MARKED
    del frame[IP].chksum
    return bytes(frame)


def test_an_aggregator_left_behind_is_taken_over_by_its_own_job() -> None:
    """A late duplicate takes an aggregator for a block that is over; a later block gets it."""
    graph = tree_of((3,))
    network = Network(graph, [job_on(graph, aggregators=2, window=2)], on_time)
    network.reduce(np.ones((2, 64 * 2), np.float32))
    first = next(packet for src, _, packet in network.hops if src == "h0")
    network.settle()
    network.reduce(np.ones((2, 64 * 3), np.float32))
    network.settle()
    network.send("h0", "s0", first)
    network.settle()

    network.hops.clear()
    (run,) = network.reduce(np.ones((2, 64 * 10), np.float32))

    run.check()
    network.settle()
    assert free_aggregators(network)


@settings(max_examples=15)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_gradients_that_take_detours_are_added_up_there(data: st.DataObject, seed: int) -> None:
    """Racks s0 to s2, each joined to s3 and s4, which have no workers; the last host serves."""
    plain = build("leafspine,leaves=3,spines=2,hosts=2")
    via = data.draw(
        st.lists(st.sampled_from(["", "s2", "s3", "s4", "s1-s4"]), min_size=4, max_size=4)
    )
    ways = [f"h{worker}-{switch}-h5".split("-") for worker, switch in enumerate(via) if switch]
    ways = [way for way in ways if way[0] in ("h0", "h1") or "s1" not in way]
    graph = with_detours(plain, ways)
    rng = Random(seed)
    jobs = [job_on(graph, number=number, aggregators=12) for number in (1, 2)]
    network = Network(graph, jobs, misbehaving(rng, 0.05, 0.05, 0.1))

    for run in network.reduce(np.ones((5, 64 * 20), np.float32)):
        run.check()


def test_all_aggregators_of_a_detour_are_freed() -> None:
    graph = with_detours(
        build("leafspine,leaves=3,spines=2,hosts=2"),
        [("h0", "s4", "h5"), ("h2", "s4", "h5")],
    )
    network = Network(graph, [job_on(graph)])

    (run,) = network.reduce(np.ones((5, 64 * 20), np.float32))

    run.check()
    network.settle()
    assert free_aggregators(network)
    detoured = [
        (src, dst)
        for src, dst, packet in network.hops
        if message(packet) == GRADIENT and IP(packet[14:]).src in ("10.0.0.1", "10.0.1.1")
    ]
    sent = Counter(detoured)
    assert (sent["s0", "s4"], sent["s1", "s4"], sent["s4", "s2"]) == (20, 20, 20)


def test_goat_figure_2() -> None:
    """Two racks of two workers, one aggregator per switch, blocks in turn: A1 B1 C1 A2 B2 C2.

    Fang et al., "GOAT", IWQoS 2023: with ATP the racks' switches emit 5 packets each, and the third
    one 7 to the server, 17 in all (their own placement needs 5, 5 and 3).
    """
    graph = new_graph("goat", (5,))
    for number in range(3):
        add_switch(graph, number, 0, "", (0, 0))
    for host, switch in enumerate(("s1", "s1", "s2", "s2", "s0")):
        connect(graph, switch, add_host(graph, host, (0, 0)), LINK)
    for rack in ("s1", "s2"):
        connect(graph, "s0", rack, LINK)

    def fate(src: str, dst: str, packet: bytes) -> list[int]:
        is_second = src in ("h1", "h3") and message(packet) == GRADIENT
        return [2 * DELAY_PS if is_second else DELAY_PS]

    network = Network(graph, [job_on(graph, aggregators=1, window=8)], fate)
    for run in network.reduce(np.ones((4, 64 * 3), np.float32)):
        run.check()

    sent = Counter((src, dst) for src, dst, packet in network.hops if message(packet) == GRADIENT)
    assert (sent["s1", "s0"], sent["s2", "s0"], sent["s0", "h4"]) == (5, 5, 7)
