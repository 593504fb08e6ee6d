"""Loops over lanes as Python that LLVM vectorises: contiguous views, and nothing to decide.

Values that do not change from lane to lane are settled before the loop: register indices, the tests
that they are inside their arrays, and conditions, each of which makes two loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringleaf.core.units import format_count
from ringleaf.switches.generate.code import OUTSIDE, FunctionCode
from ringleaf.switches.generate.flow import Body, If, Loop, walk
from ringleaf.switches.generate.lanes import Pattern
from ringleaf.switches.generate.primitives import REGISTER_PARAMETERS, effects, fields_in
from ringleaf.switches.source import Expression, FieldSource, Named, Primitive


@dataclass(frozen=True, slots=True)
class Access:
    """One register array of the loop and how its turns index it."""

    register: str
    index: Expression


class LoopWriter:
    """Writes loops over lanes; `write` writes the statements inside and before them."""

    def __init__(self, code: FunctionCode, write: Callable[[Body], None]) -> None:
        self._code = code
        self._write_body = write
        self._views: dict[tuple[str, str, int], str] = {}

    def write(self, loop: Loop, pattern: Pattern) -> None:
        """Write a loop, after the statements that its pattern has moved in front of it."""
        code = self._code
        code.lines.comment(f"{format_count(loop.count, 'lane')}")
        self._write_body(pattern.prefix)
        self._views = {}
        for field, step in pattern.lanes.items():
            view = self._view("lanes", str(step.start), step.step, loop.count)
            code.expressions.overrides[field] = f"U({view})"
            code.targets[field] = view
        guards = self._name_cells(loop, pattern)
        self._guarded(loop, pattern, guards)
        code.expressions.overrides = {}
        code.targets = {}
        code.cells = {}

    def _name_cells(self, loop: Loop, pattern: Pattern) -> dict[str, list[Access]]:
        """Name the loop's register cells; return tests of indices, each with its accesses."""
        code = self._code
        guards: dict[str, list[Access]] = {}
        indices: dict[Expression, str] = {}
        for access in _accesses(loop.body):
            step = pattern.registers.get(access.register)
            if step is None:
                continue
            array = code.source.registers[access.register]
            if access.index not in indices:
                indices[access.index] = f"index_{len(indices)}"
                code.add(f"{indices[access.index]} = {code.expressions.unsigned(access.index)}")
            index = indices[access.index]
            low, high = code.expressions.bounds(access.index)
            if low < 0 or high >= array.size:
                guards.setdefault(f"{index} < {code.u(array.size)}", []).append(access)
            stride = code.u(code.state.registers[array.name].stride)
            start = f"I(cells_at + {code.u(step.start)} + {index} * {stride})"
            view = self._view("cells", start, step.step, loop.count)
            code.cells[access.register, access.index] = view
        return guards

    def _guarded(self, loop: Loop, pattern: Pattern, guards: dict[str, list[Access]]) -> None:
        """Write the loop once per way in which its register indices are inside or not."""
        if not guards:
            self._unswitched(loop.count, loop.body, pattern)
            return
        code = self._code
        guard, guarded = next(iter(guards.items()))
        rest = {other: names for other, names in guards.items() if other != guard}
        with code.block(f"if {guard}:"):
            self._guarded(loop, pattern, rest)
        inside = dict(code.cells)
        code.cells.update({(access.register, access.index): OUTSIDE for access in guarded})
        with code.lines.optional_block("else:"):
            self._guarded(loop, pattern, rest)
        code.cells = inside

    def _unswitched(self, count: int, body: Body, pattern: Pattern) -> None:
        """Write a loop, or two where an `if` goes the same way in every turn."""
        code = self._code
        varying = self._written(body) | set(pattern.lanes)
        for i, statement in enumerate(body):
            if isinstance(statement, If) and not fields_in(statement.condition) & varying:
                before, after = body[:i], body[i + 1 :]
                with code.block(f"if {code.expressions.condition(statement.condition)}:"):
                    self._unswitched(count, (*before, *statement.then, *after), pattern)
                with code.block("else:"):
                    self._unswitched(count, (*before, *statement.otherwise, *after), pattern)
                return
        with code.lines.optional_block(f"for lane in range({count}):"):
            self._turn(body, pattern)

    def _turn(self, body: Body, pattern: Pattern) -> None:
        """Write one turn.

        A register that is not there leaves its target as it was: zero, if that is the turn's
        own temporary, and not what it was in the turn before.
        """
        code = self._code
        for access, target in _reads(body):
            outside = code.cells.get((access.register, access.index)) == OUTSIDE
            if outside and target in pattern.temporaries:
                code.set(target, [code.u(0)])
        self._write_body(body)

    def _written(self, body: Body) -> set[FieldSource]:
        written: set[FieldSource] = set()
        for primitive in _primitives(body):
            written |= effects(self._code.source, primitive).writes
        return written

    def _view(self, array: str, start: str, step: int, count: int) -> str:
        """Return code of a lane's item, in a view that is made before the loop."""
        key = (array, start, step)
        if key not in self._views:
            number = len(self._views)
            if step == 1:
                self._code.add(f"view_{number} = window({array}, {start}, {count})")
                self._views[key] = f"view_{number}[lane]"
            else:
                self._code.add(f"start_{number} = {start}")
                self._views[key] = f"{array}[start_{number} + lane * {step}]"
        return self._views[key]


def _accesses(body: Body) -> list[Access]:
    """Return the register accesses of a loop's body, each kind once."""
    accesses: dict[Access, None] = {}
    for primitive in _primitives(body):
        if primitive.op in REGISTER_PARAMETERS:
            accesses[_access(primitive)] = None
    return list(accesses)


def _reads(body: Body) -> Iterator[tuple[Access, FieldSource]]:
    """Yield the body's reads of registers, with the fields that they write."""
    for primitive in _primitives(body):
        if primitive.op == "register_read":
            target = primitive.parameters[0]
            assert isinstance(target, FieldSource)
            yield _access(primitive), target


def _access(primitive: Primitive) -> Access:
    array, index = (primitive.parameters[i] for i in REGISTER_PARAMETERS[primitive.op])
    assert isinstance(array, Named)
    return Access(array.name, index)


def _primitives(body: Body) -> Iterator[Primitive]:
    return (statement for statement in walk(body) if isinstance(statement, Primitive))
