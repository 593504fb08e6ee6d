"""A few ranks that stand for all have the times, bytes and queues of the whole network."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringleaf.collectives.algorithms.alltoall import pairwise_all_to_all
from ringleaf.collectives.algorithms.blueconnect import blueconnect_allreduce
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_allreduce
from ringleaf.collectives.algorithms.hierring import hierarchical_ring_allreduce
from ringleaf.collectives.algorithms.ring import (
    ring_all_gather,
    ring_allreduce,
    ring_reduce_scatter,
)
from ringleaf.collectives.algorithms.tree import tree_allreduce
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.symmetric_rows import symmetry_of
from ringleaf.errors import ConfigError
from ringleaf.networks import skipping
from ringleaf.networks.flow import class_run, class_search
from ringleaf.networks.flow import network as flow_network
from ringleaf.networks.flow.class_run import ClassRun, without_classes
from ringleaf.networks.flow.class_search import find_classes
from ringleaf.networks.flow.classes import Classes, class_plans
from ringleaf.networks.flow.network import FlowNetwork
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RECEIVE, RunResult
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.pair_links import PairLinks
from ringleaf.topologies.registry import build
from ringleaf.topologies.routing import longest_rtt_ps, routes

FLOAT32 = np.dtype(np.float32)
SAME = (
    *("time_ps", "finish_ps", "wire_bytes", "link_bytes", "packet_hops"),
    *("queue_peaks", "peak_queue_bytes", "bin_ps", "retransmissions", "drops"),
)
TOPOLOGIES = (
    *("fattree,k=4", "fattree,k=4,edge=2", "leafspine,leaves=4,spines=2,hosts=4"),
    *("torus2d,x=4,y=4", "dragonfly,a=2,p=2,h=1", "bcube,n=4,k=1", "leafspine,leaves=2,hosts=3"),
    *("hammingmesh,a=2,b=2,x=2,y=2", "leafspine,leaves=1,spines=1,hosts=2"),
)


def made(topo: str) -> nx.Graph[str]:
    return build(topo, rate_bps=100_000_000_000, delay_ps=1_000_000)


def slowed(graph: nx.Graph[str], count: int, seed: int) -> nx.Graph[str]:
    """Return a graph in which some links have less rate one way, or more delay."""
    changed, rng = graph.copy(), Random(seed)
    for a, b in rng.sample(sorted(changed.edges), count):
        sent = changed.edges[a, b]["link"]
        rate_bps = sent.rate_bps // rng.choice((2, 3))
        slower = replace(sent, rate_bps=rate_bps, delay_ps=rng.choice((1, 2)) * sent.delay_ps)
        changed.edges[a, b]["back"] = {a: slower}
    return changed


def schedule_of(name: str, ranks: int) -> Schedule:
    half = 2 if ranks % 2 == 0 else 1
    match name:
        case "ring":
            return ring_allreduce(ranks)
        case "allgather":
            return ring_all_gather(ranks)
        case "reducescatter":
            return ring_reduce_scatter(ranks)
        case "blueconnect":
            return blueconnect_allreduce(ranks, (half, ranks // half))
        case "alltoall":
            return pairwise_all_to_all(ranks)
        case "hierring":
            return hierarchical_ring_allreduce(ranks, (ranks // half, half))
        case "halvingdoubling" if ranks & (ranks - 1) == 0:
            return halving_doubling_allreduce(ranks)
        case _:
            return tree_allreduce(ranks, 5)


NAMES = (
    *("ring", "allgather", "reducescatter", "blueconnect", "hierring", "halvingdoubling", "tree"),
    "alltoall",
)


def classes_of(graph: nx.Graph[str], schedule: Schedule, order: list[int]) -> Classes:
    symmetry = symmetry_of(schedule.as_rows)
    assert symmetry is not None
    found = find_classes(symmetry, PairLinks(graph, routes(graph)), np.array(order))
    assert found is not None
    return found


def both(
    graph: nx.Graph[str],
    schedule: Schedule,
    elements: int,
    order: list[int] | None = None,
    **options: int,
) -> tuple[RunResult, RunResult, Classes]:
    """Return the results of the whole network, and of classes, and these."""
    given = NetworkOptions(has_data=False, queue_bytes=1 << 40, **options)  # type: ignore[arg-type]
    places = order or list(range(schedule.ranks))
    group = Group(1, tuple(f"h{host}" for host in places))
    network = FlowNetwork(graph, given, groups=[group])
    whole = network.run(schedule, network.arrays(elements, schedule=schedule))
    classes = classes_of(graph, schedule, places)
    rtt_ps = longest_rtt_ps(graph, given.mtu_bytes, table=routes(graph))
    return whole, ClassRun(graph, given, classes, rtt_ps).run(schedule, elements, FLOAT32), classes


def check_same(whole: RunResult, by_classes: RunResult) -> None:
    for name in SAME:
        assert getattr(by_classes, name) == getattr(whole, name), name
    for ends, series in whole.link_series.items():
        assert np.array_equal(by_classes.link_series[ends], series), ends


@settings(deadline=None, max_examples=25)
@given(
    topo=st.sampled_from(TOPOLOGIES),
    name=st.sampled_from(NAMES),
    chunk=st.sampled_from((1, 900, 5000, 40_000)),
    slow=st.integers(0, 2),
    is_shuffled=st.booleans(),
    window=st.sampled_from((None, 4)),
    seed=st.integers(0, 1000),
)
@example("leafspine,leaves=4,spines=2,hosts=4", "halvingdoubling", 5000, 0, False, None, 0)
@example("fattree,k=4", "halvingdoubling", 5000, 0, False, None, 0)
@example("leafspine,leaves=4,spines=2,hosts=4", "blueconnect", 5000, 1, True, 4, 1)
@example("fattree,k=4", "tree", 40_000, 0, True, None, 0)  # differs if rates are thirds
@example("fattree,k=4,edge=2", "tree", 40_000, 0, True, None, 48)
@example("torus2d,x=4,y=4", "alltoall", 40_000, 0, False, None, 0)  # crosses classes twice
@example("torus2d,x=4,y=4", "alltoall", 40_000, 0, False, 4, 0)
def test_all_ranks_have_the_times_of_the_whole_network(
    topo: str,
    name: str,
    chunk: int,
    slow: int,
    is_shuffled: bool,
    window: int | None,
    seed: int,
) -> None:
    graph = slowed(with_delays(made(topo), switch_delay_ps=300, host_delay_ps=20), slow, seed)
    order = list(range(len(hosts(graph))))
    if is_shuffled:
        Random(seed).shuffle(order)
    schedule = schedule_of(name, len(order))
    options = {"window": window} if window else {}

    whole, by_classes, _ = both(graph, schedule, chunk * schedule.chunks, order, **options)

    check_same(whole, by_classes)


@pytest.mark.parametrize(
    ("topo", "name", "classes"),
    [
        ("fattree,k=8", "ring", 16),  # a pod's hosts
        ("fattree,k=8", "halvingdoubling", 1),
        ("fattree,k=8", "hierring", 4),
        ("leafspine,leaves=8,spines=4,hosts=16", "ring", 16),
        ("leafspine,leaves=4,spines=2,hosts=12", "alltoall", 1),
        ("fattree,k=6", "alltoall", 1),
        ("leafspine,leaves=1,spines=1,hosts=127", "tree", 7),  # a level each
    ],
)
def test_regular_networks_have_few_classes(topo: str, name: str, classes: int) -> None:
    graph = made(topo)
    ranks = len(hosts(graph))
    schedule = schedule_of(name, ranks)
    if name == "hierring":
        schedule = hierarchical_ring_allreduce(ranks, (4, 4, 8))

    whole, by_classes, found = both(graph, schedule, ranks * 1000)

    assert found.count == classes
    assert by_classes.events <= whole.events * 2 * classes / ranks
    check_same(whole, by_classes)


@pytest.mark.parametrize("topo", ["fattree,k=4", "leafspine,leaves=4,spines=2,hosts=4"])
@pytest.mark.parametrize(("first", "stop"), [(0, 30), (3, 15)])
def test_classes_note_when_the_messages_of_each_step_were_there(
    topo: str, first: int, stop: int
) -> None:
    graph, schedule = made(topo), skipping.part(ring_allreduce(16), first, stop)
    options = NetworkOptions(has_data=False)
    whole = FlowNetwork(graph, options, groups=[Group(1, tuple(f"h{i}" for i in range(16)))])
    arrays = whole.arrays(16_000, schedule=schedule)
    messages = schedule.as_rows.messages
    notes = whole.run(schedule, arrays, notes=2 * messages).notes
    classes = classes_of(graph, schedule, list(range(16)))
    by_classes = ClassRun(graph, options, classes, longest_rtt_ps(graph, options.mtu_bytes))

    result = by_classes.run(schedule, 16_000, FLOAT32, notes=True)

    ends_ps = np.full((stop - first, 16), -1)
    for note in notes:
        if note.kind == RECEIVE:
            ends_ps[note.row // 16, note.node] = note.end_ps
    assert result.step_ends_ps is not None
    assert np.array_equal(result.step_ends_ps[:, classes.of_rank], ends_ps)


def test_ranks_that_receive_nothing_in_some_steps_have_no_such_times() -> None:
    graph, schedule = made("fattree,k=4"), tree_allreduce(16, 4)
    classes = classes_of(graph, schedule, list(range(16)))
    by_classes = ClassRun(graph, NetworkOptions(has_data=False), classes, 10**7)

    assert by_classes.run(schedule, 16_000, FLOAT32, notes=True).step_ends_ps is None


def test_chunks_that_are_nowhere_apart_are_one() -> None:
    """In two steps of 64, rank 0 sends chunks 0 and 63, and receives 63 and 62."""
    schedule = skipping.part(ring_allreduce(64), 0, 2)
    classes = classes_of(made("leafspine,leaves=8,spines=8,hosts=8"), schedule, list(range(64)))

    plans = class_plans(classes, schedule, np.arange(65) * 1000)

    assert plans.edges.tolist() == [0, 1000, 62_000, 63_000, 64_000]


def test_classes_of_all_steps_are_those_of_some() -> None:
    network = FlowNetwork(made("fattree,k=16"), NetworkOptions(has_data=False))
    schedule = ring_allreduce(1024)
    network.arrays(1 << 20, schedule=skipping.part(schedule, 0, 3))
    before = network.classes
    network.arrays(1 << 20, schedule=schedule)
    after = network.classes
    network.arrays(1 << 20, schedule=halving_doubling_allreduce(1024))

    assert before is not None
    assert after is not None
    assert after.of_rank is before.of_rank
    assert after.symmetry is symmetry_of(schedule.as_rows)
    assert network.classes is not None
    assert network.classes.count == 1


def test_children_that_do_the_same_are_one_peer() -> None:
    graph = made("leafspine,leaves=1,spines=1,hosts=7")
    classes = classes_of(graph, tree_allreduce(7, 5), list(range(7)))

    root, inner, leaf = (int(classes.of_rank[rank]) for rank in (3, 1, 0))
    assert classes.of_rank.tolist() == [leaf, inner, leaf, root, leaf, inner, leaf]
    assert (classes.peers >= 0).sum(axis=1)[[root, inner, leaf]].tolist() == [1, 2, 1]
    assert classes.flows.sum() == 2 * 6


def test_a_slower_link_breaks_classes_apart() -> None:
    schedule = halving_doubling_allreduce(16)
    even = classes_of(made("fattree,k=4"), schedule, list(range(16)))
    uneven = classes_of(slowed(made("fattree,k=4"), 1, 0), schedule, list(range(16)))

    assert even.count == 1
    assert uneven.count > 1


def test_large_collectives_without_data_go_by_classes() -> None:
    network = FlowNetwork(made("fattree,k=16"), NetworkOptions(has_data=False))
    schedule = halving_doubling_allreduce(1024)

    result = network.run(schedule, network.arrays(1 << 20, schedule=schedule))

    assert network.classes is not None
    assert network.classes.count == 1
    assert result.events < 200
    assert len(result.finish_ps) == len(result.wire_bytes) == 1024
    assert len(set(result.finish_ps)) == 1
    assert len(result.link_bytes) == 2 * 3 * 1024


def test_too_many_hosts_of_which_hardly_any_are_alike_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow_network, "LEAST_RANKS", 2)
    monkeypatch.setattr(flow_network, "MOST_WHOLE", 15)
    monkeypatch.setattr(class_search, "MOST_FLOWS", 2)
    network = FlowNetwork(made("fattree,k=4"), NetworkOptions(has_data=False))

    with pytest.raises(ConfigError, match=r"hardly any two ranks of pairwise .* got 16; take at"):
        network.arrays(160, schedule=pairwise_all_to_all(16))


def test_small_collectives_are_carried_in_full() -> None:
    network = FlowNetwork(made("fattree,k=4"), NetworkOptions(has_data=False))
    schedule = halving_doubling_allreduce(16)

    network.run(schedule, network.arrays(160, schedule=schedule))

    assert network.classes is None


@pytest.mark.parametrize(
    ("schedule", "elements", "options", "reason"),
    [
        (halving_doubling_allreduce(12), 1200, {}, "does not say which of its ranks do the same"),
        (ring_allreduce(8), 12, {}, "chunks differ in size, 8 of 12 elements"),
        (ring_allreduce(8), 16, {"has_data": True}, "data is added up message by message"),
        (ring_allreduce(8), 16, {"message_overhead_ps": 1}, "in the order of hosts' numbers"),
        (ring_allreduce(8), 16, {"ecmp": True}, "hashes tell all connections apart"),
        (tree_allreduce(8, 3), 10, {}, ""),
    ],
)
def test_what_has_no_classes_says_why(
    schedule: Schedule, elements: int, options: dict[str, int], reason: str
) -> None:
    given = NetworkOptions(**{"has_data": False} | options)  # type: ignore[arg-type]

    assert without_classes(schedule, elements, given).endswith(reason)
    assert bool(without_classes(schedule, elements, given)) == bool(reason)


def test_series_of_very_many_links_have_wider_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, schedule = made("fattree,k=4"), halving_doubling_allreduce(16)
    _, narrow, classes = both(graph, schedule, 16 * 5000)
    bins = max(map(len, narrow.link_series.values()))
    monkeypatch.setattr(class_run, "MOST_CELLS", len(narrow.link_series) * (bins // 2))
    options = NetworkOptions(has_data=False)
    run = ClassRun(graph, options, classes, longest_rtt_ps(graph, options.mtu_bytes))

    wide = run.run(schedule, 16 * 5000, FLOAT32)

    assert wide.bin_ps > narrow.bin_ps
    assert wide.bin_ps % narrow.bin_ps == 0
    for ends, series in wide.link_series.items():
        assert len(series) <= bins // 2
        assert series.sum() == narrow.link_series[ends].sum() == wide.link_bytes[ends]
