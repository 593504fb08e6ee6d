"""A switch's state as P4Runtime's entities, for controllers over gRPC and for Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from finsy.proto import p4r

from ringleaf.errors import Code
from ringleaf.switches.engine.updates import DELETE, INSERT, MODIFY, InstalledEntry
from ringleaf.switches.p4runtime.arrays import ArrayEntries
from ringleaf.switches.p4runtime.digest_entries import DigestEntries
from ringleaf.switches.p4runtime.direct import DirectResources
from ringleaf.switches.p4runtime.notes import Notes
from ringleaf.switches.p4runtime.plane import Plane, unless_gone
from ringleaf.switches.p4runtime.profiles import Profiles
from ringleaf.switches.p4runtime.replication import Replication
from ringleaf.switches.p4runtime.schema import Schema, TableInfo
from ringleaf.switches.p4runtime.table_entries import TableEntryEntity
from ringleaf.switches.p4runtime.value_sets import ValueSetEntity

if TYPE_CHECKING:
    from ringleaf.switches.control.plane import ControlPlane

DirectReader = Callable[[TableInfo, InstalledEntry, Any], Any]

_TYPES = {INSERT: p4r.Update.INSERT, MODIFY: p4r.Update.MODIFY, DELETE: p4r.Update.DELETE}


class Entities:
    """Writes and reads p4.v1.Entity messages."""

    def __init__(self, switch: ControlPlane, schema: Schema) -> None:
        self.schema = schema
        self.journal: list[Any] | None = None  # p4.v1.Update of all writes, if it is set
        self.notes = Notes()
        plane = self._plane = Plane(ref(switch), schema, self.notes)
        self.table_entries = TableEntryEntity(plane)
        self._direct = DirectResources(plane)
        arrays, profiles, replication = ArrayEntries(plane), Profiles(plane), Replication(plane)
        value_sets, digests = ValueSetEntity(plane), DigestEntries(plane)
        self._writers = {
            "table_entry": self.table_entries.write,
            "action_profile_member": profiles.write_member,
            "action_profile_group": profiles.write_group,
            "meter_entry": arrays.write_meter,
            "direct_meter_entry": self._write_direct_meter,
            "counter_entry": arrays.write_counter,
            "direct_counter_entry": self._write_direct_counter,
            "packet_replication_engine_entry": replication.write,
            "value_set_entry": value_sets.write,
            "register_entry": arrays.write_register,
            "digest_entry": digests.write,
        }
        self._readers = {
            "table_entry": self.table_entries.read,
            "action_profile_member": profiles.read_members,
            "action_profile_group": profiles.read_groups,
            "meter_entry": arrays.read_meters,
            "direct_meter_entry": self._read_direct_meters,
            "counter_entry": arrays.read_counters,
            "direct_counter_entry": self._read_direct_counters,
            "packet_replication_engine_entry": replication.read,
            "value_set_entry": value_sets.read,
            "register_entry": arrays.read_registers,
            "digest_entry": digests.read,
        }

    def write(self, verb: str, entity: Any) -> None:
        """Apply one p4.v1.Entity; packets see it when the switch is committed.

        Raises:
            ConfigError: With P4Runtime's code; nothing has then been done.
        """
        kind = self._kind(entity, self._writers)
        self._writers[kind](verb, getattr(entity, kind))
        if self.journal is not None:
            self.journal.append(p4r.Update(type=_TYPES[verb], entity=entity))

    def read(self, entity: Any) -> Iterator[Any]:
        """Return the entities that an entity, which may be a wildcard, selects.

        Raises:
            ConfigError: As above.
        """
        return (each for each in self.search(entity) if each is not None)

    def search(self, entity: Any) -> Iterator[Any]:
        """Return what `read` does, and None for each entry that was looked at and not selected.

        So a caller can stop, or let others use the switch, between any two steps. An entry that
        is deleted while the search goes on is left out; one that is inserted may be.

        Raises:
            ConfigError: As above.
        """
        kind = self._kind(entity, self._readers)
        return self._readers[kind](getattr(entity, kind))

    def _kind(self, entity: Any, known: dict[str, Any]) -> str:
        kind = entity.WhichOneof("entity")
        if kind is None:
            raise self._plane.refuse("entity is empty, got no kind of it")
        if kind not in known:
            raise self._plane.refuse(f"entity is not supported, got {kind}", Code.UNIMPLEMENTED)
        return str(kind)

    # Direct counters and meters are named by their table entries.

    def _write_direct_counter(self, verb: str, message: Any) -> None:
        self._direct.write_counter(verb, *self._entry(message), message)

    def _write_direct_meter(self, verb: str, message: Any) -> None:
        self._direct.write_meter(verb, *self._entry(message), message)

    def _read_direct_counters(self, message: Any) -> Iterator[Any]:
        return self._read_direct(message, "counter", self._direct.read_counter)

    def _read_direct_meters(self, message: Any) -> Iterator[Any]:
        if message.HasField("counter_data"):
            raise self._plane.refuse("meters do not count packets by color", Code.UNIMPLEMENTED)
        return self._read_direct(message, "meter", self._direct.read_meter)

    def _read_direct(self, message: Any, resource: str, read: DirectReader) -> Iterator[Any]:
        """Read the resource of the entry that a message names, or of all of one or each table."""
        asked = message.table_entry
        if asked.match or asked.priority or asked.is_default_action:
            table, entry = self._entry(message)
            yield read(table, entry, self.table_entries.encode_key(table, entry))
            return
        if asked.table_id:
            tables = [self.schema.table(asked.table_id)]
        else:
            tables = [info for info in self.schema.tables.values() if getattr(info, resource)]
        for table in tables:
            for entry in self._plane.switch.each_entry(table.name):
                key = self.table_entries.encode_key(table, entry)
                yield unless_gone(partial(read, table, entry, key))

    def _entry(self, message: Any) -> tuple[TableInfo, InstalledEntry]:
        if not message.HasField("table_entry"):
            raise self._plane.refuse("direct resource of no table entry, got none")
        if message.table_entry.is_default_action:
            raise self._plane.refuse(
                "default entries have no direct resources, got one", Code.UNIMPLEMENTED
            )
        return self.table_entries.key(message.table_entry)
