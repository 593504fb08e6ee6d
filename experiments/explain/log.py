"""A log of all packets of a run: when each was put on each link, and when it arrived.

It is made from what the event loop captures, and asks nothing else of it, so a run that is not
explained has no part in it. A packet's contents are not kept, only what tells it from others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Bytes, Store
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES, MIN_FRAME_BYTES
from ringleaf.core.headers import IP_SRC_AT, UDP_DST_AT
from ringleaf.hosts.rc import wire
from ringleaf.networks.virtual.capture import Consumer
from ringleaf.networks.virtual.network import VirtualNetwork
from ringleaf.networks.virtual.state import Rows, open_network

MOST_ROWS = 24_000_000
"""The most rows of a log: two for each packet and link. Each takes about 130 bytes."""

# Kinds of packets.
DATA, CONTROL, PROBE = 0, 1, 2  # CONTROL: acknowledgements and notices
FIRST, LAST = 4, 8  # beside DATA: of a message
IN_NETWORK = 16  # beside DATA: of a system that aggregates in the network
KIND = 3

_TOLD_FROM = IP_SRC_AT
_TOLD_TO = 128
"""The bytes of a frame by which packets of other protocols than rc are told apart."""


@dataclass(frozen=True)
class PacketLog:
    """Rows in the order of events; times since the run's start, as the loop handles them.

    Attributes:
        time_ps: (rows,) when the port's node gave the packet to its line, or got it.
        port: (rows,) number of the port.
        sent: (rows,) whether the port sent the packet.
        line: (rows,) its bytes on the line.
        kind: (rows,) DATA, CONTROL or PROBE, with the flags FIRST, LAST and IN_NETWORK.
        key: (rows,) equal for packets with the same contents.
        flow: (rows,) equal for the packets of a queue pair, or between two hosts.
        ports: (ports, PORT_WORDS) the ports' rows, as `networks/virtual/state.py` has them.
        is_host: (nodes,) whether a node is a host.
        complete: Whether there was room for all.
    """

    time_ps: npt.NDArray[np.int64]
    port: npt.NDArray[np.int32]
    sent: npt.NDArray[np.bool_]
    line: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    key: npt.NDArray[np.uint64]
    flow: npt.NDArray[np.uint64]
    ports: Rows
    is_host: npt.NDArray[np.bool_]
    complete: bool

    def __len__(self) -> int:
        return len(self.time_ps)

    @cached_property
    def first(self) -> npt.NDArray[np.int64]:
        """For each row that of the first packet with the same contents that its port sent."""
        first = np.arange(len(self))
        rows = np.flatnonzero(self.sent & (self.kind & KIND == 0))
        contents = self.key[rows] ^ (self.port[rows].astype(np.uint64) << np.uint64(40))
        _, where, which = np.unique(contents, return_index=True, return_inverse=True)
        first[rows] = rows[where][which]
        return first


class PacketLogger(Consumer):
    """Takes the packets that a network captures down in columns.

    Args:
        store: The network's store.
        network: Its block.
        most: Rows that there is room for; a run with more has no log.
    """

    def __init__(self, store: Store, network: int, *, most: int = MOST_ROWS) -> None:
        net = open_network(store.arena, network)
        net.ports[:, s.CAPTURE] |= s.CAPTURE_SENT | s.CAPTURE_RECEIVED
        self._ports = net.ports.copy()
        self._is_host = net.nodes[:, s.KIND] == s.HOST
        self._parts: list[dict[str, npt.NDArray[Any]]] = []
        self._most, self._count = most, 0

    def take(self, rows: Rows, data: Bytes) -> None:
        """Append rows to the log, with their events' times; drop all if there are too many."""
        self._count += len(rows)
        if self._count > self._most:
            self._parts.clear()
            return
        sent = rows[:, 4] == s.SENT
        moved = np.where(
            sent, -self._ports[rows[:, 1], s.OUTWARD_PS], self._ports[rows[:, 1], s.INWARD_PS]
        )
        size = rows[:, 3]
        starts = rows[:, 2]
        kind = _kinds(data, starts, size)
        flow = _flows(data, starts, size, kind)
        key = _keys(data, starts, size, kind, flow)
        self._parts.append(
            {
                "time_ps": rows[:, 0] + moved,
                "port": rows[:, 1].astype(np.int32),
                "sent": sent,
                "line": (np.maximum(size, MIN_FRAME_BYTES) + LINE_OVERHEAD_BYTES).astype(np.int32),
                "kind": kind,
                "key": key,
                "flow": flow,
            }
        )

    def close(self, now_ps: int) -> None:
        """Do nothing: the log is in memory."""

    def log(self) -> PacketLog:
        """Return the packets that were taken; none, if there were too many."""
        names = [each.name for each in fields(PacketLog)][:7]
        empty = _EMPTY if not self._parts else {}
        columns = {
            name: np.concatenate([part[name] for part in self._parts] or [empty[name]])
            for name in names
        }
        complete = self._count <= self._most
        return PacketLog(
            **columns,
            ports=self._ports,
            is_host=self._is_host,
            complete=complete,
        )


_EMPTY: dict[str, npt.NDArray[Any]] = {
    "time_ps": np.zeros(0, np.int64),
    "port": np.zeros(0, np.int32),
    "sent": np.zeros(0, np.bool_),
    "line": np.zeros(0, np.int32),
    "kind": np.zeros(0, np.uint8),
    "key": np.zeros(0, np.uint64),
    "flow": np.zeros(0, np.uint64),
}


class LoggedNetwork(VirtualNetwork):
    """A network that logs all its packets; one thread simulates it."""

    logger: PacketLogger

    def _consumers(self, seed: int) -> list[Consumer]:
        self.logger = PacketLogger(self.store, self._network)
        return [*super()._consumers(seed), self.logger]

    def packets(self) -> PacketLog:
        """Return the log, once the network is closed."""
        return self.logger.log()


def _bytes_at(data: Bytes, starts: Rows, offset: int, size: Rows) -> npt.NDArray[np.int64]:
    """Return a byte of each packet; 0 of those that are shorter."""
    there = offset < size
    values = np.zeros(len(starts), np.int64)
    values[there] = data[starts[there] + offset]
    return values


def _number(data: Bytes, starts: Rows, offset: int, width: int, size: Rows) -> Rows:
    """Return a big-endian number of each packet."""
    numbers = np.zeros(len(starts), np.int64)
    for place in range(offset, offset + width):
        numbers = numbers << 8 | _bytes_at(data, starts, place, size)
    return numbers


def _kinds(data: Bytes, starts: Rows, size: Rows) -> npt.NDArray[np.uint8]:
    is_rc = _number(data, starts, UDP_DST_AT, 2, size) == wire.UDP_PORT
    opcode = _bytes_at(data, starts, wire.OPCODE_AT, size)
    kind = np.full(len(starts), DATA | IN_NETWORK, np.uint8)
    kind[is_rc] = _RC_KINDS[opcode[is_rc]]
    return kind


def _rc_kinds() -> npt.NDArray[np.uint8]:
    """Return the kind of each opcode."""
    kinds = np.full(256, CONTROL, np.uint8)
    kinds[wire.PROBE] = PROBE
    for base in (0, wire.TELEMETRY):
        kinds[base | wire.SEND_FIRST] = DATA | FIRST
        kinds[base | wire.SEND_MIDDLE] = DATA
        kinds[base | wire.SEND_LAST] = DATA | LAST
        kinds[base | wire.SEND_ONLY] = DATA | FIRST | LAST
    return kinds


_RC_KINDS = _rc_kinds()
_PRIME = np.uint64(0x9E3779B97F4A7C15)


def _mixed(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
    """Return a number for each row, equal for rows that are equal in all columns."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = (hashes ^ column.astype(np.uint64)) * _PRIME
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _flows(
    data: Bytes, starts: Rows, size: Rows, kind: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint64]:
    """Return the keys of packets' flows: by hosts, and for rc by queue pair, too."""
    pair = np.where(kind & IN_NETWORK > 0, 0, _number(data, starts, wire.DEST_QP_AT, 3, size))
    return _mixed([_number(data, starts, IP_SRC_AT, 8, size), pair, kind & KIND])


def _keys(
    data: Bytes,
    starts: Rows,
    size: Rows,
    kind: npt.NDArray[np.uint8],
    flow: npt.NDArray[np.uint64],
) -> npt.NDArray[np.uint64]:
    """Return the keys of packets: by number for rc, else by all of their first bytes."""
    key = _mixed([flow, _number(data, starts, wire.PSN_AT, 3, size), kind])
    others = kind & IN_NETWORK > 0
    if others.any():
        there, long = starts[others], size[others]
        words = range(_TOLD_FROM, _TOLD_TO, 8)
        key[others] = _mixed([_number(data, there, place, 8, long) for place in words])
    return key
