"""A program's P4Info by ids, joined with the same objects in its BMv2 JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from finsy.proto import p4i

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.p4runtime.data import Types
from ringleaf.switches.source import ProgramSource


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One table; action numbers are those of the JSON, where each table has its own."""

    message: Any  # p4.config.v1.Table
    shape: TableShape
    numbers: dict[int, int]  # action id -> number
    actions: dict[int, Any]  # number -> p4.config.v1.Action
    counter: str  # direct counter's name, or ""
    meter: str  # direct meter's name, or ""

    @property
    def id(self) -> int:
        """Return the table's P4Info id."""
        return int(self.message.preamble.id)

    @property
    def name(self) -> str:
        """Return the table's full name in P4Info."""
        return str(self.message.preamble.name)

    @property
    def profile(self) -> int:
        """The id of its action profile, or 0."""
        return int(self.message.implementation_id)

    @property
    def expires(self) -> bool:
        """Return whether controllers are told of idle entries (`idle_timeout_behavior`)."""
        return bool(self.message.idle_timeout_behavior)

    @property
    def is_constant(self) -> bool:
        """Return whether controllers change no entries: those of a program stay, as in BMv2.

        P4Info has `is_const_table` for `const entries` alone.
        """
        return bool(self.message.is_const_table or self.shape.table.entries)

    @property
    def entry_actions(self) -> set[int]:
        """The ids of the actions that an entry may have, and not only the default."""
        return self._actions_but(p4i.ActionRef.DEFAULT_ONLY)

    @property
    def default_actions(self) -> set[int]:
        """The ids of the actions that the default entry may have."""
        return self._actions_but(p4i.ActionRef.TABLE_ONLY)

    def _actions_but(self, scope: int) -> set[int]:
        refs = [ref for ref in self.message.action_refs if ref.scope != scope]
        return {ref.id for ref in refs} & self.numbers.keys()

    @property
    def const_precedences(self) -> list[int]:
        """The precedences of the program's constant entries, the lowest first.

        Their P4Runtime priorities are 1, 2, ... in this order (section 9.1.4).
        """
        return sorted({-entry.priority for entry in self.shape.table.entries})

    def priority(self, precedence: int) -> int:
        """Return an entry's priority on the wire."""
        if not self.shape.prioritized:
            return 0
        return precedence if precedence > 0 else self.const_precedences.index(precedence) + 1


class Schema:
    """The objects of a program by id; look-ups raise ConfigError for unknown ids."""

    def __init__(
        self, p4info: Any, source: ProgramSource, shapes: Iterable[TableShape], where: str
    ) -> None:
        self.p4info = p4info
        self._where = where
        self._source = source
        self._shapes = {shape.table.name: shape for shape in shapes}
        self.actions = _by_id(p4info.actions)
        self.profiles = _by_id(p4info.action_profiles)
        self.counters = _by_id(p4info.counters)
        self.meters = _by_id(p4info.meters)
        self.registers = _by_id(p4info.registers)
        self.value_sets = _by_id(p4info.value_sets)
        self.digests = _by_id(p4info.digests)
        self.digest_ids = {item.preamble.name: i for i, item in self.digests.items()}
        self.types = Types(p4info.type_info)
        self._resources = _by_id([*p4info.direct_counters, *p4info.direct_meters])

    @cached_property
    def tables(self) -> dict[int, TableInfo]:
        """Tables that the pipeline applies, by id."""
        return {
            table.preamble.id: self._table(table)
            for table in self.p4info.tables
            if table.preamble.name in self._shapes
        }

    @cached_property
    def tables_by_name(self) -> dict[str, TableInfo]:
        """Return the tables by their full names."""
        return {info.name: info for info in self.tables.values()}

    def check(self) -> None:
        """Refuse P4Info that is of another program than the JSON.

        Raises:
            ConfigError: Naming the difference.
        """
        named = {table.preamble.name for table in self.p4info.tables}
        if named and self._shapes and not named & self._shapes.keys():
            raise ConfigError(
                f"{self._where}: P4Info is of another program, got tables {sorted(named)}"
            )
        try:
            assert self.tables is not None
        except KeyError as exc:
            raise ConfigError(f"{self._where}: P4Info lacks an id it refers to, got {exc}") from exc

    def table(self, number: int) -> TableInfo:
        """Return the table of an id.

        Raises:
            ConfigError: If there is none, or the program never applies it.
        """
        if number not in self.tables:
            for table in self.p4info.tables:
                if table.preamble.id == number:
                    raise ConfigError(
                        f"{self._source.path}: table is never applied, got {table.preamble.name!r}"
                    )
        return self._find("table", self.tables, number)

    def profile(self, number: int) -> Any:
        """Return the p4.config.v1.ActionProfile of an id."""
        return self._find("action profile", self.profiles, number)

    def counter(self, number: int) -> Any:
        """Return the p4.config.v1.Counter of an id."""
        return self._find("counter", self.counters, number)

    def meter(self, number: int) -> Any:
        """Return the p4.config.v1.Meter of an id."""
        return self._find("meter", self.meters, number)

    def register(self, number: int) -> Any:
        """Return the p4.config.v1.Register of an id."""
        return self._find("register", self.registers, number)

    def value_set(self, number: int) -> Any:
        """Return the p4.config.v1.ValueSet of an id."""
        return self._find("value set", self.value_sets, number)

    def digest(self, number: int) -> Any:
        """Return the p4.config.v1.Digest of an id."""
        return self._find("digest", self.digests, number)

    def resource(self, name: str) -> Any:
        """Return a direct counter or direct meter."""
        return next(r for r in self._resources.values() if r.preamble.name == name)

    def tables_of(self, profile: Any) -> list[TableInfo]:
        """Return the tables that use an action profile and that the program applies."""
        return [self.tables[number] for number in profile.table_ids if number in self.tables]

    def controller_header(self, name: str) -> Any:
        """Return the header `packet_in` or `packet_out`; if there is none, one without fields."""
        for header in self.p4info.controller_packet_metadata:
            if header.preamble.name == name:
                return header
        return p4i.ControllerPacketMetadata()

    def _find(self, what: str, known: dict[int, Any], number: int) -> Any:
        if number not in known:
            raise ConfigError(f"{self._where}: no {what} has this id, got {number}")
        return known[number]

    def _table(self, message: Any) -> TableInfo:
        shape = self._shapes[message.preamble.name]
        by_name = {self._source.actions[n].name: n for n in shape.table.actions}
        refs = [self.actions[ref.id] for ref in message.action_refs]
        known = [action for action in refs if action.preamble.name in by_name]
        resources = [self._resources[i] for i in message.direct_resource_ids]
        if len(message.match_fields) != len(shape.table.keys):
            raise ConfigError(
                f"{self._where}: P4Info and JSON differ in the keys of table {shape.table.name!r},"
                f" got {len(message.match_fields)} and {len(shape.table.keys)}"
            )
        return TableInfo(
            message,
            shape,
            {action.preamble.id: by_name[action.preamble.name] for action in known},
            {by_name[action.preamble.name]: action for action in known},
            _name_of(resources, p4i.DirectCounter),
            _name_of(resources, p4i.DirectMeter),
        )


def check_index(where: str, index: Any, size: int) -> int:
    """Return the number that an `Index` holds.

    Raises:
        ConfigError: OUT_OF_RANGE beyond the array, INVALID_ARGUMENT below zero (section 9.3).
    """
    if index.index < 0:
        raise ConfigError(f"{where}: index must not be negative, got {index.index}")
    if index.index >= size:
        raise ConfigError(
            f"{where}: has indices 0 to {size - 1}, got {index.index}", Code.OUT_OF_RANGE
        )
    return int(index.index)


def _by_id(messages: Iterable[Any]) -> dict[int, Any]:
    return {message.preamble.id: message for message in messages}


def _name_of(resources: list[Any], kind: Any) -> str:
    return next((r.preamble.name for r in resources if isinstance(r, kind)), "")
