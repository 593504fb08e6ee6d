"""The two switches that are compared, and the state that each of them shows."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Store
from ringleaf.core.packets import OUTBOX_ROWS, make_pool
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import BackendError, ConfigError
from ringleaf.switches.bmv2.commands import CommandWriter
from ringleaf.switches.bmv2.process import Bmv2
from ringleaf.switches.engine.layout import LAST_PORT, RANDOM_AT
from ringleaf.switches.engine.updates import INSERT, TableUpdate, Update
from ringleaf.switches.fuzz.packets import Packet
from ringleaf.switches.generate.observing import OUTSIDE, ObservedWords, ReachedPoint
from ringleaf.switches.generate.state import LANE_STATE_AT, STATE_AT
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch
from ringleaf.switches.walk.views import joined

LATEST_US = 1 << 42  # so that picoseconds fit 64 bits, packets' waits included
PATIENCE_S = 5.0
CELLS = 64  # of a register or counter array that are compared
REGISTER_BITS = 63  # the widest that Thrift tells
_PROMPT = "RuntimeCmd: "
_NUMBERS = re.compile(r"\((\d+) bytes, (\d+) packets\)")

Snapshot = list[npt.NDArray[Any]]

State = dict[str, object]
"""The values of registers and counters, by label."""


class StateCell(NamedTuple):
    """A part of a switch's state that both switches can be asked for."""

    label: str
    command: str
    kind: str  # register, counter or direct counter
    name: str
    at: int


def cells_of(
    program: Program, updates: Sequence[Update], timed: Collection[str] = ()
) -> list[StateCell]:
    """Return the cells of a program's state that are compared: no registers that are `timed`."""
    source = program.source
    cells = []
    for register in source.registers.values():
        if register.width <= REGISTER_BITS and register.name not in timed:
            for index in range(min(register.size, CELLS)):
                label = f"register {register.name}[{index}]"
                command = f"register_read {register.name} {index}"
                cells.append(StateCell(label, command, "register", register.name, index))
    for counter in source.counters.values():
        for index in range(min(counter.size, CELLS)):
            label = f"counter {counter.name}[{index}]"
            command = f"counter_read {counter.name} {index}"
            cells.append(StateCell(label, command, "counter", counter.name, index))
    for name, table in source.direct_counters.items():
        for index in range(_entries_of(program, table, updates)):
            label = f"direct counter {name} of entry {index} of {table}"
            cells.append(StateCell(label, f"counter_read {name} {index}", "direct", table, index))
    return cells


def _entries_of(program: Program, table: str, updates: Sequence[Update]) -> int:
    shapes = {shape.table.name: shape.table for shape in program.module.shapes}
    if table not in shapes:  # it always does its only action
        return 0
    added = sum(
        isinstance(update, TableUpdate)
        and update.table == table
        and update.verb == INSERT
        and not update.is_default
        for update in updates
    )
    return len(shapes[table].entries) + added


class PacketClock(NamedTuple):
    """The time of a first packet, from packet to packet, and from ingress to egress."""

    start_us: int = 0
    step_us: int = 0
    wait_us: int = 0


class EngineSide:
    """A fresh embedded switch with some updates; its clock stands still unless told otherwise."""

    def __init__(
        self, program: Program, updates: Sequence[Update], clock: PacketClock | None = None
    ) -> None:
        clock = clock or PacketClock()
        self._now_us, self._step_us = clock.start_us, clock.step_us
        self._store = store = Store()
        make_pool(
            store,
            size=OUTBOX_ROWS + 8,
            head_bytes=program.head_bytes,
            field_count=program.field_count,
            lane_count=program.lane_count,
        )
        self.switch = Switch(program, store, LAST_PORT, name=program.name, first_port=0)
        self.switch.wait_ps = clock.wait_us * PS_PER_US
        self.accepted = [update for update in updates if self._takes(update)]

    def process(self, packet: Packet) -> list[Packet]:
        """Return what a packet leads to, in order of ports."""
        now_ps = self._now_us * PS_PER_US
        self._now_us = (self._now_us + self._step_us) % LATEST_US
        return sorted(self.switch.process(*packet, now_ps))

    @property
    def endless(self) -> int:
        """The number of packets so far that would loop forever in BMv2, or end it."""
        return sum(self.switch.forbidden().values())

    @property
    def chance(self) -> int:
        """The state of the random numbers; it changes when a packet draws one."""
        return int(self._store.arena.fields[self._words[RANDOM_AT]])

    def stays_inside(self, packet: Packet) -> bool:
        """Process a packet of an observed program unless it accesses an array out of its range."""
        before, outside = self.snapshot(), self.outside
        self.process(packet)
        if self.outside == outside:
            return True
        self.restore(before)
        return False

    def state(self, cells: Sequence[StateCell]) -> State:
        """Return the values of cells, by label."""
        return {cell.label: self._read(cell) for cell in cells}

    def memory(self) -> bytes:
        """Return all registers and counters as bytes, without an observer's words."""
        words, module, arena = self._words, self.switch.program.module, self._store.arena
        at, lanes_at = words[STATE_AT], words[LANE_STATE_AT]
        size = module.observer.at if module.observer else module.state.words
        state = arena.fields[at : at + size].tobytes()
        return state + arena.lanes[lanes_at : lanes_at + module.state.lanes].tobytes()

    def snapshot(self) -> Snapshot:
        """Return the whole state of the switch between two packets, when it holds no packet."""
        return [part.copy() for part in self._arrays()]

    def restore(self, parts: Snapshot) -> None:
        """Go back to a snapshot."""
        for part, own in zip(parts, self._arrays(), strict=True):
            own[: part.size] = part

    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        arena = self._store.arena
        return arena.words, arena.fields, arena.lanes, arena.own

    def counts(self) -> dict[ReachedPoint, int]:
        """Return how often packets have reached each point of an observed program."""
        state = self._state
        return {point: int(state[word]) for point, word in self._observer.points.items()}

    def reached(self) -> set[ReachedPoint]:
        """Return the points that packets have reached of an observed program."""
        return {point for point, count in self.counts().items() if count}

    @property
    def outside(self) -> int:
        """The number of accesses of arrays out of their range; only for an observed program."""
        return sum(count for point, count in self.counts().items() if point.kind == OUTSIDE)

    def asked(self, table: str) -> tuple[int, ...]:
        """Return the keys that a table of an observed program was last looked up by."""
        state, shapes = self._state, self.switch.program.module.shapes
        shape = next(one for one in shapes if one.table.name == table)
        return tuple(
            joined(state[start : start + -(-width // 64)])
            for start, width in zip(self._observer.keys[table], shape.widths, strict=True)
        )

    @property
    def _observer(self) -> ObservedWords:
        observer = self.switch.program.module.observer
        assert observer is not None, "the program is not observed"
        return observer

    @property
    def _state(self) -> npt.NDArray[np.uint64]:
        return self._store.arena.fields[self._words[STATE_AT] :]

    @property
    def _words(self) -> npt.NDArray[np.int64]:
        return self._store.arena.words[self.switch.at :]

    def _read(self, cell: StateCell) -> object:
        switch = self.switch
        if cell.kind == "register":
            return switch.read_register(cell.name, cell.at)
        if cell.kind == "counter":
            return switch.read_counter(cell.name, cell.at)
        entries = switch.entries(cell.name)
        return switch.read_direct_counter(cell.name, entries[cell.at])

    def _takes(self, update: Update) -> bool:
        """Apply an update; return False if it doesn't fit (a second entry for a key)."""
        try:
            self.switch.apply([update])
        except ConfigError:
            return False
        return True


class Bmv2Side:
    """A BMv2 with the same updates; use it as a context manager."""

    def __init__(self, program: Program, updates: Sequence[Update]) -> None:
        self._program = program
        self._updates = updates
        self._bmv2 = Bmv2(program.source.path, None)

    def __enter__(self) -> Self:
        writer = CommandWriter(self._program)
        commands = [(line, update) for update in self._updates for line in writer.lines(update)]
        with ExitStack() as stack:
            stack.enter_context(self._bmv2)
            answers = self._ask([line for line, _ in commands])
            for (line, update), answer in zip(commands, answers, strict=True):
                if answer.startswith(("Invalid", "Error", "Unknown", "Bad")):
                    raise RefusedError(update, f"{line}: {answer}")
            stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bmv2.__exit__(kind, error, traceback)

    def process(self, packet: Packet) -> list[Packet]:
        """Return what a packet leads to, in order of ports.

        Raises:
            BackendError: If BMv2 has ended, or has not finished with the packet in time.
        """
        [out] = self._bmv2.process([packet], timeout_s=PATIENCE_S)
        return [(port, data) for port, data in out if port <= LAST_PORT]

    def state(self, cells: Sequence[StateCell]) -> State:
        """Return the values of cells, by label, which BMv2's command line tells."""
        answers = self._ask([cell.command for cell in cells])
        return {cell.label: _value(cell, text) for cell, text in zip(cells, answers, strict=True)}

    def _ask(self, lines: Sequence[str]) -> list[str]:
        """Return the output of each line of its command line."""
        if not lines:
            return []
        answers = self._bmv2.command(*lines).split(_PROMPT)[1 : len(lines) + 1]
        if len(answers) < len(lines):
            raise BackendError(f"simple_switch_CLI: broke off at {lines[len(answers) - 1]!r}")
        return [answer.strip() for answer in answers]


class RefusedError(Exception):
    """An update that BMv2 refuses, though the engine takes it."""

    def __init__(self, update: Update, what: str) -> None:
        super().__init__(what)
        self.update = update


def _value(cell: StateCell, text: str) -> object:
    if cell.kind == "register":
        return int(text.rpartition("=")[2])
    counted = _NUMBERS.search(text)
    assert counted is not None, text
    return int(counted[2]), int(counted[1])
