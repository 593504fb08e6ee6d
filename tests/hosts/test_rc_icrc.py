"""The ICRC of RoCEv2, and packets that it finds damaged."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rc_wire import DELAY_PS, Wire
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from ringleaf.core.packets import HEAD_LEN, open_packet, read_packet, write_packet
from ringleaf.hosts.agent import CORRUPTED
from ringleaf.hosts.rc.icrc import get_icrc, icrc_end, icrc_of, is_damaged, put_icrc
from ringleaf.networks.virtual.damage import flip

MASKED = (15, 22, 24, 25, 40, 41, 46)  # TOS, TTL, checksums of IPv4 and UDP, BTH's resv8a
ZERO = 0x6DD90A9D  # "9d0ad96d" has the CRC-32 0 alone


def frame(payload: bytes = b"", **bth: int) -> bytes:
    """Return a frame as scapy builds it, with its ICRC."""
    ends = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(
        src="10.0.0.1", dst="10.0.0.2"
    )
    return bytes(ends / UDP(sport=0xC000, dport=4791, chksum=0) / BTH(**bth) / Raw(payload))


def as_head(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8).copy()


@given(st.binary(max_size=40), st.integers(0, 255), st.integers(0, (1 << 24) - 1))
def test_it_is_that_of_scapy_and_starts_with_its_lowest_byte(
    payload: bytes, opcode: int, psn: int
) -> None:
    head = as_head(frame(payload, opcode=opcode, psn=psn, dqpn=psn ^ 1))
    assert icrc_end(head) == len(head)
    assert icrc_of(head, len(head)) == get_icrc(head, len(head))
    assert get_icrc(head, len(head)) == int.from_bytes(head[-4:].tobytes(), "little")
    put_icrc(head, len(head), 0x04030201)
    assert head[-4:].tolist() == [1, 2, 3, 4]


@given(st.sets(st.integers(14 * 8, 70 * 8 - 1), min_size=1, max_size=3))
def test_up_to_three_wrong_bits_are_found_but_for_what_may_change(bits: set[int]) -> None:
    """Koopman, DSN 2002: the Hamming distance is 4 up to 91,607 bits."""
    head = as_head(frame(bytes(range(12))))
    icrc = icrc_of(head, len(head))
    for bit in bits:
        head[bit // 8] ^= 1 << bit % 8
    changed = {bit for bit in bits if bit // 8 not in MASKED and bit // 8 < len(head) - 4}
    assert (icrc_of(head, len(head)) != icrc) == bool(changed)


def test_one_that_comes_to_zero_is_written_as_ones() -> None:
    """As UDP's checksum: the last four bytes are chosen so that the CRC is 0."""
    head = as_head(frame(bytes(8)))
    covered = head[14:-8].copy()
    for at in MASKED:
        covered[at - 14] = 0xFF
    before = crc32(b"\xff" * 8 + covered.tobytes())
    head[-8:-4] = np.frombuffer((before ^ ZERO).to_bytes(4, "little"), np.uint8)
    assert crc32(head[-8:-4].tobytes(), before) == 0
    assert icrc_of(head, len(head)) == 0xFFFFFFFF


@pytest.mark.parametrize("padding", [0, 3])
def test_a_receiver_believes_a_packet_without_one_and_one_with_the_right_one(padding: int) -> None:
    """Frames of live networks are padded."""
    wire = Wire()
    packet = write_packet(wire.store.arena, frame(b"data") + bytes(padding))
    view = open_packet(wire.store.arena, packet)
    end = 62
    assert not is_damaged(view)
    view.head[55] ^= 1
    assert is_damaged(view)
    put_icrc(view.head, end, 0)
    assert not is_damaged(view), "there is none"
    view.row[HEAD_LEN] = end - 1
    assert not is_damaged(view), "it lies behind the head"


class Damaging(Wire):
    """A wire that damages packets, as `number` says: by which random number, or None."""

    damaged = 0

    def number(self) -> int | None:
        return None

    def _arrive(self, packet: int) -> int:
        number = self.number()
        if number is not None:
            sent = read_packet(self.store.arena, packet)
            flip(self.store.arena, packet, number)
            came = read_packet(self.store.arena, packet)
            wrong = int.from_bytes(sent[:-4], "big") ^ int.from_bytes(came[:-4], "big")
            assert len(came) == len(sent)
            assert wrong.bit_count() == 1
            assert came[:42] == sent[:42]
            self.damaged += 1
        return super()._arrive(packet)

    def discarded(self) -> int:
        return sum(int(self.store.arena.words[at + CORRUPTED]) for at in self.ends)


def test_a_damaged_packet_is_as_a_lost_one_to_the_receiver() -> None:
    """By hand, as where the packet is lost: a NAK brings it back after four delays."""
    wire = Damaging(window=8)
    numbers = iter([None, 7, None])  # of the first three packets: credit, then data
    wire.number = lambda: next(numbers, None)  # type: ignore[method-assign]
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, bytes(range(40)), 0, tag=0)
    wire.run()

    assert wire.store.arena.memory[4096:4136].tobytes() == bytes(range(40))
    assert (wire.damaged, wire.discarded()) == (1, 1)
    assert wire.completions[-1].time_ps == 4 * DELAY_PS


@given(st.integers(0, 1 << 20), st.floats(0, 0.5), st.booleans())
def test_whatever_bits_are_wrong_messages_arrive_as_they_were_sent(
    seed: int, share: float, flat: bool
) -> None:
    wire = Damaging(seed=seed, flat=flat)
    wire.number = (  # type: ignore[method-assign]
        lambda: wire.rng.randrange(1 << 53) if wire.rng.random() < share else None
    )
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, bytes(range(100)), 0, tag=0)
    wire.run()

    assert wire.store.arena.memory[4096:4196].tobytes() == bytes(range(100))
    assert wire.discarded() == wire.damaged
