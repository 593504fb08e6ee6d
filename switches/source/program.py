"""A whole program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ringleaf.errors import ConfigError
from ringleaf.switches.source.architecture import V1MODEL, Architecture
from ringleaf.switches.source.expressions import FieldSource, Primitive
from ringleaf.switches.source.externs import (
    ActionProfile,
    Calculation,
    Checksum,
    CounterArray,
    Digest,
    MeterArray,
    RegisterArray,
)
from ringleaf.switches.source.headers import HeaderField, HeaderSource, Instances
from ringleaf.switches.source.names import VALID
from ringleaf.switches.source.pipelines import ActionSource, ParserState, PipelineSource, ValueSet


@dataclass(frozen=True, slots=True)
class SideSource:
    """A parser, and a deparser with its primitives before it emits."""

    first_state: str | None
    states: dict[str, ParserState]
    emitted: tuple[str, ...]
    deparser: tuple[Primitive, ...]
    deparser_where: str = ""


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """A whole program as p4c wrote it.

    Its parser and deparser are those of ingress where egress has its own (`egress_side`).
    """

    path: Path
    instances: Instances
    errors: dict[str, int]
    first_state: str | None
    states: dict[str, ParserState]
    value_sets: dict[str, ValueSet]
    emitted: tuple[str, ...]
    deparser: tuple[Primitive, ...]  # its primitives before it emits
    registers: dict[str, RegisterArray]
    counters: dict[str, CounterArray]
    calculations: dict[str, Calculation]
    checksums: tuple[Checksum, ...]
    actions: dict[int, ActionSource]
    ingress: PipelineSource
    egress: PipelineSource
    field_lists: dict[int, tuple[FieldSource, ...]]
    direct_counters: dict[str, str] = field(default_factory=dict)  # name -> table
    meters: dict[str, MeterArray] = field(default_factory=dict)
    profiles: dict[str, ActionProfile] = field(default_factory=dict)
    digests: dict[int, Digest] = field(default_factory=dict)
    deparser_where: str = ""
    architecture: Architecture = V1MODEL
    egress_side: SideSource | None = None  # where egress has a parser and a deparser of its own

    @property
    def headers(self) -> dict[str, HeaderSource]:
        """Return all header instances and structs, by name."""
        return self.instances.headers

    def field_of(self, ref: FieldSource) -> HeaderField:
        """Return a field's declaration; a header's hidden `$valid$` has one bit."""
        return self.instances.field_of(ref.header, ref.name)

    def may_be_missing(self, ref: FieldSource) -> bool:
        """Return whether a field is of a header that packets may lack, and is not hidden."""
        header = self.headers.get(ref.header)
        return header is not None and not header.metadata and ref.name != VALID

    def sides(self) -> tuple[ProgramSource, ...]:
        """Return a program per parser: ingress's, then egress's if it has its own."""
        own = self.egress_side
        if own is None:
            return (self,)
        egress = replace(
            self,
            first_state=own.first_state,
            states=own.states,
            emitted=own.emitted,
            deparser=own.deparser,
            deparser_where=own.deparser_where,
        )
        return self, egress

    def primitives(self) -> Iterator[Primitive]:
        """Yield the primitives of actions, parsers and deparsers."""
        for action in self.actions.values():
            yield from action.primitives
        for side in self.sides():
            for state in side.states.values():
                yield from state.ops
            yield from side.deparser

    def refuse(self, what: str, got: object, where: str = "") -> ConfigError:
        """Return the error that the program has something unsupported; it names file and line."""
        return refusal(self.path, what, got, where)


def refusal(path: Path, what: str, got: object, where: str = "") -> ConfigError:
    """Return the error that names the part of a program that can't be executed."""
    line = f" ({where})" if where else ""
    return ConfigError(f"{path}: {what}, got {got!r}{line}")
