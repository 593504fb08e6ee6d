"""Multicast groups and clone sessions that commands make.

mc_mgrp_create GROUP; mc_node_create RID PORT ...; mc_node_associate GROUP NODE
mirroring_add SESSION PORT; mirroring_add_mc SESSION GROUP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from finsy import P4CloneSessionEntry, P4MulticastGroupEntry

from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.numbered import Numbered
from ringleaf.experiments.programs.words import check_form, numbers
from ringleaf.switches.p4runtime.replication import INSTANCES

_MOST_GROUPS, _MOST_SESSIONS = (1 << 16) - 1, (1 << 15) - 1


class PortedEntities(list[Any]):
    """The entities of a file, as finsy's objects.

    Attributes:
        ports: Those of groups, by their places in the file; a switch may have fewer.
    """

    ports: Mapping[str, Sequence[int]] = MappingProxyType({})


class _Node(NamedTuple):
    rid: int
    ports: Sequence[int]
    where: str  # of the line that says the ports


class _Session(NamedTuple):
    port: int | None
    group: int | None
    where: str


class ReplicaSources:
    """The multicast nodes, groups and clone sessions of the lines so far."""

    def __init__(self) -> None:
        self._nodes = Numbered[_Node]("node")
        self._groups: dict[int, list[int]] = {}  # group -> nodes
        self._homes: dict[int, int] = {}  # node -> group
        self._sessions: dict[int, _Session] = {}

    def commands(self) -> dict[str, Callable[[str, Sequence[str]], None]]:
        """Return the handlers of commands by name; each takes the line's place and its words."""
        return {
            "mc_mgrp_create": self._create_group,
            "mc_mgrp_destroy": self._destroy_group,
            "mc_node_create": self._create_node,
            "mc_node_update": self._update_node,
            "mc_node_destroy": self._destroy_node,
            "mc_node_associate": self._associate,
            "mc_node_dissociate": self._dissociate,
            "mirroring_add": self._mirror_to_port,
            "mirroring_add_mc": self._mirror_to_group,
            "mirroring_delete": self._stop_mirroring,
        }

    def _create_group(self, where: str, words: Sequence[str]) -> None:
        (group,) = numbers(where, words, 1)
        _check_range(where, "groups", group, 1, _MOST_GROUPS)
        self._groups.setdefault(group, [])  # BMv2 leaves one that is there as it is

    def _destroy_group(self, where: str, words: Sequence[str]) -> None:
        (group,) = numbers(where, words, 1)
        self._check(where, group)
        del self._groups[group]

    def _create_node(self, where: str, words: Sequence[str]) -> None:
        rid, *ports = numbers(where, _ports(where, words))
        _check_range(where, "instances", rid, 0, INSTANCES - 1)
        self._nodes.add(_Node(rid, _once(ports), where))

    def _update_node(self, where: str, words: Sequence[str]) -> None:
        _, *ports = numbers(where, _ports(where, words))
        node = self._nodes.number(where, words[0])
        self._nodes[node] = _Node(self._nodes[node].rid, _once(ports), where)
        for group, nodes in self._groups.items():
            if node in nodes:
                self._check_members(where, group)

    def _destroy_node(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 1, "mc_node_destroy NODE")
        node = self._nodes.number(where, words[0])
        self._nodes.remove(node)
        self._homes.pop(node, None)
        for nodes in self._groups.values():
            nodes[:] = [each for each in nodes if each != node]

    def _associate(self, where: str, words: Sequence[str]) -> None:
        group, node = numbers(where, words, 2)
        self._check(where, group)
        self._nodes.number(where, words[1])
        if node in self._homes:  # also of a group that was destroyed since
            raise ConfigError(
                f"{where}: a node must be in one group, as in BMv2, got node {node} for group "
                f"{group}, which is in {self._homes[node]}; create another node"
            )
        self._homes[node] = group
        self._groups[group].append(node)
        self._check_members(where, group)

    def _dissociate(self, where: str, words: Sequence[str]) -> None:
        group, node = numbers(where, words, 2)
        self._check(where, group)
        self._nodes.number(where, words[1])
        if node not in self._groups[group]:
            raise ConfigError(f"{where}: node must be in group {group}, got {node}")
        self._groups[group].remove(node)
        del self._homes[node]

    def _mirror_to_port(self, where: str, words: Sequence[str]) -> None:
        session, port = numbers(where, words, 2)
        _check_range(where, "sessions", session, 1, _MOST_SESSIONS)
        self._sessions[session] = _Session(port, None, where)

    def _mirror_to_group(self, where: str, words: Sequence[str]) -> None:
        session, group = numbers(where, words, 2)
        _check_range(where, "sessions", session, 1, _MOST_SESSIONS)
        self._sessions[session] = _Session(None, group, where)

    def _stop_mirroring(self, where: str, words: Sequence[str]) -> None:
        (session,) = numbers(where, words, 1)
        if self._sessions.pop(session, None) is None:
            raise ConfigError(f"{where}: session must have been added, got {session}")

    def _check_members(self, where: str, group: int) -> None:
        """Check that a group has no member twice, which P4Runtime can't say."""
        members = Counter(self._members(group))
        (port, rid), times = max(members.items(), key=lambda each: each[1], default=((0, 0), 0))
        if times > 1:
            raise ConfigError(
                f"{where}: a group must have a port once with each instance, got port {port} of "
                f"instance {rid} twice in group {group}"
            )

    def _check(self, where: str, group: int) -> None:
        if group not in self._groups:
            raise ConfigError(f"{where}: group must have been created, got {group}")

    def entities(self) -> list[Any]:
        """Return finsy's entities of the groups, then of the sessions."""
        groups = [
            P4MulticastGroupEntry(group, replicas=self._members(group)) for group in self._groups
        ]
        sessions = [
            P4CloneSessionEntry(
                session, replicas=self._members(group) if port is None else [(port, 0)]
            )
            for session, (port, group, _) in self._sessions.items()
        ]
        return [*groups, *sessions]

    def _members(self, group: int | None) -> list[tuple[int, int]]:
        """Return a group's ports, each with its instance; a group that is not there has none."""
        nodes = [self._nodes[node] for node in self._groups.get(-1 if group is None else group, [])]
        return [(port, node.rid) for node in nodes for port in node.ports]

    def ports(self) -> dict[str, Sequence[int]]:
        """Return the ports of groups, by the places of the lines that name them."""
        nodes = (self._nodes[node] for members in self._groups.values() for node in members)
        return {each.where: each.ports for each in nodes}


def check_ports(ports: Mapping[str, Sequence[int]], switch: str, count: int) -> None:
    """Check that a switch has the ports that a file names.

    Args:
        ports: Those ports, by their places in the file.
        switch: The switch, for the message.
        count: How many ports it has, from 1 on.

    Raises:
        ConfigError: If it has not.
    """
    for where, each in ports.items():
        for port in each:
            _check_range(where, f"ports of {switch}", port, 1, count)


def on_ports(entities: Sequence[Any], count: int) -> list[Any]:
    """Return entities without clones for ports from which nothing leads, of so many ports from 1.

    BMv2 takes any port in a session, like that of a controller, which listens in no run.
    """
    kept = []
    for entity in entities:
        if isinstance(entity, P4CloneSessionEntry) and entity.replicas:
            replicas = [(port, rid) for port, rid in entity.replicas if 1 <= port <= count]
            if not replicas:
                continue
            entity = replace(entity, replicas=replicas)
        kept.append(entity)
    return kept


def _once(ports: Sequence[int]) -> Sequence[int]:
    """Return ports without those that are there before: BMv2 keeps sets of them."""
    return tuple(dict.fromkeys(ports))


def _check_range(where: str, what: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise ConfigError(f"{where}: {what} are {least} to {most}, got {number}")


def _ports(where: str, words: Sequence[str]) -> list[str]:
    """Return the words without the sign of BMv2's groups of links, of which there may be none."""
    before = list(words[: words.index("|")] if "|" in words else words)
    if len(words) > len(before) + 1:
        raise ConfigError(f"{where}: nodes must name ports, and no lags, got {list(words)}")
    return before
