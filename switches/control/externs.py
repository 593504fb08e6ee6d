"""A switch's registers, indirect counters, meters and assertions, where its code keeps them.

Direct counters and meters, which belong to a table's entries, are in `installed.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ringleaf.core.arena import Arena, Fields, Lanes, Store
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError, choose
from ringleaf.switches.engine.meters import METER_WORDS
from ringleaf.switches.generate.state import LANE_STATE_AT, STATE_AT
from ringleaf.switches.program import Program


class Externs:
    """The externs of the switch whose block is `at`; errors begin with the switch's `name`."""

    def __init__(self, store: Store, at: int, program: Program, name: str) -> None:
        self._store = store
        self._at = at
        self._source = program.source
        self._state = program.module.state
        self._name = name
        self._views: dict[str, tuple[Arena, Fields | Lanes]] = {}  # of the arena of that time
        store.arena.words[at + STATE_AT] = store.allocate("fields", self._state.words)
        store.arena.words[at + LANE_STATE_AT] = store.allocate("lanes", self._state.lanes)

    def reset(self) -> None:
        """Set all of them to zero, but for meters' rates."""
        arena = self._store.arena
        start = self._start(STATE_AT)
        arena.fields[start : start + self._state.zeroed_words] = 0
        start = self._start(LANE_STATE_AT)
        arena.lanes[start : start + self._state.lanes] = 0

    def register(self, name: str, index: int) -> Fields | Lanes:
        """Return a view of a register's words, the least significant first."""
        registers = self._source.registers
        choose(self._name, "register", name, registers)
        self._check_index(f"register {name!r}", index, registers[name].size)
        cells = self._state.registers[name]
        arena = self._store.arena
        array, block = (arena.lanes, LANE_STATE_AT) if cells.in_lanes else (arena.fields, STATE_AT)
        at = self._start(block) + cells.start + index * cells.stride
        return array[at : at + cells.words]

    def register_cells(self, name: str) -> Fields | Lanes:
        """Return a view of all of a register's words, of shape (size, words)."""
        arena = self._store.arena
        if (kept := self._views.get(name)) is not None and kept[0] is arena:
            return kept[1]
        registers = self._source.registers
        choose(self._name, "register", name, registers)
        cells = self._state.registers[name]
        array, block = (arena.lanes, LANE_STATE_AT) if cells.in_lanes else (arena.fields, STATE_AT)
        first = self._start(block) + cells.start
        end = first + cells.stride * (registers[name].size - 1) + cells.words
        view: Fields | Lanes = np.ndarray(
            (registers[name].size, cells.words),
            array.dtype,
            array[first:end].data,
            strides=(cells.stride * array.itemsize, array.itemsize),
        )
        self._views[name] = arena, view
        return view

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set a cell of a register array.

        Raises:
            ConfigError: If there is no such cell, or it has too few bits for the value.
        """
        words = self.register(name, index)
        self._check_value(name, value)
        for i in range(words.size):
            words[i] = value >> 64 * i & (1 << 64) - 1

    def fill_register(self, name: str, value: int) -> None:
        """Write all cells of a register at once."""
        cells = self.register_cells(name)
        self._check_value(name, value)
        for i in range(cells.shape[1]):
            cells[:, i] = value >> 64 * i & (1 << 64) - 1

    def counter(self, name: str, index: int) -> Fields:
        """Return a view of an indirect counter: packets, bytes."""
        counters = self._source.counters
        choose(self._name, "counter", name, counters)
        self._check_index(f"counter {name!r}", index, counters[name].size)
        at = self._start(STATE_AT) + self._state.counters[name] + 2 * index
        return self._store.arena.fields[at : at + 2]

    def counter_cells(self, name: str) -> Fields:
        """Return a view of all of an indirect counter, of shape (size, 2)."""
        counters = self._source.counters
        choose(self._name, "counter", name, counters)
        return self._cells(self._state.counters[name], counters[name].size, 2)

    def meter_cells(self, name: str) -> Fields:
        """Return a view of all of an indirect meter, of shape (size, METER_WORDS)."""
        choose(self._name, "meter", name, self._state.meters)
        size = self._source.meters[name].size
        return self._cells(self._state.meters[name], size, METER_WORDS)

    def meter(self, name: str, index: int) -> Fields:
        """Return a view of an indirect meter's words (`meters.py`)."""
        meters = self._state.meters
        choose(self._name, "meter", name, meters)
        self._check_index(f"meter {name!r}", index, self._source.meters[name].size)
        at = self._start(STATE_AT) + meters[name] + METER_WORDS * index
        return self._store.arena.fields[at : at + METER_WORDS]

    def write_value_sets(self, images: Iterable[tuple[str, list[int]]]) -> None:
        """Write value sets' images, which lie among the registers."""
        for name, image in images:
            at = self._start(STATE_AT) + self._state.value_sets[name]
            self._store.arena.fields[at : at + len(image)] = image

    def failed_assertions(self) -> dict[str, int]:
        """Return how many packets each `assert` or `assume` has dropped, by its source line."""
        start = self._start(STATE_AT)
        counts = {
            label: int(self._store.arena.fields[start + at])
            for label, at in self._state.assertions.items()
        }
        return {label: count for label, count in counts.items() if count}

    def _cells(self, at: int, size: int, words: int) -> Fields:
        at += self._start(STATE_AT)
        cells: Fields = self._store.arena.fields[at : at + size * words].reshape(size, words)
        return cells

    def _check_value(self, name: str, value: int) -> None:
        width = self._source.registers[name].width
        if not 0 <= value < 1 << width:
            raise ConfigError(
                f"{self._name}: register {name!r} has {format_count(width, 'bit')}, got {value}"
            )

    def _start(self, column: int) -> int:
        return int(self._store.arena.words[self._at + column])

    def _check_index(self, what: str, index: int, size: int) -> None:
        if not 0 <= index < size:
            raise ConfigError(f"{self._name}: {what} has indices 0 to {size - 1}, got {index}")
