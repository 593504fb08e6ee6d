"""Bounds of a P4 program's integer operations: they hold, and by hand they are no wider."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.switches.generate.ranges import _OPERATIONS, LONGEST_SHIFT, Ranges, words_for
from ringleaf.switches.source import Argument, Boolean, Constant, FieldSource, OperationSource

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "/": operator.floordiv, "%": operator.mod,
    "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
intervals = st.tuples(st.integers(-300, 300), st.integers(0, 300)).map(lambda p: (p[0], sum(p)))
natural = st.tuples(st.integers(0, 300), st.integers(0, 300)).map(lambda p: (p[0], sum(p)))


@given(op=st.sampled_from("+-*&|^"), a=intervals, b=intervals, data=st.data())
def test_results_are_within_their_bounds(
    op: str, a: tuple[int, int], b: tuple[int, int], data: st.DataObject
) -> None:
    x, y = (data.draw(st.integers(*each)) for each in (a, b))
    low, high = _OPERATIONS[op](a, b)
    assert low <= OPERATORS[op](x, y) <= high


@given(op=st.sampled_from(["/", "%", "<<", ">>"]), a=natural, b=natural, data=st.data())
def test_results_of_natural_numbers_are_within_their_bounds(
    op: str, a: tuple[int, int], b: tuple[int, int], data: st.DataObject
) -> None:
    x, y = (data.draw(st.integers(*each)) for each in (a, b))
    low, high = _OPERATIONS[op](a, b)
    if y or op in ("<<", ">>"):
        assert low <= OPERATORS[op](x, y) <= high


@pytest.mark.parametrize(
    ("op", "a", "b", "bounds"),
    [
        ("+", (1, 2), (10, 30), (11, 32)),
        ("-", (1, 2), (10, 30), (-29, -8)),
        ("*", (-2, 3), (4, 5), (-10, 15)),
        ("&", (0, 12), (3, 9), (0, 9)),
        ("&", (-8, 12), (3, 9), (0, 9)),
        ("&", (-8, 7), (-3, 3), (-16, 15)),
        ("|", (0, 5), (3, 9), (0, 15)),
        ("^", (0, 0), (0, 7), (0, 7)),
        ("|", (-1, 5), (3, 9), (-16, 15)),
        ("<<", (1, 3), (2, 4), (4, 48)),
        (">>", (8, 64), (1, 3), (1, 32)),
        ("<<", (1, 1), (-5, 0), (1, 1)),
        ("<<", (1, 1), (0, LONGEST_SHIFT + 9), (1, 1 << LONGEST_SHIFT)),
        ("/", (0, 9), (0, 3), (0, 9)),
        ("%", (0, 9), (0, 4), (0, 3)),
        ("%", (0, 2), (0, 4), (0, 2)),
        ("%", (0, 9), (0, 0), (0, 0)),
    ],
)
def test_bounds_by_hand(
    op: str, a: tuple[int, int], b: tuple[int, int], bounds: tuple[int, int]
) -> None:
    assert _OPERATIONS[op](a, b) == bounds


@pytest.mark.parametrize("op", ["/", "%"])
def test_a_negative_operand_may_give_any_word(op: str) -> None:
    for a, b in (((-1, 5), (1, 2)), ((0, 5), (-1, 2))):
        assert _OPERATIONS[op](a, b) == (0, (1 << 64) - 1)


@pytest.mark.parametrize(
    ("bounds", "signed", "words"),
    [
        ((0, 0), False, 1),
        ((0, (1 << 64) - 1), False, 1),
        ((0, 1 << 64), False, 2),
        ((0, (1 << 64) - 1), True, 2),
        ((0, (1 << 63) - 1), True, 1),
        ((-(1 << 63), 0), False, 1),
        ((-(1 << 63) - 1, 0), False, 2),
    ],
)
def test_words_that_hold_values(bounds: tuple[int, int], signed: bool, words: int) -> None:
    assert words_for(bounds, signed=signed) == words


W4, W8 = FieldSource("h", "w4"), FieldSource("h", "w8")
S8, LANE = FieldSource("h", "s8"), FieldSource("h", "lane")
SHAPES = {W4: (4, False), W8: (8, False), S8: (8, True), LANE: (8, True)}


def ranges() -> Ranges:
    """Fields of 4 and 8 bits, signed ones of 8, of which one is a lane; an argument of 16 bits."""
    found = object.__new__(Ranges)
    found.storage = SimpleNamespace(  # type: ignore[assignment]
        shape=lambda field: SimpleNamespace(width=SHAPES[field][0], signed=SHAPES[field][1]),
        lane=lambda field: 7 if field == LANE else None,
    )
    found.arguments = [(("a",), 3), (("b",), 16)]
    return found


@pytest.mark.parametrize(
    ("expression", "bounds"),
    [
        (Constant(-7), (-7, -7)),
        (W4, (0, 15)),
        (S8, (-128, 255)),  # it stays as positive as it was set
        (LANE, (-128, 127)),
        (Argument(0), (0, 7)),
        (Argument(1), (0, 65535)),
        (OperationSource("?", W4, Constant(-3), Boolean(True)), (-3, 15)),
        (OperationSource("?", Constant(20), W4, Boolean(True)), (0, 20)),
        (OperationSource("b2d", None, Boolean(True)), (0, 1)),
        (OperationSource("~", None, W4), (-16, -1)),
        (OperationSource("+", W4, W8), (0, 270)),
        (OperationSource("usat_cast", W8, Constant(4)), (0, 15)),
        (OperationSource("usat_cast", OperationSource("-", W4, Constant(20)), Constant(8)), (0, 0)),
        (OperationSource("usat_cast", W4, Constant(8)), (0, 15)),
        (OperationSource("sat_cast", W8, Constant(4)), (0, 7)),
        (OperationSource("sat_cast", S8, Constant(4)), (-8, 7)),
        (OperationSource("sat_cast", OperationSource("+", W4, Constant(10)), Constant(4)), (7, 7)),
        (
            OperationSource("sat_cast", OperationSource("-", Constant(-20), W4), Constant(4)),
            (-8, -8),
        ),
        (OperationSource("two_comp_mod", W4, Constant(5)), (0, 15)),
        (OperationSource("two_comp_mod", W4, Constant(4)), (-8, 7)),
        (
            OperationSource("two_comp_mod", OperationSource("-", W4, Constant(17)), Constant(5)),
            (-16, 15),
        ),
        (
            OperationSource("two_comp_mod", OperationSource("-", W4, Constant(16)), Constant(5)),
            (-16, -1),
        ),
        (OperationSource("sat_cast", W4, Constant(0)), (0, 0)),  # as of one bit
    ],
)
def test_bounds_of_values_by_hand(expression: Any, bounds: tuple[int, int]) -> None:
    assert ranges().bounds(expression) == bounds
    low, high = bounds
    words = 1 if low >= 0 else max(high.bit_length(), (~low).bit_length()) // 64 + 1
    assert ranges().size(expression) == words
    assert ranges().kind(expression) == ("unsigned" if low >= 0 else "signed")
