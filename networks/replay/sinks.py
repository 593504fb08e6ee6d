"""Receivers for the packets that a replayed switch sends: they compare them, or write them down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ringleaf.core.arena import Bytes, Words
from ringleaf.core.units import PS_PER_NS
from ringleaf.networks.replay.compare import Check, SentBatch
from ringleaf.networks.traces.pcap_write import PcapWriter


class PortComparison:
    """Gives each port's packets to its check."""

    def __init__(self, checks: Sequence[Check], origin_ns: int) -> None:
        self._checks = checks  # port 1 first
        self._origin_ns = origin_ns

    def take(self, rows: Words, data: Bytes) -> None:
        """Give each port's rows, in the form of `state.CAPTURE_ROW_WORDS`, to its check."""
        for index, check in enumerate(self._checks):
            mine = rows[rows[:, 1] == index]
            if mine.size:
                times_ns = mine[:, 0] // PS_PER_NS + self._origin_ns
                starts, sizes = (np.ascontiguousarray(mine[:, column]) for column in (2, 3))
                check.take(SentBatch(data, starts, sizes, times_ns))


class Outputs:
    """Writes `port1.pcap` and so on; ports that send nothing have no file."""

    def __init__(self, folder: Path, origin_ns: int) -> None:
        self._folder = folder
        self._origin_ns = origin_ns
        self._files: dict[int, PcapWriter] = {}

    def take(self, rows: Words, data: Bytes) -> None:
        """Append packets to the files of their ports, with stamps in ns from the origin on."""
        for time_ps, port, start, size, _ in rows.tolist():
            if port not in self._files:
                self._files[port] = PcapWriter(self._folder / f"port{port + 1}.pcap")
            stamp_ns = time_ps // PS_PER_NS + self._origin_ns
            self._files[port].append(stamp_ns, data[start : start + size].tobytes())

    def close(self) -> None:
        """Write what is still held in memory."""
        for file in self._files.values():
            file.flush()
