"""The expressions and primitives that P4 computes with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self


class Where(str):
    """A place in P4 source as `FILE line N`, with p4c's details of it; line 0 if unknown."""

    file: str
    line: int  # from 1
    column: int
    fragment: str

    def __new__(cls, file: str, line: int, column: int = 0, fragment: str = "") -> Self:
        where = super().__new__(cls, f"{file} line {line}")
        where.file, where.line, where.column, where.fragment = file, line, column, fragment
        return where

    def __reduce__(self) -> tuple[type[Where], tuple[str, int, int, str]]:
        """Return how a copy is made."""
        return Where, (self.file, self.line, self.column, self.fragment)


@dataclass(frozen=True, slots=True)
class FieldSource:
    """A reference to a field of a header instance."""

    header: str
    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, which may be negative."""

    value: int


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`, where BMv2 JSON has a boolean and not a bit."""

    value: bool


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of the action, by position; its value comes from the table entry."""

    index: int


@dataclass(frozen=True, slots=True)
class LookAhead:
    """Bits of the packet after what is parsed already."""

    offset: int  # bits
    width: int  # bits


@dataclass(frozen=True, slots=True)
class Named:
    """A header, register array, counter array, calculation, ... by its name."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Expressions that are one parameter: the values that `log_msg` prints."""

    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class OperationSource:
    """An operator and its operands; `left` is None for one with a single operand."""

    op: str
    left: Expression | None
    right: Expression
    condition: Expression | None = None  # of `?`


@dataclass(frozen=True, slots=True)
class SelectedSource:
    """The first of some fields or headers whose condition holds: an element of a stack.

    It is found only as an operand of a primitive, which may write it; an operand that is
    only read is a chain of `?`.
    """

    options: tuple[tuple[Expression, FieldSource | Named], ...]


Expression = (
    FieldSource
    | Constant
    | Boolean
    | Argument
    | LookAhead
    | Named
    | Listed
    | OperationSource
    | SelectedSource
)


@dataclass(frozen=True, slots=True)
class Primitive:
    """One step of an action or a parser state; `where` is the P4 source line."""

    op: str
    parameters: tuple[Expression, ...]
    where: str = field(default="", compare=False)
