"""Packets that arrive without their data are asked for at once, and from the right one on."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rc_wire import DELAY_PS, MTU, Wire

from ringleaf.core import compiled
from ringleaf.core.arena import Store
from ringleaf.core.packets import free_packet, read_packet, write_packet
from ringleaf.hosts import rc
from ringleaf.hosts.congestion.control import make_control
from ringleaf.hosts.controllers import nscc
from ringleaf.hosts.rc import trimming
from ringleaf.hosts.rc.state import open_qp

OPCODE, PSN, SYNDROME = 42, slice(51, 54), 54
NOTICE, ACKNOWLEDGE, NAK = 0xC1, 0x11, 0x60


@dataclass
class Trimmer(Wire):
    """A wire that cuts the data of some packets when they are first sent."""

    victims: set[int] = field(default_factory=set)  # PSNs
    overtaking: bool = False  # headers arrive before all data on the way

    def _arrive(self, packet: int) -> int:
        data = read_packet(self.store.arena, packet)
        psn = int.from_bytes(data[PSN])
        if not self._is_data(packet) or psn not in self.victims:
            return packet
        self.victims.remove(psn)
        free_packet(self.store.arena, packet)
        headers = write_packet(self.store.arena, data[:54])
        if not self.overtaking:
            return headers
        self.order += 1
        heapq.heappush(self.flying, (self.now_ps + DELAY_PS // 2, self.order, 1, headers))
        return write_packet(self.store.arena, b"\0" * 60)  # belongs to nobody

    def exchange(self, packets: int) -> bytes:
        """Send a message of so many packets, and return what has come."""
        data = bytes(i % 251 for i in range(packets * MTU))
        self.expect(1, 8192, len(data), 7)
        self.post(0, data, 0, 3)
        self.run()
        assert bytes(self.store.arena.memory[: len(data)]) == data
        return bytes(self.store.arena.memory[8192 : 8192 + len(data)])

    def data_psns(self) -> list[int]:
        return [int.from_bytes(each[PSN]) for each in self.sent if each[OPCODE] < 0x11]

    def notices(self) -> list[tuple[int, int, int]]:
        """Return the notices' PSNs, whether they ask for it, and the packets that were cut."""
        return [
            (int.from_bytes(each[PSN]), each[SYNDROME], int.from_bytes(each[55:58]))
            for each in self.sent
            if each[OPCODE] == NOTICE
        ]

    def naks(self) -> int:
        return sum(
            each[OPCODE] == ACKNOWLEDGE and each[SYNDROME] & NAK == NAK for each in self.sent
        )


def test_the_sender_goes_back_to_the_packet_that_was_cut() -> None:
    wire = Trimmer(window=6, takes_cuts=True, victims={2})
    data = bytes(i % 251 for i in range(6 * MTU))
    assert wire.exchange(6) == data
    assert wire.data_psns() == [0, 1, 2, 3, 4, 5, 2, 3, 4, 5]
    assert wire.notices() == [(2, 1, 1)]
    assert wire.naks() == 0


@pytest.mark.parametrize(("controller", "losses"), [("dctcp", 1), ("nscc", 3)])
def test_controllers_that_count_cuts_are_told_of_each(controller: str, losses: int) -> None:
    """A notice of three cut packets, the first of which is asked for: others hear of one loss."""
    wire = Trimmer(window=6, controller=controller, takes_cuts=True)
    wire.post(0, bytes(6 * MTU), 0, 3)
    arena, at = wire.store.arena, wire.ends[0]
    for _ in range(3):
        free_packet(arena, rc.transmit(arena, at, 0, 0))
    told: list[int] = []
    head = np.zeros(80, np.uint8)
    head[PSN.start + 2], head[SYNDROME], head[SYNDROME + 3] = 1, 1, 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trimming, "note_loss", lambda *_: told.append(1))
        patch.setattr(trimming, "offer", lambda *_: None)
        trimming.receive_cut_notice(arena, at, 0, open_qp(arena, at, 0), head, 0)
    assert len(told) == losses


def test_headers_that_overtake_data_have_none_of_it_sent_again() -> None:
    wire = Trimmer(window=6, takes_cuts=True, victims={3}, overtaking=True)
    data = bytes(i % 251 for i in range(6 * MTU))
    assert wire.exchange(6) == data
    assert wire.data_psns() == [0, 1, 2, 3, 4, 5, 3, 4, 5]
    assert wire.notices() == [(3, 1, 1)]
    assert wire.naks() == 0


def test_several_that_were_cut_are_told_of_and_asked_for_once() -> None:
    wire = Trimmer(window=6, takes_cuts=True, victims={1, 2, 4}, overtaking=True)
    data = bytes(i % 251 for i in range(6 * MTU))
    assert wire.exchange(6) == data
    assert wire.data_psns() == [0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
    assert sum(count for _, _, count in wire.notices()) == 3
    assert [psn for psn, asks, _ in wire.notices() if asks] == [1]


def test_the_last_packet_needs_no_timeout() -> None:
    wire = Trimmer(window=6, takes_cuts=True, victims={5})
    wire.exchange(6)
    assert max(each.time_ps for each in wire.completions) == 4 * DELAY_PS  # the notice, and again


def test_without_it_a_cut_packet_is_as_good_as_lost() -> None:
    wire = Trimmer(window=6, victims={2})
    data = bytes(i % 251 for i in range(6 * MTU))
    assert wire.exchange(6) == data
    assert wire.notices() == []
    assert wire.naks() == 1


@settings(max_examples=10 if compiled.UNCOMPILED else 80, deadline=None)
@given(
    seed=st.integers(0, 1 << 20),
    packets=st.integers(1, 40),
    window=st.integers(1, 12),
    victims=st.sets(st.integers(0, 39)),
    overtaking=st.booleans(),
    loss=st.sampled_from((0.0, 0.1, 0.3)),
    twice=st.sampled_from((0.0, 0.2)),
    controller=st.sampled_from(("fixed", "nscc", "dctcp")),
)
def test_whatever_is_cut_lost_or_doubled_all_data_arrive(
    seed: int,
    packets: int,
    window: int,
    victims: set[int],
    overtaking: bool,
    loss: float,
    twice: float,
    controller: str,
) -> None:
    wire = Trimmer(
        seed=seed, loss=loss, twice=twice, window=window, controller=controller, takes_cuts=True,
        victims=set(victims), overtaking=overtaking,
    )  # fmt: skip
    assert wire.exchange(packets) == bytes(i % 251 for i in range(packets * MTU))


def test_nscc_has_three_quarters_of_a_round_trip_as_its_target() -> None:
    """As in uet-htsim (40ccb05): 0.75 of the round trip with trimming, else all of it."""
    for trims, target_ps in ((False, 12_000_000), (True, 9_000_000)):
        store = Store(1 << 12)
        at = make_control(
            store,
            nscc.CONTROLLER,
            window=60,
            line_bps=100_000_000_000,
            rtt_ps=12_000_000,
            trims=trims,
        )
        assert store.arena.words[at + nscc.TARGET_PS] == target_ps
