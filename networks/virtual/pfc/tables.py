"""The tables of priority flow control, laid out beside a network's own, and what a run left there.

The headroom of a port is what may come by it after the packet that crosses XOFF: the longest frame
may be on its own line, then goes the pause frame, for the delay of the link; the sender may have
begun a frame of the longest, and what it sent before is on the way (802.1Q, annex O). All links'
delays here contain those inside of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import address_of
from ringleaf.core.disciplines import CLASSES
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES, MIN_FRAME_BYTES
from ringleaf.core.pausing import Pausing
from ringleaf.core.units import PS_PER_S
from ringleaf.networks.virtual.fabric import PortPlace
from ringleaf.networks.virtual.pfc.handling import handle
from ringleaf.networks.virtual.pfc.hosts import serve
from ringleaf.networks.virtual.pfc.layout import (
    BLOCK_WORDS,
    HEADROOM,
    MAC,
    NIC_AT,
    PAUSED,
    PAUSED_PS,
    PAUSES,
    PEAKS,
    ROW_WORDS,
    ROWS_AT,
    SINCE_PS,
    XOFF,
    XON,
)
from ringleaf.networks.virtual.state import Rows, open_network
from ringleaf.switches.engine.queues import CAPACITY_BYTES, make_queues
from ringleaf.topologies.addresses import mac

ENDLESS_BYTES = 1 << 60
HEADERS_BYTES = 256  # no packet here has more before and behind its payload


def headroom_bytes(ports: Rows, longest_bytes: int) -> npt.NDArray[np.int64]:
    """Return the bytes that may come by each port after it has decided to ask for a pause.

    Args:
        ports: (ports, PORT_WORDS) the network's table of ports.
        longest_bytes: Length of the longest frame, without FCS.
    """
    peers = ports[ports[:, s.PEER]]
    own_bits = 8 * (longest_bytes + MIN_FRAME_BYTES + 2 * LINE_OVERHEAD_BYTES)
    told_s = own_bits / ports[:, s.RATE_BPS] + ports[:, s.DELAY_PS] / PS_PER_S
    seconds = told_s + peers[:, s.DELAY_PS] / PS_PER_S
    in_flight: npt.NDArray[np.int64] = np.ceil(peers[:, s.RATE_BPS] / 8 * seconds).astype(np.int64)
    return in_flight + 2 * longest_bytes


def pause_rows(arena: Arena, network: int) -> Rows:
    """Return the table of ports, (ports, ROW_WORDS); the view goes stale when the store moves."""
    words = arena.words
    start, ports = int(words[words[network + s.PFC_AT] + ROWS_AT]), int(words[network + s.PORTS])
    return words[start : start + ports * ROW_WORDS].reshape(ports, ROW_WORDS)


def lay_out_pausing(
    store: Store,
    network: int,
    graph: nx.Graph[str],
    places: Sequence[PortPlace],
    pausing: Pausing,
    longest_bytes: int,
) -> None:
    """Give a network priority flow control; its switches' queues then have no length of their own.

    Args:
        store: The store that holds the network.
        network: Its block's offset; regions copy it later.
        graph: The topology.
        places: Its ports, in their order in the network.
        pausing: Thresholds and headroom.
        longest_bytes: Length of the longest payload of a packet.
    """
    macs = [mac(graph, place.node, place.port) for place in places]
    ports = open_network(store.arena, network).ports
    lay_out(store, network, macs, pausing, headroom_bytes(ports, longest_bytes + HEADERS_BYTES))


def lay_out(
    store: Store,
    network: int,
    macs: Sequence[int],
    pausing: Pausing,
    headrooms: npt.NDArray[np.int64],
) -> None:
    """Give a network priority flow control, whose ports have these addresses.

    Args:
        store: The store that holds the network.
        network: Its block's offset.
        macs: Source addresses of frames, by port.
        pausing: Thresholds and headroom.
        headrooms: (ports,) headroom of each port, if `pausing` has none.
    """
    block = store.allocate("words", BLOCK_WORDS)
    rows_at = store.allocate("words", len(macs) * ROW_WORDS)
    kinds = open_network(store.arena, network)
    is_host = kinds.nodes[kinds.ports[:, s.NODE], s.KIND] == s.HOST
    nics = [make_queues(store, ENDLESS_BYTES) if host else 0 for host in is_host]
    words = store.arena.words
    words[block + s.PFC_HANDLE], words[block + s.PFC_SERVE] = address_of(handle), address_of(serve)
    words[block + XOFF], words[block + XON] = pausing.xoff_bytes, pausing.xon_bytes
    words[block + ROWS_AT] = rows_at
    words[network + s.PFC_AT] = block
    net, rows = open_network(store.arena, network), pause_rows(store.arena, network)
    rows[:, NIC_AT] = nics
    rows[:, MAC] = macs
    rows[:, HEADROOM] = headrooms if pausing.headroom_bytes is None else pausing.headroom_bytes
    queues = net.ports[net.ports[:, s.QUEUES_AT] > 0, s.QUEUES_AT]
    words[queues + CAPACITY_BYTES] = ENDLESS_BYTES


@dataclass(frozen=True, slots=True)
class PortPauses:
    """The priority flow control of one port.

    Attributes:
        node: The node that has the port.
        peer: The node at the other end of its link.
        asked: Times that it asked the other end to pause a class.
        paused_ps: Time for which the other end paused any class of it.
        peak_bytes: Most bytes of each class that came by it and were in queues.
        headroom_bytes: Room for each class above XOFF.
    """

    node: str
    peer: str
    asked: int
    paused_ps: int
    peak_bytes: tuple[int, ...]
    headroom_bytes: int


def read_pauses(
    arena: Arena, network: int, places: Sequence[PortPlace], now_ps: int
) -> list[PortPauses]:
    """Return what all ports have done since the start."""
    pauses = []
    for place, row in zip(places, pause_rows(arena, network).tolist(), strict=True):
        still_ps = now_ps - row[SINCE_PS] if row[PAUSED] else 0
        peaks = tuple(row[PEAKS : PEAKS + CLASSES])
        pauses.append(
            PortPauses(
                place.node,
                place.peer,
                row[PAUSES],
                row[PAUSED_PS] + still_ps,
                peaks,
                row[HEADROOM],
            )
        )
    return pauses
