"""Links, a step at a time: frames on the line, losses, captures."""

from __future__ import annotations

import numpy as np
import pytest
from loop_net import GBPS, HOST_PORT, Net

import ringleaf.networks.virtual.state as s
from ringleaf.core.heap import (
    order_at,
    word_of,
)
from ringleaf.core.packets import (
    DUE_WORD,
    OUTBOX_ROWS,
    OWNER,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    PHVS_FREE,
    PLACE,
    POOL_FREE,
    TAIL_LEN,
    read_packet,
    row_of,
)
from ringleaf.core.units import FOREVER_PS
from ringleaf.networks.virtual import lines
from ringleaf.networks.virtual.events import ARRIVAL, IDLE

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


ALWAYS = s.PROBABILITY_ONE


@pytest.mark.parametrize(
    ("rate_bps", "line_ps"),
    [(10 * GBPS, 99_200), (3 * GBPS, 330_667), (992 * GBPS, 1000)],
)
def test_a_frame_is_on_the_line_until_its_last_bit(rate_bps: int, line_ps: int) -> None:
    """100 bytes with FCS, preamble and gap are 992 bits; parts of a picosecond count whole."""
    net = Net()
    net.net.ports[HOST_PORT, [s.RATE_BPS, s.OUTWARD_PS]] = rate_bps, 50
    packet = net.packet()
    net.words[row_of(net.words, packet) + OWNER] = 1
    lines.send(net.arena, net.at, HOST_PORT, packet, 1000)
    port = net.net.ports[HOST_PORT]
    assert port[s.BUSY_UNTIL_PS] == 1000 + line_ps
    assert (port[s.TX_BYTES], port[s.TX_PACKETS], port[s.LOST]) == (124, 1, 0)
    assert net.net.bins[:, 0].tolist() == [0, 124, *8 * [0]]
    assert net.row(packet, PLACE) == 1
    assert net.row(packet, DUE_WORD) == word_of(order_at(1, 1), ARRIVAL | packet << 3)
    assert net.arena.own[PHVS_FREE] == 2 * OUTBOX_ROWS  # on a link it needs none
    assert net.events() == [(1000 + line_ps + 7000, ARRIVAL, packet)]


def test_bytes_count_from_when_the_frame_is_on_the_line() -> None:
    net = Net()
    net.net.ports[HOST_PORT, s.OUTWARD_PS] = 30
    net.words[net.at + s.BIN_PS] = 20
    lines.send(net.arena, net.at, HOST_PORT, net.packet(), 5)
    assert net.net.bins[0].tolist() == [0, 124, 0, 0]


def test_a_lost_packet_is_counted_and_free_again() -> None:
    net = Net()
    net.net.ports[HOST_PORT, s.LOSS] = ALWAYS
    free = net.arena.own[POOL_FREE]
    lines.send(net.arena, net.at, HOST_PORT, net.packet(), 0)
    assert net.net.ports[HOST_PORT, s.LOST] == 1
    assert net.arena.own[POOL_FREE] == free
    assert net.events() == []


@pytest.mark.parametrize(("word", "count"), [(s.DUPLICATE, 2), (s.REORDER, 1)])
def test_duplicates_and_late_packets_are_late_by_up_to_the_jitter(word: int, count: int) -> None:
    """Some of 200 are late by 0 and some by 3 ps, of 3 at most, and nothing is later."""
    net = Net()
    net.words[net.at + word] = ALWAYS
    net.words[net.at + s.JITTER_PS] = 3
    late = set[int]()
    for number in range(200):
        net.net.ports[HOST_PORT, s.BUSY_UNTIL_PS] = 0
        packet = net.packet()
        lines.send(net.arena, net.at, HOST_PORT, packet, 10**6 * number)
        found = net.events()
        assert len(found) == count
        due_ps = 10**6 * number + 99_200 + 7000
        times = [time_ps - due_ps for time_ps, _, index in found if count == 1 or index != packet]
        late.add(*times)
        if count == 2:
            assert [time_ps for time_ps, _, index in found if index == packet] == [due_ps]
    assert late == {0, 1, 2, 3}


def test_what_cannot_happen_draws_nothing_and_shares_are_of_53_bits() -> None:
    net = Net()
    random = net.arena.fields[int(net.words[net.at + s.RANDOM_AT]) :][:1]
    before = int(random[0])
    assert not lines.happens(random, 0)
    assert int(random[0]) == before
    share = int(lines.draw(random))
    for more, is_less in ((0, False), (1, True)):
        random[0] = before
        assert bool(lines.happens(random, share + more)) is is_less
    draws = [int(lines.draw(random)) for _ in range(2000)]
    assert 0 <= min(draws) < s.PROBABILITY_ONE / 100
    assert s.PROBABILITY_ONE * 0.99 < max(draws) < s.PROBABILITY_ONE
    assert all(lines.happens(random, ALWAYS) for _ in range(9))
    half = sum(bool(lines.happens(random, ALWAYS // 2)) for _ in range(2000))
    assert 880 < half < 1120


@pytest.mark.parametrize("port", [0, 2, 4])
def test_each_port_has_random_numbers_of_its_own(port: int) -> None:
    """So its losses do not depend on what other ports do."""
    net = Net()
    start = int(net.words[net.at + s.RANDOM_AT])
    states = net.arena.fields[start - 5 : start + 10]
    before = states.copy()
    net.net.ports[port, s.LOSS] = ALWAYS // 2
    lines.send(net.arena, net.at, port, net.packet(), 0)
    assert np.flatnonzero(states != before).tolist() == [5 + port]


def test_a_captured_packet_is_head_payload_and_zeros() -> None:
    """The first bit leaves OUTWARD_PS after the agent gave it away; order is that of sent ones."""
    net = Net()
    rows_at = net.store.allocate("words", 5 * s.CAPTURE_ROW_WORDS)
    bytes_at = net.store.allocate("bytes", 512)
    net.arena.bytes[bytes_at:] = 0xEE
    net.arena.memory[40:43] = 7, 8, 9
    state = net.net.state
    state[[s.CAPTURE_AT, s.CAPTURE_BYTES_AT]] = rows_at, bytes_at
    state[s.CAPTURE_COUNT], state[s.CAPTURE_USED] = 1, 11
    net.net.ports[2, [s.CAPTURE, s.OUTWARD_PS]] = s.CAPTURE_SENT | s.PIN, 50
    packet = net.packet(60)
    row = row_of(net.words, packet)
    net.words[row + PAYLOAD_AT], net.words[row + PAYLOAD_LEN], net.words[row + TAIL_LEN] = 40, 3, 4
    lines.send(net.arena, net.at, 2, packet, 1000)
    assert net.net.state[[s.CAPTURE_COUNT, s.CAPTURE_USED]].tolist() == [2, 11 + 67]
    entry = rows_at + s.CAPTURE_ROW_WORDS
    assert net.words[entry : entry + 5].tolist() == [1050, 2, bytes_at + 11, 67, s.SENT]
    got = net.arena.bytes[bytes_at + 10 : bytes_at + 79].tobytes()
    assert got == b"\xee" + bytes(range(60)) + b"\x07\x08\x09" + bytes(4) + b"\xee"
    net.arena.memory[40:43] = 0  # it took its payload along
    assert read_packet(net.arena, packet) == bytes(range(60)) + b"\x07\x08\x09" + bytes(4)


def test_only_what_is_asked_for_is_captured() -> None:
    net = Net()
    net.net.ports[HOST_PORT, s.CAPTURE] = s.CAPTURE_RECEIVED
    packet = net.packet(60)
    net.words[row_of(net.words, packet) + PAYLOAD_LEN] = 3
    lines.send(net.arena, net.at, HOST_PORT, packet, 0)
    assert net.net.state[s.CAPTURE_COUNT] == 0
    assert net.row(packet, PAYLOAD_LEN) == 3  # in the host's memory still


def test_a_busy_port_has_one_event_for_when_it_falls_idle() -> None:
    net = Net()
    net.net.ports[2, s.BUSY_UNTIL_PS] = 500
    for _ in range(2):
        lines.await_idle(net.words, net.at, 2)
    assert net.net.ports[2, s.DRAINING] == 1
    assert net.events() == [(500, IDLE, 2)]


def test_packets_for_another_region_are_left_in_its_box() -> None:
    net = Net()
    boxes = net.store.allocate("words", 4 * s.BOX_WORDS)
    state = net.net.state
    state[[s.MAIL_AT, s.HALF, s.MAIL_PS, s.REGION]] = boxes, 1, FOREVER_PS, 0
    net.net.ports[HOST_PORT, s.PEER_REGION] = 1
    for size, now_ps in ((100, 10**6), (101, 0)):
        net.net.ports[HOST_PORT, s.BUSY_UNTIL_PS] = 0
        lines.send(net.arena, net.at, HOST_PORT, net.packet(size), now_ps)
    box = boxes + 3 * s.BOX_WORDS  # region 1, half 1
    assert net.words[box] == 2
    times = net.words[box + s.BOX_HEADER : box + s.BOX_HEADER + 4 : 2]
    assert times.tolist() == [10**6 + 106_200, 107_000]
    assert net.net.state[s.MAIL_PS] == 107_000
    assert net.events() == []
