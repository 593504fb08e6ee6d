"""A switch's multicast groups and clone sessions, where `replication.py` finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ringleaf.core.arena import Store
from ringleaf.core.units import format_count
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.layout import (
    CLASSES,
    CLONE_COUNT,
    CLONES_AT,
    GROUP_COUNT,
    GROUPS_AT,
    KEPT_RID,
)
from ringleaf.switches.engine.replication import CLONE_COLUMNS, LONGEST_GROUP, LONGEST_SESSION
from ringleaf.switches.engine.updates import (
    DELETE,
    INSERT,
    CloneUpdate,
    GroupUpdate,
)


def name_ports(ports: Sequence[int]) -> str:
    """Return the name of a range of ports; the last, a controller's, may lie apart."""
    if len(ports) < 2 or ports[-1] == ports[-2] + 1:
        return f"{ports[0]} to {ports[-1]}"
    return f"{ports[0]} to {ports[-2]} and {ports[-1]}"


class ReplicaGroups:
    """Groups and sessions of the switch whose block of `arena.words` is at `at`."""

    def __init__(self, store: Store, at: int, name: str, ports: Sequence[int]) -> None:
        self._store = store
        self._ports = ports
        self._at = at
        self._name = name
        self._groups: dict[int, tuple[tuple[int, int], ...]] = {}
        self._clones: dict[int, CloneUpdate] = {}
        self._rooms: dict[int, int] = {}  # words of the ranges that columns point to

    def update_group(self, update: GroupUpdate) -> None:
        """Insert, modify or delete a multicast group.

        Raises:
            ConfigError: If it is there already, or not at all, or its members do not fit.
        """
        where = f"{self._name}: multicast group {update.group}"
        _check_presence(where, update.verb, update.group in self._groups)
        self._check_replicas(where, update.members, LONGEST_GROUP)
        if update.verb == DELETE:
            del self._groups[update.group]
        else:
            self._groups[update.group] = update.members
        self._write_groups()

    def update_clone(self, update: CloneUpdate) -> None:
        """Insert, modify or delete a clone session, 0 to 32767.

        Raises:
            ConfigError: If a number is out of range, or the session is there already, or not.
        """
        where = f"{self._name}: clone session {update.session}"
        if not 0 <= update.session < 1 << 15:  # BMv2's MAX_MIRROR_SESSION_ID
            raise ConfigError(f"{where}: must be in [0, 32767], got {update.session}")
        _check_presence(where, update.verb, update.session in self._clones)
        if update.verb == DELETE:
            del self._clones[update.session]
        else:
            self._check_replicas(where, update.replicas, LONGEST_SESSION, least_rid=KEPT_RID)
            if not 0 <= update.length_bytes < 1 << 16:
                raise ConfigError(
                    f"{where}: length must be in [0, 65535], got {update.length_bytes}"
                )
            self._clones[update.session] = replace(update, verb=INSERT)
        self._write_clones()

    def groups(self) -> list[GroupUpdate]:
        """Return the multicast groups, by number, as updates that insert them again."""
        return [GroupUpdate(INSERT, *item) for item in sorted(self._groups.items())]

    def sessions(self) -> list[CloneUpdate]:
        """Return the clone sessions, by number, as updates that insert them again."""
        return [session for _, session in sorted(self._clones.items())]

    def _check_replicas(
        self, where: str, replicas: tuple[tuple[int, int], ...], most: int, least_rid: int = 0
    ) -> None:
        if len(replicas) > most:
            raise ConfigError(
                f"{where}: at most {format_count(most, 'replica')}, got {len(replicas)}",
                Code.RESOURCE_EXHAUSTED,
            )
        for port, rid in replicas:
            self._check_port(where, port)
            if not least_rid <= rid < 1 << 16:
                raise ConfigError(f"{where}: egress_rid has 16 bits, got {rid}")

    def _check_port(self, where: str, port: int) -> None:
        if port not in self._ports:
            raise ConfigError(f"{where}: ports are {name_ports(self._ports)}, got {port}")

    def _get(self, column: int) -> int:
        return int(self._store.arena.words[self._at + column])

    def _set(self, column: int, value: int) -> None:
        self._store.arena.words[self._at + column] = value

    def _write_groups(self) -> None:
        """Lay out all multicast groups: per group the place and number of its members."""
        rows = {group: (members,) for group, members in self._groups.items()}
        self._write(GROUPS_AT, GROUP_COUNT, rows)

    def _write_clones(self) -> None:
        """Lay out all sessions: place and number of the replicas, the length, the class."""
        rows = {
            number: (session.replicas, session.length_bytes, class_of(session.class_of_service))
            for number, session in self._clones.items()
        }
        self._write(CLONES_AT, CLONE_COUNT, rows)

    def _write(self, column: int, count_column: int, rows: Mapping[int, tuple[Any, ...]]) -> None:
        """Write a table of rows (replicas, *rest) as offset, count, *rest; then all replicas."""
        count = max(rows, default=0) + 1
        width = CLONE_COLUMNS if column == CLONES_AT else 2
        table = [0] * (width * count)
        members: list[int] = []
        for number, (replicas, *rest) in rows.items():
            table[width * number : width * (number + 1)] = [len(members), len(replicas), *rest]
            members.extend(value for replica in replicas for value in replica)
        at = self._place(column, table + members)
        starts = self._store.arena.words[at : at + width * count : width]
        starts += at + width * count
        self._set(count_column, count)

    def _place(self, column: int, values: list[int]) -> int:
        """Write values to a range that `column` points to, a new one if they don't fit."""
        room = self._rooms.get(column, 0)
        if len(values) > room:
            self._rooms[column] = max(len(values), 2 * room)
            self._set(column, self._store.allocate("words", self._rooms[column]))
        at = self._get(column)
        self._store.arena.words[at : at + len(values)] = values
        return at


def class_of(class_of_service: int) -> int:
    """Return the queue of a class of service; those that there are not count as 0 (PSA, 6.2)."""
    return class_of_service if 0 <= class_of_service < CLASSES else 0


def _check_presence(where: str, verb: str, present: bool) -> None:
    if verb == INSERT and present:
        raise ConfigError(
            f"{where}: exists already, got an insert; use ~ to modify it", Code.ALREADY_EXISTS
        )
    if verb != INSERT and not present:
        raise ConfigError(
            f"{where}: does not exist, got {verb} of it; use + to insert it", Code.NOT_FOUND
        )
