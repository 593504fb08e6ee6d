"""The operations of a control plane on one switch.

`ControlPlane` is the half of a `Switch` that P4Runtime, STF and Python share; it answers in the
same types that it takes (`updates.py`), so that one switch's answers can be applied to another.
Errors are `ConfigError`, with the code that P4Runtime has for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ringleaf.core.arena import Fields, Lanes, Store
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.control.externs import Externs
from ringleaf.switches.control.installed import InstalledTables
from ringleaf.switches.control.replicas import ReplicaGroups, name_ports
from ringleaf.switches.engine.digests import Digests
from ringleaf.switches.engine.layout import LAST_PORT, LOOPED, MOST_PASSES, PORT_COUNT, ROUND_PORT
from ringleaf.switches.engine.meters import check_rates, configure, rates_of
from ringleaf.switches.engine.updates import (
    CloneUpdate,
    Count,
    CounterUpdate,
    DigestMessage,
    DigestUpdate,
    GroupUpdate,
    IdleEntry,
    InstalledEntry,
    Match,
    MemberGroupUpdate,
    MemberUpdate,
    MeterRates,
    MeterUpdate,
    RegisterUpdate,
    TableUpdate,
    Update,
    ValueSetUpdate,
)
from ringleaf.switches.engine.value_sets import ValueSets
from ringleaf.switches.generate.state import TABLES_AT, digest_words
from ringleaf.switches.p4runtime.entities import Entities
from ringleaf.switches.p4runtime.table_rows import TableRows, entities_of
from ringleaf.switches.program import Program
from ringleaf.switches.source import PSA


class ControlPlane:
    """The state of a switch that runs `program`, and access to it."""

    def __init__(
        self,
        program: Program,
        store: Store,
        ports: int,
        name: str,
        first_port: int,
        cpu_port: int | None = None,
    ) -> None:
        if not 1 <= ports <= LAST_PORT:
            raise ConfigError(f"{name}: ports must be in [1, {LAST_PORT}], got {ports}")
        assert first_port in (0, 1), "v1model numbers ports from 0; networks' links, from 1"
        self.program = program
        self.name = name
        self.store = store
        self.now_ps = 0  # the latest that `process` or `take_idle` was told: new entries' time
        self.at = store.allocate("words", TABLES_AT + len(program.module.shapes))
        self._tables = InstalledTables(store, self.at, program, name)
        self._digests = Digests(store, self.at, name, digest_words(program.source))
        self._set(PORT_COUNT, ports)
        links = range(first_port, ports + 1)
        self._ports = links if cpu_port is None or cpu_port in links else (*links, cpu_port)
        rounds = (ROUND_PORT,) if program.source.architecture is PSA else ()
        self._replicas = ReplicaGroups(store, self.at, name, (*self._ports, *rounds))
        self._externs = Externs(store, self.at, program, name)
        self._value_sets = ValueSets(program.source.value_sets, name)
        self.commit()

    @property
    def ports(self) -> Sequence[int]:
        """Return the numbers of the switch's ports."""
        return self._ports

    def commit(self) -> None:
        """Make uncommitted updates visible to packets; may move the store's arrays."""
        self._tables.commit(self.now_ps)

    @cached_property
    def entities(self) -> Entities:
        """All that can be written and read, as P4Runtime's messages."""
        return Entities(self, self.program.schema)

    @property
    def _has_entities(self) -> bool:
        """Whether messages were looked at: of a thousand switches, most never get one."""
        return "entities" in self.__dict__

    # Writing.

    def write(self, entities: Any) -> None:
        """Apply P4Runtime entities, in order, each with finsy's `+`, `-`, `~` or as an insert.

        An item may also be `TableRows`, which means the same as its entities, in less time.

        Raises:
            ConfigError: At the first that does not fit; those before it are in force.
        """
        items = entities if isinstance(entities, Iterable) else [entities]
        try:
            for item in items:
                if not (isinstance(item, TableRows) and self._extend(item)):
                    self._write_singly(entities_of([item]))
        finally:
            self.commit()

    def write_messages(self, messages: Iterable[tuple[str, Any]]) -> None:
        """Apply P4Runtime messages with their verbs, in order, as an encoder has made them.

        Raises:
            ConfigError: At the first that does not fit; those before it are in force.
        """
        try:
            for verb, message in messages:
                self.entities.write(verb, message)
        finally:
            self.commit()

    def _write_singly(self, entities: Iterable[Any]) -> None:
        for entity in entities:
            self.entities.write(*self.program.encoder.encode(entity))

    def _extend(self, rows: TableRows) -> bool:
        """Add rows to their table at once; or change nothing and return False."""
        if not len(rows):
            return True
        if self._has_entities and self.entities.journal is not None:
            return False
        if not rows.match:
            return self._set_default(rows)
        read = self.program.row_reader.read(rows)
        return read is not None and self._tables[read[0]].extend(read[1])

    def _set_default(self, rows: TableRows) -> bool:
        update = self.program.row_reader.read_default(rows)
        if update is None:
            return False
        if self._has_entities:
            self.entities.notes.entries.pop((update.table,), None)  # a row has none
        self._tables.update(update, self.now_ps)
        return True

    def apply(self, updates: Iterable[Update], *, commit: bool = True) -> None:
        """Apply updates, in order.

        Args:
            updates: The updates; a refused one changes nothing.
            commit: Whether packets see them at once. A large table's image takes long to write,
                so pass False to apply entries one by one; `process` then commits, and callers of
                handlers must call `commit` before the next packet.

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
                self._tables.update(update, self.now_ps)
            case GroupUpdate():
                self._replicas.update_group(update)
            case CloneUpdate():
                self._replicas.update_clone(update)
            case ValueSetUpdate():
                self._value_sets.replace(update)
                self._externs.write_value_sets(self._value_sets.images())
            case MemberUpdate() | MemberGroupUpdate():
                self._tables.update_profile(update)
            case RegisterUpdate():
                self.write_register(update.register, update.index, update.value)
            case CounterUpdate():
                self._write_counter(update)
            case MeterUpdate():
                self._write_meter(update)
            case DigestUpdate():
                self._digests.update(update)
            case _:
                raise self._unsupported(type(update).__name__)

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set a cell of a register array.

        Raises:
            ConfigError: If there is no such cell, or it has too few bits for the value.
        """
        self._externs.write_register(name, index, value)

    def fill_register(self, name: str, value: int) -> None:
        """Write all cells of a register."""
        self._externs.fill_register(name, value)

    def fill_counter(self, name: str, count: Count) -> None:
        """Write all cells of an indirect counter."""
        _check_count(f"{self.name}: counter {name!r}", count.packets, count.bytes)
        self._externs.counter_cells(name)[:] = count.packets, count.bytes

    def fill_meter(self, name: str, rates: MeterRates | None) -> None:
        """Configure all cells of an indirect meter."""
        check_rates(f"{self.name}: meter {name!r}", rates)
        self._externs.meter_cells(name)[:] = configure(rates)

    def reset(self) -> None:
        """Set registers, counters and failed assertions to zero; all else stays."""
        self._externs.reset()
        for table in self._tables:
            table.clear_counters()

    # Reading.

    def entries(self, table: str) -> list[InstalledEntry]:
        """Return a table's entries, constant ones too, without the default, oldest first."""
        return list(self.each_entry(table))

    def each_entry(self, table: str) -> Iterator[InstalledEntry]:
        """Yield the same entries, those of now, one by one; the table may change meanwhile."""
        return map(replace, tuple(self._tables[table].entries.entries))

    def default_entry(self, table: str) -> InstalledEntry:
        """Return the entry that is used on a miss, whether it was set or is the program's."""
        return replace(self._tables[table].entries.default)

    def members(self, profile: str) -> list[MemberUpdate]:
        """Return an action profile's members, as the inserts that would make them."""
        return list(self._tables.profile(profile).members.values())

    def member_groups(self, profile: str) -> list[MemberGroupUpdate]:
        """Return an action profile's groups, as the inserts that would make them."""
        return list(self._tables.profile(profile).groups.values())

    def groups(self) -> list[GroupUpdate]:
        """Return the multicast groups, as the inserts that would make them."""
        return self._replicas.groups()

    def clone_sessions(self) -> list[CloneUpdate]:
        """Return the clone sessions, as the inserts that would make them."""
        return self._replicas.sessions()

    def value_set(self, name: str) -> tuple[Match, ...]:
        """Return a parser value set's members."""
        return self._value_sets.members(name)

    def digests(self) -> list[str]:
        """Return the digests whose messages are kept for `take_digests`."""
        return self._digests.enabled

    def take_digests(self) -> list[DigestMessage]:
        """Return the messages of enabled digests since the last call, oldest first.

        At most `DIGEST_MESSAGES` are kept; `digests_dropped` counts those that found no room.
        """
        return self._digests.take()

    @property
    def digests_dropped(self) -> int:
        """Return the number of digest messages for which there was no room."""
        return self._digests.dropped

    def take_idle(self, now_ps: int) -> list[IdleEntry]:
        """Return the entries that have become idle by `now_ps`.

        An entry is reported once; then again only if it was hit (or modified) in between.
        """
        self.now_ps = max(self.now_ps, now_ps)
        return [
            IdleEntry(table.shape.table.name, replace(entry))
            for table in self._tables
            for entry in table.take_idle(now_ps)
        ]

    def read_idle_ps(self, table: str, entry: InstalledEntry) -> int:
        """Return for how long no packet has hit an entry of a table with timeouts, by `now_ps`."""
        installed = self._tables[table]
        if not installed.shape.table.timed:
            raise ConfigError(f"{self.name}: table has no idle timeouts, got {table!r}")
        return self.now_ps - installed.last_hit_ps(entry, self.now_ps)

    def read_register(self, name: str, index: int) -> int:
        """Return the value of a register's cell, unsigned.

        Raises:
            ConfigError: If there is no such cell.
        """
        words = self._externs.register(name, index)
        return sum(int(word) << 64 * i for i, word in enumerate(words))

    def read_registers(self, name: str) -> dict[int, int]:
        """Return the cells of a register that are not zero, by index."""
        words = self._externs.register_cells(name)
        return {
            index: sum(int(word) << 64 * i for i, word in enumerate(words[index]))
            for index in np.flatnonzero(words.any(axis=1)).tolist()
        }

    def register_words(self, name: str) -> Fields | Lanes:
        """Return a view of all of a register, (size, words), the least significant word first.

        Good until something is allocated in the store.
        """
        return self._externs.register_cells(name)

    def read_counter(self, name: str, index: int) -> Count:
        """Return the counts of an indirect counter."""
        packets, size = self._externs.counter(name, index)
        return Count(int(packets), int(size))

    def read_direct_counter(self, table: str, entry: InstalledEntry) -> Count:
        """Return the counts of an entry, which is found by its match and precedence.

        Packets that miss are not counted (as in BMv2), so the default entry never has any.
        """
        packets, size = self._tables.counted(table).counter(entry, self.now_ps)
        return Count(int(packets), int(size))

    def read_meter(self, name: str, index: int) -> MeterRates | None:
        """Return an indirect meter's rates; None if it has none and all packets are green."""
        return rates_of(self._externs.meter(name, index).tolist())

    def read_direct_meter(self, table: str, entry: InstalledEntry) -> MeterRates | None:
        """Return the rates of an entry's meter; None if it has none."""
        return rates_of(self._tables.metered(table).meter(entry, self.now_ps).tolist())

    @property
    def looped(self) -> int:
        """Packets dropped because they came round too often (`MOST_PASSES`)."""
        return self._get(LOOPED)

    def failed_assertions(self) -> dict[str, int]:
        """Return how many packets each `assert` or `assume` has dropped, by its source line."""
        return self._externs.failed_assertions()

    def forbidden(self) -> dict[str, int]:
        """Return how many packets were dropped that the program must not have, by reason."""
        looped = {f"the limit of {MOST_PASSES} passes": self.looped} if self.looped else {}
        return self.failed_assertions() | looped

    # Helpers.

    def _unsupported(self, what: str) -> ConfigError:
        return ConfigError(f"{self.name}: not supported yet, got {what}", Code.UNIMPLEMENTED)

    def check_port(self, port: int) -> None:
        """Raise ConfigError if the switch has no such port."""
        if port not in self._ports:
            raise ConfigError(f"{self.name}: ports are {name_ports(self._ports)}, got {port}")

    def _write_counter(self, update: CounterUpdate) -> None:
        _check_count(f"{self.name}: counter {update.counter!r}", update.packets, update.bytes)
        if update.index is not None:
            cell = self._externs.counter(update.counter, update.index)
        else:
            assert update.entry is not None
            cell = self._tables.counted(update.counter).counter(update.entry, self.now_ps)
        cell[:] = update.packets, update.bytes

    def _write_meter(self, update: MeterUpdate) -> None:
        check_rates(f"{self.name}: meter {update.meter!r}", update.rates)
        if update.index is not None:
            cell = self._externs.meter(update.meter, update.index)
        else:
            assert update.entry is not None
            cell = self._tables.metered(update.meter).meter(update.entry, self.now_ps)
        cell[:] = configure(update.rates)

    def _get(self, column: int) -> int:
        return int(self.store.arena.words[self.at + column])

    def _set(self, column: int, value: int) -> None:
        self.store.arena.words[self.at + column] = value


def _check_count(where: str, packets: int, size: int) -> None:
    if not (0 <= packets < 1 << 64 and 0 <= size < 1 << 64):
        raise ConfigError(f"{where}: 64 bits each, got {packets}, {size}")
