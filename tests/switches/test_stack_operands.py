"""Operands and primitives of BMv2's JSON that p4c seldom writes: whole stacks, unions, headers."""

from __future__ import annotations

from typing import Any

import pytest
from program_cases import PROGRAMS

from ringleaf.switches.generate.lower import lower
from ringleaf.switches.json.program import load_source
from ringleaf.switches.json.stacks import StackReader
from ringleaf.switches.source import (
    STACKS,
    Constant,
    FieldSource,
    Named,
    OperationSource,
    Primitive,
    ProgramSource,
)

UNIONS = load_source(PROGRAMS / "unions.json")
STACKED = load_source(PROGRAMS / "stacks.json")


def copies(source: ProgramSource, op: str, first: Named, second: Named) -> list[tuple[str, str]]:
    """Return (to, from) of each plain assignment that a primitive becomes."""
    found = []
    for step in lower(source, Primitive(op, (first, second))):
        assert isinstance(step, Primitive)
        to, origin = step.parameters
        assert isinstance(to, Named | FieldSource)
        assert isinstance(origin, Named | FieldSource)
        found.append((to.name, origin.name))
    return found


def test_stack_is_copied_by_element_and_count() -> None:
    first, second = Named("header_stack", "spare"), Named("header_stack", "labels")
    elements = [(f"spare[{i}]", f"labels[{i}]") for i in range(4)]
    assert copies(STACKED, "assign_header_stack", first, second) == [("spare", "labels"), *elements]


def test_union_is_copied_by_member() -> None:
    members = [(f"first.{name}", f"second.{name}") for name in ("small", "large", "long")]
    union = (Named("header_union", "first"), Named("header_union", "second"))
    assert copies(UNIONS, "assign_union", *union) == members

    stack = Named("header_union_stack", "options")
    same = [f"options[{i}].{name}" for i in range(3) for name in ("small", "large", "long")]
    expected = [("options", "options"), *((name, name) for name in same)]
    assert copies(UNIONS, "assign_union_stack", stack, stack) == expected


def reader(source: ProgramSource) -> StackReader:
    return StackReader(source.instances, lambda item: Constant(int(item["value"], 16)))


def leaves_of(expression: Any) -> list[Any]:
    if not isinstance(expression, OperationSource):
        return [expression]
    parts = (expression.condition, expression.left, expression.right)
    return [leaf for part in parts if part is not None for leaf in leaves_of(part)]


@pytest.mark.parametrize("op", ["==", "!="])
def test_headers_are_equal_if_valid_and_alike(op: str) -> None:
    """BMv2's `Header::cmp`."""
    sides = [{"type": "header", "value": f"labels[{i}]"} for i in range(2)]
    found = reader(STACKED).operation({"op": op, "left": sides[0], "right": sides[1]})
    assert isinstance(found, OperationSource)
    assert (found.op == "not") == (op == "!=")
    names = [leaf.name for leaf in leaves_of(found)]
    assert names[:2] == ["labels[0]", "labels[1]"]  # their validity
    assert names[2:] == [name for name in ("label", "last", "wide", "pad") for _ in range(2)]


def test_unions_are_equal_if_the_same_member_is() -> None:
    """BMv2's `HeaderUnion::cmp`."""
    sides = [{"type": "header_union", "value": name} for name in ("first", "second")]
    found = reader(UNIONS).operation({"op": "==", "left": sides[0], "right": sides[1]})
    headers = {leaf.name for leaf in leaves_of(found) if isinstance(leaf, Named)}
    members = ("small", "large", "long")
    assert headers == {f"{union}.{name}" for union in ("first", "second") for name in members}


@pytest.mark.parametrize("kind", ["header", "header_union"])
def test_an_element_of_a_stack_of_unions_is_valid_if_any_member_is(kind: str) -> None:
    """p4c calls such an element a header."""
    element = {"type": kind, "value": "options[1]"}
    found = reader(UNIONS).operation({"op": "valid_union", "left": None, "right": element})
    headers = [leaf.name for leaf in leaves_of(found)]
    assert headers == [f"options[1].{name}" for name in ("small", "large", "long")]


def test_member_of_an_element_of_a_stack_of_unions() -> None:
    stack = {"type": "header_union_stack", "value": "options"}
    element = {"op": "dereference_union_stack", "left": stack, "right": _number(1)}
    member = {"op": "access_union_header", "left": element, "right": 2}
    assert reader(UNIONS).operand({"type": "expression", "value": member}) is None
    field = {"type": "expression", "value": {"op": "access_field", "left": member, "right": 0}}
    assert reader(UNIONS).operand(field) == FieldSource("options[1].long", "kind")


def test_size_and_last_index_of_a_stack() -> None:
    stack = {"type": "header_stack", "value": "labels"}
    count = FieldSource(STACKS, "labels")
    assert reader(STACKED).operation({"op": "size_stack", "right": stack}) == count
    last = reader(STACKED).operation({"op": "last_stack_index", "right": stack})
    assert isinstance(last, OperationSource)
    assert last.left == OperationSource("-", count, Constant(1))


def _number(value: int) -> dict[str, Any]:
    return {"type": "hexstr", "value": hex(value)}
