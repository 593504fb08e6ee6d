"""The P4 tutorials' `sX-runtime.json`: a switch's entries by name, as JSON.

    {"table_entries": [{"table": "MyIngress.ipv4_lpm", "match": {"hdr.ipv4.dst": ["10.0.1.1", 32]},
                        "action_name": "MyIngress.forward", "action_params": {"port": 1}}],
     "multicast_group_entries": [{"multicast_group_id": 1,
                                  "replicas": [{"egress_port": 1, "instance": 1}]}]}

Source: p4lang/tutorials, `utils/p4runtime_lib/simple_controller.py`. The names of the program that
such files have as well (`p4info`, `bmv2_json`) are not followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from finsy import P4CloneSessionEntry, P4MulticastGroupEntry, P4Schema, P4TableEntry

from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.programs.matching import RANKED, of_name, place_in, table_entry
from ringleaf.experiments.programs.replicas import PortedEntities
from ringleaf.experiments.programs.words import check_encodes
from ringleaf.topologies.files.located import read_json

LISTS = ("table_entries", "multicast_group_entries", "clone_session_entries")
_ABOUT = ("target", "p4info", "bmv2_json")
_NAMES = {
    LISTS[0]: ("table", "match", "action_name", "action_params", "priority", "default_action"),
    LISTS[1]: ("multicast_group_id", "replicas"),
    LISTS[2]: ("clone_session_id", "replicas", "packet_length_bytes"),
}
_OF_REPLICAS = ("egress_port", "instance")
_REMARKS = ("_", "comment", "note")
"""How names begin whose values are for people."""


def read(text: str, where: str, schema: P4Schema) -> PortedEntities:
    """Return the entities of such a file, as finsy's objects.

    Raises:
        ConfigError: If it is not JSON of that form, or does not fit the program.
    """
    document = read_json(text, where)
    if not isinstance(document, dict):
        raise ConfigError(f"{where}: must be an object with {LISTS[0]!r}, got {document!r:.80}")
    _check_names(where, document, (*LISTS, *_ABOUT))
    readers = dict(zip(LISTS, (_entry, _group, _session), strict=True))
    entities = PortedEntities()
    ports: dict[str, Sequence[int]] = {}
    places: dict[tuple[object, ...], str] = {}
    for name in (LISTS[1], LISTS[2], LISTS[0]):
        rows = document.get(name) or []
        if not isinstance(rows, list):
            raise ConfigError(f"{where}: {name} must be a list, got {rows!r:.80}")
        for number, row in enumerate(rows):
            here = f"{where}: {name}[{number}]"
            if not isinstance(row, dict):
                raise ConfigError(f"{here}: must be an object, got {row!r:.80}")
            _check_names(here, row, _NAMES[name])
            try:
                entity = readers[name](here, row, schema)
            except (KeyError, TypeError, ValueError) as exc:
                raise ConfigError(f"{here}: {type(exc).__name__}: {exc}, got {row!r:.200}") from exc
            check_encodes(here, entity, schema)
            _check_new(here, name, entity, schema, places)
            entities.append(entity)
            if name == LISTS[1]:
                ports[here] = [port for port, _ in entity.replicas]
    entities.ports = ports
    return entities


def _check_names(where: str, mapping: Mapping[str, Any], known: Sequence[str]) -> None:
    """Check that an object has no names but those known, and remarks."""
    for name in mapping:
        if not name.startswith(_REMARKS):
            choose(where, "name", name, known)


def _check_new(
    where: str, kind: str, entity: Any, schema: P4Schema, places: dict[tuple[object, ...], str]
) -> None:
    """Check that nothing before it is the same entry, group or session; note its place."""
    if kind == LISTS[0]:
        if entity.is_default_action:
            return
        place = (kind, entity.table_id, *place_in(schema, entity))
    else:
        number = entity.multicast_group_id if kind == LISTS[1] else entity.session_id
        place = (kind, number)
    if (other := places.setdefault(place, where)) != where:
        raise ConfigError(f"{where}: must be there once, got the same as {other}; leave out one")


def _entry(where: str, row: Mapping[str, Any], schema: P4Schema) -> P4TableEntry:
    is_default = row.get("default_action", False)
    if isinstance(is_default, str) and is_default.lower() in ("true", "false"):
        is_default = is_default.lower() == "true"
    if type(is_default) is not bool:
        raise ConfigError(f"{where}: default_action must be true or false, got {is_default!r:.80}")
    keys = priority = None
    if not is_default:
        match = row.get("match") or {}
        if not isinstance(match, dict):
            raise ConfigError(f"{where}: match must be an object, got {match!r:.80}")
        keys = {name: _key(value) for name, value in match.items()}
        priority = _priority(where, row, schema)
    return table_entry(
        where,
        schema,
        row["table"],
        action=row["action_name"],
        arguments=dict(row.get("action_params") or {}),
        keys=keys,
        priority=priority,
    )


def _priority(where: str, row: Mapping[str, Any], schema: P4Schema) -> int:
    """Return the priority of an entry, which those have whose tables' keys want one."""
    table = of_name(where, "table", row["table"], schema.tables)
    fields = list(table.match_fields)
    if not fields:
        raise ConfigError(
            f"{where}: entries need keys, got table {table.name!r}, which has none; use "
            "default_action"
        )
    priority = 0 if row.get("priority") is None else _whole(where, "priority", row["priority"])
    if any(field.match_type in RANKED for field in fields):
        if priority < 1:
            raise ConfigError(
                f"{where}: an entry of table {table.name!r} needs a priority of at least 1, of "
                f"which the highest wins, got {row.get('priority')!r}"
            )
    elif priority:
        raise ConfigError(
            f"{where}: table {table.name!r} has no priorities, got {priority}; leave it out"
        )
    return priority


def _key(value: Any) -> Any:
    """Return a key's value: a pair is a prefix and its length, a value and mask, or a range."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return tuple(value) if isinstance(value, list) else value


def _group(where: str, row: Mapping[str, Any], schema: P4Schema) -> P4MulticastGroupEntry:
    group = _whole(where, "multicast_group_id", row["multicast_group_id"])
    return P4MulticastGroupEntry(group, replicas=_replicas(where, row))


def _session(where: str, row: Mapping[str, Any], schema: P4Schema) -> P4CloneSessionEntry:
    return P4CloneSessionEntry(
        _whole(where, "clone_session_id", row["clone_session_id"]),
        replicas=_replicas(where, row),
        packet_length_bytes=_whole(where, "packet_length_bytes", row.get("packet_length_bytes", 0)),
    )


def _replicas(where: str, row: Mapping[str, Any]) -> list[tuple[int, int]]:
    replicas = []
    for each in row["replicas"]:
        _check_names(where, each, _OF_REPLICAS)
        port, instance = each["egress_port"], each.get("instance", 0)
        replicas.append((_whole(where, "egress_port", port), _whole(where, "instance", instance)))
    return replicas


def _whole(where: str, name: str, value: Any) -> int:
    if type(value) is not int:
        raise ConfigError(f"{where}: {name} must be a whole number, got {value!r:.60}")
    return value
