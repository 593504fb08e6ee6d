"""The BMv2 primitives: the fields that each reads and writes, and the code it is compiled to.

A new primitive is one function and one line of `PRIMITIVES`.
Source: behavioral-model `targets/simple_switch/primitives.cpp`, `src/bm_sim/core/primitives.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringleaf.core.units import format_count
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.endings import pack
from ringleaf.switches.generate.externs import (
    add_to_sum,
    count,
    draw_random,
    execute_meter,
    get_hash,
    hash_fields,
    named_by,
    register_read,
    register_write,
    subtract_from_sum,
)
from ringleaf.switches.generate.flow import leaves
from ringleaf.switches.generate.headers import (
    add_header,
    add_header_fast,
    assign_header,
    assign_varbit,
    fields_of,
    others_in_union,
    pop,
    push,
    remove_header,
)
from ringleaf.switches.generate.inputs import inputs_of
from ringleaf.switches.generate.marks import LOG, PRIMITIVE, LineMark, ValueMark
from ringleaf.switches.generate.storage import (
    CLONE_FIELDS,
    CLONE_SESSION,
    LEARN,
    LENGTH,
    RECIRCULATE,
    RESUBMIT,
    TRUNCATE_LEN,
    valid,
)
from ringleaf.switches.generate.traffic import (
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
from ringleaf.switches.source import (
    STACKS,
    Constant,
    Expression,
    FieldSource,
    Listed,
    Named,
    Primitive,
    ProgramSource,
)

# The role of a parameter in its primitive.
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
"""The positions of the array and the index among these primitives' parameters."""


@dataclass(frozen=True, slots=True)
class Effects:
    """The fields that a primitive reads and those that it writes."""

    reads: frozenset[FieldSource]
    writes: frozenset[FieldSource]


@dataclass(frozen=True, slots=True)
class PrimitiveRule:
    """The treatment of a primitive's parameters; `also` are fields that it writes besides."""

    write: Callable[[FunctionCode, Primitive], None]
    roles: tuple[str, ...]
    also: tuple[FieldSource, ...] = ()


def effects(source: ProgramSource, primitive: Primitive) -> Effects:
    """Return the fields that a primitive reads and writes."""
    kind = _kind(source, primitive)
    reads: set[FieldSource] = set()
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
            moved = {FieldSource(STACKS, named_by(parameter))}.union(
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
            changed = whole | {valid(name) for name in others_in_union(source, parameter.name)}
            writes |= {MADE: changed, UNMADE: {valid(parameter.name)}}.get(role, set())
    return Effects(frozenset(reads), frozenset(writes))


def changes_headers(source: ProgramSource, primitive: Primitive) -> bool:
    """Return whether a primitive can make a header valid, invalid or longer, or move it."""
    return bool({MADE, UNMADE, SHIFTED, STRETCHED} & set(_kind(source, primitive).roles))


def headers_made(source: ProgramSource, primitive: Primitive) -> set[str]:
    """Return the headers that a primitive can make valid, or longer."""
    headers: set[str] = set()
    for role, parameter in zip(_kind(source, primitive).roles, primitive.parameters, strict=True):
        if role == MADE:
            headers.add(named_by(parameter))
        elif role == SHIFTED:
            headers |= set(_elements(source, parameter))
        elif role == STRETCHED:
            headers.add(_field(source, primitive, parameter).header)
    return headers


def write_primitive(code: FunctionCode, primitive: Primitive) -> None:
    """Write the code of one primitive, marked with its source line.

    Raises:
        ConfigError: If the primitive is not supported, or has another number of operands.
    """
    code.expressions.where = primitive.where
    with code.marked(LineMark(PRIMITIVE, primitive, primitive.where)):
        _kind(code.source, primitive).write(code, primitive)


def fields_in(expression: Expression) -> set[FieldSource]:
    """Return the fields that an expression reads; a header in it stands for its validity."""
    fields = set()
    for leaf in leaves(expression):
        if isinstance(leaf, FieldSource):
            fields.add(leaf)
        elif isinstance(leaf, Named) and leaf.kind == "header":
            fields.add(valid(leaf.name))
    return fields


def _kind(source: ProgramSource, primitive: Primitive) -> PrimitiveRule:
    if primitive.op not in PRIMITIVES:
        raise source.refuse("primitive is not supported", primitive.op, primitive.where)
    kind = PRIMITIVES[primitive.op]
    if len(kind.roles) != len(primitive.parameters):
        raise source.refuse(
            f"{primitive.op} takes {format_count(len(kind.roles), 'parameter')}",
            len(primitive.parameters),
            primitive.where,
        )
    return kind


def _whole(source: ProgramSource, header: str) -> set[FieldSource]:
    return {*fields_of(source, Named("header", header)), valid(header)}


def _elements(source: ProgramSource, stack: Expression) -> list[str]:
    """Return the headers of all elements."""
    return [name for element in source.instances.elements(named_by(stack)) for name in element]


def _field(source: ProgramSource, primitive: Primitive, parameter: Expression) -> FieldSource:
    if not isinstance(parameter, FieldSource):
        raise source.refuse(f"{primitive.op} must write a field", parameter, primitive.where)
    return parameter


def _assign(code: FunctionCode, primitive: Primitive) -> None:
    target, value = primitive.parameters
    assert isinstance(target, FieldSource)
    code.assign(target, value)


def _exit(code: FunctionCode, _: Primitive) -> None:
    code.add("exited = True")


def _nothing(code: FunctionCode, _: Primitive) -> None:
    pass


def _log(code: FunctionCode, primitive: Primitive) -> None:
    """Write a line that does nothing, but can be followed (`switches/walk`)."""
    listed = primitive.parameters[1]
    assert isinstance(listed, Listed)
    values = tuple(
        ValueMark("", tuple(code.storage.read(value)), code.storage.shape(value).width)
        if isinstance(value, FieldSource)
        else ValueMark("", (code.expressions.unsigned(value),), 64)
        for value in listed.values
    )
    code.add("pass", LineMark(LOG, primitive, primitive.where, values))


PRIMITIVES = {
    "assign": PrimitiveRule(_assign, (WRITTEN, READ)),
    "modify_field": PrimitiveRule(_assign, (WRITTEN, READ)),
    "set": PrimitiveRule(_assign, (WRITTEN, READ)),  # p4c's, of a constant in a deparser
    "register_read": PrimitiveRule(register_read, (WRITTEN, OBJECT, READ)),
    "register_write": PrimitiveRule(register_write, (OBJECT, READ, READ)),
    "count": PrimitiveRule(count, (OBJECT, READ)),
    "modify_field_with_hash_based_offset": PrimitiveRule(
        hash_fields, (WRITTEN, READ, HASHED, READ)
    ),
    "modify_field_rng_uniform": PrimitiveRule(draw_random, (WRITTEN, READ, READ)),
    "mark_to_drop": PrimitiveRule(drop, (OBJECT,), (EGRESS_SPEC, MCAST_GRP)),
    "drop": PrimitiveRule(drop, (), (EGRESS_SPEC, MCAST_GRP)),
    "execute_meter": PrimitiveRule(execute_meter, (OBJECT, READ, WRITTEN)),
    "clone_ingress_pkt_to_egress": PrimitiveRule(
        clone, (READ, READ), (CLONE_SESSION, CLONE_FIELDS)
    ),
    "clone_egress_pkt_to_egress": PrimitiveRule(clone, (READ, READ), (CLONE_SESSION, CLONE_FIELDS)),
    "resubmit": PrimitiveRule(resubmit, (READ,), (RESUBMIT,)),
    "recirculate": PrimitiveRule(recirculate, (READ,), (RECIRCULATE,)),
    "generate_digest": PrimitiveRule(tell, (OBJECT, TOLD), (LEARN,)),
    "assert": PrimitiveRule(assert_, (READ,)),
    "assume": PrimitiveRule(assert_, (READ,)),
    "truncate": PrimitiveRule(truncate, (READ,), (TRUNCATE_LEN,)),
    "add_header": PrimitiveRule(add_header, (MADE,), (LENGTH,)),
    "add_header_fast": PrimitiveRule(add_header_fast, (MADE,)),
    "remove_header": PrimitiveRule(remove_header, (UNMADE,), (LENGTH,)),
    "assign_header": PrimitiveRule(assign_header, (MADE, TAKEN)),
    "assign_VL": PrimitiveRule(assign_varbit, (STRETCHED, READ)),
    "push": PrimitiveRule(push, (SHIFTED, OBJECT)),
    "pop": PrimitiveRule(pop, (SHIFTED, OBJECT)),
    "exit": PrimitiveRule(_exit, ()),
    "no_op": PrimitiveRule(_nothing, ()),
    "log_msg": PrimitiveRule(_log, (OBJECT, READ)),
    # PSA's, as `json/psa.py` reads its methods.
    "get_hash": PrimitiveRule(get_hash, (WRITTEN, HASHED)),
    "add_to_sum": PrimitiveRule(add_to_sum, (WRITTEN, HASHED)),
    "subtract_from_sum": PrimitiveRule(subtract_from_sum, (WRITTEN, HASHED)),
    "pack": PrimitiveRule(pack, (TOLD,)),
}
