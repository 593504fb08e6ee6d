"""Action profiles: actions that table entries share, alone or in groups.

Source: behavioral-model `src/bm_sim/action_profile.cpp`, P4Runtime section 9.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ringleaf.core.units import format_count
from ringleaf.errors import Code, ConfigError
from ringleaf.switches.engine.updates import (
    DELETE,
    INSERT,
    MemberGroup,
    MemberGroupUpdate,
    MemberUpdate,
    ProfileMember,
)
from ringleaf.switches.source import ActionProfile, ActionSource


class Profile:
    """The members and groups of one action profile of one switch.

    `in_use` says whether a table entry refers to a member or a group.
    """

    def __init__(
        self,
        profile: ActionProfile,
        actions: Mapping[int, ActionSource],
        where: str,
        in_use: Callable[[str, ProfileMember | MemberGroup], bool],
    ) -> None:
        self._profile = profile
        self._actions = actions  # the actions of its tables
        self._where = f"{where}: action profile {profile.name!r}"
        self._in_use = in_use
        self.members: dict[int, MemberUpdate] = {}
        self.groups: dict[int, MemberGroupUpdate] = {}
        self._handles: dict[int, int] = {}  # BMv2's numbers of members, the lowest that is free

    def update_member(self, update: MemberUpdate) -> None:
        """Insert, modify or delete a member; one that is in use cannot be deleted.

        Raises:
            ConfigError: If it is not possible; RESOURCE_EXHAUSTED if the profile is full.
        """
        where = f"{self._where}: member {update.member}"
        self._check_presence(where, update.verb, update.member in self.members)
        if update.verb == DELETE:
            self._check_unused(where, ProfileMember(update.member))
            del self.members[update.member], self._handles[update.member]
            return
        self._check_action(where, update)
        if update.verb == INSERT:
            if len(self.members) >= self._profile.max_size > 0:
                raise ConfigError(
                    f"{where}: profile is full, got one more than {self._profile.max_size}",
                    Code.RESOURCE_EXHAUSTED,
                )
            taken = set(self._handles.values())
            count = len(taken)
            handle = count if max(taken, default=-1) < count else min(set(range(count)) - taken)
            self._handles[update.member] = handle
        self.members[update.member] = replace(update, verb=INSERT)

    def update_group(self, update: MemberGroupUpdate) -> None:
        """Insert, modify or delete a group; one that is in use cannot be deleted.

        Raises:
            ConfigError: If it is not possible, as the profile has no selector.
        """
        where = f"{self._where}: group {update.group}"
        if not self._profile.selector:
            raise ConfigError(f"{where}: profile has no selector, got a group")
        self._check_presence(where, update.verb, update.group in self.groups)
        if update.verb == DELETE:
            self._check_unused(where, MemberGroup(update.group))
            del self.groups[update.group]
            return
        self._check_members(where, update)
        self.groups[update.group] = replace(update, verb=INSERT)

    def check(self, where: str, reference: ProfileMember | MemberGroup) -> None:
        """Raise ConfigError if there is no such member or group."""
        there = self.members if isinstance(reference, ProfileMember) else self.groups
        if reference.number not in there:
            raise ConfigError(
                f"{where}: not in its action profile, got {reference}", Code.NOT_FOUND
            )

    def slots(self, group: int) -> list[MemberUpdate]:
        """Return the members that a group's selector picks from, each as often as its weight.

        BMv2 keeps them in order of its handles; a member's further copies come after all members.
        """
        members = sorted(self.groups[group].members, key=lambda pair: self._handles[pair[0]])
        most = max((weight for _, weight in members), default=0)
        return [
            self.members[member]
            for turn in range(most)
            for member, weight in members
            if weight > turn
        ]

    def _check_presence(self, where: str, verb: str, present: bool) -> None:
        if verb == INSERT and present:
            raise ConfigError(f"{where}: exists already, got an insert", Code.ALREADY_EXISTS)
        if verb != INSERT and not present:
            raise ConfigError(f"{where}: does not exist, got {verb} of it", Code.NOT_FOUND)

    def _check_unused(self, where: str, reference: ProfileMember | MemberGroup) -> None:
        grouped = isinstance(reference, ProfileMember) and any(
            reference.number == member
            for group in self.groups.values()
            for member, _ in group.members
        )
        if grouped or self._in_use(self._profile.name, reference):
            raise ConfigError(f"{where}: is in use, got a delete", Code.FAILED_PRECONDITION)

    def _check_action(self, where: str, update: MemberUpdate) -> None:
        action = self._actions.get(update.action)
        if action is None:
            raise ConfigError(f"{where}: no table has this action, got {update.action}")
        check_arguments(where, action, update.arguments)

    def _check_members(self, where: str, update: MemberGroupUpdate) -> None:
        for member, weight in update.members:
            if member not in self.members:
                raise ConfigError(f"{where}: no such member, got {member}", Code.NOT_FOUND)
            if weight < 1:
                raise ConfigError(f"{where}: weight must be at least 1, got {weight}")
        numbers = [member for member, _ in update.members]
        if len(set(numbers)) < len(numbers):
            raise ConfigError(f"{where}: a member twice, got {numbers}; give it a weight")
        total = sum(weight for _, weight in update.members)
        if total > update.max_size > 0:
            raise ConfigError(
                f"{where}: at most {update.max_size} in all, got {total}", Code.RESOURCE_EXHAUSTED
            )


def check_arguments(where: str, action: ActionSource, arguments: tuple[int, ...]) -> None:
    """Raise ConfigError if an action can't have these arguments."""
    if len(arguments) != len(action.widths):
        raise ConfigError(
            f"{where}: {action.name} takes {format_count(len(action.widths), 'argument')}, got "
            f"{len(arguments)}"
        )
    for value, width in zip(arguments, action.widths, strict=True):
        if not 0 <= value < 1 << width:
            raise ConfigError(
                f"{where}: {action.name} takes {format_count(width, 'bit')}, got {value}"
            )
