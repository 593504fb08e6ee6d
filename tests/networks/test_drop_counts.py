"""The loop says which queue dropped whose packets, and when."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ringleaf.networks.virtual.state as s
from ringleaf.collectives.registry import find_algorithm
from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool, write_packet
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.networks.virtual.drops import (
    KEY,
    PACKETS,
    SOURCE,
    DropCount,
    clear_drops,
    find_row,
    note_drop,
    read_drops,
    watch_drops,
)
from ringleaf.networks.virtual.state import make_network, open_network
from ringleaf.topologies.registry import build


def run_incast(queue_bytes: int) -> RunResult:
    """Each of three hosts sends 64 KiB to the fourth at once, through one switch."""
    graph = build("leafspine,leaves=1,spines=0,hosts=4")
    schedule = find_algorithm("ps").build(3, size_bytes=1 << 16, servers=1)
    options = NetworkOptions(queue_bytes=queue_bytes, servers=1, window=64)
    network = VirtualNetwork(graph, options)
    tensors = network.tensors(1 << 14, torch.float32, schedule)
    for rank, tensor in enumerate(tensors):
        tensor.fill_(rank + 1)
    result = network.run(schedule, tensors)
    assert all(bool((tensor == 6).all()) for tensor in tensors)
    return result


@pytest.fixture(scope="module")
def crowded() -> RunResult:
    return run_incast(12_000)


def test_drops_are_those_of_the_servers_port(crowded: RunResult) -> None:
    """Port 4 leads to h3, which all send to; nothing else can be full, as lines are equal."""
    assert crowded.drops > 0
    assert sum(drop.packets for drop in crowded.drop_counts) == crowded.drops
    for drop in crowded.drop_counts:
        assert (drop.switch, drop.port, drop.peer, drop.level) == ("s0", 4, "h3", 0)
        assert drop.source in ("h0", "h1", "h2")
        assert drop.first_ps is not None
        assert drop.last_ps is not None
        assert 0 < drop.first_ps <= drop.last_ps < crowded.time_ps
        assert drop.size_bytes is not None
        assert drop.size_bytes <= drop.packets * 4200


def test_nothing_is_told_where_nothing_was_dropped() -> None:
    assert run_incast(4 << 20).drop_counts == []


def test_more_keys_than_there_are_rows_for_are_counted_together() -> None:
    store = Store()
    at = make_network(store, ports=4, nodes=2, agents=1, ring=0, bins=2, seed=1)
    watch_drops(store, at)
    net = open_network(store.arena, at)
    words = store.arena.words
    rows = int(words[at + s.DROP_ROWS])

    for source in range(2 * rows):
        for _ in range(2):  # found again, where it was put
            words[find_row(words, at, 17, source) + PACKETS] += 1

    assert net.drops[:, PACKETS].sum() == 4 * rows
    assert np.count_nonzero(net.drops[:-1, KEY]) == rows // 2
    assert len(np.unique(net.drops[:-1, SOURCE])) == rows // 2
    others, *known = read_drops([net])
    assert (others.port, others.packets) == (-1, 3 * rows)
    assert {(each.port, each.level, each.packets) for each in known} == {(2, 0, 2)}
    clear_drops(net)
    assert read_drops([net]) == []
    assert net.state[s.DROP_KEYS] == 0


def test_drops_of_a_queue_and_source_are_one_row_with_the_first_and_last_time() -> None:
    """Class 5 of port 3 drops two of 10.0.0.9's packets; another has no IPv4, one is too short."""
    store = Store()
    make_pool(store, size=64, head_bytes=64, field_count=8, lane_count=0)
    at = make_network(store, ports=4, nodes=2, agents=1, ring=0, bins=2, seed=1)
    head = bytearray(60)
    head[12:14], head[26:30] = b"\x08\x00", bytes([10, 0, 0, 9])
    other = bytearray(head)
    other[12] = 9
    note_drop(store.arena, at, 3, 5, write_packet(store.arena, bytes(head)), 50)
    watch_drops(store, at)  # before which drops are not counted
    for number, (level, data) in enumerate(
        [(5, head), (5, head), (4, head), (5, other), (5, head[:29]), (5, head[:30]), (5, head)]
    ):
        packet = write_packet(store.arena, bytes(data))
        note_drop(store.arena, at, 3, level, packet, 100 * number)
    source = 10 << 24 | 9
    assert read_drops([open_network(store.arena, at)]) == [
        DropCount(3, 4, source, 1, 60, 200, 200),
        DropCount(3, 5, 0, 2, 89, 300, 400),
        DropCount(3, 5, source, 4, 210, 0, 600),
    ]


def test_keys_are_spread_over_the_table() -> None:
    """Of 1024 rows, 256 keys of near ports and addresses would take some 226 at random."""
    store = Store()
    at = make_network(store, ports=4, nodes=2, agents=1, ring=0, bins=2, seed=1)
    watch_drops(store, at)
    net = open_network(store.arena, at)
    taken = set()
    for port in range(16):
        for host in range(16):
            clear_drops(net)
            row = find_row(store.arena.words, at, (port << 3) + 1, (10 << 24) + (port << 8) + host)
            taken.add(int(row))
    assert len(taken) > 210


@pytest.mark.parametrize(
    ("ports", "rows"), [(1, 1024), (256, 1024), (257, 2048), (1 << 14, 1 << 16), (1 << 15, 1 << 16)]
)
def test_there_are_rows_for_four_sources_of_each_port(ports: int, rows: int) -> None:
    """1024 at least and 65,536 at most, always a power of two."""
    store = Store()
    at = store.allocate("words", s.NETWORK_WORDS)
    store.arena.words[at + s.PORTS] = ports
    watch_drops(store, at)
    assert store.arena.words[at + s.DROP_ROWS] == rows
