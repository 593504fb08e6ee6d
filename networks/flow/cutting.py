"""Flows that are cut, as a link that they need is down, and how their senders go on.

A flow is cut while its way, or that of its acknowledgements, has a link that is down. What is in
flight is lost then, and comes later; what a message lacks is carried again. Its sender goes on
until its window is full; if the way is whole again by then, the next packet tells the receiver what
is missing. After that it asks by a probe after a timeout, after twice that time, and so forth
(`hosts/rc/sender.py`), and goes on after the first one that gets through.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
from ringleaf.core.arena import Store, Words
from ringleaf.core.units import FOREVER_PS, PS_PER_S
from ringleaf.core.views import as_floats
from ringleaf.hosts.rc.state import MAX_BACKOFF, MIN_TIMEOUT_PS, QUIET_PS, SENDS_FIRST
from ringleaf.networks.flow.messages import SUMMED, count_flow, push, qp_of


class CutFlows:
    """The flows of a network that are cut.

    Args:
        store: The store that holds the network.
        at: Its block.
    """

    def __init__(self, store: Store, at: int) -> None:
        self._store, self._at = store, at
        self._cut_ps: dict[int, int] = {}  # flows that are cut, and since when
        self._full_ps: dict[int, int] = {}  # when those that were on have a full window
        self._goes_on_ps: dict[int, int] = {}  # when those go on that could

    @property
    def _words(self) -> Words:
        return self._store.arena.words

    @property
    def _filling(self) -> int:
        return int(self._words[self._at + n.FILLING_AT])

    @property
    def next_ps(self) -> int:
        """The time at which the next one goes on; `FOREVER_PS` if none does."""
        return min(self._goes_on_ps.values(), default=FOREVER_PS)

    def go_on(self, now_ps: int) -> None:
        """Have those go on whose time has come."""
        for flow in sorted(flow for flow, at_ps in self._goes_on_ps.items() if at_ps <= now_ps):
            self._go_on(flow, now_ps)

    def mend(self, now_ps: int) -> None:
        """Have all go on at once."""
        for flow in sorted(self._cut_ps):
            self._go_on(flow, now_ps)

    def look(self, down: Collection[int], now_ps: int) -> None:
        """Cut the flows that need a link that is down; others go on after a probe.

        Args:
            down: The links that are down.
            now_ps: The time.
        """
        cut = self._broken(down)
        for flow in sorted(cut - self._cut_ps.keys()):
            self._cut(flow, now_ps)
        for flow in sorted(self._cut_ps):
            if flow in cut:
                self._goes_on_ps.pop(flow, None)
            elif flow not in self._goes_on_ps:
                self._goes_on_ps[flow] = self._probed_ps(flow, now_ps)

    def _broken(self, down: Collection[int]) -> set[int]:
        """Return the flows with a link that is down, on their way or on that back."""
        if not down:
            return set()
        words = self._words
        flows, links = f.crossings(words, self._filling)
        first, count = words[self._at + n.FLOWS_AT], words[self._at + n.FLOWS]
        back = words[first : first + count * n.FLOW_WORDS].reshape(-1, n.FLOW_WORDS)[:, n.BACK]
        broken = np.zeros(len(back), bool)
        broken[flows[np.isin(links, list(down))]] = True
        return set(np.flatnonzero(broken | broken[back]).tolist())

    def _cut(self, flow: int, now_ps: int) -> None:
        """Stop a flow, and have what is in flight carried again."""
        words, floats = self._words, as_floats(self._words)
        row = n.flow_at(words, self._at, flow)
        words[row + n.IS_CUT] = 1
        self._cut_ps[flow] = now_ps
        if words[row + n.IS_ON]:
            rate = max(floats[row + n.RATE], 1.0)
            self._full_ps[flow] = now_ps + round(float(words[row + n.WINDOW]) * PS_PER_S / rate)
            sent = self.stop(flow, now_ps)
            flying = rate * (words[row + n.TAIL_PS] + words[row + n.ANSWER_PS]) / PS_PER_S
            floats[row + n.REST] += min(flying, sent)

    def _probed_ps(self, flow: int, now_ps: int) -> int:
        """Return when a cut flow, whose way is whole again, has the answer to a probe."""
        words = self._words
        row = n.flow_at(words, self._at, flow)
        is_on = bool(words[row + n.IS_ON])
        if not is_on and not self._late(row).any():
            return now_ps
        round_ps = int(words[row + n.TAIL_PS] + words[row + n.ANSWER_PS])
        since_ps = self._cut_ps[flow]
        if is_on:
            since_ps = max(since_ps, int(words[row + n.BEGAN_PS]))
        if is_on and now_ps <= self._full_ps.get(flow, since_ps):
            return now_ps + round_ps
        agent = words[row + n.AGENT]
        least_ps, quiet_ps = int(words[agent + MIN_TIMEOUT_PS]), int(words[agent + QUIET_PS])
        is_new = since_ps > self._cut_ps[flow] and self._has_no_sample(flow)
        wait_ps = 2 * least_ps if is_new else least_ps
        probe_ps = since_ps + quiet_ps + wait_ps
        while probe_ps < now_ps:
            wait_ps = min(2 * wait_ps, MAX_BACKOFF * least_ps)
            probe_ps += quiet_ps + wait_ps
        return probe_ps + round_ps

    def _go_on(self, flow: int, now_ps: int) -> None:
        words = self._words
        row = n.flow_at(words, self._at, flow)
        self._cut_ps.pop(flow)
        self._full_ps.pop(flow, None)
        self._goes_on_ps.pop(flow, None)
        words[row + n.IS_CUT] = 0
        for kind, count in enumerate(self._late(row).tolist()):
            for _ in range(count):
                push(words, self._at, now_ps, kind, flow)
        self._late(row)[:] = 0
        if words[row + n.IS_ON]:
            self.start(flow, now_ps)

    def _has_no_sample(self, flow: int) -> bool:
        """Return whether a sender has not yet timed a round trip, so that it waits for longer."""
        return bool(qp_of(self._store.arena, self._at, flow).state[SENDS_FIRST] == 0)

    def _late(self, row: int) -> Words:
        """Return the numbers of events that were too late for a flow, by their kind."""
        return self._words[row + n.LATE : row + n.LATE + SUMMED]

    def stop(self, flow: int, now_ps: int) -> float:
        """Take a flow that is on from its links; return the bits of its message since it began."""
        words, floats = self._words, as_floats(self._words)
        row = n.flow_at(words, self._at, flow)
        carried = floats[row + n.RATE] * (now_ps - words[row + n.FROM_PS]) / PS_PER_S
        floats[row + n.REST] = max(floats[row + n.REST] - carried, 0.0)
        sent = floats[row + n.RATE] * (now_ps - words[row + n.BEGAN_PS]) / PS_PER_S
        floats[row + n.RATE], words[row + n.FROM_PS] = 0.0, now_ps
        words[row + n.END_PS] = FOREVER_PS
        f.set_count(words, self._filling, flow, 0)
        count_flow(words, self._at, flow, int(words[row + n.BACK]), -1)
        return float(sent)

    def start(self, flow: int, now_ps: int) -> None:
        """Put a flow that is on, and was stopped, on its links again."""
        words = self._words
        row = n.flow_at(words, self._at, flow)
        words[row + n.FROM_PS] = now_ps
        f.set_count(words, self._filling, flow, 1)
        count_flow(words, self._at, flow, int(words[row + n.BACK]), 1)

    def is_carried(self, flow: int) -> bool:
        """Return whether bits of a flow's message may be on its links."""
        words = self._words
        row = n.flow_at(words, self._at, flow)
        return bool(words[row + n.IS_ON] and not words[row + n.IS_CUT])
