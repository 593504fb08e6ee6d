"""Generated arithmetic on 64-bit words against BMv2's unbounded integers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from numba import types
from program_cases import PROGRAMS

from ringleaf.core.compiler import build
from ringleaf.errors import ConfigError
from ringleaf.switches.engine import arithmetic, multiword
from ringleaf.switches.generate.expressions import Expressions
from ringleaf.switches.generate.storage import Storage, word_count
from ringleaf.switches.generate.text import Lines, ModuleConstants
from ringleaf.switches.json.program import load_source
from ringleaf.switches.source import (
    VALID,
    Constant,
    Expression,
    FieldSource,
    HeaderField,
    HeaderSource,
    Named,
    OperationSource,
)

UNSIGNED_WIDTHS = (1, 5, 8, 32, 63, 64, 65, 100, 128, 200, 2048)
SIGNED_WIDTHS = (2, 8, 32, 63, 64, 65, 100, 128, 129, 2048)

SHAPES = {
    f"{'s' if signed else 'u'}{width}": HeaderField(f"x{width}", width, signed, 0)
    for signed, widths in ((False, UNSIGNED_WIDTHS), (True, SIGNED_WIDTHS))
    for width in widths
}
SHAPES |= {f"{name}b": shape for name, shape in SHAPES.items()}
PLAIN = load_source(PROGRAMS / "expressions.json")
FIELDS = tuple(replace(shape, name=name) for name, shape in SHAPES.items())
_HEADERS = {
    name: HeaderSource(name, (*FIELDS, HeaderField(VALID, 1, False, 0)), False) for name in "io"
}
SOURCE = replace(
    PLAIN, instances=replace(PLAIN.instances, headers=PLAIN.instances.headers | _HEADERS)
)
RESULTS = tuple(SHAPES)

Values = dict[str, int]


class UndefinedError(Exception):
    """BMv2 aborts here."""


# What BMv2 computes (behavioral-model, data.h and fields.h).


def compute(expression: Any, values: Values) -> int:
    match expression:
        case Constant():
            return expression.value
        case FieldSource():
            return values[expression.name]
        case OperationSource("?", left, right, chosen):
            return compute(left if compute(chosen, values) else right, values)
        case OperationSource("b2d", _, right):
            return int(compute(right, values))
        case OperationSource("d2b", _, right):
            return compute(right, values) != 0
        case OperationSource("not", _, right):
            return not compute(right, values)
        case OperationSource("~", _, right):
            return ~compute(right, values)
        case OperationSource(op, left, right):
            return OPERATORS[op](compute(left, values), compute(right, values))
    raise AssertionError(expression)


def two_comp_mod(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def of_naturals(op: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def apply(a: int, b: int) -> int:
        if a < 0 or b < 0:
            raise UndefinedError
        return op(a, b) if b else 0

    return apply


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
    "/": of_naturals(operator.floordiv),
    "%": of_naturals(operator.mod),
}


def stored(value: int, width: int, signed: bool) -> int:
    """Return what a field holds after an assignment (fields.h, export_bytes)."""
    if not signed:
        return value & ((1 << width) - 1)
    if -(1 << (width - 1)) <= value < 1 << width:
        return value
    return two_comp_mod(value, width)


# Expressions, and what the generator makes of them.

EDGES = [0, 1, -1, 255, 2**31, 2**32 - 1, 2**63, 2**64 - 1, 2**64, 2**128 - 1, -(2**127), 2**2047]
leaves = st.one_of(
    st.sampled_from([FieldSource("i", name) for name in SHAPES]),
    st.integers(-(2**70), 2**2048 - 1).map(Constant),
    st.sampled_from(EDGES).map(Constant),
)
widths = st.sampled_from([3, 8, 17, 32, 63, 64, 65, 100, 128, 129, 2048]).map(Constant)
AMOUNTS = [FieldSource("i", name) for name in ("u1", "u5", "u8")]


def extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    compare = st.builds(
        OperationSource, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner, inner
    )
    test = st.one_of(
        compare,
        st.builds(OperationSource, st.sampled_from(["and", "or"]), compare, compare),
        st.builds(lambda right: OperationSource("not", None, right), compare),
        st.builds(lambda right: OperationSource("d2b", None, right), inner),
    )
    amounts = st.one_of(st.integers(0, 260).map(Constant), st.sampled_from(AMOUNTS))
    masks = st.sampled_from([0xFF, 2**64 - 1, 2**100 - 1, 2**128 - 1, 2**2048 - 1, 255 << 60])
    return st.one_of(
        st.builds(OperationSource, st.sampled_from("+-*&|^"), inner, inner),
        st.builds(OperationSource, st.sampled_from(["<<", ">>"]), inner, amounts),
        st.builds(OperationSource, st.just("&"), inner, masks.map(Constant)),
        st.builds(OperationSource, st.sampled_from("/%"), inner, inner),
        st.builds(
            OperationSource,
            st.sampled_from(["two_comp_mod", "sat_cast", "usat_cast"]),
            inner,
            widths,
        ),
        st.builds(lambda right: OperationSource("~", None, right), inner),
        st.builds(lambda right: OperationSource("b2d", None, right), test),
        st.builds(lambda *parts: OperationSource("?", *parts), inner, inner, test),
    )


expressions = st.recursive(leaves, extend, max_leaves=6)
assignments = st.tuples(expressions, st.sampled_from(RESULTS))


def read(wanted: Sequence[tuple[Any, str]]) -> tuple[str, ...]:
    """Return the names of fields that expressions read, in order."""
    waiting, names = [expression for expression, _ in wanted], set()
    while waiting:
        match waiting.pop():
            case FieldSource(_, name):
                names.add(name)
            case OperationSource(_, left, right, condition):
                waiting += (left, right, condition)
    return tuple(name for name in SHAPES if name in names)


@st.composite
def field_values(draw: st.DrawFn, names: Sequence[str]) -> Values:
    """Values of some fields; the others are 0, as to draw them takes long."""
    values = dict.fromkeys(SHAPES, 0)
    for name in names:
        shape = SHAPES[name]
        top = 1 << (shape.width - 1)
        edges = [0, 1, 2 * top - 1, top, top - 1]
        number = draw(st.one_of(st.sampled_from(edges), st.integers(0, 2 * top - 1)))
        odd = shape.signed and draw(st.booleans())  # as positive as BMv2 lets a field be
        values[name] = two_comp_mod(number, shape.width) if shape.signed and not odd else number
    return values


def words_of(value: int, count: int) -> list[np.uint64]:
    return [np.uint64(value >> 64 * i & 2**64 - 1) for i in range(count)]


def value_of(words: Any, shape: HeaderField) -> int:
    number = sum(int(word) << 64 * i for i, word in enumerate(words))
    return two_comp_mod(number, 64 * len(words)) if shape.signed else number


class Function:
    """Assignments as one generated function of an array of the fields' words."""

    def __init__(self, wanted: Sequence[tuple[Expression, str]]) -> None:
        storage, constants, lines = Storage(SOURCE), ModuleConstants(), Lines(1)
        code = Expressions(SOURCE, storage, constants, lines)
        read = [word for name in SHAPES for word in storage.names(FieldSource("i", name))]
        at = self._count = len(read)
        self._shapes = [SHAPES[result] for _, result in wanted]
        for (expression, _), shape in zip(wanted, self._shapes, strict=True):
            for word in code.fitted(expression, shape.width, shape.signed):
                lines.add(f"fields[{at}] = {word}")
                at += 1
        used = set(re.findall(r"\w+", "\n".join(lines.lines)))  # others take long to compile
        reads = [f" {word} = fields[{at}]" for at, word in enumerate(read) if word in used]
        self._size = at
        text = ["import numpy as np", *constants.lines(), "def run(fields):", *reads, *lines.lines]
        names = vars(arithmetic) | vars(multiword) | {"U": np.uint64, "I": np.int64}
        exec("\n".join(text), names)
        self._run = names["run"]

    def compile(self) -> Function:
        build.ready()  # of the helpers that the text calls
        signature = types.void(types.Array(types.uint64, 1, "C"))
        self._run = numba.njit(signature, error_model="numpy", _nrt=False)(self._run)
        return self

    def __call__(self, values: Values) -> list[int]:
        fields = np.zeros(self._size, np.uint64)
        words = [
            word
            for name, shape in SHAPES.items()
            for word in words_of(values[name], word_count(shape))
        ]
        fields[: len(words)] = words
        with np.errstate(over="ignore"):
            self._run(fields)
        found, at = [], self._count
        for shape in self._shapes:
            found.append(value_of(fields[at : at + word_count(shape)], shape))
            at += word_count(shape)
        return found


def expected(wanted: Sequence[tuple[Expression, str]], values: Values) -> list[int]:
    results = []
    for expression, name in wanted:
        shape = SHAPES[name]
        try:
            results.append(stored(compute(expression, values), shape.width, shape.signed))
        except UndefinedError:
            assume(False)
    return results


def evaluate(expression: Expression, values: Values, result: str) -> int:
    return Function([(expression, result)])(values)[0]


@settings(max_examples=250)
@given(assignments, st.data())
def test_code_computes_what_bmv2_does(wanted: tuple[Any, str], data: st.DataObject) -> None:
    values = data.draw(field_values(read([wanted])))
    assert Function([wanted])(values) == expected([wanted], values)


@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(st.lists(assignments, min_size=5, max_size=5), st.data())
def test_compiled_code_computes_the_same(wanted: list[Any], data: st.DataObject) -> None:
    function = Function(wanted).compile()
    for _ in range(5):
        values = data.draw(field_values(read(wanted)))
        assert function(values) == expected(wanted, values)


def binary(op: str, left: Any, right: Any, width: int = 2048) -> OperationSource:
    """Return an operation on unsigned values as p4c writes it."""
    return OperationSource("&", OperationSource(op, left, right), Constant((1 << width) - 1))


WHOLE = [
    (binary(op, FieldSource("i", f"u{width}"), FieldSource("i", f"u{width}b"), width), f"u{width}")
    for op in "+-*/%|&^"
    for width in (65, 200, 2048)
]


def shifted(width: int, *names: str) -> list[tuple[Expression, str]]:
    """Return shifts of fields by a field, to results as wide."""
    return [
        (binary(op, FieldSource("i", name), FieldSource("i", "u8"), width), f"u{width}")
        for op in ("<<", ">>")
        for name in names
    ]


SHIFTED = shifted(2048, "u64", "s64", "u200", "s100", "u2048", "s2048")
COMPILED = [*WHOLE, *shifted(200, "u64", "s64", "u200", "s100"), *shifted(2048, "s2048")]


@settings(max_examples=30, deadline=None)
@given(field_values(read(COMPILED)))
def test_all_operations_compiled(values: Values) -> None:
    assert all_operations()(values) == expected(COMPILED, values)


@cache
def all_operations() -> Function:
    return Function(COMPILED).compile()


@cache
def all_shifts() -> Function:
    return Function(SHIFTED)


@given(field_values(read(SHIFTED)), st.integers(0, 255))
def test_variable_shifts_of_any_amount(values: Values, amount: int) -> None:
    values["u8"] = amount
    assert all_shifts()(values) == [compute(expression, values) for expression, _ in SHIFTED]


@pytest.mark.parametrize("shift", [0, 3, 63, 64, 65, 127, 128, 500])
@pytest.mark.parametrize("less", [1, 2**63 + 5])
def test_constant_shifts_of_negative_differences_keep_the_sign(shift: int, less: int) -> None:
    """Of words of any size, whichever hold the bits that are shifted out."""
    values = dict.fromkeys(SHAPES, 0) | {"u64b": less}
    difference = OperationSource("-", FieldSource("i", "u64"), FieldSource("i", "u64b"))
    shifted = OperationSource(">>", difference, Constant(shift))
    for result, width in (("u64", 64), ("u128", 128), ("u200", 200)):
        assert evaluate(shifted, values, result) == (-less >> shift) % 2**width


NARROW = ("u8", "u32", "u63", "u64", "u65", "u128", "s8", "s32", "s63", "s64", "s65", "s128")
ENDS: tuple[Callable[[int, int], int], ...] = (
    lambda low, high: low,
    lambda low, high: high,
    lambda low, high: 0,
    lambda low, high: max(low, -1),
    lambda low, high: high // 2,
    lambda low, high: high // 2 + 1,
    lambda low, high: min(high, 2**31),
    lambda low, high: min(high, 2**32 - 1),
    lambda low, high: min(high, 2**64 + 2**32 - 1),
    lambda low, high: min(high, 2**64 + 2**31),
    lambda low, high: max(low, -(2**31) - 1),
    lambda low, high: max(low, -(2**63)),
    lambda low, high: max(low, -(2**64) + 5),
)
"""Values of a field, by the least and the greatest that it can have."""


@pytest.mark.parametrize("result", NARROW)
def test_every_conversion_is_right_at_the_ends_of_its_range(result: str) -> None:
    """Of fields of all types, their negatives, doubles and complements, to fields of all types."""
    zero = Constant(0)
    fields = [FieldSource("i", name) for name in NARROW]
    wanted: list[tuple[Expression, str]] = [
        (expression, result)
        for field in fields
        for expression in (
            field,
            OperationSource("-", zero, field),
            OperationSource("+", field, field),
            OperationSource("~", None, field),
            OperationSource("sat_cast", field, Constant(32)),
            OperationSource("usat_cast", field, Constant(32)),
            OperationSource("two_comp_mod", field, Constant(32)),
        )
    ]
    function = Function(wanted)
    for end in ENDS:
        values = {
            name: end(-(1 << shape.width - 1) if shape.signed else 0, (1 << shape.width) - 1)
            for name, shape in SHAPES.items()
        }
        assert function(values) == expected(wanted, values)


@pytest.mark.parametrize(
    ("name", "width", "is_short"), [("u64", 32, True), ("u64", 63, True), ("u65", 32, False)]
)
def test_a_value_of_one_word_is_stored_by_one_call(name: str, width: int, is_short: bool) -> None:
    code = Expressions(SOURCE, Storage(SOURCE), ModuleConstants(), Lines())
    (text,) = code.fitted(FieldSource("i", name), width, True)
    assert text.startswith("U(store_signed(") == is_short


@pytest.mark.parametrize(("name", "width"), [("s32", 32), ("u32", 32), ("s8", 32), ("u63", 63)])
def test_a_value_that_a_signed_field_can_hold_is_stored_as_it_is(name: str, width: int) -> None:
    code = Expressions(SOURCE, Storage(SOURCE), ModuleConstants(), Lines())
    assert code.fitted(FieldSource("i", name), width, True) == [
        *code.storage.names(FieldSource("i", name))
    ]


@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
def test_every_comparison_is_right_at_the_ends_of_its_range(op: str) -> None:
    """Of fields of two types each, with each other's ends; 1 is where it holds."""
    wanted: list[tuple[Expression, str]] = [
        (
            OperationSource(
                "b2d",
                None,
                OperationSource(op, FieldSource("i", one), FieldSource("i", f"{other}b")),
            ),
            "u8",
        )
        for one in NARROW
        for other in NARROW
    ]
    function = Function(wanted)
    for first, second in product(ENDS[:9], ENDS[1::3]):
        values = {
            name: (second if name.endswith("b") else first)(
                -(1 << shape.width - 1) if shape.signed else 0, (1 << shape.width) - 1
            )
            for name, shape in SHAPES.items()
        }
        assert function(values) == expected(wanted, values)


TESTS: tuple[Expression, ...] = (
    OperationSource("<", FieldSource("i", "u8"), FieldSource("i", "u32")),
    OperationSource(
        "not", None, OperationSource("==", FieldSource("i", "u8"), FieldSource("i", "u32"))
    ),
    OperationSource("d2b", None, FieldSource("i", "u8")),
    OperationSource(
        "and",
        OperationSource("d2b", None, FieldSource("i", "u8")),
        OperationSource("d2b", None, FieldSource("i", "u32")),
    ),
    OperationSource(
        "?",
        OperationSource("d2b", None, FieldSource("i", "u32")),
        OperationSource(">", FieldSource("i", "u8"), FieldSource("i", "u32")),
        OperationSource("d2b", None, FieldSource("i", "u8")),
    ),
)


@pytest.mark.parametrize("op", ["==", "!="])
@pytest.mark.parametrize("values", list(product((0, 1, 5), (0, 1, 5))))
def test_booleans_are_compared_as_booleans(op: str, values: tuple[int, int]) -> None:
    """Those of conditions of all kinds, each with each."""
    wanted: list[tuple[Expression, str]] = [
        (OperationSource("b2d", None, OperationSource(op, one, other)), "u8")
        for one, other in product(TESTS, TESTS)
    ]
    fields = dict.fromkeys(SHAPES, 0) | {"u8": values[0], "u32": values[1]}
    found = [
        int(OPERATORS[op](bool(compute(one, fields)), bool(compute(other, fields))))
        for one, other in product(TESTS, TESTS)
    ]
    assert Function(wanted)(fields) == found


def test_bounds_are_exact_where_masks_may_be_left_out() -> None:
    storage = Storage(SOURCE)
    code = Expressions(SOURCE, storage, ModuleConstants(), Lines())
    first, second = FieldSource("i", "u32"), FieldSource("i", "u32b")
    total = OperationSource("+", first, second)
    (a,), (b,) = storage.names(first), storage.names(second)

    assert code.bounds(total) == (0, 2**33 - 2)
    assert code.fitted(total, 40, False) == [f"({a} + {b})"]
    assert code.fitted(total, 32, False) == [f"(({a} + {b}) & u_ffffffff)"]


@pytest.mark.parametrize("op", ["/", "%"])
@pytest.mark.parametrize("name", ["u64", "u65", "u2048"])
def test_division_by_zero_is_zero(op: str, name: str) -> None:
    values = dict.fromkeys(SHAPES, 0) | {name: 7}
    division = OperationSource(op, FieldSource("i", name), FieldSource("i", f"{name}b"))
    assert evaluate(division, values, "u64") == 0


@pytest.mark.parametrize(("valid", "equal"), [(1, 1), (0, 0)])
def test_headers_are_equal_if_both_are_valid(valid: int, equal: int) -> None:
    lines, constants = Lines(), ModuleConstants()
    storage = Storage(SOURCE)
    code = Expressions(SOURCE, storage, constants, lines)
    headers = [Named("header", name) for name in "io"]
    same = code.condition(OperationSource("==", *headers))
    other = code.condition(OperationSource("!=", *headers))
    assert not lines.lines
    names: dict[str, Any] = {"np": np, "I": np.int64, "U": np.uint64}
    exec("\n".join(constants.lines()), names)
    for header in "io":
        for field in (*SHAPES, VALID):
            words = storage.names(FieldSource(header, field))
            names |= dict.fromkeys(words, np.uint64(valid if field == VALID else 3))
    assert (eval(same, names), eval(other, names)) == (bool(equal), not equal)
    names[storage.names(FieldSource("o", "s2048"))[-1]] += np.uint64(1)
    assert (eval(same, names), eval(other, names)) == (False, True)


def test_indices_are_the_low_64_bits() -> None:
    storage = Storage(SOURCE)
    code = Expressions(SOURCE, storage, ModuleConstants(), Lines())
    assert code.unsigned(FieldSource("i", "u128")) == storage.names(FieldSource("i", "u128"))[0]


def test_what_is_no_boolean_is_refused_by_line() -> None:
    code = Expressions(SOURCE, Storage(SOURCE), ModuleConstants(), Lines())
    code.where = "x.p4 line 1"
    with pytest.raises(ConfigError, match=r"not a boolean.*\(x\.p4 line 1\)"):
        code.condition(FieldSource("i", "u64"))


def test_what_saturates_keeps_within_both_ends() -> None:
    clamped = [arithmetic.clamp(*map(np.int64, (value, -8, 7))) for value in (-9, -8, 0, 7, 8)]
    assert clamped == [-8, -8, 0, 7, 7]
