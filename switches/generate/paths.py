"""All ways through a parser: the places where headers can lie, and the depth to which it looks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ringleaf.switches.generate.extraction import extraction_of
from ringleaf.switches.source import (
    Constant,
    Expression,
    HeaderSource,
    LookAhead,
    ParserState,
    Primitive,
    ProgramSource,
)

LONGEST_PACKET = 10_000  # bytes; a parser that may take any number of bytes takes these at most


@dataclass(frozen=True, slots=True)
class ParserPath:
    """The facts known about the packet when a state is entered on one of the possible ways."""

    offset: int | None  # bytes parsed, where that is known
    emitted: int  # headers of the deparser's order up to the last extracted; -1 if out of order
    counts: tuple[int, ...]  # elements of each stack that were extracted


class Paths:
    """All ways through a parser without cycles: the places of headers, and the depth it reaches.

    `deepest` is the most bytes that any way takes; `in_order` whether each way extracts headers
    in the order in which the deparser emits them, and only those, with no gaps. Of a parser with
    cycles, or with more ways than `LIMIT`, nothing is known: headers lie anywhere.
    """

    LIMIT = 10_000  # ways through one state

    def __init__(self, source: ProgramSource) -> None:
        self._source = source
        self._stacks = [*source.instances.stacks, *source.instances.union_stacks]
        order = _order(source)
        self.cyclic = order is None
        self.order = order or list(source.states)
        self.unbounded = self.cyclic
        self.deepest = self._deepest()
        self._forget()
        if order is not None:
            self.known = self._walk(order)
            if not self.known:
                self._forget()

    def _forget(self) -> None:
        self.offsets: dict[str, set[int | None]] = {name: set() for name in self._source.headers}
        self.entries: dict[str, set[int | None]] = {name: set() for name in self._source.states}
        self.elements: dict[tuple[str, int], set[int]] = {}  # that an operation can extract
        self.in_order = self.known = False

    def moving(self) -> set[str]:
        """Return the headers that can lie at more than one place."""
        if not self.known:
            return {name for name, header in self._source.headers.items() if not header.metadata}
        return {
            name for name, offsets in self.offsets.items() if len(offsets) > 1 or None in offsets
        }

    def offset(self, header: str) -> int | None:
        """Return the one place where a header can lie; 0 of one that is never parsed."""
        if header in self.moving():
            return None
        return next(iter(self.offsets[header]), 0)

    def entry(self, state: str) -> int | None:
        """Return the one number of bytes that can be parsed when a state is entered."""
        if not self.known or len(self.entries[state]) != 1:
            return None
        return next(iter(self.entries[state]))

    def room(self) -> int:
        """Return how many bytes of a packet the parser can need side by side."""
        return max(self.deepest, LONGEST_PACKET) if self.unbounded else self.deepest

    def _walk(self, order: list[str]) -> bool:
        """Follow all ways; return whether they were few enough."""
        once = len(set(self._source.emitted)) == len(self._source.emitted)
        self.in_order = once and not self._source.instances.unions
        ways: dict[str, set[ParserPath]] = {name: set() for name in order}
        if self._source.first_state is not None:
            ways[self._source.first_state].add(ParserPath(0, 0, (0,) * len(self._stacks)))
        for name in order:
            state = self._source.states[name]
            self.entries[name] = {way.offset for way in ways[name]}
            results = [self._through(state, way) for way in ways[name]]
            after = {way for way in results if way is not None}
            if len(after) > self.LIMIT:
                return False
            for target in {transition.target for transition in state.transitions} - {None}:
                assert target is not None
                ways[target] |= after
        return True

    def _through(self, state: ParserState, way: ParserPath) -> ParserPath | None:
        """Return the facts known after a state; None if it always ends with an error."""
        ways = self._operations(state, way)
        self.in_order &= ways[-1].emitted >= 0
        return ways[-1] if len(ways) > len(state.ops) else None

    def _operations(self, state: ParserState, way: ParserPath) -> list[ParserPath]:
        """Return the facts known at first, and after each operation until one fails."""
        ways = [way]
        for number, op in enumerate(state.ops):
            if op.op == "extract":
                after = self._extract(state, number, op, way)
                if after is None:
                    break
                way = after
            elif op.op in ("advance", "shift"):
                amount = constant_bits(op)
                if amount is not None and amount % 8:
                    break
                known = amount is not None and way.offset is not None
                offset = way.offset + amount // 8 if known else None  # type: ignore[operator]
                way = replace(way, offset=offset, emitted=-1)
            ways.append(way)
        return ways

    def _extract(
        self, state: ParserState, number: int, op: Primitive, way: ParserPath
    ) -> ParserPath | None:
        extraction = extraction_of(self._source, op)
        element, counts = 0, way.counts
        if extraction.stack is not None:
            at = self._stacks.index(extraction.stack)
            element = counts[at]
            if element >= len(extraction.headers):
                return None
            self.elements.setdefault((state.name, number), set()).add(element)
            counts = (*counts[:at], element + 1, *counts[at + 1 :])
        name = extraction.headers[element]
        self.offsets[name].add(way.offset)
        fixed = extraction.bits is None and way.offset is not None
        size = self._source.headers[name].size_bytes
        offset = way.offset + size if fixed else None  # type: ignore[operator]
        return ParserPath(offset, self._next_emitted(name, way.emitted), counts)

    def _next_emitted(self, name: str, emitted: int) -> int:
        order = self._source.emitted
        if emitted < 0 or name not in order[emitted:]:
            return -1
        return order.index(name, emitted) + 1

    def _deepest(self) -> int:
        """Return how many bytes the parser takes at most; a guess where it is unbounded."""
        states = self._source.states
        if self.cyclic:
            return sum(h.size_bytes for h in self._source.headers.values() if not h.metadata)
        entered = dict.fromkeys(states, 0)
        deepest = 0
        for name in self.order:
            after = entered[name]
            for op in states[name].ops:
                deepest = max(deepest, after + _looked_at(op.parameters))
                after += self._taken(op)
            deepest = max(deepest, after + _looked_at(states[name].keys))
            for transition in states[name].transitions:
                if transition.target is not None:
                    entered[transition.target] = max(entered[transition.target], after)
        return deepest

    def _taken(self, op: Primitive) -> int:
        if op.op == "extract":
            headers: dict[str, HeaderSource] = self._source.headers
            return headers[extraction_of(self._source, op).headers[0]].size_bytes
        if op.op not in ("advance", "shift"):
            return 0
        amount = constant_bits(op)
        self.unbounded |= amount is None
        return (amount or 0) // 8


def _looked_at(operands: Iterable[Expression]) -> int:
    """Return how many bytes beyond those taken a parser looks ahead for these operands."""
    ends = [item.offset + item.width for item in operands if isinstance(item, LookAhead)]
    return -(-max(ends, default=0) // 8)


def _order(source: ProgramSource) -> list[str] | None:
    """Return the states, each before those that it leads to; None if there is a cycle."""
    done: list[str] = []
    seen: dict[str, bool] = {}

    def visit(name: str) -> bool:
        if name in seen:
            return seen[name]  # False while its own successors are being visited
        seen[name] = False
        for transition in source.states[name].transitions:
            if transition.target is not None and not visit(transition.target):
                return False
        seen[name] = True
        done.append(name)
        return True

    if source.first_state is not None and not visit(source.first_state):
        return None
    return done[::-1]


def constant_bits(op: Primitive) -> int | None:
    """Return how many bits an `advance` skips, if that is known."""
    amount = op.parameters[0]
    if not isinstance(amount, Constant):
        return None
    return amount.value * (8 if op.op == "shift" else 1)
