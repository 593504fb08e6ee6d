"""Registers, counters, meters and value sets that commands write.

    register_write REGISTER INDEX VALUE; counter_write COUNTER INDEX PACKETS BYTES
    meter_set_rates METER INDEX RATE:BURST RATE:BURST; meter_array_set_rates METER ...
    pvs_add SET VALUE

The index of a table's own counter or meter is the number of an entry. BMv2's rates are in bytes or
packets per microsecond, P4Runtime's per second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from finsy import (
    P4CounterData,
    P4CounterEntry,
    P4MeterConfig,
    P4MeterEntry,
    P4RegisterEntry,
    P4Schema,
    P4ValueSetEntry,
)
from finsy.p4entity import P4ValueSetMember
from finsy.p4schema import P4BitsType

from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.entries import Entries
from ringleaf.experiments.programs.matching import of_name
from ringleaf.experiments.programs.words import check_encodes, check_form, numbers
from ringleaf.switches.engine.updates import PER_MICROSECOND
from ringleaf.switches.stf.commands import read_rates

_MOST_OFF = 0.01  # that a rate may be from what it is said to be


class LastWrites:
    """What is written last counts: P4Runtime's entities, by what they write."""

    def __init__(self, schema: P4Schema, entries: Entries) -> None:
        self._schema = schema
        self._entries = entries  # which have the counters and meters of tables
        self._written: dict[tuple[str, str, int], Any] = {}  # kind, name, index
        self._members: dict[str, list[int]] = {}  # of value sets

    def commands(self) -> dict[str, Callable[[str, Sequence[str]], None]]:
        """Return the handlers of commands by name; each takes the line's place and its words."""
        return {
            "register_write": self._write_register,
            "register_reset": self._reset_register,
            "counter_write": self._write_counter,
            "counter_reset": self._reset_counter,
            "meter_set_rates": self._set_rates,
            "meter_array_set_rates": self._set_all_rates,
            "pvs_add": self._add_to_set,
            "pvs_remove": self._remove_from_set,
            "pvs_clear": self._clear_set,
        }

    def _write_register(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 3, "register_write REGISTER INDEX VALUE")
        register = self._find(where, "register", words[0], self._schema.registers)
        index, value = numbers(where, words[1:], 2)
        _check_index(where, register, index)
        value = _as_kept(register, value)
        self._keep(where, "register", P4RegisterEntry(register.name, index=index, data=value))

    def _reset_register(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 1, "register_reset REGISTER")
        register = self._find(where, "register", words[0], self._schema.registers)
        self._forget("register", register.name)

    def _keep(self, where: str, kind: str, entry: Any) -> None:
        """Keep what is written into a cell, which must be a value of the array."""
        check_encodes(where, entry, self._schema)
        name = getattr(entry, f"{kind}_id")
        self._written[kind, name, entry.index] = entry

    def _forget(self, *array: str) -> None:
        """Forget what was written into an array of this kind and name."""
        self._written = {key: each for key, each in self._written.items() if key[:2] != array}

    def _write_counter(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 4, "counter_write COUNTER INDEX PACKETS BYTES")
        counter = self._counter(where, words[0])
        index, packets, size = numbers(where, words[1:], 3)
        if min(packets, size) < 0:
            raise ConfigError(f"{where}: counters are never negative, got {words[2:4]}")
        data = P4CounterData(packet_count=packets, byte_count=size)
        if counter in self._schema.direct_counters:
            table = self._table_of(counter)
            self._entries.set_direct(where, table, words[1], counter_data=data)
            return
        _check_index(where, counter, index)
        self._keep(where, "counter", P4CounterEntry(counter.name, index=index, data=data))

    def _reset_counter(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 1, "counter_reset COUNTER")
        counter = self._counter(where, words[0])
        if counter in self._schema.direct_counters:
            self._entries.set_direct(where, self._table_of(counter), None, counter_data=None)
        else:
            self._forget("counter", counter.name)

    def _counter(self, where: str, name: str) -> Any:
        known = (*self._schema.counters, *self._schema.direct_counters)
        return self._find(where, "counter", name, known)

    def _set_rates(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 4, "meter_set_rates METER INDEX RATE:BURST RATE:BURST")
        meter = self._meter(where, words[0])
        (index,) = numbers(where, words[1:2], 1)
        config = _config(where, words[2:])
        if meter in self._schema.direct_meters:
            self._entries.set_rates(where, self._table_of(meter), words[1], config)
            return
        _check_index(where, meter, index)
        self._keep(where, "meter", P4MeterEntry(meter.name, index=index, config=config))

    def _set_all_rates(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 3, "meter_array_set_rates METER RATE:BURST RATE:BURST")
        meter = self._meter(where, words[0])
        config = _config(where, words[1:])
        if meter in self._schema.direct_meters:
            self._entries.set_rates(where, self._table_of(meter), None, config)
        else:
            for index in range(meter.size):
                self._keep(where, "meter", P4MeterEntry(meter.name, index=index, config=config))

    def _meter(self, where: str, name: str) -> Any:
        known = (*self._schema.meters, *self._schema.direct_meters)
        return self._find(where, "meter", name, known)

    def _table_of(self, direct: Any) -> str:
        """Return the name of the table that has a counter or meter."""
        tables = self._schema.tables
        [table] = (each for each in tables if direct in (each.direct_counter, each.direct_meter))
        return str(table.name)

    def _members_of(self, where: str, words: Sequence[str]) -> list[int]:
        return self._members.setdefault(self._value_set(where, words), [])

    def _value_set(self, where: str, words: Sequence[str]) -> str:
        check_form(where, words, 1, "a command with the name of a value set")
        value_set = self._find(where, "value set", words[0], self._schema.value_sets)
        if len(list(value_set.match)) != 1:
            raise ConfigError(f"{where}: value set must have keys of one part, got {words[0]!r}")
        return str(value_set.name)

    def _add_to_set(self, where: str, words: Sequence[str]) -> None:
        members = self._members_of(where, words)
        (value,) = numbers(where, words[1:], 1)
        name = self._value_set(where, words)
        entry = P4ValueSetEntry(name, members=[P4ValueSetMember(value)])
        check_encodes(where, entry, self._schema)
        if value not in members:
            members.append(value)

    def _remove_from_set(self, where: str, words: Sequence[str]) -> None:
        members = self._members_of(where, words)
        (value,) = numbers(where, words[1:], 1)
        if value not in members:
            raise ConfigError(f"{where}: value set must have the value, got {words[1]!r}")
        members.remove(value)

    def _clear_set(self, where: str, words: Sequence[str]) -> None:
        self._members_of(where, words).clear()

    def _find(self, where: str, what: str, name: str, known: Any) -> Any:
        objects = list(known)
        if not objects:
            raise ConfigError(f"{where}: the program has no {what}s, got {name!r}")
        return of_name(where, what, name, objects)

    def entities(self) -> list[Any]:
        """Return finsy's entities that write the last value of each cell and set."""
        sets = [
            P4ValueSetEntry(name, members=[P4ValueSetMember(value) for value in members])
            for name, members in self._members.items()
        ]
        return [*self._written.values(), *sets]


def _config(where: str, words: Sequence[str]) -> P4MeterConfig:
    rates = read_rates(where, words)
    if min(rates.committed, rates.committed_burst, rates.peak, rates.peak_burst) < 0:
        raise ConfigError(f"{where}: rates and bursts are never negative, got {' '.join(words)!r}")
    if rates.committed > rates.peak:
        raise ConfigError(
            f"{where}: the first rate must not exceed the second, got {' '.join(words)!r}"
        )
    if max(rates.committed, rates.committed_burst, rates.peak, rates.peak_burst) >= 1 << 63:
        raise ConfigError(f"{where}: rates and bursts must be below 2^63, got {' '.join(words)!r}")
    return P4MeterConfig(
        cir=_per_second(where, rates.committed),
        cburst=rates.committed_burst,
        pir=_per_second(where, rates.peak),
        pburst=rates.peak_burst,
    )


def _per_second(where: str, rate: float) -> int:
    """Return a rate as P4Runtime has it: a whole number, which must be within a hundredth of it."""
    near = round(rate)
    if abs(near - rate) > rate * _MOST_OFF:
        raise ConfigError(
            f"{where}: rates must be whole numbers per second, as P4Runtime has no others, got "
            f"{rate:.6g} per second; use {max(near, 1) / PER_MICROSECOND:.6f}"
        )
    return near


def _as_kept(register: Any, value: int) -> int:
    """Return a value as a register's type has it whose bits BMv2 keeps: -1 or 255 of 8 bits."""
    cell = register.type_spec
    if not isinstance(cell, P4BitsType) or value >> cell.bitwidth > 0:
        return value  # finsy says what is wrong with it
    bits = value % (1 << cell.bitwidth)
    is_negative = cell.signed and bits >> cell.bitwidth - 1
    return int(bits - (1 << cell.bitwidth) if is_negative else bits)


def _check_index(where: str, array: Any, index: int) -> None:
    if not 0 <= index < array.size:
        raise ConfigError(f"{where}: {array.name} has indices 0 to {array.size - 1}, got {index}")
