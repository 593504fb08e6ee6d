"""A job that waits in vain is noticed, whatever others do meanwhile."""

from __future__ import annotations

from itertools import islice, permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from loop_net import Net

import ringleaf.networks.virtual.state as s
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.arena import Store
from ringleaf.core.units import PS_PER_MS, PS_PER_S, PS_PER_US
from ringleaf.hosts.agent import PROGRESS, RETRANSMISSIONS
from ringleaf.hosts.executor.build import Executors
from ringleaf.hosts.plan import plans
from ringleaf.hosts.staging import lay_out
from ringleaf.networks.endpoints.memory import RegisteredMemory
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.virtual.circling import Circling
from ringleaf.networks.virtual.patience import MOST_RESENDS, Patience, limit_ps, probes_of
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import TOPOLOGIES, build
from ringleaf.topologies.routing import hop_count, most_links

LIMIT_PS = PS_PER_S


def operation_of(group: int) -> CollectiveOperation:
    store, parts = Store(), plans(ALGORITHMS["ring"].build(2), 2)
    executors = Executors(store, parts, lay_out(parts, 4, ahead_bytes=0), torch.float32)
    return CollectiveOperation(
        store, RegisteredMemory(store), executors, (), group=group, channel=0, ranks=2
    )


def make(groups: int) -> tuple[Patience, Store, list[int]]:
    patience, net = make_with_network(groups)
    return patience, net.store, net.agents


def make_with_network(groups: int) -> tuple[Patience, Net]:
    net = Net(agents=groups)
    groups_agents = [[block] for block in net.agents]
    circling = Circling(net.store, [net.at])
    patience = Patience(net.store, groups_agents, limit_ps=LIMIT_PS, now_ps=0, circling=circling)
    return patience, net


def test_a_job_that_goes_on_does_not_hide_one_that_waits() -> None:
    patience, store, blocks = make(2)
    waiting, going_on = operation_of(0), operation_of(1)
    for round_ in (1, 2):
        store.arena.words[blocks[1] + PROGRESS] += 1
        stalled = patience.stalled([waiting, going_on], round_ * LIMIT_PS)

    assert stalled == [waiting]


def test_an_operation_that_has_just_begun_has_time() -> None:
    patience, _, _ = make(1)
    first, second = operation_of(0), operation_of(0)

    assert patience.stalled([first], LIMIT_PS) == []  # it may have begun a moment ago
    assert patience.stalled([second], 2 * LIMIT_PS) == []
    assert patience.stalled([second], 3 * LIMIT_PS - 1) == []
    assert patience.stalled([second], 3 * LIMIT_PS) == [second]


def test_a_job_that_resends_in_vain_has_less_time_and_one_that_gets_through_has_all() -> None:
    """As where each packet that a switch has cut is asked for at once, and cut again."""
    patience, store, blocks = make(2)
    lost, busy = operation_of(0), operation_of(1)
    now_ps = LIMIT_PS // 1000
    assert patience.stalled([lost, busy], now_ps) == []
    for _ in range(2):
        now_ps += LIMIT_PS // 1000
        store.arena.words[blocks[1] + PROGRESS] += 1
        for block in blocks:
            store.arena.words[block + RETRANSMISSIONS] += MOST_RESENDS - 1
        stalled = patience.stalled([lost, busy], now_ps)

    assert stalled == [lost]
    text = patience.complaint([(lost, ["h0", "h1"])], "do so")
    assert "for 2 ms of simulated time and 131070 resends, got " in text


def test_packets_that_go_round_make_a_stall_if_no_group_makes_progress() -> None:
    """Five ports, and 10,000 packets of a host: without circles, at most 50,000 ways, and copies.

    Three packets more were under way.
    """
    patience, net = make_with_network(2)
    waiting = operation_of(0)
    for _ in range(3):
        net.packet()
    assert patience.stalled([waiting], LIMIT_PS // 1000) == []
    net.net.ports[0, s.TX_PACKETS] += 10_000
    net.words[net.at + s.HOPS] += 4 * 5 * 10_003
    now_ps = LIMIT_PS // 4
    assert patience.stalled([waiting], now_ps) == []
    net.words[net.at + s.HOPS] += 1
    assert patience.stalled([waiting], now_ps + LIMIT_PS // 1000) == [waiting]
    text = patience.complaint([(waiting, ["h0", "h1"])], "do so")
    assert ", and in 200061 packet-hops, so packets go round in circles, got " in text

    net.words[net.agents[1] + PROGRESS] += 1
    assert patience.stalled([waiting], now_ps + LIMIT_PS // 500) == []


def test_few_packets_and_a_short_time_are_no_circle() -> None:
    patience, net = make_with_network(1)
    waiting = operation_of(0)
    assert patience.stalled([waiting], LIMIT_PS // 1000) == []
    net.words[net.at + s.HOPS] += 1 << 17
    assert patience.stalled([waiting], LIMIT_PS // 4) == []
    patience, net = make_with_network(1)
    assert patience.stalled([waiting], LIMIT_PS // 1000) == []
    net.words[net.at + s.HOPS] += 1 << 40
    assert patience.stalled([waiting], LIMIT_PS // 500) == []


def test_an_operation_that_a_group_begins_later_has_time_of_its_own() -> None:
    patience, store, blocks = make(1)
    assert patience.stalled([operation_of(0)], LIMIT_PS) == []
    store.arena.words[blocks[0] + RETRANSMISSIONS] += MOST_RESENDS

    assert patience.stalled([operation_of(0)], 2 * LIMIT_PS) == []


def test_slow_paths_have_more_time() -> None:
    """A hundred probes, each after 256 times a least timeout of ten round trips."""
    assert limit_ps(1) == LIMIT_PS
    assert limit_ps(10 * PS_PER_US) == 100 * 256 * 10 * 10 * PS_PER_US
    assert limit_ps(1, timeout_ps=PS_PER_MS) == 100 * 256 * PS_PER_MS
    assert limit_ps(1, timeout_ps=PS_PER_MS, quiet_ps=7) == 100 * (256 * PS_PER_MS + 7)
    assert limit_ps(10 * PS_PER_US, probes=300) == 3 * limit_ps(10 * PS_PER_US)


def without_progress(loss: float, links: int, probes: int) -> float:
    """The chance that nothing is acknowledged for so many probes, while each link loses packets.

    As long as the receiver lacks a packet, a probe and its NAK must get through, and then the
    packet; after that its acknowledgement, or another probe's.
    """
    way = (1 - loss) ** links
    comes, acknowledged = way**3, way**2
    step = np.array(
        [
            [1 - comes, comes * (1 - way)],
            [0, 1 - acknowledged],
        ]
    )
    return float(np.linalg.matrix_power(step, probes)[0].sum())


@given(loss=st.floats(0, 0.1), links=st.integers(1, 16))
def test_a_working_path_makes_progress_by_so_many_probes(loss: float, links: int) -> None:
    probes = probes_of(loss, links)

    assert probes >= 100
    assert without_progress(loss, links, probes) <= 1e-9
    assert probes <= 100 or without_progress(loss, links, probes * 2 // 3) > 1e-9


def test_a_path_that_loses_all_has_the_time_of_one_that_loses_a_tenth() -> None:
    assert probes_of(1.0, 4) == probes_of(0.1, 4)


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("leafspine,leaves=1,spines=1,hosts=4", 2),
        ("leafspine,leaves=2,spines=2,hosts=2", 4),
        ("fattree,k=4", 6),
    ],
)
def test_the_most_links_are_those_of_hosts_farthest_apart(name: str, links: int) -> None:
    assert most_links(build(name)) == links


def test_detours_may_have_more_links_than_the_ways_of_any_two_hosts() -> None:
    """From leaf 0 to leaf 1 by way of leaf 2, up and down twice."""
    graph = build("leafspine,leaves=3,spines=2,hosts=1")
    assert most_links(graph) == 4
    assert most_links(with_detours(graph, [("h0", "s3", "s2", "s4", "h1")])) == 6


@pytest.mark.parametrize("name", sorted(TOPOLOGIES))
def test_no_two_hosts_are_farther_apart_than_the_most_links(name: str) -> None:
    graph = build(name)
    pairs = islice(permutations(hosts(graph), 2), 200)

    assert max(hop_count(graph, *pair) for pair in pairs) <= most_links(graph)
