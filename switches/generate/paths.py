"""All ways through a parser: where headers can lie, and how deep it looks."""

from __future__ import annotations

from dataclasses import dataclass

from switches.source import Constant, Named, ParserState, Primitive, Source


@dataclass(frozen=True, slots=True)
class Way:
    """What is known about the packet when a state is entered on one of the possible ways."""

    offset: int  # bytes parsed
    emitted: int  # headers of the deparser's order up to the last extracted; -1 if out of order


class Paths:
    """All ways through a parser without cycles: where headers can lie, and how deep it goes.

    `deepest` is the most bytes that any way takes; `in_order` whether each way extracts headers
    in the order in which the deparser emits them, and only those, with no gaps.
    """

    LIMIT = 10_000  # ways through one state; beyond, headers are said to lie anywhere

    def __init__(self, source: Source) -> None:
        self._source = source
        self.order = _order(source)
        self.cyclic = self.order is None
        self.offsets: dict[str, set[int]] = {name: set() for name in source.headers}
        self.entries: dict[str, set[int]] = {name: set() for name in source.states}
        self.deepest = 0
        self.in_order = not self.cyclic
        if self.order is None:
            self.order = list(source.states)
            self.deepest = sum(h.size_bytes for h in source.headers.values() if not h.metadata)
        else:
            self._walk(self.order)

    def moving(self) -> set[str]:
        """Return the headers that can lie at more than one place."""
        if self.cyclic:
            return {name for name, header in self._source.headers.items() if not header.metadata}
        return {name for name, offsets in self.offsets.items() if len(offsets) > 1}

    def offset(self, header: str) -> int | None:
        """Return the one place where a header can lie; 0 of one that is never parsed."""
        if header in self.moving():
            return None
        return next(iter(self.offsets[header]), 0)

    def entry(self, state: str) -> int | None:
        """Return the one number of bytes that can be parsed when a state is entered."""
        if self.cyclic or len(self.entries[state]) != 1:
            return None
        return next(iter(self.entries[state]))

    def _walk(self, order: list[str]) -> None:
        ways: dict[str, set[Way]] = {name: set() for name in order}
        if self._source.first_state is not None:
            ways[self._source.first_state].add(Way(0, 0))
        for name in order:
            state = self._source.states[name]
            self.entries[name] = {way.offset for way in ways[name]}
            after = {self._through(state, way) for way in ways[name]}
            if len(after) > self.LIMIT:
                raise self._source.refuse("a parser with so many ways is not supported", name)
            for target in {transition.target for transition in state.transitions} - {None}:
                assert target is not None
                ways[target] |= after

    def _through(self, state: ParserState, way: Way) -> Way:
        offset, emitted = way.offset, way.emitted
        for op in state.ops:
            if op.op == "extract":
                name = extracted_header(op)
                self.offsets[name].add(offset)
                offset += self._source.headers[name].size_bytes
                emitted = self._next_emitted(name, emitted)
            elif op.op in ("advance", "shift"):
                offset += constant_bytes(self._source, op)
                emitted = -1
        self.deepest = max(self.deepest, offset)
        self.in_order &= emitted >= 0
        return Way(offset, emitted)

    def _next_emitted(self, name: str, emitted: int) -> int:
        order = self._source.emitted
        if emitted < 0 or name not in order[emitted:]:
            return -1
        return order.index(name, emitted) + 1


def _order(source: Source) -> list[str] | None:
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


def constant_bytes(source: Source, op: Primitive) -> int:
    """Return how many bytes an `advance` skips."""
    amount = op.parameters[0]
    if not isinstance(amount, Constant):
        raise source.refuse("advance() by a computed amount is not supported", op.op, op.where)
    bits = amount.value * (8 if op.op == "shift" else 1)
    if bits % 8:
        raise source.refuse("advance() must be by whole bytes", bits, op.where)
    return bits // 8


def extracted_header(op: Primitive) -> str:
    """Return the header that an `extract` extracts."""
    header = op.parameters[0]
    assert isinstance(header, Named)
    return header.name
