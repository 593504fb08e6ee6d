"""Queue pairs of rc that share a line: rates, turns, priorities and congestion notices."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rc_wire import DELAY_PS, LINE_BPS, LINE_GAPS, MTU, Wire, add_pair, kinds

from ringleaf.core.packets import free_packet, read_packet
from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.errors import ProtocolError
from ringleaf.hosts import rc
from ringleaf.hosts.agent import READY, TIMER_AT_PS
from ringleaf.hosts.congestion.control import CNP_GAP_PS, RATE_BPS
from ringleaf.hosts.congestion.control import TIMER_AT_PS as CONTROL_TIMER_AT_PS
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.hosts.rc.congestion import tend
from ringleaf.hosts.rc.state import CONTROL_AT, open_qp
from ringleaf.hosts.rc.wire import PROBE


@given(
    rate_bps=st.integers(10**8, 10**13),
    size=st.integers(1, 400),
    loss=st.sampled_from([0.0, 0.2]),
    controller=st.sampled_from(sorted(CONTROLLERS)),
)
def test_a_paced_queue_pair_keeps_to_its_rate(
    rate_bps: int, size: int, loss: float, controller: str
) -> None:
    wire = Wire(window=16, loss=loss, controller=controller, marks=0.1)
    rc.set_rate(wire.store.arena, wire.ends[0], [0], rate_bps)
    wire.expect(1, 4096, size, tag=0)
    wire.post(0, bytes(size), 0, tag=0)
    wire.run()

    assert (rc.SENT, 0) in kinds(wire)
    frames = zip(wire.sent, wire.sent_ps, strict=True)
    data = [(len(f), at_ps) for f, at_ps in frames if f[29] == 1 and f[42] < 0x11]
    for (length, at_ps), (_, later_ps) in pairwise(data):
        assert later_ps - at_ps >= 8 * (length + LINE_GAPS) * PS_PER_S // rate_bps


@given(rate_bps=st.integers(3 * 10**8, 10**11), size=st.integers(2 * MTU, 400))
def test_a_controllers_rate_is_kept_to_the_picosecond(rate_bps: int, size: int) -> None:
    """At 300 Mbit/s, 90 bytes take 2.4 us, less than the longest pause, 256 times 10 ns."""
    wire = Wire(window=64, controller="dcqcn")
    block = open_qp(wire.store.arena, wire.ends[0], 0).state[CONTROL_AT]
    wire.store.arena.words[block + RATE_BPS] = rate_bps
    wire.expect(1, 4096, size, tag=0)
    wire.post(0, bytes(size), 0, tag=0)
    wire.run()

    frames = zip(wire.sent, wire.sent_ps, strict=True)
    data = [(len(f), at_ps) for f, at_ps in frames if f[29] == 1 and f[42] < 0x11]
    assert len(data) == -(-size // MTU)
    for (length, at_ps), (_, later_ps) in pairwise(data):
        assert later_ps - at_ps == max(
            8 * (length + LINE_GAPS) * PS_PER_S // rate_bps,
            8 * (length + LINE_GAPS) * PS_PER_S // LINE_BPS,
        )


@given(
    sizes=st.lists(st.integers(1, 60), min_size=2, max_size=5),
    rate_bps=st.integers(10**9, 10**11),
)
def test_queue_pairs_share_a_rate_in_turn(sizes: list[int], rate_bps: int) -> None:
    wire = Wire(window=64)
    for number in range(1, len(sizes)):
        add_pair(wire, number)
    arena = wire.store.arena
    rc.set_rate(arena, wire.ends[0], range(len(sizes)), rate_bps)
    for number, size in enumerate(sizes):
        assert rc.post_receive(arena, wire.ends[1], number, 0, size, number, rc.COPY)
        assert rc.post_send(arena, wire.ends[0], number, 0, size, number, 0)
    wire.run()

    assert sorted(kinds(wire)) == sorted(
        (kind, number) for kind in (rc.SENT, rc.RECEIVED) for number in range(len(sizes))
    )
    frames = zip(wire.sent, wire.sent_ps, strict=True)
    data = [(f, at_ps) for f, at_ps in frames if f[29] == 1 and f[42] < 0x11]
    for (frame, at_ps), (_, later_ps) in pairwise(data):
        gap_ps = 8 * (len(frame) + LINE_GAPS) * PS_PER_S // rate_bps
        assert gap_ps <= later_ps - at_ps <= gap_ps + 1, "or the rate is left unused"
    turn = {int.from_bytes(frame[47:50]) for frame, _ in data[: 2 * len(sizes)]}
    assert len(turn) == len(sizes), "nobody waits for long"


def test_an_agents_timer_is_no_later_than_its_controllers() -> None:
    """The controller wants to be called at 5 us; the agent's own timer was at 9, then at 3."""
    wire = Wire(controller="dcqcn")
    arena, at = wire.store.arena, wire.ends[0]
    qp = open_qp(arena, at, 0)
    block = qp.state[CONTROL_AT]
    for own_us, wanted_us in ((9, 5), (3, 3)):
        arena.words[at + TIMER_AT_PS] = own_us * PS_PER_US
        arena.words[block + CONTROL_TIMER_AT_PS] = 5 * PS_PER_US
        tend(arena, at, qp, PS_PER_US)
        assert arena.words[at + TIMER_AT_PS] == wanted_us * PS_PER_US
        assert arena.words[block + CONTROL_TIMER_AT_PS] == 5 * PS_PER_US


def test_rate_below_zero_is_refused() -> None:
    wire = Wire()
    with pytest.raises(ProtocolError, match="rc on h0: rate_bps must be at least 0, got -1"):
        rc.set_rate(wire.store.arena, wire.ends[0], [0], -1)


@given(
    priorities=st.lists(st.integers(0, 7), min_size=1, max_size=9),
    size=st.integers(1, 40),
    marks=st.booleans(),
)
def test_queue_pairs_send_by_priority_and_in_turn_among_equals(
    priorities: list[int], size: int, marks: bool
) -> None:
    """Whether packets carry the priority or not."""
    wire = Wire(window=64)
    arena = wire.store.arena
    for number, priority in enumerate(priorities):
        if number:
            add_pair(wire, number)
            arena = wire.store.arena
        rc.set_priority(arena, wire.ends[0], number, priority, marks=marks)
    for number in range(len(priorities)):
        assert rc.post_send(arena, wire.ends[0], number, 0, size, number, 0)

    order = []
    while arena.words[wire.ends[0] + READY]:
        packet = rc.transmit(arena, wire.ends[0], 0, 0)
        if packet >= 0:
            frame = read_packet(arena, packet)
            order.append(int.from_bytes(frame[47:50]) - 1)
            assert frame[15] >> 5 == (priorities[order[-1]] if marks else 0)  # class selector
            free_packet(arena, packet)

    turns = -(-size // MTU)
    levels = sorted(set(priorities), reverse=True)
    members = [[n for n, p in enumerate(priorities) if p == level] for level in levels]
    assert order == [number for same in members for number in same * turns]


def test_notices_tell_of_marks_and_come_at_most_once_per_gap() -> None:
    """RoCEv2's CNPs (annex A17.9.3), which scapy knows; acknowledgements count marks besides."""
    from scapy.contrib.roce import BTH

    wire = Wire(window=16, controller="dctcp", marks=1.0)
    for at in wire.ends:
        arena = wire.store.arena
        arena.words[open_qp(arena, at, 0).state[CONTROL_AT] + CNP_GAP_PS] = 10**9
    wire.expect(1, 4096, 200, tag=0)
    wire.post(0, bytes(200), 0, tag=0)
    wire.run()

    frames = [(frame, BTH(frame[42:])) for frame in wire.sent]
    notices = [(len(frame), bth) for frame, bth in frames if bth.opcode == 0x81]
    assert [(size, bth.becn, bth.dqpn) for size, bth in notices] == [(42 + 12 + 16 + 4, 1, 1)]
    acks = [bth for frame, bth in frames if bth.opcode == 0x11 and frame[29] == 2]
    assert acks[-1].resv6 == 25, "all packets came marked"
    assert [bth.becn for bth in acks] == [int(i > 0) for i in range(len(acks))]


@given(
    rate_bps=st.integers(1, 10**9),
    controller=st.sampled_from(sorted(set(CONTROLLERS) - {"fixed"})),
)
def test_no_controllers_pause_is_longer_than_the_longest_time_between_probes(
    rate_bps: int, controller: str
) -> None:
    """That is 256 least timeouts, of 10 delays here; a run without progress for long is a stall."""
    wire = Wire(window=16, controller=controller)
    block = int(open_qp(wire.store.arena, wire.ends[0], 0).state[CONTROL_AT])
    wire.store.arena.words[block + RATE_BPS] = rate_bps
    wire.expect(1, 4096, 2 * MTU, tag=0)
    wire.post(0, bytes(2 * MTU), 0, tag=0)
    wire.run()

    frames = zip(wire.sent, wire.sent_ps, strict=True)
    sent_ps = [at_ps for f, at_ps in frames if f[29] == 1 and f[42] != PROBE]
    asked_ps = 8 * (len(wire.sent[0]) + LINE_GAPS) * PS_PER_S // rate_bps
    assert sent_ps[1] - sent_ps[0] <= min(asked_ps, 256 * 10 * DELAY_PS)
    assert (rc.SENT, 0) in kinds(wire)
