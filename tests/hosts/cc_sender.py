"""A queue pair's congestion control, told of events by tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleaf.core.arena import Store
from ringleaf.core.units import FOREVER_PS, PS_PER_US
from ringleaf.hosts.congestion.control import (
    DELAY_PS,
    IN_FLIGHT,
    MARKED,
    RATE_BPS,
    TIMER_AT_PS,
    WINDOW,
    Controller,
    make_control,
)

LINE_BPS = 100_000_000_000
RTT_PS = 8 * PS_PER_US
MOST = 64


@dataclass
class Sender:
    """A queue pair's block, and the time; packets are 4,178 bytes on the line."""

    controller: Controller
    line_bps: int = LINE_BPS
    rtt_ps: int = RTT_PS
    hops: int = 1
    store: Store = field(default_factory=Store)
    now_ps: int = 0

    def __post_init__(self) -> None:
        self.store.allocate("words", 64)
        self.at = make_control(
            self.store,
            self.controller,
            window=MOST,
            line_bps=self.line_bps,
            rtt_ps=self.rtt_ps,
            hops=self.hops,
        )
        self.first_window = self.word(WINDOW)

    def word(self, number: int) -> int:
        return int(self.store.arena.words[self.at + number])

    def set(self, number: int, value: int) -> None:
        self.store.arena.words[self.at + number] = value

    def happen(self, kind: str, number: int, marked: int, delay_ps: int = 0) -> None:
        """Let an event happen: `ack`, `post`, `nak`, `timeout`, `cnp` or `wait`.

        `number` counts packets, or microseconds to wait. An acknowledgement's delay is a round
        trip and `delay_ps`.
        """
        each, arena = self.controller, self.store.arena
        self.set(IN_FLIGHT, min(number, self.word(WINDOW)) if kind == "ack" else 0)
        self.set(MARKED, marked)
        self.set(DELAY_PS, self.rtt_ps + delay_ps)
        if kind == "wait":
            self.wait(number * PS_PER_US)
        elif kind == "ack":
            each.on_ack(arena, self.at, number, self.now_ps)
        elif kind == "post":
            each.on_post(arena, self.at, number, self.now_ps)
        elif kind == "cnp":
            each.on_cnp(arena, self.at, 0, self.now_ps)
        else:
            each.on_loss(arena, self.at, int(kind == "timeout"), self.now_ps)

    def wait(self, time_ps: int) -> None:
        """Let time pass; timers fire."""
        end_ps = self.now_ps + time_ps
        while self.word(TIMER_AT_PS) <= end_ps:
            self.now_ps = max(self.now_ps, self.word(TIMER_AT_PS))
            self.set(TIMER_AT_PS, FOREVER_PS)
            self.controller.on_timer(self.store.arena, self.at, 0, self.now_ps)
            assert self.word(TIMER_AT_PS) > self.now_ps, "time would stand still"
        self.now_ps = end_ps

    def is_open(self) -> bool:
        """Return whether it sends as it did at first, or faster."""
        is_wide = self.word(WINDOW) >= self.first_window
        return is_wide and self.word(RATE_BPS) in (0, self.line_bps)
