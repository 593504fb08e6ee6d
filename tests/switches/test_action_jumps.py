"""An action's jumps, nested: the same primitives happen, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_cases import PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.generate.flow import Body, If, IfLeft, Leave, Repeat
from ringleaf.switches.generate.jumps import action_body
from ringleaf.switches.json.program import load_source
from ringleaf.switches.source import ActionSource, Constant, Expression, FieldSource, Primitive

SOURCE = load_source(Path(PROGRAMS / "tables.json"))
CONDITION = FieldSource("key", "kind")

Answers = Iterator[bool]
"""What conditions are found to be, one after the other; when there are no more, all are false."""


def step(number: int) -> Primitive:
    return Primitive("assign", (CONDITION, Constant(number)))


def jump(target: int) -> Primitive:
    return Primitive("_jump", (Constant(target),))


def jump_if_zero(target: int) -> Primitive:
    return Primitive("_jump_if_zero", (CONDITION, Constant(target)))


def action(steps: list[Primitive]) -> ActionSource:
    return ActionSource(0, "a", (), tuple(steps))


@st.composite
def forward_jumps(draw: st.DrawFn) -> list[Primitive]:
    """Primitives whose jumps all go forward, wherever to."""
    size = draw(st.integers(1, 14))
    kinds = [step, step, jump, jump_if_zero]
    steps = []
    for at in range(size):
        make = draw(st.sampled_from(kinds))
        steps.append(make(at if make is step else draw(st.integers(at + 1, size))))
    return steps


Tree = tuple[object, ...]

trees = st.recursive(
    st.sampled_from([("step",), ("break",), ("continue",), ("return",)]),
    lambda inner: st.one_of(
        st.tuples(st.just("if"), st.lists(inner, max_size=3), st.lists(inner, max_size=3)),
        st.tuples(st.just("while"), st.lists(inner, max_size=4)),
    ),
    max_leaves=12,
)


class Compiler:
    """Writes statements as primitives and jumps, as p4c does."""

    def __init__(self) -> None:
        self.steps: list[Primitive] = []
        self.returns: list[int] = []

    def all(self, body: list[Tree], head: int, breaks: list[int] | None) -> None:
        for tree in body:
            self.one(tree, head, breaks)

    def one(self, tree: Tree, head: int, breaks: list[int] | None) -> None:
        match tree:
            case ("if", list(then), list(otherwise)):
                branch = self._hole()
                self.all(then, head, breaks)
                end = self._hole()
                self.steps[branch] = jump_if_zero(len(self.steps))
                self.all(otherwise, head, breaks)
                self.steps[end] = jump(len(self.steps))
            case ("while", list(body)):
                self._while(body)
            case ("break",) if breaks is not None:
                breaks.append(self._hole())
            case ("return",):
                self.returns.append(self._hole())
            case ("continue",) if breaks is not None:
                self.steps.append(jump(head))
            case _:
                self.steps.append(step(len(self.steps)))

    def _while(self, body: list[Tree]) -> None:
        head, breaks = self._hole(), list[int]()
        self.all(body, head, breaks)
        self.steps.append(jump(head))
        self.steps[head] = jump_if_zero(len(self.steps))
        for hole in breaks:
            self.steps[hole] = jump(len(self.steps))

    def _hole(self) -> int:
        self.steps.append(step(0))
        return len(self.steps) - 1


def compiled(body: list[Tree]) -> list[Primitive]:
    compiler = Compiler()
    compiler.all(body, 0, None)
    for hole in compiler.returns:
        compiler.steps[hole] = jump(len(compiler.steps))
    return compiler.steps


def jumped(steps: list[Primitive], answers: Answers) -> Iterator[Expression]:
    """Return what happens as BMv2 goes from primitive to primitive."""
    at = 0
    while at < len(steps):
        one = steps[at]
        target = one.parameters[-1]
        if one.op == "assign":
            yield target
        assert isinstance(target, Constant)
        goes = one.op == "_jump" or (one.op == "_jump_if_zero" and not next(answers, False))
        at = target.value if goes else at + 1


class Nested:
    """Carries out nested statements."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._left: dict[int, int] = {}
        self.happened: list[Expression] = []

    def run(self, body: Body) -> bool:
        """Return whether the innermost loop was left."""
        return any(self._leaves(statement) for statement in body)

    def _leaves(self, statement: object) -> bool:
        match statement:
            case If():
                holds = next(self._answers, False)
                return self.run(statement.then if holds else statement.otherwise)
            case Repeat():
                while not self.run(statement.body):
                    pass
            case Leave():
                self._left[statement.number] = statement.way
                return True
            case IfLeft():
                holds = self._left[statement.number] == statement.way
                return self.run(statement.then if holds else statement.otherwise)
            case Primitive():
                self.happened.append(statement.parameters[1])
            case _:
                raise AssertionError(statement)
        return False


@given(
    st.one_of(forward_jumps(), st.lists(trees, max_size=4).map(compiled)),
    st.lists(st.booleans(), max_size=30),
)
def test_nested_statements_do_what_jumps_do(steps: list[Primitive], answers: list[bool]) -> None:
    nested = Nested(iter(answers))
    nested.run(action_body(SOURCE, action(steps)))

    assert nested.happened == list(jumped(steps, iter(answers)))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([jump_if_zero(2), step(1), step(2), jump(1)], "a jump into or between loops, got 2"),
        (
            [jump_if_zero(6), jump_if_zero(5), jump(0), step(3), jump(1), jump(0)],
            "a jump into or between loops, got 0",
        ),
        ([jump(7)], "a jump to no primitive"),
    ],
)
def test_jumps_that_are_none_of_p4s_are_refused(steps: list[Primitive], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        action_body(SOURCE, action(steps))
