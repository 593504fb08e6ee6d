"""All embedded switches of one process: P4Runtime devices whose packets come from interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.packets import empty_pool, make_pool, widen_pool
from ringleaf.core.units import PS_PER_MS
from ringleaf.errors import ConfigError, RingleafError
from ringleaf.networks.faults import Agenda, Restart
from ringleaf.networks.live.engine import CPU_PORT, Engine, LinkEnd, LiveNode
from ringleaf.networks.live.line_changes import LineChanges, SwitchChanges, agenda_of
from ringleaf.networks.live.record import LiveRecorder
from ringleaf.networks.live.turns import Turns
from ringleaf.networks.virtual.holding import HeldPorts
from ringleaf.networks.virtual.loop import CAPTURED
from ringleaf.switches.engine.disciplines import free_all
from ringleaf.switches.engine.queues import BYTES, DROPPED, PEAK_BYTES
from ringleaf.switches.program import Program
from ringleaf.switches.server.device import SharedDevice
from ringleaf.switches.switch import Switch

POOL_PACKETS = 8192
HEAD_BYTES = 9216  # a jumbo frame: the heads of live packets hold them whole
TURN_PS = 20 * PS_PER_MS
IDLE_EVERY = 10  # turns


@dataclass(slots=True)
class _Member:
    device: SharedDevice
    node: LiveNode


class Fleet:
    """Switches of one process, each a device; `run` moves their packets.

    Args:
        seed: Seed of losses, and of the switches' own random numbers.
        cpu_port: Number of each switch's port to its controllers.
    """

    def __init__(self, *, seed: int = 1, cpu_port: int = CPU_PORT) -> None:
        self._store = Store()
        make_pool(
            self._store, size=POOL_PACKETS, head_bytes=HEAD_BYTES, field_count=64, lane_count=64
        )
        self._engine = Engine(self._store, seed=seed)
        self._engine.build([])
        self._changes = LineChanges(self._engine, [])
        self._restarts: Agenda[Restart] = Agenda((), 0)
        self._held = HeldPorts(self._store, [self._engine.at])
        self._seed = seed
        self._cpu_port = cpu_port
        self._members: dict[str, _Member] = {}
        self._stopped = False
        self._turn = 0
        self._recorder: LiveRecorder | None = None
        self.turns = Turns(self._engine.ask)

    @property
    def devices(self) -> list[SharedDevice]:
        """Return the P4Runtime devices of all switches, in the order in which they were added."""
        return [member.device for member in self._members.values()]

    def add(self, name: str, number: int, lines: Sequence[LinkEnd]) -> SharedDevice:
        """Add a switch without a program; its ports are its lines, from 1.

        Raises:
            ConfigError: If the name or the number is taken.
            BackendError: If an interface can't be opened.
        """
        return self.add_all([(name, number, lines)])[0]

    def add_all(self, switches: Sequence[tuple[str, int, Sequence[LinkEnd]]]) -> list[SharedDevice]:
        """Add several switches as `add` does, or none, if one can't be added."""
        with self.turns:
            before = dict(self._members)
            try:
                devices = [self._new_member(*switch) for switch in switches]
                self._rebuild()
            except RingleafError:
                self._members = before
                self._rebuild()
                raise
            return devices

    def _new_member(self, name: str, number: int, lines: Sequence[LinkEnd]) -> SharedDevice:
        taken = {member.device.number for member in self._members.values()}
        if name in self._members or number in taken:
            raise ConfigError(f"switch {name}: name or device id is taken, got {number}")
        if self._cpu_port <= len(lines):
            raise ConfigError(
                f"switch {name}: CPU port must be greater than its {len(lines)} ports', "
                f"got {self._cpu_port}"
            )
        device = SharedDevice(
            number,
            ports=len(lines),
            clock=lambda: self._engine.now_ps,
            make_switch=lambda program: self._make_switch(name, program, len(lines)),
            lock=self.turns,
            name=name,
            compiles=True,
            cpu_port=self._cpu_port,
            inject=lambda data: self._engine.inject(list(self._members).index(name), data),
        )
        self._members[name] = _Member(device, LiveNode(name, lines, cpu_port=self._cpu_port))
        return device

    def remove(self, name: str) -> int:
        """Take a switch away; return its device id."""
        with self.turns:
            number = self._member(name).device.number
            del self._members[name]
            self._rebuild()
            return number

    def run(self) -> None:
        """Move packets until `stop`; only this call runs the switches."""
        while not self._stopped:
            with self.turns.turn():
                self._refresh()
                self._changes.happen()
                for each in self._restarts.take_due(self._engine.now_ps):
                    self._restart(each.switch)
                next_ps = min(self._changes.next_ps, self._restarts.next_ps)
                until_ps = min(self._engine.now_ps + TURN_PS, next_ps)
                while self._engine.serve(until_ps) == CAPTURED:
                    assert self._recorder is not None
                    self._recorder.flush()
                self._poll()

    def _poll(self) -> None:
        """Pass switches' packets, digests and idle notices to controllers."""
        for index, data in self._engine.take_packets():
            self.devices[index].packet_in(data)
        self._turn = (self._turn + 1) % IDLE_EVERY
        for device in self.devices:
            device.collect_digests()
            device.poll_digests()
            if not self._turn:
                device.poll_idle()

    def stop(self) -> None:
        """End `run`, from any thread."""
        self._stopped = True
        self._engine.ask()

    def disturb(self, changes: SwitchChanges, start_ns: int) -> None:
        """Have lines change, and switches restart, in a run.

        Args:
            changes: What happens.
            start_ns: The run's start by the monotonic clock.

        Raises:
            ConfigError: If there is no such switch, or one restarts that is recorded: a trace has
                one beginning.
        """
        with self.turns:
            restarts = [
                Restart(after_ps, self._member(name).node.name)
                for name, after_ps in changes.restarts
            ]
            if restarts and self._recorder is not None:
                raise ConfigError(
                    f"restart: not while switches are recorded, got {restarts[0].switch!r}"
                )
            numbers = self._numbers([(name, port) for name, port, _ in changes.lines])
            known = zip(numbers, changes.lines, strict=True)
            self._changes.begin([replace(each, line=line) for line, (*_, each) in known], start_ns)
            self._restarts = agenda_of(restarts, self._engine, start_ns)

    def _restart(self, name: str) -> None:
        """Clear a switch's registers, counters and queues; its tables are written anew at once."""
        member = self._member(name)
        if member.node.switch is not None:
            member.node.switch.reset()
        arena, ports = self._store.arena, self._engine.network().ports
        for number in self._numbers([(name, at + 1) for at in range(len(member.node.lines))]):
            free_all(arena, int(ports[number, s.QUEUES_AT]))

    def hold(self, ports: Sequence[tuple[str, int]]) -> None:
        """Let nothing leave by ports of switches; what is for them waits in their queues.

        Raises:
            ConfigError: If there is no such switch.
        """
        with self.turns:
            self._held.hold(self._numbers(ports))

    def release(self, rates: Sequence[tuple[str, int, int]]) -> None:
        """Let ports of switches send again, at rates in bit/s that they have until `settle`.

        Raises:
            ConfigError: If there is no such switch.
        """
        with self.turns:
            numbers = self._numbers([(name, port) for name, port, _ in rates])
            for number, (*_, rate_bps) in zip(numbers, rates, strict=True):
                self._changes.set(number, "rate_bps", rate_bps)
            self._held.release(numbers, self._engine.now_ps)

    def queued(self, ports: Sequence[tuple[str, int]]) -> int:
        """Return the number of packets that wait in the queues of ports, or are on their lines.

        Raises:
            ConfigError: If there is no such switch.
        """
        with self.turns:
            rows, now_ps = self._held.ports, self._engine.now_ps
            numbers = self._numbers(ports)
            sending = sum(
                port not in self._held and int(rows[port, s.BUSY_UNTIL_PS]) > now_ps
                for port in numbers
            )
            return sending + sum(self._held.packets(port) for port in numbers)

    def _numbers(self, ports: Sequence[tuple[str, int]]) -> list[int]:
        """Return the number of each port of a switch among all lines."""
        first, number = {}, 0
        for name, member in self._members.items():
            first[name] = number
            number += len(member.node.lines)
        return [first[self._member(name).node.name] + port - 1 for name, port in ports]

    def settle(self) -> None:
        """Have all lines as usual again."""
        with self.turns:
            self._held.release(range(len(self._held.ports)), self._engine.now_ps)
            self._changes.settle()
            self._restarts.take_rest()

    def record(self, folder: Path) -> None:
        """Record each switch from its next program on.

        Raises:
            ConfigError: If a recording is under way, or the folder is not empty.
        """
        with self.turns:
            if self._recorder is not None:
                raise ConfigError(f"record: goes on already, got {str(folder)!r}; save it first")
            self._recorder = LiveRecorder(self._engine, folder, seed=self._seed)

    def save(self) -> list[str]:
        """End the recording, and write a trace per switch; return their folders' names.

        Raises:
            ConfigError: If nothing is recorded.
            BackendError: If the traces can't be written to disk.
        """
        with self.turns:
            recorder, self._recorder = self._recorder, None
            if recorder is None:
                raise ConfigError("save: nothing is recorded, got no 'record' before")
            recorder.stop()
        return recorder.save()

    def close(self) -> None:
        """Close the sockets of all interfaces."""
        self._engine.close()

    def counters(self) -> dict[str, list[dict[str, int]]]:
        """Return the counters of sent, lost, dropped and received packets, per switch and port.

        The fullest moment of a port's queue is that since the last call.
        """
        with self.turns:
            ports = self._engine.network().ports
            pauses = self._engine.pauses()
            words = self._store.arena.words
            sockets = self._engine.sockets()
            counters: dict[str, list[dict[str, int]]] = {}
            number = 0
            for name, member in self._members.items():
                rows = []
                for _ in member.node.lines:
                    port, socket = ports[number], sockets[number]
                    queues = int(port[s.QUEUES_AT])
                    rows.append(
                        {
                            "tx_packets": int(port[s.TX_PACKETS]),
                            "tx_line_bytes": int(port[s.TX_BYTES]),
                            "lost": int(port[s.LOST]),
                            "queue_drops": int(words[queues + DROPPED]),
                            "peak_queue_bytes": int(words[queues + PEAK_BYTES]),
                            "pauses": pauses[number],
                            **socket,
                        }
                    )
                    words[queues + PEAK_BYTES] = words[queues + BYTES]
                    number += 1
                counters[name] = rows
            return counters

    def forbidden(self) -> dict[str, dict[str, int]]:
        """Return the packets that switches dropped as their programs forbid them, by reason."""
        with self.turns:
            running = {name: member.node.switch for name, member in self._members.items()}
            return {name: each.forbidden() for name, each in running.items() if each is not None}

    def _member(self, name: str) -> _Member:
        if name not in self._members:
            known = ", ".join(self._members) or "none"
            raise ConfigError(f"switch: no such name, got {name!r}; there are: {known}")
        return self._members[name]

    def _rebuild(self) -> None:
        """Lay all switches out anew; packets on their way are lost, and recordings end."""
        if self._recorder is not None:
            self._recorder.stop()
        empty_pool(self._store)
        nodes = [member.node for member in self._members.values()]
        self._engine.build(nodes)
        self._changes = LineChanges(self._engine, [line for node in nodes for line in node.lines])
        self._held = HeldPorts(self._store, [self._engine.at])

    def _make_switch(self, name: str, program: Program, ports: int) -> Switch:
        """Return a switch for a pipeline, with room in the pool for its packets' fields."""
        widen_pool(
            self._store,
            head_bytes=HEAD_BYTES,
            field_count=program.field_count,
            lane_count=program.lane_count,
        )
        switch = Switch(program, self._store, ports, name, seed=self._seed, cpu_port=self._cpu_port)
        if self._recorder is not None:
            self._recorder.watch(switch)
        return switch

    def _refresh(self) -> None:
        """Let packets go through the switches that controllers have committed."""
        for index, member in enumerate(self._members.values()):
            pipelines = member.device.pipelines
            switch = pipelines.committed.switch if pipelines.is_committed else None
            if switch is not member.node.switch:
                self._replace(index, member, switch)
            if switch is not None:
                switch.commit()  # the writes of controllers since the last turn
                if self._recorder is not None:
                    self._recorder.note_writes(index)

    def _replace(self, index: int, member: _Member, switch: Switch | None) -> None:
        """Let packets go through another switch; a recording begins when ports are idle."""
        recorder = self._recorder
        if recorder is not None and switch is not None and switch.entities.journal is not None:
            pipeline = member.device.pipelines.committed
            if not recorder.begin(index, member.node.name, member.node.lines, pipeline):
                switch = None  # mute until then
        member.node.switch = switch
        self._engine.replace_switch(index, switch)


def parse_line(data: dict[str, Any]) -> LinkEnd:
    """Read a line from JSON.

    Raises:
        ConfigError: If a key is unknown or missing.
    """
    try:
        return LinkEnd(**data)
    except TypeError as exc:
        raise ConfigError(f"line: not understood, got {data!r}: {exc}") from exc
