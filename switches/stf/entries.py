"""`add` and `setdefault`, turned into updates of a program's tables."""

from __future__ import annotations

from ringleaf.errors import ConfigError
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.engine.updates import INSERT, MODIFY, InstalledEntry, TableUpdate
from ringleaf.switches.program import Program
from ringleaf.switches.source import ActionSource
from ringleaf.switches.stf.names import find_key, find_name
from ringleaf.switches.stf.statements import AddEntry, Arguments, SetDefault
from ringleaf.switches.stf.values import number, prefix, ternary

GREATEST_PRIORITY = 10_000
"""In BMv2 the least number wins, in STF the greatest: p4c's testbed subtracts STF's from this."""


class EntryTranslator:
    """Translates STF statements by a program's tables and actions."""

    def __init__(self, program: Program) -> None:
        self._actions = program.source.actions
        self._shapes = {shape.table.name: shape for shape in program.module.shapes}

    def add(self, where: str, statement: AddEntry) -> TableUpdate:
        """Return the update.

        Raises:
            ConfigError: If names or values do not fit the program.
        """
        shape = self._shape(where, statement.table)
        number, arguments = self._call(where, shape, statement.action, statement.arguments)
        match = _match(where, shape, statement.keys)
        entry = InstalledEntry(
            match,
            number,
            arguments,
            _precedence(where, shape, statement.priority),
            sum(mask.bit_count() for _, mask in match),
        )
        return TableUpdate(INSERT, shape.table.name, entry, is_default=False)

    def set_default(self, where: str, statement: SetDefault) -> TableUpdate:
        """Return the update that `setdefault` asks for."""
        shape = self._shape(where, statement.table)
        number, arguments = self._call(where, shape, statement.action, statement.arguments)
        return TableUpdate(
            MODIFY, shape.table.name, InstalledEntry((), number, arguments), is_default=True
        )

    def _shape(self, where: str, name: str) -> TableShape:
        return self._shapes[find_name(where, "table", name, self._shapes)]

    def _call(
        self, where: str, shape: TableShape, name: str, arguments: Arguments
    ) -> tuple[int, tuple[int, ...]]:
        """Return an action's number in the JSON (each table has its own) and its arguments."""
        numbers = {self._actions[number].name: number for number in shape.table.actions}
        action = self._actions[numbers[find_name(where, "action", name, numbers)]]
        return action.number, _arguments(where, action, dict(arguments))


def _arguments(where: str, action: ActionSource, texts: dict[str, str]) -> tuple[int, ...]:
    for name in texts:
        find_name(where, f"parameter of {action.name}", name, action.parameters)
    values = []
    for name, width in zip(action.parameters, action.widths, strict=True):
        if name not in texts:
            raise ConfigError(f"{where}: {action.name} needs {name!r}, got {', '.join(texts)!r}")
        values.append(number(f"{where}: {name}", texts[name], width))
    return tuple(values)


def _match(
    where: str, shape: TableShape, pairs: tuple[tuple[str, str], ...]
) -> tuple[tuple[int, int], ...]:
    keys = shape.table.keys
    names = [key.name for key in keys]
    texts = {find_key(where, name, names): text for name, text in pairs}
    return tuple(
        _pair(f"{where}: {key.name}", key.kind, texts.get(at), width)
        for at, (key, width) in enumerate(zip(keys, shape.widths, strict=True))
    )


def _pair(where: str, kind: str, text: str | None, width: int) -> tuple[int, int]:
    """Return (value, mask), or (low, high); without a text, the default of p4c's testbed."""
    full = (1 << width) - 1
    match kind:
        case "ternary":
            return ternary(where, text or "0x*", width)
        case "lpm":
            return prefix(where, text or "0/0", width)
        case "range" if text is None:
            return 0, full
        case "range":
            value = number(where, text or "0", width)
            return value, value
        case "optional" if text is None:
            return 0, 0
        case _:
            return number(where, text or "0", width), full


def _precedence(where: str, shape: TableShape, priority: int | None) -> int:
    if not shape.prioritized:
        return 0
    if priority is None:
        raise ConfigError(f"{where}: entry of {shape.table.name} needs a priority, got none")
    return priority - GREATEST_PRIORITY
