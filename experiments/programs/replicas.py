"""Multicast groups and clone sessions that commands make.

mc_mgrp_create GROUP; mc_node_create RID PORT ...; mc_node_associate GROUP NODE
mirroring_add SESSION PORT; mirroring_add_mc SESSION GROUP
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from finsy import P4CloneSessionEntry, P4MulticastGroupEntry

from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.numbered import Numbered
from ringleaf.experiments.programs.words import check_form, numbers


class ReplicaSources:
    """The multicast nodes, groups and clone sessions of the lines so far."""

    def __init__(self) -> None:
        self._nodes = Numbered[tuple[int, list[int]]]("node")  # rid, ports
        self._groups: dict[int, list[int]] = {}  # group -> nodes
        self._sessions: dict[int, tuple[int | None, int | None]] = {}  # session -> port, group

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
        self._groups[group] = []

    def _destroy_group(self, where: str, words: Sequence[str]) -> None:
        (group,) = numbers(where, words, 1)
        self._check(where, group)
        del self._groups[group]

    def _create_node(self, where: str, words: Sequence[str]) -> None:
        rid, *ports = numbers(where, _ports(where, words))
        self._nodes.add((rid, ports))

    def _update_node(self, where: str, words: Sequence[str]) -> None:
        _, *ports = numbers(where, _ports(where, words))
        node = self._nodes.number(where, words[0])
        self._nodes[node] = self._nodes[node][0], ports

    def _destroy_node(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 1, "mc_node_destroy NODE")
        node = self._nodes.number(where, words[0])
        self._nodes.remove(node)
        for nodes in self._groups.values():
            nodes[:] = [each for each in nodes if each != node]

    def _associate(self, where: str, words: Sequence[str]) -> None:
        group, node = numbers(where, words, 2)
        self._check(where, group)
        self._nodes.number(where, words[1])
        self._groups[group].append(node)

    def _dissociate(self, where: str, words: Sequence[str]) -> None:
        group, node = numbers(where, words, 2)
        self._check(where, group)
        self._nodes.number(where, words[1])
        if node not in self._groups[group]:
            raise ConfigError(f"{where}: node must be in group {group}, got {node}")
        self._groups[group].remove(node)

    def _mirror_to_port(self, where: str, words: Sequence[str]) -> None:
        session, port = numbers(where, words, 2)
        self._sessions[session] = port, None

    def _mirror_to_group(self, where: str, words: Sequence[str]) -> None:
        session, group = numbers(where, words, 2)
        self._sessions[session] = None, group

    def _stop_mirroring(self, where: str, words: Sequence[str]) -> None:
        (session,) = numbers(where, words, 1)
        if self._sessions.pop(session, None) is None:
            raise ConfigError(f"{where}: session must have been added, got {session}")

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
            for session, (port, group) in self._sessions.items()
        ]
        return [*groups, *sessions]

    def _members(self, group: int | None) -> list[tuple[int, int]]:
        """Return a group's ports, each with its instance; a group that is not there has none."""
        nodes = [self._nodes[node] for node in self._groups.get(-1 if group is None else group, [])]
        return [(port, rid) for rid, ports in nodes for port in ports]


def _ports(where: str, words: Sequence[str]) -> list[str]:
    """Return the words without the sign of BMv2's groups of links, of which there may be none."""
    before = list(words[: words.index("|")] if "|" in words else words)
    if len(words) > len(before) + 1:
        raise ConfigError(f"{where}: nodes must name ports, and no lags, got {list(words)}")
    return before
