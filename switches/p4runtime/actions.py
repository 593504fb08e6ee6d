"""Actions as P4Runtime has them (section 9.1.2), and as tables have them."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4i, p4r

from ringleaf.errors import Code, ConfigError
from ringleaf.switches.p4runtime.bytestrings import decode_unsigned, encode_unsigned
from ringleaf.switches.p4runtime.schema import TableInfo

Call = tuple[int, tuple[int, ...]]
"""An action's number in the JSON, and its arguments."""


def decode_action(table: TableInfo, message: Any, where: str, default: bool = False) -> Call:
    """Return the call of a p4.v1.Action; `default` if it is to be the table's default action.

    Raises:
        ConfigError: PERMISSION_DENIED if the program does not allow the action in this place.
    """
    if message.action_id not in table.numbers:
        raise ConfigError(f"{where}: table has no action of this id, got {message.action_id}")
    _check_scope(table, message.action_id, where, default)
    number = table.numbers[message.action_id]
    action = table.actions[number]
    where = f"{where}: action {action.preamble.name!r}"
    values = {param.param_id: param.value for param in message.params}
    ids = {param.id for param in action.params}
    if len(values) != len(message.params) or values.keys() != ids:
        got = [param.param_id for param in message.params]
        raise ConfigError(f"{where}: takes parameter ids {sorted(ids)}, got {got}")
    return number, tuple(
        decode_unsigned(values[param.id], param.bitwidth, f"{where}: {param.name}")
        for param in action.params
    )


def encode_action(table: TableInfo, number: int, arguments: tuple[int, ...]) -> Any:
    """Return the p4.v1.Action of a call."""
    action = table.actions[number]
    params = [
        p4r.Action.Param(param_id=param.id, value=encode_unsigned(value))
        for param, value in zip(action.params, arguments, strict=True)
    ]
    return p4r.Action(action_id=action.preamble.id, params=params)


def _check_scope(table: TableInfo, action: int, where: str, default: bool) -> None:
    ref = next(ref for ref in table.message.action_refs if ref.id == action)
    wrong = p4i.ActionRef.TABLE_ONLY if default else p4i.ActionRef.DEFAULT_ONLY
    if ref.scope == wrong:
        place = "the default action" if default else "an entry's action"
        raise ConfigError(
            f"{where}: action may not be {place}, got id {action}", Code.PERMISSION_DENIED
        )
