"""Packets of rc that are lost, late or repeated: what is sent again, and when."""

from __future__ import annotations

import heapq
import random

from hypothesis import given
from hypothesis import strategies as st
from rc_wire import DELAY_PS, MTU, Wire, kinds, lose, opcodes

from ringleaf.core.packets import POOL_FREE, POOL_SIZE, copy_packet, read_packet
from ringleaf.hosts import rc
from ringleaf.hosts.agent import RETRANSMISSIONS
from ringleaf.hosts.congestion.control import DELAY_PS as HEARD_PS
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.hosts.rc.state import CONTROL_AT, open_qp


def test_lost_packet_is_sent_again_after_a_nak() -> None:
    wire = Wire(window=8)
    wire.loss = 0.5
    draws = iter([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])  # twice, loss, mark, late; then packet 2 is lost
    wire.rng.random = lambda: next(draws, 1.0)  # type: ignore[method-assign]
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, bytes(range(40)), 0, tag=0)
    wire.run()

    assert wire.store.arena.memory[4096:4136].tobytes() == bytes(range(40))
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 4
    assert wire.completions[-1].time_ps == 4 * DELAY_PS, "a NAK brings it back, no timeout"


def test_a_lost_tail_is_sent_again_when_a_probe_has_found_it_missing() -> None:
    """Nothing comes after the last packet that would make a NAK.

    The first two are acknowledged after 2 delays; the timeout is the floor then, 10.
    """
    wire = Wire(window=8)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, bytes(range(24)), 0, tag=0)
    lose(wire, 2)
    wire.run()

    assert wire.store.arena.memory[4096:4120].tobytes() == bytes(range(24))
    assert opcodes(wire, 0) == [0x00, 0x01, 0x02, 0xC0, 0x02]
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 1
    assert wire.completions[-1].time_ps == (2 + 10 + 2 + 2) * DELAY_PS


def test_a_probe_whose_answer_is_lost_is_followed_by_one_after_twice_the_time() -> None:
    """RFC 6298, 5.5; and what has arrived is never sent again."""
    wire = Wire(window=8)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, b"tensor", 0, tag=0)
    lose(wire, 2, 4)  # the acknowledgement, behind that of credit, and the first probe's answer
    wire.run()

    assert opcodes(wire, 0) == [0x04, 0xC0, 0xC0]
    assert [ps for f, ps in zip(wire.sent, wire.sent_ps, strict=True) if f[42] == 0xC0] == [
        20 * DELAY_PS,
        (20 + 40) * DELAY_PS,
    ]
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 0
    assert kinds(wire)[-1] == (rc.SENT, 0)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    held=st.lists(st.integers(0, 3000), min_size=1, max_size=8),
    window=st.integers(1, 9),
)
def test_nothing_is_sent_again_however_long_queues_hold_it(
    sizes: list[int], held: list[int], window: int
) -> None:
    """Packets wait for up to 75 times the first timeout, and stay in order: none is lost."""
    wire = Wire(window=window)
    free_ps = [0, 0]
    times = iter(held * 1000)

    def fly(end: int, packet: int) -> None:
        wire.sent.append(read_packet(wire.store.arena, packet))
        free_ps[end] = max(free_ps[end], wire.now_ps + DELAY_PS) + next(times, 0) * DELAY_PS
        wire.order += 1
        heapq.heappush(wire.flying, (free_ps[end], wire.order, 1 - end, packet))

    wire._fly = fly  # type: ignore[method-assign]
    for tag, size in enumerate(sizes):
        wire.expect(1, 4096 + 64 * tag, 64, tag)
        wire.post(0, bytes(size), 64 * tag, tag)
    wire.run()

    assert [b for kind, b in kinds(wire) if kind == rc.SENT] == list(range(len(sizes)))
    data = [frame for frame in wire.sent if frame[29] == 1 and frame[42] < 0x11]
    assert len(data) == sum(-(-size // MTU) for size in sizes)


def test_a_nak_that_comes_twice_makes_the_sender_go_back_once() -> None:
    wire = Wire(window=8)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, bytes(range(40)), 0, tag=0)
    lose(wire, 1)
    fly = wire._fly

    def fly_twice(end: int, packet: int) -> None:
        if read_packet(wire.store.arena, packet)[42] == 0x11:
            fly(end, copy_packet(wire.store.arena, packet))
        fly(end, packet)

    wire._fly = fly_twice  # type: ignore[method-assign]
    wire.run()

    assert wire.store.arena.memory[4096:4136].tobytes() == bytes(range(40))
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 4


def test_a_probe_is_a_packet_without_data_to_scapy() -> None:
    import scapy.contrib.roce  # which takes the port, too
    from scapy.layers.inet import IP
    from scapy.layers.l2 import Ether

    from ringleaf.hosts.rc.layers import BTH, ICRC

    assert scapy.contrib.roce.BTH is not BTH

    wire = Wire(window=8)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, b"tensor", 0, tag=0)
    lose(wire, 0)
    wire.run()

    (probe,) = (Ether(frame) for frame in wire.sent if frame[42] == 0xC0)
    assert (probe[BTH].opcode, probe[BTH].psn, probe[BTH].ackreq) == (0xC0, 0, 1)
    assert isinstance(probe[BTH].payload, ICRC)
    assert probe[IP].len == len(probe) - 14


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=8),
    back=st.lists(st.integers(0, 50), max_size=4),
    seed=st.integers(0, 1 << 30),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    twice=st.sampled_from([0.0, 0.3]),
    late=st.sampled_from([0.0, 0.3]),
    flat=st.booleans(),
    cut=st.sampled_from([0.0, 0.1]),
    window=st.integers(1, 9),
    controller=st.sampled_from(list(CONTROLLERS)),
    marks=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_messages_arrive_exactly_once_in_order(
    sizes: list[int],
    back: list[int],
    seed: int,
    loss: float,
    twice: float,
    late: float,
    flat: bool,
    cut: float,
    window: int,
    controller: str,
    marks: float,
) -> None:
    wire = Wire(
        seed=seed,
        loss=loss,
        twice=twice,
        late=late,
        flat=flat,
        cut=cut,
        window=window,
        controller=controller,
        marks=marks,
    )
    payload = random.Random(seed)
    expected: dict[int, bytes] = {}
    for end, lengths in enumerate((sizes, back)):
        for tag, length in enumerate(lengths):
            data = payload.randbytes(length)
            source, target = 8192 * end + 64 * tag, 32768 + 8192 * end + 64 * tag
            wire.expect(1 - end, target, 64, tag)
            wire.post(end, data, source, tag)
            expected[target] = data
    wire.run()

    arena = wire.store.arena
    for target, data in expected.items():
        assert arena.memory[target : target + len(data)].tobytes() == data
    for end, lengths in enumerate((sizes, back)):
        sent = [c.b for c in wire.completions if (c.agent, c.kind) == (wire.ends[end], rc.SENT)]
        got = [
            c.b for c in wire.completions if (c.agent, c.kind) == (wire.ends[1 - end], rc.RECEIVED)
        ]
        assert sent == got == list(range(len(lengths)))
    assert arena.own[POOL_FREE] == arena.words[POOL_SIZE], "a packet was leaked"


def test_a_probes_answer_tells_controllers_no_round_trip() -> None:
    """A packet's acknowledgement is lost, so the answer comes after a timeout (Karn)."""
    wire = Wire(window=8, controller="swift")
    wire.expect(1, 4096, 100, tag=0)
    wire.expect(1, 4196, 100, tag=1)
    words = wire.store.arena.words
    block = int(open_qp(wire.store.arena, wire.ends[0], 0).state[CONTROL_AT])
    wire.run()
    wire.post(0, b"tensor", 0, tag=0)
    wire.run()
    assert words[block + HEARD_PS] == 2 * DELAY_PS

    lose(wire, len(wire.sent) + 1)
    wire.post(0, b"tensor", 0, tag=1)
    wire.run()

    assert opcodes(wire, 0)[-2:] == [0x04, 0xC0]
    assert words[block + HEARD_PS] == 0, "it is not known"
