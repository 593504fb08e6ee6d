"""Objects of v1model that a program declares."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleaf.switches.source.expressions import Expression, FieldSource


@dataclass(frozen=True, slots=True)
class RegisterArray:
    """A register array; cells have the numbers 0 to `size` - 1."""

    name: str
    size: int
    width: int  # bits


@dataclass(frozen=True, slots=True)
class CounterArray:
    """An indirect counter; packets and bytes are both counted."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class MeterArray:
    """A two-rate meter; `table` and `target` are of a direct one, which runs on every hit."""

    name: str
    size: int
    by_bytes: bool
    table: str = ""
    target: FieldSource | None = None


@dataclass(frozen=True, slots=True)
class ActionProfile:
    """An action profile, with a selector if it may have groups."""

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
class ConstantInput:
    """A constant stretch of a calculation's input."""

    value: int
    width: int  # bits


@dataclass(frozen=True, slots=True)
class Calculation:
    """A hash or checksum over fields, by BMv2's name of the algorithm."""

    name: str
    algorithm: str
    inputs: tuple[FieldSource | ConstantInput, ...]
    with_payload: bool


@dataclass(frozen=True, slots=True)
class Checksum:
    """A field that a calculation verifies after the parser, or updates before the deparser."""

    target: FieldSource
    calculation: str
    condition: Expression | None
    verify: bool
    update: bool
    where: str = field(default="", compare=False)
