"""Generated lines know what they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest
from program_cases import BUILT, PROGRAMS, PSA

from ringleaf.networks.virtual.switch_set import load_program
from ringleaf.switches.generate.marks import (
    CONDITION,
    DEPARSE,
    LOOP,
    PRIMITIVE,
    UPDATE,
    VERIFY,
    LineMark,
)
from ringleaf.switches.generate.text import Lines
from ringleaf.switches.source import Conditional, ParserState, Primitive, ProgramSource, TableSource

PATHS = sorted([*PROGRAMS.glob("*.json"), *PSA.glob("*.json"), *BUILT.glob("*.json")])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_marks_name_lines_that_run(path: Path) -> None:
    module = load_program(path).module
    lines = module.text.splitlines()

    for number in module.marks:
        assert lines[number - 1].startswith(" ")
        assert not lines[number - 1].lstrip().startswith("#")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_all_of_a_program_is_marked(path: Path) -> None:
    program = load_program(path)
    source, marks = program.source, program.module.marks.values()
    nodes = [*source.ingress.nodes.values(), *source.egress.nodes.values()]

    def places(kind: str) -> set[str]:
        return {mark.where for mark in marks if mark.kind == kind}

    states = {mark.what.name for mark in marks if isinstance(mark.what, ParserState)}
    tables = {mark.what.name for mark in marks if isinstance(mark.what, TableSource)}
    conditions = {node.where for node in nodes if isinstance(node, Conditional)}
    assert states == set(source.states)
    assert tables == {shape.table.name for shape in program.module.shapes}
    assert places(CONDITION) - {""} <= conditions | _jumps(source)
    assert places(VERIFY) | places(UPDATE) == {checksum.where for checksum in source.checksums}
    assert places(DEPARSE) == {side.deparser_where for side in source.sides()}
    in_parser = {""}  # p4c does not say where
    in_deparser = {step.where for side in source.sides() for step in side.deparser}
    in_actions = _places_of_actions(source)
    assert places(PRIMITIVE) | places(LOOP) <= in_actions | in_deparser | in_parser


def _places_of_actions(source: ProgramSource) -> set[str]:
    return {item.where for action in source.actions.values() for item in action.primitives}


def _jumps(source: ProgramSource) -> set[str]:
    actions = source.actions.values()
    steps = [item for action in actions for item in action.primitives]
    return {item.where for item in steps if item.op == "_jump_if_zero"}


def test_a_whole_mark_covers_those_inside_it() -> None:
    lines = Lines()
    whole, inner = LineMark(LOOP, whole=True), LineMark(PRIMITIVE, Primitive("no_op", ()))

    lines.add("a")
    with lines.marked(whole), lines.block("for lane in range(2):"), lines.marked(inner):
        lines.add("b", inner)
    with lines.marked(inner), lines.block("if b:", LineMark(CONDITION)):
        lines.add("c")
    lines.add("d")

    kinds = [line.mark and line.mark.kind for line in lines.lines]  # type: ignore[attr-defined]
    assert kinds == [None, LOOP, LOOP, CONDITION, PRIMITIVE, None]
