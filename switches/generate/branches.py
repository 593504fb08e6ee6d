"""Code of ifs; a long else-if chain, as of an index into a stack, stays flat."""

from __future__ import annotations

from collections.abc import Callable

from switches.generate.code import Code
from switches.generate.flow import Body, If
from switches.generate.marks import CONDITION, Mark


def write_if(code: Code, statement: If, write: Callable[[Body], None]) -> None:
    """Write an if; `write` writes the bodies inside it."""
    test: str | None = code.expressions.condition(statement.condition)
    if not statement.then:
        mark = Mark(CONDITION, statement.condition, statement.where, inverted=True)
        with code.block(f"if not {test}:", mark):
            write(statement.otherwise)
        return
    keyword = "if"
    while test is not None:
        mark = Mark(CONDITION, statement.condition, statement.where)
        with code.block(f"{keyword} {test}:", mark):
            write(statement.then)
        test, rest = None, statement.otherwise
        if len(rest) == 1 and isinstance(rest[0], If) and rest[0].then:
            statement, keyword = rest[0], "elif"
            test = _test_alone(code, statement)
    if rest:
        with code.block("else:"):
            write(rest)


def _test_alone(code: Code, statement: If) -> str | None:
    """Return code of a condition; None if it takes lines of its own, before the test."""
    before = len(code.lines.lines)
    test = code.expressions.condition(statement.condition)
    if len(code.lines.lines) == before:
        return test
    del code.lines.lines[before:]
    return None
