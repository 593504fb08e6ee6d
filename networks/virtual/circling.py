"""Detection of packets that go round in circles, as rules of switches send them back.

Nothing else gets through where they fill links, but simulating them until a stall is sure takes
minutes. Hosts' packets, and all that switches make of them, use each way of a link once, or a few
times; so if far more packets arrive than that, without any progress, they have been there before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.packets import packets_in_use

TIMES = 4
"""How often what one packet becomes may use a way of a link and not be in a circle.

Twice on a detour, and twice if the link duplicates packets.
"""
LEAST_HOPS = 1 << 17
"""Fewer are no reason to end a run."""


class Circling:
    """A watch on how many packets arrive for each that a host sends.

    Args:
        store: The store that holds the network.
        networks: Offsets of its regions' blocks.
    """

    def __init__(self, store: Store, networks: Sequence[int]) -> None:
        self._store, self._networks = store, networks
        net = s.open_network(store.arena, networks[0])
        kinds = net.nodes[net.ports[:, s.NODE], s.KIND]
        self._hosts = np.flatnonzero(kinds == s.HOST)
        self._ports = len(kinds)
        self.restart()

    def restart(self) -> None:
        """Begin again, as something has got through."""
        self._hops, self._sent = self._count()
        self._under_way = packets_in_use(self._store)

    @property
    def hops(self) -> int:
        """The packets that have arrived anywhere since the beginning."""
        return self._count()[0] - self._hops

    def __bool__(self) -> bool:
        """Whether packets must have been more than once where they are."""
        hops, sent = self._count()
        packets = self._under_way + sent - self._sent
        return hops - self._hops > max(LEAST_HOPS, TIMES * self._ports * packets)

    def _count(self) -> tuple[int, int]:
        """Return the packets that have arrived anywhere, and those that hosts have sent."""
        arena = self._store.arena
        hops = sum(int(arena.words[at + s.HOPS]) for at in self._networks)
        ports = s.open_network(arena, self._networks[0]).ports
        return hops, int(ports[self._hosts, s.TX_PACKETS].sum())
