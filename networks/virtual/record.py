"""Recording: one trace for every switch, so that its behaviour can be replayed.

A trace's inputs are the packets that the switch received, after links have lost, doubled and
delayed some; its outputs are the packets it sent. Entries that `Switch.write` got after the network
was made are not in the trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from finsy import P4Schema

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Bytes, Store
from ringleaf.networks.traces.entries import load_schema, write_entries
from ringleaf.networks.traces.manifest import ENTRIES, PROGRAM, Manifest, Port, TimedEntries
from ringleaf.networks.traces.program import write_program
from ringleaf.networks.traces.writer import TraceWriter
from ringleaf.networks.virtual.fabric import PortPlace
from ringleaf.networks.virtual.state import Rows, open_network
from ringleaf.switches.engine.disciplines import discipline_of
from ringleaf.switches.engine.queues import CAPACITY_BYTES
from ringleaf.switches.p4runtime.derived import p4info_file
from ringleaf.switches.p4runtime.table_rows import Item, entities_of
from ringleaf.switches.program import Program


class TraceRecorder:
    """Takes the switches' received and sent packets; writes traces when the network closes."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        network: int,
        places: Sequence[PortPlace],
        programs: Mapping[str, Program],
        items: Mapping[str, Sequence[Item]],
        *,
        seed: int,
    ) -> None:
        self._folder = folder
        self._store = store
        self._network = network
        self._programs = programs
        self._items = items  # written to each switch; in the switches' order in the network
        self._seed = seed
        self._places = places
        self._writers = {name: TraceWriter(folder / name) for name in items}
        net = open_network(store.arena, network)
        of_switch = net.nodes[net.ports[:, s.NODE], s.KIND] == s.SWITCH
        net.ports[of_switch, s.CAPTURE] |= s.CAPTURE_SENT | s.CAPTURE_RECEIVED
        net.ports[~of_switch, s.CAPTURE] |= s.PIN

    def take(self, rows: Rows, data: Bytes) -> None:
        """Add the packets of recorded switches to their traces, and leave out those of hosts."""
        for time_ps, port, start, size, order in rows.tolist():
            self._take(time_ps, port, data[start : start + size].tobytes(), order)

    def _take(self, time_ps: int, port: int, data: bytes, order: int) -> None:
        place = self._places[port]
        if place.node not in self._writers:
            return
        writer = self._writers[place.node]
        if order == s.SENT:
            writer.sent(time_ps, place.port, data)
        else:
            writer.received(time_ps, place.port, data, order)

    def close(self, now_ps: int) -> None:
        """Complete the traces; all events up to `now_ps` must have been handled."""
        schemas: dict[Path, P4Schema] = {}
        net = open_network(self._store.arena, self._network)
        ports, nodes = net.ports, net.nodes
        for number, (name, writer) in enumerate(self._writers.items()):
            source = self._programs[name].source.path
            p4info = p4info_file(source)
            if source not in schemas:
                schemas[source] = load_schema(source, p4info)
            write_program(writer.folder, source.read_text(), p4info.read_text())
            entities = entities_of(self._items[name])
            write_entries(writer.folder / ENTRIES, entities, schemas[source])
            own = [i for i, place in enumerate(self._places) if place.node == name]
            writer.finish(
                Manifest(
                    folder=writer.folder,
                    switch=name,
                    program=Path(PROGRAM),
                    p4info=None,
                    writes=(TimedEntries(0, Path(ENTRIES)),),
                    ports=tuple(self._port(ports, i) for i in own),
                    seed=self._seed + number,
                    until_ps=now_ps,
                    delay_ps=int(nodes[number, s.PASS_PS]),
                )
            )

    def _port(self, ports: Rows, index: int) -> Port:
        queues = int(ports[index, s.QUEUES_AT])
        words = self._store.arena.words
        capacity = int(words[queues + CAPACITY_BYTES])
        return Port(int(ports[index, s.RATE_BPS]), capacity, discipline_of(words, queues))
