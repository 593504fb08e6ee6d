"""Carries out a test's statements on BMv2's `simple_switch_grpc`, to see BMv2's own outcome."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ringleaf.errors import BackendError, ConfigError
from ringleaf.switches.bmv2.binaries import BINARY, is_there, need_v1model
from ringleaf.switches.bmv2.process import Bmv2
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.engine.updates import Count, InstalledEntry, TableUpdate
from ringleaf.switches.program import Program
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
from ringleaf.switches.stf.testbed import check_count

_SMALL_TALK = ("Control utility", "Obtaining", "Done", "RuntimeCmd:")
_TROUBLE = ("Invalid", "Error", "Unknown", "Bad")


class Bmv2Testbed:
    """A BMv2 that `run` starts, and ends again."""

    def __init__(self, path: Path, where: str) -> None:
        if not is_there():
            raise BackendError(f"{path}: BMv2 is not installed, got no {BINARY}")
        self._path = path
        self._where = where
        self._program = Program.load(path)
        need_v1model(self._program.source, where)
        self._shapes = {shape.table.name: shape for shape in self._program.module.shapes}
        self._entries = EntryTranslator(self._program)
        self._added: list[tuple[str, str]] = []  # table and BMv2's handle of each entry
        self._handles: dict[str, str] = {}
        self._printed: list[str] = []

    def run(self, statements: Sequence[Statement]) -> list[Output]:
        """Carry out statements, in order; each packet has left when the next one comes.

        Raises:
            ConfigError: If a statement does not fit the program, or a counter's check fails.
            BackendError: If BMv2 does not start, or ends.
        """
        outputs: list[Output] = []
        with Bmv2(self._path, None) as switch:
            for statement in statements:
                if isinstance(statement, SendPacket):
                    [out] = switch.process([(statement.port, statement.data)])
                    outputs += (Output(port, data, statement.line) for port, data in out)
                else:
                    self._carry_out(switch, statement)
        return outputs

    def printed(self) -> list[str]:
        """Return the lines that commands have printed so far."""
        return self._printed

    def _carry_out(self, switch: Bmv2, statement: Statement) -> None:
        where = f"{self._where}:{statement.line}"
        match statement:
            case AddEntry():
                update = self._entries.add(where, statement)
                [number] = _parsed(r"handle (\d+)", self._ask(switch, where, self._add(update)))
                self._added.append((update.table, number))
                self._handles[statement.handle] = number
            case SetDefault():
                update = self._entries.set_default(where, statement)
                assert update.entry is not None
                call = self._call(update.entry)
                self._ask(switch, where, f"table_set_default {update.table} {call}")
            case RemoveAll():
                for table, number in self._added:
                    self._ask(switch, where, f"table_delete {table} {number}")
                self._added.clear()
            case Command():
                line = " ".join([statement.name, *statement.arguments])
                self._printed += self._ask(switch, where, line)
            case CheckCounter():
                index = self._handles.get(statement.index, statement.index)
                lines = self._ask(switch, where, f"counter_read {statement.counter} {index}")
                size, packets = _parsed(r"\((\d+) bytes, (\d+) packets\)", lines)
                check_count(where, statement, Count(int(packets), int(size)))

    def _ask(self, switch: Bmv2, where: str, line: str) -> list[str]:
        """Return the lines that a command prints."""
        text = switch.command(line)
        lines = [one.removeprefix("RuntimeCmd: ").strip() for one in text.splitlines()]
        for one in lines:
            if one.startswith(_TROUBLE):
                raise ConfigError(f"{where}: BMv2: {one}")
        return [one for one in lines if one and not one.startswith(_SMALL_TALK)]

    def _add(self, update: TableUpdate) -> str:
        entry = update.entry
        assert entry is not None
        shape = self._shapes[update.table]
        action, _, arguments = self._call(entry).partition(" ")
        priority = str(-entry.precedence) if shape.prioritized else ""
        line = f"table_add {update.table} {action} {' '.join(_keys(shape, entry))} => {arguments}"
        return f"{line} {priority}".strip()

    def _call(self, entry: InstalledEntry) -> str:
        name = self._program.source.actions[entry.action].name
        return " ".join([name, *map(hex, entry.arguments)])


def _parsed(pattern: str, lines: Iterable[str]) -> tuple[str, ...]:
    match = re.search(pattern, "\n".join(lines))
    if match is None:
        raise BackendError(f"BMv2 must say {pattern!r}, got {list(lines)!r}")
    return match.groups()


def _keys(shape: TableShape, entry: InstalledEntry) -> Iterable[str]:
    for key, (value, mask) in zip(shape.table.keys, entry.match, strict=True):
        match key.kind:
            case "lpm":
                yield f"{value:#x}/{mask.bit_count()}"
            case "ternary" | "optional":
                yield f"{value:#x}&&&{mask:#x}"
            case "range":
                yield f"{value:#x}->{mask:#x}"
            case _:
                yield hex(value)
