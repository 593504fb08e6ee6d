"""Statements, ifs and table look-ups as Python."""

from __future__ import annotations

from ringleaf.switches.engine.lookup import ACTION, COUNTER, DEFAULT_ROW, GROUP_ACTION
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.generate.branches import write_if
from ringleaf.switches.generate.calculations import calculate
from ringleaf.switches.generate.code import FunctionCode
from ringleaf.switches.generate.doubts import note_key, note_operands, note_selector
from ringleaf.switches.generate.flow import (
    ActionChoice,
    Apply,
    Body,
    CalledAction,
    If,
    IfLeft,
    Leave,
    Loop,
    Repeat,
    Statement,
    UnlessExited,
    walk,
)
from ringleaf.switches.generate.labels import ACTION as ACTION_LABEL
from ringleaf.switches.generate.labels import TABLE as TABLE_LABEL
from ringleaf.switches.generate.lanes import Pattern
from ringleaf.switches.generate.loops import LoopWriter
from ringleaf.switches.generate.marks import LOOP, TABLE, TURN, Lanes, LineMark
from ringleaf.switches.generate.metering import COLOR_BITS, color
from ringleaf.switches.generate.observing import ACTION as ACTION_POINT
from ringleaf.switches.generate.observing import CALL, HIT, MISS, action_name
from ringleaf.switches.generate.primitives import write_primitive
from ringleaf.switches.generate.state import TABLES_AT, loop_label
from ringleaf.switches.generate.text import tuple_of
from ringleaf.switches.generate.traffic import violate
from ringleaf.switches.source import NO_ACTION, ActionSource, Primitive, TableSource

# Turns of one loop. BMv2 never leaves a loop that has no end; here its packet is dropped, as if it
# violated an assertion.
MOST_TURNS = 100_000


class StatementWriter:
    """Writes a control's statements into a handler."""

    def __init__(
        self,
        code: FunctionCode,
        shapes: dict[str, TableShape],
        numbers: dict[str, int],
        patterns: list[Pattern],
    ) -> None:
        self._code = code
        self._patterns = patterns  # of loops, by number
        self._shapes = shapes
        self._numbers = numbers  # of tables, in the order of the switch's words

    def write(self, body: Body) -> None:
        """Write the statements of a body."""
        for statement in body:
            self._one(statement)

    def _one(self, statement: Statement) -> None:
        code = self._code
        match statement:
            case Primitive():
                note_operands(code, statement)
                write_primitive(code, statement)
            case If():
                write_if(code, statement, self.write)
            case Apply():
                self._apply(statement)
            case UnlessExited():
                with code.block("if not exited:"):
                    self.write(statement.body)
            case Loop():
                with code.marked(_loop_mark(statement)):
                    LoopWriter(code, self.write).write(statement, self._patterns[statement.number])

            case Repeat() | Leave() | IfLeft():
                self._repeat(statement)
            case CalledAction(action):
                kind = ACTION_POINT if action.where else CALL
                code.note(kind, action.name, _place_of(action))

    def _repeat(self, statement: Repeat | Leave | IfLeft) -> None:
        """Write a loop of the program's own, or a part of it; `left` is the way it was left."""
        code, left = self._code, f"left{statement.number}"
        match statement:
            case Repeat():
                turns = f"turns{statement.number}"
                code.add(f"{left} = {turns} = 0")
                with code.block("while True:"):
                    with code.marked(LineMark(TURN, where=statement.where)):
                        code.add(f"{turns} += 1")
                    with code.block(f"if {turns} > {MOST_TURNS}:"):
                        violate(code, loop_label(statement.where))
                    self.write(statement.body)
            case Leave():
                if statement.way:
                    code.add(f"{left} = {statement.way}")
                code.add("break")
            case IfLeft():
                with code.block(f"if {left} == {statement.way}:"):
                    self.write(statement.then)
                    code.add("pass")
                with code.block("else:"):
                    self.write(statement.otherwise)
                    code.add("pass")

    def _apply(self, statement: Apply) -> None:
        code, table = self._code, statement.table
        shape = self._shapes[table.name]
        code.lines.comment(f"table {code.label(TABLE_LABEL, table.name)}")
        with code.marked(LineMark(TABLE, table, table.where)):
            code.add(f"image = U(block[{TABLES_AT + self._numbers[table.name]}])")
            code.add(f"entry = {self._find(shape)}")
            if table.counted:
                code.add("count_packet(state, entry, length)")
            if table.timed:
                code.add(f"note_hit(state, entry, {code.u(shape.hit_at)}, now_ps)")
            if table.profile and code.source.profiles[table.profile].selector:
                self._pick(shape)
            if table.meter:
                self._meter(shape)
        if statement.hit or statement.miss or code.observer:
            code.add(f"hit = entry != image + {code.u(DEFAULT_ROW)}")
        self._note_lookup(table)
        self._choose(shape, statement.choices)
        if statement.hit or statement.miss:
            with code.block("if hit:"):
                self.write(statement.hit)
            if statement.miss:
                with code.block("else:"):
                    self.write(statement.miss)

    def _note_lookup(self, table: TableSource) -> None:
        """Write code that notes whether a table was hit, and the keys that it was looked up by."""
        code = self._code
        if code.observer is None or not table.keys:
            return
        with code.block("if hit:"):
            code.note(HIT, table.name, table.where)
        with code.block("else:"):
            code.note(MISS, table.name, table.where)
        words = [code.key_words(key.target) for key in table.keys]
        starts = code.observer.keys_of(table.name, tuple(map(len, words)))
        for start, parts in zip(starts, words, strict=True):
            for i, word in enumerate(parts):
                code.add(f"state[state_at + {code.u(start + i)}] = {word}")
        for number in range(len(table.keys)):
            note_key(code, table, number)

    def _pick(self, shape: TableShape) -> None:
        """Write code that sets `chosen` to the action's row: a member's, if there is a group."""
        code, table = self._code, shape.table
        code.add("chosen = entry")
        with code.block(f"if state[entry + {code.u(ACTION)}] == {code.u(GROUP_ACTION)}:"):
            selector = code.source.profiles[table.profile].selector
            note_selector(code, selector)
            hashed, _ = calculate(code, selector, table.where)
            at, size = code.u(shape.arguments_at), code.u(shape.row_words)
            code.add(f"chosen = pick_member(state, image, entry + {at}, U({hashed}), {size})")

    def _meter(self, shape: TableShape) -> None:
        """Write code that runs the entry's meter; a miss leaves its target as it was (BMv2)."""
        code = self._code
        meter = code.source.meters[shape.table.meter]
        assert meter.target is not None
        record = f"state[entry + {code.u(COUNTER)}]"
        with code.block(f"if {record} != {code.u(0)}:"):
            value = color(code, meter, f"{record} + {code.u(shape.meter_at)}")
            code.set_word(meter.target, value, COLOR_BITS)

    def _find(self, shape: TableShape) -> str:
        """Return code of the offset of the entry's row."""
        code = self._code
        if not shape.table.keys:
            return f"image + {code.u(DEFAULT_ROW)}"
        words: list[list[str]] = [[] for _ in range(shape.key_words)]
        for part in shape.parts:
            words[part.word].append(self._key(shape.table, part.key, part.source, part.shift))
        keys = tuple_of([" | ".join(parts) or code.u(0) for parts in words])
        size = code.u(shape.row_words)
        if shape.ranges:
            return self._find_in_ranges(shape, keys)
        return f"find_{shape.kind}(state, image, {keys}, {size})"

    def _find_in_ranges(self, shape: TableShape, keys: str) -> str:
        size = self._code.u(shape.row_words)
        pairs = list(zip(shape.ranges, shape.range_words, strict=True))
        words = [self._key(shape.table, i, word, 0) for i, count in pairs for word in range(count)]
        values = ", ".join(words)
        if len(words) == len(pairs):
            return f"find_in_ranges(state, image, {keys}, ({values},), {size})"
        begins = tuple_of([str(word == 0) for _, count in pairs for word in range(count)])
        return f"find_in_wide_ranges(state, image, {keys}, {tuple_of(words)}, {begins}, {size})"

    def _key(self, table: TableSource, key: int, source: int, shift: int) -> str:
        code = self._code
        word = code.key_words(table.keys[key].target)[source]
        mask = table.keys[key].mask
        if mask is not None:
            word = f"({word} & {code.u(mask >> 64 * source & (1 << 64) - 1)})"
        return f"({word} << {code.u(shift)})" if shift else word

    def _choose(self, shape: TableShape, choices: tuple[ActionChoice, ...]) -> None:
        code = self._code
        written = [c for c in choices if c.body or c.following or code.observer]
        if not written:
            return
        none = shape.table.profile or shape.table.default_action == NO_ACTION
        if len(choices) == 1 and not none:
            self._choice(shape, choices[0])
            return
        code.add(f"action = state[{self._chosen(shape)} + {code.u(ACTION)}]")
        keyword = "if"
        for choice in written:
            number = code.u(choice.action.number)
            label = code.label(ACTION_LABEL, choice.action.name)
            with code.block(f"{keyword} action == {number}:  # {label}"):
                self._choice(shape, choice)
            keyword = "elif"

    def _chosen(self, shape: TableShape) -> str:
        """Return the variable with the row that has the action."""
        profile = self._code.source.profiles.get(shape.table.profile)
        return "chosen" if profile is not None and profile.selector else "entry"

    def _choice(self, shape: TableShape, choice: ActionChoice) -> None:
        code = self._code
        at = shape.arguments_at
        arguments = []
        for width, count in zip(
            choice.action.widths, shape.argument_words[choice.action.number], strict=True
        ):
            start = self._chosen(shape)
            words = tuple(f"state[{start} + {code.u(at + i)}]" for i in range(count))
            arguments.append((words, width))
            at += count
        name = action_name(choice.action.name, shape.table.name)
        code.note(ACTION_POINT, name, _place_of(choice.action) or shape.table.where)
        code.expressions.arguments = arguments
        self.write(choice.body)
        code.expressions.arguments = ()
        self.write(choice.following)


def _place_of(action: ActionSource) -> str:
    """Return an action's place in the source; p4c's own actions have that of a primitive."""
    return action.where or next((p.where for p in action.primitives if p.where), "")


def _loop_mark(loop: Loop) -> LineMark:
    primitives = tuple(item for item in walk(loop.body) if isinstance(item, Primitive))
    return LineMark(
        LOOP, Lanes(loop.count, primitives), primitives[0].where if primitives else "", whole=True
    )
