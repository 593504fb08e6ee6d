"""Carries out a test's statements on the embedded engine."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Protocol

from ringleaf.core.units import PS_PER_US
from ringleaf.errors import ConfigError, choose
from ringleaf.switches.engine.layout import LAST_PORT
from ringleaf.switches.engine.updates import DELETE, Count, TableUpdate
from ringleaf.switches.program import Program
from ringleaf.switches.stf.commands import CommandLine, whole
from ringleaf.switches.stf.entries import EntryTranslator
from ringleaf.switches.stf.expectations import Output
from ringleaf.switches.stf.statements import (
    AddEntry,
    CheckCounter,
    Command,
    RemoveAll,
    SendPacket,
    SetDefault,
    Statement,
)
from ringleaf.switches.switch import Switch

START_PS = 1_000_000 * PS_PER_US
AFTER_CONTROL_PS = 1_000_000 * PS_PER_US  # p4c's testbed sleeps a second after a command
BETWEEN_PACKETS_PS = 100 * PS_PER_US

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class CheckError(ConfigError):
    """A `check_counter` that does not hold."""


class TestSwitch(Protocol):
    """A switch that tests run on."""

    def run(self, statements: Sequence[Statement]) -> list[Output]:
        """Carry out statements; return the packets that came out, in order per port."""

    def printed(self) -> list[str]:
        """Return the lines that the statements' reads have printed."""


class EngineTestbed:
    """A switch of the embedded engine, with ports from 0 and a clock of its own."""

    __test__ = False  # pytest: this is no test

    def __init__(self, program: Program, where: str) -> None:
        self._switch = Switch.alone(program, LAST_PORT, program.name, first_port=0)
        self._where = where
        self._entries = EntryTranslator(program)
        self._commands = CommandLine(self._switch)
        self._added: list[TableUpdate] = []
        self._handles: dict[str, TableUpdate] = {}
        self._now_ps = START_PS
        self._printed: list[str] = []

    def run(self, statements: Sequence[Statement]) -> list[Output]:
        """Carry out statements, in order.

        Raises:
            ConfigError: If a statement does not fit the program, or a counter's check fails.
        """
        return [output for statement in statements for output in self._carry_out(statement)]

    def printed(self) -> list[str]:
        """Return the lines that commands have printed so far."""
        return self._printed

    def _carry_out(self, statement: Statement) -> list[Output]:
        where = f"{self._where}:{statement.line}"
        match statement:
            case SendPacket():
                return self._send(statement)
            case AddEntry():
                update = self._entries.add(where, statement)
                self._apply(where, update)
                self._added.append(update)
                self._handles[statement.handle] = update
            case SetDefault():
                self._apply(where, self._entries.set_default(where, statement))
            case RemoveAll():
                self._apply(where, *(_undone(update) for update in self._added))
                self._added.clear()
            case Command():
                self._printed += self._commands.run(where, statement)
                self._now_ps += AFTER_CONTROL_PS
            case CheckCounter():
                check_count(where, statement, self._count(where, statement))
        return []

    def _send(self, packet: SendPacket) -> list[Output]:
        out = self._switch.process(packet.port, packet.data, self._now_ps)
        self._now_ps += BETWEEN_PACKETS_PS
        return [Output(port, data, packet.line) for port, data in out]

    def _apply(self, where: str, *updates: TableUpdate) -> None:
        try:
            self._switch.apply(updates)
        except ConfigError as exc:
            raise ConfigError(f"{where}: {exc}") from exc
        self._now_ps += AFTER_CONTROL_PS

    def _count(self, where: str, check: CheckCounter) -> Count:
        """Return the value of a counter, or of an entry's direct counter."""
        if not check.index[:1].isdigit():
            handles = {handle: update for handle, update in self._handles.items() if handle}
            update = handles[choose(where, "entry", check.index, handles)]
            assert update.entry is not None
            return self._switch.read_direct_counter(update.table, update.entry)
        counter = self._commands.counter(where, check.counter)
        return self._switch.read_counter(counter, whole(where, check.index))


def check_count(where: str, check: CheckCounter, count: Count) -> None:
    """Raise CheckError if a counter does not hold what the check demands."""
    got = count.packets if check.unit == "packets" else count.bytes
    if not _COMPARE[check.comparison](got, check.value):
        raise CheckError(
            f"{where}: counter {check.counter}({check.index}) must have"
            f" {check.unit} {check.comparison} {check.value}, got {got}"
        )


def _undone(update: TableUpdate) -> TableUpdate:
    return TableUpdate(DELETE, update.table, update.entry, is_default=False)
