"""What a control plane can do to one switch, and ask of it.

`ControlPlane` is the half of a `Switch` that P4Runtime, STF and Python share; it answers in the
same types that it takes (`updates.py`), so that what one switch says can be applied to another.
Errors are `ConfigError`, with the code that P4Runtime has for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from ringleaf.arena import Fields, Lanes, Store
from ringleaf.errors import Code, ConfigError, choose
from switches.generate.state import LANE_STATE_AT, STATE_AT, TABLES_AT
from switches.layout import PORT_COUNT
from switches.p4runtime.entities import Entities
from switches.program import Program
from switches.replicas import Replicas
from switches.tables import TableEntries
from switches.updates import (
    DELETE,
    INSERT,
    MODIFY,
    CloneUpdate,
    Count,
    DigestMessage,
    Entry,
    GroupUpdate,
    IdleEntry,
    Match,
    MemberGroupUpdate,
    MemberUpdate,
    Rates,
    RegisterUpdate,
    TableUpdate,
    Update,
    ValueSetUpdate,
)
from switches.value_sets import ValueSets


class ControlPlane:
    """The state of a switch that runs `program`, and access to it."""

    def __init__(
        self, program: Program, store: Store, ports: int, name: str, first_port: int
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
        self._stale = set(range(len(self._tables)))  # tables whose images are behind
        self.at = store.allocate("words", TABLES_AT + len(self._tables))
        self._set(PORT_COUNT, ports)
        self._ports = range(first_port, ports + 1)
        self._replicas = Replicas(store, self.at, name, self._ports)
        self._set(STATE_AT, store.allocate("fields", module.state.words))
        self._set(LANE_STATE_AT, store.allocate("lanes", module.state.lanes))
        self._value_sets = ValueSets(program.source.value_sets, name)
        self.commit()

    @property
    def ports(self) -> range:
        return self._ports

    def commit(self) -> None:
        """Let packets see what was applied without a commit; may move the store's arrays."""
        for number in sorted(self._stale):
            self._write_image(number)
        self._stale.clear()

    @cached_property
    def entities(self) -> Entities:
        """All that can be written and read, as P4Runtime's messages."""
        return Entities(self, self.program.schema)

    # Writing.

    def write(self, entities: Any) -> None:
        """Apply P4Runtime entities, in order, each with finsy's `+`, `-`, `~` or as an insert.

        Raises:
            ConfigError: At the first that does not fit; those before it are in force.
        """
        items = entities if isinstance(entities, Iterable) else [entities]
        try:
            for entity in items:
                self.entities.write(*self.program.encoder.encode(entity))
        finally:
            self.commit()

    def apply(self, updates: Iterable[Update], *, commit: bool = True) -> None:
        """Apply updates, in order.

        Args:
            updates: What to do; nothing of a refused one is done.
            commit: Whether packets see them at once. A large table's image takes long to write,
                so who applies entries one by one says False; `process` then commits, and who
                calls handlers calls `commit` before the next packet.

        Raises:
            ConfigError: At the first that does not fit; those before it are in force.
        """
        try:
            for update in updates:
                self._apply_one(update)
        finally:
            if commit:
                self.commit()

    def _apply_one(self, update: Update) -> None:
        match update:
            case TableUpdate():
                self._update_table(update)
            case GroupUpdate():
                self._replicas.update_group(update)
            case CloneUpdate():
                self._replicas.update_clone(update)
            case ValueSetUpdate():
                self._value_sets.replace(update)
                self._write_value_sets()
            case RegisterUpdate():
                self.write_register(update.register, update.index, update.value)
            case _:
                raise self._unsupported(type(update).__name__)

    def write_register(self, name: str, index: int, value: int) -> None:
        words = self._cell(name, index)
        width = self.program.source.registers[name].width
        if not 0 <= value < 1 << width:
            raise ConfigError(f"{self.name}: register {name!r} has {width} bits, got {value}")
        for i in range(words.size):
            words[i] = value >> 64 * i & (1 << 64) - 1

    def reset(self) -> None:
        """Set registers and counters to zero; entries, groups and sessions stay."""
        module, arena = self.program.module, self.store.arena
        start = self._get(STATE_AT)
        arena.fields[start : start + module.state.words] = 0
        start = self._get(LANE_STATE_AT)
        arena.lanes[start : start + module.state.lanes] = 0
        for start, room in self._counters:
            arena.fields[start : start + 2 * room] = 0
        self._write_value_sets()

    # Reading.

    def entries(self, table: str) -> list[Entry]:
        """Return a table's entries, constant ones too, without the default, oldest first."""
        return [replace(entry) for entry in self._table(table).entries]

    def default_entry(self, table: str) -> Entry:
        """Return what a miss does, whether it was set or is the program's."""
        return replace(self._table(table).default)

    def members(self, profile: str) -> list[MemberUpdate]:
        """Return an action profile's members, as the inserts that would make them."""
        raise self._unsupported(f"members of {profile!r}")

    def member_groups(self, profile: str) -> list[MemberGroupUpdate]:
        """Return an action profile's groups, as the inserts that would make them."""
        raise self._unsupported(f"groups of {profile!r}")

    def groups(self) -> list[GroupUpdate]:
        """Return the multicast groups, as the inserts that would make them."""
        raise self._unsupported("multicast groups")

    def clone_sessions(self) -> list[CloneUpdate]:
        """Return the clone sessions, as the inserts that would make them."""
        raise self._unsupported("clone sessions")

    def value_set(self, name: str) -> tuple[Match, ...]:
        """Return a parser value set's members."""
        return self._value_sets.members(name)

    def digests(self) -> list[str]:
        """Return the digests whose messages are kept for `take_digests`."""
        raise self._unsupported("digests")

    def take_digests(self) -> list[DigestMessage]:
        """Return the messages of enabled digests since the last call, oldest first.

        At most `DIGEST_MESSAGES` are kept; `digests_dropped` counts those that found no room.
        """
        raise self._unsupported("digests")

    @property
    def digests_dropped(self) -> int:
        raise self._unsupported("digests")

    def take_idle(self, now_ps: int) -> list[IdleEntry]:
        """Return the entries that have become idle by `now_ps`.

        An entry is reported once; then again only if it was hit (or modified) in between.
        """
        raise self._unsupported(f"idle entries, at {now_ps}")

    def read_register(self, name: str, index: int) -> int:
        words = self._cell(name, index)
        return sum(int(word) << 64 * i for i, word in enumerate(words))

    def read_counter(self, name: str, index: int) -> Count:
        """Return what an indirect counter has counted."""
        counters = self.program.source.counters
        choose(self.name, "counter", name, counters)
        self._check_index(f"counter {name!r}", index, counters[name].size)
        at = self._get(STATE_AT) + self.program.module.state.counters[name] + 2 * index
        packets, size = self.store.arena.fields[at : at + 2]
        return Count(int(packets), int(size))

    def read_direct_counter(self, table: str, entry: Entry) -> Count:
        """Return what an entry (found by its match and precedence) has counted."""
        number = self._number(table)
        if not self.program.module.shapes[number].table.counted:
            raise ConfigError(f"{self.name}: table has no direct counters, got {table!r}")
        self.commit()
        found = self._tables[number].find(entry.match, entry.precedence)
        at = self._counters[number][0] + 2 * found.counter
        packets, size = self.store.arena.fields[at : at + 2]
        return Count(int(packets), int(size))

    def read_meter(self, name: str, index: int) -> Rates | None:
        """Return an indirect meter's rates; None if it has none and all packets are green."""
        raise self._unsupported(f"meter {name!r}[{index}]")

    def read_direct_meter(self, table: str, entry: Entry) -> Rates | None:
        """Return the rates of an entry's meter; None if it has none."""
        raise self._unsupported(f"direct meter of {table!r}, {entry}")

    def failed_assertions(self) -> dict[str, int]:
        """Return how many packets each `assert` or `assume` has dropped, by its source line."""
        raise self._unsupported("assertions")

    # How it is done.

    def _write_value_sets(self) -> None:
        """Write their images, which lie among the registers."""
        for name, image in self._value_sets.images():
            at = self._get(STATE_AT) + self.program.module.state.value_sets[name]
            self.store.arena.fields[at : at + len(image)] = image

    def _unsupported(self, what: str) -> ConfigError:
        return ConfigError(f"{self.name}: not supported yet, got {what}", Code.UNIMPLEMENTED)

    def check_port(self, port: int) -> None:
        """Refuse what is none of the switch's ports."""
        if port not in self._ports:
            ports = f"{self._ports[0]} to {self._ports[-1]}"
            raise ConfigError(f"{self.name}: ports are {ports}, got {port}")

    def _number(self, table: str) -> int:
        return self._numbers[choose(self.name, "table", table, self._numbers)]

    def _table(self, table: str) -> TableEntries:
        return self._tables[self._number(table)]

    def _update_table(self, update: TableUpdate) -> None:
        number = self._number(update.table)
        table = self._tables[number]
        self._stale.add(number)
        if update.is_default:
            if update.entry is None:
                table.reset_default()
            else:
                table.set_default(update.entry.action, update.entry.arguments)
            return
        assert update.entry is not None
        apply = {INSERT: table.insert, MODIFY: table.modify, DELETE: table.delete}
        apply[update.verb](update.entry)

    def _cell(self, name: str, index: int) -> Fields | Lanes:
        """Return a view of a register's words, the least significant first."""
        registers = self.program.source.registers
        choose(self.name, "register", name, registers)
        self._check_index(f"register {name!r}", index, registers[name].size)
        cells = self.program.module.state.registers[name]
        arena = self.store.arena
        array, block = (arena.lanes, LANE_STATE_AT) if cells.in_lanes else (arena.fields, STATE_AT)
        at = self._get(block) + cells.start + index * cells.stride
        return array[at : at + cells.words]

    def _check_index(self, what: str, index: int, size: int) -> None:
        if not 0 <= index < size:
            raise ConfigError(f"{self.name}: {what} has indices 0 to {size - 1}, got {index}")

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
