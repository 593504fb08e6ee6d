"""Aggregators of ATP: shared by jobs, taken over, and chosen by detours."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from atp_network import ONE_RACK, THREE_TIERS, TWO_RACKS, free_aggregators, job_on, message
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import DELAY_PS, LINK, Network, misbehaving, on_time, tree_of
from scapy.layers.inet import IP
from test_switchml_network import floats

from ringleaf.ina.atp.control import AtpJob
from ringleaf.ina.atp.wire import COLLISION, GRADIENT, MESSAGE_AT
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.graph import add_host, add_switch, connect, hosts, new_graph
from ringleaf.topologies.registry import build


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
    everyone: list[AtpJob | SwitchmlJob] = [*jobs, *[SwitchmlJob(1, 3)] * beside_switchml]
    ranks += [len(hosts(graph))] * beside_switchml
    network = Network(graph, everyone, misbehaving(rng, strange, strange, strange))

    for _ in range(2):
        tensors = [floats(rng, each, rng.randint(0, 600)) for each in ranks]
        for run in network.reduce(*tensors):
            run.check()


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
