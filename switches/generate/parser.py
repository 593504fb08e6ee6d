"""The parser, as one chain of states.

States come in an order in which transitions lead forward, so that the compiler makes plain
jumps of them; only a parser with a cycle is put in a loop. A header's fields that nothing uses
are skipped over.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.doubts import note_decision, note_operands
from ringleaf.switches.generate.extract import ExtractWriter, fail, pull_up_to
from ringleaf.switches.generate.extraction import Extraction, extraction_of
from ringleaf.switches.generate.labels import STATE as STATE_LABEL
from ringleaf.switches.generate.lookahead import end_of, set_ahead
from ringleaf.switches.generate.marks import CONDITION, PARSER_OP, STATE, TOO_SHORT, LineMark
from ringleaf.switches.generate.observing import STATE as REACHED
from ringleaf.switches.generate.parser_primitives import write_straight
from ringleaf.switches.generate.paths import Paths, constant_bits
from ringleaf.switches.generate.select import DONE, SelectWriter
from ringleaf.switches.generate.usage import PARSER_ERROR, FieldUsage
from ringleaf.switches.source import FieldSource, LookAhead, ParserState, Primitive

Rest = Callable[[int | None], None]
"""Writes the code after an operation, which is at this byte of the packet, if that is known."""

# States that a packet may be in, one after the other. BMv2 never leaves a loop that takes nothing
# of the packet; here it ends with P4's ParserTimeout.
LONGEST_WAY = 100_000

LONGEST_NEST = 25  # operations of a state, each inside the one before: Python allows for 100 levels


class ParserWriter:
    """Writes the parser into a handler.

    It leaves `parsed` (bytes of the head that headers took) and the parser error.
    """

    def __init__(self, code: FunctionCode, usage: FieldUsage, paths: Paths) -> None:
        self._code = code
        self._paths = paths
        self._extracts = ExtractWriter(code, usage, paths)
        self._numbers = {name: number for number, name in enumerate(paths.order)}
        self._selects = SelectWriter(code, self._numbers)
        self._parts = len(self._numbers)  # the last number that a state, or a part of one, has
        self._part: tuple[int, Callable[[], None]] | None = None  # that is to be written

    def write(self) -> None:
        """Write the code of the whole parser."""
        code = self._code
        first = code.source.first_state
        code.add("have = row[HEAD_LEN]")
        code.add("parsed = 0")
        sound = code.source.errors["NoError"]
        if sound:  # parser_error is 0 before
            code.set(PARSER_ERROR, [code.u(sound)])
        if first is None:
            return
        code.add(f"step = {self._numbers[first]}")
        if not self._paths.cyclic:
            self._states()
            return
        code.add("turns = 0")
        with code.block(f"while step != {DONE}:"):
            self._states()
            code.add("turns += 1")
            with code.block(f"if turns == {LONGEST_WAY}:"):
                code.add(f"step = {DONE}")
                fail(code, "ParserTimeout")

    def _states(self) -> None:
        for name, number in self._numbers.items():
            label = self._code.label(STATE_LABEL, name)
            with self._code.block(f"if step == {number}:  # {label}"):
                state = self._code.source.states[name]
                self._code.add(f"step = {DONE}", LineMark(STATE, state))
                self._code.note(REACHED, name)
                self._ops(state, 0, self._paths.entry(name))
            while self._part is not None:
                self._write_part(*self._part)

    def _write_part(self, number: int, write: Callable[[], None]) -> None:
        """Write the rest of a long state."""
        self._part = None
        with self._code.block(f"if step == {number}:"):
            self._code.add(f"step = {DONE}")
            write()

    def _ops(self, state: ParserState, number: int, at: int | None) -> None:
        """Write a state from one operation on; `at` is its byte in the packet, if known."""
        if number == len(state.ops):
            self._select(state, at)
            return
        op = state.ops[number]
        self._code.expressions.where = op.where

        def rest(after: int | None) -> None:
            if (number + 1) % LONGEST_NEST:
                self._ops(state, number + 1, after)
                return
            self._parts += 1
            self._code.add(f"step = {self._parts}")
            self._part = self._parts, partial(self._ops, state, number + 1, after)

        match op.op:
            case "extract":
                self._extract(op, self._paths.elements.get((state.name, number)), at, rest)
            case "advance" | "shift":
                self._advance(op, at, rest)
            case "verify":
                self._verify(op, at, rest)
            case "set":
                self._set(op, at, rest)
            case _:
                write_straight(self._code, (op,))
                rest(at)

    def _extract(self, op: Primitive, known: set[int] | None, at: int | None, rest: Rest) -> None:
        code = self._code
        extraction = extraction_of(code.source, op)
        if extraction.stack is None:
            self._extract_next(op, extraction, None, at, rest)
            return
        full = f"{code.read(extraction.count)} >= {code.u(len(extraction.headers))}"
        with code.block(f"if {full}:"):
            fail(code, "StackOutOfBounds")
        with code.block("else:"):
            self._extract_next(op, extraction, known, at, rest)

    def _extract_next(
        self,
        op: Primitive,
        extraction: Extraction,
        known: set[int] | None,
        at: int | None,
        rest: Rest,
    ) -> None:
        code = self._code
        header = code.source.headers[extraction.headers[0]]
        where = "parsed" if at is None else str(at)

        def take(after: str) -> None:
            with code.marked(self._extracts.mark(extraction, op.where)):
                self._extracts.take(extraction, known, where, op.where)
                code.add(f"parsed = {after}")

        if extraction.bits is None:
            size = header.size_bytes
            after = f"parsed + {size}" if at is None else str(at + size)
            with self._if_there(after):
                take(after)
                rest(None if at is None else at + size)
        else:
            with self._extracts.checked_length(extraction, where):
                take(f"{where} + {header.fixed_bytes} + I(bits >> {code.u(3)})")
                rest(None)

    def _advance(self, op: Primitive, at: int | None, rest: Rest) -> None:
        code = self._code
        amount = constant_bits(op)
        if amount is None:
            self._advance_by(op, "parsed" if at is None else str(at), rest)
        elif amount % 8:
            fail(code, "ParserInvalidArgument")
        else:
            size = amount // 8
            after = f"parsed + {size}" if at is None else str(at + size)
            with self._if_there(after):
                code.add(f"parsed = {after}", LineMark(PARSER_OP, op, op.where))
                rest(None if at is None else at + size)

    def _advance_by(self, op: Primitive, where: str, rest: Rest) -> None:
        """Write an `advance` by a computed number of bits."""
        code = self._code
        note_decision(code, op.parameters[0])
        code.add(f"bits = {code.expressions.fitted(op.parameters[0], 32, False)[0]}")
        with code.block(f"if bits & {code.u(7)} != {code.u(0)}:"):
            fail(code, "ParserInvalidArgument")
        with code.block("else:"):
            code.add(f"need = {where} + I(bits >> {code.u(3)})")
            pull_up_to(code, "need")
            with code.block("if have < need:"):
                fail(code, "PacketTooShort", LineMark(TOO_SHORT))
            with code.block("else:"):
                code.add("parsed = need", LineMark(PARSER_OP, op, op.where))
                rest(None)

    def _verify(self, op: Primitive, at: int | None, rest: Rest) -> None:
        code = self._code
        condition, error = op.parameters
        note_decision(code, condition)
        mark = LineMark(CONDITION, condition, op.where, inverted=True)
        failed = code.block(f"if not {code.expressions.condition(condition)}:", mark)
        with failed, code.marked(LineMark(PARSER_OP, op, op.where)):
            code.assign(PARSER_ERROR, error)
        with code.block("else:"):
            rest(at)

    def _set(self, op: Primitive, at: int | None, rest: Rest) -> None:
        code = self._code
        target, value = op.parameters
        assert isinstance(target, FieldSource)
        note_operands(code, op)
        mark = LineMark(PARSER_OP, op, op.where)
        if not isinstance(value, LookAhead):
            with code.marked(mark):
                code.assign(target, value)
            rest(at)
            return
        with self._if_there(end_of(value, at)):
            with code.marked(mark):
                set_ahead(code, target, value, at)
            rest(at)

    def _if_there(self, end: str) -> AbstractContextManager[None]:
        """Open a block for code that needs the packet to have `end` bytes."""
        code = self._code
        with code.block(f"if have < {end}:"):
            limit = f"min({end}, head.size)" if self._paths.unbounded else end
            code.add(f"have = pull(arena, row, head, {limit})")
        with code.block(f"if have < {end}:"):
            fail(code, "PacketTooShort", LineMark(TOO_SHORT))
        return code.block("else:")

    def _select(self, state: ParserState, at: int | None) -> None:
        looks = [key for key in state.keys if isinstance(key, LookAhead)]
        if looks:
            furthest = max(looks, key=lambda key: key.offset + key.width)
            with self._if_there(end_of(furthest, at)):
                self._selects.write(state, at)
        else:
            self._selects.write(state, at)
