"""Traces of a live network's switches, and a capture of all ports made from traces."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import networkx as nx
import numpy as np

from ringleaf.networks.live.client import Daemon
from ringleaf.networks.mininet.programming import SwitchProgramming
from ringleaf.networks.traces.pcap_read import find_packets
from ringleaf.networks.traces.pcapng_write import NAME, PcapngWriter
from ringleaf.networks.traces.writer import check_folder
from ringleaf.networks.virtual.fabric import places
from ringleaf.networks.virtual.pcap import interfaces
from ringleaf.topologies.graph import hosts, port


class Recording(Protocol):
    """A recording of one kind of switches; made before the switches get their programs."""

    def save(self, targets: Mapping[str, SwitchProgramming]) -> None:
        """End it, and write a trace per switch; `targets` holds what each switch runs."""


class EmbeddedRecording:
    """A recording by the daemon, of each of its switches from the next program on.

    Raises:
        BackendError: If the daemon records already.
    """

    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self._daemon = daemon
        self._daemon.record(folder)

    def save(self, targets: Mapping[str, SwitchProgramming]) -> None:
        """Write the traces; the daemon knows what its switches run."""
        self._daemon.save()


class Folders:
    """The folders of one run's traces, and of the ports' capture made from them.

    Args:
        record: Folder for traces, if they are wanted; new or empty.
        capture: Folder for a capture of all ports, if it is wanted.

    Raises:
        ConfigError: If the folder for traces is not empty.
    """

    def __init__(self, record: Path | None, capture: Path | None) -> None:
        self._closing = ExitStack()
        self._capture = capture
        if record is None:
            passing = tempfile.TemporaryDirectory(prefix="ringleaf-record-")
            record = Path(self._closing.enter_context(passing))
        check_folder(record)
        self.traces = record

    def close(self, graph: nx.Graph[str]) -> None:
        """Make the ports' capture if it is wanted, and remove temporary traces."""
        with self._closing:
            if self._capture is not None:
                merge_captures(graph, self.traces, self._capture)


def merge_captures(graph: nx.Graph[str], traces: Path, folder: Path) -> None:
    """Write `capture.pcapng`, with the packets that every port has sent, in order of time.

    A host's are the packets that its switch received, without those that the link lost. They come
    before what the switch sent at that time, which may be the same packets.
    """
    file = PcapngWriter(folder / NAME, interfaces(graph))
    ends = set(hosts(graph))
    sources = []
    numbered = sorted(enumerate(places(graph)), key=lambda each: each[1].node not in ends)
    for here, place in numbered:
        source = traces / place.node / "out" / f"port{place.port}.pcap"
        if place.node in ends:
            number = port(graph, place.peer, place.node)
            source = traces / place.peer / "in" / f"port{number}.pcap"
        if source.exists():
            packets = find_packets(source)
            port_of = np.full(len(packets), here)
            rows = np.column_stack((packets.stamps_ns, port_of, packets.offsets, packets.lengths))
            sources.append((rows, packets.data))
    file.merge(sources)
