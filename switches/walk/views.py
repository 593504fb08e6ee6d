"""A running handler's fields and a switch's state, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ringleaf.switches.engine.meters import METER_WORDS, meter_word
from ringleaf.switches.engine.shapes import COUNTER_WORDS
from ringleaf.switches.generate.state import LANE_STATE_AT, STATE_AT
from ringleaf.switches.generate.storage import ENGINE, POSITION, VARBITS, varbits
from ringleaf.switches.source import STACKS, VALID, FieldSource, HeaderSource
from ringleaf.switches.switch import Switch
from ringleaf.switches.walk.names import Names
from ringleaf.switches.walk.steps import StepWrite

Locals = Mapping[str, Any]
Values = dict[FieldSource, int]


class Views:
    """The variables that one switch's handlers work on, as fields by name."""

    def __init__(self, switch: Switch, names: Names) -> None:
        self._switch = switch
        self._names = names
        self._storage = switch.program.module.storage
        self._fields = [field for field in self._storage.known() if _is_shown(field)]

    def width(self, field: FieldSource) -> int:
        """Return the bits of a field; a header's validity has one."""
        return 1 if field.name == VALID else self._storage.shape(field).width

    def size(self, header: HeaderSource, variables: Locals) -> int:
        """Return a header's size in bytes."""
        if header.varbit is None:
            return header.size_bytes
        (name,) = self._storage.names(varbits(header.name))
        return header.fixed_bytes + int(variables.get(name, 0)) // 8

    def values(self, variables: Locals) -> Values:
        """Return the fields that the handler has, as unsigned numbers of their width."""
        values = {}
        for field in self._fields:
            lane = self._storage.lane(field)
            if lane is not None:
                if "lanes" in variables:
                    values[field] = int(variables["lanes"][lane.index])
                continue
            words = [variables.get(name) for name in self._storage.names(field)]
            if None not in words:
                values[field] = joined(words) & ((1 << self.width(field)) - 1)
        return values

    def changes(self, before: Values, after: Values) -> Iterator[FieldSource]:
        """Return the fields whose value differs; a field that was not there before was 0."""
        return (field for field, value in after.items() if before.get(field, 0) != value)

    def write(self, field: FieldSource, before: Values, after: Values) -> StepWrite:
        """Return a field's change as a write."""
        name = self._names.field(field)
        return StepWrite(name, before.get(field, 0), after[field], self.width(field))


class StateView:
    """The switch's registers and counters, and the changes of them."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._old = {array: self._now(array).copy() for array in ("fields", "lanes")}

    def changes(self) -> Iterator[StepWrite]:
        """Yield the changes since the last call."""
        for array, old in self._old.items():
            now = self._now(array)
            for offset in np.flatnonzero(now != old).tolist():
                yield self._write(array, offset, int(old[offset]), int(now[offset]))
            self._old[array] = now.copy()

    def _now(self, array: str) -> Any:
        state = self._switch.program.module.state
        block, size = (STATE_AT, state.words) if array == "fields" else (LANE_STATE_AT, state.lanes)
        arena = self._switch.store.arena
        at = int(arena.words[self._switch.at + block])
        return getattr(arena, array)[at : at + size]

    def _write(self, array: str, offset: int, old: int, new: int) -> StepWrite:
        program = self._switch.program
        for name, register in program.source.registers.items():
            cells = program.module.state.registers[name]
            index, rest = divmod(offset - cells.start, cells.stride)
            there = cells.in_lanes == (array == "lanes") and 0 <= index < register.size
            if there and rest < cells.words:
                word = f", bits from {64 * rest}" if cells.words > 1 else ""
                width = min(64, register.width - 64 * rest)
                return StepWrite(f"{_short(name)}[{index}]{word}", old, new, width)
        return StepWrite(self._count_at(offset), old, new, 64)

    def _count_at(self, offset: int) -> str:
        """Return what a word of the block counts that is no register's."""
        source, state = self._switch.program.source, self._switch.program.module.state
        for name, at in state.counters.items():
            index, column = divmod(offset - at, COUNTER_WORDS)
            if 0 <= index < source.counters[name].size:
                return f"{_short(name)}[{index}].{('packets', 'bytes')[column]}"
        for name, at in state.meters.items():
            index, word = divmod(offset - at, METER_WORDS)
            if 0 <= index < source.meters[name].size:
                return f"{_short(name)}[{index}].{meter_word(word)}"
        for label, at in state.assertions.items():
            if at == offset:
                return f"packets dropped by {label}"
        return f"state[{offset}]"


def joined(words: Any) -> int:
    """Return the number that words make, the lowest first."""
    return sum((int(word) & (1 << 64) - 1) << 64 * i for i, word in enumerate(words))


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _is_shown(field: FieldSource) -> bool:
    hidden = field.header in (ENGINE, STACKS) or field.name in (POSITION, VARBITS)
    return not hidden
