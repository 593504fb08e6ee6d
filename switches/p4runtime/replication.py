"""Multicast groups and clone sessions (section 9.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4r

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import DELETE, CloneUpdate, GroupUpdate
from ringleaf.switches.p4runtime.bytestrings import decode_unsigned, encode_unsigned
from ringleaf.switches.p4runtime.plane import PORT_BITS, Plane

INSTANCES = 1 << 16  # egress_rid is 16 bits wide


class Replication:
    """Writes and reads p4.v1.PacketReplicationEngineEntry."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def write(self, verb: str, message: Any) -> None:
        """Insert, modify or delete a multicast group or a clone session.

        Raises:
            ConfigError: If the entry has neither.
        """
        match message.WhichOneof("type"):
            case "multicast_group_entry":
                self._write_group(verb, message.multicast_group_entry)
            case "clone_session_entry":
                self._write_session(verb, message.clone_session_entry)
            case _:
                raise self._plane.refuse("neither group nor session, got an empty entry")

    def read(self, message: Any) -> Iterator[Any]:
        """Return the groups or sessions of an id, as p4.v1.Entity; id 0 selects all.

        Raises:
            ConfigError: If the entry has neither.
        """
        match message.WhichOneof("type"):
            case "multicast_group_entry":
                yield from self._read_groups(message.multicast_group_entry.multicast_group_id)
            case "clone_session_entry":
                yield from self._read_sessions(message.clone_session_entry.session_id)
            case _:
                raise self._plane.refuse("neither group nor session, got an empty entry")

    def _write_group(self, verb: str, message: Any) -> None:
        plane, number = self._plane, message.multicast_group_id
        if not 0 < number < 1 << 16:
            raise plane.refuse(f"multicast group: must be in [1, 65535], got {number}")
        if verb == DELETE:
            plane.apply(GroupUpdate(verb, number, ()))
            plane.notes.multicast_groups.pop(number, None)
            return
        members = self._replicas(f"multicast group {number}", message.replicas)
        plane.apply(GroupUpdate(verb, number, members))
        plane.notes.multicast_groups[number] = message

    def _write_session(self, verb: str, message: Any) -> None:
        plane, number = self._plane, message.session_id
        if not 0 < number < 1 << 15:
            raise plane.refuse(f"clone session {number}: must be in [1, 32767], got {number}")
        if verb == DELETE:
            plane.apply(CloneUpdate(verb, number, ()))
            plane.notes.clone_sessions.pop(number, None)
            return
        if message.packet_length_bytes < 0:
            got = message.packet_length_bytes
            raise plane.refuse(f"clone session {number}: length must not be negative, got {got}")
        replicas = self._replicas(f"clone session {number}", message.replicas)
        length, service = message.packet_length_bytes, message.class_of_service
        plane.apply(CloneUpdate(verb, number, replicas, length, service))
        plane.notes.clone_sessions[number] = message

    def _read_groups(self, number: int) -> Iterator[Any]:
        groups = [g for g in self._plane.switch.groups() if number in (0, g.group)]
        if number and not groups:
            raise ConfigError(
                f"{self._plane.where}: no such multicast group, got {number}", Code.NOT_FOUND
            )
        for group in groups:
            note = self._plane.notes.multicast_groups.get(group.group)
            if note is None or _pairs(note.replicas) != group.members:
                note = p4r.MulticastGroupEntry(
                    multicast_group_id=group.group, replicas=_encode(group.members)
                )
            yield _entity(multicast_group_entry=note)

    def _read_sessions(self, number: int) -> Iterator[Any]:
        sessions = [s for s in self._plane.switch.clone_sessions() if number in (0, s.session)]
        if number and not sessions:
            raise ConfigError(
                f"{self._plane.where}: no such clone session, got {number}", Code.NOT_FOUND
            )
        for session in sessions:
            note = self._plane.notes.clone_sessions.get(session.session)
            noted = note and (
                _pairs(note.replicas),
                note.packet_length_bytes,
                note.class_of_service,
            )
            if noted != (session.replicas, session.length_bytes, session.class_of_service):
                note = p4r.CloneSessionEntry(
                    session_id=session.session,
                    replicas=_encode(session.replicas),
                    packet_length_bytes=session.length_bytes,
                    class_of_service=session.class_of_service,
                )
            yield _entity(clone_session_entry=note)

    def _replicas(self, where: str, replicas: Any) -> tuple[tuple[int, int], ...]:
        for replica in replicas:
            if replica.backup_replicas:
                raise self._plane.refuse(
                    f"{where}: backup replicas are not supported, got one", Code.UNIMPLEMENTED
                )
            if replica.WhichOneof("port_kind") == "port":
                where_port = f"{self._plane.where}: {where}: port"
                decode_unsigned(replica.port, PORT_BITS, where_port)
            if replica.instance >= INSTANCES:
                raise self._plane.refuse(
                    f"{where}: instances are below {INSTANCES}, got {replica.instance}"
                )
        pairs = _pairs(replicas)
        if len(set(pairs)) < len(pairs):
            raise self._plane.refuse(f"{where}: a replica is there twice, got {pairs}")
        return pairs


def _pairs(replicas: Any) -> tuple[tuple[int, int], ...]:
    """Return (port, instance) of each replica."""
    return tuple((port_of(replica), replica.instance) for replica in replicas)


def port_of(replica: Any) -> int:
    """Return a replica's port, which older controllers give as a number (before 1.4.0)."""
    if replica.WhichOneof("port_kind") == "port":
        return int.from_bytes(replica.port, "big")
    return int(replica.egress_port)


def _encode(pairs: tuple[tuple[int, int], ...]) -> list[Any]:
    return [p4r.Replica(port=encode_unsigned(port), instance=max(rid, 0)) for port, rid in pairs]


def _entity(**entry: Any) -> Any:
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(**entry))
