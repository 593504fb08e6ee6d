"""Nanosecond pcap files of ports, from the loop's capture buffer."""

from __future__ import annotations

from pathlib import Path

import ringleaf.networks.virtual.state as s
from ringleaf.arena import Store
from ringleaf.networks.traces.pcap_write import PcapWriter
from ringleaf.networks.virtual.state import open_network
from ringleaf.units import PS_PER_NS


class PortPcaps:
    """One file per port, `<node>-<port>.pcap`, with all that the port sends.

    A packet's time is when its first bit goes on the line. Packets that a lossy link loses are in
    the file, too.
    """

    def __init__(self, folder: Path, store: Store, network: int, names: list[str]) -> None:
        open_network(store.arena, network).ports[:, s.CAPTURE] |= s.CAPTURE_SENT
        self._files = [PcapWriter(folder / f"{name}.pcap") for name in names]

    def take(self, time_ps: int, port: int, data: bytes, order: int) -> None:
        if order == s.SENT:
            self._files[port].append(time_ps // PS_PER_NS, data)

    def close(self, now_ps: int) -> None:
        for file in self._files:
            file.flush()
