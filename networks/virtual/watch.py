"""A watch on a network event by event: the packets that came or left, with a stop after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.networks.virtual.capture import CaptureBuffer
from ringleaf.networks.virtual.fabric import PortPlace
from ringleaf.networks.virtual.state import Rows, open_network


@dataclass(frozen=True, slots=True)
class Sight:
    """A packet that arrived at a port, or was sent by it; `lost` if its link then lost it."""

    time_ps: int
    place: PortPlace
    data: bytes
    sent: bool
    lost: bool


class PacketWatch:
    """Calls `see` with all packets of each event before the next event."""

    def __init__(
        self,
        store: Store,
        network: int,
        places: Sequence[PortPlace],
        see: Callable[[Sequence[Sight]], None],
    ) -> None:
        self._store = store
        self._network = network
        self._places = places
        self._see = see
        self._buffer = CaptureBuffer(store, network, each_event=True)
        ports = self._ports()
        ports[:, s.CAPTURE] |= s.CAPTURE_SENT | s.CAPTURE_RECEIVED
        self._lost = ports[:, s.LOST].copy()

    def flush(self) -> None:
        """Show the packets of the event just handled; one sent is lost if its port's LOST grew."""
        rows = self._buffer.take().tolist()
        losses, self._lost = self._lost, self._ports()[:, s.LOST].copy()
        losing = self._lost > losses
        captured = self._store.arena.bytes
        sights = [
            Sight(
                time_ps,
                self._places[port],
                captured[start : start + size].tobytes(),
                sent=order == s.SENT,
                lost=order == s.SENT and bool(losing[port]),
            )
            for time_ps, port, start, size, order in rows
        ]
        if sights:
            self._see(sights)

    def close(self, now_ps: int) -> None:
        """Show the packets of the last event."""
        self.flush()

    def _ports(self) -> Rows:
        return open_network(self._store.arena, self._network).ports
