"""Operands in BMv2 JSON that are elements of stacks, members of unions, or whole headers.

The header that is meant may depend on a stack's count or on an index. An operand that is read
becomes a chain of `?` over all the fields that it can be, so that the generator knows headers by
name alone. BMv2 crashes if an index is outside of its stack, or if the last element of an empty
stack is read (`Stack::at`, `Stack::get_last`); here such a value is 0, and no header is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ringleaf.switches.source import (
    STACKS,
    VALID,
    Boolean,
    Constant,
    Expression,
    FieldSource,
    Instances,
    Named,
    OperationSource,
    SelectedSource,
)

Json = dict[str, Any]
Options = list[tuple[Expression, str]]  # names, each with the condition under which it is meant

ALWAYS = Boolean(True)
UNSIGNED_MAX = (1 << 64) - 1


class StackReader:
    """Resolves operands against the program's headers; `read` reads any other expression."""

    def __init__(self, instances: Instances, read: Callable[[Json], Expression]) -> None:
        self._instances = instances
        self._read = read

    def operand(self, item: Json) -> Expression | None:
        """Return the operand that `hs.last` and the like stand for; None for other kinds."""
        field = self.field(item)
        if field is not None or item["type"] != "stack_field":
            return field
        headers = self.headers(item)
        return None if headers is None else selected_headers(headers)

    def field(self, item: Json) -> FieldSource | SelectedSource | None:
        """Return the field that an operand is; None if it is something else."""
        item = _unwrapped(item)
        kind, value = item.get("type"), item.get("value", ())
        if kind == "field" and isinstance(value[0], dict):  # isValid() of hs[i]
            headers = self.headers({"type": "expression", "value": value[0]})
            return None if headers is None else self._fields(headers, value[1])
        if kind == "field" and value[0] in self._instances.union_stacks:
            # p4c writes `us.last.h.f` like this; BMv2 itself does not load it.
            kind, value = "union_stack_field", (value[0], *value[1].split(".", 1))
        if kind == "stack_field" and not self._is_last(value):
            return self._fields(self._last(value[0], self._instances.stacks[value[0]]), value[1])
        if kind == "union_stack_field":
            unions = self._last(value[0], self._instances.union_stacks[value[0]])
            return self._fields(self._members(unions, value[1]), value[2])
        if item.get("op") == "access_field":
            headers = self.headers(item["left"])
            assert headers is not None
            fields = self._instances.headers[headers[0][1]].fields
            number = item["right"]
            return self._fields(headers, fields[number].name if number < len(fields) else VALID)
        return None

    def headers(self, item: Json | None) -> Options | None:
        """Return the headers that an operand can be; None if it is not a header."""
        item = _unwrapped(item or {})
        if item.get("type") == "header":
            return [(ALWAYS, item["value"])]
        if item.get("type") == "stack_field" and self._is_last(item["value"]):
            return self._last(item["value"][0], self._instances.stacks[item["value"][0]])
        match item.get("op"):
            case "dereference_header_stack" | "dereference_stack":
                return self._element(item, self._instances.stacks)
            case "access_union_header":
                unions = self.unions(item["left"])
                assert unions is not None
                return [
                    (condition, self._instances.unions[name][item["right"]])
                    for condition, name in unions
                ]
            case "?":
                chosen = self._read(item["cond"])
                left, right = self.headers(item["left"]), self.headers(item["right"])
                if left is not None and right is not None:
                    return [(_both(chosen, condition), name) for condition, name in left] + right
        return None

    def unions(self, item: Json | None) -> Options | None:
        """Return the header unions that an operand can be; None if it is not a union."""
        item = _unwrapped(item or {})
        if item.get("type") == "header_union":
            return [(ALWAYS, item["value"])]
        if item.get("type") == "header" and item["value"] in self._instances.unions:
            return [(ALWAYS, item["value"])]  # so p4c writes an element of a stack of unions
        if item.get("op") == "dereference_union_stack":
            return self._element(item, self._instances.union_stacks)
        return None

    def operation(self, item: Json) -> Expression | None:
        """Return an operation on headers, unions or stacks; None if it is none of these."""
        match item["op"]:
            case "valid" | "valid_union":
                return self._validity(item["right"])
            case "==" | "!=":
                same = self._comparison(item["left"], item["right"])
                if same is not None and item["op"] == "!=":
                    return OperationSource("not", None, same)
                return same
            case "last_stack_index":
                # BMv2's is unsigned and has 64 bits, so that of an empty stack is the greatest.
                count = FieldSource(STACKS, _unwrapped(item["right"])["value"])
                return OperationSource(
                    "&", OperationSource("-", count, Constant(1)), Constant(UNSIGNED_MAX)
                )
            case "size_stack":
                return FieldSource(STACKS, _unwrapped(item["right"])["value"])
        return None

    def _validity(self, item: Json) -> Expression | None:
        unions = self.unions(item)
        if unions is not None:
            members = self._instances.unions
            return _any([_both(c, _any([_valid(h) for h in members[name]])) for c, name in unions])
        headers = self.headers(item)
        if headers is None:
            return None
        return _any([_both(condition, _valid(name)) for condition, name in headers])

    def _comparison(self, left: Json, right: Json) -> Expression | None:
        for kind, same in ((self.unions, self._same_union), (self.headers, self._same_header)):
            first, second = kind(left), kind(right)
            if first is not None and second is not None:
                return _any(
                    [
                        _both(_both(condition, other), same(a, b))
                        for condition, a in first
                        for other, b in second
                    ]
                )
        return None

    def _same_union(self, first: str, second: str) -> Expression:
        """Return a test that the same member is valid in both, and equal (`HeaderUnion::cmp`)."""
        unions = self._instances.unions
        pairs = zip(unions[first], unions[second], strict=True)
        return _any([self._same_header(a, b) for a, b in pairs])

    def _same_header(self, first: str, second: str) -> Expression:
        """Return a test that both are valid, and all fields equal (BMv2's `Header::cmp`)."""
        parts = [_valid(first), _valid(second)]
        for item in self._instances.headers[first].fields:
            parts.append(
                OperationSource("==", FieldSource(first, item.name), FieldSource(second, item.name))
            )
        return reduce(_both, parts)

    def _element(self, item: Json, stacks: dict[str, tuple[str, ...]]) -> Options:
        names = stacks[_unwrapped(item["left"])["value"]]
        index = self._read(item["right"])
        if isinstance(index, Constant):
            return [(ALWAYS, names[index.value])] if index.value < len(names) else []
        return [(OperationSource("==", index, Constant(i)), name) for i, name in enumerate(names)]

    def _is_last(self, value: Sequence[str]) -> bool:
        """Return whether a field reference is p4c's notation for the last element of a stack."""
        stack, name = value
        first = self._instances.headers[self._instances.stacks[stack][0]]
        return name == "last" and all(field.name != name for field in first.fields)

    def _last(self, stack: str, names: Sequence[str]) -> Options:
        count = FieldSource(STACKS, stack)
        return [
            (OperationSource("==", count, Constant(i + 1)), name) for i, name in enumerate(names)
        ]

    def _members(self, unions: Options, member: str) -> Options:
        members = []
        for condition, name in unions:
            number = self._instances.members[name].index(member)
            members.append((condition, self._instances.unions[name][number]))
        return members

    def _fields(self, headers: Options, name: str) -> FieldSource | SelectedSource:
        options = tuple((condition, FieldSource(header, name)) for condition, header in headers)
        if len(options) == 1 and options[0][0] == ALWAYS:
            return options[0][1]
        return SelectedSource(options)


def selected_headers(headers: Options) -> Named | SelectedSource:
    """Return an operand that is one of some headers."""
    if len(headers) == 1 and headers[0][0] == ALWAYS:
        return Named("header", headers[0][1])
    return SelectedSource(tuple((condition, Named("header", name)) for condition, name in headers))


def value_of(operand: SelectedSource) -> Expression:
    """Return the value of a selected field, as a chain of `?`."""
    value: Expression = Constant(0)
    for condition, field in reversed(operand.options):
        value = OperationSource("?", field, value, condition)
    return value


def _unwrapped(item: Json) -> Json:
    """Return an expression without p4c's wrappings."""
    while item.get("type") == "expression":
        item = item["value"]
    return item


def _valid(header: str) -> Expression:
    return OperationSource("valid", None, Named("header", header))


def _both(first: Expression, second: Expression) -> Expression:
    if first == ALWAYS:
        return second
    return first if second == ALWAYS else OperationSource("and", first, second)


def _any(conditions: list[Expression]) -> Expression:
    if not conditions:
        return Boolean(False)
    return reduce(lambda first, second: OperationSource("or", first, second), conditions)
