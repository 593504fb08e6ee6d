"""An action's jumps, nested: the same primitives happen, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from program_cases import PROGRAMS

from switches.bmv2_json import load_source
from switches.generate.flow import Body, If
from switches.generate.structure import action_body
from switches.source import Action, Constant, Expression, Field, Operation, Primitive

SOURCE = load_source(Path(PROGRAMS / "tables.json"))


@st.composite
def jumping_actions(draw: st.DrawFn) -> Action:
    """Actions whose jumps all go forward, wherever to."""
    size = draw(st.integers(1, 14))
    steps = []
    for at in range(size):
        kind = draw(st.sampled_from(["step", "step", "_jump", "_jump_if_zero"]))
        target = Constant(draw(st.integers(at + 1, size)))
        parameters: dict[str, tuple[Expression, ...]] = {
            "step": (Constant(at),),
            "_jump": (target,),
            "_jump_if_zero": (Field("condition", str(at)), target),
        }
        steps.append(Primitive(kind, parameters[kind]))
    return Action(0, "a", (), tuple(steps))


def jumped(action: Action, conditions: int) -> Iterator[Expression]:
    """Return what happens if condition i is bit i, as BMv2 goes from primitive to primitive."""
    at = 0
    while at < len(action.primitives):
        step = action.primitives[at]
        target = step.parameters[-1]
        if step.op == "step":
            yield target
        assert isinstance(target, Constant)
        goes = step.op == "_jump" or (step.op == "_jump_if_zero" and not conditions >> at & 1)
        at = target.value if goes else at + 1


def nested(body: Body, conditions: int) -> Iterator[Expression]:
    for statement in body:
        if isinstance(statement, If):
            condition = statement.condition
            assert isinstance(condition, Operation)
            assert isinstance(condition.right, Field)
            holds = conditions >> int(condition.right.name) & 1
            yield from nested(statement.then if holds else statement.otherwise, conditions)
        else:
            assert isinstance(statement, Primitive)
            yield statement.parameters[0]


@given(jumping_actions(), st.integers(0, (1 << 14) - 1))
def test_nested_statements_do_what_jumps_do(action: Action, conditions: int) -> None:
    body = action_body(SOURCE, action)

    assert list(nested(body, conditions)) == list(jumped(action, conditions))
