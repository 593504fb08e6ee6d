"""The BMv2 primitives: the fields that each reads and writes, and the code it is compiled to.

A new primitive is one function and one line of `PRIMITIVES`.
Source: behavioral-model `targets/simple_switch/primitives.cpp`, `src/bm_sim/core/primitives.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringleaf.switches.generate.code import Code
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
    assign_header,
    assign_varbit,
    fields_of,
    others_in_union,
    pop,
    push,
    remove_header,
)
from ringleaf.switches.generate.inputs import inputs_of
from ringleaf.switches.generate.marks import LOG, PRIMITIVE, Mark, Value
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
    Field,
    Listed,
    Named,
    Primitive,
    Source,
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
    reads: frozenset[Field]
    writes: frozenset[Field]


@dataclass(frozen=True, slots=True)
class Kind:
    """The treatment of a primitive's parameters; `also` are fields that it writes besides."""

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
            moved = {Field(STACKS, named_by(parameter))}.union(
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
    """Return whether a primitive can make a header valid, invalid or longer, or move it."""
    return bool({MADE, UNMADE, SHIFTED, STRETCHED} & set(_kind(source, primitive).roles))


def headers_made(source: Source, primitive: Primitive) -> set[str]:
    """Return the headers that a primitive can make valid, or longer."""
    made: set[str] = set()
    for role, parameter in zip(_kind(source, primitive).roles, primitive.parameters, strict=True):
        if role == MADE:
            made.add(named_by(parameter))
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
    return [name for element in source.instances.elements(named_by(stack)) for name in element]


def _field(source: Source, primitive: Primitive, parameter: Expression) -> Field:
    if not isinstance(parameter, Field):
        raise source.refuse(f"{primitive.op} must write a field", parameter, primitive.where)
    return parameter


def _assign(code: Code, primitive: Primitive) -> None:
    target, value = primitive.parameters
    assert isinstance(target, Field)
    code.assign(target, value)


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
    "set": Kind(_assign, (WRITTEN, READ)),  # p4c's, of a constant in a deparser
    "register_read": Kind(register_read, (WRITTEN, OBJECT, READ)),
    "register_write": Kind(register_write, (OBJECT, READ, READ)),
    "count": Kind(count, (OBJECT, READ)),
    "modify_field_with_hash_based_offset": Kind(hash_fields, (WRITTEN, READ, HASHED, READ)),
    "modify_field_rng_uniform": Kind(draw_random, (WRITTEN, READ, READ)),
    "mark_to_drop": Kind(drop, (OBJECT,), (EGRESS_SPEC, MCAST_GRP)),
    "drop": Kind(drop, (), (EGRESS_SPEC, MCAST_GRP)),
    "execute_meter": Kind(execute_meter, (OBJECT, READ, WRITTEN)),
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
    # PSA's, as `json/psa.py` reads its methods.
    "get_hash": Kind(get_hash, (WRITTEN, HASHED)),
    "add_to_sum": Kind(add_to_sum, (WRITTEN, HASHED)),
    "subtract_from_sum": Kind(subtract_from_sum, (WRITTEN, HASHED)),
    "pack": Kind(pack, (TOLD,)),
}
