"""Names and values of tables as people write them, as finsy's objects want them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from finsy import P4IndirectAction, P4Schema, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4schema import P4MatchType
from finsy.p4values import all_ones, encode_exact

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError, choose
from ringleaf.switches.p4runtime.finsy_forms import CLOSED

NO_ACTION = "NoAction"

MARKS = {
    P4MatchType.LPM: "/",
    P4MatchType.TERNARY: "&&&",
    P4MatchType.RANGE: "->",
    P4MatchType.OPTIONAL: "&&&",
}
"""What stands between a key's two values; BMv2 refuses keys without it."""

RANKED = (P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL)
"""Kinds of keys whose tables' entries have priorities."""


def full_name(where: str, what: str, name: str, known: Iterable[str]) -> str:
    """Return the full name that a name, or the end of one, stands for.

    Raises:
        ConfigError: If there is none, or more than one.
    """
    names = list(known)
    if name in names:
        return name
    candidates = [each for each in names if each.endswith(f".{name}")]
    if len(candidates) > 1:
        raise ConfigError(
            f"{where}: {what} must be unambiguous, got {name!r} for {sorted(candidates)}"
        )
    return candidates[0] if candidates else choose(where, what, name, names)


def of_name(where: str, what: str, name: str, objects: Iterable[Any]) -> Any:
    """Return the one of finsy's objects that a name, an alias or the end of a name stands for.

    Raises:
        ConfigError: If there is none, or more than one.
    """
    known = {each.name: each for each in objects}
    if name not in known:
        name = {each.alias: each.name for each in known.values()}.get(name, name)
    return known[full_name(where, what, name, known)]


def action_call(
    where: str, actions: Iterable[Any], name: str, arguments: Sequence[Any] | Mapping[str, Any]
) -> P4TableAction:
    """Return an action, which is one of finsy's `actions`, with its arguments.

    Raises:
        ConfigError: If none of them has this name, it takes another number of arguments, or one
            does not fit its parameter.
    """
    chosen = of_name(where, "action", name, actions)
    parameters = {each.name: each for each in chosen.params}
    values = _by_name(where, "arguments", list(parameters), arguments)
    for parameter, value in values.items():
        _check_value(f"{where}: argument", parameter, value, parameters[parameter].encode_param)
    return P4TableAction(chosen.name, **values)


def table_entry(
    where: str,
    schema: P4Schema,
    table: str,
    *,
    action: str | P4IndirectAction,
    arguments: Sequence[Any] | Mapping[str, Any],
    keys: Sequence[Any] | Mapping[str, Any] | None,
    priority: int | None = None,
) -> P4TableEntry:
    """Return a table's entry, or its default action.

    Args:
        where: The beginning of messages.
        schema: The program's P4Info.
        table: The table's name, or the end of it.
        action: Likewise, the action's; or the member or group of an action profile.
        arguments: The action's arguments, in order or by name.
        keys: Values in the order of the table's keys, or by name; a value of two is a prefix, mask
            or range, by the kind of match, and None matches all. None: the entry is the default.
        priority: Priority of the entry, where keys are ternary or ranges: the highest wins.

    Raises:
        ConfigError: If the program has no such table or action, another number of values, or one
            does not fit.
    """
    table_info = of_name(where, "table", table, schema.tables)
    call = action
    if isinstance(action, str):
        call = action_call(where, table_info.actions, action, arguments)
    if keys is None:
        return P4TableEntry(table_info.name, action=call, is_default_action=True)
    fields = {each.name: each for each in table_info.match_fields}
    by_name = _by_name(where, "keys", list(fields), keys)
    pairs = {
        name: _pair(where, fields[name], value) if isinstance(value, tuple) else value
        for name, value in by_name.items()
    }
    match = {name: value for name, value in pairs.items() if value is not None}
    for name, field in fields.items():
        if field.match_type == P4MatchType.EXACT and name not in match:
            raise ConfigError(f"{where}: key {name!r} is matched exactly, got no value for it")
    for name, value in match.items():
        if fields[name].match_type == P4MatchType.EXACT and isinstance(value, tuple):
            raise ConfigError(f"{where}: key {name!r} is matched exactly, got {value!r}")
        _check_value(f"{where}: key", name, value, fields[name].encode_field)
    return P4TableEntry(
        table_info.name, match=P4TableMatch(match), action=call, priority=priority or 0
    )


def place_in(schema: P4Schema, entry: P4TableEntry) -> tuple[object, ...]:
    """Return what tells a table's entries apart: their keys and priority."""
    message = entry.encode(schema).table_entry
    return message.priority, *(each.SerializeToString() for each in message.match)


def _pair(where: str, field: Any, pair: tuple[Any, ...]) -> Any:
    """Return a key of two values as finsy's objects want it; None: it matches anything.

    Bits beside a mask, and ranges of all values, are as good as left out, as in BMv2.

    Raises:
        ConfigError: If it does not fit the field.
    """
    kind, every = field.match_type, all_ones(field.bitwidth)
    if kind not in RANKED:
        return pair
    mark = MARKS[kind]
    text = mark.join(map(str, pair))
    try:
        first, second = (int.from_bytes(encode_exact(part, field.bitwidth)) for part in pair)
    except (ValueError, AssertionError) as error:
        raise ConfigError(
            f"{where}: key {field.name!r} must be two values of "
            f"{format_count(field.bitwidth, 'bit')} and {mark} between them, got {text!r:.60}"
        ) from error
    if kind == P4MatchType.RANGE:
        if first > second:
            raise ConfigError(
                f"{where}: key {field.name!r} must have its least value first, got {text!r:.60}"
            )
        return None if (first, second) == (0, every) else (first, second)
    if second == 0:
        return None
    if kind == P4MatchType.TERNARY:
        return first & second, second
    if second != every:
        raise ConfigError(
            f"{where}: key {field.name!r} is optional: its mask must be all bits or none, got "
            f"{text!r:.60}"
        )
    return first


def _check_value(what: str, name: str, value: Any, encode: Callable[[Any], Any]) -> None:
    """Check that finsy can encode a key's or parameter's value.

    Raises:
        ConfigError: If it does not fit.
    """
    try:
        encode(value)
    except (ValueError, TypeError, OverflowError) as error:
        shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
        raise ConfigError(f"{what} {name!r}: {error}, got {shown!r:.60}") from error


def _by_name(
    where: str, what: str, names: Sequence[str], values: Sequence[Any] | Mapping[str, Any]
) -> dict[str, Any]:
    if isinstance(values, Mapping):
        opened = {name.replace(CLOSED, "."): name for name in names}
        return {
            opened[full_name(where, what, name, opened)]: value for name, value in values.items()
        }
    if len(values) != len(names):
        raise ConfigError(f"{where}: {what} must be {list(names)}, got {list(values)}")
    return dict(zip(names, values, strict=True))
