"""Expressions and primitives in BMv2 JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ringleaf.errors import ConfigError
from ringleaf.switches.json.stacks import StackReader, selected_headers, value_of
from ringleaf.switches.source import (
    Argument,
    Boolean,
    Calculation,
    Constant,
    Expression,
    FieldSource,
    Instances,
    Listed,
    LookAhead,
    MeterArray,
    Named,
    OperationSource,
    Primitive,
    SelectedSource,
    Where,
    refusal,
)

Json = dict[str, Any]


def number_of(text: str) -> int:
    """Return the value of p4c's `hexstr`, which may be negative."""
    return int(text, 16)


def where_of(item: Json | None) -> str:
    """Return the P4 source line of a JSON object; "" if p4c gave none."""
    info = (item or {}).get("source_info")
    if not info:
        return ""
    fragment = info.get("source_fragment", "")
    return Where(info.get("filename", ""), info.get("line", 0), info.get("column", 0), fragment)


_NAMED = (
    *("header", "header_stack", "header_union", "header_union_stack"),
    *("register_array", "counter_array", "meter_array", "calculation", "string"),
)


LARGEST = 50_000  # parts of an expression


class ExpressionSizes:
    """The sizes of expressions, in parts when written out: shared parts count each time."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expression, int]] = {}  # by identity; holds on to it

    def of(self, expression: Expression) -> int:
        """Return the number of parts of an expression, as if it were written out."""
        known = self._known.get(id(expression))
        if known is None:
            known = expression, 1 + sum(self.of(part) for part in _parts(expression))
            self._known[id(expression)] = known
        return known[1]


def _parts(expression: Expression) -> Iterator[Expression]:
    match expression:
        case OperationSource(_, left, right, condition):
            yield from (part for part in (left, right, condition) if part is not None)
        case Listed(values):
            yield from values
        case SelectedSource(options):
            for condition, chosen in options:
                yield condition
                yield chosen


class ExpressionReader:
    """Reads expressions and primitives, for all parts of the program."""

    def __init__(self, path: Path, instances: Instances) -> None:
        self._path = path
        self._stacks = StackReader(instances, self.expression)
        self._sizes = ExpressionSizes()
        self.calculations: dict[str, Calculation] = {}  # that primitives name, and no section has
        self.meters: dict[str, MeterArray] = {}  # likewise

    def check_externs(self, items: list[Json]) -> None:
        """Refuse extern instances, of which v1model has none."""
        for item in items:
            raise self.refuse("extern instances are not supported", item["name"], item)

    def refuse(self, what: str, got: object, item: Json | None = None) -> ConfigError:
        """Return the error that something is unsupported, with the P4 source line of `item`."""
        return refusal(self._path, what, got, where_of(item))

    def where(self, item: Json) -> str:
        """Return the P4 source line of a JSON object; "" if p4c gave none."""
        return where_of(item)

    def expression(self, item: Json) -> Expression:
        """Read an expression that is not written; see `operand`."""
        operand = self.operand(item)
        return self._sized(value_of(operand) if isinstance(operand, SelectedSource) else operand)

    def operand(self, item: Json) -> Expression:
        """Read an operand that a primitive may also write."""
        kind, value = item["type"], item["value"]
        known = self._stacks.operand(item)
        if known is not None:
            return known
        match kind:
            case "field":
                return FieldSource(*value)
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
        if kind in _NAMED:
            return Named(kind, value)
        raise self.refuse("unsupported kind of operand", kind, item)

    def _sized(self, expression: Expression) -> Expression:
        """Refuse too large an expression: an index inside an index multiplies stacks' sizes."""
        size = self._sizes.of(expression)
        if size > LARGEST:
            raise self.refuse(f"an expression has at most {LARGEST} parts", size)
        return expression

    def _operation(self, item: Json) -> Expression:
        if "op" not in item:
            return self.operand(item)
        headers = self._stacks.headers(item)
        if headers is not None:
            return selected_headers(headers)
        unions = self._stacks.unions(item)
        if unions is not None:
            return SelectedSource(
                tuple((test, Named("header_union", name)) for test, name in unions)
            )
        operation = self._stacks.operation(item)
        if operation is not None:
            return operation
        left, condition = item.get("left"), item.get("cond")
        of_one = Constant(0) if item["op"] in ("+", "-") else None  # BMv2: 0 + x, 0 - x
        return OperationSource(
            item["op"],
            of_one if left is None else self.expression(left),
            self.expression(item["right"]),
            None if condition is None else self.expression(condition),
        )

    def primitive(self, item: Json) -> Primitive:
        """Read a primitive; a vector of parameters (of `log_msg`) becomes one operand."""
        parameters = [
            Listed(tuple(self.expression(value) for value in parameter["value"]))
            if parameter["type"] == "parameters_vector"
            else self.operand(parameter)
            for parameter in item["parameters"]
        ]
        return Primitive(item["op"], tuple(parameters), where_of(item))
