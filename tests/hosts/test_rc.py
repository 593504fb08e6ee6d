"""Messages of rc between two agents: credit, receives, frames and refusals."""

from __future__ import annotations

import pytest
from rc_wire import DELAY_PS, Wire, kinds

from ringleaf.core.arena import Store
from ringleaf.errors import ProtocolError
from ringleaf.hosts import rc
from ringleaf.hosts.agent import RETRANSMISSIONS, make_ring
from ringleaf.hosts.fifo import FIFO_COUNT, fifo_pop, fifo_push, open_fifo
from ringleaf.hosts.rc.state import SENDERS_AT


def test_message_arrives_and_both_ends_are_told() -> None:
    wire = Wire()
    wire.expect(1, 4096, 100, tag=7)
    wire.post(0, b"gradient" * 5, 0, tag=3)
    wire.run()

    assert wire.store.arena.memory[4096 : 4096 + 40].tobytes() == b"gradient" * 5
    assert kinds(wire) == [(rc.RECEIVED, 7), (rc.SENT, 3)]


def test_frames_are_roce_v2_to_scapy() -> None:
    from scapy.contrib.roce import AETH, BTH
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.packet import split_layers

    split_layers(UDP, BTH, dport=4791)  # our own layers have this port in other tests
    wire = Wire(window=16)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, b"0123456789", 0, tag=0)
    wire.run()

    packets = [Ether(frame) for frame in wire.sent]
    transports = [BTH(packet[UDP].payload.original) for packet in packets]
    first, _, credit, ack = transports
    assert [transport.opcode for transport in transports] == [0x00, 0x02, 0x11, 0x11]
    assert [transport.psn for transport in transports] == [0, 1, 0xFFFFFF, 1]
    assert bytes(first.payload)[:8] == b"01234567"
    assert (credit[AETH].syndrome, credit[AETH].msn) == (1, 0), "one receive is posted"
    assert (ack[AETH].syndrome, ack[AETH].msn) == (0, 1), "it is used up"
    for packet in packets:
        assert packet[UDP].dport == 4791
        assert packet[IP].len == len(packet) - 14
        chksum = packet[IP].chksum
        del packet[IP].chksum
        assert Ether(bytes(packet))[IP].chksum == chksum


def test_sender_without_credit_waits_and_sends_nothing_twice() -> None:
    """Two messages, one receive: the second message waits for the second receive."""
    wire = Wire()
    wire.expect(1, 4096, 8, tag=0)
    wire.post(0, b"gradient", 0, tag=0)
    wire.post(0, b"tensor..", 64, tag=1)
    wire.run(until_ps=8 * DELAY_PS)
    assert kinds(wire) == [(rc.RECEIVED, 0), (rc.SENT, 0)]

    wire.expect(1, 8192, 8, tag=1)
    wire.run()
    assert kinds(wire)[2:] == [(rc.RECEIVED, 1), (rc.SENT, 1)]
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 0


def test_credit_is_told_when_it_has_doubled() -> None:
    """A sender that knows of two receives would otherwise send two messages per round trip."""
    wire = Wire()
    for tag in range(8):
        wire.expect(1, 4096 + 8 * tag, 8, tag)
        wire.run()
    syndrome_at = 14 + 20 + 8 + 12  # Ethernet, IPv4, UDP, BTH
    codes = [frame[syndrome_at] for frame in wire.sent]
    assert codes == [1, 2, 4, 6]  # for 1, 2, 4 and 8 credits


def test_message_waits_for_a_receive_to_be_posted() -> None:
    wire = Wire()
    wire.post(0, b"early", 0, tag=1)
    wire.run(until_ps=30 * DELAY_PS)
    assert kinds(wire) == []

    wire.expect(1, 4096, 100, tag=2)
    wire.run()
    assert kinds(wire) == [(rc.RECEIVED, 2), (rc.SENT, 1)]
    assert wire.store.arena.memory[4096:4101].tobytes() == b"early"


def test_message_longer_than_its_receive_is_reported_and_writes_nothing_beyond() -> None:
    wire = Wire()
    wire.store.arena.memory[4096:4200] = 0xEE
    wire.expect(1, 4096, 10, tag=2)
    wire.post(0, bytes(12), 0, tag=1)
    wire.run()

    assert (rc.OVERRUN, 2) in kinds(wire)
    assert set(wire.store.arena.memory[4106:4200].tolist()) == {0xEE}


def test_full_ring_of_requests_is_refused() -> None:
    wire = Wire()
    for tag in range(rc.RING):
        wire.expect(1, 0, 8, tag)
    assert not rc.post_receive(wire.store.arena, wire.ends[1], 0, 0, 8, 0, rc.COPY)


def test_bad_window_is_refused() -> None:
    with pytest.raises(ProtocolError, match="rc on h0: window must be 1 to 8388607, got 0"):
        Wire(window=0)


def test_priority_is_in_dscp_of_data_and_acknowledgements_and_checksums_hold() -> None:
    from scapy.layers.inet import IP
    from scapy.layers.l2 import Ether

    wire = Wire(window=16)
    for end, priority in enumerate((5, 3)):
        rc.set_priority(wire.store.arena, wire.ends[end], 0, priority)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, b"0123456789", 0, tag=0)
    wire.run()

    packets = [Ether(frame) for frame in wire.sent]
    assert {(packet[IP].src, packet[IP].tos) for packet in packets} == {
        ("10.0.0.1", 5 << 5 | 2),
        ("10.0.0.2", 3 << 5 | 2),
    }
    for packet in packets:
        chksum = packet[IP].chksum
        del packet[IP].chksum
        assert Ether(bytes(packet))[IP].chksum == chksum


def test_priority_out_of_range_is_refused() -> None:
    wire = Wire()
    with pytest.raises(ProtocolError, match="rc on h0: priority must be 0 to 7, got 8"):
        rc.set_priority(wire.store.arena, wire.ends[0], 0, 8)


def test_queue_pairs_are_added_while_others_wait_for_their_turn() -> None:
    """Tables move when they grow; those that are to send, or to answer, keep their order."""
    store = Store()
    at = rc.make_rc(
        store, host=0, ring=make_ring(store, 4), mtu=256, window=8, min_timeout_ps=1, rnr_wait_ps=1
    )
    rc.add_qps(store, at, 4)
    senders = at + SENDERS_AT
    for number in (0, 1, 2):
        fifo_push(open_fifo(store.arena, senders), number)
    fifo_pop(open_fifo(store.arena, senders))
    for number in (3, 0):  # the last one lies before the first one's place
        fifo_push(open_fifo(store.arena, senders), number)

    assert rc.add_qps(store, at, 5) == 4

    fifo = open_fifo(store.arena, senders)
    assert [fifo_pop(fifo) for _ in range(4)] == [1, 2, 3, 0]
    assert fifo.state[FIFO_COUNT] == 0
