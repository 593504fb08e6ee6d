"""A P4 program as types: what `bmv2_json.py` reads and the generator writes code for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from ringleaf.errors import ConfigError

VALID = "$valid$"  # the hidden field that says whether a header is there
STANDARD = "standard_metadata"
STACKS = "$stacks"  # the "header" of how many elements of each stack are in use: BMv2's `next`
NO_ACTION = (1 << 32) - 1  # the number of what does nothing, and no program has


class Where(str):
    """A place in P4 source as `FILE line N`, with what p4c says of it; line 0 if unknown."""

    file: str
    line: int  # from 1
    column: int
    fragment: str

    def __new__(cls, file: str, line: int, column: int = 0, fragment: str = "") -> Self:
        where = super().__new__(cls, f"{file} line {line}")
        where.file, where.line, where.column, where.fragment = file, line, column, fragment
        return where


@dataclass(frozen=True, slots=True)
class Field:
    """A reference to a field of a header instance."""

    header: str
    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    value: int


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of the action, by position; its value comes from the table entry."""

    index: int


@dataclass(frozen=True, slots=True)
class LookAhead:
    """Bits of the packet after what is parsed already."""

    offset: int  # bits
    width: int  # bits


@dataclass(frozen=True, slots=True)
class Named:
    """A header, register array, counter array, calculation, ... by its name."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Expressions that are one parameter: what `log_msg` prints."""

    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    op: str
    left: Expression | None
    right: Expression
    condition: Expression | None = None  # of `?`


@dataclass(frozen=True, slots=True)
class Selected:
    """The first of some fields or headers whose condition holds: an element of a stack.

    It is found only as an operand of a primitive, which may write it; what is merely read is
    a chain of `?`.
    """

    options: tuple[tuple[Expression, Field | Named], ...]


Expression = (
    Field | Constant | Boolean | Argument | LookAhead | Named | Listed | Operation | Selected
)


@dataclass(frozen=True, slots=True)
class Primitive:
    """One step of an action or a parser state; `where` is the P4 source line."""

    op: str
    parameters: tuple[Expression, ...]
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class HeaderField:
    name: str
    width: int  # bits, of a varbit field at most
    signed: bool
    offset: int  # bits from the start of the header, without a varbit field before it
    varbit: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    name: str
    fields: tuple[HeaderField, ...]
    metadata: bool

    @property
    def size_bytes(self) -> int:
        """How long it can be."""
        return sum(item.width for item in self.fields) // 8

    @property
    def varbit(self) -> HeaderField | None:
        """Its varbit field; BMv2 allows for one."""
        return next((item for item in self.fields if item.varbit), None)

    @property
    def fixed_bytes(self) -> int:
        """How long it is while its varbit field is empty."""
        return self.size_bytes - (self.varbit.width // 8 if self.varbit else 0)


@dataclass(frozen=True, slots=True)
class Transition:
    """Taken when every key, masked, equals its value, or is a value set's member.

    A default has neither value nor set; without a value set's `masks`, all bits count.
    """

    values: tuple[int, ...]
    masks: tuple[int, ...]
    target: str | None
    value_set: str | None = None

    @property
    def is_default(self) -> bool:
        return not self.values and self.value_set is None


@dataclass(frozen=True, slots=True)
class ParserState:
    name: str
    ops: tuple[Primitive, ...]
    keys: tuple[Expression, ...]
    widths: tuple[int, ...]  # bits of each key
    transitions: tuple[Transition, ...]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A parser value set; `widths` are of the parts of its key, () where nothing uses it."""

    name: str
    widths: tuple[int, ...]  # bits
    max_size: int


@dataclass(frozen=True, slots=True)
class Instances:
    """A program's headers, and how they make up stacks and unions, all by name."""

    headers: dict[str, Header]
    stacks: dict[str, tuple[str, ...]]  # headers, from the first
    unions: dict[str, tuple[str, ...]]  # headers, of which one at most is valid
    union_stacks: dict[str, tuple[str, ...]]  # unions, from the first
    members: dict[str, tuple[str, ...]]  # per union, what its type calls its headers

    def union_of(self, header: str) -> tuple[str, ...]:
        """Return the headers of the union that a header is in; itself alone if in none."""
        for union in self.unions.values():
            if header in union:
                return union
        return (header,)

    def elements(self, stack: str) -> tuple[tuple[str, ...], ...]:
        """Return the headers of each element of a stack, of headers or of unions."""
        if stack in self.stacks:
            return tuple((header,) for header in self.stacks[stack])
        return tuple(self.unions[union] for union in self.union_stacks[stack])


@dataclass(frozen=True, slots=True)
class Action:
    number: int
    name: str
    widths: tuple[int, ...]  # bits of each parameter
    primitives: tuple[Primitive, ...]
    parameters: tuple[str, ...] = ()  # their names
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class MatchKey:
    kind: str  # exact, lpm, ternary, range or optional
    target: Field
    name: str
    mask: int | None = None  # what of the field is looked up, as in `key = { x & 0xf0: exact; }`


@dataclass(frozen=True, slots=True)
class ConstEntry:
    keys: tuple[tuple[int, ...], ...]  # per key: (value,) (value, prefix) (value, mask) (low, high)
    action: int
    arguments: tuple[int, ...]
    priority: int  # the lowest number wins


@dataclass(frozen=True, slots=True)
class Table:
    """`next_hit` or `next_miss` of None means that the action alone decides what is next."""

    name: str
    keys: tuple[MatchKey, ...]
    actions: tuple[int, ...]
    max_size: int
    counted: bool  # has direct counters
    default_action: int
    default_arguments: tuple[int, ...]
    default_const: bool
    entries: tuple[ConstEntry, ...]
    next_by_action: dict[int, str | None]
    by_hit: bool
    next_hit: str | None
    next_miss: str | None
    profile: str = ""  # whose members its entries name in place of actions
    meter: str = ""  # its direct meter
    timed: bool = False  # whether its entries may become idle
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    name: str
    condition: Expression
    if_true: str | None
    if_false: str | None
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ActionCall:
    name: str
    action: int
    next: str | None


Node = Table | Conditional | ActionCall


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    first: str | None
    nodes: dict[str, Node]

    @property
    def tables(self) -> Iterator[Table]:
        return (node for node in self.nodes.values() if isinstance(node, Table))


@dataclass(frozen=True, slots=True)
class RegisterArray:
    name: str
    size: int
    width: int  # bits


@dataclass(frozen=True, slots=True)
class CounterArray:
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class MeterArray:
    """A two-rate meter; `table` and `target` are of a direct one, which runs on every hit."""

    name: str
    size: int
    by_bytes: bool
    table: str = ""
    target: Field | None = None


@dataclass(frozen=True, slots=True)
class ActionProfile:
    name: str
    max_size: int  # members
    selector: str = ""  # the calculation that picks a member of a group


@dataclass(frozen=True, slots=True)
class Digest:
    """A struct that is sent to the control plane."""

    number: int
    name: str
    elements: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Constants:
    """A constant stretch of a calculation's input."""

    value: int
    width: int  # bits


@dataclass(frozen=True, slots=True)
class Calculation:
    name: str
    algorithm: str
    inputs: tuple[Field | Constants, ...]
    with_payload: bool


@dataclass(frozen=True, slots=True)
class Checksum:
    target: Field
    calculation: str
    condition: Expression | None
    verify: bool
    update: bool
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Source:
    """A whole program as p4c wrote it."""

    path: Path
    instances: Instances
    errors: dict[str, int]
    first_state: str | None
    states: dict[str, ParserState]
    value_sets: dict[str, ValueSet]
    emitted: tuple[str, ...]
    deparser: tuple[Primitive, ...]  # what it does before it emits
    registers: dict[str, RegisterArray]
    counters: dict[str, CounterArray]
    calculations: dict[str, Calculation]
    checksums: tuple[Checksum, ...]
    actions: dict[int, Action]
    ingress: Pipeline
    egress: Pipeline
    field_lists: dict[int, tuple[Field, ...]]
    direct_counters: dict[str, str] = field(default_factory=dict)  # name -> table
    meters: dict[str, MeterArray] = field(default_factory=dict)
    profiles: dict[str, ActionProfile] = field(default_factory=dict)
    digests: dict[int, Digest] = field(default_factory=dict)
    deparser_where: str = ""

    @property
    def headers(self) -> dict[str, Header]:
        return self.instances.headers

    def field_of(self, ref: Field) -> HeaderField:
        for item in self.headers[ref.header].fields:
            if item.name == ref.name:
                return item
        assert ref.name == VALID
        return HeaderField(VALID, 1, False, 0)

    def refuse(self, what: str, got: object, where: str = "") -> ConfigError:
        return refusal(self.path, what, got, where)


def refusal(path: Path, what: str, got: object, where: str = "") -> ConfigError:
    """Return the error that says what of this program can't be executed."""
    line = f" ({where})" if where else ""
    return ConfigError(f"{path}: {what}, got {got!r}{line}")
