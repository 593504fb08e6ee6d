"""Packet trimming: sums are exact whatever is cut, and nothing is dropped while headers fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_net import SWITCH, Net, udp

import ringleaf.networks.virtual.state as s
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core import compiled
from ringleaf.core.packets import HEAD_LEN, PAYLOAD_LEN, TAIL_LEN, open_packet, row_of
from ringleaf.core.pausing import Pausing
from ringleaf.core.tensors import INT32, Array
from ringleaf.errors import ConfigError
from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES
from ringleaf.hosts.rc.wire import ACKNOWLEDGE, OPCODE_AT, SEND_FIRST, SEND_ONLY, TELEMETRY
from ringleaf.networks.options import Assigned
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork, trimming
from ringleaf.networks.virtual.events import IDLE
from ringleaf.switches.engine import layout
from ringleaf.switches.engine.queues import (
    BYTES,
    CAPACITY_BYTES,
    CLASS_BYTES,
    DROPPED,
    LENGTHS,
    TRIMMED,
    push,
)
from ringleaf.topologies.registry import build

FAST = settings(max_examples=4 if compiled.UNCOMPILED else 25, deadline=None)
RANKS = 6
TOPOLOGY = "leafspine,leaves=2,spines=2,hosts=3"


def run(elements: int, schedule: Schedule | None = None, **options: Any) -> tuple[RunResult, Array]:
    """Have five hosts send to the sixth, which adds, or another schedule; check the sum."""
    network = VirtualNetwork(build(TOPOLOGY), NetworkOptions(**options))
    if schedule is None:
        moves = tuple(Transfer(0, rank, 0, 0, Op.REDUCE) for rank in range(1, RANKS))
        schedule = Schedule(Collective.REDUCE, "incast", RANKS, 1, moves)
    arrays = network.arrays(elements, INT32, schedule)
    for rank, array in enumerate(arrays):
        array[:] = np.arange(elements) * (rank + 1) % 1009
    factors = np.arange(1, RANKS + 1)[:, None]
    total = (np.arange(elements) * factors % 1009).sum(axis=0)
    result = network.run(schedule, arrays)
    assert network.drain() == 0, "a packet leaked"
    assert np.array_equal(arrays[0], total)
    return result, arrays[0].copy()


@FAST
@given(
    elements=st.integers(1, 30_000),
    queue=st.integers(5_000, 150_000),
    room=st.integers(1, 20_000),
    congestion=st.sampled_from(("dctcp", "nscc", "hpcc", "swift", "dcqcn")),
    more=st.sampled_from(
        ({}, {"mtu_bytes": 1024}, {"loss": 0.02}, {"ecmp": True}, {"discipline": "drr"})
    ),
)
def test_sums_are_exact_whatever_is_cut(
    elements: int, queue: int, room: int, congestion: str, more: dict[str, Any]
) -> None:
    run(elements, queue_bytes=queue, trim_bytes=room, cc=congestion, **more)


@pytest.mark.parametrize("algorithm", ["ring", "halvingdoubling", "tree"])
def test_collectives_are_exact(algorithm: str) -> None:
    schedule = ALGORITHMS[algorithm].build(RANKS, size_bytes=120_000)
    run(30_000, schedule, queue_bytes=8_000, trim_bytes=4_000, cc="nscc")


@pytest.mark.parametrize("congestion", ["dctcp", "nscc"])
def test_headers_that_fit_leave_nothing_to_drop(congestion: str) -> None:
    dropped, _ = run(60_000, queue_bytes=30_000, cc=congestion)
    trimmed, _ = run(60_000, queue_bytes=30_000, trim_bytes=1 << 20, cc=congestion)
    assert dropped.drops > 0
    assert dropped.trims == 0
    assert trimmed.drops == 0
    assert trimmed.trims > 0
    assert trimmed.time_ps < dropped.time_ps


def test_headers_have_room_of_their_own_and_no_more() -> None:
    """Headers have 54 bytes, so a second one is dropped."""
    result, _ = run(60_000, queue_bytes=30_000, trim_bytes=60, cc="nscc")
    assert result.drops > 0
    assert result.trims > 0
    assert (result.peak_queue_bytes or 0) <= 30_000 + 60


def test_copies_of_cut_packets_do_not_keep_data_from_the_path() -> None:
    """Or each has another one sent, and headers, which go first, fill the path for ever."""
    topology = build("leafspine,leaves=2,spines=1,hosts=1,node=dgx1,rate=400G")
    options = NetworkOptions(mtu_bytes=1024, queue_bytes=16_000, trim_bytes=1_000, duplicate=0.1)
    network = VirtualNetwork(topology, options, seed=119_100)
    schedule = ALGORITHMS["allpairs"].build(16, size_bytes=45_056)
    arrays = network.arrays(11_264, INT32, schedule)
    for array in arrays:
        array[:] = np.arange(11_264)
    result = network.run(schedule, arrays)
    assert result.trims > 1_000
    assert all(np.array_equal(array, 16 * np.arange(11_264)) for array in arrays)


def test_queues_that_are_never_full_cut_nothing() -> None:
    plain, _ = run(20_000, cc="dctcp")
    trimming, _ = run(20_000, cc="dctcp", trim_bytes=1 << 16)
    assert trimming.trims == 0
    assert plain.finish_ps == trimming.finish_ps
    assert plain.link_bytes == trimming.link_bytes


@FAST
@given(threads=st.integers(2, 4), queue=st.integers(10_000, 60_000))
def test_any_number_of_threads_gives_the_same(threads: int, queue: int) -> None:
    found = []
    for count in (1, threads):
        result, _ = run(20_000, queue_bytes=queue, trim_bytes=8_000, cc="nscc", threads=count)
        found.append((result.finish_ps, result.link_bytes, result.trims, result.drops))
    assert found[0] == found[1]


trim = getattr(trimming.trim, "function", trimming.trim)
ROOM, SLOT = 120, 9
WITH_TELEMETRY = 54 + TELEMETRY_BYTES


class Trimming(Net):
    """A switch whose port 2 is busy until 500 ps, with room for 1000 bytes and 120 of headers."""

    def __init__(self) -> None:
        super().__init__()
        block = self.store.allocate("words", trimming.BLOCK_WORDS)
        s.watch_queues(self.store, self.at)
        self.words[block + trimming.ROOM] = ROOM
        net = self.net
        net.state[s.TRIM_AT], net.state[s.QUEUE_BIN_PS] = block, 1000
        net.nodes[SWITCH, s.DSCP_SLOT] = SLOT
        net.ports[2, s.BUSY_UNTIL_PS] = 500
        self.queue = self.queues[1]
        self.words[self.queue + CAPACITY_BYTES] = 1000

    def frame(
        self, payload: int, *, level: int = 0, opcode: int = SEND_ONLY, port: int = 4791,
        head: int = 54,
    ) -> int:  # fmt: skip
        """Return a packet of rc's, of head, payload and an ICRC of 4 bytes."""
        packet = self.packet(min(head, 128))
        view = open_packet(self.arena, packet)
        view.head[:42] = np.frombuffer(udp(port), np.uint8)
        view.head[15], view.head[OPCODE_AT] = 0b11, opcode  # congestion was experienced
        view.row[HEAD_LEN], view.row[PAYLOAD_LEN], view.row[TAIL_LEN] = head, payload, 4
        view.fields[layout.PRIORITY] = level
        return packet

    def fill(self, payload: int, level: int = 0) -> int:
        packet = self.frame(payload, level=level)
        return packet if push(self.words, self.queue, packet, level) else -1

    def trim(self, packet: int) -> int:
        """Have a packet trimmed that found no room; return 0 if it must be dropped."""
        assert not push(self.words, self.queue, packet, 0)
        return int(trim(self.arena, self.at, packet | 2 << s.PACKET_BITS, 400))

    def counts(self) -> tuple[int, ...]:
        places = BYTES, CLASS_BYTES + 7, DROPPED, TRIMMED, CAPACITY_BYTES
        return tuple(int(self.words[self.queue + place]) for place in places)


def test_a_packet_that_is_cut_keeps_its_headers_and_becomes_urgent() -> None:
    """Of 700 bytes, 54 are left: class 7 is 0xE0 of TOS, whose last bits are ECN's, and DSCP 56.

    The checksum of 0x45E3, 0x11 and zeros otherwise is ~(0x45E3 + 0x0011).
    """
    net = Trimming()
    net.fill(700 - 58)
    packet = net.frame(700 - 58)
    assert net.trim(packet) == 1
    assert net.counts() == (754, 54, 0, 1, 1000)
    row = net.words[row_of(net.words, packet) :]
    assert (row[HEAD_LEN], row[PAYLOAD_LEN], row[TAIL_LEN]) == (54, 0, 0)
    head = open_packet(net.arena, packet).head
    assert head[14:26].tobytes().hex() == "45e3" + 14 * "0" + "11" + f"{0xFFFF - 0x45F4:04x}"
    assert (net.field(packet, layout.PRIORITY), net.field(packet, SLOT)) == (7, 56)
    assert net.words[net.queue + LENGTHS + 7] == 1
    assert net.net.queue_bins[2 * 8 : 3 * 8, 0].tolist() == [700, *6 * [0], 54]
    assert net.events() == [(500, IDLE, 2)]


def test_headers_take_the_room_beside_the_queue() -> None:
    """Two of 54 bytes go into 120, a third does not; data have 1000 bytes for themselves."""
    net = Trimming()
    net.fill(600 - 58)
    cut = [net.trim(net.frame(700)) for _ in range(3)]
    assert cut == [1, 1, 0]
    assert net.counts() == (708, 108, 1, 2, 1000)
    assert net.trim(net.frame(400 - 58)) == 1, "of data there are 1000 bytes then"
    assert net.counts() == (1108, 108, 1, 2, 1000)
    assert net.trim(net.frame(1)) == 0
    assert net.counts() == (1108, 108, 2, 2, 1000)


@pytest.mark.parametrize(("size", "is_taken"), [(66, True), (67, False)])
def test_headers_that_arrive_cut_have_the_same_room(size: int, is_taken: bool) -> None:
    """54 bytes of 120 are taken; a queue of data is full."""
    net = Trimming()
    net.fill(1000 - 58)
    assert net.trim(net.frame(700)) == 1
    net.words[net.queue + CAPACITY_BYTES] = 1100  # of which 100 are left
    urgent = net.frame(size - 58, level=7)
    assert net.trim(urgent) == is_taken
    assert net.counts()[:3] == (1054 + is_taken * size, 54 + is_taken * size, not is_taken)


@pytest.mark.parametrize(
    ("told", "keeps"),
    [
        ({"payload": 1}, 54),
        ({"payload": 0}, 0),
        ({"payload": 0, "head": 55}, 54),
        ({"payload": 1, "head": 53}, 0),  # of a header that is shorter than its own
        ({"payload": 1, "opcode": SEND_FIRST}, 54),
        ({"payload": 1, "opcode": SEND_ONLY + 1}, 0),
        ({"payload": 1, "opcode": ACKNOWLEDGE}, 0),
        ({"payload": 1, "opcode": TELEMETRY | SEND_ONLY, "head": WITH_TELEMETRY}, WITH_TELEMETRY),
        ({"payload": 0, "opcode": TELEMETRY | SEND_ONLY, "head": WITH_TELEMETRY}, 0),
        ({"payload": 99, "opcode": TELEMETRY | SEND_ONLY, "head": WITH_TELEMETRY - 1}, 0),
        ({"payload": 1, "opcode": TELEMETRY | SEND_ONLY + 1, "head": WITH_TELEMETRY}, 0),
        ({"payload": 1, "port": 4790}, 0),
    ],
)
def test_only_data_that_have_more_than_headers_are_cut(told: dict[str, int], keeps: int) -> None:
    net = Trimming()
    assert trimming.headers_of(net.arena, net.frame(**told)) == keeps


def test_what_does_not_go_together_is_refused(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="trim: traces can't replay it yet, got record"):
        NetworkOptions(trim_bytes=1000, record=tmp_path)
    with pytest.raises(ConfigError, match="trim: with pfc no queue is full, got 1000 and pfc 9:9"):
        NetworkOptions(trim_bytes=1000, pfc=Pausing(9, 9))
    other = Assigned(Path(__file__).parents[1] / "switches" / "programs" / "padding.json", ())
    with pytest.raises(ConfigError, match=r"trim: s0 must run a program with ipv4\.dscp"):
        VirtualNetwork(build(TOPOLOGY), NetworkOptions(trim_bytes=1000, assigned={"s0": other}))
