"""Reports of tables, conditions, primitives and checksums that ran, as steps."""

from __future__ import annotations

from ringleaf.switches.engine.lookup import ACTION, DEFAULT_ROW
from ringleaf.switches.generate import marks
from ringleaf.switches.generate.marks import Lanes
from ringleaf.switches.generate.primitives import PRIMITIVES, WRITTEN
from ringleaf.switches.generate.storage import ENGINE, valid
from ringleaf.switches.source import (
    ActionSource,
    Checksum,
    FieldSource,
    Named,
    Primitive,
    TableSource,
)
from ringleaf.switches.switch import Switch
from ringleaf.switches.walk.entries import arguments_of, matched_entry
from ringleaf.switches.walk.names import Names
from ringleaf.switches.walk.runs import EndedRun, evaluated
from ringleaf.switches.walk.sources import Sources
from ringleaf.switches.walk.statements import Statements
from ringleaf.switches.walk.steps import (
    ChecksumUpdated,
    ChecksumVerified,
    Executed,
    Logged,
    LookedUp,
    Looped,
    SourceLine,
    Step,
    StepWrite,
    Tested,
    WalkValue,
)
from ringleaf.switches.walk.views import Views


class ControlReports:
    """A step per run of a control; `near` is the program's latest place."""

    def __init__(self, switch: Switch, sources: Sources, names: Names, views: Views) -> None:
        self.near: SourceLine | None = None
        self._switch = switch
        self._source = switch.program.source
        self._sources = sources
        self._names = names
        self._views = views
        self._statements = Statements(self._source, names)
        self._shapes = {shape.table.name: shape for shape in switch.program.module.shapes}
        self._blocks = ModuleBlocks(switch.program.module.text)

    def looked_up(self, ended: EndedRun) -> Step:
        """Return the look-up of a table, with the entry and action that the handler has chosen."""
        table = ended.what
        assert isinstance(table, TableSource)
        shape = self._shapes[table.name]
        at, image = int(ended.variables["entry"]), int(ended.variables["image"])
        row = self._switch.store.arena.fields[at : at + shape.row_words]
        hit = at != image + DEFAULT_ROW
        chosen = int(ended.variables["chosen"]) if self._selects(table) else at
        action_row = self._switch.store.arena.fields[chosen : chosen + shape.row_words]
        number = int(action_row[ACTION])
        action = self._source.actions.get(number)  # None: NO_ACTION
        self.near = self._place_of_action(action) or self._sources.place(table.where)
        return LookedUp(
            table=table.name,
            keys=tuple(
                WalkValue(self._names.field(key.target), self._key(key.target, ended), width)
                for key, width in zip(table.keys, shape.widths, strict=True)
            ),
            hit=hit,
            entry=matched_entry(shape, self._switch.entries(table.name), row) if hit else None,
            action=action.name if action else "none",
            arguments=arguments_of(action, shape, action_row) if action else (),
        )

    def _key(self, field: FieldSource, ended: EndedRun) -> int:
        """Return a key's value, which is 0 if its header is not there."""
        flag = valid(field.header)
        missing = self._source.may_be_missing(field) and not ended.values.get(flag)
        return 0 if missing else ended.values.get(field, 0)

    def _selects(self, table: TableSource) -> bool:
        """Return whether an entry may name a group, a member of which the code has chosen."""
        return bool(table.profile and self._source.profiles[table.profile].selector)

    def _place_of_action(self, action: ActionSource | None) -> SourceLine | None:
        for primitive in action.primitives if action else ():
            place = self._sources.place(primitive.where)
            if place and not self._sources.is_definition(place):
                return place
        return None

    def tested(self, ended: EndedRun) -> Step:
        """Return the test of a condition; its outcome is whether the next line is in its block."""
        mark = ended.run.mark
        inside = ended.frame.f_lineno in self._blocks.inside(next(iter(ended.run.lines)))
        fields = [f for f in self._statements.fields(ended.what) if f in ended.values]
        return Tested(
            condition=self._statements.condition(ended.what, mark.where),
            operands=tuple(
                WalkValue(self._names.field(f), ended.values[f], self._views.width(f))
                for f in fields
            ),
            outcome=inside != mark.inverted,
        )

    def executed(self, ended: EndedRun) -> Step:
        """Return a primitive, as P4, at the place of the assignment that it comes from."""
        primitive = ended.what
        assert isinstance(primitive, Primitive)
        ended.writes = (*self._unchanged(primitive, ended), *ended.writes)
        statement = self._statements.primitive(primitive)
        place = self._sources.place(primitive.where)
        if place and self.near and self._sources.is_definition(place):
            place = self._sources.assignment(statement.split(" =")[0], self.near) or place
        return Executed(op=primitive.op, statement=statement, place=place)

    def _unchanged(self, primitive: Primitive, ended: EndedRun) -> list[StepWrite]:
        """Return writes of the fields that a primitive set to the value that they had before."""
        kind = PRIMITIVES.get(primitive.op)
        pairs = zip(kind.roles if kind else (WRITTEN,), primitive.parameters, strict=False)
        written = [
            value for role, value in pairs if role == WRITTEN and isinstance(value, FieldSource)
        ]
        known = {write.name for write in ended.writes}
        return [
            self._views.write(target, ended.values, ended.values)
            for target in (*written, *(kind.also if kind else ()))
            if target.header != ENGINE
            and target in ended.values
            and self._names.field(target) not in known
        ]

    def looped(self, ended: EndedRun) -> Step:
        """Return a loop over lanes as one step."""
        assert isinstance(ended.what, Lanes)
        statements = tuple(self._statements.primitive(item) for item in ended.what.primitives)
        return Looped(count=ended.what.count, statements=statements)

    def logged(self, ended: EndedRun) -> Step:
        """Return the message of a `log_msg`, with its values in place of each `{}`."""
        assert isinstance(ended.what, Primitive)
        text = ended.what.parameters[0]
        message = text.name if isinstance(text, Named) else ""
        for value in ended.run.mark.values:
            message = message.replace("{}", str(evaluated(value.words, ended)), 1)
        return Logged(message=message)

    # Checksums.

    def verified(self, ended: EndedRun) -> Step | None:
        """Return the check of a checksum that was skipped or right; None if `wrong` follows."""
        if ended.following is not None and ended.following.kind == marks.WRONG:
            return None  # `wrong` reports it
        checksum = ended.what
        assert isinstance(checksum, Checksum)
        skipped = len(ended.run.lines) < (2 if checksum.condition is None else 3)
        outcome = "skipped" if skipped else "right"
        return ChecksumVerified(target=self._names.field(checksum.target), outcome=outcome)

    def wrong(self, ended: EndedRun) -> Step:
        """Return the check of a checksum that was wrong."""
        assert isinstance(ended.what, Checksum)
        return ChecksumVerified(target=self._names.field(ended.what.target), outcome="wrong")

    def updated(self, ended: EndedRun) -> Step:
        """Return the update of a checksum, or that its condition did not hold."""
        checksum = ended.what
        assert isinstance(checksum, Checksum)
        skipped = checksum.condition is not None and len(ended.run.lines) == 1
        outcome = "skipped" if skipped else "updated"
        return ChecksumUpdated(target=self._names.field(checksum.target), outcome=outcome)


class ModuleBlocks:
    """The blocks of a module: the lines that are inside the block that a line opens."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def inside(self, header: int) -> range:
        """Return the lines of the block that line `header` opens; lines are counted from 1."""
        depth = self._depth(header)
        end = header + 1
        while end <= len(self._lines) and self._depth(end) > depth:
            end += 1
        return range(header + 1, end)

    def _depth(self, number: int) -> int:
        line = self._lines[number - 1]
        return len(line) - len(line.lstrip())
