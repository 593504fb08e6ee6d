"""Faults of a flow network: links that slow down or go dark, and routes that lead around them.

A flow is cut while its way, or that of its acknowledgements, has a link that is down. What is in
flight is lost then, and comes later; what a message lacks is carried again. Its sender goes on
until its window is full; if the way is whole again by then, the next packet tells the receiver what
is missing. After that it asks by a probe after a timeout, after twice that time, and so forth
(`hosts/rc/sender.py`), and goes on after the first one that gets through.
"""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx
import numpy as np

import ringleaf.networks.flow.filling as f
import ringleaf.networks.flow.state as n
from ringleaf.core.arena import Store, Words
from ringleaf.core.units import FOREVER_PS, PS_PER_S
from ringleaf.core.views import as_floats
from ringleaf.errors import ConfigError, TopologyError
from ringleaf.hosts.rc.state import MAX_BACKOFF, MIN_TIMEOUT_PS, SENDS_FIRST
from ringleaf.networks.faults import (
    Agenda,
    Direction,
    Disturbance,
    LinkLoss,
    LinkRate,
    Reroute,
    disturbances_of,
    left_of,
)
from ringleaf.networks.flow.layout import Layout
from ringleaf.networks.flow.messages import count_flow, push, qp_of
from ringleaf.networks.flow.ways import Ways
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.graph import link
from ringleaf.topologies.routing import routes


class FlowTroubles:
    """The faults of a flow network's runs.

    Args:
        graph: The topology.
        options: The network's options, with faults of every run.
        store: The store that holds the network.
        layout: Its tables.

    Raises:
        ConfigError: If a fault is at a place that is not there, or flows have no form for it.
    """

    def __init__(
        self, graph: nx.Graph[str], options: NetworkOptions, store: Store, layout: Layout
    ) -> None:
        self._graph, self._options, self._store, self._layout = graph, options, store, layout
        self._usual = disturbances_of(options.faults, graph, options.reroute_ps)
        self._check()
        self._agenda: Agenda[Disturbance] = Agenda((), 0)
        self._down: set[int] = set()
        self._slowed: set[int] = set()
        self._cut_ps: dict[int, int] = {}  # flows that are cut, and since when
        self._full_ps: dict[int, int] = {}  # when those that were on have a full window
        self._asks_ps: dict[int, int] = {}  # when those go on that could
        self._is_rerouted = False

    def _check(self) -> None:
        for each in self._usual:
            if isinstance(each, LinkLoss) and each.loss not in (None, 1.0):
                raise ConfigError(
                    f"faults: no fluid model covers loss, got {100 * (each.loss or 0):g}%; take "
                    "net=virtual"
                )
            if isinstance(each, LinkLoss) and self._layout.has_streams:
                raise ConfigError(
                    "faults: no fluid model covers aggregation by switches on links that fail, "
                    f"got {'-'.join(each.link)}; take net=virtual"
                )
            if isinstance(each, LinkRate) and each.rate_bps is not None:
                usual_bps = link(self._graph, *each.link).rate_bps
                if each.rate_bps > usual_bps:
                    raise ConfigError(
                        f"faults: flows' links can't get faster than {usual_bps} bit/s, got "
                        f"{each.rate_bps}; take net=virtual"
                    )

    @property
    def next_ps(self) -> int:
        """The time of the next change; `FOREVER_PS` if there is none."""
        return min([self._agenda.next_ps, *self._asks_ps.values()])

    def begin(self, now_ps: int) -> None:
        """Note what will happen in a run that begins."""
        self._agenda = Agenda(self._usual, now_ps)
        self.happen(now_ps)

    def happen(self, now_ps: int) -> None:
        """Let all happen that is due."""
        due = self._agenda.take_due(now_ps)
        for each in due:
            if isinstance(each, LinkRate):
                self._slow(each.link, each.rate_bps)
            elif isinstance(each, Reroute):
                self._look(now_ps)  # what was lost in this very instant is lost all the same
                self._reroute(each.without, now_ps)
            elif isinstance(each, LinkLoss):
                number = self._layout.number_of(each.link)
                (self._down.discard if each.loss is None else self._down.add)(number)
        if due:
            self._look(now_ps)
        for flow in sorted(flow for flow, at_ps in self._asks_ps.items() if at_ps <= now_ps):
            self._go_on(flow, now_ps)
        self._words[self._at + n.NOW_PS] = now_ps

    def settle(self, now_ps: int) -> None:
        """Have all links and ways as usual when a run is over."""
        self._agenda.take_rest()
        for number in sorted(self._slowed):
            self._slow(self._layout.ends_of(number), None)
        self._down.clear()
        if self._is_rerouted:
            self._reroute((), now_ps)
        for flow in sorted(self._cut_ps):
            self._go_on(flow, now_ps)

    @property
    def _words(self) -> Words:
        return self._store.arena.words

    @property
    def _at(self) -> int:
        return self._layout.at

    @property
    def _filling(self) -> int:
        return int(self._words[self._at + n.FILLING_AT])

    def _slow(self, direction: Direction, rate_bps: int | None) -> None:
        """Give a link a rate; acknowledgements take the same share of it as before."""
        words, floats = self._words, as_floats(self._words)
        number, usual_bps = (
            self._layout.number_of(direction),
            link(self._graph, *direction).rate_bps,
        )
        row = n.link_at(words, self._at, number)
        left = floats[row + n.REDUCED] / floats[row + n.FULL]
        floats[row + n.FULL] = float(rate_bps or usual_bps)
        floats[row + n.REDUCED] = float(int(floats[row + n.FULL] * left))
        answered = words[row + n.ANSWERED] > 0
        capacity = floats[row + (n.REDUCED if answered else n.FULL)]
        f.set_capacity(words, self._filling, number, capacity)
        self._slowed.add(number)

    def _look(self, now_ps: int) -> None:
        """Cut the flows that are to be cut now; those that need not be go on after a probe."""
        cut = self._broken()
        for flow in sorted(cut - self._cut_ps.keys()):
            self._cut(flow, now_ps)
        for flow in sorted(self._cut_ps):
            if flow in cut:
                self._asks_ps.pop(flow, None)
            elif flow not in self._asks_ps:
                self._asks_ps[flow] = self._probed_ps(flow, now_ps)

    def _broken(self) -> set[int]:
        """Return the flows with a link that is down, on their way or on that back."""
        if not self._down:
            return set()
        words = self._words
        flows, links = f.crossings(words, self._filling)
        first, count = words[self._at + n.FLOWS_AT], words[self._at + n.FLOWS]
        back = words[first : first + count * n.FLOW_WORDS].reshape(-1, n.FLOW_WORDS)[:, n.BACK]
        broken = np.zeros(len(back), bool)
        broken[flows[np.isin(links, list(self._down))]] = True
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
            sent = self._stop(flow, now_ps)
            flying = rate * (words[row + n.TAIL_PS] + words[row + n.ANSWER_PS]) / PS_PER_S
            floats[row + n.REST] += min(flying, sent)

    def _stop(self, flow: int, now_ps: int) -> float:
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

    def _start(self, flow: int, now_ps: int) -> None:
        """Put a flow that is on, and was stopped, on its links again."""
        words = self._words
        row = n.flow_at(words, self._at, flow)
        words[row + n.FROM_PS] = now_ps
        f.set_count(words, self._filling, flow, 1)
        count_flow(words, self._at, flow, int(words[row + n.BACK]), 1)

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
        least_ps = int(words[words[row + n.AGENT] + MIN_TIMEOUT_PS])
        is_new = since_ps > self._cut_ps[flow] and self._has_no_sample(flow)
        wait_ps = 2 * least_ps if is_new else least_ps
        probe_ps = since_ps + wait_ps
        while probe_ps < now_ps:
            wait_ps = min(2 * wait_ps, MAX_BACKOFF * least_ps)
            probe_ps += wait_ps
        return probe_ps + round_ps

    def _go_on(self, flow: int, now_ps: int) -> None:
        words = self._words
        row = n.flow_at(words, self._at, flow)
        self._cut_ps.pop(flow)
        self._full_ps.pop(flow, None)
        self._asks_ps.pop(flow, None)
        words[row + n.IS_CUT] = 0
        for kind, count in enumerate(self._late(row).tolist()):
            for _ in range(count):
                push(words, self._at, now_ps, kind, flow)
        self._late(row)[:] = 0
        if words[row + n.IS_ON]:
            self._start(flow, now_ps)

    def _has_no_sample(self, flow: int) -> bool:
        """Return whether a sender has not yet timed a round trip, so that it waits for longer."""
        return bool(qp_of(self._store.arena, self._at, flow).state[SENDS_FIRST] == 0)

    def _late(self, row: int) -> Words:
        """Return the numbers of events that were too late for a flow, by their kind."""
        return self._words[row + n.LATE : row + n.FLOW_WORDS]

    def _reroute(self, without: Collection[Direction], now_ps: int) -> None:
        """Have flows take the ways without some links; where there is none, all stay."""
        left = left_of(self._graph, without)
        try:
            ways = Ways(left, ecmp=self._options.ecmp, table=routes(left))
            moved = self._layout.moved(ways)
        except TopologyError:  # packets wait for the old way
            return
        self._is_rerouted = bool(without)
        words = self._words
        back = {int(words[n.flow_at(words, self._at, flow) + n.BACK]) for flow in moved}
        stopped = [flow for flow in sorted(moved.keys() | back) if self._is_carried(flow)]
        for flow in stopped:
            self._stop(flow, now_ps)
        self._layout.move(moved)
        for flow in stopped:
            self._start(flow, now_ps)

    def _is_carried(self, flow: int) -> bool:
        words = self._words
        row = n.flow_at(words, self._at, flow)
        return bool(words[row + n.IS_ON] and not words[row + n.IS_CUT])
