"""What a run has counted, by hand; series of several regions become one."""

from __future__ import annotations

import numpy as np
import pytest

import ringleaf.networks.virtual.drops as drops
import ringleaf.networks.virtual.state as s
from ringleaf.core.disciplines import CLASSES
from ringleaf.hosts.agent import REFUSALS, RETRANSMISSIONS
from ringleaf.networks.outcome import Drop
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.networks.virtual.meter import fuller, join_bins
from ringleaf.switches.engine.queues import CLASS_PEAKS, DROPPED, PEAK_BYTES, TRIMMED
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.registry import build


def test_bins_are_brought_to_the_widest() -> None:
    """By hand: bins of 10 ps and of 40 ps over the same 160 ps."""
    fine = np.array([[1, 2, 3, 4, 5, 6, 7, 8]])
    wide = np.array([[10, 20, 0, 0, 0, 0, 0, 0]])
    summed, width = join_bins([(fine, 10), (wide, 40)], np.add)
    assert (summed.tolist(), width) == ([[20, 46, 0, 0, 0, 0, 0, 0]], 40)
    most, width = join_bins([(fine, 10), (wide, 40)], np.maximum)
    assert (most.tolist(), width) == ([[10, 20, 0, 0, 0, 0, 0, 0]], 40)


def test_one_region_s_bins_are_as_they_are() -> None:
    bins = np.array([[3, 1]])
    alone, width = join_bins([(bins, 5)], np.add)
    assert (alone.tolist(), width) == ([[3, 1]], 5)


def test_of_two_bins_the_one_that_holds_more_is_kept_whole() -> None:
    """By hand: a port's eight classes; bins with 5 + 3 and 1 + 8 bytes, then 2 + 2 and 4 + 0."""
    bins = np.zeros((CLASSES, 4), np.int64)
    bins[0], bins[7] = (5, 1, 2, 4), (3, 8, 2, 0)
    wide = np.zeros((CLASSES, 4), np.int64)

    joined, width = join_bins([(bins, 10), (wide, 20)], fuller)

    assert width == 20
    assert joined[[0, 7]].tolist() == [[1, 2, 0, 0], [8, 2, 0, 0]]


WAYS = [("s0", "h0"), ("s0", "h1"), ("h0", "s0"), ("h1", "s0")]
"""The ports of two hosts and a switch."""


def counted(network: VirtualNetwork, number: int) -> None:
    """Have all counters of the network go on by `number`, or by twice as much at h1."""
    net, words = network._net(), network.store.arena.words
    net.ports[:, s.TX_BYTES] += [number, 0, 0, 2 * number]
    net.ports[:, s.LOST] += number
    net.state[[s.HOPS, s.EVENTS]] += 10 * number, 11 * number
    words[net.agents[:, s.AGENT_AT] + RETRANSMISSIONS] += number
    words[net.agents[:, s.AGENT_AT] + REFUSALS] += 2 * number
    queues = net.ports[:2, s.QUEUES_AT]
    words[queues + DROPPED] += 3 * number
    words[queues + TRIMMED] += 4 * number
    net.bins[:, number] += 1
    net.bins[3, number] += number
    net.queue_bins[: 2 * CLASSES, number] += number
    source = ipv4(network.graph, "h1")
    row = drops.find_row(words, network._network, (1 << 3 | 5) + 1, source)
    words[row + drops.PACKETS] += number
    words[row + drops.BYTES] += 100 * number
    words[row + drops.FIRST_PS], words[row + drops.LAST_PS] = 1000 + number, 1100 + number
    peaks = words[queues + PEAK_BYTES]
    words[queues + PEAK_BYTES] = np.maximum(peaks, [90, 80])
    words[queues + CLASS_PEAKS + 6] = 70, 75


@pytest.fixture
def metered() -> VirtualNetwork:
    """A network in which much has happened before it is metered."""
    graph = build("leafspine,leaves=1,spines=0,hosts=2")
    network = VirtualNetwork(graph, NetworkOptions(watch_queues=True))
    assert [(each.node, each.peer) for each in network._places] == WAYS
    counted(network, 7)
    network._net().state[[s.BIN_PS, s.QUEUE_BIN_PS]] = 1 << 40
    network._passage.now_ps = 1000
    return network


def test_a_result_has_what_came_since_the_meter_began(metered: VirtualNetwork) -> None:
    """All counters go on by 3; bins are of 100 ns and 1 us then, and those behind 3 are empty."""
    meter = metered.meter()
    counted(metered, 3)
    agents = len(metered._net().agents)
    result = meter.result([1500, 1800])
    assert (result.time_ps, result.finish_ps) == (800, [500, 800])
    assert result.wire_bytes == [0, 6]
    assert result.link_bytes == dict(zip(WAYS, (3, 0, 0, 6), strict=True))
    assert (result.retransmissions, result.refusals) == (3 * agents, 6 * agents)
    assert (result.drops, result.trims, result.lost) == (18, 24, 12)
    assert (result.packet_hops, result.events, result.pauses) == (30, 33, 0)
    assert (result.bin_ps, result.queue_bin_ps) == (100_000, 1_000_000)
    for way, series in result.link_series.items():
        assert [*series] == [0, 0, 0, 4 if way == WAYS[3] else 1]
        assert result.owner_series[way].tolist() == [[*series]]
    assert [*result.queue_series] == WAYS[:2]
    for series in result.queue_series.values():
        assert series.tolist() == CLASSES * [[0, 0, 0, 3]]
    assert result.peak_queue_bytes == 90
    assert result.queue_peaks == {WAYS[0]: 90, WAYS[1]: 80}
    assert result.peak_class_bytes == [*6 * [0], 75, 0]
    assert result.drop_counts == [Drop("s0", 2, "h1", 5, "h1", 3, 300, 3, 103)]


def test_a_result_of_nothing_has_one_empty_bin(metered: VirtualNetwork) -> None:
    result = metered.meter().result([1000, 1000])
    assert result.time_ps == 0
    assert {tuple(series) for series in result.link_series.values()} == {(0,)}
    assert {series.shape for series in result.queue_series.values()} == {(CLASSES, 1)}
    assert result.drop_counts == []
    assert (result.drops, result.events, result.packet_hops) == (0, 0, 0)


def test_drops_of_many_ports_have_no_name(metered: VirtualNetwork) -> None:
    meter = metered.meter()
    row = metered._net().drops[-1]
    row[[drops.PACKETS, drops.BYTES, drops.FIRST_PS, drops.LAST_PS]] = 2, 200, 1010, 1020
    assert meter.result([1000, 1000]).drop_counts == [Drop("", 0, "", None, "", 2, 200, 10, 20)]
