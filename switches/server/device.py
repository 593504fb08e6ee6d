"""One device of a P4Runtime server: a switch, its lock, its clock and its CPU port."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ringleaf.core.arena import Store
from ringleaf.core.packets import OUTBOX_ROWS, make_pool
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.layout import LAST_PORT
from ringleaf.switches.program import Program
from ringleaf.switches.server.controllers import Controllers
from ringleaf.switches.server.digests import PS_PER_NS, DigestLists
from ringleaf.switches.server.packets import join_packet, split_packet
from ringleaf.switches.server.pipeline import Pipelines
from ringleaf.switches.switch import Switch

Clock = Callable[[], int]
Transmit = Callable[[int, bytes], None]
Inject = Callable[[bytes], None]

POOL_PACKETS = OUTBOX_ROWS + 8


class SharedDevice:
    """A switch that controllers share with the code that moves its packets; both hold `lock`.

    `process` makes writes visible to packets; code that calls the switch's handlers itself must
    first call the switch's `commit`.

    Args:
        number: The device id, from 1.
        ports: Ports 0 to this one take and send packets.
        cpu_port: The port by which packets to and from controllers leave and enter, as with
            `simple_switch_grpc --cpu-port`; None for nowhere.
        clock: Returns the time in ps; by default since the device was made.
        transmit: Is called with packets that leave by other ports.
        inject: Takes controllers' packets for the CPU port, if other code than `process` moves
            packets; that code passes packets that leave by this port to `packet_in`.
        make_switch: Makes the switch of a new pipeline, if the default one won't do.
        lock: The lock of the code that moves packets, if it has one; else the device has its own.
        name: Its name in errors and lists.
        compiles: Whether a new program is compiled at once, and not with the first packet.
    """

    def __init__(
        self,
        number: int,
        *,
        ports: int = 8,
        cpu_port: int | None = None,
        clock: Clock | None = None,
        transmit: Transmit | None = None,
        inject: Inject | None = None,
        make_switch: Callable[[Program], Switch] | None = None,
        lock: AbstractContextManager[object] | None = None,
        name: str | None = None,
        compiles: bool = False,
    ) -> None:
        if not 1 <= number < 1 << 64:
            raise ConfigError(f"device id must be in [1, 2^64 - 1], got {number}")
        if cpu_port is not None and not 0 <= cpu_port <= LAST_PORT:
            raise ConfigError(f"CPU port must be in [0, {LAST_PORT}], got {cpu_port}")
        self.number = number
        self.name = name or f"device{number}"
        self.lock: AbstractContextManager[object] = lock or threading.RLock()
        self.controllers = Controllers(number)
        self.pipelines = Pipelines(
            self.name, make_switch or self._make_switch, self.lock, compiles=compiles
        )
        self.digests = DigestLists()
        self._ports = ports
        self._cpu_port = cpu_port
        self._clock = clock or _clock()
        self._transmit = transmit
        self._inject = inject or self._enter

    @property
    def switch(self) -> Switch:
        """The switch that packets go through.

        Raises:
            ConfigError: FAILED_PRECONDITION, if it has no program yet.
        """
        return self.pipelines.committed.switch

    @property
    def is_compiled(self) -> bool:
        """Whether the next packet need not wait for a program to be compiled."""
        pipelines = self.pipelines
        return not pipelines.is_committed or pipelines.committed.switch.program.is_compiled

    def compile(self) -> None:
        """Compile the running program, if there is one, which may take seconds."""
        if self.pipelines.is_committed:
            self.switch.program.prepare()

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """Send a packet through the switch, and its messages to the controllers.

        Returns:
            The packets that left the switch, but for the CPU port, as (port, bytes).
        """
        self.switch.program.prepare()  # may take seconds, during which controllers need not wait
        with self.lock:
            out = []
            for out_port, packet in self.switch.process(port, data, self._clock()):
                if out_port == self._cpu_port:
                    self.packet_in(packet)
                elif out_port <= self._ports:
                    out.append((out_port, packet))
                    if self._transmit:
                        self._transmit(out_port, packet)
            self.collect_digests()
            return out

    def packet_out(self, message: Any) -> None:
        """Let a p4.v1.PacketOut enter at the CPU port.

        Raises:
            ConfigError: If there is no CPU port, or the packet lacks metadata.
        """
        with self.lock:
            header = self.switch.program.schema.controller_header("packet_out")
            if self._cpu_port is None:
                raise ConfigError("device has no CPU port, got a packet", Code.FAILED_PRECONDITION)
            data = join_packet(header, message)
        self._inject(data)

    def packet_in(self, data: bytes) -> None:
        """Pass a packet from the CPU port to the primary controller; one too short is lost."""
        with self.lock:
            header = self.switch.program.schema.controller_header("packet_in")
            message = split_packet(header, data)
            if message is not None:
                self.controllers.send_packet(message)

    def writable(self) -> Switch:
        """Return the switch that controllers write and read, having told it the time.

        Raises:
            ConfigError: FAILED_PRECONDITION, if there is none yet.
        """
        switch = self.pipelines.latest.switch
        switch.now_ps = max(switch.now_ps, self._clock())
        return switch

    def poll_digests(self) -> None:
        """Send lists of digests that are old enough; to be called every few ms."""
        with self.lock:
            if self.pipelines.is_committed:
                configs = self.switch.entities.notes.digest_configs
                for digest in self.digests.poll(configs, self._clock()):
                    self.controllers.send_digest(self.switch, digest)

    def poll_idle(self) -> None:
        """Notify of idle entries; looks at each, so call it only several times a second."""
        with self.lock:
            if not self.pipelines.is_committed:
                return
            tables = self.switch.entities.schema.tables.values()
            if any(table.expires for table in tables):
                self.controllers.send_idle(self.switch, self.switch.take_idle(self._clock()))

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        """Take a DigestListAck.

        Raises:
            ConfigError: If there is no such digest.
        """
        with self.lock:
            self.switch.program.schema.digest(digest_id)
            self.digests.acknowledge(digest_id, list_id)

    def collect_digests(self) -> None:
        """Take the digests that the switch has for controllers; `process` does so itself."""
        with self.lock:
            if not self.pipelines.is_committed:
                return
            entities, now_ps = self.switch.entities, self._clock()
            configs = entities.notes.digest_configs
            if not configs:
                return
            for message in self.switch.take_digests():
                number = entities.schema.digest_ids[message.digest]
                for digest in self.digests.add(number, message, configs, now_ps):
                    self.controllers.send_digest(self.switch, digest)

    def _enter(self, data: bytes) -> None:
        assert self._cpu_port is not None
        self.process(self._cpu_port, data)

    def _make_switch(self, program: Program) -> Switch:
        """Return a switch with an arena of its own."""
        store = Store()
        make_pool(
            store,
            size=POOL_PACKETS,
            head_bytes=program.head_bytes,
            field_count=program.field_count,
            lane_count=program.lane_count,
        )
        ports = max(self._ports, self._cpu_port or 0)
        return Switch(program, store, ports, self.name, first_port=0)


def _clock() -> Clock:
    start_ns = time.monotonic_ns()
    return lambda: (time.monotonic_ns() - start_ns) * PS_PER_NS
