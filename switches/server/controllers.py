"""The controllers of one device: the one that may write, and those that get messages."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Protocol

from finsy.proto import U128, p4r, rpc_status

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import IdleEntry
from ringleaf.switches.server.arbitration import Election
from ringleaf.switches.server.digests import DigestList
from ringleaf.switches.switch import Switch

MOST_STREAMS = 16  # of one device with the default role, and as many with other roles
LONGEST_ROLE = 256  # letters


class ControllerStream(Protocol):
    """The way to one controller; sending never waits."""

    def send(self, message: Any) -> None:
        """Queue a p4.v1.StreamMessageResponse."""


class Controllers:
    """Elections by role; the default role is "". Every role may do anything: none has a config."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._elections: dict[str, Election[ControllerStream]] = {"": Election()}
        self._roles: dict[ControllerStream, str] = {}

    def arbitrate(self, stream: ControllerStream, message: Any) -> None:
        """Take a MasterArbitrationUpdate, and tell the streams that it concerns.

        Raises:
            ConfigError: If the stream must end.
        """
        if message.role.HasField("config"):
            raise ConfigError("role configs are not supported, got one")
        role = role_name(message.role.name, message.role.id)
        if len(role) > LONGEST_ROLE:
            raise ConfigError(f"role has at most {LONGEST_ROLE} letters, got {len(role)}")
        if self._roles.get(stream, role) != role:
            raise ConfigError(
                f"role of a stream never changes, got {role!r}", Code.FAILED_PRECONDITION
            )
        if stream not in self._roles:
            self._check_room(role)
        self._forget_roles(role)
        election = self._elections.setdefault(role, Election())
        has_id = message.HasField("election_id")
        streams = election.bid(stream, U128.decode(message.election_id) if has_id else None)
        self._roles[stream] = role
        self._notify(role, streams)

    def _check_room(self, role: str) -> None:
        """Refuse one stream too many; other roles can't take the default role's share."""
        streams = sum((known == "") == (role == "") for known in self._roles.values())
        if streams >= MOST_STREAMS:
            raise ConfigError(
                f"at most {MOST_STREAMS} controllers, got one more", Code.RESOURCE_EXHAUSTED
            )

    def _forget_roles(self, role: str) -> None:
        """Make room for a new role: forget the elections of roles that nobody has any more."""
        if role in self._elections or len(self._elections) <= MOST_STREAMS:
            return
        in_use = {"", *self._roles.values()}
        unused = [known for known in self._elections if known not in in_use]
        for known in unused[: len(self._elections) - MOST_STREAMS]:
            del self._elections[known]

    def leave(self, stream: ControllerStream) -> None:
        """Forget a stream that has ended."""
        role = self._roles.pop(stream, None)
        if role is not None:
            self._notify(role, self._elections[role].leave(stream))

    def is_primary(self, stream: ControllerStream) -> bool:
        """Return whether a stream is the primary controller of its role."""
        role = self._roles.get(stream)
        return role is not None and self._elections[role].primary is stream

    def rank(self, stream: ControllerStream) -> int:
        """Return how much a stream matters: 2 the primary's, 1 another role's, 0 a backup's."""
        return self.is_primary(stream) * (1 if self._roles[stream] else 2)

    def check_primary(self, request: Any) -> None:
        """Check that a request may write (section 12).

        Raises:
            ConfigError: NOT_FOUND for an unknown role, PERMISSION_DENIED for a backup.
        """
        role = role_name(request.role, request.role_id)
        if role not in self._elections:
            raise ConfigError(f"no controller has this role, got {role!r}", Code.NOT_FOUND)
        has_id = request.HasField("election_id")
        election_id = U128.decode(request.election_id) if has_id else None
        if not self._elections[role].is_primary(election_id):
            of = f"role {role!r}" if role else "the default role, as the request names none,"
            raise ConfigError(
                f"only the primary controller of {of} may write, got election id {election_id}",
                Code.PERMISSION_DENIED,
            )

    def send_packet(self, message: Any) -> None:
        """Send a p4.v1.PacketIn to the primary controller of each role."""
        self._tell_primaries(p4r.StreamMessageResponse(packet=message))

    def send_digest(self, switch: Switch, digest: DigestList) -> None:
        """Send a list of digests to each role's primary controller, stamped with wall-clock ns."""
        schema = switch.entities.schema
        spec = schema.digest(digest.digest_id).type_spec
        data = [schema.types.encode(spec, iter(values), "digest") for values in digest.messages]
        message = p4r.DigestList(
            digest_id=digest.digest_id,
            list_id=digest.list_id,
            data=data,
            timestamp=time.time_ns(),
        )
        self._tell_primaries(p4r.StreamMessageResponse(digest=message))

    def send_idle(self, switch: Switch, idle: Iterable[IdleEntry]) -> None:
        """Send the keys of entries that became idle, if any, to each role's primary controller."""
        entities = switch.entities
        entries = [
            entities.table_entries.encode_key(
                entities.schema.tables_by_name[item.table], item.entry
            )
            for item in idle
        ]
        if entries:
            message = p4r.IdleTimeoutNotification(table_entry=entries, timestamp=time.time_ns())
            self._tell_primaries(p4r.StreamMessageResponse(idle_timeout_notification=message))

    def _tell_primaries(self, message: Any) -> None:
        for election in self._elections.values():
            if election.primary is not None:
                election.primary.send(message)

    def _notify(self, role: str, streams: Iterable[ControllerStream]) -> None:
        election = self._elections[role]
        for stream in streams:
            update = p4r.MasterArbitrationUpdate(
                device_id=self._device,
                role=encode_role(role) if role else None,
                election_id=None if election.highest is None else U128.encode(election.highest),
                status=rpc_status.Status(code=election.code(stream)),
            )
            stream.send(p4r.StreamMessageResponse(arbitration=update))


def encode_role(name: str) -> Any:
    """Return a p4.v1.Role; one that may have been told as a number has it, too."""
    is_number = name.isdecimal() and 0 < int(name) < 1 << 64 and name == str(int(name))
    return p4r.Role(name=name, id=int(name) if is_number else 0)


def role_name(name: str, number: int) -> str:
    """Return a role's name; before 1.4.0 it was a number."""
    return name or (str(number) if number else "")
