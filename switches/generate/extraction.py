"""The code of a parser's `extract`."""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.switches.source import (
    STACKS,
    Expression,
    FieldSource,
    Named,
    Primitive,
    ProgramSource,
)


@dataclass(frozen=True, slots=True)
class Extraction:
    """One header, or the next element of a stack, whose headers are given from the first."""

    headers: tuple[str, ...]
    stack: str | None
    bits: Expression | None  # the length of the varbit field

    @property
    def count(self) -> FieldSource:
        """Return the hidden field with the number of elements of the stack that are in use."""
        assert self.stack is not None
        return FieldSource(STACKS, self.stack)


def extraction_of(source: ProgramSource, op: Primitive) -> Extraction:
    """Return the extraction that a parser's primitive makes; its target may be a stack."""
    into, member, *bits = op.parameters
    assert isinstance(into, Named)
    assert isinstance(member, Named)
    length = bits[0] if bits else None
    instances = source.instances
    if into.kind == "header":
        return Extraction((into.name,), None, length)
    if into.kind == "header_stack":
        return Extraction(instances.stacks[into.name], into.name, length)
    unions = instances.union_stacks[into.name]
    number = instances.members[unions[0]].index(member.name)
    headers = tuple(instances.unions[union][number] for union in unions)
    return Extraction(headers, into.name, length)
