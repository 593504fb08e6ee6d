"""Traces of a live network's switches, and captures of ports made from traces."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import networkx as nx

from ringleaf.networks.live.client import Daemon
from ringleaf.networks.mininet.programming import Target
from ringleaf.networks.traces.pcap_write import HEADER
from ringleaf.networks.traces.writer import check_folder
from ringleaf.networks.virtual.fabric import places
from ringleaf.topologies.graph import hosts, port


class Recording(Protocol):
    """A recording of one kind of switches; made before the switches get their programs."""

    def save(self, targets: Mapping[str, Target]) -> None:
        """End it, and write a trace per switch; `targets` holds what each switch runs."""


class EmbeddedRecording:
    """A recording by the daemon, of each of its switches from the next program on.

    Raises:
        BackendError: If the daemon records already.
    """

    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self._daemon = daemon
        self._daemon.record(folder)

    def save(self, targets: Mapping[str, Target]) -> None:
        """Write the traces; the daemon knows what its switches run."""
        self._daemon.save()


class Folders:
    """The folders of one run's traces, and of the ports' captures made from them.

    Args:
        record: Folder for traces, if they are wanted; new or empty.
        capture: Folder for a capture per port, if they are wanted.

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
        """Make the ports' captures if they are wanted, and remove temporary traces."""
        with self._closing:
            if self._capture is not None:
                copy_captures(graph, self.traces, self._capture)


def copy_captures(graph: nx.Graph[str], traces: Path, folder: Path) -> None:
    """Write `<node>-<port>.pcap` for every port, with the packets it has sent.

    A host's file has the packets that its switch received, without those that the link lost.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ends = set(hosts(graph))
    for place in places(graph):
        source = traces / place.node / "out" / f"port{place.port}.pcap"
        if place.node in ends:
            number = port(graph, place.peer, place.node)
            source = traces / place.peer / "in" / f"port{number}.pcap"
        target = folder / f"{place.node}-{place.port}.pcap"
        if source.exists():
            shutil.copyfile(source, target)
        else:
            target.write_bytes(HEADER)
