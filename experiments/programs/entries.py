"""Tables' entries and action profiles' members and groups that commands make.

    table_add TABLE ACTION KEY ... => ARGUMENT ... [PRIORITY]
    table_set_default TABLE ACTION ARGUMENT ...; table_modify, table_delete, table_reset_default
    act_prof_create_member PROFILE ACTION ARGUMENT ...; act_prof_create_group PROFILE
    act_prof_add_member_to_group PROFILE MEMBER GROUP
    table_indirect_add TABLE KEY ... => MEMBER [PRIORITY]; table_indirect_add_with_group

Of priorities BMv2's smallest wins, P4Runtime's largest. BMv2 numbers members from 0, P4Runtime does
not take 0 for a number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from finsy import (
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4IndirectAction,
    P4Member,
    P4Schema,
    P4TableEntry,
)
from finsy.p4schema import P4MatchType

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.matching import action_call, full_name, table_entry
from ringleaf.experiments.programs.words import check_form, numbers
from ringleaf.switches.stf.commands import whole

LEAST_PRIORITY = (1 << 31) - 1  # P4Runtime's largest, for BMv2's 0

_RANKED = (P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL)


class Entries:
    """The entities of the lines so far; None takes the place of what was deleted."""

    def __init__(self, schema: P4Schema) -> None:
        self._schema = schema
        self._entries: dict[str, list[P4TableEntry | None]] = {}  # by table
        self._defaults: dict[str, P4TableEntry] = {}
        self._members: dict[str, list[Any | None]] = {}  # by profile: actions
        self._groups: dict[str, list[list[int] | None]] = {}  # by profile: members
        self._order: list[tuple[str, int]] = []  # tables and numbers of entries

    def commands(self) -> dict[str, Callable[[str, Sequence[str]], None]]:
        """Return the handlers of commands by name; each takes the line's place and its words."""
        profile = {
            "create_member": self._create_member,
            "modify_member": self._modify_member,
            "delete_member": self._delete_member,
            "create_group": self._create_group,
            "delete_group": self._delete_group,
            "add_member_to_group": self._join,
            "remove_member_from_group": self._part,
        }
        return {
            "table_add": self._add,
            "table_modify": self._modify,
            "table_delete": self._delete,
            "table_set_default": self._set_default,
            "table_reset_default": self._reset_default,
            "table_indirect_add": partial(self._add_reference, "member"),
            "table_indirect_add_with_group": partial(self._add_reference, "group"),
            "table_indirect_delete": self._delete,
            "table_indirect_set_default": partial(self._refer_default, "member"),
            "table_indirect_set_default_with_group": partial(self._refer_default, "group"),
            "table_indirect_reset_default": self._reset_default,
            **{f"act_prof_{name}": command for name, command in profile.items()},
            **{
                f"table_indirect_{name}": partial(self._of_table, command)
                for name, command in profile.items()
            },
        }

    # Tables.

    def _table(self, where: str, name: str) -> Any:
        known = {each.name: each for each in self._schema.tables}
        return known[full_name(where, "table", name, known)]

    def _add(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "table_add TABLE ACTION KEYS => ARGUMENTS")
        table, action, *rest = words
        keys, arguments, priority = self._split(where, table, rest)
        self._keep(where, table, action, arguments, keys, priority)

    def _add_reference(self, kind: str, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, f"table_indirect_add TABLE KEYS => {kind.upper()}")
        table, *rest = words
        keys, arguments, priority = self._split(where, table, rest)
        reference = self._reference(where, kind, table, arguments)
        self._keep(where, table, reference, (), keys, priority)

    def _split(
        self, where: str, table: str, words: Sequence[str]
    ) -> tuple[list[Any], list[str], int | None]:
        """Return the keys, the arguments, and the priority if this table's entries have one."""
        split = words.index("=>") if "=>" in words else len(words)
        keys, arguments = list(words[:split]), list(words[split + 1 :])
        kinds = [each.match_type for each in self._table(where, table).match_fields]
        priority = None
        if any(kind in _RANKED for kind in kinds):
            if not arguments:
                raise ConfigError(f"{where}: an entry of this table needs a priority, got none")
            priority = LEAST_PRIORITY - whole(where, arguments.pop())
        if len(keys) != len(kinds):
            raise ConfigError(
                f"{where}: table {table} has {format_count(len(kinds), 'key')}, got {keys}"
            )
        return [_key(*pair) for pair in zip(keys, kinds, strict=True)], arguments, priority

    def _keep(
        self,
        where: str,
        table: str,
        action: str | P4IndirectAction,
        arguments: Sequence[str],
        keys: list[Any],
        priority: int | None,
    ) -> None:
        entry = table_entry(
            where,
            self._schema,
            table,
            action=action,
            arguments=arguments,
            keys=keys,
            priority=priority,
        )
        own = self._entries.setdefault(entry.table_id, [])
        self._order.append((entry.table_id, len(own)))
        own.append(entry)

    def _modify(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 3, "table_modify TABLE ACTION ENTRY ARGUMENTS")
        table, action, handle, *arguments = words
        table_info = self._table(where, table)
        entries = self._entries.get(table_info.name, [])
        number = _there(where, "entry", handle, entries)
        operands = [word for word in arguments if word != "=>"]
        old = entries[number]
        assert old is not None
        call = action_call(where, table_info.actions, action, operands)
        entries[number] = replace(old, action=call)

    def set_direct(self, where: str, table: str, handle: str | None, **data: Any) -> None:
        """Set the `counter_data` or `meter_config` of one entry of a table, or of all so far.

        Raises:
            ConfigError: If there is no such entry.
        """
        entries = self._entries.get(table, [])
        numbered = (
            range(len(entries)) if handle is None else [_there(where, "entry", handle, entries)]
        )
        for number in numbered:
            old = entries[number]
            entries[number] = None if old is None else replace(old, **data)

    def _delete(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "table_delete TABLE ENTRY")
        entries = self._entries.get(self._table(where, words[0]).name, [])
        entries[_there(where, "entry", words[1], entries)] = None

    def _set_default(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "table_set_default TABLE ACTION ARGUMENTS")
        table, action, *arguments = words
        arguments = [word for word in arguments if word != "=>"]
        entry = table_entry(
            where, self._schema, table, action=action, arguments=arguments, keys=None
        )
        constant = self._table(where, table).const_default_action
        if constant is None or arguments or constant.name != entry.action.name:
            self._defaults[entry.table_id] = entry  # else it is, and stays, as it is said

    def _refer_default(self, kind: str, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, f"table_indirect_set_default TABLE {kind.upper()}")
        reference = self._reference(where, kind, words[0], words[1:])
        entry = table_entry(
            where, self._schema, words[0], action=reference, arguments=(), keys=None
        )
        self._defaults[entry.table_id] = entry

    def _reset_default(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 1, "table_reset_default TABLE")
        self._defaults.pop(self._table(where, words[0]).name, None)

    # Action profiles.

    def _of_table(
        self, command: Callable[[str, Sequence[str]], None], where: str, words: Sequence[str]
    ) -> None:
        """Carry out an older command, which names a table instead of its profile."""
        check_form(where, words, 1, "a command with a table's name")
        command(where, [self._profile_of(where, words[0]), *words[1:]])

    def _profile_of(self, where: str, table: str) -> str:
        profile = self._table(where, table).action_profile
        if profile is None:
            raise ConfigError(f"{where}: table must have an action profile, got {table!r}")
        return str(profile.name)

    def _profile(self, where: str, name: str) -> str:
        return full_name(
            where, "action profile", name, [each.name for each in self._schema.action_profiles]
        )

    def _reference(
        self, where: str, kind: str, table: str, words: Sequence[str]
    ) -> P4IndirectAction:
        profile = self._profile_of(where, table)
        known: list[Any] = (self._members if kind == "member" else self._groups).get(profile, [])
        if len(words) != 1:
            raise ConfigError(f"{where}: must name one {kind}, got {list(words)}")
        number = _there(where, kind, words[0], known) + 1
        if kind == "member":
            return P4IndirectAction(member_id=number)
        return P4IndirectAction(group_id=number)

    def _call(self, where: str, profile: str, action: str, arguments: Sequence[str]) -> Any:
        tables = [t for t in self._schema.tables if t.action_profile is not None]
        actions = [a for t in tables if t.action_profile.name == profile for a in t.actions]
        return action_call(where, actions, action, [word for word in arguments if word != "=>"])

    def _create_member(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "act_prof_create_member PROFILE ACTION ARGUMENTS")
        profile = self._profile(where, words[0])
        call = self._call(where, profile, words[1], words[2:])
        self._members.setdefault(profile, []).append(call)

    def _modify_member(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 3, "act_prof_modify_member PROFILE ACTION MEMBER ARGUMENTS")
        profile = self._profile(where, words[0])
        members = self._members.get(profile, [])
        number = _there(where, "member", words[2], members)
        members[number] = self._call(where, profile, words[1], words[3:])

    def _delete_member(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "act_prof_delete_member PROFILE MEMBER")
        members = self._members.get(self._profile(where, words[0]), [])
        members[_there(where, "member", words[1], members)] = None

    def _create_group(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 1, "act_prof_create_group PROFILE")
        self._groups.setdefault(self._profile(where, words[0]), []).append([])

    def _delete_group(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "act_prof_delete_group PROFILE GROUP")
        groups = self._groups.get(self._profile(where, words[0]), [])
        groups[_there(where, "group", words[1], groups)] = None

    def _join(self, where: str, words: Sequence[str]) -> None:
        group, member = self._membership(where, words)
        group.append(member)

    def _part(self, where: str, words: Sequence[str]) -> None:
        group, member = self._membership(where, words)
        if member not in group:
            raise ConfigError(f"{where}: member must be in the group, got {member}")
        group.remove(member)

    def _membership(self, where: str, words: Sequence[str]) -> tuple[list[int], int]:
        check_form(where, words, 3, "act_prof_add_member_to_group PROFILE MEMBER GROUP")
        profile = self._profile(where, words[0])
        groups = self._groups.get(profile, [])
        group = groups[_there(where, "group", words[2], groups)]
        assert group is not None
        return group, _there(where, "member", words[1], self._members.get(profile, []))

    def entities(self) -> list[Any]:
        """Return finsy's entities, in an order in which each finds what it refers to."""
        members = [
            P4ActionProfileMember(profile, member_id=number, action=action)
            for profile, actions in self._members.items()
            for number, action in enumerate(actions, start=1)
            if action is not None
        ]
        groups = [
            P4ActionProfileGroup(
                profile,
                group_id=number,
                members=[P4Member(member + 1, weight=1) for member in group],
            )
            for profile, own in self._groups.items()
            for number, group in enumerate(own, start=1)
            if group is not None
        ]
        entries = [self._entries[table][number] for table, number in self._order]
        return [*members, *groups, *self._defaults.values(), *filter(None, entries)]


def _there(where: str, what: str, word: str, known: Sequence[Any]) -> int:
    """Return the number of what has been created, and not deleted."""
    (number,) = numbers(where, [word], 1)
    if not 0 <= number < len(known) or known[number] is None:
        raise ConfigError(f"{where}: {what} must have been created, got {word!r}")
    return number


def _key(text: str, kind: Any) -> Any:
    for mark, match_type in (("&&&", P4MatchType.TERNARY), ("->", P4MatchType.RANGE)):
        if kind == match_type and mark in text:
            return tuple(text.split(mark, 1))
    if kind == P4MatchType.LPM and "/" in text:
        value, _, length = text.partition("/")
        if not length.isdecimal():
            return text  # finsy says what is wrong with it
        return (value, int(length)) if int(length) else None
    return text
