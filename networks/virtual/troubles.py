"""Disturbances of a network in virtual time: how they happen, and are undone after a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any
from weakref import WeakMethod

import networkx as nx

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.faults import CORRUPT
from ringleaf.errors import TopologyError
from ringleaf.ina.systems import System
from ringleaf.networks.faults import (
    Agenda,
    Direction,
    Disturbance,
    LinkDamage,
    LinkLoss,
    LinkRate,
    Reroute,
    check_verified,
    disturbances_of,
    left_of,
)
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual.losses import set_losses
from ringleaf.networks.virtual.switch_set import SwitchSet
from ringleaf.networks.virtual.trees import Trees
from ringleaf.topologies.graph import link, port


class Troubles:
    """The disturbances of a network's runs.

    Args:
        graph: The topology.
        options: The network's options, with faults of every run.
        switches: Its switches.
        links: The direction of each port, in order.
        store: The store that holds the network.
        networks: The blocks of the network's regions.
        head_bytes: Room for the head of a whole packet.
        systems: The network's aggregation systems.
        restart: Has a switch restart. Its object is not kept alive by this.
        trees: Builds aggregation trees again.

    Raises:
        ConfigError: If a fault is at a place that is not there, or sums would be wrong by it.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        options: NetworkOptions,
        switches: SwitchSet,
        *,
        links: Sequence[Direction],
        store: Store,
        networks: Sequence[int],
        head_bytes: int,
        systems: Collection[System],
        restart: Callable[[str], None],
        trees: Trees,
    ) -> None:
        self._graph, self._options, self._switches = graph, options, switches
        self._number = {each: number for number, each in enumerate(links)}
        self._store, self._networks, self._restart = store, networks, WeakMethod(restart)
        self._head_bytes, self._systems = head_bytes, systems
        self._trees = trees
        self._usual = disturbances_of(options.faults, graph, options.reroute_ps)
        self._check(self._usual)
        self._agenda: Agenda[Disturbance] = Agenda((), 0)
        self._losses: dict[Direction, float] = {}
        self._damages: dict[Direction, float] = {}
        self._touched: set[Direction] = set()
        self._is_rerouted = False

    @property
    def _ports(self) -> Any:
        return s.open_network(self._store.arena, self._networks[0]).ports

    @property
    def next_ps(self) -> int:
        """Time of the next one; `FOREVER_PS` if there is none."""
        return self._agenda.next_ps

    @property
    def usual(self) -> Sequence[Disturbance]:
        """Those of every run, which the options say."""
        return self._usual

    def begin(self, disturbances: Iterable[Disturbance], now_ps: int) -> None:
        """Note what will happen in a run that begins, besides the options' faults.

        Raises:
            ConfigError: If sums would be wrong by it.
        """
        changes = [*self._usual, *disturbances]
        if self._check(changes) and not self._store.arena.words[self._networks[0] + s.DAMAGE_AT]:
            from ringleaf.networks.virtual.damage import lay_out_damage  # compiles, or loads

            lay_out_damage(self._store, self._networks, self._head_bytes)
        self._agenda = Agenda(changes, now_ps)
        self.happen(now_ps)

    def _check(self, changes: Iterable[Disturbance]) -> bool:
        """Check that damaged packets are noticed; return whether there may be some."""
        damages = any(isinstance(each, LinkDamage) for each in changes)
        kinds = [CORRUPT] if damages else []
        check_verified(kinds, self._systems, trims=self._options.trim_bytes is not None)
        return damages

    def happen(self, now_ps: int) -> None:
        """Let all happen that is due."""
        for each in self._agenda.take_due(now_ps):
            if isinstance(each, LinkLoss):
                self._lose(each.link, each.loss)
            elif isinstance(each, LinkDamage):
                self._damage(each.link, each.share)
            elif isinstance(each, LinkRate):
                self._slow(each.link, each.rate_bps)
            elif isinstance(each, Reroute):
                self._reroute(each.without, now_ps)
            else:
                restart = self._restart()
                assert restart is not None, "its network is running"
                restart(each.switch)

    def settle(self, now_ps: int) -> None:
        """Restore links, routes and trees when a run is over, for the next one."""
        self._agenda.take_rest()
        for each in sorted(self._touched):
            self._lose(each, None)
            self._damage(each, None)
            self._slow(each, None)
        self._touched.clear()
        if self._is_rerouted:
            self._switches.reroute(self._graph)
            self._is_rerouted = False
        self._trees.restore(now_ps)

    def _lose(self, direction: Direction, share: float | None) -> None:
        _put(self._losses, direction, share)
        self._set_losses(direction)

    def _damage(self, direction: Direction, share: float | None) -> None:
        _put(self._damages, direction, share)
        self._set_losses(direction)

    def _set_losses(self, direction: Direction) -> None:
        self._touched.add(direction)
        usual = link(self._graph, *direction).loss_or(self._options.loss)
        loss, share = self._losses.get(direction, usual), self._damages.get(direction, 0.0)
        network, port = self._networks[0], self._number[direction]
        set_losses(self._store, network, port, loss, share)

    def _slow(self, direction: Direction, rate_bps: int | None) -> None:
        rate_bps = rate_bps or link(self._graph, *direction).rate_bps
        self._touched.add(direction)
        line = self._ports[self._number[direction]]
        if line[s.RATE_BPS] != rate_bps:
            line[s.RATE_BPS] = rate_bps
            self._switches.tell_rate(direction[0], port(self._graph, *direction), rate_bps)

    def _reroute(self, without: Iterable[Direction], now_ps: int) -> None:
        left = left_of(self._graph, without)
        try:
            self._switches.reroute(left)
            self._is_rerouted = True
        except TopologyError:  # no way leads around them, so packets wait for the old one
            pass
        self._trees.rebuild(left, now_ps)


def _put(shares: dict[Direction, float], direction: Direction, share: float | None) -> None:
    """Enter a share, or take it out."""
    if share is None:
        shares.pop(direction, None)
    else:
        shares[direction] = share
