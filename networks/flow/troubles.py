"""Faults of a flow network: links that slow down or go dark, and routes that lead around them."""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx

import ringleaf.networks.flow.state as n
from ringleaf.core.arena import Store, Words
from ringleaf.core.units import PS_PER_S
from ringleaf.core.views import as_floats
from ringleaf.errors import TopologyError
from ringleaf.networks.faults import (
    Agenda,
    Direction,
    Disturbance,
    LinkLoss,
    LinkRate,
    Reroute,
    check_fluid,
    disturbances_of,
    left_of,
)
from ringleaf.networks.flow.counting import count_part
from ringleaf.networks.flow.cutting import CutFlows
from ringleaf.networks.flow.layout import Layout
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
        check_fluid(options.faults, adds=layout.has_streams)
        self._agenda: Agenda[Disturbance] = Agenda((), 0)
        self._down: set[int] = set()
        self._slowed: set[int] = set()
        self._cuts = CutFlows(store, layout.at)
        self._is_rerouted = False

    @property
    def next_ps(self) -> int:
        """The time of the next change; `FOREVER_PS` if there is none."""
        return min(self._agenda.next_ps, self._cuts.next_ps)

    def begin(self, now_ps: int) -> None:
        """Note what will happen in a run that begins."""
        self._agenda = Agenda(self._usual, now_ps)
        self.happen(now_ps)

    def happen(self, now_ps: int) -> None:
        """Let all happen that is due."""
        due = self._agenda.take_due(now_ps)
        if any(isinstance(each, LinkRate) for each in due):
            self._count_carried(now_ps)
        for each in due:
            if isinstance(each, LinkRate):
                self._slow(each.link, each.rate_bps)
            elif isinstance(each, Reroute):
                self._cuts.look(
                    self._down, now_ps
                )  # what was lost in this very instant is lost all the same
                self._reroute(each.without, now_ps)
            elif isinstance(each, LinkLoss):
                number = self._layout.number_of(each.link)
                (self._down.discard if each.loss is None else self._down.add)(number)
        if due:
            self._cuts.look(self._down, now_ps)
        self._cuts.go_on(now_ps)
        self._words[self._at + n.NOW_PS] = now_ps

    def settle(self, now_ps: int) -> None:
        """Have all links and ways as usual when a run is over."""
        self._agenda.take_rest()
        for number in sorted(self._slowed):
            self._slow(self._layout.ends_of(number), None)
        self._down.clear()
        if self._is_rerouted:
            self._reroute((), now_ps)
        self._cuts.mend(now_ps)

    @property
    def _words(self) -> Words:
        return self._store.arena.words

    @property
    def _at(self) -> int:
        return self._layout.at

    def _count_carried(self, now_ps: int) -> None:
        """Count what all messages have had carried, before a link's rate changes.

        Links are busy for longer with the same bytes when they are slow, so it matters when these
        were sent.
        """
        words, floats = self._words, as_floats(self._words)
        for flow in filter(self._cuts.is_carried, range(int(words[self._at + n.FLOWS]))):
            row = n.flow_at(words, self._at, flow)
            since = floats[row + n.RATE] * (now_ps - words[row + n.FROM_PS]) / PS_PER_S
            bits = floats[row + n.SIZE] - max(floats[row + n.REST] - since, 0.0)
            count_part(self._store.arena, self._at, flow, int(bits / 8), now_ps)

    def _slow(self, direction: Direction, rate_bps: int | None) -> None:
        """Give a link a rate; acknowledgements take the same share of it as before."""
        number = self._layout.number_of(direction)
        usual_bps = link(self._graph, *direction).rate_bps
        self._layout.set_rate(number, float(rate_bps or usual_bps))
        self._slowed.add(number)

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
        stopped = [flow for flow in sorted(moved.keys() | back) if self._cuts.is_carried(flow)]
        for flow in stopped:
            self._cuts.stop(flow, now_ps)
        self._layout.move(moved)
        for flow in stopped:
            self._cuts.start(flow, now_ps)
