"""Table entries, default ones too (section 9.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from finsy.proto import p4r

from ringleaf.core.units import PS_PER_NS
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import (
    DELETE,
    INSERT,
    MODIFY,
    InstalledEntry,
    Match,
    MemberGroup,
    ProfileMember,
    TableUpdate,
)
from ringleaf.switches.p4runtime.actions import decode_action, encode_action
from ringleaf.switches.p4runtime.direct import DirectResources
from ringleaf.switches.p4runtime.matches import decode_match, encode_match
from ringleaf.switches.p4runtime.notes import Key
from ringleaf.switches.p4runtime.one_shots import OneShots
from ringleaf.switches.p4runtime.plane import Plane, unless_gone
from ringleaf.switches.p4runtime.schema import TableInfo


class TableEntryEntity:
    """Writes and reads p4.v1.TableEntry."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._direct = DirectResources(plane)
        self._one_shots = OneShots(plane)

    def key(self, message: Any) -> tuple[TableInfo, InstalledEntry]:
        """Return the table and the entry, without an action, that a message names.

        Raises:
            ConfigError: If the program can't have such an entry.
        """
        table = self._plane.schema.table(message.table_id)
        where = self._where(table)
        keys, widths = table.message.match_fields, table.shape.widths
        if not keys:
            raise self._plane.refuse(
                f"table {table.name!r}: has no key, got an entry; set its default action"
            )
        match = decode_match(message.match, keys, widths, where)
        precedence = self._precedence(table, match, message.priority)
        prefix = sum(mask.bit_count() for _, mask in match)
        return table, InstalledEntry(match, table.shape.table.actions[0], (), precedence, prefix)

    def write(self, verb: str, message: Any) -> None:
        """Insert, modify or delete an entry, or change the default one.

        Raises:
            ConfigError: If it sets `is_const`, which only programs can.
        """
        if message.is_const and verb != DELETE:
            raise self._plane.refuse("is_const is not for controllers to set, got it set")
        if message.is_default_action:
            self._write_default(verb, message)
            return
        table, entry = self.key(message)
        if verb == DELETE:
            self._delete(table, entry)
        elif table.is_constant:
            self._modify_constant(verb, table, entry, message)
        else:
            self._put(verb, table, entry, message)

    def read(self, message: Any) -> Iterator[Any]:
        """Yield the entities that a message selects (section 9.1.7), and None for others."""
        schema = self._plane.schema
        if message.table_id:
            tables = [schema.table(message.table_id)]
            self._check_filter(tables[0], message)
        elif message.match or message.HasField("action") or message.priority:
            raise self._plane.refuse("all tables are read without a filter, got one")
        else:
            tables = list(schema.tables.values())
        for table in tables:
            for entry in self._selected(table, message):
                yield entry and unless_gone(partial(self._entity, table, entry, message))

    def _entity(self, table: TableInfo, entry: InstalledEntry, asked: Any) -> Any:
        return p4r.Entity(table_entry=self._encode(table, entry, asked))

    def encode_key(self, table: TableInfo, entry: InstalledEntry, is_default: bool = False) -> Any:
        """Return the message that names an entry, with its controller's metadata."""
        fields = table.message.match_fields
        note = self._plane.notes.of(_key(table, entry, is_default))
        return p4r.TableEntry(
            table_id=table.id,
            match=[] if is_default else encode_match(entry.match, fields, table.shape.widths),
            priority=0 if is_default else table.priority(entry.precedence),
            is_default_action=is_default,
            idle_timeout_ns=entry.idle_timeout_ns,
            metadata=note.metadata,
            controller_metadata=note.controller_metadata,
        )

    # Writing.

    def _put(self, verb: str, table: TableInfo, entry: InstalledEntry, message: Any) -> None:
        plane, key = self._plane, _key(table, entry)
        self._check_idle(table, message)
        resources = self._direct.decode(verb, table, message)
        entry.idle_timeout_ns = message.idle_timeout_ns
        kind = message.action.WhichOneof("type")
        if kind is None:
            if verb == INSERT:
                raise plane.refuse(f"table {table.name!r}: entry has no action, got an insert")
            current = self._find(table, entry)
            entry = replace(
                current, idle_timeout_ns=entry.idle_timeout_ns, counter=0, prefix=entry.prefix
            )
            plane.apply(TableUpdate(verb, table.name, entry, False))
        elif kind == "action_profile_action_set":
            self._one_shots.write(verb, table, entry, message.action.action_profile_action_set, key)
        else:
            self._set_action(table, entry, message.action)
            plane.apply(TableUpdate(verb, table.name, entry, False))
        plane.notes.keep(key, message)
        self._direct.apply(table, entry, resources)

    def _set_action(self, table: TableInfo, entry: InstalledEntry, message: Any) -> None:
        """Put an action, or a member or group of the profile, into an entry."""
        kind, where = message.WhichOneof("type"), self._where(table)
        if not table.profile:
            if kind != "action":
                raise self._plane.refuse(f"table {table.name!r}: has no action profile, got {kind}")
            entry.action, entry.arguments = decode_action(table, message.action, where)
            return
        profile = self._plane.schema.profile(table.profile)
        self._one_shots.check_unused(profile)
        if kind == "action_profile_member_id":
            entry.indirect = ProfileMember(message.action_profile_member_id)
        elif kind == "action_profile_group_id" and profile.with_selector:
            entry.indirect = MemberGroup(message.action_profile_group_id)
        else:
            raise self._plane.refuse(f"table {table.name!r}: takes its profile's, got {kind}")

    def _delete(self, table: TableInfo, entry: InstalledEntry) -> None:
        key = _key(table, entry)
        self._plane.apply(TableUpdate(DELETE, table.name, entry, False))
        self._plane.notes.entries.pop(key, None)
        self._one_shots.forget(self._plane.notes.one_shots.pop(key, None))

    def _modify_constant(
        self, verb: str, table: TableInfo, entry: InstalledEntry, message: Any
    ) -> None:
        """Write a constant entry's direct resources, which is all that can be written (9.1.4)."""
        if verb != MODIFY or message.HasField("action") or message.idle_timeout_ns:
            raise ConfigError(
                f"{self._where(table)}: entries are constant, got a change of them",
                Code.PERMISSION_DENIED,
            )
        resources = self._direct.decode(verb, table, message)
        self._find(table, entry)
        self._direct.apply(table, entry, resources)

    def _write_default(self, verb: str, message: Any) -> None:
        plane = self._plane
        table = plane.schema.table(message.table_id)
        where = self._where(table)
        plane.check_modify(verb, f"table {table.name!r}: default entry")
        if message.match or message.priority or message.idle_timeout_ns:
            raise plane.refuse(
                f"table {table.name!r}: default entry has neither match nor priority"
                " nor idle timeout, got one"
            )
        if message.HasField("time_since_last_hit"):
            raise plane.refuse(f"table {table.name!r}: default entry never becomes idle, got it")
        if table.message.const_default_action_id or table.profile:
            raise ConfigError(
                f"{where}: default action is constant, got a change of it", Code.PERMISSION_DENIED
            )
        self._direct.check_none(table, message)
        entry = None
        if message.HasField("action"):
            if message.action.WhichOneof("type") != "action":
                raise plane.refuse(f"table {table.name!r}: default entry takes a direct action")
            entry = InstalledEntry(
                (), *decode_action(table, message.action.action, where, default=True)
            )
        plane.apply(TableUpdate(verb, table.name, entry, True))
        plane.notes.entries.pop((table.name,), None)
        if entry:
            plane.notes.keep((table.name,), message)

    def _precedence(self, table: TableInfo, match: Match, priority: int) -> int:
        name = table.name
        if not table.shape.prioritized:
            if priority:
                raise self._plane.refuse(f"table {name!r}: has no priorities, got {priority}")
            return 0
        if priority < 1:
            raise self._plane.refuse(
                f"table {name!r}: entry needs a priority of at least 1, got {priority}"
            )
        precedences = table.const_precedences
        if priority <= len(precedences) and any(
            (entry.match, entry.precedence) == (match, precedences[priority - 1])
            for entry in self._plane.switch.each_entry(name)
        ):
            return precedences[priority - 1]
        return priority

    def _check_idle(self, table: TableInfo, message: Any) -> None:
        timeout = message.idle_timeout_ns
        if timeout < 0:
            raise self._plane.refuse(f"idle timeout must not be negative, got {timeout}")
        if (timeout or message.HasField("time_since_last_hit")) and not table.expires:
            raise self._plane.refuse(f"table {table.name!r}: has no idle timeouts, got {timeout}")

    def _find(self, table: TableInfo, sought: InstalledEntry) -> InstalledEntry:
        for entry in self._plane.switch.each_entry(table.name):
            if (entry.match, entry.precedence) == (sought.match, sought.precedence):
                return entry
        raise ConfigError(
            f"{self._where(table)}: no such entry, got {sought.match}", Code.NOT_FOUND
        )

    def _where(self, table: TableInfo) -> str:
        return f"{self._plane.where}: table {table.name!r}"

    # Reading.

    def _check_filter(self, table: TableInfo, message: Any) -> None:
        if message.HasField("time_since_last_hit") and not table.expires:
            raise self._plane.refuse(f"table {table.name!r}: has no idle timeouts, got a read")
        if message.action.WhichOneof("type") not in (None, "action"):
            raise self._plane.refuse(
                f"table {table.name!r}: entries are read by action id only,"
                f" got {message.action.WhichOneof('type')}",
                Code.UNIMPLEMENTED,
            )
        if message.is_default_action and (message.match or message.priority):
            raise self._plane.refuse(f"table {table.name!r}: default entry has no match, got one")

    def _selected(self, table: TableInfo, message: Any) -> Iterator[InstalledEntry | None]:
        """Yield the entries that a message selects, and None for the others."""
        switch = self._plane.switch
        if message.is_default_action:
            yield switch.default_entry(table.name)
            return
        match: Match | None = None
        if message.match:
            fields, widths = table.message.match_fields, table.shape.widths
            match = decode_match(message.match, fields, widths, self._where(table))
        for entry in switch.each_entry(table.name):
            fits = match is None or entry.match == match
            if message.priority and table.priority(entry.precedence) != message.priority:
                fits = False
            yield entry if fits and self._chosen(table, entry, message) else None

    def _chosen(self, table: TableInfo, entry: InstalledEntry, message: Any) -> bool:
        """Return whether an entry has the action and the metadata that are asked for, if any."""
        note = self._plane.notes.of(_key(table, entry))
        if message.metadata and note.metadata != message.metadata:
            return False
        metadata = message.controller_metadata
        if metadata and note.controller_metadata != metadata:
            return False
        action = message.action.action.action_id
        return not action or (
            entry.indirect is None and entry.action == table.numbers.get(action, -1)
        )

    def _encode(self, table: TableInfo, entry: InstalledEntry, asked: Any) -> Any:
        is_default = asked.is_default_action
        message = self.encode_key(table, entry, is_default)
        constant = table.message.const_default_action_id if is_default else table.is_constant
        message.is_const = bool(constant)
        shot = self._plane.notes.one_shots.get(_key(table, entry, is_default))
        if shot:
            message.action.action_profile_action_set.CopyFrom(shot.message)
        elif isinstance(entry.indirect, ProfileMember):
            message.action.action_profile_member_id = entry.indirect.number
        elif isinstance(entry.indirect, MemberGroup):
            message.action.action_profile_group_id = entry.indirect.number
        elif entry.action in table.actions:
            action = encode_action(table, entry.action, entry.arguments)
            message.action.action.CopyFrom(action)
        if not is_default:
            self._direct.encode(table, entry, asked, message)
            if asked.HasField("time_since_last_hit") and table.expires:
                idle_ps = self._plane.switch.read_idle_ps(table.name, entry)
                message.time_since_last_hit.elapsed_ns = idle_ps // PS_PER_NS
        return message


def _key(table: TableInfo, entry: InstalledEntry, is_default: bool = False) -> Key:
    return (table.name,) if is_default else (table.name, entry.match, entry.precedence)
