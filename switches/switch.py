"""One switch: a program's state in the arena, and its control plane."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ringleaf.arena import Store
from ringleaf.errors import ConfigError, choose
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
from switches.generate.state import LANE_STATE_AT, SCRATCH_AT, STATE_AT, TABLES_AT
from switches.layout import (
    DEQ_QDEPTH,
    DEQ_TIMEDELTA,
    EGRESS_PORT,
    ENQ_QDEPTH,
    ENQ_TIMESTAMP,
    PORT_COUNT,
    RANDOM_AT,
)
from switches.program import Program
from switches.replicas import Replicas
from switches.replication import replicate
from switches.tables import TableEntries
from switches.updates import (
    DELETE,
    INSERT,
    MODIFY,
    CloneUpdate,
    GroupUpdate,
    TableUpdate,
    Update,
)

LONGEST_PACKET = 10_000  # bytes, that `process` takes


class Count(NamedTuple):
    packets: int
    bytes: int


class Switch:
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
        if not 1 <= ports <= 510:
            raise ConfigError(f"{name}: ports must be in [1, 510], got {ports}")
        assert first_port in (0, 1), "v1model numbers ports from 0; networks' links, from 1"
        self.program = program
        self.name = name
        self.store = store
        module = program.module
        self._tables = [TableEntries(shape, name) for shape in module.shapes]
        self._numbers = {shape.table.name: i for i, shape in enumerate(module.shapes)}
        self._room = [0] * len(self._tables)  # words of each table's range
        self._counters = [(0, 0)] * len(self._tables)  # offset and room of direct counters
        self._memory_at = -1
        self.at = store.allocate("words", TABLES_AT + len(self._tables))
        self._set(PORT_COUNT, ports)
        self._ports = range(first_port, ports + 1)
        self._replicas = Replicas(store, self.at, name, self._ports)
        self._set(STATE_AT, store.allocate("fields", module.state.words))
        self._set(LANE_STATE_AT, store.allocate("lanes", module.state.lanes))
        self._set(SCRATCH_AT, store.allocate("bytes", int(store.arena.words[HEAD_BYTES])))
        self._set(RANDOM_AT, store.allocate("fields", 1))
        store.arena.fields[self._get(RANDOM_AT)] = np.uint64(seed % (1 << 64))
        for number in range(len(self._tables)):
            self._write_image(number)

    # The control plane.

    def write(self, entities: Any) -> None:
        """Apply P4Runtime entities, in order, each with finsy's `+`, `-`, `~` or as an insert.

        Raises:
            ConfigError: At the first that does not fit; those before it are in force.
        """
        items = entities if isinstance(entities, Iterable) else [entities]
        self.apply(self.program.translator.translate(entity) for entity in items)

    def apply(self, updates: Iterable[Update]) -> None:
        """Apply updates, in order.

        Raises:
            ConfigError: At the first that does not fit; those before it are in force.
        """
        touched: set[int] = set()
        try:
            for update in updates:
                match update:
                    case TableUpdate():
                        touched.add(self._numbers[update.table])
                        self._update_table(update)
                    case GroupUpdate():
                        self._replicas.update_group(update)
                    case CloneUpdate():
                        self._replicas.update_clone(update)
                    case _:
                        raise ConfigError(f"{self.name}: not supported, got {update!r}")
        finally:
            for number in sorted(touched):
                self._write_image(number)

    def _update_table(self, update: TableUpdate) -> None:
        table = self._tables[self._numbers[update.table]]
        if update.is_default:
            if update.entry is None:
                table.reset_default()
            else:
                table.set_default(update.entry.action, update.entry.arguments)
            return
        assert update.entry is not None
        apply = {INSERT: table.insert, MODIFY: table.modify, DELETE: table.delete}
        apply[update.verb](update.entry)

    def _check_port(self, port: int) -> None:
        if port not in self._ports:
            ports = f"{self._ports[0]} to {self._ports[-1]}"
            raise ConfigError(f"{self.name}: ports are {ports}, got {port}")

    # Registers and counters.

    def read_register(self, name: str, index: int) -> int:
        array, at = self._cell(name, index)
        return int(getattr(self.store.arena, array)[at])

    def write_register(self, name: str, index: int, value: int) -> None:
        array, at = self._cell(name, index)
        width = self.program.source.registers[name].width
        if not 0 <= value < 1 << width:
            raise ConfigError(f"{self.name}: register {name!r} has {width} bits, got {value}")
        getattr(self.store.arena, array)[at] = value

    def read_counter(self, name: str, index: int) -> Count:
        """Return what an indirect counter has counted."""
        counters = self.program.source.counters
        choose(self.name, "counter", name, counters)
        self._check_index(f"counter {name!r}", index, counters[name].size)
        at = self._get(STATE_AT) + self.program.module.state.counters[name] + 2 * index
        packets, size = self.store.arena.fields[at : at + 2]
        return Count(int(packets), int(size))

    def read_direct_counter(self, entity: Any) -> Count:
        """Return what an entry of a table with direct counters has counted."""
        update = self.program.translator.translate(entity)
        if not isinstance(update, TableUpdate) or update.entry is None or update.is_default:
            raise ConfigError(f"{self.name}: direct counter of no table entry, got {entity!r}")
        number = self._numbers[update.table]
        if not self.program.module.shapes[number].table.counted:
            raise ConfigError(f"{self.name}: table has no direct counters, got {update.table!r}")
        entry = self._tables[number].find(update.entry.match, update.entry.precedence)
        at = self._counters[number][0] + 2 * entry.counter
        packets, size = self.store.arena.fields[at : at + 2]
        return Count(int(packets), int(size))

    def reset(self) -> None:
        """Set registers and counters to zero; entries, groups and sessions stay."""
        module, arena = self.program.module, self.store.arena
        start = self._get(STATE_AT)
        arena.fields[start : start + module.state.words] = 0
        start = self._get(LANE_STATE_AT)
        arena.lanes[start : start + module.state.lanes] = 0
        for start, room in self._counters:
            arena.fields[start : start + 2 * room] = 0

    def _cell(self, name: str, index: int) -> tuple[str, int]:
        registers = self.program.source.registers
        choose(self.name, "register", name, registers)
        self._check_index(f"register {name!r}", index, registers[name].size)
        cells = self.program.module.state.registers[name]
        array, block = ("lanes", LANE_STATE_AT) if cells.in_lanes else ("fields", STATE_AT)
        return array, self._get(block) + cells.start + index * cells.stride

    def _check_index(self, what: str, index: int, size: int) -> None:
        if not 0 <= index < size:
            raise ConfigError(f"{self.name}: {what} has indices 0 to {size - 1}, got {index}")

    # One packet at a time.

    def process(self, port: int, data: bytes, now_ps: int = 0) -> list[tuple[int, bytes]]:
        """Send one packet through ingress and egress, without queueing.

        Returns:
            What leaves, as (port, bytes), clones first. Ports that are none are left out.
        """
        self._check_port(port)
        if len(data) > LONGEST_PACKET:
            raise ConfigError(
                f"{self.name}: packet of at most {LONGEST_PACKET} bytes, got {len(data)}"
            )
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

    # Images.

    def _get(self, column: int) -> int:
        return int(self.store.arena.words[self.at + column])

    def _set(self, column: int, value: int) -> None:
        self.store.arena.words[self.at + column] = value

    def _write_image(self, number: int) -> None:
        """Write a table's image, to a new and larger range where the old one is too small."""
        image = self._tables[number].image(self._counters_at(number))
        if image.size > self._room[number]:
            self._room[number] = max(image.size, 2 * self._room[number])
            self._set(TABLES_AT + number, self.store.allocate("fields", self._room[number]))
        at = self._get(TABLES_AT + number)
        self.store.arena.fields[at : at + image.size] = image

    def _counters_at(self, number: int) -> int:
        """Return where a table's direct counters are; 0 if it has none."""
        table = self._tables[number]
        if not self.program.module.shapes[number].table.counted:
            return 0
        at, room = self._counters[number]
        if table.counters > room or not at:
            old = self.store.arena.fields[at : at + 2 * room].copy()
            room = max(table.counters, 2 * room, 8)
            at = self.store.allocate("fields", 2 * room)
            self.store.arena.fields[at : at + old.size] = old
            self._counters[number] = (at, room)
        for counter in table.fresh:
            self.store.arena.fields[at + 2 * counter : at + 2 * counter + 2] = 0
        table.fresh.clear()
        return at
