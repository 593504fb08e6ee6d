"""Parser states, actions, and the nodes of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ringleaf.switches.source.expressions import Expression, FieldSource, Primitive


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
        """Return whether it is taken in any case; transitions are tried in their order."""
        return not self.values and self.value_set is None


@dataclass(frozen=True, slots=True)
class ParserState:
    """A state of a parser: what it does, and the keys by which it chooses the next one."""

    name: str
    ops: tuple[Primitive, ...]
    keys: tuple[Expression, ...]
    widths: tuple[int, ...]  # bits of each key
    transitions: tuple[Transition, ...]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A parser value set; `widths` are those of the parts of its key, () if it is unused."""

    name: str
    widths: tuple[int, ...]  # bits
    max_size: int


@dataclass(frozen=True, slots=True)
class ActionSource:
    """An action; `number` is its id in the JSON, where each table has its own copy."""

    number: int
    name: str
    widths: tuple[int, ...]  # bits of each parameter
    primitives: tuple[Primitive, ...]
    parameters: tuple[str, ...] = ()  # their names
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class MatchKey:
    """One key of a table."""

    kind: str  # exact, lpm, ternary, range or optional
    target: FieldSource
    name: str
    mask: int | None = None  # bits that are looked up, as in `key = { x & 0xf0: exact; }`


@dataclass(frozen=True, slots=True)
class ConstEntry:
    """An entry that the program declares (`const entries`)."""

    keys: tuple[tuple[int, ...], ...]  # per key: (value,) (value, prefix) (value, mask) (low, high)
    action: int
    arguments: tuple[int, ...]
    priority: int  # the lowest number wins


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table of a pipeline.

    `next_hit` or `next_miss` of None means that the action alone decides which node is next;
    `next_none` is next after a miss for which there is no default action. A default that is
    constant keeps its action and arguments; one with `action_const` alone keeps its action.
    """

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
    profile: str = ""  # the action profile whose members its entries name in place of actions
    meter: str = ""  # its direct meter
    timed: bool = False  # whether its entries may become idle
    next_none: str | None = None
    action_const: bool = False  # of the default
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    """A node that tests a condition; a next node of None ends the pipeline."""

    name: str
    condition: Expression
    if_true: str | None
    if_false: str | None
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ActionCall:
    """A node that runs an action, by number, without a table."""

    name: str
    action: int
    next: str | None


Node = TableSource | Conditional | ActionCall


@dataclass(frozen=True, slots=True)
class PipelineSource:
    """Ingress or egress: nodes by name, and the first one; None: it is empty."""

    name: str
    first: str | None
    nodes: dict[str, Node]

    @property
    def tables(self) -> Iterator[TableSource]:
        """Return the tables, in the order of the nodes in the JSON."""
        return (node for node in self.nodes.values() if isinstance(node, TableSource))
