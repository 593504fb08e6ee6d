"""Code of ifs; a long else-if chain, such as that of an index into a stack, stays flat."""

from __future__ import annotations

from collections.abc import Callable

from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.doubts import note_branches
from ringleaf.switches.generate.flow import Body, If
from ringleaf.switches.generate.marks import CONDITION, LineMark
from ringleaf.switches.generate.observing import FALSE, TRUE, ReachedPoint
from ringleaf.switches.source import OperationSource, Where


def write_if(code: FunctionCode, statement: If, write: Callable[[Body], None]) -> None:
    """Write an if; `write` writes the bodies inside it."""
    note_branches(code, statement)
    test: str | None = code.expressions.condition(statement.condition)
    if not statement.then:
        mark = LineMark(CONDITION, statement.condition, statement.where, inverted=True)
        with code.block(f"if not {test}:", mark):
            _note(code, FALSE, statement)
            write(statement.otherwise)
        with code.lines.optional_block("else:"):
            _note(code, TRUE, statement)
        return
    keyword = "if"
    failed: list[If] = []
    while test is not None:
        mark = LineMark(CONDITION, statement.condition, statement.where)
        with code.block(f"{keyword} {test}:", mark):
            _note(code, FALSE, *failed)
            _note(code, TRUE, statement)
            write(statement.then)
        failed.append(statement)
        test, rest = None, statement.otherwise
        if len(rest) == 1 and isinstance(rest[0], If) and rest[0].then:
            statement, keyword = rest[0], "elif"
            test = _test_alone(code, statement)
    with code.block("else:") if rest else code.lines.optional_block("else:"):
        _note(code, FALSE, *failed)
        write(rest)


def _note(code: FunctionCode, kind: str, *statements: If) -> None:
    """Note the outcome of ifs; those without a place in the source are not the program's own."""
    for statement in statements:
        where = statement.where
        if isinstance(where, Where):
            code.note(kind, _shown(statement, where), where)
            if code.observer is not None:
                point = ReachedPoint(kind, _shown(statement, where), where)
                code.observer.conditions[point] = statement.condition


def _shown(statement: If, where: Where) -> str:
    """Return a condition as in the source; for `!x` p4c shows only x."""
    condition, text = statement.condition, where.fragment or "if"
    negated = isinstance(condition, OperationSource) and condition.op == "not"
    return f"!({text})" if negated and not text.startswith("!") else text


def _test_alone(code: FunctionCode, statement: If) -> str | None:
    """Return code of a condition; None if it takes lines of its own, before the test."""
    before = len(code.lines.lines)
    test = code.expressions.condition(statement.condition)
    if len(code.lines.lines) == before:
        return test
    del code.lines.lines[before:]
    return None
