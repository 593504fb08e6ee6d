"""Action sets: an entry, a group and its members in one message (section 9.2.3).

The switch knows groups and members only, so each set gets its own, which reads never return.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from finsy.proto import p4i

from ringleaf.errors import Code
from ringleaf.switches.engine.updates import (
    DELETE,
    INSERT,
    InstalledEntry,
    MemberGroup,
    MemberGroupUpdate,
    MemberUpdate,
    TableUpdate,
)
from ringleaf.switches.p4runtime.actions import Call, decode_action
from ringleaf.switches.p4runtime.notes import Key, OneShot
from ringleaf.switches.p4runtime.plane import Plane
from ringleaf.switches.p4runtime.schema import TableInfo


class OneShots:
    """Writes entries with a p4.v1.ActionProfileActionSet."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._numbers = count(1)  # of members and groups

    def write(
        self, verb: str, table: TableInfo, entry: InstalledEntry, message: Any, key: Key
    ) -> None:
        """Apply a set as the action of an entry; nothing is done if any part of it is refused."""
        plane = self._plane
        calls = self._decode(table, message)
        name = plane.schema.profile(table.profile).preamble.name
        members = [MemberUpdate(INSERT, name, next(self._numbers), *call) for call in calls]
        weights = [item.weight for item in message.action_profile_actions]
        group = MemberGroupUpdate(
            INSERT,
            name,
            next(self._numbers),
            tuple((m.member, weight) for m, weight in zip(members, weights, strict=True)),
        )
        shot = OneShot(message, name, group.group, tuple(m.member for m in members))
        entry.indirect = MemberGroup(group.group)
        done = False
        try:
            plane.apply(*members, group, TableUpdate(verb, table.name, entry, False))
            done = True
        finally:
            if not done:
                self._remove(shot)
        self.forget(plane.notes.one_shots.get(key))
        plane.notes.one_shots[key] = shot

    def forget(self, shot: OneShot | None) -> None:
        """Remove the group and members of a set that no entry uses any more."""
        if shot:
            self._remove(shot)

    def check_unused(self, profile: Any) -> None:
        """Refuse a profile that action sets have written: it takes no other members or groups."""
        shots = self._plane.notes.one_shots.values()
        name = profile.preamble.name
        if any(shot.profile == name for shot in shots):
            raise self._plane.refuse(
                f"action profile {name!r}: is written by action sets, got something else"
            )

    def _remove(self, shot: OneShot) -> None:
        """Remove a set's group and members, as far as they exist."""
        switch, name = self._plane.switch, shot.profile
        if any(group.group == shot.group for group in switch.member_groups(name)):
            self._plane.apply(MemberGroupUpdate(DELETE, name, shot.group))
        there = {member.member for member in switch.members(name)}
        for number in shot.members:
            if number in there:
                self._plane.apply(MemberUpdate(DELETE, name, number))

    def _decode(self, table: TableInfo, message: Any) -> list[Call]:
        where = f"{self._plane.where}: table {table.name!r}"
        profile = self._plane.schema.profiles.get(table.profile, p4i.ActionProfile())
        if not profile.with_selector:
            raise self._plane.refuse(f"table {table.name!r}: has no selector, got an action set")
        if message.action_selection_mode or message.size_semantics:
            raise self._plane.refuse(
                f"table {table.name!r}: selects as its program says, got another mode",
                Code.UNIMPLEMENTED,
            )
        self._check_no_members(profile)
        check_weights(self._plane, profile, message.action_profile_actions)
        return [decode_action(table, item.action, where) for item in message.action_profile_actions]

    def _check_no_members(self, profile: Any) -> None:
        name = profile.preamble.name
        ours = {
            number
            for shot in self._plane.notes.one_shots.values()
            if shot.profile == name
            for number in shot.members
        }
        if any(member.member not in ours for member in self._plane.switch.members(name)):
            raise self._plane.refuse(
                f"action profile {name!r}: is written by members, got an action set"
            )


def check_weights(plane: Plane, profile: Any, items: Any) -> None:
    """Check members of a group, or actions of a set: their weights, sizes and ports to watch.

    Raises:
        ConfigError: If a weight is invalid, the group is too large, or there is no such port.
    """
    name = profile.preamble.name
    for item in items:
        plane.check_watch(item)
        if item.weight < 1:
            raise plane.refuse(
                f"action profile {name!r}: weights must be at least 1, got {item.weight}"
            )
        heaviest = profile.sum_of_members.max_member_weight
        if heaviest and item.weight > heaviest:
            raise plane.refuse(
                f"action profile {name!r}: weights are at most {heaviest}, got {item.weight}"
            )
    size = group_size(profile, items)
    if profile.max_group_size and size > profile.max_group_size:
        raise plane.refuse(
            f"action profile {name!r}: groups have at most {profile.max_group_size}, got {size}"
        )


def group_size(profile: Any, items: Any) -> int:
    """Return the size of a group, as its selector counts (p4info.proto, ActionProfile)."""
    if profile.WhichOneof("selector_size_semantics") == "sum_of_members":
        return len(items)
    return sum(item.weight for item in items)
