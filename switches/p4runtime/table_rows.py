"""Entries of one table as columns, in place of a P4Runtime message for each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ringleaf.core.arena import Fields, Words
from ringleaf.switches.engine.columns import MOST_BITS, EntryColumns
from ringleaf.switches.engine.updates import MODIFY, InstalledEntry, TableUpdate
from ringleaf.switches.p4runtime.matches import kind_of
from ringleaf.switches.p4runtime.schema import Schema, TableInfo

if TYPE_CHECKING:
    import finsy as fy

Call = tuple[str, tuple[str, ...]]
"""An action and its parameters, by name."""

Content = tuple[tuple[Any, ...], int, Call, tuple[int, ...]]
"""An entry's values to match, priority, action, and arguments."""


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Entries to insert into one table; they mean the same as `entities`, one after the other.

    Rows without keys are of a table that has none: each sets its default action.

    All columns are of type uint64, but for `action`, which is int64.

    Attributes:
        table: The table's name, as finsy takes it.
        match: By key: (entries,) values for exact keys; for others also the lengths of prefixes,
            or masks.
        calls: The actions that occur, with their parameters.
        action: (entries,) the place in `calls` of each entry's action.
        arguments: (entries, most) the arguments, in the order that `calls` has for the action.
        priority: (entries,) for tables with priorities.
    """

    table: str
    match: Mapping[str, tuple[Fields, ...]]
    calls: tuple[Call, ...]
    action: Words
    arguments: Fields
    priority: Words | None = None

    def __len__(self) -> int:
        return len(self.action)

    def entities(self) -> Iterator[fy.P4TableEntry]:
        """Yield the entries as finsy's entities, in order."""
        return (self.entity(content) for content in self.contents())

    def contents(self) -> Iterator[Content]:
        """Yield each entry's content, in order."""
        columns = [_plain(columns) for columns in self.match.values()]
        priorities = [0] * len(self) if self.priority is None else self.priority.tolist()
        return zip(
            zip(*columns, strict=True) if columns else [()] * len(self),
            priorities,
            [self.calls[number] for number in self.action.tolist()],
            map(tuple, self.arguments.tolist()),
            strict=True,
        )

    def entity(self, content: Content) -> fy.P4TableEntry:
        """Return one of the entries as finsy's entity."""
        import finsy as fy  # not before there is an entity to make: it takes a while

        values, priority, (name, parameters), arguments = content
        action = fy.P4TableAction(name, **dict(zip(parameters, arguments, strict=False)))
        if not self.match:
            return fy.P4TableEntry(self.table, action=action, is_default_action=True)
        return fy.P4TableEntry(
            self.table,
            match=fy.P4TableMatch(zip(self.match, values, strict=True)),
            priority=priority,
            action=action,
        )


def _plain(columns: tuple[Fields, ...]) -> list[Any]:
    """Return a key's values as finsy takes them: numbers, or pairs of numbers."""
    first, *rest = (column.tolist() for column in columns)
    return list(zip(first, *rest, strict=True)) if rest else first


Item = TableRows | Any
"""Rows, or one of finsy's entities."""


def entities_of(items: Iterable[Item]) -> Iterator[Any]:
    """Yield finsy's entities, also for rows."""
    for item in items:
        if isinstance(item, TableRows):
            yield from item.entities()
        else:
            yield item


class RowReader:
    """Turns rows into columns as tables keep them, by a program's P4Info.

    It gives up where single messages say better what is wrong, or where columns don't do.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._plans: dict[tuple[Any, ...], _Plan | None] = {}

    def read(self, rows: TableRows) -> tuple[str, EntryColumns] | None:
        """Return a table's full name, and its new entries; None if they must be written singly."""
        form = (rows.table, tuple((k, len(c)) for k, c in rows.match.items()), rows.calls)
        if form not in self._plans:
            self._plans[form] = self._plan(rows)
        plan = self._plans[form]
        if plan is None:
            return None
        columns = plan.columns(rows)
        return None if columns is None else (plan.table, columns)

    def read_default(self, rows: TableRows) -> TableUpdate | None:
        """Return the update of a default action that a row without keys stands for; None as above.

        A table whose default action is constant, or is a profile's, and parameters of many bits
        are for single messages.
        """
        table = _the_one(rows.table, self._schema.tables.values())
        if table is None or len(rows) != 1 or table.message.const_default_action_id:
            return None
        ((_, priority, (name, parameters), arguments),) = rows.contents()
        call = _plan_call(table, name, parameters, table.default_actions)
        if call is None or priority or table.profile:
            return None
        values = tuple(arguments[place] for place in call.places)
        if any(value >> width for value, width in zip(values, call.widths, strict=True)):
            return None
        return TableUpdate(MODIFY, table.name, InstalledEntry((), call.number, values), True)

    def _plan(self, rows: TableRows) -> _Plan | None:
        table = _the_one(rows.table, self._schema.tables.values())
        if table is None or table.profile or max(table.shape.widths, default=0) > MOST_BITS:
            return None
        keys = _plan_keys(table, rows.match)
        calls = [_plan_call(table, *call, table.entry_actions) for call in rows.calls]
        if not keys or None in calls:
            return None
        return _Plan(table.name, table.shape.prioritized, keys, [c for c in calls if c is not None])


@dataclass(frozen=True, slots=True)
class _Key:
    """A table's key: its name in rows, None if they leave it out; how it is matched, its bits."""

    name: str | None
    kind: str
    width: int


@dataclass(frozen=True, slots=True)
class _Call:
    """An action's number in the JSON; per parameter, its place in rows, and its bits."""

    number: int
    places: tuple[int, ...]
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The part of reading rows that is the same for all rows of one form."""

    table: str
    prioritized: bool
    keys: Sequence[_Key]
    calls: Sequence[_Call]

    def columns(self, rows: TableRows) -> EntryColumns | None:
        """Return the entries as the table keeps them; None if a value is not as it must be."""
        pairs = [_pair(key, rows) for key in self.keys]
        arguments = self._arguments(rows)
        precedence = self._precedence(rows)
        if arguments is None or precedence is None:
            return None
        known_pairs = [pair for pair in pairs if pair is not None]
        if len(known_pairs) < len(pairs):
            return None
        values, masks = (np.stack(columns, axis=1) for columns in zip(*known_pairs, strict=True))
        numbers = np.array([call.number for call in self.calls], np.int64)
        counts = {call.number: len(call.places) for call in self.calls}
        return EntryColumns(values, masks, numbers[rows.action], arguments, precedence, counts)

    def _arguments(self, rows: TableRows) -> Fields | None:
        """Return the arguments in the order of the program's parameters."""
        most = max((len(call.places) for call in self.calls), default=0)
        arguments = np.zeros((len(rows), most), np.uint64)
        for number, call in enumerate(self.calls):
            its_own = rows.action == number
            if not its_own.any():
                continue
            for column, (place, width) in enumerate(zip(call.places, call.widths, strict=True)):
                values = rows.arguments[its_own, place]
                if not _fits(values, width):
                    return None
                arguments[its_own, column] = values
        return arguments

    def _precedence(self, rows: TableRows) -> Words | None:
        priorities = rows.priority
        if priorities is None:
            priorities = np.zeros(len(rows), np.int64)
        if self.prioritized:
            return priorities if ((priorities >= 1) & (priorities < 1 << 31)).all() else None
        return None if priorities.any() else priorities


def _the_one(name: str, tables: Iterable[TableInfo]) -> TableInfo | None:
    """Return the table of this name or alias; None if it is not that of one alone."""
    named = [each for each in tables if name in _names(each.message)]
    return named[0] if len(named) == 1 else None


def _names(message: Any) -> tuple[str, str]:
    return message.preamble.name, message.preamble.alias


def _plan_keys(table: TableInfo, match: Mapping[str, tuple[Fields, ...]]) -> list[_Key] | None:
    """Return the table's keys in order; None if rows must name them in another way.

    Rows name a key as P4Info does, or by what is behind its last dot.
    """
    fields = table.message.match_fields
    names = [field.name for field in fields]
    ends = [name.rpartition(".")[2] for name in names]
    for place, end in enumerate(ends):
        if names[place] not in match and ends.count(end) == 1:
            names[place] = end
    if not match.keys() <= set(names):
        return None
    keys = []
    for field, width, its_name in zip(fields, table.shape.widths, names, strict=True):
        kind, name = kind_of(field), its_name if its_name in match else None
        if kind not in ("exact", "lpm", "ternary") or (name is None and kind == "exact"):
            return None
        if name is not None and len(match[name]) != (1 if kind == "exact" else 2):
            return None
        keys.append(_Key(name, kind, width))
    return keys


def _plan_call(
    table: TableInfo, name: str, parameters: Sequence[str], allowed: Collection[int]
) -> _Call | None:
    """Return one of the allowed actions by its name or alias, with parameters in this order."""
    named = [at for at, action in table.actions.items() if name in _names(action)]
    if len(named) != 1 or table.actions[named[0]].preamble.id not in allowed:
        return None
    params = table.actions[named[0]].params
    widths = tuple(param.bitwidth for param in params)
    if {param.name for param in params} != set(parameters) or max(widths, default=0) > MOST_BITS:
        return None
    return _Call(named[0], tuple(parameters.index(param.name) for param in params), widths)


def _pair(key: _Key, rows: TableRows) -> tuple[Fields, Fields] | None:
    """Return the values and masks of one key; None if they are not in canonical form."""
    full = np.uint64((1 << key.width) - 1)
    if key.name is None:
        return np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.uint64)
    if key.kind == "exact":
        (values,) = rows.match[key.name]
        return (values, np.full(len(rows), full)) if _fits(values, key.width) else None
    values, masks = rows.match[key.name]
    if key.kind == "lpm":
        if (masks > key.width).any():
            return None
        masks = _prefix_masks(key.width)[masks.astype(np.int64)]
    if not _fits(masks, key.width) or (values & ~masks).any():
        return None
    return values, masks


@cache
def _prefix_masks(width: int) -> Fields:
    """Return the masks of all lengths of prefixes, from 0 to `width`."""
    full = (1 << width) - 1
    return np.array([full >> n ^ full for n in range(width + 1)], np.uint64)


def _fits(values: Fields, width: int) -> bool:
    return width >= MOST_BITS or not (values >> np.uint64(width)).any()
