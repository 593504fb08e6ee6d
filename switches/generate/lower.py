"""Primitives on whole stacks and unions, and on elements that an index selects, as plain ones.

Source: behavioral-model `src/bm_sim/core/primitives.cpp`. Where no element is selected, BMv2
crashes (`Stack::at`); here nothing is written.
"""

from __future__ import annotations

from dataclasses import replace

from ringleaf.switches.engine.layout import DROP_PORT
from ringleaf.switches.generate.flow import Body, If
from ringleaf.switches.generate.primitives import PRIMITIVES, READ
from ringleaf.switches.json.stacks import value_of
from ringleaf.switches.source import (
    STACKS,
    STANDARD,
    Constant,
    Expression,
    FieldSource,
    Named,
    Primitive,
    ProgramSource,
    SelectedSource,
)


def lower(source: ProgramSource, primitive: Primitive) -> Body:
    """Return a primitive as statements that name headers and fields themselves."""
    for position, operand in enumerate(primitive.parameters):
        if isinstance(operand, SelectedSource):
            return _select(source, primitive, position, operand)
    if primitive.op == "mark_to_drop" and primitive.parameters != (Named("header", STANDARD),):
        return _mark_copy(primitive)
    parts = _PARTS.get(primitive.op)
    if parts is None:
        return (primitive,)
    first, second = (_name(operand) for operand in primitive.parameters)
    return tuple(
        replace(primitive, op=op, parameters=operands)
        for op, operands in parts(source, first, second)
    )


def _mark_copy(primitive: Primitive) -> Body:
    """Mark a copy of the standard metadata, which p4c makes for an action's own parameter.

    Source: behavioral-model `targets/simple_switch/primitives.cpp`, `mark_to_drop`.
    """
    header = _name(primitive.parameters[0])
    values = {"egress_spec": DROP_PORT, "mcast_grp": 0}
    return tuple(
        replace(primitive, op="assign", parameters=(FieldSource(header, name), Constant(value)))
        for name, value in values.items()
    )


def _select(
    source: ProgramSource, primitive: Primitive, position: int, operand: SelectedSource
) -> Body:
    def put(chosen: Expression) -> Body:
        operands = list(primitive.parameters)
        operands[position] = chosen
        return lower(source, replace(primitive, parameters=tuple(operands)))

    kind = PRIMITIVES.get(primitive.op)
    read = kind is None or kind.roles[position] == READ
    if read and primitive.op not in _PARTS:
        return put(value_of(operand))
    body: Body = ()
    for condition, chosen in reversed(operand.options):
        body = (If(condition, put(chosen), body),)
    return body


_Part = tuple[str, tuple[Expression, ...]]


def _union(source: ProgramSource, first: str, second: str) -> list[_Part]:
    unions = source.instances.unions
    pairs = zip(unions[first], unions[second], strict=True)
    return [("assign_header", (Named("header", a), Named("header", b))) for a, b in pairs]


def _stack(source: ProgramSource, first: str, second: str) -> list[_Part]:
    elements = source.instances.elements
    parts: list[_Part] = [("assign", (FieldSource(STACKS, first), FieldSource(STACKS, second)))]
    for own, others in zip(elements(first), elements(second), strict=True):
        for a, b in zip(own, others, strict=True):
            parts.append(("assign_header", (Named("header", a), Named("header", b))))
    return parts


_PARTS = {"assign_union": _union, "assign_header_stack": _stack, "assign_union_stack": _stack}


def _name(operand: Expression) -> str:
    assert isinstance(operand, Named)
    return operand.name
