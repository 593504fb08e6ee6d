"""Nanosecond pcap files of ports, from the loop's capture buffer."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

import networks.virtual.state as s
from networks.virtual.state import open_network
from ringleaf.arena import Store
from ringleaf.units import PS_PER_NS, PS_PER_S

MAGIC_NS = 0xA1B23C4D  # libpcap's savefile format with nanosecond timestamps
LINKTYPE_ETHERNET = 1
SNAP_BYTES = 65535
BUFFER_BYTES = 8 << 20
BUFFER_ROWS = 1 << 14


class Capture:
    """One file per port, `<node>-<port>.pcap`, with all that the port sends.

    A packet's time is when its first bit goes on the line; also packets that a lossy link loses
    are there.
    """

    def __init__(self, folder: Path, store: Store, network: int, names: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._store = store
        self._network = network
        rows_at = store.allocate("words", 4 * BUFFER_ROWS)
        bytes_at = store.allocate("bytes", BUFFER_BYTES)
        net = open_network(store.arena, network)
        net.state[s.CAPTURE_AT], net.state[s.CAPTURE_ROWS] = rows_at, BUFFER_ROWS
        net.state[s.CAPTURE_BYTES_AT], net.state[s.CAPTURE_ROOM] = bytes_at, BUFFER_BYTES
        net.ports[:, s.CAPTURE] = 1
        self._files = [_create(folder / f"{name}.pcap") for name in names]

    def flush(self) -> None:
        """Write what the buffer holds, and empty it."""
        arena = self._store.arena
        state = open_network(arena, self._network).state
        rows = arena.words[state[s.CAPTURE_AT] :][: 4 * state[s.CAPTURE_COUNT]]
        for time_ps, port, start, size in rows.reshape(-1, 4).tolist():
            data = arena.bytes[start : start + size]
            self._files[port].write(_record(time_ps, data) + data.tobytes())
        state[s.CAPTURE_COUNT] = state[s.CAPTURE_USED] = 0

    def close(self) -> None:
        self.flush()
        for file in self._files:
            file.close()


def _create(path: Path) -> BinaryIO:
    file = path.open("wb")
    file.write(struct.pack("<IHHiIII", MAGIC_NS, 2, 4, 0, 0, SNAP_BYTES, LINKTYPE_ETHERNET))
    return file


def _record(time_ps: int, data: np.ndarray) -> bytes:
    seconds, rest_ps = divmod(time_ps, PS_PER_S)
    return struct.pack("<IIII", seconds, rest_ps // PS_PER_NS, data.size, data.size)
