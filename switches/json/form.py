"""The form of BMv2 JSON: the allowed values of each leaf, and the limits of size.

A program comes from anywhere: a file, a trace, a controller. Everything in it is checked once,
before anything is made of it, so that the readers may take a name for a string and a width for a
number that fits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ringleaf.core.units import format_count
from ringleaf.errors import Code, ConfigError

MOST_BYTES = 64 << 20  # of JSON; our largest program has 4 million
MOST_ITEMS = 4_000_000  # values in it; our largest has 230,000
DEEPEST = 400  # values inside each other; p4c's have been seen to go 77 deep
LONGEST_NAME = 1024  # letters
LONGEST_TEXT = 65_536  # letters of a message or a stretch of P4
MOST_BITS = 8192  # of a field, a parameter, a constant; p4c allows 2048
MOST_CELLS = 1 << 27  # of one array; the limit of a whole program is in `state.py`
GREATEST = (1 << 31) - 1  # of any other number

HIDDEN = "$"  # prefix of the names that the engine itself keeps beside a packet's headers
VALID = "$valid$"

_HEX = re.compile(r"-?(0x)?[0-9a-fA-F]+")
_VARBIT = re.compile(r"\$varbit[0-9]{1,5}")

Test = Callable[[Any], bool]
Rule = tuple[Test, str]  # and the words for what it demands


def read_json(text: bytes, path: Path) -> dict[str, Any]:
    """Return BMv2 JSON whose leaves have been checked.

    Raises:
        ConfigError: If it is not JSON, is too large, or has a value that is not allowed.
    """
    if len(text) > MOST_BYTES:
        raise ConfigError(
            f"{path}: must have at most {MOST_BYTES} bytes, got {len(text)}",
            Code.RESOURCE_EXHAUSTED,
        )
    try:
        data = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{path}: not JSON: {exc}") from exc
    if not isinstance(data, dict):
        raise ConfigError(
            f"{path}: not BMv2 JSON, got {type(data).__name__} {data!r:.60};"
            " compile with p4c-bm2-ss"
        )
    _Form(path).check(data)
    return data


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


class _Form:
    """Walks a document; iteratively, as it may be deeper than Python's stack."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self, data: dict[str, Any]) -> None:
        """Check each value of a document, and its size and depth.

        Raises:
            ConfigError: If it is too large, or a value is not of its kind.
        """
        count = 0
        waiting: list[tuple[Any, str, int]] = [(data, "the program", 0)]
        while waiting:
            item, key, depth = waiting.pop()
            count += 1
            if depth > DEEPEST or count > MOST_ITEMS:
                limits = f"at most {MOST_ITEMS} values, {DEEPEST} deep"
                raise ConfigError(
                    f"{self._path}: BMv2 JSON has {limits}, got more", Code.RESOURCE_EXHAUSTED
                )
            if isinstance(item, dict):
                self._members(item)
                waiting += [(part, name, depth + 1) for name, part in item.items()]
            elif isinstance(item, list):
                waiting += [(part, key, depth + 1) for part in item]
            else:
                self._hold(_LEAF, item, key)

    def _members(self, item: dict[str, Any]) -> None:
        for key, value in item.items():
            self._hold(_TEXT if key == "source_fragment" else _NAME, key, "a key")
            rule = _RULES.get(key)
            if rule is not None:
                self._hold(rule, value, key)
        kind = item.get("type")
        if "value" in item and isinstance(kind, str) and kind in _VALUES:
            self._hold(_VALUES[kind], item["value"], f"value of a {kind}")

    def _hold(self, rule: Rule, value: Any, what: str) -> None:
        test, requirement = rule
        if not test(value):
            shown = repr(value)
            shown = shown if len(shown) <= 80 else f"{shown[:80]}..."
            raise ConfigError(
                f"{self._path}: not BMv2 JSON: {what} must be {requirement}, got {shown}"
            )


# Tests.


def _is_name(value: Any) -> bool:
    """Return whether a program may use a name; those that begin with "$" are the engine's own.

    The exception is p4c's type of a varbit variable: `$varbit32`.
    """
    fits = isinstance(value, str) and len(value) <= LONGEST_NAME and value.isprintable()
    return fits and (not value.startswith(HIDDEN) or _VARBIT.fullmatch(value) is not None)


def _is_flag(value: Any) -> bool:
    """Return whether this is true or false; for a field of type bool, p4c writes 0 or 1."""
    return type(value) in (bool, int) and value in (0, 1)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def _is_whole(least: int, most: int) -> Test:
    return lambda value: type(value) is int and least <= value <= most


def _is_hex(value: Any) -> bool:
    fits = isinstance(value, str) and len(value) <= MOST_BITS // 4 + 3
    return fits and _HEX.fullmatch(value) is not None


def _is_field(value: Any) -> bool:
    """Return whether this names a field that a program may have: not the engine's own."""
    if not (isinstance(value, list) and len(value) == 2):
        return False
    return (isinstance(value[0], dict) or _is_name(value[0])) and _is_member(value[1])


def _is_member(value: Any) -> bool:
    return value == VALID or _is_name(value)


def _is_declared(value: Any) -> bool:
    """Return whether this declares fields: [name, bits, signed, saturating] or [name, "*"]."""
    return isinstance(value, list) and all(map(_is_one_declared, value))


def _is_one_declared(value: Any) -> bool:
    return (
        isinstance(value, list)
        and (
            value == []  # p4c's for a scalar of type error in PSA; it has no bits, and no name
            or (
                2 <= len(value) <= 4
                and _is_name(value[0])
                and (_is_width(value[1]) or value[1] == "*")
                and all(map(_is_flag, value[2:]))
            )
        )
    )


def _or_none(rule: Rule) -> Rule:
    return lambda value: value is None or rule[0](value), f"{rule[1]}, or null"


def _each(rule: Rule, most: int = MOST_ITEMS) -> Rule:
    def test(value: Any) -> bool:
        return isinstance(value, list) and len(value) <= most and all(map(rule[0], value))

    return test, f"a list of which each is {rule[1]}"


def _either(*rules: Rule) -> Rule:
    return lambda value: any(rule[0](value) for rule in rules), " or ".join(r[1] for r in rules)


_is_width = _is_whole(1, MOST_BITS)

_NAME: Rule = (
    _is_name,
    f"a name of at most {LONGEST_NAME} letters, that can be printed and does not begin with $",
)
_TEXT: Rule = _is_text, f"a text of at most {LONGEST_TEXT} letters"
_NUMBER: Rule = _is_whole(0, GREATEST), f"a whole number from 0 to {GREATEST}"
_INDEX: Rule = _is_whole(0, 0xFFFF), "a whole number from 0 to 65535"
_WIDTH: Rule = _is_width, f"a number of bits from 1 to {MOST_BITS}"
_SIZE: Rule = _is_whole(0, MOST_CELLS), f"a size of at most {MOST_CELLS}"
_BOOLEAN: Rule = (lambda value: type(value) is bool), "true or false"
_HEXSTR: Rule = _is_hex, f"a hexadecimal number of at most {MOST_BITS} bits"
_FIELD: Rule = _is_field, "a header's and a field's name, and none of the engine's own"
_OBJECT: Rule = (lambda value: isinstance(value, dict)), "an object"
_LIST: Rule = (lambda value: isinstance(value, list)), "a list"
_LEAF: Rule = (
    lambda value: (
        value is None or type(value) in (bool, str) or (type(value) is int and abs(value) < 1 << 32)
    ),
    "a text, true or false, or a whole number below 2^32",
)

_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        (
            *("name", "header_type", "op", "algo", "type", "filename", "calculation", "binding"),
            *("action_profile", "union_type", "match_type"),
        ),
        _NAME,
    ),
    **dict.fromkeys(
        (
            *("init_state", "init_table", "base_default_next", "true_next", "false_next"),
            *("next_state", "next_node", "direct_meters"),
        ),
        _or_none(_NAME),
    ),
    "source_fragment": _TEXT,
    **dict.fromkeys(
        ("id", "action_id", "line", "column", "priority", "prefix_length", "max_size"), _NUMBER
    ),
    "size": _SIZE,
    "bitwidth": _WIDTH,
    "max_length": _or_none(
        (_is_whole(0, MOST_BITS // 8), f"at most {format_count(MOST_BITS // 8, 'byte')}")
    ),
    **dict.fromkeys(
        (
            *("metadata", "is_direct", "with_counters", "support_timeout", "action_const"),
            "action_entry_const",
            *("verify", "update"),
        ),
        _BOOLEAN,
    ),
    **dict.fromkeys(("mask", "start", "end"), _or_none(_HEXSTR)),
    "key": _either(_HEXSTR, _LIST, _BOOLEAN),  # true or false: of a key of kind `valid`
    "action_data": _each(_HEXSTR),
    **dict.fromkeys(("action_ids", "header_ids", "header_union_ids", "version"), _each(_NUMBER)),
    "order": _each(_NAME),
    "fields": (_is_declared, f"fields with their bits, from 1 to {MOST_BITS}"),
    "target": _either(_FIELD, _NAME, _OBJECT),  # the reader refuses the latter two, by name
    "result_target": _FIELD,
    **dict.fromkeys(("source_info", "if_cond", "length_exp", "cond", "left"), _or_none(_OBJECT)),
    "right": _either(_OBJECT, _INDEX),
    **dict.fromkeys(("expression", "default_entry", "selector", "next_tables"), _OBJECT),
    "parameters": _each(_either(_OBJECT, _NUMBER)),  # a number: of an older parser's operation
    **dict.fromkeys(("primitives", "transitions", "parser_ops"), _each(_OBJECT)),
    **dict.fromkeys(("transition_key", "tables", "conditionals", "action_calls"), _each(_OBJECT)),
    **dict.fromkeys(("elements", "runtime_data", "input", "match_key"), _each(_OBJECT)),
    **dict.fromkeys(("parse_states", "action_profiles"), _each(_OBJECT)),
}
"""The rules by key, anywhere in the document: p4c gives each key one meaning."""

_VALUES: dict[str, Rule] = {
    "field": _FIELD,
    "hexstr": _either(_HEXSTR, (lambda value: value == "default", "default"), _NUMBER),
    "bool": _BOOLEAN,
    **dict.fromkeys(("runtime_data", "local"), _INDEX),
    "lookahead": _each((_is_whole(0, MOST_BITS), f"from 0 to {MOST_BITS} bits")),
    "expression": _OBJECT,
    **dict.fromkeys(
        ("stack_field", "union_stack_field", "union_stack"), _each((_is_member, _NAME[1]))
    ),
    "parameters_vector": _either(
        _each(_OBJECT), (lambda value: value == {}, "{}")
    ),  # p4c's of none
    "string": _TEXT,
    **dict.fromkeys(
        (
            *("regular", "header", "header_stack", "header_union", "header_union_stack", "stack"),
            *("register_array", "counter_array", "meter_array", "calculation", "parse_vset"),
            "extern",
        ),
        _NAME,
    ),
}
"""The rules of a `value`, by the `type` beside it."""
