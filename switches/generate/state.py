"""The layout of the state that outlives a packet: registers, counters and meters.

Scalar registers, counters, meters and counts of failed assertions are `uint64` in one block of
`arena.fields`. Registers that belong to lanes, declared alike and numbered (`r0`, `r1`, ...), lie
side by side per index in one block of `arena.lanes`, so that a loop over lanes goes through memory
in order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ringleaf.core.units import format_count
from ringleaf.switches.engine.layout import SWITCH_WORDS
from ringleaf.switches.engine.meters import METER_WORDS
from ringleaf.switches.engine.shapes import COUNTER_WORDS
from ringleaf.switches.engine.value_sets import image_words
from ringleaf.switches.generate.jump_targets import loops_of
from ringleaf.switches.generate.storage import SHORTEST_RUN
from ringleaf.switches.source import Constant, Expression, FieldSource, Primitive, ProgramSource

# A switch's words after those of `switches/engine/layout.py`.
STATE_AT = SWITCH_WORDS  # offset in arena.fields of scalar registers and counters
LANE_STATE_AT = SWITCH_WORDS + 1  # offset in arena.lanes of lane registers
SCRATCH_AT = SWITCH_WORDS + 2  # offset in arena.bytes of room for a head
TABLES_AT = SWITCH_WORDS + 3  # per table: offset in arena.fields of its image

MOST_WORDS = 1 << 27  # of scalar registers, counters, meters and value sets: 1 GiB
MOST_LANES = 1 << 28  # of lane registers: 1 GiB


@dataclass(frozen=True, slots=True)
class RegisterCells:
    """The place of a register's cells in a block: cell i's words begin at `start + i * stride`."""

    start: int
    stride: int
    in_lanes: bool
    words: int = 1


class StateLayout:
    """The layout of a program's registers and counters."""

    def __init__(self, source: ProgramSource) -> None:
        self.registers: dict[str, RegisterCells] = {}
        self.counters: dict[str, int] = {}  # first word in the scalar block
        self.value_sets: dict[str, int] = {}  # likewise; a value set's image lies there
        self.meters: dict[str, int] = {}
        self.assertions = _assertions(source)  # by P4 source line
        self.words = 0
        self.lanes = 0
        for group in _numbered_alike(source):
            self._place_group(source, group)
        for register in source.registers.values():
            if register.name not in self.registers:
                words = -(-register.width // 64)
                self.registers[register.name] = RegisterCells(self.words, words, False, words)
                self.words += words * register.size
        for counter in source.counters.values():
            self.counters[counter.name] = self.words
            self.words += COUNTER_WORDS * counter.size
        for label in self.assertions:
            self.assertions[label] = self.words
            self.words += 1
        self.zeroed_words = self.words  # by a reset; meters and value sets keep their configuration
        for meter in source.meters.values():
            if not meter.table:
                self.meters[meter.name] = self.words
                self.words += METER_WORDS * meter.size
        for value_set in source.value_sets.values():
            self.value_sets[value_set.name] = self.words
            self.words += image_words(value_set)

    def check(self, source: ProgramSource) -> None:
        """Refuse a program that needs more memory than one switch may have.

        Raises:
            ConfigError: Naming the limit, and the largest array.
        """
        if self.words <= MOST_WORDS and self.lanes <= MOST_LANES:
            return
        arrays = (source.registers, source.counters, source.meters)
        sizes = [(item.size, name) for known in arrays for name, item in known.items()]
        largest = max(sizes, default=None)
        what = f" ({largest[1]!r} has {format_count(largest[0], 'cell')})" if largest else ""
        size = 8 * self.words + 4 * self.lanes
        raise source.refuse(
            f"registers, counters, meters and value sets take at most {8 * MOST_WORDS} bytes, and"
            f" {4 * MOST_LANES} of lanes{what}",
            size,
        )

    def _place_group(self, source: ProgramSource, group: list[str]) -> None:
        stride = len(group)
        for i, name in enumerate(group):
            self.registers[name] = RegisterCells(self.lanes + i, stride, True)
        self.lanes += stride * source.registers[group[0]].size


def digest_words(source: ProgramSource) -> dict[str, tuple[int, ...]]:
    """Return the number of words of each value of each digest."""
    return {
        digest.name: tuple(-(-_width(source, element) // 64) for element in digest.elements)
        for digest in source.digests.values()
    }


def _width(source: ProgramSource, element: Expression) -> int:
    if isinstance(element, FieldSource):
        return source.field_of(element).width
    if not isinstance(element, Constant):
        raise source.refuse("a digest of what is no field is not supported", element)
    return max(element.value.bit_length(), 1)


def assertion_label(primitive: Primitive) -> str:
    """Return the name of an `assert` or `assume` in reports."""
    return f"{primitive.op} ({primitive.where})" if primitive.where else primitive.op


def loop_label(where: str) -> str:
    """Return the name of an endless loop in reports, given its place in P4 source."""
    return f"endless loop ({where})" if where else "endless loop"


def _assertions(source: ProgramSource) -> dict[str, int]:
    """Return the assertions of a program: those that it has, and that each loop has an end."""
    items = [item for item in source.primitives() if item.op in ("assert", "assume")]
    actions = [action.primitives for action in source.actions.values()]
    loops = [steps[head].where for steps in actions for head in loops_of(source, steps)]
    return dict.fromkeys([*map(assertion_label, items), *map(loop_label, loops)], 0)


def _numbered_alike(source: ProgramSource) -> list[list[str]]:
    """Return the names of registers that are one array in all but syntax, in order."""
    families: dict[tuple[str, int, int], dict[int, str]] = {}
    for register in source.registers.values():
        match = re.fullmatch(r"(.*?)(\d+)", register.name)
        if match and register.width <= 32:
            family = (match[1], register.size, register.width)
            families.setdefault(family, {})[int(match[2])] = register.name
    groups = []
    for members in families.values():
        numbers = sorted(members)
        consecutive = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        if consecutive and len(numbers) >= SHORTEST_RUN:
            groups.append([members[number] for number in numbers])
    return groups
