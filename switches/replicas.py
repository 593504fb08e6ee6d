"""A switch's multicast groups and clone sessions, where `replication.py` finds them."""

from __future__ import annotations

from ringleaf.arena import Store
from ringleaf.errors import Code, ConfigError
from switches.layout import CLONE_COUNT, CLONES_AT, GROUP_COUNT, GROUPS_AT
from switches.replication import LONGEST_GROUP
from switches.updates import (
    DELETE,
    INSERT,
    CloneUpdate,
    GroupUpdate,
)


class Replicas:
    """Groups and sessions of the switch whose block of `arena.words` is at `at`."""

    def __init__(self, store: Store, at: int, name: str, ports: range) -> None:
        self._store = store
        self._ports = ports
        self._at = at
        self._name = name
        self._groups: dict[int, tuple[tuple[int, int], ...]] = {}
        self._clones: dict[int, int] = {}
        self._rooms: dict[int, int] = {}  # words of the ranges that columns point to

    def update_group(self, update: GroupUpdate) -> None:
        where = f"{self._name}: multicast group {update.group}"
        _check_presence(where, update.verb, update.group in self._groups)
        if len(update.members) > LONGEST_GROUP:
            raise ConfigError(
                f"{where}: at most {LONGEST_GROUP} replicas, got {len(update.members)}"
            )
        for port, _ in update.members:
            self._check_port(where, port)
        if update.verb == DELETE:
            del self._groups[update.group]
        else:
            self._groups[update.group] = update.members
        self._write_groups()

    def update_clone(self, update: CloneUpdate) -> None:
        where = f"{self._name}: clone session {update.session}"
        if not 0 < update.session < 1 << 15:
            raise ConfigError(f"{where}: must be in [1, 32767], got {update.session}")
        _check_presence(where, update.verb, update.session in self._clones)
        if update.verb == DELETE:
            del self._clones[update.session]
        else:
            if len(update.replicas) != 1:
                raise ConfigError(
                    f"{where}: must have one replica, got {len(update.replicas)}",
                    Code.UNIMPLEMENTED,
                )
            if update.length_bytes:
                raise ConfigError(
                    f"{where}: truncation is not supported, got {update.length_bytes} bytes",
                    Code.UNIMPLEMENTED,
                )
            port, _ = update.replicas[0]
            self._check_port(where, port)
            self._clones[update.session] = port
        self._write_clones()

    def _check_port(self, where: str, port: int) -> None:
        if port not in self._ports:
            ports = f"{self._ports[0]} to {self._ports[-1]}"
            raise ConfigError(f"{where}: ports are {ports}, got {port}")

    def _get(self, column: int) -> int:
        return int(self._store.arena.words[self._at + column])

    def _set(self, column: int, value: int) -> None:
        self._store.arena.words[self._at + column] = value

    def _write_groups(self) -> None:
        """Lay out all multicast groups: per group where its members are and how many."""
        count = max(self._groups, default=0) + 1
        table: list[int] = [0] * (2 * count)
        members: list[int] = []
        for group, replicas in self._groups.items():
            table[2 * group] = len(members)
            table[2 * group + 1] = len(replicas)
            members.extend(value for replica in replicas for value in replica)
        at = self._place(GROUPS_AT, table + members)
        starts = self._store.arena.words[at : at + 2 * count : 2]
        starts += at + 2 * count
        self._set(GROUP_COUNT, count)

    def _write_clones(self) -> None:
        count = max(self._clones, default=0) + 1
        ports = [self._clones.get(session, -1) for session in range(count)]
        self._place(CLONES_AT, ports)
        self._set(CLONE_COUNT, count)

    def _place(self, column: int, values: list[int]) -> int:
        """Write values to a range that `column` points to, a new one if they don't fit."""
        room = self._rooms.get(column, 0)
        if len(values) > room:
            self._rooms[column] = max(len(values), 2 * room)
            self._set(column, self._store.allocate("words", self._rooms[column]))
        at = self._get(column)
        self._store.arena.words[at : at + len(values)] = values
        return at


def _check_presence(where: str, verb: str, present: bool) -> None:
    if verb == INSERT and present:
        raise ConfigError(
            f"{where}: exists already, got an insert; use ~ to modify it", Code.ALREADY_EXISTS
        )
    if verb != INSERT and not present:
        raise ConfigError(
            f"{where}: does not exist, got {verb} of it; use + to insert it", Code.NOT_FOUND
        )
