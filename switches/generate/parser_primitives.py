"""Code of primitives outside of actions: those of the parser and the deparser."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ringleaf.switches.generate.branches import write_if
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.doubts import note_operands
from ringleaf.switches.generate.flow import Body, If
from ringleaf.switches.generate.lower import lower
from ringleaf.switches.generate.primitives import write_primitive
from ringleaf.switches.source import Primitive


def write_straight(code: FunctionCode, primitives: Iterable[Primitive]) -> None:
    """Write primitives one after the other, each made into statements that have no jumps."""
    for primitive in primitives:
        write_body(code, lower(code.source, primitive))


def write_body(code: FunctionCode, body: Body) -> None:
    """Write primitives, some of them under conditions."""
    for statement in body:
        if isinstance(statement, If):
            write_if(code, statement, partial(write_body, code))
        else:
            assert isinstance(statement, Primitive)
            note_operands(code, statement)
            write_primitive(code, statement)
