"""Expressions and primitives in BMv2 JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ringleaf.errors import ConfigError
from switches.source import (
    Argument,
    Boolean,
    Constant,
    Expression,
    Field,
    LookAhead,
    Named,
    Operation,
    Primitive,
    Where,
    refusal,
)

Json = dict[str, Any]


def number_of(text: str) -> int:
    """Return the value of p4c's `hexstr`, which may be negative."""
    return int(text, 16)


def where_of(item: Json | None) -> str:
    info = (item or {}).get("source_info")
    if not info:
        return ""
    fragment = info.get("source_fragment", "")
    return Where(info["filename"], info["line"], info.get("column", 0), fragment)


class ExpressionReader:
    """Reads what the whole program's expressions and primitives have in common."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def refuse(self, what: str, got: object, item: Json | None = None) -> ConfigError:
        return refusal(self._path, what, got, where_of(item))

    def expression(self, item: Json) -> Expression:
        kind, value = item["type"], item["value"]
        match kind:
            case "field":
                return Field(*value)
            case "hexstr":
                return Constant(number_of(value))
            case "bool":
                return Boolean(value)
            case "runtime_data" | "local":
                return Argument(value)
            case "lookahead":
                return LookAhead(*value)
            case "expression":
                return self._operation(value)
            case "regular":
                return Named("header", value)
            case "header" | "register_array" | "counter_array" | "calculation" | "string":
                return Named(kind, value)
        raise self.refuse("unsupported kind of operand", kind, item)

    def _operation(self, item: Json) -> Expression:
        if "op" not in item:
            return self.expression(item)
        left, condition = item.get("left"), item.get("cond")
        return Operation(
            item["op"],
            None if left is None else self.expression(left),
            self.expression(item["right"]),
            None if condition is None else self.expression(condition),
        )

    def primitive(self, item: Json) -> Primitive:
        parameters = [
            Named("parameters", "")  # what log_msg would print: nothing here prints it
            if parameter["type"] == "parameters_vector"
            else self.expression(parameter)
            for parameter in item["parameters"]
        ]
        return Primitive(item["op"], tuple(parameters), where_of(item))
