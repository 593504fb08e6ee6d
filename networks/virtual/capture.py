"""The loop's capture buffer, and the consumers of its packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Bytes, Store
from ringleaf.networks.virtual.state import Rows, open_network

BUFFER_BYTES = 8 << 20
BUFFER_ROWS = 1 << 14
LONGEST_FRAME_BYTES = 10_240  # of a jumbo frame with all our headers


class Consumer(Protocol):
    """Takes packets in the order of events."""

    def take(self, rows: Rows, data: Bytes) -> None:
        """Take rows (time_ps, port, start, size, order), and the bytes that they refer to.

        The bytes are valid during the call. `state.CAPTURE_ROW_WORDS` says more of `order`.
        """

    def close(self, now_ps: int) -> None:
        """Complete the work, as the network ends at `now_ps`; no packet follows."""


class CaptureBuffer:
    """Room for the packets that ports with CAPTURE set send and receive.

    With `each_event` it is full once it holds anything, so the loop returns after every event
    in which packets were sent or received, and before the next. After an event all hosts may send.
    """

    def __init__(
        self,
        store: Store,
        network: int,
        *,
        longest_bytes: int = LONGEST_FRAME_BYTES,
        each_event: bool = False,
    ) -> None:
        self._store = store
        self._network = network
        net = open_network(store.arena, network)
        most_ports = int(np.bincount(net.ports[:, s.NODE]).max())
        reserve_rows = most_ports + 1  # an event sends at most one packet per port of a switch
        if each_event:
            reserve_rows += int((net.nodes[:, s.KIND] == s.HOST).sum()) + 1
        reserve = reserve_rows * longest_bytes
        room, rows = max(BUFFER_BYTES, 2 * reserve), max(BUFFER_ROWS, 2 * reserve_rows)
        if each_event:
            rows = reserve_rows
        rows_at = store.allocate("words", s.CAPTURE_ROW_WORDS * rows)
        bytes_at = store.allocate("bytes", room)
        state = open_network(store.arena, network).state
        state[s.CAPTURE_AT], state[s.CAPTURE_ROWS] = rows_at, rows
        state[s.CAPTURE_BYTES_AT], state[s.CAPTURE_ROOM] = bytes_at, room
        state[s.CAPTURE_RESERVE], state[s.CAPTURE_RESERVE_ROWS] = reserve, reserve_rows

    def take(self) -> Rows:
        """Empty the buffer and return its rows; their offsets are valid until the network runs."""
        arena = self._store.arena
        state = open_network(arena, self._network).state
        start, count = int(state[s.CAPTURE_AT]), int(state[s.CAPTURE_COUNT])
        rows = arena.words[start : start + count * s.CAPTURE_ROW_WORDS].copy()
        state[s.CAPTURE_COUNT] = state[s.CAPTURE_USED] = 0
        return rows.reshape(count, s.CAPTURE_ROW_WORDS)


class Capture:
    """Hands captured packets to all consumers."""

    def __init__(self, store: Store, network: int, consumers: Sequence[Consumer]) -> None:
        self._store = store
        self._buffer = CaptureBuffer(store, network)
        self._consumers = consumers

    def flush(self) -> None:
        """Empty the loop's buffer, and hand its packets to each consumer."""
        rows = self._buffer.take()
        captured = self._store.arena.bytes
        for consumer in self._consumers:
            consumer.take(rows, captured)

    def close(self, now_ps: int) -> None:
        """Hand over the last packets, then close each consumer."""
        self.flush()
        for consumer in self._consumers:
            consumer.close(now_ps)
