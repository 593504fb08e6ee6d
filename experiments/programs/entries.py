"""Tables' entries and action profiles' members and groups that commands make.

    table_add TABLE ACTION KEY ... => ARGUMENT ... [PRIORITY]
    table_set_default TABLE ACTION ARGUMENT ...; table_reset_default TABLE
    table_modify TABLE ACTION ENTRY ARGUMENT ...; table_delete TABLE ENTRY; table_clear TABLE
    table_set_timeout TABLE ENTRY MILLISECONDS
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
    P4MeterConfig,
    P4Schema,
    P4TableAction,
    P4TableEntry,
)
from finsy.p4schema import P4MatchType

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.programs.matching import (
    MARKS,
    RANKED,
    action_call,
    of_name,
    place_in,
    table_entry,
)
from ringleaf.experiments.programs.numbered import Numbered, place_of
from ringleaf.experiments.programs.words import check_form, numbers
from ringleaf.switches.stf.commands import whole

LEAST_PRIORITY = (1 << 31) - 1  # P4Runtime's largest, for BMv2's 0


class Entries:
    """The entities of the lines so far."""

    def __init__(self, schema: P4Schema) -> None:
        self._schema = schema
        self._defaults: dict[str, P4TableEntry] = {}
        self._entries = {
            each.name: Numbered[P4TableEntry]("entry", rounds=True) for each in schema.tables
        }
        self._places: dict[str, dict[tuple[object, ...], str]] = {
            name: {}
            for name in self._entries  # by what tells entries apart, their lines
        }
        self._metered: dict[str, dict[int | None, P4MeterConfig]] = {  # by place; None: all others
            name: {} for name in self._entries
        }
        profiles = [each.name for each in schema.action_profiles]
        self._members = {name: Numbered[P4TableAction]("member") for name in profiles}
        self._groups = {name: Numbered[list[int]]("group") for name in profiles}

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
            "table_clear": self._clear,
            "table_set_timeout": self._set_timeout,
            "table_set_default": self._set_default,
            "table_reset_default": self._reset_default,
            "table_indirect_add": partial(self._add_reference, "member"),
            "table_indirect_add_with_group": partial(self._add_reference, "group"),
            "table_indirect_delete": self._delete,
            **{f"act_prof_{name}": command for name, command in profile.items()},
            **{
                f"table_indirect_{name}": partial(self._of_table, command)
                for name, command in profile.items()
            },
        }

    # Tables.

    def _table(self, where: str, name: str) -> Any:
        return of_name(where, "table", name, self._schema.tables)

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
        fields = list(self._table(where, table).match_fields)
        if not fields:
            raise ConfigError(
                f"{where}: entries need keys, got table {table!r}, which has none; use "
                "table_set_default"
            )
        priority = None
        if any(field.match_type in RANKED for field in fields):
            if not arguments:
                raise ConfigError(f"{where}: an entry of this table needs a priority, got none")
            priority = _priority(where, arguments.pop())
        if len(keys) != len(fields):
            raise ConfigError(
                f"{where}: table {table} has {format_count(len(fields), 'key')}, got {keys}"
            )
        return [_key(where, *pair) for pair in zip(keys, fields, strict=True)], arguments, priority

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
        places = self._places[entry.table_id]
        if (other := places.setdefault(place_in(self._schema, entry), where)) != where:
            raise ConfigError(
                f"{where}: an entry must have keys of its own, got those of {other}; use "
                "table_modify"
            )
        entries, metered = self._entries[entry.table_id], self._metered[entry.table_id]
        number = entries.add(entry)
        config = metered.get(place_of(number), metered.get(None))
        entries[number] = replace(entry, meter_config=config)

    def _modify(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 3, "table_modify TABLE ACTION ENTRY ARGUMENTS")
        table, action, handle, *arguments = words
        table_info = self._table(where, table)
        entries = self._entries[table_info.name]
        number = entries.number(where, handle)
        operands = [word for word in arguments if word != "=>"]
        call = action_call(where, table_info.actions, action, operands)
        entries[number] = replace(entries[number], action=call)

    def set_rates(self, where: str, table: str, handle: str | None, config: P4MeterConfig) -> None:
        """Set the meter of one entry of a table, or of all.

        In BMv2 the entries that later take the places of these have the meters, too.

        Raises:
            ConfigError: If there is no such entry.
        """
        self.set_direct(where, table, handle, meter_config=config)
        if handle is None:
            self._metered[table] = {None: config}
        else:
            number = self._entries[table].number(where, handle)
            self._metered[table][place_of(number)] = config

    def set_direct(self, where: str, table: str, handle: str | None, **data: Any) -> None:
        """Set the `counter_data` or `meter_config` of one entry of a table, or of all so far.

        Raises:
            ConfigError: If there is no such entry.
        """
        entries = self._entries[table]
        meant = None if handle is None else entries.number(where, handle)
        for number, old in entries:
            if meant in (None, number):
                entries[number] = replace(old, **data)

    def _delete(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "table_delete TABLE ENTRY")
        name = self._table(where, words[0]).name
        entries = self._entries[name]
        number = entries.number(where, words[1])
        del self._places[name][place_in(self._schema, entries[number])]
        entries.remove(number)

    def _clear(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 1, "table_clear TABLE")
        name = self._table(where, words[0]).name
        self._entries[name] = Numbered("entry", rounds=True)
        self._places[name] = {}

    def _set_timeout(self, where: str, words: Sequence[str]) -> None:
        """Check the line only: BMv2 tells a controller of entries that are idle, and keeps them."""
        check_form(where, words, 3, "table_set_timeout TABLE ENTRY MILLISECONDS")
        name = self._table(where, words[0]).name
        self._entries[name].number(where, words[1])
        numbers(where, words[2:], 1)

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
        profile = of_name(where, "action profile", name, self._schema.action_profiles)
        return str(profile.name)

    def _reference(
        self, where: str, kind: str, table: str, words: Sequence[str]
    ) -> P4IndirectAction:
        profile = self._profile_of(where, table)
        if len(words) != 1:
            raise ConfigError(f"{where}: must name one {kind}, got {list(words)}")
        if kind == "member":
            return P4IndirectAction(member_id=self._members[profile].number(where, words[0]) + 1)
        return P4IndirectAction(group_id=self._groups[profile].number(where, words[0]) + 1)

    def _call(self, where: str, profile: str, action: str, arguments: Sequence[str]) -> Any:
        tables = [t for t in self._schema.tables if t.action_profile is not None]
        actions = [a for t in tables if t.action_profile.name == profile for a in t.actions]
        return action_call(where, actions, action, [word for word in arguments if word != "=>"])

    def _create_member(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "act_prof_create_member PROFILE ACTION ARGUMENTS")
        profile = self._profile(where, words[0])
        call = self._call(where, profile, words[1], words[2:])
        self._members[profile].add(call)

    def _modify_member(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 3, "act_prof_modify_member PROFILE ACTION MEMBER ARGUMENTS")
        profile = self._profile(where, words[0])
        members = self._members[profile]
        number = members.number(where, words[2])
        members[number] = self._call(where, profile, words[1], words[3:])

    def _delete_member(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "act_prof_delete_member PROFILE MEMBER")
        members = self._members[self._profile(where, words[0])]
        members.remove(members.number(where, words[1]))

    def _create_group(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 1, "act_prof_create_group PROFILE")
        self._groups[self._profile(where, words[0])].add([])

    def _delete_group(self, where: str, words: Sequence[str]) -> None:
        check_form(where, words, 2, "act_prof_delete_group PROFILE GROUP")
        groups = self._groups[self._profile(where, words[0])]
        groups.remove(groups.number(where, words[1]))

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
        groups = self._groups[profile]
        group = groups[groups.number(where, words[2])]
        return group, self._members[profile].number(where, words[1])

    def entities(self) -> list[Any]:
        """Return finsy's entities, in an order in which each finds what it refers to."""
        members = [
            P4ActionProfileMember(profile, member_id=number + 1, action=action)
            for profile, actions in self._members.items()
            for number, action in actions
        ]
        groups = [
            P4ActionProfileGroup(
                profile,
                group_id=number + 1,
                members=[P4Member(member + 1, weight=1) for member in group],
            )
            for profile, own in self._groups.items()
            for number, group in own
        ]
        entries = [entry for own in self._entries.values() for _, entry in own]
        return [*members, *groups, *self._defaults.values(), *entries]


def _priority(where: str, text: str) -> int:
    """Return P4Runtime's priority for BMv2's, of which the least wins."""
    number = whole(where, text)
    if not 0 <= number < LEAST_PRIORITY:
        raise ConfigError(f"{where}: priority must be 0 to {LEAST_PRIORITY - 1}, got {text!r:.60}")
    return LEAST_PRIORITY - number


def _key(where: str, text: str, field: Any) -> Any:
    """Return a key's value, or its two values; None: it matches anything.

    Raises:
        ConfigError: If it has not the sign that stands between two values.
    """
    kind = field.match_type
    mark = MARKS.get(kind)
    if mark is None or (kind == P4MatchType.OPTIONAL and mark not in text):
        return text
    if mark not in text:
        raise ConfigError(
            f"{where}: key {field.name!r} must have {mark} in it, as in BMv2, got {text!r:.60}"
        )
    if kind == P4MatchType.LPM:
        value, _, length = text.partition("/")
        if not length.isdecimal():
            return text  # finsy says what is wrong with it
        return (value, int(length)) if int(length) else None
    return tuple(text.split(mark))
