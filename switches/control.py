"""What a control plane can do to one switch, and ask of it.

`ControlPlane` is the half of a `Switch` that P4Runtime, STF and Python share; it answers in the
same types that it takes (`updates.py`), so that what one switch says can be applied to another.
Errors are `ConfigError`, with the code that P4Runtime has for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from ringleaf.arena import Fields, Lanes, Store
from ringleaf.errors import Code, ConfigError, choose
from switches.digests import Digests
from switches.generate.endings import digest_words
from switches.generate.state import LANE_STATE_AT, STATE_AT, TABLES_AT
from switches.installed import InstalledTable
from switches.layout import LOOPED, PORT_COUNT
from switches.meters import METER_WORDS, check_rates, configure, rates_of
from switches.p4runtime.entities import Entities
from switches.profiles import Profile
from switches.program import Program
from switches.replicas import Replicas
from switches.shapes import Shape
from switches.tables import TableEntries
from switches.updates import (
    INSERT,
    MODIFY,
    CloneUpdate,
    Count,
    CounterUpdate,
    DigestMessage,
    DigestUpdate,
    Entry,
    GroupUpdate,
    IdleEntry,
    Match,
    Member,
    MemberGroup,
    MemberGroupUpdate,
    MemberUpdate,
    MeterUpdate,
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
        self.now_ps = 0  # the latest that `process` or `take_idle` was told: new entries' time
        self.at = store.allocate("words", TABLES_AT + len(module.shapes))
        self._profiles = self._make_profiles()
        self._tables = {
            shape.table.name: self._make_table(number, shape)
            for number, shape in enumerate(module.shapes)
        }
        self._digests = Digests(store, self.at, name, digest_words(program.source))
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
        for table in self._tables.values():
            if table.is_stale:
                table.commit(self.now_ps)

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
            case MemberUpdate() | MemberGroupUpdate():
                self._update_profile(update)
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
        words = self._cell(name, index)
        width = self.program.source.registers[name].width
        if not 0 <= value < 1 << width:
            raise ConfigError(f"{self.name}: register {name!r} has {width} bits, got {value}")
        for i in range(words.size):
            words[i] = value >> 64 * i & (1 << 64) - 1

    def reset(self) -> None:
        """Set registers, counters and failed assertions to zero; all else stays."""
        module, arena = self.program.module, self.store.arena
        start = self._get(STATE_AT)
        arena.fields[start : start + module.state.zeroed_words] = 0
        start = self._get(LANE_STATE_AT)
        arena.lanes[start : start + module.state.lanes] = 0
        for table in self._tables.values():
            table.clear_counters()

    # Reading.

    def entries(self, table: str) -> list[Entry]:
        """Return a table's entries, constant ones too, without the default, oldest first."""
        return [replace(entry) for entry in self._table(table).entries.entries]

    def default_entry(self, table: str) -> Entry:
        """Return what a miss does, whether it was set or is the program's."""
        return replace(self._table(table).entries.default)

    def members(self, profile: str) -> list[MemberUpdate]:
        """Return an action profile's members, as the inserts that would make them."""
        return list(self._profile(profile).members.values())

    def member_groups(self, profile: str) -> list[MemberGroupUpdate]:
        """Return an action profile's groups, as the inserts that would make them."""
        return list(self._profile(profile).groups.values())

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
        return self._digests.dropped

    def take_idle(self, now_ps: int) -> list[IdleEntry]:
        """Return the entries that have become idle by `now_ps`.

        An entry is reported once; then again only if it was hit (or modified) in between.
        """
        self.now_ps = max(self.now_ps, now_ps)
        return [
            IdleEntry(name, replace(entry))
            for name, table in self._tables.items()
            for entry in table.take_idle(now_ps)
        ]

    def read_idle_ps(self, table: str, entry: Entry) -> int:
        """Return for how long no packet has hit an entry of a table with timeouts, by `now_ps`."""
        found = self._table(table)
        if not found.shape.table.timed:
            raise ConfigError(f"{self.name}: table has no idle timeouts, got {table!r}")
        return self.now_ps - found.last_hit_ps(entry, self.now_ps)

    def read_register(self, name: str, index: int) -> int:
        words = self._cell(name, index)
        return sum(int(word) << 64 * i for i, word in enumerate(words))

    def read_counter(self, name: str, index: int) -> Count:
        """Return what an indirect counter has counted."""
        at = self._counter_at(name, index)
        packets, size = self.store.arena.fields[at : at + 2]
        return Count(int(packets), int(size))

    def read_direct_counter(self, table: str, entry: Entry) -> Count:
        """Return what an entry (found by its match and precedence) has counted.

        Packets that miss are not counted (as in BMv2), so the default entry never has any.
        """
        packets, size = self._direct(table, "counter").counter(entry, self.now_ps)
        return Count(int(packets), int(size))

    def read_meter(self, name: str, index: int) -> Rates | None:
        """Return an indirect meter's rates; None if it has none and all packets are green."""
        at = self._meter_at(name, index)
        return rates_of(self.store.arena.fields[at : at + METER_WORDS].tolist())

    def read_direct_meter(self, table: str, entry: Entry) -> Rates | None:
        """Return the rates of an entry's meter; None if it has none."""
        return rates_of(self._direct(table, "meter").meter(entry, self.now_ps).tolist())

    @property
    def looped(self) -> int:
        """Packets dropped because they came round too often (`MOST_PASSES`)."""
        return self._get(LOOPED)

    def failed_assertions(self) -> dict[str, int]:
        """Return how many packets each `assert` or `assume` has dropped, by its source line."""
        start = self._get(STATE_AT)
        sites = self.program.module.state.assertions
        return {
            label: int(self.store.arena.fields[start + at])
            for label, at in sites.items()
            if self.store.arena.fields[start + at]
        }

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

    def _make_profiles(self) -> dict[str, Profile]:
        source = self.program.source
        tables = [*source.ingress.tables, *source.egress.tables]
        return {
            name: Profile(
                profile,
                {
                    number: source.actions[number]
                    for table in tables
                    if table.profile == name
                    for number in table.actions
                },
                self.name,
                self._is_used,
            )
            for name, profile in source.profiles.items()
        }

    def _make_table(self, number: int, shape: Shape) -> InstalledTable:
        profile = self._profiles.get(shape.table.profile)
        entries = TableEntries(shape, self.program.source.actions, self.name, profile)
        return InstalledTable(self.store, self.at + TABLES_AT + number, shape, entries)

    def _is_used(self, profile: str, reference: Member | MemberGroup) -> bool:
        return any(table.entries.refers_to(reference) for table in self._tables_of(profile))

    def _tables_of(self, profile: str) -> Iterator[InstalledTable]:
        return (table for table in self._tables.values() if table.shape.table.profile == profile)

    def _profile(self, name: str) -> Profile:
        return self._profiles[choose(self.name, "action profile", name, self._profiles)]

    def _table(self, name: str) -> InstalledTable:
        return self._tables[choose(self.name, "table", name, self._tables)]

    def _direct(self, name: str, what: str) -> InstalledTable:
        """Return a table that has direct counters, or meters."""
        table = self._table(name)
        if not (table.shape.table.counted if what == "counter" else table.shape.table.meter):
            raise ConfigError(f"{self.name}: table has no direct {what}s, got {name!r}")
        return table

    def _update_table(self, update: TableUpdate) -> None:
        table = self._table(update.table)
        if update.is_default:
            table.entries.set_default(update.entry)
        else:
            assert update.entry is not None
            if update.verb == INSERT:
                table.entries.insert(update.entry)
            elif update.verb == MODIFY:
                table.entries.modify(update.entry)
                table.touch(update.entry, self.now_ps)
            else:
                table.entries.delete(update.entry)
        table.is_stale = True

    def _update_profile(self, update: MemberUpdate | MemberGroupUpdate) -> None:
        profile = self._profile(update.profile)
        if isinstance(update, MemberUpdate):
            profile.update_member(update)
        else:
            profile.update_group(update)
        for table in self._tables_of(update.profile):
            table.is_stale = True

    def _write_counter(self, update: CounterUpdate) -> None:
        where = f"{self.name}: counter {update.counter!r}"
        if not (0 <= update.packets < 1 << 64 and 0 <= update.bytes < 1 << 64):
            raise ConfigError(f"{where}: 64 bits each, got {update.packets}, {update.bytes}")
        if update.index is not None:
            at = self._counter_at(update.counter, update.index)
            self.store.arena.fields[at : at + 2] = update.packets, update.bytes
            return
        assert update.entry is not None
        table = self._direct(self._counted_table(update.counter), "counter")
        table.counter(update.entry, self.now_ps)[:] = update.packets, update.bytes

    def _write_meter(self, update: MeterUpdate) -> None:
        check_rates(f"{self.name}: meter {update.meter!r}", update.rates)
        words = configure(update.rates)
        if update.index is not None:
            at = self._meter_at(update.meter, update.index)
            self.store.arena.fields[at : at + METER_WORDS] = words
            return
        assert update.entry is not None
        meters = self.program.source.meters
        name = update.meter
        if name in meters:
            name = meters[name].table
        self._direct(name, "meter").meter(update.entry, self.now_ps)[:] = words

    def _counted_table(self, name: str) -> str:
        """Return the table of a direct counter; its own name may be given, too."""
        return self.program.source.direct_counters.get(name, name)

    def _counter_at(self, name: str, index: int) -> int:
        counters = self.program.source.counters
        choose(self.name, "counter", name, counters)
        self._check_index(f"counter {name!r}", index, counters[name].size)
        return self._get(STATE_AT) + self.program.module.state.counters[name] + 2 * index

    def _meter_at(self, name: str, index: int) -> int:
        meters = self.program.module.state.meters
        choose(self.name, "meter", name, meters)
        self._check_index(f"meter {name!r}", index, self.program.source.meters[name].size)
        return self._get(STATE_AT) + meters[name] + METER_WORDS * index

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
