"""Numbers at which a program's behaviour may change: its own constants, and the ends of ranges."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ringleaf.switches.fuzz.exclusions import fields_in
from ringleaf.switches.source import (
    Constant,
    Expression,
    FieldSource,
    OperationSource,
    ProgramSource,
)

_ENDS = 0.35  # of all numbers
_OWN = 0.35


class NumberDraw:
    """Draws numbers of any width; entries and packets share it, so that they meet."""

    def __init__(self, source: ProgramSource, rng: random.Random) -> None:
        self._rng = rng
        self._own = sorted({abs(value) for value in _constants(source)})
        self._drawn: dict[int, list[int]] = {}
        self._compared = _comparisons(source)
        self._partners = _partners(source)

    def draw_for(self, field: FieldSource, width: int) -> int:
        """Return a number for a field, probably one that the program compares it with."""
        constants = [value for value in self._compared.get(field, ()) if value < 1 << width]
        if constants and self._rng.random() < 0.8:
            value = self._rng.choice(constants)
            beside = self._rng.random() < 0.2
            return max(value + self._rng.choice((-1, 1)), 0) % (1 << width) if beside else value
        return self.draw(width)

    def partners(self, field: FieldSource) -> list[FieldSource]:
        """Return the fields that a field is compared with."""
        return self._partners.get(field, [])

    def draw(self, width: int) -> int:
        """Return a number of `width` bits."""
        rng = self._rng
        kind = rng.random()
        if kind < _ENDS:
            return rng.choice(ends(width))
        if kind < _ENDS + _OWN and (fitting := self.own(width)):
            return rng.choice(fitting)
        return rng.getrandbits(rng.choice((width, width, min(width, 3)))) if width else 0

    def seldom(self, width: int) -> int:
        """Return one of a few numbers of that width, so that such numbers are often equal."""
        drawn = self._drawn.setdefault(width, [])
        if len(drawn) < 6:
            drawn.append(self.draw(width))
            return drawn[-1]
        return self._rng.choice(drawn)

    def own(self, width: int) -> list[int]:
        """Return the program's constants of at most that width."""
        return [value for value in self._own if value < 1 << width]


def ends(width: int) -> tuple[int, ...]:
    """Return the numbers at which arithmetic of a width goes wrong."""
    if width < 2:
        return tuple(range(1 << width))
    top = 1 << (width - 1)
    return 0, 1, 2 * top - 1, 2 * top - 2, top, top - 1


def _comparisons(source: ProgramSource) -> dict[FieldSource, list[int]]:
    """Return the constants that fields are compared with directly."""
    by_field: dict[FieldSource, set[int]] = {}
    for operation in _operations(source):
        sides = operation.left, operation.right
        constants = [abs(side.value) for side in sides if isinstance(side, Constant)]
        for ref in (side for side in sides if isinstance(side, FieldSource)):
            by_field.setdefault(ref, set()).update(constants)
    return {ref: sorted(values) for ref, values in by_field.items()}


def _partners(source: ProgramSource) -> dict[FieldSource, list[FieldSource]]:
    """Return, per field, the fields on the other side of its operations."""
    partners: dict[FieldSource, dict[FieldSource, None]] = {}
    for operation in _operations(source):
        match operation.left, operation.right:
            case FieldSource() as left, FieldSource() as right:
                partners.setdefault(left, {})[right] = None
                partners.setdefault(right, {})[left] = None
    return {ref: list(others) for ref, others in partners.items()}


def definitions(source: ProgramSource) -> dict[FieldSource, Expression]:
    """Return the values of fields that are assigned in one place: keys and conditions of p4c's."""
    by_target: dict[FieldSource, list[Expression]] = {}
    for action in source.actions.values():
        for primitive in action.primitives:
            match primitive.op, primitive.parameters:
                case "assign" | "modify_field", (FieldSource() as target, value):
                    by_target.setdefault(target, []).append(value)
                case _, (FieldSource() as target, *_):
                    by_target.setdefault(target, []).append(target)  # by something else
    return {
        target: values[0]
        for target, values in by_target.items()
        if len(values) == 1 and target not in fields_in(values[0])
    }


def _operations(item: Any) -> Iterator[OperationSource]:
    if isinstance(item, OperationSource):
        yield item
    if is_dataclass(item):
        for part in fields(item):
            yield from _operations(getattr(item, part.name))
    elif isinstance(item, dict):
        for value in item.values():
            yield from _operations(value)
    elif isinstance(item, tuple | list):
        for value in item:
            yield from _operations(value)


def _constants(item: Any) -> Iterator[int]:
    if isinstance(item, Constant):
        yield item.value
    elif is_dataclass(item):
        for part in fields(item):
            yield from _constants(getattr(item, part.name))
        for name in ("values", "keys"):  # of transitions, and of constant entries
            yield from _whole_numbers(getattr(item, name, ()))
    elif isinstance(item, dict):
        for value in item.values():
            yield from _constants(value)
    elif isinstance(item, tuple | list):
        for value in item:
            yield from _constants(value)


def _whole_numbers(item: Any) -> Iterator[int]:
    if isinstance(item, int):
        yield item
    elif isinstance(item, tuple):
        for value in item:
            yield from _whole_numbers(value)
