"""Losses under ATP: probes, requests, and what is sent again."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from atp_network import (
    ONE_RACK,
    THREE_TIERS,
    TWO_RACKS,
    again_from,
    free_aggregators,
    job_on,
    lose,
    slow,
    small,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lossy_network import DELAY_PS, Network, tree_of
from test_switchml_network import floats

from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp.control import AtpJob
from ringleaf.ina.atp.ledger import ECMP
from ringleaf.ina.atp.state import FLIGHT
from ringleaf.ina.atp.wire import (
    COLLISION,
    GRADIENT,
    JOB_AT,
    MESSAGE_AT,
    PARAMETER,
    RESEND,
    WORKERS_AT,
)
from ringleaf.ina.flight import SMOOTHED_PS


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
        AtpJob(number, ("h0", other), ("h3",), aggregators=1, window=1)
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


@settings(max_examples=15)
@given(
    shape=st.sampled_from([ONE_RACK, TWO_RACKS, THREE_TIERS]),
    seed=st.integers(0, 2**32 - 1),
    aggregators=st.sampled_from([1, 3, 16]),
    window=st.sampled_from([2, 8, 32]),
    most=st.sampled_from([1, 20, 200]),
)
@example(shape=THREE_TIERS, seed=67518, aggregators=1, window=2, most=200)
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
