"""An agent of the transport whom tests face, a step at a time.

Parts run as plain Python, compiled or not, and handlers of controllers are Python's functions, too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rc_wire import end_of

import ringleaf.hosts.congestion.control as c
import ringleaf.hosts.rc.state as q
from ringleaf.core.arena import Arena, Store
from ringleaf.core.headers import UDP_LENGTH_AT, put16
from ringleaf.core.packets import make_pool, read_packet
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    make_ring,
    take_completions,
)
from ringleaf.hosts.congestion.registry import find_controller
from ringleaf.hosts.rc import sender, wire

MTU = 8


LEAST_PS = 1000


RNR_PS = 500


Handler = Callable[[Arena, int, int, int], int]


Address = Callable[[Handler], int]


class Agent:
    """An agent with two connected queue pairs; whoever faces it is the test."""

    def __init__(
        self, window: int = 64, controller: str = "", *, strict_classes: bool = True
    ) -> None:
        self.store = Store(1 << 16)
        make_pool(self.store, size=64, head_bytes=256, field_count=8, lane_count=0)
        self.ring = make_ring(self.store, 1024)
        self.at = rc.make_rc(
            self.store,
            host=0,
            ring=self.ring,
            mtu=MTU,
            window=window,
            min_timeout_ps=LEAST_PS,
            rnr_wait_ps=RNR_PS,
            strict_classes=strict_classes,
        )
        rc.add_qps(self.store, self.at, 2)
        rc.connect_qps(self.store, [end_of(self.at, 0, 0), end_of(self.at, 0, 1)])
        self.block = 0
        if controller:
            found = find_controller(controller)
            rc.control_qp(self.store, self.at, 0, found, line_bps=10**11, rtt_ps=8000)
            self.block = int(self.qp().state[q.CONTROL_AT])

    @property
    def arena(self) -> Arena:
        return self.store.arena

    def qp(self, number: int = 0) -> q.Qp:
        return q.open_qp(self.arena, self.at, number)

    def word(self, word: int) -> int:
        return int(self.arena.words[self.at + word])

    def control(self, word: int) -> int:
        return int(self.arena.words[self.block + word])

    def post(self, size: int, tag: int = 0, now_ps: int = 0, number: int = 0) -> bool:
        return bool(rc.post_send(self.arena, self.at, number, 64, size, tag, now_ps))

    def send(self, now_ps: int = 0) -> bytes:
        packet = rc.transmit(self.arena, self.at, 0, now_ps)
        return read_packet(self.arena, packet) if packet >= 0 else b""

    def answer(self, psn: int, syndrome: int, done: int = 0, now_ps: int = 0) -> None:
        sender.receive_answer(
            self.arena, self.at, 0, self.qp(), head_of(psn, syndrome, done), now_ps
        )

    def done(self) -> list[tuple[int, int, int]]:
        """Take reports: kind, queue pair and tag."""
        return [(each.kind, each.a, each.b) for each in take_completions(self.arena, self.ring)]


def head_of(psn: int, syndrome: int = 0, done: int = 0, opcode: int = 0x11) -> np.ndarray:
    """Return the head of an answer, as it comes from the peer."""
    head = np.zeros(256, np.uint8)
    head[wire.OPCODE_AT] = opcode
    head[wire.PSN_AT : wire.PSN_AT + 3] = np.frombuffer(psn.to_bytes(3, "big"), np.uint8)
    head[wire.SYNDROME_AT] = syndrome
    number = np.frombuffer(done.to_bytes(3, "big"), np.uint8)
    head[wire.SYNDROME_AT + 1 : wire.SYNDROME_AT + 4] = number
    put16(head, UDP_LENGTH_AT, 8 + 12 + 4 + 4)
    return head


class Told(Agent):
    """Queue pair 0 has a controller that notes what it is told, and sets nothing."""

    def __init__(self, plain_address: Address, controller: str = "timely") -> None:
        super().__init__(controller=controller)
        self.told: list[tuple[str, int, int]] = []
        names = ("ack", "loss", "cnp", "timer", "post")
        for place, name in enumerate(names):
            self.arena.words[self.block + c.HANDLERS + place] = plain_address(self.noting(name))

    def noting(self, name: str) -> Handler:
        def note(_arena: Arena, at: int, argument: int, now_ps: int) -> int:
            assert at == self.block
            self.told.append((name, argument, now_ps))
            return 0

        return note

    def set(self, word: int, value: int) -> None:
        self.arena.words[self.block + word] = value
