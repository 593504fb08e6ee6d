"""The parts of a program that are not compared, or only in part: time decides what they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ringleaf.switches.generate.doubts import is_clock
from ringleaf.switches.source import (
    ActionSource,
    Conditional,
    Expression,
    FieldSource,
    PipelineSource,
    Primitive,
    ProgramSource,
    TableSource,
)


def clocks_read(source: ProgramSource) -> list[str]:
    """Return the times that a program reads, with their places."""
    clocks: dict[str, None] = {}
    for item, where in _readers(source):
        for ref in fields_in(item):
            if is_clock(ref):
                clocks[f"{ref.header}.{ref.name}{_at(where)}"] = None
    return list(clocks)


def unconfigured(source: ProgramSource) -> list[str]:
    """Return the objects that are not configured, each with the reason."""
    return [
        *(
            f"rates of meter {name}, only bursts: time decides what rates do"
            for name in source.meters
        ),
        *(
            f"value set {name}: simple_switch_CLI pads its members wrongly, which BMv2 ends by"
            for name in source.value_sets
        ),
    ]


def _at(where: str) -> str:
    return f" ({where})" if where else ""


def _readers(source: ProgramSource) -> Iterator[tuple[Any, str]]:
    """Yield everything that reads fields, with its place in the source."""
    for action in source.actions.values():
        yield from _reads(action)
    for state in source.states.values():
        yield from ((primitive.parameters[1:], primitive.where) for primitive in state.ops)
        yield state.keys, ""
    for pipeline in (source.ingress, source.egress):
        yield from _pipeline_reads(pipeline)
    for checksum in source.checksums:
        yield checksum.condition, checksum.where
    yield from ((calculation.inputs, "") for calculation in source.calculations.values())


def _reads(action: ActionSource) -> Iterator[tuple[tuple[Expression, ...], str]]:
    for primitive in action.primitives:
        yield _read_by(primitive), primitive.where


def _read_by(primitive: Primitive) -> tuple[Expression, ...]:
    """Return a primitive's operands, but for the one that it writes."""
    writes = primitive.parameters and isinstance(primitive.parameters[0], FieldSource)
    return primitive.parameters[1:] if writes else primitive.parameters


def _pipeline_reads(pipeline: PipelineSource) -> Iterator[tuple[Any, str]]:
    for node in pipeline.nodes.values():
        if isinstance(node, TableSource):
            yield tuple(key.target for key in node.keys), node.where
        elif isinstance(node, Conditional):
            yield node.condition, node.where


def fields_in(item: Any) -> Iterator[FieldSource]:
    """Yield all fields in an expression, or in several."""
    if isinstance(item, FieldSource):
        yield item
    elif is_dataclass(item):
        for part in fields(item):
            yield from fields_in(getattr(item, part.name))
    elif isinstance(item, tuple | list):
        for value in item:
            yield from fields_in(value)
