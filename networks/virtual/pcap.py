"""A pcapng file of all ports, from the loop's capture buffer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import networkx as nx
import numpy as np

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Bytes, Store
from ringleaf.core.units import FOREVER_PS, PS_PER_NS
from ringleaf.networks.traces.pcapng_write import NAME, SIZE, START, TIME, Interface, PcapngWriter
from ringleaf.networks.virtual.fabric import PortPlace, places
from ringleaf.networks.virtual.state import Rows, open_network
from ringleaf.topologies.graph import hosts, link

_ORDER = 4  # the column of a captured packet's row


def interfaces(graph: nx.Graph[str]) -> list[Interface]:
    """Return an interface per port, as `places` counts them: `h3`, or `s1:p2` of a switch."""
    ends = frozenset(hosts(graph))
    known = {(place.node, place.peer): _name(place, ends) for place in places(graph)}
    return [
        Interface(
            known[place.node, place.peer],
            f"to {known[place.peer, place.node]}",
            link(graph, place.node, place.peer).rate_bps,
        )
        for place in places(graph)
    ]


def _name(place: PortPlace, ends: frozenset[str]) -> str:
    return place.node if place.node in ends else f"{place.node}:p{place.port}"


class PortCapture:
    """A file, `capture.pcapng`, with all that the ports send, in order of time.

    A packet's time is when its first bit goes on the line. Packets that a lossy link loses are in
    the file, too.
    """

    def __init__(
        self, folder: Path, store: Store, network: int, interfaces: Sequence[Interface]
    ) -> None:
        ports = open_network(store.arena, network).ports
        ports[:, s.CAPTURE] |= s.CAPTURE_SENT
        self._outward_ps = ports[:, s.OUTWARD_PS].copy()
        self._file = PcapngWriter(folder / NAME, interfaces)
        self._pending: list[tuple[Rows, Bytes]] = []
        self._now_ps = 0

    def take(self, rows: Rows, data: Bytes) -> None:
        """Write the packets up to the last one's event; those that are on the line later must wait.

        A host gives a packet away some time before it is on the line, and meanwhile other ports
        send.
        """
        sent = rows[rows[:, _ORDER] == s.SENT, :_ORDER]
        if len(sent):
            given_ps = sent[:, TIME] - self._outward_ps[sent[:, 1]]
            self._now_ps = max(self._now_ps, int(given_ps.max()))
        late = self._write([*self._pending, (sent, data)], self._now_ps)
        self._pending = [each if each[1] is not data else _copy(*each) for each in late]

    def close(self, now_ps: int) -> None:
        """Write the packets that are on the line later than the last event."""
        self._write(self._pending, FOREVER_PS)

    def _write(
        self, sources: Sequence[tuple[Rows, Bytes]], until_ps: int
    ) -> list[tuple[Rows, Bytes]]:
        """Write the packets up to a time, and return the others."""
        due = [(rows[rows[:, TIME] <= until_ps], data) for rows, data in sources]
        if due:
            self._file.append(due, per_ns=PS_PER_NS)
        late = [(rows[rows[:, TIME] > until_ps], data) for rows, data in sources]
        return [(rows, data) for rows, data in late if len(rows)]


def _copy(rows: Rows, data: Bytes) -> tuple[Rows, Bytes]:
    """Return rows whose packets have memory of their own."""
    packets = [data[start : start + size] for start, size in rows[:, [START, SIZE]].tolist()]
    kept = rows.copy()
    kept[:, START] = np.cumsum(rows[:, SIZE]) - rows[:, SIZE]
    return kept, np.concatenate(packets)
