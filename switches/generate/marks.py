"""Marks for the meaning of generated lines; the packet walk (`switches/walk`) follows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from ringleaf.switches.source import (
    Checksum,
    Expression,
    HeaderSource,
    ParserState,
    Primitive,
    TableSource,
    Transition,
)

# Kinds of marks, with the type of `LineMark.what`.
STATE = "state"  # ParserState: entered
EXTRACT = "extract"  # Header
PARSER_OP = "parser op"  # Primitive
TOO_SHORT = "too short"  # None: the packet was shorter than the parser needed
SELECT = "select"  # Transition: taken; `values` are the keys
TABLE = "table"  # Table: looked up
CONDITION = "condition"  # Expression: its `if` line; `inverted` where that tests `not`
PRIMITIVE = "primitive"  # Primitive
LOOP = "loop"  # Lanes
TURN = "turn"  # None: another turn of a loop of the program's own begins
LOG = "log"  # Primitive: log_msg; `values` are those that it prints
VERIFY = "verify checksum"  # Checksum
WRONG = "wrong checksum"  # Checksum: follows VERIFY
UPDATE = "update checksum"  # Checksum
DROPPED = "egress dropped"  # None
DEPARSE = "deparse"  # None
TRUNCATE = "truncate"  # None


@dataclass(frozen=True, slots=True)
class Lanes:
    """A loop: its number of turns, and the primitives of the first."""

    count: int
    primitives: tuple[Primitive, ...]


What = (
    ParserState
    | HeaderSource
    | Primitive
    | Transition
    | TableSource
    | Expression
    | Checksum
    | Lanes
)


@dataclass(frozen=True, slots=True)
class ValueMark:
    """Code of a value that a walk shows, for the handler's locals: words, the lowest first."""

    name: str
    words: tuple[str, ...]
    width: int  # bits


@dataclass(frozen=True, slots=True, eq=False)
class LineMark:
    """The meaning of a stretch of lines; each time that something is generated has its own mark.

    A mark that is `whole` stands for all lines inside it, whatever marks they would have.
    """

    kind: str
    what: What | None = None
    where: str = ""
    values: tuple[ValueMark, ...] = ()
    whole: bool = False
    inverted: bool = False


class MarkedLine(str):
    """A line of code with its mark."""

    mark: LineMark | None

    def __new__(cls, text: str, mark: LineMark | None) -> Self:
        line = super().__new__(cls, text)
        line.mark = mark
        return line


def marked_lines(text: str, bodies: list[list[str]]) -> Mapping[int, LineMark]:
    """Return the mark of each line of a module, by line number from 1.

    Args:
        text: The module.
        bodies: Its functions, in order, each a part of the text.
    """
    marks: dict[int, LineMark] = {}
    start = 0
    for body in bodies:
        start = text.index("\n".join(body), start)
        first = text[:start].count("\n") + 1
        for number, line in enumerate(body, first):
            mark = line.mark if isinstance(line, MarkedLine) else None
            if mark is not None and not line.lstrip().startswith("#"):
                marks[number] = mark
    return marks
