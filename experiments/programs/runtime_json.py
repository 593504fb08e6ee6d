"""The P4 tutorials' `sX-runtime.json`: a switch's entries by name, as JSON.

    {"table_entries": [{"table": "MyIngress.ipv4_lpm", "match": {"hdr.ipv4.dst": ["10.0.1.1", 32]},
                        "action_name": "MyIngress.forward", "action_params": {"port": 1}}],
     "multicast_group_entries": [{"multicast_group_id": 1,
                                  "replicas": [{"egress_port": 1, "instance": 1}]}]}

Source: p4lang/tutorials, `utils/p4runtime_lib/simple_controller.py`. The names of the program that
such files have as well (`p4info`, `bmv2_json`) are not followed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from finsy import P4CloneSessionEntry, P4MulticastGroupEntry, P4Schema, P4TableEntry

from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.programs.matching import table_entry

LISTS = ("table_entries", "multicast_group_entries", "clone_session_entries")
_ABOUT = ("target", "p4info", "bmv2_json")


def read(text: str, where: str, schema: P4Schema) -> Sequence[Any]:
    """Return the entities of such a file, as finsy's objects.

    Raises:
        ConfigError: If it is not JSON of that form, or does not fit the program.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{where}: not JSON, got {exc}") from exc
    if not isinstance(document, dict):
        raise ConfigError(f"{where}: must be an object with {LISTS[0]!r}, got {document!r:.80}")
    for name in document:
        choose(where, "name", name, (*LISTS, *_ABOUT))
    readers = dict(zip(LISTS, (_entry, _group, _session), strict=True))
    entities = []
    for name in (LISTS[1], LISTS[2], LISTS[0]):
        rows = document.get(name, [])
        if not isinstance(rows, list):
            raise ConfigError(f"{where}: {name} must be a list, got {rows!r:.80}")
        for number, row in enumerate(rows):
            here = f"{where}: {name}[{number}]"
            if not isinstance(row, dict):
                raise ConfigError(f"{here}: must be an object, got {row!r:.80}")
            try:
                entities.append(readers[name](here, row, schema))
            except (KeyError, TypeError, ValueError) as exc:
                raise ConfigError(f"{here}: {type(exc).__name__}: {exc}, got {row!r:.200}") from exc
    return entities


def _entry(where: str, row: Mapping[str, Any], schema: P4Schema) -> P4TableEntry:
    is_default = row.get("default_action", False)
    if isinstance(is_default, str) and is_default.lower() in ("true", "false"):
        is_default = is_default.lower() == "true"
    if type(is_default) is not bool:
        raise ConfigError(f"{where}: default_action must be true or false, got {is_default!r:.80}")
    keys = None
    if not is_default:
        match = row.get("match", {})
        if not isinstance(match, dict):
            raise ConfigError(f"{where}: match must be an object, got {match!r:.80}")
        keys = {name: _key(value) for name, value in match.items()}
    return table_entry(
        where,
        schema,
        row["table"],
        action=row["action_name"],
        arguments=dict(row.get("action_params", {})),
        keys=keys,
        priority=row.get("priority"),
    )


def _key(value: Any) -> Any:
    """Return a key's value: a pair is a prefix and its length, a value and mask, or a range."""
    if isinstance(value, list) and len(value) == 1:
        return value[0]
    return tuple(value) if isinstance(value, list) else value


def _group(where: str, row: Mapping[str, Any], schema: P4Schema) -> P4MulticastGroupEntry:
    return P4MulticastGroupEntry(row["multicast_group_id"], replicas=_replicas(row))


def _session(where: str, row: Mapping[str, Any], schema: P4Schema) -> P4CloneSessionEntry:
    return P4CloneSessionEntry(
        row["clone_session_id"],
        replicas=_replicas(row),
        packet_length_bytes=row.get("packet_length_bytes", 0),
    )


def _replicas(row: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [(each["egress_port"], each.get("instance", 0)) for each in row["replicas"]]
