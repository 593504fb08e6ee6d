"""Regions of a network, whose events threads handle at the same time (`team`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

import networkx as nx
import numpy as np

import ringleaf.networks.virtual.loop as loop
import ringleaf.networks.virtual.state as s
import ringleaf.networks.virtual.team as t
from ringleaf.core import compiled
from ringleaf.core.arena import Store
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES, MIN_FRAME_BYTES
from ringleaf.core.heap import make_heap
from ringleaf.core.packets import share_pool
from ringleaf.core.units import FOREVER_PS, PS_PER_NS, PS_PER_S
from ringleaf.networks.virtual.drops import watch_drops
from ringleaf.networks.virtual.room import make_room
from ringleaf.networks.virtual.state import open_network, watch_queues
from ringleaf.topologies.graph import hosts, natural, neighbors, switches

Note = Callable[[list[int]], None]
"""Called with the number of events that each region has handled in a window."""

LEAST_GRID_PS = 200 * PS_PER_NS
"""The shortest window that is worth a meeting."""


def divide(graph: nx.Graph[str], count: int, busy: Collection[str]) -> dict[str, int]:
    """Return the region of each node: hosts in blocks of neighbours, with as many `busy` ones each.

    A switch is in the region of most of the nodes below it; where there is a draw, in any.
    """
    names = hosts(graph)
    before = accumulate((name in busy for name in names[:-1]), initial=0)
    region = {
        name: min(number * count // len(busy), count - 1)
        for name, number in zip(names, before, strict=True)
    }
    level = names
    while level:
        beside = {peer for name in level for peer in neighbors(graph, name).values()}
        above = sorted(beside - region.keys(), key=natural)
        assigned = {}
        for number, name in enumerate(above):
            near = [region[peer] for peer in neighbors(graph, name).values() if peer in region]
            votes = Counter(near)
            best = [each for each in range(count) if votes[each] == max(votes.values())]
            assigned[name] = best[number * len(best) // len(above)]
        region |= assigned
        level = above
    return region | {name: 0 for name in switches(graph) if name not in region}


def grid_ps(store: Store, network: int) -> int:
    """Return the least time that any packet needs from a node to the next one."""
    ports = open_network(store.arena, network).ports
    bits = 8 * (MIN_FRAME_BYTES + LINE_OVERHEAD_BYTES)
    line_ps = -(-bits * PS_PER_S // ports[:, s.RATE_BPS])
    return int((ports[:, s.DELAY_PS] + line_ps).min())


class Regions:
    """The regions of a laid-out network, and the threads that handle their events.

    Args:
        store: The network's store.
        network: The network's block, which becomes that of the first region.
        region_of: The region of each node, in the order of the network's rows.
        rings: The completion ring of each region's hosts.

    Attributes:
        blocks: The regions' network blocks.
        grid_ps: Width of the windows of time that threads handle without meeting.
        note: If set, regions take turns in one thread, and this is called after each window.
    """

    def __init__(
        self, store: Store, network: int, region_of: Sequence[int], rings: Sequence[int]
    ) -> None:
        self._store = store
        self.grid_ps = grid_ps(store, network)
        self.blocks = [network]
        self.note: Note | None = None
        count = len(rings)
        self._pool = ThreadPoolExecutor(count - 1) if count > 1 else None
        if count == 1:
            return
        share_pool(store, count)
        self._team = store.allocate("words", t.team_words(count))
        for region in range(1, count):
            self.blocks.append(_add_region(store, network, rings[region]))
        blocks_at = store.allocate("words", count)
        words = store.arena.words
        words[blocks_at : blocks_at + count] = self.blocks
        words[self._team + t.REGIONS], words[self._team + t.GRID_PS] = count, self.grid_ps
        words[self._team + t.BLOCKS_AT] = blocks_at
        for region, at in enumerate(self.blocks):
            mail_at = store.allocate("words", 2 * count * s.BOX_WORDS)
            words = store.arena.words
            words[at + s.REGION], words[at + s.TEAM] = region, self._team
            words[at + s.MAIL_AT], words[at + s.MAIL_PS] = mail_at, FOREVER_PS
        ports = open_network(store.arena, network).ports
        ports[:, s.PEER_REGION] = np.array(region_of)[ports[ports[:, s.PEER], s.NODE]]
        make_room(store, *self.blocks)

    def run(self, until_ps: int) -> int:
        """Handle events until Python is needed; return the reason why (`loop`).

        An exception of any thread is raised here.
        """
        if self._pool is None:
            return int(loop.run(self._store.arena, self.blocks[0], until_ps))
        if self.note or compiled.UNCOMPILED:
            return self._run_in_turn(until_ps)
        try:
            others = [
                self._pool.submit(self._run_region, region, until_ps)
                for region in range(1, len(self.blocks))
            ]
            reasons = {self._run_region(0, until_ps), *(other.result() for other in others)}
        except BaseException:
            self._abort()  # whoever waits for this thread goes on
            raise
        assert len(reasons) == 1, f"threads must agree, got {reasons}"
        return reasons.pop()

    def _run_region(self, region: int, until_ps: int) -> int:
        try:
            return int(t.run_region(self._store.arenas[region], self.blocks[region], until_ps))
        except BaseException:
            self._abort()
            raise

    def _abort(self) -> None:
        self._store.arena.words[self._team + t.IS_ABORTED] = 1

    def _run_in_turn(self, until_ps: int) -> int:
        """Do the same in one thread: a window of one region after the other's."""
        words = self._store.arena.words
        reasons = [0] * len(self.blocks)
        while True:
            half = int(words[self.blocks[0] + s.HALF])
            for at, reason in zip(self.blocks, reasons, strict=True):
                t.announce(words, at, reason)
            ends = [t.start_window(words, at, half, until_ps) for at in self.blocks]
            assert len(set(ends)) == 1, "all regions must agree"
            if ends[0] < 0:
                return int(-ends[0])
            rows = zip(self._store.arenas, self.blocks, strict=True)
            before = self._events()
            reasons = [t.run_window(arena, at, ends[0]) for arena, at in rows]
            if self.note:
                self.note([now - then for now, then in zip(self._events(), before, strict=True)])

    def _events(self) -> list[int]:
        """Return the number of events that each region has handled so far."""
        return [int(self._store.arena.words[at + s.EVENTS]) for at in self.blocks]

    def end_of_window(self, now_ps: int) -> int:
        """Return the last picosecond of the window that a time is in."""
        return (now_ps // self.grid_ps + 1) * self.grid_ps - 1


def _add_region(store: Store, network: int, ring: int) -> int:
    """Return a network block with the same ports, nodes and agents, and counters of its own."""
    at = store.allocate("words", s.NETWORK_WORDS)
    words = store.arena.words
    words[at : at + s.NETWORK_WORDS] = words[network : network + s.NETWORK_WORDS]
    heap = make_heap(store, 1 << 16)
    state = store.arena.words[at : at + s.NETWORK_WORDS]
    bins_at = store.allocate("words", int(state[s.PORTS] * state[s.OWNERS] * state[s.BINS]))
    state = store.arena.words[at : at + s.NETWORK_WORDS]
    state[s.HEAP_AT], state[s.RING_AT], state[s.BINS_AT] = heap, ring, bins_at
    if state[s.QUEUE_BINS_AT]:
        watch_queues(store, at)
    watch_drops(store, at)
    return at
