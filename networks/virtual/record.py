"""Recording: one trace for every switch, so that what it did can be asked of it again.

A trace's inputs are what the switch received, after links have lost, doubled and delayed packets;
its outputs are what it sent. What `Switch.write` was told after the network was made is not in it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import networks.virtual.state as s
from networks.traces.checksums import write_checksums
from networks.traces.entries import load_schema, write_entries
from networks.traces.manifest import (
    ARRIVALS,
    ENTRIES,
    P4INFO,
    PROGRAM,
    Manifest,
    Port,
    Write,
    write_manifest,
)
from networks.traces.pcap_write import HELD_BYTES, PcapWriter
from networks.virtual.fabric import Place
from networks.virtual.state import Rows, open_network
from ringleaf.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.units import PS_PER_NS
from switches import Program
from switches.program import P4INFO_SUFFIX
from switches.queues import CAPACITY_BYTES
from switches.schedulers import scheduler_of

_HEADER_BYTES = 128  # of a .npy file with a short shape


class _Recording:
    """One switch's trace on its way to disk."""

    def __init__(self, folder: Path) -> None:
        if folder.exists() and any(folder.iterdir()):
            raise ConfigError(f"record: folder must be new or empty, got {str(folder)!r}")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._pcaps: dict[str, PcapWriter] = {}  # those of ports that have had a packet
        self._count = 0
        self._arrivals = bytearray()
        (folder / ARRIVALS).write_bytes(bytes(_HEADER_BYTES))

    def take(self, time_ps: int, port: int, data: bytes, order: int) -> None:
        way = "out" if order == s.SENT else "in"
        name = f"{way}/port{port}.pcap"
        if name not in self._pcaps:
            self._pcaps[name] = PcapWriter(self._folder / name)
        self._pcaps[name].append(time_ps // PS_PER_NS, data)
        if order != s.SENT:
            self._arrivals += struct.pack("<3q", time_ps, port, order)
            self._count += 1
            if len(self._arrivals) >= HELD_BYTES:
                self.flush()

    def flush(self) -> None:
        with (self._folder / ARRIVALS).open("ab") as file:
            file.write(self._arrivals)
        self._arrivals.clear()

    def close(self) -> None:
        """Complete the files; the number of arrivals is only known now."""
        self.flush()
        for pcap in self._pcaps.values():
            pcap.flush()
        with (self._folder / ARRIVALS).open("r+b") as file:
            shape = {"descr": "<i8", "fortran_order": False, "shape": (self._count, 3)}
            np.lib.format.write_array_header_1_0(file, shape)
            assert file.tell() == _HEADER_BYTES


class Recorder:
    """Takes what the switches receive and send; writes traces when the network closes."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        network: int,
        places: Sequence[Place],
        program: Program,
        entities: Mapping[str, Sequence[Any]],
        *,
        seed: int,
    ) -> None:
        self._folder = folder
        self._store = store
        self._network = network
        self._program = program
        self._entities = entities  # by switch, in their order in the network
        self._seed = seed
        self._places = places
        self._recordings = {name: _Recording(folder / name) for name in entities}
        net = open_network(store.arena, network)
        of_switch = net.nodes[net.ports[:, s.NODE], s.KIND] == s.SWITCH
        net.ports[of_switch, s.CAPTURE] |= s.CAPTURE_SENT | s.CAPTURE_RECEIVED
        net.ports[~of_switch, s.CAPTURE] |= s.PIN

    def take(self, time_ps: int, port: int, data: bytes, order: int) -> None:
        place = self._places[port]
        if place.node in self._recordings:
            self._recordings[place.node].take(time_ps, place.port, data, order)

    def close(self, now_ps: int) -> None:
        """Complete the traces; all events up to `now_ps` must have been handled."""
        source = self._program.source.path
        program = json.dumps(json.loads(source.read_text()), separators=(",", ":"))
        p4info = source.with_name(source.stem + P4INFO_SUFFIX)
        schema = load_schema(source, p4info)
        ports = open_network(self._store.arena, self._network).ports
        for number, (name, recording) in enumerate(self._recordings.items()):
            recording.close()
            folder = self._folder / name
            (folder / PROGRAM).write_text(f"{program}\n")
            (folder / P4INFO).write_text(p4info.read_text())
            write_entries(folder / ENTRIES, self._entities[name], schema)
            own = [i for i, place in enumerate(self._places) if place.node == name]
            write_manifest(
                Manifest(
                    folder=folder,
                    switch=name,
                    program=Path(PROGRAM),
                    p4info=None,
                    writes=(Write(0, Path(ENTRIES)),),
                    ports=tuple(self._port(ports, i) for i in own),
                    seed=self._seed + number,
                    until_ps=now_ps,
                )
            )
            write_checksums(folder)

    def _port(self, ports: Rows, index: int) -> Port:
        queues = int(ports[index, s.QUEUES_AT])
        words = self._store.arena.words
        capacity = int(words[queues + CAPACITY_BYTES])
        return Port(int(ports[index, s.RATE_BPS]), capacity, scheduler_of(words, queues))
