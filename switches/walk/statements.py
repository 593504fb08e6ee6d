"""Primitives and expressions as P4 again, where p4c's JSON does not quote the source."""

from __future__ import annotations

import re

from ringleaf.switches.generate.flow import leaves
from ringleaf.switches.source import (
    Argument,
    Boolean,
    Constant,
    Expression,
    FieldSource,
    LookAhead,
    Named,
    OperationSource,
    Primitive,
    ProgramSource,
    Where,
)
from ringleaf.switches.walk.names import Names

_SIGNS = {"and": "&&", "or": "||", "not": "!", "valid": "", "d2b": "", "b2d": ""}
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.\[\]:]*\s*=[^=]")
_CALL = re.compile(r"[A-Za-z_][\w.\[\]<>]*\s*\(")
_ASSIGNMENTS = ("assign", "set", "assign_header")


class Statements:
    """Writes a program's primitives and conditions as P4, with names of the source."""

    def __init__(self, source: ProgramSource, names: Names) -> None:
        self._names = names
        self._parameters = {
            step.where: action.parameters
            for action in source.actions.values()
            for step in action.primitives
        }

    def primitive(self, primitive: Primitive) -> str:
        """Return a primitive as P4: the source if it is quoted whole, or else from its operands."""
        quoted = quote(primitive.where)
        assigns = primitive.op in _ASSIGNMENTS
        if assigns and _ASSIGNMENT.match(quoted) and _is_whole(quoted):
            return quoted
        if not assigns and _CALL.match(quoted):
            return quoted if _is_whole(quoted) else f"{quoted} ...)"
        names = self._parameters.get(primitive.where, ())
        parts = [self._expression(parameter, names) for parameter in primitive.parameters]
        if assigns and len(parts) == 2:
            return f"{parts[0]} = {parts[1]}"
        return f"{primitive.op}({', '.join(part for part in parts if part)})"

    def condition(self, condition: Expression, where: str) -> str:
        """Return a condition as P4: the source if it is quoted whole, or else from its operands.

        The place of a loop's condition is all that is in the loop's parentheses.
        """
        source = where.fragment if isinstance(where, Where) else ""
        is_whole = not source.endswith("...") and not re.match(r"for\b", source)
        text = quote(where) if is_whole else ""
        return text or self._expression(condition, ()).removeprefix("(").removesuffix(")")

    def fields(self, expression: Expression) -> list[FieldSource]:
        """Return the fields of an expression, each once, in the order in which it names them."""
        fields = (leaf for leaf in leaves(expression) if isinstance(leaf, FieldSource))
        return list(dict.fromkeys(fields))

    def _expression(self, expression: Expression, names: tuple[str, ...]) -> str:
        match expression:
            case FieldSource():
                return self._names.field(expression)
            case Constant():
                value = expression.value
                return str(value) if value < 256 else hex(value)
            case Boolean():
                return str(expression.value).lower()
            case Argument():
                index = expression.index
                return names[index] if index < len(names) else f"argument {index}"
            case LookAhead():
                return f"lookahead<bit<{expression.width}>>()"
            case Named(kind="header"):
                return self._names.header(expression.name)
            case Named():
                return expression.name.rsplit(".", 1)[-1]
            case OperationSource():
                return self._operation(expression, names)
            case _:
                return "..."

    def _operation(self, operation: OperationSource, names: tuple[str, ...]) -> str:
        right = self._expression(operation.right, names)
        if operation.left is None:
            return f"{_SIGNS.get(operation.op, operation.op)}{right}"
        left = self._expression(operation.left, names)
        if operation.op == "?" and operation.condition is not None:
            return f"({self._expression(operation.condition, names)} ? {left} : {right})"
        return f"({left} {_SIGNS.get(operation.op, operation.op)} {right})"


def _is_whole(text: str) -> bool:
    pairs = (text.count(first) == text.count(last) for first, last in ("()", "{}", "[]"))
    return all(pairs) and not text.endswith(("=", ","))


def quote(where: str) -> str:
    """Return p4c's quotation of a place, on one line, cut at the end of the statement."""
    if not isinstance(where, Where):
        return ""
    text = re.sub(r"(;|//|/\*).*", "", where.fragment.removesuffix("..."), flags=re.DOTALL)
    return " ".join(text.split())
