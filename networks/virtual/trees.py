"""Aggregation trees of a network in virtual time, built again when switches or links fail."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

import ringleaf.networks.virtual.loop as loop
from ringleaf.core.arena import Store
from ringleaf.hosts.agent import HOST
from ringleaf.ina.rebuilding import Rebuilder, TreeChange
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.outcome import TreeRebuilt
from ringleaf.networks.virtual.regions import Regions
from ringleaf.networks.virtual.switch_set import SwitchSet


@dataclass(slots=True)
class _Change:
    rebuilder: Rebuilder
    at_ps: int
    resumed_ps: int | None = None


class Trees:
    """The controller of a network's aggregation trees.

    Args:
        store: The store that holds the network.
        endpoints: Its hosts, with the jobs.
        switches: Its switches.
        regions: Its parts, each with a thread.
    """

    def __init__(
        self, store: Store, endpoints: Endpoints, switches: SwitchSet, regions: Regions
    ) -> None:
        self._store, self._endpoints = store, endpoints
        self._switches, self._regions = switches, regions
        self._changes: list[_Change] = []
        self._start_ps = 0

    def begin(self, now_ps: int) -> None:
        """Note that a run begins."""
        self._changes, self._start_ps = [], now_ps

    def note_restart(self, switch: str) -> None:
        """Note that a switch has lost its registers."""
        for rebuilder in self._endpoints.rebuilders:
            rebuilder.note_restart(switch)

    def rebuild(self, left: nx.Graph[str], now_ps: int) -> None:
        """Have jobs that need it go on over trees of what is left of the topology."""
        for rebuilder in self._endpoints.rebuilders:
            self._look_at(rebuilder)
            if (change := rebuilder.rebuild(self._store.arena, left, now_ps)) is not None:
                self._changes.append(_Change(rebuilder, now_ps))
                self._tell(change, now_ps)

    def restore(self, now_ps: int) -> None:
        """Have jobs go on over their usual trees, when a run is over."""
        for rebuilder in self._endpoints.rebuilders:
            self._look_at(rebuilder)
            if (change := rebuilder.restore(self._store.arena, now_ps)) is not None:
                self._tell(change, now_ps)

    def take(self) -> tuple[TreeRebuilt, ...]:
        """Return the changes of the run that has just ended."""
        start_ps = self._start_ps
        return tuple(
            TreeRebuilt(
                each.at_ps - start_ps,
                None if each.resumed_ps is None else each.resumed_ps - start_ps,
            )
            for each in self._changes
        )

    def _look_at(self, rebuilder: Rebuilder) -> None:
        """Note when a job has gone on after its last change, before there is another one."""
        own = [each for each in self._changes if each.rebuilder is rebuilder]
        if own:
            own[-1].resumed_ps = rebuilder.resumed_ps(self._store.arena)

    def _tell(self, change: TreeChange, now_ps: int) -> None:
        """Write the changed entries to switches, and have workers begin."""
        arena = self._store.arena
        self._switches.update(change.updates)
        for at in change.workers:
            region = self._endpoints.region(int(arena.words[at + HOST]))
            loop.wake(arena, self._regions.blocks[region], at, now_ps)
