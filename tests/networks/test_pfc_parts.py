"""The parts of priority flow control: frames, headroom, queues with paused classes, rings."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringleaf.networks.virtual.state as s
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool, write_packet
from ringleaf.core.pausing import Pausing
from ringleaf.core.tensors import INT32
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.networks.virtual.fabric import places
from ringleaf.networks.virtual.pfc.charges import (
    charge,
    discharge,
    has_room,
    join_ring,
    leave_ring,
)
from ringleaf.networks.virtual.pfc.frames import take_frame
from ringleaf.networks.virtual.pfc.layout import (
    ASKED,
    HEADROOM,
    HELD,
    HIDDEN,
    MAC,
    NIC_AT,
    PAUSED,
    PAUSED_PS,
    PAUSES,
    PEAKS,
    ROW_WORDS,
    SINCE_PS,
    UNTOLD,
)
from ringleaf.networks.virtual.pfc.queues import eligible, pop_eligible
from ringleaf.networks.virtual.pfc.tables import (
    ENDLESS_BYTES,
    headroom_bytes,
    pause_rows,
    read_pauses,
)
from ringleaf.networks.virtual.state import open_network
from ringleaf.switches.engine.disciplines import make_port_queues
from ringleaf.switches.engine.queues import CAPACITY_BYTES, LENGTHS, push
from ringleaf.topologies.registry import build

PAUSE = "0180c2000001020100000003880801010001ffff" + 14 * "00" + 26 * "00"
"""IEEE 802.1Qbb: to 01-80-C2-00-00-01, from port 3 of switch 0; class 0 for 65,535 quanta."""


def make_store() -> Store:
    store = Store(1 << 12)
    make_pool(store, size=64, head_bytes=128, field_count=8, lane_count=0)
    return store


def test_a_capture_has_the_standards_frames(tmp_path: Path) -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=3")
    options = NetworkOptions(pfc=Pausing(16_384, 8_192), capture=tmp_path)
    network = VirtualNetwork(graph, options)
    moves = tuple(Transfer(0, rank, 0, 0, Op.REDUCE) for rank in (1, 2))
    schedule = Schedule(Collective.REDUCE, "incast", 3, 1, moves)
    network.run(schedule, network.arrays(50_000, INT32, schedule))
    network.close()
    (capture,) = tmp_path.glob("*.pcapng")
    data = capture.read_bytes()
    pause = bytes.fromhex(PAUSE)
    assert len(pause) == 60
    go_on = pause[:18] + bytes(42)
    assert network.pauses is not None
    (asked,) = (port.asked for port in network.pauses.by_port(0) if port.peer == "h2")
    assert data.count(pause) == data.count(go_on) == asked > 0


def test_headroom_is_two_frames_a_pause_and_what_is_on_the_way() -> None:
    """At 12.5 bytes per ns: 2 us of delays, and 4,352 + 24 and 84 bytes on the port's own line."""
    ports = np.zeros((2, s.PORT_WORDS), np.int64)
    ports[:, s.PEER], ports[:, s.RATE_BPS], ports[:, s.DELAY_PS] = (1, 0), 10**11, 10**6
    assert headroom_bytes(ports, 4352).tolist() == 2 * [25_000 + 4_376 + 84 + 2 * 4_352]
    ports[1, s.RATE_BPS] = 10**10  # what comes by port 0 comes ten times as slowly
    slow, fast = headroom_bytes(ports, 4352).tolist()
    assert slow == 2_500 + 446 + 2 * 4_352
    assert fast == 25_000 + 44_600 + 2 * 4_352


@given(
    discipline=st.sampled_from(("strict", "wrr", "drr")),
    levels=st.lists(st.integers(0, 7), min_size=1, max_size=40),
    paused=st.integers(0, 255),
)
def test_paused_classes_stay_and_all_others_go(
    discipline: str, levels: list[int], paused: int
) -> None:
    store = make_store()
    arena = store.arena
    queues = make_port_queues(store, 1 << 20, discipline)
    mine = store.allocate("words", ROW_WORDS)
    arena = store.arena
    level_of = {}
    for level in levels:
        packet = write_packet(arena, bytes(60))
        assert push(arena.words, queues, packet, level)
        level_of[packet] = level
    arena.words[mine + PAUSED] = paused
    stay = sum(paused >> level & 1 for level in levels)
    went = []
    while eligible(arena.words, queues, paused) > 0:
        went.append(pop_eligible(arena, mine, queues, 0))
    assert len(went) == len(levels) - stay
    assert not any(paused >> level_of[packet] & 1 for packet in went)
    for level in range(8):
        in_order = [packet for packet in level_of if level_of[packet] == level]
        left = arena.words[queues + LENGTHS + level]
        assert left == (len(in_order) if paused >> level & 1 else 0)
        assert [packet for packet in went if level_of[packet] == level] == (
            [] if paused >> level & 1 else in_order
        )


@given(order=st.permutations(range(6)))
def test_the_last_of_a_ring_takes_the_charge_along(order: list[int]) -> None:
    arena = make_store().arena
    packets = [write_packet(arena, bytes(60)) for _ in range(6)]
    for copy, packet in zip([-1, *packets], packets, strict=False):
        join_ring(arena.words, packet, copy)
    assert [leave_ring(arena.words, packets[i]) for i in order] == [*5 * [False], True]


def test_thresholds_are_of_bytes_of_one_class_and_port() -> None:
    """Above XOFF, and not at it, there is a pause; at XON, and not above it, it ends."""
    options = NetworkOptions(pfc=Pausing(10_000, 4_000))
    network = VirtualNetwork(build("leafspine,leaves=1,spines=0,hosts=2"), options)
    network.meter()  # begins to count the bytes on lines
    arena, at = network.store.arena, network._network
    row = pause_rows(arena, at)[0]
    charge(arena, at, 0, 2, 9_000, 0)
    charge(arena, at, 0, 3, 9_000, 0)
    charge(arena, at, 0, 2, 1_000, 0)
    assert row[ASKED] == 0
    charge(arena, at, 0, 2, 1, 0)
    assert row[ASKED] == 1 << 2
    assert has_room(arena.words, at, 0, 2, int(row[HEADROOM]) - 1)
    assert not has_room(arena.words, at, 0, 2, int(row[HEADROOM]))
    discharge(arena, at, 0, 2, 6_000, 0)
    assert row[ASKED] == 1 << 2
    discharge(arena, at, 0, 2, 1, 0)
    assert row[ASKED] == 0
    assert row[PAUSES] == 1


def test_rows_have_room_for_what_there_is_of_each_class() -> None:
    blocks = [HELD, PEAKS, HIDDEN, ROW_WORDS]
    assert all(end - start >= 8 for start, end in pairwise(blocks))
    singles = [PAUSED, ASKED, UNTOLD, HEADROOM, NIC_AT, MAC, PAUSES, SINCE_PS, PAUSED_PS]
    assert max(singles) < HELD


def test_queues_of_switches_alone_become_endless() -> None:
    """A host's port has none, so the word that would be its capacity is another's."""
    graph = build("leafspine,leaves=1,spines=0,hosts=2")
    plain = VirtualNetwork(graph, NetworkOptions(queue_bytes=4000))
    network = VirtualNetwork(graph, NetworkOptions(queue_bytes=4000, pfc=Pausing(10_000, 4_000)))
    capacities = []
    for each in (plain, network):
        ports = open_network(each.store.arena, each._network).ports
        capacities.append(each.store.arena.words[ports[:, s.QUEUES_AT] + CAPACITY_BYTES].tolist())
    assert capacities[0][:2] == [4000, 4000]
    assert capacities[1] == [ENDLESS_BYTES, ENDLESS_BYTES, *capacities[0][2:]]


def test_a_pause_that_lasts_counts_up_to_now() -> None:
    """The first port was paused for 300 ps, and is since 700 ps; the others are not any more.

    Headroom has 2 us of 1.25 bytes per ns. The longest frame has 256 lanes of 4 bytes and 256
    bytes of headers; on the line it has 24 more, and a pause has 84.
    """
    graph = build("leafspine,leaves=1,spines=0,hosts=2,host_rate=10G,delay=1us")
    network = VirtualNetwork(graph, NetworkOptions(pfc=Pausing(10_000, 4_000), mtu_bytes=256))
    network.meter()
    arena, at = network.store.arena, network._network
    rows = pause_rows(arena, at)
    rows[:, PAUSED_PS], rows[:, SINCE_PS], rows[:, PAUSES] = 300, 700, 2
    rows[0, PAUSED] = 1 << 3
    found = read_pauses(arena, at, places(graph), 1000)
    assert [each.paused_ps for each in found] == [600, 300, 300, 300]
    assert {each.asked for each in found} == {2}
    assert {each.headroom_bytes for each in found} == {2500 + 1280 + 24 + 84 + 2 * 1280}
    assert [(each.node, each.peer) for each in found] == [
        (each.node, each.peer) for each in places(graph)
    ]


def test_a_frame_is_about_the_classes_that_it_names() -> None:
    store = make_store()
    mine = store.allocate("words", ROW_WORDS)
    words = store.arena.words
    words[mine + PAUSED] = 0b0000_0100
    head = np.zeros(60, np.uint8)
    head[17] = 0b0010_0001  # classes 0 and 5
    head[19] = 1  # a quantum for class 0
    assert not take_frame(store.arena, mine, head, 1000)
    assert words[mine + PAUSED] == 0b0000_0101
    head[17], head[19] = 0b0000_0101, 0
    assert take_frame(store.arena, mine, head, 3000)
    assert words[mine + PAUSED] == 0
    assert words[mine + PAUSED_PS] == 3000  # since 0, as class 2 was paused all the time


@pytest.mark.parametrize("level", range(8))
@pytest.mark.parametrize("other", [0, 1])
def test_a_frame_says_that_a_class_may_go_on(level: int, other: int) -> None:
    """Whether another class is paused, too, or none; a class that was not paused can't go on."""
    store = make_store()
    mine = store.allocate("words", ROW_WORDS)
    words = store.arena.words
    stays = other << (level + 1) % 8
    words[mine + PAUSED] = 1 << level | stays
    head = np.zeros(60, np.uint8)
    head[17] = 1 << level
    assert take_frame(store.arena, mine, head, 1000)
    assert words[mine + PAUSED] == stays
    assert not take_frame(store.arena, mine, head, 2000)


@pytest.mark.parametrize("delay", ["1us", "10us"])
def test_pauses_of_one_class_leave_others_alone(delay: str) -> None:
    """pFabric spreads flows over classes; their queues are paused each by itself."""
    graph = build(f"leafspine,leaves=2,spines=1,hosts=3,delay={delay}")
    pausing = Pausing(8_192, 4_096)
    network = VirtualNetwork(graph, NetworkOptions(pfc=pausing, cc="pfabric"))
    chunks = {1: 16, 2: 16, 3: 16, 4: 1, 5: 1}  # long flows, and short ones, which are urgent
    moves = tuple(
        Transfer(0, rank, 0, chunk, Op.REDUCE) for rank in chunks for chunk in range(chunks[rank])
    )
    schedule = Schedule(Collective.REDUCE, "incast", 6, 16, moves)
    arrays = network.arrays(1 << 18, INT32, schedule)
    for rank, array in enumerate(arrays):
        array[:] = rank
    result = network.run(schedule, arrays)
    assert (arrays[0][: 1 << 14] == 15).all()
    assert (arrays[0][1 << 14 :] == 6).all()
    assert result.drops == 0
    assert network.pauses is not None
    classes = {
        level
        for port in network.pauses.by_port(0)
        for level in range(8)
        if port.peak_bytes[level] > pausing.xoff_bytes
    }
    assert len(classes) > 1, "several classes were paused"
