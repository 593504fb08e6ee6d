"""What each kind of run did, as a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from ringleaf.packets import HEAD_LEN
from switches.generate import marks
from switches.generate.marks import Lanes, Mark
from switches.generate.primitives import PRIMITIVES, WRITTEN
from switches.generate.storage import ENGINE, valid
from switches.lookup import ACTION, DEFAULT_ROW
from switches.source import (
    Action,
    Checksum,
    Field,
    Header,
    Named,
    ParserState,
    Primitive,
    Table,
    Transition,
)
from switches.switch import Switch
from switches.walk.entries import arguments_of, matched_entry
from switches.walk.names import Names
from switches.walk.sources import Sources
from switches.walk.statements import Statements
from switches.walk.steps import (
    ChecksumUpdated,
    ChecksumVerified,
    Deparsed,
    Executed,
    Extracted,
    Logged,
    LookedUp,
    Looped,
    ParserFailed,
    Place,
    Selected,
    StateEntered,
    Step,
    Tested,
    Truncated,
    Value,
    Write,
)
from switches.walk.views import Locals, Values, Views, joined


@dataclass(slots=True)
class Run:
    """Lines of one mark, one after the other; `values` and `variables` are from before them."""

    mark: Mark
    variables: Locals
    values: Values
    lines: set[int]


@dataclass(slots=True)
class Ended:
    """A run, and how things are after it."""

    run: Run
    frame: FrameType
    variables: Locals
    values: Values
    writes: tuple[Write, ...]
    following: Mark | None  # what comes next
    what: Any = field(init=False)

    def __post_init__(self) -> None:
        self.what = self.run.mark.what


class Reporter:
    def __init__(self, switch: Switch, sources: Sources, names: Names, views: Views) -> None:
        self._switch = switch
        self._source = switch.program.source
        self._sources = sources
        self._names = names
        self._views = views
        self._statements = Statements(self._source, names)
        self._shapes = {shape.table.name: shape for shape in switch.program.module.shapes}
        self._blocks = Blocks(switch.program.module.text)
        self._state = ""
        self._came = b""
        self._parsed = 0
        self._extracted: dict[str, int] = {}  # header -> offset
        self._element: Any = None  # the header that is being extracted, and what that has made
        self._made: tuple[Write, ...] = ()
        self._emitted: tuple[tuple[str, int], ...] | None = None
        self._near: Place | None = None  # where the program was last
        self._kinds: dict[str, Callable[[Ended], Step | None]] = {
            marks.STATE: self._entered,
            marks.EXTRACT: self._extract,
            marks.PARSER_OP: self._executed,
            marks.TOO_SHORT: self._failed,
            marks.SELECT: self._selected,
            marks.TABLE: self._looked_up,
            marks.CONDITION: self._tested,
            marks.PRIMITIVE: self._executed,
            marks.LOOP: self._looped,
            marks.LOG: self._logged,
            marks.VERIFY: self._verified,
            marks.WRONG: self._wrong,
            marks.UPDATE: self._updated,
            marks.DEPARSE: self._deparsed,
            marks.TRUNCATE: self._truncated,
        }

    def begin(self, data: bytes) -> None:
        """Ingress begins with these bytes."""
        self._came = data
        self._parsed = 0
        self._extracted.clear()

    def begin_egress(self) -> None:
        self._emitted = None

    def report(
        self,
        run: Run,
        frame: FrameType,
        variables: Locals,
        values: Values,
        writes: tuple[Write, ...],
        following: Mark | None,
    ) -> Step | None:
        """Return what a run that has ended did; None where that is nothing of its own."""
        kind = self._kinds.get(run.mark.kind)
        if kind is None:
            return None
        ended = Ended(run, frame, variables, values, writes, following)
        step = kind(ended)
        if step is None:
            return None
        place = step.place or self._sources.place(run.mark.where)
        self._near = self._near if isinstance(step, LookedUp) else place
        return replace(step, writes=ended.writes, place=place)

    # The parser.

    def _entered(self, ended: Ended) -> Step:
        assert isinstance(ended.what, ParserState)
        self._state = ended.what.name
        return StateEntered(state=self._state, place=self._sources.state(self._state))

    def _extract(self, ended: Ended) -> Step | None:
        start, end = (int(v["parsed"]) for v in (ended.run.variables, ended.variables))
        if ended.following is not None and ended.following.kind == marks.EXTRACT:
            self._element, self._made = ended.what, ended.writes
            return None  # the last of an extraction's runs moves on, and says it all
        header = self._element or ended.what
        assert isinstance(header, Header)
        ended.writes = (*self._made, *ended.writes)
        self._element, self._made = None, ()
        self._extracted[header.name] = start
        self._parsed = end
        data = ended.variables["head"][start:end].tobytes()
        name = self._names.header(header.name)
        ended.writes = tuple(w for w in ended.writes if w.name.endswith(".isValid()"))
        return Extracted(
            header=name,
            offset_bytes=start,
            size_bytes=len(data),
            fields=tuple(
                Value(f"{name}.{item.name}", _bits(data, item.offset, item.width), item.width)
                for item in header.fields
                if header.varbit is None
            ),
            place=self._sources.extract(self._state, header.name),
        )

    def _failed(self, ended: Ended) -> Step:
        return ParserFailed(
            error=ended.run.mark.where or "PacketTooShort", place=self._sources.state(self._state)
        )

    def _selected(self, ended: Ended) -> Step:
        transition = ended.what
        assert isinstance(transition, Transition)
        keys = tuple(
            Value(self._key(key, value.name), _evaluated(value.words, ended), value.width)
            for key, value in zip(
                self._source.states[self._state].keys, ended.run.mark.values, strict=True
            )
        )
        place = self._sources.select(self._state)
        return Selected(keys=keys, target=transition.target or "accept", place=place)

    def _key(self, key: Any, name: str) -> str:
        return self._names.field(key) if isinstance(key, Field) else name

    # Controls.

    def _looked_up(self, ended: Ended) -> Step:
        table = ended.what
        assert isinstance(table, Table)
        shape = self._shapes[table.name]
        at, image = int(ended.variables["entry"]), int(ended.variables["image"])
        row = self._switch.store.arena.fields[at : at + shape.row_words]
        hit = at != image + DEFAULT_ROW
        chosen = int(ended.variables["chosen"]) if self._selects(table) else at
        action_row = self._switch.store.arena.fields[chosen : chosen + shape.row_words]
        number = int(action_row[ACTION])
        action = self._source.actions.get(number)  # None: NO_ACTION
        self._near = self._place_of_action(action) or self._sources.place(table.where)
        return LookedUp(
            table=table.name,
            keys=tuple(
                Value(self._names.field(key.target), ended.values.get(key.target, 0), width)
                for key, width in zip(table.keys, shape.widths, strict=True)
            ),
            hit=hit,
            entry=matched_entry(shape, self._switch.entries(table.name), row) if hit else None,
            action=action.name if action else "none",
            arguments=arguments_of(action, shape, action_row) if action else (),
        )

    def _selects(self, table: Table) -> bool:
        """Whether an entry may have a group, of which the code has chosen a member."""
        return bool(table.profile and self._source.profiles[table.profile].selector)

    def _place_of_action(self, action: Action | None) -> Place | None:
        for primitive in action.primitives if action else ():
            place = self._sources.place(primitive.where)
            if place and not self._sources.is_definition(place):
                return place
        return None

    def _tested(self, ended: Ended) -> Step:
        mark = ended.run.mark
        inside = ended.frame.f_lineno in self._blocks.inside(next(iter(ended.run.lines)))
        fields = [f for f in self._statements.fields(ended.what) if f in ended.values]
        return Tested(
            condition=self._statements.condition(ended.what, mark.where),
            operands=tuple(
                Value(self._names.field(f), ended.values[f], self._views.width(f)) for f in fields
            ),
            outcome=inside != mark.inverted,
        )

    def _executed(self, ended: Ended) -> Step:
        primitive = ended.what
        assert isinstance(primitive, Primitive)
        ended.writes = (*self._unchanged(primitive, ended), *ended.writes)
        statement = self._statements.primitive(primitive)
        place = self._sources.place(primitive.where)
        if place and self._near and self._sources.is_definition(place):
            place = self._sources.assignment(statement.split(" =")[0], self._near) or place
        return Executed(op=primitive.op, statement=statement, place=place)

    def _unchanged(self, primitive: Primitive, ended: Ended) -> list[Write]:
        """Return the fields that a primitive gave the value that they had."""
        kind = PRIMITIVES.get(primitive.op)
        pairs = zip(kind.roles if kind else (WRITTEN,), primitive.parameters, strict=False)
        written = [value for role, value in pairs if role == WRITTEN and isinstance(value, Field)]
        known = {write.name for write in ended.writes}
        return [
            self._views.write(target, ended.values, ended.values)
            for target in (*written, *(kind.also if kind else ()))
            if target.header != ENGINE
            and target in ended.values
            and self._names.field(target) not in known
        ]

    def _looped(self, ended: Ended) -> Step:
        assert isinstance(ended.what, Lanes)
        statements = tuple(self._statements.primitive(item) for item in ended.what.primitives)
        return Looped(count=ended.what.count, statements=statements)

    def _logged(self, ended: Ended) -> Step:
        assert isinstance(ended.what, Primitive)
        text = ended.what.parameters[0]
        message = text.name if isinstance(text, Named) else ""
        for value in ended.run.mark.values:
            message = message.replace("{}", str(_evaluated(value.words, ended)), 1)
        return Logged(message=message)

    # Checksums and the way out.

    def _verified(self, ended: Ended) -> Step | None:
        if ended.following is not None and ended.following.kind == marks.WRONG:
            return None  # which says it all
        checksum = ended.what
        assert isinstance(checksum, Checksum)
        skipped = len(ended.run.lines) < (2 if checksum.condition is None else 3)
        outcome = "skipped" if skipped else "right"
        return ChecksumVerified(target=self._names.field(checksum.target), outcome=outcome)

    def _wrong(self, ended: Ended) -> Step:
        assert isinstance(ended.what, Checksum)
        return ChecksumVerified(target=self._names.field(ended.what.target), outcome="wrong")

    def _updated(self, ended: Ended) -> Step:
        checksum = ended.what
        assert isinstance(checksum, Checksum)
        skipped = checksum.condition is not None and len(ended.run.lines) == 1
        outcome = "skipped" if skipped else "updated"
        return ChecksumUpdated(target=self._names.field(checksum.target), outcome=outcome)

    def _deparsed(self, ended: Ended) -> Step | None:
        if self._emitted is not None:
            return None  # the handler's last line, after a deparser that wrote something
        headers = [self._source.headers[name] for name in self._source.emitted]
        present = [header for header in headers if ended.values.get(valid(header.name))]
        sizes = [self._views.size(header, ended.variables) for header in present]
        self._emitted = tuple(zip((header.name for header in present), sizes, strict=True))
        shown = tuple((self._names.header(name), size) for name, size in self._emitted)
        return Deparsed(headers=shown)

    def _truncated(self, ended: Ended) -> Step:
        return Truncated(size_bytes=int(ended.variables["row"][HEAD_LEN]))

    def changed(self, data: bytes) -> tuple[int, ...]:
        """Return where a packet that leaves is not what came in, header by header."""
        found: list[int] = []
        at = 0
        for name, size in self._emitted or ():
            start = self._extracted.get(name)
            old = b"" if start is None else self._came[start : start + size]
            found += _differences(data[at : at + size], old, at)
            at += size
        found += _differences(data[at:], self._came[self._parsed :], at)
        return tuple(found)


class Blocks:
    """Which lines of a module are inside the block that a line opens."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def inside(self, header: int) -> range:
        depth = self._depth(header)
        end = header + 1
        while end <= len(self._lines) and self._depth(end) > depth:
            end += 1
        return range(header + 1, end)

    def _depth(self, number: int) -> int:
        line = self._lines[number - 1]
        return len(line) - len(line.lstrip())


def _differences(data: bytes, old: bytes, at: int) -> list[int]:
    return [at + i for i in range(len(data)) if data[i : i + 1] != old[i : i + 1]]


def _bits(data: bytes, offset: int, width: int) -> int:
    return int.from_bytes(data, "big") >> (8 * len(data) - offset - width) & ((1 << width) - 1)


def _evaluated(words: tuple[str, ...], ended: Ended) -> int:
    """Return the value of the generator's own code, in the handler."""
    scope = dict(ended.variables)
    return joined([eval(word, ended.frame.f_globals, scope) for word in words])
