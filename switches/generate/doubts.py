"""Cases in which two switches may differ: fields of headers that are not there, and time.

P4 leaves fields of invalid headers open, and BMv2 has its own clock. Where such a value only moves
on, it shows in the output, and twins of the engine find it (`switches/fuzz/sieve.py`). Where a
program decides by it (a condition, a key, an index), equal outcomes prove nothing: another value
may lead elsewhere. An observed module notes these decisions: those by time are counted, and of
those by a header that is not there the fields' values are kept, as a hash. They are the same in all
twins if the program has written them itself.

Whether a header is there is known at run time only, and a copy of its field into one that decides
somewhere counts as a decision. The fields that depend on time are found beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.externs import named_by
from ringleaf.switches.generate.flow import If, walk
from ringleaf.switches.generate.headers import fields_of
from ringleaf.switches.generate.inputs import inputs_of
from ringleaf.switches.generate.lower import lower
from ringleaf.switches.generate.observing import OPEN, TIMED, ReachedPoint
from ringleaf.switches.generate.primitives import HASHED, PRIMITIVES, READ, effects, fields_in
from ringleaf.switches.generate.storage import ENGINE, valid
from ringleaf.switches.source import (
    STACKS,
    STANDARD,
    VALID,
    Boolean,
    Checksum,
    Conditional,
    Expression,
    FieldSource,
    Named,
    OperationSource,
    Primitive,
    ProgramSource,
    TableSource,
)

CLOCKS = {"ingress_global_timestamp", "egress_global_timestamp", "enq_timestamp", "deq_timedelta"}
"""The depths of queues are not among them: one packet at a time finds the queues empty."""

NEVER, ALWAYS = Boolean(False), Boolean(True)
HASH = 0x9E37_79B9_7F4A_7C15  # odd, with bits all over (Knuth's multiplicative hashing)
_COPIES = ("assign", "modify_field", "set")
_BLURRING = ("==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "d2b", "?")
"""Operations that may have the same outcome for all of a few different operands."""

Place = FieldSource | Named
"""A place of a value: a field, or a register array as a whole."""


def is_clock(field: FieldSource) -> bool:
    """Return whether a field is a time, as the switch itself sets it."""
    return field.header == STANDARD and field.name in CLOCKS


class Doubts:
    """The places of one program whose values depend on time, and those that decide something."""

    def __init__(self, source: ProgramSource) -> None:
        self._source = source
        flows = list(_flows(source))
        named = set().union(_deciding(source), *(read for read, _ in flows))
        clocks = {place for place in named if isinstance(place, FieldSource) and is_clock(place)}
        self.timed = _closure(clocks, flows)
        standard = {
            place
            for _, written in flows
            for place in written
            if isinstance(place, FieldSource) and place.header == STANDARD
        }
        backward = [(written, read) for read, written in flows]
        self.deciding = _closure(_deciding(source) | standard, backward)

    def of(self, field: FieldSource, kind: str) -> Expression:
        """Return the condition that a field is in doubt: OPEN if not there, TIMED by time."""
        if kind == TIMED:
            return Boolean(field in self.timed)
        if not self._source.may_be_missing(field):
            return NEVER
        return _not(OperationSource("valid", None, Named("header", field.header)))

    def about(self, expression: Expression, kind: str) -> Expression:
        """Return the condition that a value is in doubt, of which an operand may settle it."""
        match expression:
            case FieldSource():
                return self.of(expression, kind)
            case Named("header", name) if kind == TIMED and name in self._source.headers:
                return _any(self.of(field, kind) for field in fields_of(self._source, expression))
            case OperationSource("valid"):
                return NEVER
            case OperationSource("and" | "or" as op, left, right) if left is not None:
                a, b = self.about(left, kind), self.about(right, kind)
                if op == "or":
                    left, right = _not(left), _not(right)
                return _or(_and(a, _or(b, right)), _and(b, left))
            case OperationSource("?", left, right, chosen) if (
                left is not None and chosen is not None
            ):
                a, b = self.about(left, kind), self.about(right, kind)
                arms = a if a == b else OperationSource("?", a, b, chosen)
                return _or(self.about(chosen, kind), arms)
            case OperationSource(_, left, right):
                parts = (right,) if left is None else (left, right)
                return _any(self.about(part, kind) for part in parts)
        return NEVER


# Notes in the code.


def note_decision(code: FunctionCode, decides: Expression, precondition: str = "") -> None:
    """Write code that counts packets for which a decision by a value is in doubt.

    Args:
        code: The code, which is only changed if it is observed.
        decides: The value.
        precondition: Code of the condition on which it is made at all; none if it always is.
    """
    if code.observer is not None:
        for kind in (OPEN, TIMED):
            _note(code, kind, "", decides, precondition)


def note_branches(code: FunctionCode, statement: If) -> None:
    """Likewise for an if, and for those in its chain of else-ifs, which are tested alike."""
    if code.observer is None:
        return
    note_decision(code, statement.condition)
    failed = "True"
    while len(statement.otherwise) == 1 and isinstance(statement.otherwise[0], If):
        code.add(f"reached = {failed} and not {code.expressions.condition(statement.condition)}")
        statement, failed = statement.otherwise[0], "reached"
        note_decision(code, statement.condition, precondition="reached")


def note_key(code: FunctionCode, table: TableSource, number: int) -> None:
    """Likewise for a key, by time alone; whether it matters depends on the table's entries.

    One of a header that is not there is 0, and so in no doubt.
    """
    observer = code.observer
    assert observer is not None
    name, target = f"key {number} of {table.name}", table.keys[number].target
    there = code.is_set(valid(target.header)) if code.source.may_be_missing(target) else ""
    _note(code, TIMED, name, target, there)
    observer.columns[ReachedPoint(TIMED, name)] = table.name, number


def note_selector(code: FunctionCode, selector: str) -> None:
    """Likewise for the choice of a member; fields of invalid headers are not hashed."""
    if code.observer is not None:
        inputs = inputs_of(code.source.calculations[selector])
        for field in _ordered(inputs):
            _note(code, TIMED, "", field)


def note_checksum(code: FunctionCode, checksum: Checksum) -> None:
    """Likewise for a checksum's condition; it is of no account without the checksum's header."""
    if checksum.condition is not None:
        there = code.is_set(FieldSource(checksum.target.header, VALID))
        note_decision(code, checksum.condition, precondition=there)


def note_operands(code: FunctionCode, primitive: Primitive) -> None:
    """Likewise for a primitive's operands; copies decide nothing themselves."""
    if code.observer is None or primitive.op == "log_msg":
        return
    match primitive.op, primitive.parameters:
        case op, (FieldSource() as target, value) if op in _COPIES:
            _note_copy(code, target, value)
        case "register_write", (register, index, value):
            note_decision(code, index)
            _note_copy(code, register, value)
        case op, operands:
            for role, operand in zip(PRIMITIVES[op].roles, operands, strict=True):
                if role == READ:
                    note_decision(code, operand)
                elif role == HASHED:
                    note_selector(code, named_by(operand))


def _note_copy(code: FunctionCode, target: Expression, value: Expression) -> None:
    """Note a copy into what decides somewhere, and one that shows little of its value."""
    assert code.observer is not None
    doubts, blurs, there, leads = code.observer.doubts, _blurs(value), "", False
    if isinstance(target, FieldSource):
        if doubts.of(target, OPEN) != NEVER:
            there = code.is_set(FieldSource(target.header, VALID))
        leads = target.header == STANDARD and not is_clock(target)
    if blurs or target in doubts.deciding:
        _note(code, OPEN, "", value, there)
    if blurs or leads:
        _note(code, TIMED, "", value)


def _note(
    code: FunctionCode, kind: str, name: str, decides: Expression, precondition: str = ""
) -> None:
    """Write code that notes a decision, if it is in doubt by what it depends on."""
    assert code.observer is not None
    doubts = code.observer.doubts
    doubt = doubts.about(decides, kind)
    if doubt == NEVER:
        return
    test = code.expressions.condition(doubt)
    with code.block(f"if {precondition} and {test}:" if precondition else f"if {test}:"):
        code.note(kind, name)
        if kind == OPEN:
            word = f"state[state_at + {code.u(code.observer.word_of(ReachedPoint(kind, name)))}]"
            for field in _ordered(fields_in(decides)):
                if doubts.of(field, kind) != NEVER:
                    code.add(f"{word} = {word} * {code.u(HASH)} + {code.read(field)}")


def _ordered(fields: Iterable[FieldSource]) -> list[FieldSource]:
    return sorted(fields, key=lambda field: (field.header, field.name))


# The flow of values, and the conditions on them.


def _flows(source: ProgramSource) -> Iterator[tuple[set[Place], set[Place]]]:
    """Yield for each step of a program the places that it reads, and those that it writes."""
    for primitive in _primitives(source):
        match primitive:
            case Primitive("set", (FieldSource() as target, value)):
                yield {*fields_in(value)}, {target}
            case Primitive("assign_header", (Named() as to, Named() as start)):
                pairs = zip(fields_of(source, to), fields_of(source, start), strict=True)
                for field, origin in pairs:
                    yield {origin}, {field}
            case Primitive("register_read", (FieldSource() as target, Named() as register, index)):
                yield {register, *fields_in(index)}, {target}
            case Primitive("register_write", (Named() as register, index, value)):
                yield {*fields_in(index), *fields_in(value)}, {register}
            case Primitive(op) if op in PRIMITIVES:
                uses = effects(source, primitive)
                yield _values(uses.reads), _values(uses.writes)
    for checksum in source.checksums:
        yield _values(inputs_of(source.calculations[checksum.calculation])), {checksum.target}


def _primitives(source: ProgramSource) -> Iterator[Primitive]:
    states = (state.ops for state in source.states.values())
    actions = (action.primitives for action in source.actions.values())
    for primitives in (*states, *actions, source.deparser):
        for primitive in primitives:
            yield from (p for p in walk(lower(source, primitive)) if isinstance(p, Primitive))


def _deciding(source: ProgramSource) -> set[Place]:
    """Return the fields that decisions name."""
    places: set[Place] = set()
    for pipeline in (source.ingress, source.egress):
        for node in pipeline.nodes.values():
            if isinstance(node, TableSource):
                places |= {key.target for key in node.keys}
            elif isinstance(node, Conditional):
                places |= fields_in(node.condition)
    for state in source.states.values():
        places |= {field for key in state.keys for field in fields_in(key)}
    for primitive in _primitives(source):
        copied = primitive.op in (*_COPIES, "register_write", "assign_header")
        for operand in primitive.parameters:
            if not copied or _blurs(operand):
                places |= fields_in(operand)
    return _values(places)


def _closure(first: Iterable[Place], flows: list[tuple[set[Place], set[Place]]]) -> set[Place]:
    """Return the places that are reached from the first ones."""
    reached = set(first)
    while True:
        more = {place for start, end in flows if start & reached for place in end} - reached
        if not more:
            return reached
        reached |= more


def _values(places: Iterable[Place]) -> set[Place]:
    """Return the places without those that only say whether a header is there, and the like."""
    return {
        place
        for place in places
        if not isinstance(place, FieldSource)
        or (place.header not in (ENGINE, STACKS) and place.name != VALID)
    }


def _blurs(expression: Expression) -> bool:
    """Return whether different operands may lead to the same value, as comparisons do."""
    if not isinstance(expression, OperationSource):
        return False
    parts = (expression.left, expression.right, expression.condition)
    return expression.op in _BLURRING or any(_blurs(part) for part in parts if part is not None)


# Conditions, simplified.


def _not(part: Expression) -> Expression:
    if isinstance(part, Boolean):
        return Boolean(not part.value)
    return OperationSource("not", None, part)


def _and(left: Expression, right: Expression) -> Expression:
    if NEVER in (left, right):
        return NEVER
    if ALWAYS in (left, right):
        return right if left == ALWAYS else left
    return OperationSource("and", left, right)


def _or(left: Expression, right: Expression) -> Expression:
    if ALWAYS in (left, right):
        return ALWAYS
    if NEVER in (left, right):
        return right if left == NEVER else left
    return left if left == right else OperationSource("or", left, right)


def _any(parts: Iterable[Expression]) -> Expression:
    expression: Expression = NEVER
    for part in parts:
        expression = _or(expression, part)
    return expression
