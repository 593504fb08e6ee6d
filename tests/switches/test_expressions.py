"""Generated arithmetic on 64-bit words against BMv2's unbounded integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from program_cases import PROGRAMS

from ringleaf.errors import ConfigError
from switches import arithmetic
from switches.bmv2_json import load_source
from switches.generate.expressions import Expressions
from switches.generate.storage import Storage
from switches.generate.text import Constants
from switches.source import Constant, Expression, Field, Operation

SOURCE = load_source(PROGRAMS / "expressions.json")
FIELDS = {name: SOURCE.field_of(Field("i", name)) for name in "abcdefgnstuvywx"}
RESULTS = ("sum64", "sum32", "sum8", "joined", "signed_sum", "negative", "long_sum", "wide_and")

Values = dict[str, int]


# What BMv2 computes (behavioral-model, data.h and fields.h).


def compute(expression: Any, values: Values) -> int:
    match expression:
        case Constant():
            return expression.value
        case Field():
            return values[expression.name]
        case Operation("?", left, right, chosen):
            return compute(left if compute(chosen, values) else right, values)
        case Operation("b2d", _, right):
            return int(compute(right, values))
        case Operation("not", _, right):
            return int(not compute(right, values))
        case Operation("~", _, right):
            return ~compute(right, values)
        case Operation(op, left, right):
            return OPERATORS[op](compute(left, values), compute(right, values))
    raise AssertionError(expression)


def two_comp_mod(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "two_comp_mod": two_comp_mod,
    "usat_cast": lambda value, width: clamp(value, 0, (1 << width) - 1),
    "sat_cast": lambda value, width: clamp(value, -(1 << width - 1), (1 << width - 1) - 1),
    "/": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
}


def stored(value: int, width: int, signed: bool) -> int:
    """Return what a field holds after an assignment (fields.h, export_bytes)."""
    if not signed:
        return value & ((1 << width) - 1)
    if width == 64:  # the one case in which BMv2's value has no room here
        return two_comp_mod(value, width)
    if -(1 << (width - 1)) <= value < 1 << width:
        return value
    return two_comp_mod(value, width)


# Expressions, and what the generator makes of them.

leaves = st.one_of(
    st.sampled_from([Field("i", name) for name in FIELDS]),
    st.integers(-(2**20), 2**70).map(Constant),
    st.sampled_from([0, 1, -1, 255, 2**31, 2**32 - 1, 2**64 - 1]).map(Constant),
)
widths = st.sampled_from([3, 8, 17, 32, 40, 63, 64]).map(Constant)


def extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    compare = st.builds(
        Operation, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner, inner
    )
    test = st.one_of(
        compare,
        st.builds(Operation, st.sampled_from(["and", "or"]), compare, compare),
        st.builds(lambda right: Operation("not", None, right), compare),
    )
    amounts = st.one_of(st.integers(0, 130).map(Constant), st.just(Field("i", "g")))
    masks = st.sampled_from([0xFF, 0xFFFF0000, 2**64 - 1, 2**100 - 1]).map(Constant)
    return st.one_of(
        st.builds(Operation, st.sampled_from("+-*&|^"), inner, inner),
        st.builds(Operation, st.sampled_from(["<<", ">>"]), inner, amounts),
        st.builds(Operation, st.just("&"), inner, masks),
        st.builds(Operation, st.sampled_from("/%"), inner, inner),
        st.builds(
            Operation, st.sampled_from(["two_comp_mod", "sat_cast", "usat_cast"]), inner, widths
        ),
        st.builds(lambda right: Operation("~", None, right), inner),
        st.builds(lambda right: Operation("b2d", None, right), test),
        st.builds(lambda *parts: Operation("?", *parts), inner, inner, test),
    )


expressions = st.recursive(leaves, extend, max_leaves=6)


@st.composite
def field_values(draw: st.DrawFn) -> Values:
    values = {}
    for name, shape in FIELDS.items():
        edges = [0, 1, (1 << shape.width) - 1, 1 << (shape.width - 1)]
        number = draw(st.one_of(st.sampled_from(edges), st.integers(0, (1 << shape.width) - 1)))
        values[name] = two_comp_mod(number, shape.width) if shape.signed else number
    return values


def words_of(value: int, width: int) -> list[np.uint64]:
    return [np.uint64(value >> 64 * i & 2**64 - 1) for i in range(-(-width // 64))]


def evaluate(expression: Expression, values: Values, result: str) -> int:
    """Return what the generated code leaves in a field."""
    storage, constants = Storage(SOURCE), Constants()
    code = Expressions(SOURCE, storage, constants)
    target = SOURCE.field_of(Field("o", result))
    words = code.fitted(expression, target.width, target.signed)
    names: dict[str, Any] = vars(arithmetic) | {"U": np.uint64, "I": np.int64}
    exec("import numpy as np\n" + "\n".join(constants.lines()), names)
    for name, shape in FIELDS.items():
        pairs = zip(
            storage.names(Field("i", name)), words_of(values[name], shape.width), strict=True
        )
        names.update(pairs)
    with np.errstate(over="ignore"):
        found = [eval(word, names) for word in words]
    assert all(isinstance(word, np.uint64) for word in found)
    number = sum(int(word) << 64 * i for i, word in enumerate(found))
    return two_comp_mod(number, 64) if target.signed else number


@settings(max_examples=400)
@given(expressions, field_values(), st.sampled_from(RESULTS))
def test_code_computes_what_bmv2_does(expression: Any, values: Values, result: str) -> None:
    target = SOURCE.field_of(Field("o", result))
    try:
        got = evaluate(expression, values, result)
    except ConfigError:
        assume(False)
    assert got == stored(compute(expression, values), target.width, target.signed)


@given(field_values(), st.integers(0, 200))
def test_variable_shifts_of_any_amount(values: Values, amount: int) -> None:
    values["n"] = amount
    for op in ("<<", ">>"):
        for name in ("a", "s"):
            expression = Operation(op, Field("i", name), Field("i", "n"))
            whole = Operation("&", expression, Constant(2**64 - 1))
            assert evaluate(whole, values, "sum64") == compute(whole, values)


def test_bounds_are_exact_where_masks_may_be_left_out() -> None:
    code = Expressions(SOURCE, Storage(SOURCE), Constants())
    total = Operation("+", Field("i", "c"), Field("i", "d"))

    assert code.bounds(total) == (0, 2**33 - 2)
    assert code.fitted(total, 40, False) == ["(i_c_ + i_d_)"]
    assert code.fitted(total, 32, False) == ["((i_c_ + i_d_) & u_ffffffff)"]


@pytest.mark.parametrize("op", ["/", "%"])
def test_division_by_zero_is_zero(op: str) -> None:
    values = dict.fromkeys(FIELDS, 0) | {"a": 7}
    assert evaluate(Operation(op, Field("i", "a"), Field("i", "b")), values, "sum64") == 0


def test_wide_constant_is_not_an_index() -> None:
    code = Expressions(SOURCE, Storage(SOURCE), Constants())
    code.where = "x.p4 line 1"
    with pytest.raises(ConfigError, match=r"may be negative can't be used here.*\(x\.p4 line 1\)"):
        code.unsigned(Constant(-1))
    with pytest.raises(ConfigError, match="more than 64 bits can't be used here"):
        code.unsigned(Field("i", "w"))
    with pytest.raises(ConfigError, match="not a boolean"):
        code.condition(Field("i", "a"))
