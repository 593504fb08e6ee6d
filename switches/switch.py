"""One switch: packets through its program, one at a time."""

from __future__ import annotations

from collections import deque

import numpy as np

from ringleaf.core.arena import Store
from ringleaf.core.ethernet import LONGEST_PACKET
from ringleaf.core.packets import (
    HEAD_BYTES,
    IN_PORT,
    OUTBOX_AT,
    OUTBOX_ROWS,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    POOL_SIZE,
    TWIN,
    free_packet,
    free_packets,
    grow_pool,
    make_pool,
    open_packet,
    read_packet,
    row_of,
    write_packet,
)
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import ConfigError
from ringleaf.switches.control.plane import ControlPlane
from ringleaf.switches.engine.layout import (
    AGAIN_PORT,
    CLONE,
    DEQ_QDEPTH,
    DEQ_TIMEDELTA,
    EGRESS_PORT,
    ENQ_QDEPTH,
    ENQ_TIMESTAMP,
    LOOPED,
    RANDOM_AT,
    ROUND,
    ROUND_PORT,
    SEND,
)
from ringleaf.switches.engine.replication import may_pass, replicate, send_twin
from ringleaf.switches.generate.state import SCRATCH_AT
from ringleaf.switches.program import Program

MOST_PACKETS = 16 * OUTBOX_ROWS  # the most packets that one packet may lead to at a time


class Switch(ControlPlane):
    """A switch that runs `program`, with ports `first_port` to `ports`, and perhaps a `cpu_port`.

    `at` is its block of `arena.words`, for the program's handlers and `replicate`.
    """

    def __init__(
        self,
        program: Program,
        store: Store,
        ports: int,
        name: str = "switch",
        seed: int = 0,
        first_port: int = 1,
        cpu_port: int | None = None,
    ) -> None:
        super().__init__(program, store, ports, name, first_port, cpu_port)
        self._memory_at = -1
        self.wait_ps = 0  # between ingress and egress, of packets that `process` is given
        self.last_first = False  # whether copies of these pass egress in reverse order
        scratch = max(int(store.arena.words[HEAD_BYTES]), program.module.scratch_bytes)
        self._set(SCRATCH_AT, store.allocate("bytes", scratch))
        self._set(RANDOM_AT, store.allocate("fields", 1))
        store.arena.fields[self._get(RANDOM_AT)] = np.uint64(seed % (1 << 64))

    @classmethod
    def alone(
        cls, program: Program, ports: int, name: str = "switch", seed: int = 0, first_port: int = 1
    ) -> Switch:
        """Return a switch with a store and a packet pool of its own."""
        store = Store()
        make_pool(
            store,
            size=OUTBOX_ROWS + 8,
            head_bytes=program.head_bytes,
            field_count=program.field_count,
            lane_count=program.lane_count,
        )
        return cls(program, store, ports, name, seed, first_port)

    def process(self, port: int, data: bytes, now_ps: int = 0) -> list[tuple[int, bytes]]:
        """Send one packet through ingress and egress, without queueing.

        Returns:
            The packets that leave, as (port, bytes), clones first; none for ports that don't exist.
        """
        self.check_port(port)
        if len(data) > LONGEST_PACKET:
            raise ConfigError(
                f"{self.name}: packet of at most {LONGEST_PACKET} bytes, got {len(data)}"
            )
        self.commit()
        self.now_ps = max(self.now_ps, now_ps)
        out: list[tuple[int, bytes]] = []
        arrived = deque([self._receive(port, data)])
        passes = 0
        while arrived:
            packet = arrived.popleft()
            passes += 1
            if passes > MOST_PACKETS:  # clones that clone themselves on each round
                free_packet(self.store.arena, packet)
                self._set(LOOPED, self._get(LOOPED) + 1)
                continue
            self.program.ingress(self.store.arena, self.at, packet, now_ps)
            queued = deque(self._outbox(replicate(self.store.arena, self.at, packet, now_ps)))
            while queued:
                copy, out_port = queued.popleft()
                if out_port == AGAIN_PORT:
                    arrived.append(copy)
                else:
                    self._leave(copy, out_port, now_ps, out, queued, arrived)
        return out

    def _outbox(self, count: int) -> list[list[int]]:
        """Return the rows (packet, egress port) that the traffic manager has just written."""
        arena = self.store.arena
        start = int(arena.own[OUTBOX_AT])
        rows: list[list[int]] = arena.words[start : start + 2 * count].reshape(count, 2).tolist()
        return rows[::-1] if self.last_first else rows

    def _leave(
        self,
        packet: int,
        port: int,
        now_ps: int,
        out: list[tuple[int, bytes]],
        queued: deque[list[int]],
        arrived: deque[int],
    ) -> None:
        """Run egress; its packets go to `out`, to the queue of egress, or to ingress again."""
        flags = self._send(packet, port, now_ps)
        if flags & (CLONE | ROUND):
            self._make_room()
        arena = self.store.arena
        if flags & CLONE:
            twin = int(arena.words[row_of(arena.words, packet) + TWIN])
            queued.extend(self._outbox(send_twin(arena, self.at, twin)))
        if flags & ROUND and may_pass(arena, self.at, packet):
            arrived.append(packet)
            return
        if flags & SEND:
            out.append((port, read_packet(arena, packet)))
        free_packet(arena, packet)

    def _make_room(self) -> None:
        """Let the pool grow with the packets under way, up to `MOST_PACKETS`."""
        size = int(self.store.arena.words[POOL_SIZE])
        if free_packets(self.store) < 2 * OUTBOX_ROWS and size < MOST_PACKETS:
            grow_pool(self.store, size + 2 * OUTBOX_ROWS)

    def _receive(self, port: int, data: bytes) -> int:
        """Return a new packet; its bytes beyond the headers lie in registered memory."""
        in_head = min(len(data), self.program.module.parsed_bytes)
        payload = data[in_head:]
        if payload and self._memory_at < 0:
            self._memory_at = self.store.register_memory(LONGEST_PACKET)
        arena = self.store.arena
        packet = write_packet(arena, data[:in_head])
        row = open_packet(arena, packet).row
        row[IN_PORT] = port
        if payload:
            arena.memory[self._memory_at :][: len(payload)] = np.frombuffer(payload, np.uint8)
            row[PAYLOAD_AT] = self._memory_at
            row[PAYLOAD_LEN] = len(payload)
        return packet

    def _send(self, packet: int, port: int, now_ps: int) -> int:
        if port not in self._ports and port != ROUND_PORT:
            return 0
        fields = open_packet(self.store.arena, packet).fields
        fields[EGRESS_PORT] = port
        fields[ENQ_TIMESTAMP] = now_ps // PS_PER_US
        fields[DEQ_TIMEDELTA] = self.wait_ps // PS_PER_US
        for field in (ENQ_QDEPTH, DEQ_QDEPTH):
            fields[field] = 0
        return self.program.egress(self.store.arena, self.at, packet, now_ps + self.wait_ps)
