"""P4Runtime entities, as finsy writes them, turned into what a switch does with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from finsy import P4CloneSessionEntry, P4MulticastGroupEntry, P4Schema, P4TableEntry
from finsy.p4schema import P4UpdateType

from ringleaf.errors import ConfigError
from switches.shapes import Shape
from switches.source import Source
from switches.tables import prefix_mask
from switches.updates import (
    DELETE,
    INSERT,
    MODIFY,
    CloneUpdate,
    Entry,
    GroupUpdate,
    Match,
    TableUpdate,
    Update,
)

_VERBS = {
    P4UpdateType.UNSPECIFIED: INSERT,  # a bare entity
    P4UpdateType.INSERT: INSERT,
    P4UpdateType.MODIFY: MODIFY,
    P4UpdateType.DELETE: DELETE,
}


class Translator:
    """Knows a program's P4Info."""

    def __init__(self, p4info: Path, source: Source, shapes: Iterable[Shape]) -> None:
        if not p4info.exists():
            raise ConfigError(f"{p4info}: no such file, got no P4Info; compile with p4c-bm2-ss")
        self._p4info = p4info
        self._schema = P4Schema(p4info)
        self._source = source
        self._shapes = {shape.table.name: shape for shape in shapes}

    def translate(self, entity: Any) -> Update:
        """Return what to do.

        Raises:
            ConfigError: If the entity does not fit the program, or is of an unsupported kind.
        """
        if not isinstance(entity, P4TableEntry | P4MulticastGroupEntry | P4CloneSessionEntry):
            raise ConfigError(
                f"{self._p4info}: entity is not supported, got {type(entity).__name__}"
            )
        verb = _VERBS[entity._update_type]
        try:
            message = entity.encode(self._schema)
        except (ValueError, KeyError, TypeError, OverflowError) as exc:
            raise ConfigError(f"{self._p4info}: {exc}, got {entity!r}") from exc
        if isinstance(entity, P4TableEntry):
            return self._table_update(verb, message.table_entry)
        replication = message.packet_replication_engine_entry
        if isinstance(entity, P4MulticastGroupEntry):
            return self._group_update(verb, replication.multicast_group_entry)
        return self._clone_update(verb, replication.clone_session_entry)

    def _table_update(self, verb: str, message: Any) -> TableUpdate:
        name = self._schema.tables[message.table_id].name
        if name not in self._shapes:
            raise ConfigError(f"{self._source.path}: table is never applied, got {name!r}")
        shape = self._shapes[name]
        action, arguments = self._action(shape, message)
        if message.is_default_action:
            reset = verb == DELETE or not message.HasField("action")
            entry = None if reset else Entry((), action, arguments)
            return TableUpdate(verb, name, entry, True)
        match = self._match(shape, message)
        return TableUpdate(
            verb,
            name,
            Entry(match, action, arguments, self._priority(shape, message), _prefix(match)),
            False,
        )

    def _action(self, shape: Shape, message: Any) -> tuple[int, tuple[int, ...]]:
        """Return an action's number in the JSON, where each table has its own, and arguments."""
        if not message.HasField("action"):
            return shape.table.actions[0], ()
        action = message.action.action
        name = self._schema.actions[action.action_id].name
        values = {param.param_id: int.from_bytes(param.value, "big") for param in action.params}
        number = next(n for n in shape.table.actions if self._source.actions[n].name == name)
        return number, tuple(values[i] for i in sorted(values))

    def _priority(self, shape: Shape, message: Any) -> int:
        if shape.prioritized and message.priority < 1:
            raise ConfigError(
                f"{shape.table.name}: entry needs a priority of at least 1, got {message.priority}"
            )
        return int(message.priority) if shape.prioritized else 0

    def _match(self, shape: Shape, message: Any) -> Match:
        given = {field.field_id: field for field in message.match}
        fields = self._schema.tables[message.table_id].match_fields
        pairs = []
        for number, field in enumerate(fields):
            kind, width = shape.table.keys[number].kind, shape.widths[number]
            if field.id in given:
                pairs.append(_pair(given[field.id], width))
            elif kind == "exact":
                raise ConfigError(f"{shape.table.name}: exact key is missing, got no {field.name}")
            else:
                pairs.append((0, (1 << width) - 1 if kind == "range" else 0))
        return tuple(pairs)

    def _group_update(self, verb: str, message: Any) -> GroupUpdate:
        group = message.multicast_group_id
        if not 0 < group < 1 << 16:
            raise ConfigError(f"multicast group: must be in [1, 65535], got {group}")
        members = tuple((_port(replica), replica.instance) for replica in message.replicas)
        return GroupUpdate(verb, group, members)

    def _clone_update(self, verb: str, message: Any) -> CloneUpdate:
        session = message.session_id
        if verb == DELETE:
            return CloneUpdate(verb, session, ())
        if len(message.replicas) != 1:
            raise ConfigError(
                f"clone session {session}: must have one replica, got {len(message.replicas)}"
            )
        if message.packet_length_bytes:
            raise ConfigError(
                f"clone session {session}: truncation is not supported,"
                f" got {message.packet_length_bytes} bytes"
            )
        return CloneUpdate(verb, session, ((_port(message.replicas[0]), 0),))


def _pair(field: Any, width: int) -> tuple[int, int]:
    """Return (value, mask), or (low, high), of a P4Runtime FieldMatch."""
    full = (1 << width) - 1
    kind = field.WhichOneof("field_match_type")
    match kind:
        case "exact" | "optional":
            return _number(getattr(field, kind).value), full
        case "lpm":
            mask = prefix_mask(width, field.lpm.prefix_len)
            return _number(field.lpm.value) & mask, mask
        case "ternary":
            mask = _number(field.ternary.mask)
            return _number(field.ternary.value) & mask, mask
        case _:
            return _number(field.range.low), _number(field.range.high)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _port(replica: Any) -> int:
    return _number(replica.port) if replica.port else int(replica.egress_port)


def _prefix(match: Match) -> int:
    return sum(mask.bit_count() for _, mask in match)
