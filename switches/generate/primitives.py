"""What each BMv2 primitive reads, writes and is compiled to.

A new primitive is one function and one line of `PRIMITIVES`.
Source: behavioral-model `targets/simple_switch/primitives.cpp`, `src/bm_sim/core/primitives.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from switches.generate.calculations import calculate
from switches.generate.code import OUTSIDE, Code
from switches.generate.flow import leaves
from switches.generate.headers import (
    add_header,
    assign_header,
    assign_varbit,
    fields_of,
    others_in_union,
    pop,
    push,
    remove_header,
)
from switches.generate.inputs import inputs_of
from switches.generate.marks import LOG, PRIMITIVE, Mark, Value
from switches.generate.metering import COLOR_BITS, color
from switches.generate.storage import (
    CLONE_FIELDS,
    CLONE_SESSION,
    LEARN,
    LENGTH,
    RECIRCULATE,
    RESUBMIT,
    TRUNCATE_LEN,
    valid,
)
from switches.generate.traffic import (
    EGRESS_SPEC,
    MCAST_GRP,
    assert_,
    clone,
    drop,
    recirculate,
    resubmit,
    tell,
    truncate,
)
from switches.meters import METER_WORDS
from switches.source import (
    STACKS,
    Constant,
    Expression,
    Field,
    Listed,
    Named,
    Primitive,
    RegisterArray,
    Source,
)

# What a parameter is to its primitive.
WRITTEN = "written"  # a field
READ = "read"  # an expression
MADE = "made"  # a header that is written as a whole
UNMADE = "unmade"  # a header that is made invalid
TAKEN = "taken"  # a header that is read as a whole
SHIFTED = "shifted"  # a stack whose elements change places
STRETCHED = "stretched"  # a varbit field, whose length is written, too
HASHED = "hashed"  # a calculation
OBJECT = "object"  # a register or counter array, or nothing that matters
TOLD = "told"  # a digest's number

REGISTER_PARAMETERS = {"register_read": (1, 2), "register_write": (0, 1)}
"""Which parameters of these primitives are the array and the index."""


@dataclass(frozen=True, slots=True)
class Effects:
    reads: frozenset[Field]
    writes: frozenset[Field]


@dataclass(frozen=True, slots=True)
class Kind:
    """How a primitive treats its parameters; `also` are fields that it writes besides."""

    write: Callable[[Code, Primitive], None]
    roles: tuple[str, ...]
    also: tuple[Field, ...] = ()


def effects(source: Source, primitive: Primitive) -> Effects:
    """Return the fields that a primitive reads and writes."""
    kind = _kind(source, primitive)
    reads: set[Field] = set()
    writes = set(kind.also)
    for role, parameter in zip(kind.roles, primitive.parameters, strict=True):
        if role == WRITTEN:
            writes.add(_field(source, primitive, parameter))
        elif role == READ:
            reads |= fields_in(parameter)
        elif role == HASHED:
            assert isinstance(parameter, Named)
            reads |= inputs_of(source.calculations[parameter.name])
        elif role == SHIFTED:
            moved = {Field(STACKS, _name(parameter))}.union(
                *(_whole(source, header) for header in _elements(source, parameter))
            )
            reads |= moved
            writes |= moved
        elif role == STRETCHED:  # what follows it in the packet moves
            field = _field(source, primitive, parameter)
            writes |= set(fields_of(source, Named("header", field.header)))
        elif role == TOLD:
            assert isinstance(parameter, Constant)
            for element in source.digests[parameter.value].elements:
                reads |= fields_in(element)
        elif isinstance(parameter, Named) and role in (MADE, UNMADE, TAKEN):
            whole = _whole(source, parameter.name)
            reads |= whole if role == TAKEN else {valid(parameter.name)}
            made = whole | {valid(name) for name in others_in_union(source, parameter.name)}
            writes |= {MADE: made, UNMADE: {valid(parameter.name)}}.get(role, set())
    return Effects(frozenset(reads), frozenset(writes))


def changes_headers(source: Source, primitive: Primitive) -> bool:
    """Whether it can make a header valid, invalid or longer, or move it."""
    return bool({MADE, UNMADE, SHIFTED, STRETCHED} & set(_kind(source, primitive).roles))


def headers_made(source: Source, primitive: Primitive) -> set[str]:
    """Return the headers that it can make valid, or longer."""
    made: set[str] = set()
    for role, parameter in zip(_kind(source, primitive).roles, primitive.parameters, strict=True):
        if role == MADE:
            made.add(_name(parameter))
        elif role == SHIFTED:
            made |= set(_elements(source, parameter))
        elif role == STRETCHED:
            made.add(_field(source, primitive, parameter).header)
    return made


def write_primitive(code: Code, primitive: Primitive) -> None:
    code.expressions.where = primitive.where
    with code.marked(Mark(PRIMITIVE, primitive, primitive.where)):
        _kind(code.source, primitive).write(code, primitive)


def fields_in(expression: Expression) -> set[Field]:
    found = set()
    for leaf in leaves(expression):
        if isinstance(leaf, Field):
            found.add(leaf)
        elif isinstance(leaf, Named) and leaf.kind == "header":
            found.add(valid(leaf.name))
    return found


def _kind(source: Source, primitive: Primitive) -> Kind:
    if primitive.op not in PRIMITIVES:
        raise source.refuse("primitive is not supported", primitive.op, primitive.where)
    kind = PRIMITIVES[primitive.op]
    if len(kind.roles) != len(primitive.parameters):
        raise source.refuse(
            f"{primitive.op} takes {len(kind.roles)} parameters",
            len(primitive.parameters),
            primitive.where,
        )
    return kind


def _whole(source: Source, header: str) -> set[Field]:
    return {*fields_of(source, Named("header", header)), valid(header)}


def _elements(source: Source, stack: Expression) -> list[str]:
    """Return the headers of all elements."""
    return [name for element in source.instances.elements(_name(stack)) for name in element]


def _field(source: Source, primitive: Primitive, parameter: Expression) -> Field:
    if not isinstance(parameter, Field):
        raise source.refuse(f"{primitive.op} must write a field", parameter, primitive.where)
    return parameter


def _name(parameter: Expression) -> str:
    assert isinstance(parameter, Named)
    return parameter.name


def _assign(code: Code, primitive: Primitive) -> None:
    target, value = primitive.parameters
    assert isinstance(target, Field)
    code.assign(target, value)


def _index(code: Code, expression: Expression, size: int) -> tuple[str, str | None]:
    """Return code of an index, and of the test that it is inside (None where it must be).

    BMv2, built with its checks, leaves everything as it was where an index is outside.
    """
    index = code.expressions.unsigned(expression)
    if code.expressions.bounds(expression)[1] < size:
        return index, None
    return index, f"{index} < {code.u(size)}"


def _access(code: Code, array: RegisterArray, index: Expression) -> tuple[list[str], str | None]:
    """Return code of a register's words, and of the test that they are there."""
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
    starts = range(cells.start, cells.start + cells.words)
    return [f"{row}[{base} + {code.u(start)} + {where}]" for start in starts], inside


def _register_read(code: Code, primitive: Primitive) -> None:
    target, register, index = primitive.parameters
    assert isinstance(target, Field)
    array = code.source.registers[_name(register)]
    cell, inside = _access(code, array, index)
    if cell == [OUTSIDE]:
        return
    with code.guarded(inside):
        code.set_unsigned(target, [f"U({word})" for word in cell], array.width)


def _register_write(code: Code, primitive: Primitive) -> None:
    register, index, value = primitive.parameters
    array = code.source.registers[_name(register)]
    cell, inside = _access(code, array, index)
    if cell == [OUTSIDE]:
        return
    words = code.expressions.fitted(value, array.width, False)
    with code.guarded(inside):
        for place, word in zip(cell, words, strict=True):
            code.add(f"{place} = {word}")


def _count(code: Code, primitive: Primitive) -> None:
    counter, index = primitive.parameters
    array = code.source.counters[_name(counter)]
    at, inside = _index(code, index, array.size)
    start = code.state.counters[array.name]
    with code.guarded(inside):
        if isinstance(index, Constant):
            code.add(f"counter = state_at + {code.u(start + 2 * index.value)}")
        else:
            code.add(f"counter = state_at + {code.u(start)} + {at} * {code.u(2)}")
        code.add(f"state[counter] += {code.u(1)}")
        code.add(f"state[counter + {code.u(1)}] += U(length)")


def _execute_meter(code: Code, primitive: Primitive) -> None:
    meter, index, target = primitive.parameters
    assert isinstance(target, Field)
    array = code.source.meters[_name(meter)]
    at, inside = _index(code, index, array.size)
    start = code.u(code.state.meters[array.name])
    with code.guarded(inside):
        cell = f"state_at + {start} + {at} * {code.u(METER_WORDS)}"
        code.set_word(target, color(code, array, cell), COLOR_BITS)


def _hash(code: Code, primitive: Primitive) -> None:
    target, base, calculation, size = primitive.parameters
    assert isinstance(target, Field)
    value, width = calculate(code, _name(calculation), primitive.where)
    most = max(size.value % (1 << 64), 1) if isinstance(size, Constant) else 0
    if most and most & (most - 1) == 0:
        if most < 1 << width:
            value = f"({value} & {code.u(most - 1)})"
    else:  # BMv2 takes 0 for 1
        value = f"({value} % max({code.expressions.unsigned(size)}, {code.u(1)}))"
    if base != Constant(0):
        value = f"({value} + {code.expressions.unsigned(base)})"
    code.set_word(target, value)


def _random(code: Code, primitive: Primitive) -> None:
    target, low, high = primitive.parameters
    assert isinstance(target, Field)
    first, last = code.expressions.unsigned(low), code.expressions.unsigned(high)
    with code.block(f"if {first} <= {last}:"):  # else BMv2 leaves the field as it was
        code.set_word(target, f"draw(state, block[RANDOM_AT], {first}, {last})")


def _exit(code: Code, _: Primitive) -> None:
    code.add("exited = True")


def _nothing(code: Code, _: Primitive) -> None:
    pass


def _log(code: Code, primitive: Primitive) -> None:
    """Write a line that does nothing, but can be followed (`switches/walk`)."""
    listed = primitive.parameters[1]
    assert isinstance(listed, Listed)
    values = tuple(
        Value("", tuple(code.storage.read(value)), code.storage.shape(value).width)
        if isinstance(value, Field)
        else Value("", (code.expressions.unsigned(value),), 64)
        for value in listed.values
    )
    code.add("pass", Mark(LOG, primitive, primitive.where, values))


PRIMITIVES = {
    "assign": Kind(_assign, (WRITTEN, READ)),
    "modify_field": Kind(_assign, (WRITTEN, READ)),
    "register_read": Kind(_register_read, (WRITTEN, OBJECT, READ)),
    "register_write": Kind(_register_write, (OBJECT, READ, READ)),
    "count": Kind(_count, (OBJECT, READ)),
    "modify_field_with_hash_based_offset": Kind(_hash, (WRITTEN, READ, HASHED, READ)),
    "modify_field_rng_uniform": Kind(_random, (WRITTEN, READ, READ)),
    "mark_to_drop": Kind(drop, (OBJECT,), (EGRESS_SPEC, MCAST_GRP)),
    "drop": Kind(drop, (), (EGRESS_SPEC, MCAST_GRP)),
    "execute_meter": Kind(_execute_meter, (OBJECT, READ, WRITTEN)),
    "clone_ingress_pkt_to_egress": Kind(clone, (READ, READ), (CLONE_SESSION, CLONE_FIELDS)),
    "clone_egress_pkt_to_egress": Kind(clone, (READ, READ), (CLONE_SESSION, CLONE_FIELDS)),
    "resubmit": Kind(resubmit, (READ,), (RESUBMIT,)),
    "recirculate": Kind(recirculate, (READ,), (RECIRCULATE,)),
    "generate_digest": Kind(tell, (OBJECT, TOLD), (LEARN,)),
    "assert": Kind(assert_, (READ,)),
    "assume": Kind(assert_, (READ,)),
    "truncate": Kind(truncate, (READ,), (TRUNCATE_LEN,)),
    "add_header": Kind(add_header, (MADE,), (LENGTH,)),
    "remove_header": Kind(remove_header, (UNMADE,), (LENGTH,)),
    "assign_header": Kind(assign_header, (MADE, TAKEN)),
    "assign_VL": Kind(assign_varbit, (STRETCHED, READ)),
    "push": Kind(push, (SHIFTED, OBJECT)),
    "pop": Kind(pop, (SHIFTED, OBJECT)),
    "exit": Kind(_exit, ()),
    "no_op": Kind(_nothing, ()),
    "log_msg": Kind(_log, (OBJECT, READ)),
}
