"""Control flow as nested statements, and how to walk and change them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ringleaf.switches.source import (
    ActionSource,
    Expression,
    Listed,
    OperationSource,
    Primitive,
    TableSource,
)


@dataclass(frozen=True, slots=True)
class If:
    """A conditional, with the bodies of both its ways."""

    condition: Expression
    then: Body
    otherwise: Body
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ActionChoice:
    """The code after a table has chosen this action: the action's body, then the pipeline's."""

    action: ActionSource
    body: Body
    following: Body


@dataclass(frozen=True, slots=True)
class Apply:
    """A table's look-up: the chosen action's code runs first, then the body of hit or miss."""

    table: TableSource
    choices: tuple[ActionChoice, ...]
    hit: Body
    miss: Body


@dataclass(frozen=True, slots=True)
class UnlessExited:
    """A body that is skipped for a packet that an earlier statement made `exit`."""

    body: Body


@dataclass(frozen=True, slots=True)
class Loop:
    """The first of `count` like repetitions of `body`; `lanes.py` knows how the others differ."""

    count: int
    body: Body
    number: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop of the program's own: `body` again and again, until a `Leave` in it.

    `number` is its number among the loops of its action, and `where` its place in P4 source.
    """

    number: int
    body: Body
    where: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The end of the innermost `Repeat`, `number`; `way` is 0, or what an `IfLeft` asks for."""

    number: int
    way: int


@dataclass(frozen=True, slots=True)
class IfLeft:
    """A branch after a `Repeat` that can be left in several ways."""

    number: int
    way: int
    then: Body
    otherwise: Body


@dataclass(frozen=True, slots=True)
class CalledAction:
    """A note that the pipeline calls an action, whose body follows."""

    action: ActionSource


Statement = Primitive | If | Apply | UnlessExited | Loop | Repeat | Leave | IfLeft | CalledAction
Body = tuple[Statement, ...]


def children(statement: Statement) -> Iterator[Body]:
    """Return the bodies inside a statement."""
    match statement:
        case If() | IfLeft():
            yield statement.then
            yield statement.otherwise
        case Apply():
            for choice in statement.choices:
                yield choice.body
                yield choice.following
            yield statement.hit
            yield statement.miss
        case UnlessExited() | Loop() | Repeat():
            yield statement.body


def rebuild(statement: Statement, change: Callable[[Body], Body]) -> Statement:
    """Return the statement with `change` applied to each body inside it."""
    match statement:
        case If() | IfLeft():
            then = change(statement.then)
            return replace(statement, then=then, otherwise=change(statement.otherwise))
        case Apply():
            choices = tuple(
                ActionChoice(choice.action, change(choice.body), change(choice.following))
                for choice in statement.choices
            )
            hit = change(statement.hit)
            return Apply(statement.table, choices, hit, change(statement.miss))
        case UnlessExited():
            return UnlessExited(change(statement.body))
        case Loop() | Repeat():
            return replace(statement, body=change(statement.body))
        case Primitive() | Leave() | CalledAction():
            return statement


def walk(body: Body) -> Iterator[Statement]:
    """Return all statements of a body, outer ones before those inside them."""
    for statement in body:
        yield statement
        for inner in children(statement):
            yield from walk(inner)


def may_exit(statement: Statement) -> bool:
    """Return whether a statement contains an `exit`, at any depth."""
    return any(isinstance(inner, Primitive) and inner.op == "exit" for inner in walk((statement,)))


def substitute(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return the expression with `change` applied to each of its leaves."""
    if isinstance(expression, Listed):
        return Listed(tuple(substitute(value, change) for value in expression.values))
    if not isinstance(expression, OperationSource):
        return change(expression)
    left, condition = expression.left, expression.condition
    return OperationSource(
        expression.op,
        None if left is None else substitute(left, change),
        substitute(expression.right, change),
        None if condition is None else substitute(condition, change),
    )


def leaves(expression: Expression) -> Iterator[Expression]:
    """Return the expression's leaves, in a fixed order."""
    if isinstance(expression, Listed):
        for value in expression.values:
            yield from leaves(value)
        return
    if not isinstance(expression, OperationSource):
        yield expression
        return
    for part in (expression.condition, expression.left, expression.right):
        if part is not None:
            yield from leaves(part)
