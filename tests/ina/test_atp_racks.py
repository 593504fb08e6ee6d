"""ATP's jobs of more workers than a bitmap has bits: switches count racks.

Most tests have bitmaps of few bits, so that few workers are too many.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import networkx as nx
import numpy as np
import pytest
import torch
from atp_network import free_aggregators, job_on, lose, message, sequence, slow, small
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import Network, misbehaving, tree_of
from scapy.layers.l2 import Ether
from test_switchml_network import floats, integers

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.ina.atp.control import AtpJob, block_loads
from ringleaf.ina.atp.layers import ATP
from ringleaf.ina.atp.roster import Roster, make_roster
from ringleaf.ina.atp.wire import GRADIENT, MESSAGE_AT, PARAMETER, RACK_AT, RESEND
from ringleaf.ina.registry import find_system
from ringleaf.networks.faults import Restart
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.graph import attachment, hosts
from ringleaf.topologies.registry import build

LARGE = [((3, 3), 3), ((2, 4), 4), ((4, 2), 4), ((2, 2, 2), 4), ((3, 1, 3), 5)]
"""Shapes of trees, and bits that are too few for their hosts."""

FAILURES = ((4, "s0"), (5, "s9"), (6, "s8"), (30, "s8"))
"""Microseconds, and the switch that restarts then."""


def large_job(graph: nx.Graph[str], servers: int, bits: int, **more: int) -> AtpJob:
    job = replace(job_on(graph, servers, **more), bits=bits)
    assert len(job.workers) > bits
    return job


def named(roster: Roster, rack: int, bits: int) -> set[int]:
    """The workers that a packet's bits name, found by each one's place."""
    alike = [n for n, place in enumerate(roster.places) if place.rack == rack]
    found = {n for n in alike if bits >> roster.places[n].bit & 1}
    if rack == 0:
        for above in range(1, len(roster.complete)):
            if bits >> (above - 1) & 1:
                found |= named(roster, above, roster.complete[above])
    return found


@settings(max_examples=25)
@given(
    shape=st.sampled_from(LARGE),
    servers=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
    twice=st.sampled_from([0.0, 0.1]),
    late=st.sampled_from([0.0, 0.3]),
    aggregators=st.sampled_from([1, 2, 8, 64]),
    window=st.sampled_from([1, 2, 8]),
    counts=st.lists(st.integers(0, 500), min_size=1, max_size=2),
)
def test_every_sum_is_right_whatever_links_do(
    shape: tuple[tuple[int, ...], int],
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
    levels, bits = shape
    graph = tree_of(levels)
    servers = min(servers, len(hosts(graph)) - bits - 1)
    job = large_job(graph, servers, bits, aggregators=aggregators, window=window)
    network = Network(graph, [job], misbehaving(rng, loss, twice, late))

    tensors = [rng.choice([floats, integers])(rng, len(job.workers), count) for count in counts]
    for run in network.stream(*tensors):
        run.check()


@settings(max_examples=10)
@given(
    shape=st.sampled_from(LARGE),
    seed=st.integers(0, 2**32 - 1),
    aggregators=st.sampled_from([1, 3, 16]),
    most=st.sampled_from([1, 20, 200]),
)
def test_nothing_is_sent_again_where_nothing_is_lost(
    shape: tuple[tuple[int, ...], int], seed: int, aggregators: int, most: int
) -> None:
    """Whatever collides, and however long links take; timeouts are at 20 hops."""
    rng = Random(seed)
    levels, bits = shape
    graph = tree_of(levels)
    jobs = [
        replace(job_on(graph, servers, number=number, aggregators=aggregators), bits=bits)
        for number, servers in ((1, 1), (2, 0))
    ]
    ends = [(a, b) for pair in graph.edges for a, b in (pair, pair[::-1])]
    network = Network(graph, jobs, slow({pair: rng.randint(1, most) for pair in ends}))

    tensors = [small(rng, len(job.workers), rng.randint(0, 1000)) for job in jobs]
    for run in network.reduce(*tensors):
        run.check()
    assert network.retransmissions == 0


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), strange=st.sampled_from([0.0, 0.1]), data=st.data())
def test_large_and_small_jobs_share_switches_and_take_detours(
    seed: int, strange: float, data: st.DataObject
) -> None:
    """Racks s0 to s2, each joined to s3 and s4, which have no workers; the last host serves."""
    plain = build("leafspine,leaves=3,spines=2,hosts=3")
    some = st.lists(st.sampled_from(["", "s2", "s3", "s4"]), min_size=6, max_size=6)
    via = data.draw(some.filter(lambda each: each.count("s2") <= 4))  # s2 has two more
    graph = with_detours(
        plain, [(f"h{worker}", each, "h8") for worker, each in enumerate(via) if each]
    )
    rng = Random(seed)
    large = large_job(graph, 1, 6, number=1, aggregators=12)
    jobs = [large, job_on(graph, number=2, aggregators=12)]
    network = Network(graph, jobs, misbehaving(rng, strange, strange, strange))

    for run in network.reduce(*(np.ones((8, 64 * 12), np.float32) for _ in jobs)):
        run.check()


@pytest.mark.parametrize(
    "losses",
    [
        [(GRADIENT, "h0", "s1")],
        [(GRADIENT, "s1", "s0")],
        [(GRADIENT, "s3", "h8")],
        [(PARAMETER, "h8", "s3")],
        [(PARAMETER, "s1", "h0")],
        [(GRADIENT, "s1", "s0"), (GRADIENT, "s2", "s0")],
        [(GRADIENT, "h0", "s1"), (GRADIENT, "h3", "s2"), (GRADIENT, "h6", "s3")],
        [(GRADIENT, "h0", "s1"), (GRADIENT, "s1", "s0"), (GRADIENT, "s3", "h8")],
    ],
)
@pytest.mark.parametrize("blocks", [1, 9])
def test_a_lost_packet_is_made_good(losses: list[tuple[int, str, str]], blocks: int) -> None:
    """Racks s1 to s3 of three hosts, of which the last is the server."""
    graph = tree_of((3, 3))
    network = Network(graph, [large_job(graph, 1, 4)], lose(losses))

    for run in network.reduce(floats(Random(4), 8, 64 * blocks)):
        run.check()
    network.settle()
    assert free_aggregators(network)
    assert network.retransmissions > 0 or losses[0][0] == PARAMETER


@pytest.mark.parametrize(("bits", "alone"), [(8, 0), (4, 0), (3, 2)])
def test_a_quiet_network_carries_each_block_once_per_link(bits: int, alone: int) -> None:
    """The server's rack has two workers beside two racks; of three bits they need four."""
    graph = tree_of((3, 3))
    job = replace(job_on(graph), bits=bits)
    network = Network(graph, [job])
    (run,) = network.reduce(small(Random(1), 8, 64 * 10))

    run.check()
    assert network.retransmissions == 0
    each = Counter((src, dst) for src, dst, packet in network.hops if message(packet) == GRADIENT)
    once = {("s1", "s0"), ("s2", "s0"), *((f"h{i}", f"s{1 + i // 3}") for i in range(8))}
    last = {("s0", "s3"): 20, ("s3", "h8"): 10 * (1 + alone)}  # s0 does not add up
    assert each == dict.fromkeys(once, 10) | last
    network.settle()
    assert free_aggregators(network)
    loads = block_loads(graph, job.workers, job.servers, bits)
    assert {pair: 10 * loads[pair] for pair in each} == each


def test_a_rack_goes_on_as_one_bit() -> None:
    graph = tree_of((3, 3))
    network = Network(graph, [large_job(graph, 1, 4)])
    network.reduce(small(Random(1), 8, 5))

    def seen(src: str, dst: str) -> list[tuple[int, int]]:
        packets = [Ether(packet)[ATP] for a, b, packet in network.hops if (a, b) == (src, dst)]
        return [(packet.rack, packet.workers) for packet in packets]

    assert [seen(f"h{i}", "s1") for i in range(3)] == [[(1, 0b1)], [(1, 0b10)], [(1, 0b100)]]
    assert seen("h4", "s2") == [(2, 0b10)]
    assert (seen("s1", "s0"), seen("s2", "s0")) == ([(0, 0b1)], [(0, 0b10)])
    assert (seen("h6", "s3"), seen("h7", "s3")) == ([(0, 0b100)], [(0, 0b1000)])
    assert seen("s3", "h8") == [(0, 0b1111)]


def test_a_probe_takes_a_whole_rack_and_all_that_waits_with_it() -> None:
    """h3's gradient is lost: h0's probe takes its rack, and with it the others of the last rack."""
    graph = tree_of((3, 3))
    network = Network(graph, [large_job(graph, 1, 4)], lose([(GRADIENT, "h3", "s2")]))
    (run,) = network.reduce(small(Random(1), 8, 64))

    run.check()
    again = [
        (Ether(packet)[ATP].rack, Ether(packet)[ATP].workers)
        for src, dst, packet in network.hops
        if (src, dst) == ("s3", "h8") and packet[MESSAGE_AT] & RESEND
    ]
    assert again[0] == (0, 0b1101)
    assert (2, 0b110) in again  # of h3's rack, the others
    assert network.retransmissions == 1


@pytest.mark.parametrize("levels", [(9, 8), (6, 50)])
def test_more_than_64_workers(levels: tuple[int, int]) -> None:
    """Numbers above 255 need more than a byte; the last worker's first gradient is lost."""
    graph = tree_of(levels)
    names = hosts(graph)
    lost = names[-2]
    job = AtpJob(1, tuple(names[:-1]), (names[-1],), aggregators=64, window=4)
    network = Network(graph, [job], lose([(GRADIENT, lost, attachment(graph, lost))]))

    (run,) = network.reduce(small(Random(3), len(names) - 1, 100))

    run.check()
    assert network.retransmissions == 1
    senders = {
        (packet.sender_high << 8 | packet.sender)
        for src, _, data in network.hops
        if src in names[:-1]
        for packet in [Ether(data)[ATP]]
    }
    assert senders == set(range(len(names) - 1))


def test_64_workers_are_named_by_one_bitmap() -> None:
    graph = tree_of((8, 9))
    names = hosts(graph)
    job = AtpJob(1, tuple(names[:64]), (names[70],), aggregators=64, window=4)
    network = Network(graph, [job])

    network.reduce(small(Random(3), 64, 10))

    assert not any(packet[RACK_AT] for _, _, packet in network.hops)
    assert all(sequence(packet) == 0 for _, _, packet in network.hops)


@given(data=st.data(), bits=st.integers(2, 6))
def test_bits_name_each_worker_once(data: st.DataObject, bits: int) -> None:
    sizes = data.draw(st.lists(st.integers(1, bits), min_size=1, max_size=bits))
    graph = build(f"leafspine,leaves={len(sizes)},spines=1,hosts={bits + 1}")
    workers = [f"h{rack * (bits + 1) + i}" for rack, size in enumerate(sizes) for i in range(size)]
    workers = data.draw(st.permutations(workers))
    server = f"h{data.draw(st.integers(0, len(sizes) - 1)) * (bits + 1) + bits}"

    roster = make_roster(graph, workers, server, bits)

    everyone = set(range(len(workers)))
    last = attachment(graph, server)
    assert len(set(roster.places)) == len(workers)
    assert max(bits.bit_length() for bits in roster.complete) <= bits
    assert named(roster, 0, roster.complete[0]) == everyone
    for switch, adder in roster.adders.items():
        here = {n for n in everyone if attachment(graph, workers[n]) == switch}
        assert set(adder.workers) == named(roster, adder.rack, adder.complete)
        assert set(adder.workers) == named(roster, 0, adder.whole)
        if switch != last:
            assert set(adder.workers) == here
    if last in roster.adders:
        assert roster.alone == len(everyone - set(roster.adders[last].workers))
    if len(workers) <= bits:
        assert roster.complete == ((1 << len(workers)) - 1,)
        assert [place.bit for place in roster.places] == sorted(everyone)


def test_racks_that_do_not_fit_are_refused() -> None:
    names = [f"h{i}" for i in range(66)]
    with pytest.raises(ConfigError, match="may have 64 in a rack, got 65; take"):
        make_roster(build("leafspine,leaves=2,spines=1,hosts=65"), names, "h129")
    with pytest.raises(ConfigError, match="may be in 64 racks, got 66; take"):
        make_roster(build("leafspine,leaves=66,spines=1,hosts=1"), names, "h0")


@pytest.mark.parametrize("ecmp", [False, True])
def test_racks_on_a_network_whose_switches_restart(ecmp: bool) -> None:
    """Nine racks of eight; every link loses packets, and a rack, a spine and the last leaf fail."""
    options = NetworkOptions(system=find_system("atp"), lanes=64, loss=0.005, ecmp=ecmp)
    graph = build("leafspine,leaves=9,spines=2,hosts=8")
    network = VirtualNetwork(graph, options, seed=4)
    schedule = ALGORITHMS["atp"].build(72)
    sent_again = 0
    for count in (64 * 30, 100):
        tensors = [torch.full((count,), rank, dtype=torch.int32) for rank in range(72)]
        failures = [Restart(each * PS_PER_US, name) for each, name in FAILURES]

        outcome = network.run(schedule, tensors, disturbances=failures)

        assert all((tensor == 72 * 71 // 2).all() for tensor in tensors)
        sent_again += outcome.retransmissions
        assert network.drain() == 0
    assert sent_again > 0
    network.close()
