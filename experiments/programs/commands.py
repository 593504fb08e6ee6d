"""Commands of BMv2's `simple_switch_CLI`, as students' exercises have them for each switch.

Of its commands, those that P4Runtime has as well are understood:

    table_add TABLE ACTION KEY ... => ARGUMENT ... [PRIORITY]
    table_set_default TABLE ACTION ARGUMENT ...
    mc_mgrp_create GROUP; mc_node_create RID PORT ...; mc_node_associate GROUP NODE
    mirroring_add SESSION PORT

Source: behavioral-model, `tools/runtime_CLI.py`. Nodes are numbered from 0 in the order in which
they are created, as there. Of priorities BMv2's smallest wins, P4Runtime's largest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from finsy import P4CloneSessionEntry, P4MulticastGroupEntry, P4Schema, P4TableEntry
from finsy.p4schema import P4MatchType

from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.programs.matching import full_name, table_entry

IGNORED = ("table_clear", "table_dump", "show_tables", "register_reset", "counter_reset")
"""Commands without effect on a switch that has just started."""

LEAST_PRIORITY = (1 << 31) - 1  # P4Runtime's largest, for BMv2's 0

_RANKED = (P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL)


@dataclass(slots=True)
class _Read:
    """The entities of the lines so far."""

    schema: P4Schema
    entries: list[P4TableEntry] = field(default_factory=list)
    nodes: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # rid, ports
    groups: dict[int, list[int]] = field(default_factory=dict)  # group -> nodes
    sessions: dict[int, int] = field(default_factory=dict)  # session -> port

    def table_add(self, where: str, words: Sequence[str]) -> None:
        if len(words) < 2:
            raise ConfigError(f"{where}: must be table_add TABLE ACTION KEYS => ARGUMENTS")
        table, action, *rest = words
        split = rest.index("=>") if "=>" in rest else len(rest)
        keys, arguments = rest[:split], rest[split + 1 :]
        kinds = self._kinds(where, table)
        priority = None
        if any(kind in _RANKED for kind in kinds):
            if not arguments:
                raise ConfigError(f"{where}: an entry of this table needs a priority, got none")
            priority = LEAST_PRIORITY - _whole(where, arguments.pop())
        if len(keys) != len(kinds):
            raise ConfigError(f"{where}: table {table} has {len(kinds)} keys, got {list(keys)}")
        values = [_key(text, kind) for text, kind in zip(keys, kinds, strict=True)]
        self.entries.append(
            table_entry(
                where,
                self.schema,
                table,
                action=action,
                arguments=arguments,
                keys=values,
                priority=priority,
            )
        )

    def table_set_default(self, where: str, words: Sequence[str]) -> None:
        if len(words) < 2:
            raise ConfigError(f"{where}: must be table_set_default TABLE ACTION ARGUMENTS")
        table, action, *arguments = words
        arguments = [word for word in arguments if word != "=>"]
        self.entries.append(
            table_entry(where, self.schema, table, action=action, arguments=arguments, keys=None)
        )

    def mc_mgrp_create(self, where: str, words: Sequence[str]) -> None:
        (group,) = _numbers(where, words, 1)
        self.groups[group] = []

    def mc_node_create(self, where: str, words: Sequence[str]) -> None:
        rid, *ports = _numbers(where, [word for word in words if word != "|"])
        self.nodes.append((rid, tuple(ports)))

    def mc_node_associate(self, where: str, words: Sequence[str]) -> None:
        group, node = _numbers(where, words, 2)
        if group not in self.groups or node >= len(self.nodes):
            raise ConfigError(
                f"{where}: group and node must have been created, got {group} and {node}"
            )
        self.groups[group].append(node)

    def mirroring_add(self, where: str, words: Sequence[str]) -> None:
        session, port = _numbers(where, words, 2)
        self.sessions[session] = port

    def _kinds(self, where: str, table: str) -> list[Any]:
        known = {each.name: each for each in self.schema.tables}
        found = known[full_name(where, "table", table, known)]
        return [each.match_type for each in found.match_fields]

    def entities(self) -> list[Any]:
        groups = [
            P4MulticastGroupEntry(
                group,
                replicas=[
                    (port, self.nodes[node][0]) for node in nodes for port in self.nodes[node][1]
                ],
            )
            for group, nodes in self.groups.items()
        ]
        sessions = [
            P4CloneSessionEntry(session, replicas=[(port, 0)])
            for session, port in self.sessions.items()
        ]
        return [*groups, *sessions, *self.entries]


def read(text: str, where: str, schema: P4Schema) -> Sequence[Any]:
    """Return the entities that commands make, as finsy's objects.

    Raises:
        ConfigError: If one is not understood; the message has its line.
    """
    found = _Read(schema)
    known: dict[str, Callable[[str, Sequence[str]], None]] = {
        each.__name__: each
        for each in (
            found.table_add,
            found.table_set_default,
            found.mc_mgrp_create,
            found.mc_node_create,
            found.mc_node_associate,
            found.mirroring_add,
        )
    }
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#")[0].split()
        if not words or words[0] in IGNORED:
            continue
        here = f"{where}:{number}"
        known[choose(here, "command", words[0], known)](here, words[1:])
    return found.entities()


def _key(text: str, kind: Any) -> Any:
    for mark, wanted in (("&&&", P4MatchType.TERNARY), ("->", P4MatchType.RANGE)):
        if kind == wanted and mark in text:
            return tuple(text.split(mark, 1))
    if kind == P4MatchType.LPM and "/" in text:
        value, _, length = text.partition("/")
        if not length.isdecimal():
            return text  # finsy says what is wrong with it
        return (value, int(length)) if int(length) else None
    return text


def _whole(where: str, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ConfigError(f"{where}: must be a whole number, got {text!r}") from None


def _numbers(where: str, words: Sequence[str], count: int | None = None) -> list[int]:
    if not words or (count is not None and len(words) != count):
        raise ConfigError(f"{where}: must have {count or 'some'} numbers, got {list(words)}")
    return [_whole(where, word) for word in words]
