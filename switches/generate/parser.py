"""The parser, as one chain of states.

States come in an order in which transitions lead forward, so that the compiler makes plain
jumps of them; only a parser with a cycle is put in a loop. A header's fields that nothing uses
are skipped over.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from switches.generate.bits import lanes_call, read_bits
from switches.generate.code import Code
from switches.generate.marks import (
    CONDITION,
    EXTRACT,
    PARSER_OP,
    SELECT,
    STATE,
    TOO_SHORT,
    Mark,
    Value,
)
from switches.generate.paths import Paths, constant_bytes, extracted_header
from switches.generate.primitives import write_primitive
from switches.generate.storage import Storage, position, valid
from switches.generate.usage import PARSER_ERROR, Usage
from switches.source import (
    VALID,
    Expression,
    Field,
    LookAhead,
    ParserState,
    Primitive,
    Transition,
)

DONE = -1  # number of the state after the last


class ParserWriter:
    """Writes the parser into a handler.

    It leaves `parsed` (bytes of the head that headers took) and the parser error.
    """

    def __init__(self, code: Code, usage: Usage, paths: Paths) -> None:
        self._code = code
        self._usage = usage
        self._paths = paths
        assert paths.order is not None
        self._numbers = {name: number for number, name in enumerate(paths.order)}

    def write(self) -> None:
        code = self._code
        first = code.source.first_state
        code.add("have = row[HEAD_LEN]")
        code.add("parsed = 0")
        if first is None:
            return
        code.add(f"step = {self._numbers[first]}")
        if self._paths.cyclic:
            with code.block(f"while step != {DONE}:"):
                self._states()
        else:
            self._states()

    def _states(self) -> None:
        for name, number in self._numbers.items():
            with self._code.block(f"if step == {number}:  # {name}"):
                state = self._code.source.states[name]
                self._code.add(f"step = {DONE}", Mark(STATE, state))
                self._ops(state, state.ops, self._paths.entry(name))

    def _ops(self, state: ParserState, ops: tuple[Primitive, ...], at: int | None) -> None:
        """Write what is left of a state; `at` is where in the packet it is, if known."""
        if not ops:
            self._select(state, at)
            return
        code = self._code
        op, rest = ops[0], ops[1:]
        where = "parsed" if at is None else str(at)
        if op.op in ("extract", "advance", "shift"):
            name = extracted_header(op) if op.op == "extract" else None
            size = code.source.headers[name].size_bytes if name else constant_bytes(code.source, op)
            after = f"parsed + {size}" if at is None else str(at + size)
            with self._if_there(after):
                with code.marked(self._step(op, name)):
                    if name:
                        self._extract(name, where)
                    code.add(f"parsed = {after}")
                self._ops(state, rest, None if at is None else at + size)
            return
        self._other_op(state, op, rest, at)

    def _step(self, op: Primitive, header: str | None) -> Mark:
        if header is None:
            return Mark(PARSER_OP, op, op.where)
        return Mark(EXTRACT, self._code.source.headers[header], op.where)

    def _other_op(
        self, state: ParserState, op: Primitive, rest: tuple[Primitive, ...], at: int | None
    ) -> None:
        code = self._code
        code.expressions.where = op.where
        if op.op == "verify":
            condition, error = op.parameters
            mark = Mark(CONDITION, condition, op.where, inverted=True)
            failed = code.block(f"if not {code.expressions.condition(condition)}:", mark)
            with failed, code.marked(Mark(PARSER_OP, op, op.where)):
                code.assign(PARSER_ERROR, error)
            with code.block("else:"):
                self._ops(state, rest, at)
            return
        if op.op == "set":
            target, value = op.parameters
            assert isinstance(target, Field)
            if isinstance(value, LookAhead):
                with self._if_there(self._end_of(value, at)):
                    shape = code.storage.shape(target)
                    with code.marked(Mark(PARSER_OP, op, op.where)):
                        code.set(target, self._look(value, at, shape.width, shape.signed))
                    self._ops(state, rest, at)
                return
            with code.marked(Mark(PARSER_OP, op, op.where)):
                code.assign(target, value)
        else:
            write_primitive(code, op)
        self._ops(state, rest, at)

    def _if_there(self, end: str) -> AbstractContextManager[None]:
        """Open a block for what needs the packet to have `end` bytes."""
        code = self._code
        with code.block(f"if have < {end}:"):
            code.add(f"have = pull(arena, row, head, {end})")
        with code.block(f"if have < {end}:"), code.marked(Mark(TOO_SHORT)):
            code.set(PARSER_ERROR, [code.u(code.source.errors.get("PacketTooShort", 1))])
        return code.block("else:")

    def _extract(self, name: str, where: str) -> None:
        code = self._code
        header = code.source.headers[name]
        code.lines.comment(f"extract {name}")
        in_run = set()
        for run in code.storage.runs_of(name):
            fields = [Field(name, item.name) for item in header.fields[run.first :][: run.count]]
            in_run |= set(fields)
            if self._usage.extracted & set(fields):
                start = header.fields[run.first].offset // 8
                code.add(lanes_call("read", run, f"{where} + {start}"))
        for item in header.fields:
            field = Field(name, item.name)
            if field in self._usage.extracted and field not in in_run:
                words = read_bits(code, where, item.offset, item.width)
                code.set(field, _signed(words, item.width) if item.signed else words)
        code.set(valid(name), [code.u(1)])
        if name in self._paths.moving():
            code.set(position(name), [f"U({where})"])

    def _end_of(self, value: LookAhead, at: int | None) -> str:
        size = -(-(value.offset + value.width) // 8)
        return f"parsed + {size}" if at is None else str(at + size)

    def _look(self, value: LookAhead, at: int | None, width: int, signed: bool) -> list[str]:
        where = "parsed" if at is None else str(at)
        words = read_bits(self._code, where, value.offset, value.width)
        words += [self._code.u(0)] * (-(-width // 64) - len(words))
        return _signed(words, width) if signed else words[: -(-width // 64)]

    def _select(self, state: ParserState, at: int | None) -> None:
        looks = [key for key in state.keys if isinstance(key, LookAhead)]
        if looks:
            furthest = max(looks, key=lambda key: key.offset + key.width)
            with self._if_there(self._end_of(furthest, at)):
                self._transitions(state, at)
        else:
            self._transitions(state, at)

    def _transitions(self, state: ParserState, at: int | None) -> None:
        code = self._code
        keyword = "if"
        keys = [self._key(key, at) for key in state.keys]
        values = tuple(self._named(key, words) for key, words in zip(state.keys, keys, strict=True))
        for transition in state.transitions:
            mark = Mark(SELECT, transition, values=values)
            goal = DONE if transition.target is None else self._numbers[transition.target]
            if not transition.values:
                if keyword == "if":
                    code.add(f"step = {goal}", mark)
                else:
                    with code.block("else:"):
                        code.add(f"step = {goal}", mark)
                return
            with code.block(f"{keyword} {self._test(state, transition, keys)}:"):
                code.add(f"step = {goal}", mark)
            keyword = "elif"

    def _named(self, key: Expression, words: list[str]) -> Value:
        if isinstance(key, LookAhead):
            return Value(f"lookahead<bit<{key.width}>>()", tuple(words), key.width)
        assert isinstance(key, Field)
        width = _key_width(self._code.storage, key)
        return Value(f"{key.header}.{key.name}", tuple(words), width)

    def _key(self, key: Expression, at: int | None) -> list[str]:
        if isinstance(key, LookAhead):
            return self._look(key, at, key.width, False)
        assert isinstance(key, Field)
        words = list(self._code.storage.read(key))
        shape = self._code.storage.shape(key)
        if shape.signed and shape.width < 64:
            words = [f"({words[0]} & {self._code.u((1 << shape.width) - 1)})"]
        return words

    def _test(self, state: ParserState, transition: Transition, keys: list[list[str]]) -> str:
        code = self._code
        tests = []
        for key, words, value, mask in zip(
            state.keys, keys, transition.values, transition.masks, strict=True
        ):
            width = key.width if isinstance(key, LookAhead) else _key_width(code.storage, key)
            for i, word in enumerate(words):
                full = (1 << min(64, width - 64 * i)) - 1
                part = mask >> 64 * i & full
                if part == 0:
                    continue
                masked = word if part == full else f"({word} & {code.u(part)})"
                tests.append(f"{masked} == {code.u((value & mask) >> 64 * i & full)}")
        return " and ".join(tests) or "True"


def _key_width(storage: Storage, key: Expression) -> int:
    assert isinstance(key, Field)
    return 1 if key.name == VALID else storage.shape(key).width


def _signed(words: list[str], width: int) -> list[str]:
    return [f"U(as_signed({words[0]}, {width}))"] if width < 64 else words
