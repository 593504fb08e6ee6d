"""Aggregation trees of a network in virtual time, built again when switches or links fail."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np

import ringleaf.networks.virtual.loop as loop
from ringleaf.core.arena import Store
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import HOST
from ringleaf.ina.rebuilding import Rebuilder
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
        for rebuilder in self._endpoints.rebuilders.values():
            rebuilder.note_restart(switch)

    def rebuild(self, left: nx.Graph[str], now_ps: int) -> None:
        """Have jobs that need it go on over trees of what is left of the topology."""
        for rebuilder in self._endpoints.rebuilders.values():
            self._look_at(rebuilder)
            if self._change(rebuilder, left, now_ps):
                self._changes.append(_Change(rebuilder, now_ps))

    def restore(self, now_ps: int) -> None:
        """Have jobs go on over their usual trees, when a run is over."""
        for rebuilder in self._endpoints.rebuilders.values():
            self._look_at(rebuilder)
            self._change(rebuilder, None, now_ps)

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
            last_ps = max(rebuilder.resumed_ps(self._store.arena, at) for at in rebuilder.workers)
            own[-1].resumed_ps = None if last_ps == FOREVER_PS else last_ps

    def _change(self, rebuilder: Rebuilder, left: nx.Graph[str] | None, now_ps: int) -> bool:
        """Have a job go on over another tree, if it needs one; return whether it does."""
        updates = rebuilder.plan(left)
        if updates is None:
            return False
        self._switches.update(updates)
        arena = self._store.arena
        least = np.min([rebuilder.rounds(arena, at) for at in rebuilder.workers], axis=0)
        for at in rebuilder.workers:
            rebuilder.go_on(arena, at, least, now_ps)
            region = self._endpoints.region(int(arena.words[at + HOST]))
            loop.wake(arena, self._regions.blocks[region], at, now_ps)
        return True
