"""One switch: packets through its program, one at a time."""

from __future__ import annotations

import numpy as np

from ringleaf.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.packets import (
    HEAD_BYTES,
    IN_PORT,
    OUTBOX_AT,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    free_packet,
    open_packet,
    read_packet,
    write_packet,
)
from ringleaf.units import PS_PER_US
from switches.control import ControlPlane
from switches.generate.state import SCRATCH_AT
from switches.layout import (
    DEQ_QDEPTH,
    DEQ_TIMEDELTA,
    EGRESS_PORT,
    ENQ_QDEPTH,
    ENQ_TIMESTAMP,
    RANDOM_AT,
)
from switches.program import Program
from switches.replication import replicate

LONGEST_PACKET = 10_000  # bytes, that `process` takes


class Switch(ControlPlane):
    """A switch that runs `program`, with ports `first_port` to `ports`.

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
    ) -> None:
        super().__init__(program, store, ports, name, first_port)
        self._memory_at = -1
        self._set(SCRATCH_AT, store.allocate("bytes", int(store.arena.words[HEAD_BYTES])))
        self._set(RANDOM_AT, store.allocate("fields", 1))
        store.arena.fields[self._get(RANDOM_AT)] = np.uint64(seed % (1 << 64))

    def process(self, port: int, data: bytes, now_ps: int = 0) -> list[tuple[int, bytes]]:
        """Send one packet through ingress and egress, without queueing.

        Returns:
            What leaves, as (port, bytes), clones first. Ports that are none are left out.
        """
        self.check_port(port)
        if len(data) > LONGEST_PACKET:
            raise ConfigError(
                f"{self.name}: packet of at most {LONGEST_PACKET} bytes, got {len(data)}"
            )
        self.commit()
        packet = self._receive(port, data)
        arena = self.store.arena
        self.program.ingress(arena, self.at, packet, now_ps)
        count = replicate(arena, self.at, packet, now_ps)
        outbox = int(arena.words[OUTBOX_AT])
        rows = arena.words[outbox : outbox + 2 * count].reshape(count, 2).tolist()
        out = []
        for copy, out_port in rows:
            if self._send(copy, out_port, now_ps):
                out.append((out_port, read_packet(arena, copy)))
            free_packet(arena, copy)
        return out

    def _receive(self, port: int, data: bytes) -> int:
        """Return a new packet; what is beyond the headers lies in registered memory."""
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

    def _send(self, packet: int, port: int, now_ps: int) -> bool:
        if port not in self._ports:
            return False
        fields = open_packet(self.store.arena, packet).fields
        fields[EGRESS_PORT] = port
        fields[ENQ_TIMESTAMP] = now_ps // PS_PER_US
        for field in (ENQ_QDEPTH, DEQ_TIMEDELTA, DEQ_QDEPTH):
            fields[field] = 0
        return bool(self.program.egress(self.store.arena, self.at, packet, now_ps))
