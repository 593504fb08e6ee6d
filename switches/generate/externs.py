"""Code of primitives that use a program's registers, counters, meters, hashes and random numbers.

Source: behavioral-model `targets/simple_switch/primitives.cpp`, `targets/psa_switch/externs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ringleaf.switches.engine.meters import METER_WORDS
from ringleaf.switches.generate.calculations import calculate, ones_sum
from ringleaf.switches.generate.code import OUTSIDE, FunctionCode
from ringleaf.switches.generate.metering import COLOR_BITS, color
from ringleaf.switches.generate.observing import OUTSIDE as AWAY
from ringleaf.switches.source import (
    Constant,
    Expression,
    FieldSource,
    Named,
    Primitive,
    RegisterArray,
)


def named_by(parameter: Expression) -> str:
    """Return the name of the object that a parameter refers to."""
    assert isinstance(parameter, Named)
    return parameter.name


@contextmanager
def _guarded(code: FunctionCode, inside: str | None, primitive: Primitive) -> Iterator[None]:
    """Put an access under a test of its index, where one is needed."""
    with code.guarded(inside):
        yield
    if inside is not None:
        with code.lines.optional_block("else:"):
            _note_outside(code, primitive)


def _note_outside(code: FunctionCode, primitive: Primitive) -> None:
    code.note(AWAY, primitive.op, primitive.where)


def _index(code: FunctionCode, expression: Expression, size: int) -> tuple[str, str | None]:
    """Return code of an index, and of the test that it is inside (None where it must be).

    BMv2, built with its checks, leaves everything as it was where an index is outside.
    """
    index = code.expressions.unsigned(expression)
    low, high = code.expressions.bounds(expression)
    if low >= 0 and high < size:
        return index, None
    return index, f"{index} < {code.u(size)}"


def _access(
    code: FunctionCode, array: RegisterArray, index: Expression
) -> tuple[list[str], str | None]:
    """Return code of a register's words, and of the test that the index is inside."""
    known = code.cells.get((array.name, index))
    if known is not None:
        return [known], None
    at, inside = _index(code, index, array.size)
    cells = code.state.registers[array.name]
    if cells.words > 1:
        at = code.expressions.named([at])[0]
        inside = inside and f"{at} < {code.u(array.size)}"
    where = at if cells.stride == 1 else f"{at} * {code.u(cells.stride)}"
    row, base = ("cells", "cells_at") if cells.in_lanes else ("state", "state_at")
    place = f"{base} + {code.u(cells.start)} + {where}"
    if cells.words > 1:
        place = code.expressions.named([place])[0]
    more = [f"{row}[{place} + {code.u(i)}]" for i in range(1, cells.words)]
    return [f"{row}[{place}]", *more], inside


def register_read(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of `register.read`; a read outside of the array leaves the target as it is."""
    target, register, index = primitive.parameters
    assert isinstance(target, FieldSource)
    array = code.source.registers[named_by(register)]
    cell, inside = _access(code, array, index)
    if cell == [OUTSIDE]:
        _note_outside(code, primitive)
        return
    with _guarded(code, inside, primitive):
        words = [f"U({word})" for word in cell] if len(cell) == 1 else cell
        code.set_unsigned(target, words, array.width)


def register_write(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of `register.write`; a write outside of the array has no effect."""
    register, index, value = primitive.parameters
    array = code.source.registers[named_by(register)]
    cell, inside = _access(code, array, index)
    if cell == [OUTSIDE]:
        _note_outside(code, primitive)
        return
    words = code.expressions.fitted(value, array.width, False)
    with _guarded(code, inside, primitive):
        for place, word in zip(cell, words, strict=True):
            code.add(f"{place} = {word}")


def count(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that adds 1, and the packet's length as it came in, to an indirect counter."""
    counter, index = primitive.parameters
    array = code.source.counters[named_by(counter)]
    at, inside = _index(code, index, array.size)
    start = code.state.counters[array.name]
    with _guarded(code, inside, primitive):
        if isinstance(index, Constant):
            code.add(f"counter = state_at + {code.u(start + 2 * index.value)}")
        else:
            code.add(f"counter = state_at + {code.u(start)} + {at} * {code.u(2)}")
        code.add(f"state[counter] += {code.u(1)}")
        code.add(f"state[counter + {code.u(1)}] += U(length)")


def execute_meter(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that meters a packet, and sets the target to its colour."""
    meter, index, target = primitive.parameters
    assert isinstance(target, FieldSource)
    array = code.source.meters[named_by(meter)]
    at, inside = _index(code, index, array.size)
    start = code.u(code.state.meters[array.name])
    with _guarded(code, inside, primitive):
        cell = f"state_at + {start} + {at} * {code.u(METER_WORDS)}"
        code.set_word(target, color(code, array, cell), COLOR_BITS)


def hash_fields(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of v1model's `hash`: base + result % size, where a size of 0 counts as 1."""
    target, base, calculation, size = primitive.parameters
    assert isinstance(target, FieldSource)
    value, width = calculate(code, named_by(calculation), primitive.where)
    most = max(size.value % (1 << 64), 1) if isinstance(size, Constant) else 0
    if most and most & (most - 1) == 0:
        if most < 1 << width:
            value = f"({value} & {code.u(most - 1)})"
    else:  # BMv2 takes 0 for 1
        value = f"({value} % max({code.expressions.unsigned(size)}, {code.u(1)}))"
    if base != Constant(0):
        value = f"({value} + {code.expressions.unsigned(base)})"
    code.set_word(target, value)


def get_hash(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of PSA's `Hash.get_hash` without a base and a maximum."""
    target, calculation = primitive.parameters
    assert isinstance(target, FieldSource)
    value, width = calculate(code, named_by(calculation), primitive.where)
    code.set_word(target, value, width)


def add_to_sum(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of PSA's `InternetChecksum.add`, which sums 16-bit words in ones' complement."""
    _change_sum(code, primitive, inverted=False)


def subtract_from_sum(code: FunctionCode, primitive: Primitive) -> None:
    """Write code that adds the ones' complement of each word (RFC 1624)."""
    _change_sum(code, primitive, inverted=True)


def _change_sum(code: FunctionCode, primitive: Primitive, *, inverted: bool) -> None:
    total, calculation = primitive.parameters
    assert isinstance(total, FieldSource)
    added = ones_sum(code, named_by(calculation), primitive.where, inverted=inverted)
    code.set(total, [f"fold16({code.read(total)} + {added})"])


def draw_random(code: FunctionCode, primitive: Primitive) -> None:
    """Write code of `random`: a number from `low` to `high`, both included."""
    target, low, high = primitive.parameters
    assert isinstance(target, FieldSource)
    first, last = code.expressions.unsigned(low), code.expressions.unsigned(high)
    with code.block(f"if {first} <= {last}:"):  # else BMv2 leaves the field as it was
        code.set_word(target, f"draw(state, block[RANDOM_AT], {first}, {last})")
