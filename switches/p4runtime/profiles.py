"""Members and groups of action profiles (section 9.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4r

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import (
    DELETE,
    INSERT,
    MemberGroupUpdate,
    MemberUpdate,
)
from ringleaf.switches.p4runtime.actions import decode_action, encode_action
from ringleaf.switches.p4runtime.one_shots import OneShots, check_weights, group_size
from ringleaf.switches.p4runtime.plane import Plane
from ringleaf.switches.p4runtime.schema import TableInfo


class Profiles:
    """Writes and reads p4.v1.ActionProfileMember and p4.v1.ActionProfileGroup."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._one_shots = OneShots(plane)

    def write_member(self, verb: str, message: Any) -> None:
        """Insert, modify or delete a member.

        Raises:
            ConfigError: If it has no action, or the profile refuses it.
        """
        profile, table = self._profile(message.action_profile_id)
        name, number = profile.preamble.name, self._number(message.member_id, "member")
        if verb == DELETE:
            self._plane.apply(MemberUpdate(verb, name, number))
            return
        if not message.HasField("action"):
            raise self._plane.refuse(f"action profile {name!r}: member has no action, got {verb}")
        where = f"{self._plane.where}: action profile {name!r}"
        call = decode_action(table, message.action, where)
        self._plane.apply(MemberUpdate(verb, name, number, *call))

    def write_group(self, verb: str, message: Any) -> None:
        """Insert, modify or delete a group, whose `max_size` stays as it was inserted.

        Raises:
            ConfigError: If the profile has no selector, or `max_size` changes.
        """
        plane = self._plane
        profile, _ = self._profile(message.action_profile_id)
        name, number = profile.preamble.name, self._number(message.group_id, "group")
        if not profile.with_selector:
            raise plane.refuse(f"action profile {name!r}: has no selector, got a group")
        key = (name, number)
        if verb == DELETE:
            plane.apply(MemberGroupUpdate(verb, name, number))
            plane.notes.profile_groups.pop(key, None)
            return
        self._check_group(profile, message)
        old = plane.notes.profile_groups.get(key)
        if verb != INSERT and old is not None and old.max_size != message.max_size:
            raise plane.refuse(
                f"action profile {name!r}: max_size of group {number} is {old.max_size},"
                f" got {message.max_size}"
            )
        members = tuple((member.member_id, member.weight) for member in message.members)
        plane.apply(MemberGroupUpdate(verb, name, number, members, message.max_size))
        plane.notes.profile_groups[key] = message

    def read_members(self, message: Any) -> Iterator[Any]:
        """Return the selected members, as p4.v1.Entity; id 0 selects all of a profile's."""
        exists = False
        for profile in self._selected(message.action_profile_id):
            hidden = self._hidden(profile.preamble.name)[0]
            tables = self._plane.schema.tables_of(profile)
            for member in self._plane.switch.members(profile.preamble.name) if tables else []:
                if member.member in hidden or message.member_id not in (0, member.member):
                    continue
                exists = True
                yield p4r.Entity(
                    action_profile_member=p4r.ActionProfileMember(
                        action_profile_id=profile.preamble.id,
                        member_id=member.member,
                        action=encode_action(tables[0], member.action, member.arguments),
                    )
                )
        self._check_exists("member", message.member_id, exists)

    def read_groups(self, message: Any) -> Iterator[Any]:
        """Return the selected groups, as p4.v1.Entity; id 0 selects all of a profile's."""
        exists = False
        for profile in self._selected(message.action_profile_id):
            if not profile.with_selector:
                continue
            hidden = self._hidden(profile.preamble.name)[1]
            for group in self._plane.switch.member_groups(profile.preamble.name):
                if group.group in hidden or message.group_id not in (0, group.group):
                    continue
                exists = True
                yield p4r.Entity(action_profile_group=self._encode_group(profile, group))
        self._check_exists("group", message.group_id, exists)

    def _profile(self, number: int) -> tuple[Any, TableInfo]:
        """Return a profile, and the table whose action numbers its members use."""
        profile = self._plane.schema.profile(number)
        self._one_shots.check_unused(profile)
        tables = self._plane.schema.tables_of(profile)
        if not tables:
            raise self._plane.refuse(
                f"action profile is never applied, got {profile.preamble.name!r}"
            )
        return profile, tables[0]

    def _number(self, number: int, what: str) -> int:
        if not number:
            raise self._plane.refuse(f"{what} id must not be 0, got 0")
        return number

    def _check_group(self, profile: Any, message: Any) -> None:
        """Check a group's members and max_size (section 9.2.2)."""
        plane, name = self._plane, profile.preamble.name
        numbers = [member.member_id for member in message.members]
        if len(set(numbers)) < len(numbers):
            raise plane.refuse(f"action profile {name!r}: a member is there twice, got {numbers}")
        limit = profile.max_group_size
        if message.max_size < 0 or (limit and message.max_size > limit):
            raise plane.refuse(
                f"action profile {name!r}: max_size is at most {limit}, got {message.max_size}"
            )
        check_weights(plane, profile, message.members)
        size = group_size(profile, message.members)
        if message.max_size and size > message.max_size:
            raise ConfigError(
                f"{plane.where}: action profile {name!r}: group {message.group_id} has room for"
                f" {message.max_size}, got {size}",
                Code.RESOURCE_EXHAUSTED,
            )

    def _selected(self, number: int) -> list[Any]:
        schema = self._plane.schema
        return [schema.profile(number)] if number else list(schema.profiles.values())

    def _hidden(self, name: str) -> tuple[set[int], set[int]]:
        """Return the members and groups that stand for action sets."""
        shots = [s for s in self._plane.notes.one_shots.values() if s.profile == name]
        return {member for shot in shots for member in shot.members}, {s.group for s in shots}

    def _check_exists(self, what: str, number: int, exists: bool) -> None:
        if number and not exists:
            raise ConfigError(f"{self._plane.where}: no such {what}, got {number}", Code.NOT_FOUND)

    def _encode_group(self, profile: Any, group: MemberGroupUpdate) -> Any:
        note = self._plane.notes.profile_groups.get((profile.preamble.name, group.group))
        if note is not None and group.members == tuple(
            (member.member_id, member.weight) for member in note.members
        ):
            return note  # it has the ports to watch, too
        members = [
            p4r.ActionProfileGroup.Member(member_id=number, weight=weight)
            for number, weight in group.members
        ]
        return p4r.ActionProfileGroup(
            action_profile_id=profile.preamble.id,
            group_id=group.group,
            members=members,
            max_size=group.max_size,
        )
