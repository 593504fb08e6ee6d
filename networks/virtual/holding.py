"""Ports that are held: nothing leaves by them, and what is for them waits in their queues.

A held port is busy for ever, and waits for no event; so the loop needs nothing for it that it does
not look at anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.heap import CAPACITY, COUNT, grow_heap, order_own, push_event, remove_events
from ringleaf.core.units import FOREVER_PS
from ringleaf.networks.virtual.events import IDLE
from ringleaf.networks.virtual.room import EVENTS_AT_ONCE
from ringleaf.switches.engine.queues import PACKETS


class HeldPorts:
    """The ports of a network that are held.

    Args:
        store: The store that holds the network.
        blocks: The network blocks of its regions.
    """

    def __init__(self, store: Store, blocks: Sequence[int]) -> None:
        self._store, self._blocks = store, blocks
        self._busy_ps: dict[int, int] = {}  # when each held port's line is idle again

    @property
    def ports(self) -> Any:
        """The rows of all ports."""
        return s.open_network(self._store.arena, self._blocks[0]).ports

    def __contains__(self, port: int) -> bool:
        return port in self._busy_ps

    def _region(self, port: int) -> int:
        """Return the region of a port's node."""
        ports = self.ports
        return int(ports[ports[port, s.PEER], s.PEER_REGION])

    def hold(self, numbers: Iterable[int]) -> None:
        """Let no packet leave by ports; those on their lines go on."""
        words, ports = self._store.arena.words, self.ports
        expected: dict[int, list[int]] = {}  # events of ports that would fall idle, by region
        for port in numbers:
            if port in self._busy_ps:
                continue
            self._busy_ps[port] = int(ports[port, s.BUSY_UNTIL_PS])
            if ports[port, s.DRAINING]:
                expected.setdefault(self._region(port), []).append(IDLE | port << 3)
            ports[port, s.BUSY_UNTIL_PS], ports[port, s.DRAINING] = FOREVER_PS, 1
        for region, events in expected.items():
            remove_events(words, int(words[self._blocks[region] + s.HEAP_AT]), events)

    def release(self, numbers: Iterable[int], now_ps: int) -> None:
        """Let ports send again, those of hosts and those with packets at once."""
        ports = self.ports
        waking: dict[int, list[tuple[int, int]]] = {}
        for port in sorted(self._busy_ps.keys() & set(numbers)):
            busy_ps = self._busy_ps.pop(port)
            ports[port, s.BUSY_UNTIL_PS], ports[port, s.DRAINING] = busy_ps, 0
            if not ports[port, s.QUEUES_AT] or self.packets(port):
                ports[port, s.DRAINING] = 1
                waking.setdefault(self._region(port), []).append((port, max(busy_ps, now_ps)))
        for region, due in waking.items():
            self._wake(int(self._store.arena.words[self._blocks[region] + s.HEAP_AT]), due)

    def _wake(self, heap: int, due: Sequence[tuple[int, int]]) -> None:
        """Have ports looked at, each at its time."""
        words = self._store.arena.words
        while words[heap + COUNT] + len(due) + EVENTS_AT_ONCE > words[heap + CAPACITY]:
            grow_heap(self._store, heap, 2 * int(words[heap + CAPACITY]))
            words = self._store.arena.words
        for port, time_ps in due:
            push_event(words, heap, time_ps, IDLE | port << 3, order_own(words, heap))

    def packets(self, port: int) -> int:
        """Return the number of packets in a port's queues; a host's port has none."""
        at = int(self.ports[port, s.QUEUES_AT])
        return int(self._store.arena.words[at + PACKETS]) if at else 0

    def busy_until_ps(self) -> npt.NDArray[np.int64]:
        """Return when the line of each port is idle, if it sends no more; (ports,)."""
        busy: npt.NDArray[np.int64] = self.ports[:, s.BUSY_UNTIL_PS].copy()
        busy[list(self._busy_ps)] = list(self._busy_ps.values())
        return busy
