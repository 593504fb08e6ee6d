"""Bounds of a P4 program's integer operations: they hold, and by hand they are no wider."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.switches.generate.ranges import _OPERATIONS, LONGEST_SHIFT, words_for

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
