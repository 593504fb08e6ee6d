"""A network of one switch, with the trace at the other end of each port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import ringleaf.networks.replay.feed as f
import ringleaf.networks.virtual.loop as loop
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Bytes, Store, Words
from ringleaf.core.compiled import address_of
from ringleaf.core.packets import make_pool
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import make_ring
from ringleaf.networks.replay.batches import Batches
from ringleaf.networks.traces.entries import load_schema, read_entries
from ringleaf.networks.traces.manifest import Manifest
from ringleaf.networks.traces.trace import PacketTrace
from ringleaf.networks.virtual.capture import CaptureBuffer
from ringleaf.networks.virtual.room import make_room
from ringleaf.networks.virtual.state import make_network, open_network
from ringleaf.switches.engine.disciplines import make_port_queues
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

POOL_PACKETS = 4096
BIN_PS = 1 << 40  # of a series that is not used


class Sink(Protocol):
    """Takes packets that ports have sent: columns time_ps, port (from 0), offset, length, order."""

    def take(self, rows: Words, data: Bytes) -> None:
        """Take rows, of shape (packets, 5), and the bytes to which their offsets refer."""


def load_program(manifest: Manifest) -> Program:
    """Return the program of a trace.

    Raises:
        ConfigError: If the engine can't run it.
    """
    return Program.load(manifest.program, manifest.p4info)


class Replayer:
    """Runs one trace.

    Raises:
        ConfigError: If the entries don't fit the program.
    """

    def __init__(self, trace: PacketTrace, program: Program) -> None:
        self._trace = trace
        longest = max(
            (int(each.lengths.max(initial=0)) for each in trace.inputs if each), default=0
        )
        self._store = store = Store()
        head_bytes = longest + program.head_bytes  # of a packet that the program adds headers to
        make_pool(
            store,
            size=POOL_PACKETS,
            head_bytes=head_bytes,
            field_count=program.field_count,
            lane_count=program.lane_count,
        )
        manifest = trace.manifest
        self._switch = Switch(
            program, store, len(manifest.ports), name=manifest.switch, seed=manifest.seed
        )
        schema = load_schema(manifest.program, manifest.p4info)
        self._writes = [(write, read_entries(write.path, schema)) for write in manifest.writes]
        self._at = self._lay_out(program)
        self._batches = Batches(trace, store)
        self._buffer = CaptureBuffer(store, self._at, longest_bytes=head_bytes)
        self._write_until(0)

    def _lay_out(self, program: Program) -> int:
        """Lay out a port of the switch, and one of its peer, for each port of the trace."""
        store, specs = self._store, self._trace.manifest.ports
        count = len(specs)
        queues = [make_port_queues(store, spec.queue_bytes, spec.discipline) for spec in specs]
        at = make_network(
            store,
            ports=2 * count,
            nodes=1 + count,
            agents=0,
            ring=make_ring(store, 1),
            bins=2,
            seed=0,
        )
        net = open_network(store.arena, at)
        net.state[s.BIN_PS] = BIN_PS
        net.ports[:count, s.QUEUES_AT] = queues
        net.ports[:count, s.CAPTURE] = s.CAPTURE_SENT
        net.ports[:count, s.LOCAL_PORT] = range(1, count + 1)
        net.ports[:count, s.PEER] = range(count, 2 * count)
        net.ports[count:, s.PEER] = range(count)
        net.ports[count:, s.NODE] = range(1, count + 1)
        net.ports[count:, s.LOCAL_PORT] = 1
        net.ports[:, s.RATE_BPS] = 2 * [spec.rate_bps for spec in specs]
        net.nodes[0, s.KIND], net.nodes[0, s.BLOCK_AT] = s.SWITCH, self._switch.at
        net.nodes[0, s.INGRESS] = address_of(program.ingress)
        net.nodes[0, s.EGRESS] = address_of(program.egress)
        net.nodes[0, s.PASS_PS] = self._trace.manifest.delay_ps
        net.nodes[1:, s.KIND] = s.HOST  # without agents: all packets are freed
        net.nodes[1:, s.FIRST_PORT] = range(count, 2 * count)
        return at

    def run(self, sinks: Sequence[Sink], progress: Callable[[int], None]) -> None:
        """Replay the trace; call `progress` with the number of packets received so far."""
        while True:
            reason = f.run(self._store.arena, self._at, self._batches.at, self._until_ps)
            if reason == f.HUNGRY:
                progress(self._batches.taken)
                self._batches.fill()
            elif reason == loop.NEEDS_ROOM:
                make_room(self._store, self._at)
            elif reason == loop.CAPTURED:
                self._flush(sinks)
            elif reason == loop.UNTIL and self._until_ps < self._trace.manifest.until_ps:
                self._write_until(self._writes[0][0].at_ps)
            else:
                break
        self._flush(sinks)
        progress(self._batches.taken)

    @property
    def _until_ps(self) -> int:
        end_ps = self._trace.manifest.until_ps
        return min(end_ps, self._writes[0][0].at_ps - 1) if self._writes else end_ps

    def _write_until(self, now_ps: int) -> None:
        while self._writes and self._writes[0][0].at_ps <= now_ps:
            write, entities = self._writes.pop(0)
            try:
                self._switch.write(entities)
            except ConfigError as error:
                raise ConfigError(f"{write.path}: does not fit the program: {error}") from error

    def _flush(self, sinks: Sequence[Sink]) -> None:
        rows = self._buffer.take()
        for sink in sinks:
            sink.take(rows, self._store.arena.bytes)
