"""Carries out a test's statements on BMv2's `simple_switch_grpc`, to know what BMv2 makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ringleaf.errors import BackendError, ConfigError
from switches.bmv2 import BINARY, Bmv2, is_there
from switches.program import Program
from switches.shapes import Shape
from switches.stf.entries import EntryTranslator
from switches.stf.expectations import Output
from switches.stf.statements import AddEntry, Command, SendPacket, SetDefault, Statement
from switches.updates import Entry, TableUpdate

_TROUBLE = ("Invalid", "Error", "Unknown", "Bad")


class Bmv2Testbed:
    """A BMv2 that is started for `run`, and ended with it."""

    def __init__(self, path: Path, where: str) -> None:
        if not is_there():
            raise BackendError(f"{path}: BMv2 is not installed, got no {BINARY}")
        self._path = path
        self._where = where
        self._program = Program.load(path)
        self._shapes = {shape.table.name: shape for shape in self._program.module.shapes}
        self._entries = EntryTranslator(self._program)
        self._printed: list[str] = []

    def run(self, statements: Sequence[Statement]) -> list[Output]:
        """Carry out statements, in order; each packet has left when the next one comes.

        Raises:
            ConfigError: If one does not fit the program.
            BackendError: If BMv2 does not start, or ends.
        """
        outputs: list[Output] = []
        with Bmv2(self._path, None) as switch:
            for statement in statements:
                if isinstance(statement, SendPacket):
                    [out] = switch.process([(statement.port, statement.data)])
                    outputs += (Output(port, data, statement.line) for port, data in out)
                else:
                    line = self._line(statement)
                    if line:
                        self._take(statement, switch.command(line))
        return outputs

    def printed(self) -> list[str]:
        return self._printed

    def _take(self, statement: Statement, text: str) -> None:
        lines = [line.removeprefix("RuntimeCmd: ") for line in text.splitlines()]
        for line in lines:
            if line.startswith(_TROUBLE):
                raise ConfigError(f"{self._where}:{statement.line}: BMv2: {line}")
        self._printed += [line for line in lines if line.strip()]

    def _line(self, statement: Statement) -> str:
        """Return what `simple_switch_CLI` is asked, empty if nothing is."""
        where = f"{self._where}:{statement.line}"
        match statement:
            case AddEntry():
                return self._table_add(self._entries.add(where, statement))
            case SetDefault():
                update = self._entries.set_default(where, statement)
                assert update.entry is not None
                return f"table_set_default {update.table} {self._call(update.entry)}"
            case Command():
                return " ".join([statement.name, *statement.arguments])
        return ""

    def _table_add(self, update: TableUpdate) -> str:
        entry = update.entry
        assert entry is not None
        shape = self._shapes[update.table]
        action, _, arguments = self._call(entry).partition(" ")
        priority = str(-entry.precedence) if shape.prioritized else ""
        line = f"table_add {update.table} {action} {' '.join(_keys(shape, entry))} => {arguments}"
        return f"{line} {priority}".strip()

    def _call(self, entry: Entry) -> str:
        name = self._program.source.actions[entry.action].name
        return " ".join([name, *map(hex, entry.arguments)])


def _keys(shape: Shape, entry: Entry) -> Iterable[str]:
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
