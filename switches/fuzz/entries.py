"""Random updates for a program: everything that a control plane can tell both switches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from ringleaf.switches.engine.layout import KEPT_RID
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.engine.updates import (
    INSERT,
    MODIFY,
    CloneUpdate,
    GroupUpdate,
    InstalledEntry,
    Match,
    MemberGroup,
    MemberGroupUpdate,
    MemberUpdate,
    MeterRates,
    MeterUpdate,
    ProfileMember,
    RegisterUpdate,
    TableUpdate,
    Update,
    prefix_mask,
)
from ringleaf.switches.fuzz.numbers import NumberDraw
from ringleaf.switches.generate.observing import ACTION, ReachedPoint, action_name
from ringleaf.switches.program import Program
from ringleaf.switches.source import Constant, FieldSource, Primitive, ProgramSource, TableSource

Keys = tuple[int, ...]
"""The keys that a table is looked up by, a number for each."""

PORTS = 8  # by which packets come in, and most leave
MOST_ENTRIES = 8
MEMBERS = 4
REGISTER_CELLS = 4
METER_CELLS = 8
_ANSWERED = 0.7  # of tables that were looked up get entries for those keys
_METERED = 0.5  # of the first cells of meters, and of entries that have one
_WIDE = 0.1  # of keys match all values, or half of them
_EQUAL = 0.3  # of entries have one of two priorities, of which several may be equal
_AIMED = 0.5  # of entries have an action that did not run yet, where there is one
REGISTER_BITS = 63  # the most that Thrift's numbers hold

_CLONES = {"clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"}


class EntryMaker:
    """Draws updates for one program."""

    def __init__(
        self,
        program: Program,
        numbers: NumberDraw,
        rng: random.Random,
        missing: Sequence[ReachedPoint] = (),
    ) -> None:
        self._missing = {point.name for point in missing if point.kind == ACTION}
        self._source = program.source
        self._shapes = program.module.shapes
        self._numbers = numbers
        self._rng = rng
        self._groups = _constants_into(self._source, "mcast_grp") or [1, 2]
        self._sessions = _clone_sessions(self._source)

    def updates(self) -> list[Update]:
        """Return the updates of a control plane before it has seen any packet."""
        tables = [update for shape in self._shapes for update in self._table(shape)]
        return [
            *self._traffic(),
            *self._profiles(),
            *tables,
            *self._registers(),
            *self._meters(tables),
        ]

    def answers(self, asked: Mapping[str, Sequence[Keys]]) -> list[Update]:
        """Return entries that match keys by which tables were looked up, for some of them."""
        updates: list[Update] = []
        for shape in self._shapes:
            keys = asked.get(shape.table.name, ())
            if not keys or shape.table.entries or self._rng.random() > _ANSWERED:
                continue
            for _ in range(self._rng.randrange(1, 4)):
                entry = self._entry(shape, self._around(shape, self._rng.choice(keys)))
                updates.append(TableUpdate(INSERT, shape.table.name, entry, is_default=False))
        return updates

    def _around(self, shape: TableShape, keys: Keys) -> Match:
        """Return a match that covers these keys, and perhaps others."""
        columns = zip(shape.table.keys, shape.widths, keys, strict=True)
        return tuple(self._pair(key.kind, width, value) for key, width, value in columns)

    def _traffic(self) -> Iterator[Update]:
        for group in self._groups:
            yield GroupUpdate(INSERT, group, self._replicas())
        for session in self._sessions:
            alone = ((self._rng.randrange(PORTS), KEPT_RID),)
            replicas = alone if self._rng.random() < 0.5 else self._replicas()
            yield CloneUpdate(INSERT, session, replicas)

    def _replicas(self) -> tuple[tuple[int, int], ...]:
        rng = self._rng
        pairs = {(rng.randrange(PORTS), rng.randrange(3)) for _ in range(rng.randrange(1, 5))}
        return tuple(sorted(pairs))

    def _profiles(self) -> Iterator[Update]:
        tables = [*self._source.ingress.tables, *self._source.egress.tables]
        for name, profile in self._source.profiles.items():
            actions = next((table.actions for table in tables if table.profile == name), ())
            if not actions:
                continue
            for member in range(MEMBERS):
                action = self._rng.choice(actions)
                yield MemberUpdate(INSERT, name, member, action, self._arguments(action))
            if profile.selector:
                for group in range(2):
                    size = self._rng.randrange(1, MEMBERS + 1)
                    members = sorted(self._rng.sample(range(MEMBERS), size))
                    pairs = tuple((member, 1) for member in members)
                    yield MemberGroupUpdate(INSERT, name, group, pairs)

    def _table(self, shape: TableShape) -> Iterator[TableUpdate]:
        table = shape.table
        constant = table.default_const or table.action_const
        if not constant and not table.profile and self._rng.random() < 0.3:
            entry = self._entry(shape, ())
            yield TableUpdate(MODIFY, table.name, entry, is_default=True)
        if table.entries or not table.keys:
            return
        for _ in range(self._rng.randrange(MOST_ENTRIES + 1)):
            entry = self._entry(shape, self._match(shape))
            yield TableUpdate(INSERT, table.name, entry, is_default=False)

    def _entry(self, shape: TableShape, match: Match) -> InstalledEntry:
        rng = self._rng
        priority = self._priority() if shape.prioritized and match else 0
        if shape.table.profile:
            grouped = self._source.profiles[shape.table.profile].selector
            reference = (
                MemberGroup(rng.randrange(2)) if grouped else ProfileMember(rng.randrange(MEMBERS))
            )
            return InstalledEntry(match, 0, (), -priority, indirect=reference)
        action = self._action(shape.table)
        return InstalledEntry(match, action, self._arguments(action), -priority)

    def _match(self, shape: TableShape) -> Match:
        pairs = (
            self._pair(key.kind, width)
            for key, width in zip(shape.table.keys, shape.widths, strict=True)
        )
        return tuple(pairs)

    def _pair(self, kind: str, width: int, matched: int | None = None) -> tuple[int, int]:
        """Return a key's pair, which matches `matched` if it is given."""
        rng, full = self._rng, (1 << width) - 1
        value = self._numbers.seldom(width) if matched is None else matched & full
        match kind:
            case "lpm":
                short = (0, 1) if rng.random() < _WIDE else (width // 2, width - 1, width)
                mask = prefix_mask(width, rng.choice(short))
                return value & mask, mask
            case "ternary":
                mask = rng.choice((full, full, prefix_mask(width, width // 2), 1))
                mask = 0 if rng.random() < _WIDE else mask
                mask = rng.getrandbits(width) if rng.random() < 0.2 else mask
                return value & mask, mask
            case "optional":
                return rng.choice(((0, 0), (value, full)))
            case "range":
                other = self._numbers.seldom(width)
                return min(value, other), max(value, other)
            case _:
                return value, full

    def _action(self, table: TableSource) -> int:
        names = {number: self._source.actions[number].name for number in table.actions}
        missing = [n for n in table.actions if action_name(names[n], table.name) in self._missing]
        if missing and self._rng.random() < _AIMED:
            return self._rng.choice(missing)
        return max(self._rng.choices(table.actions, k=2), key=self._parameters)

    def _arguments(self, action: int) -> tuple[int, ...]:
        return tuple(map(self._argument, self._source.actions[action].widths))

    def _parameters(self, action: int) -> int:
        """Return the number of an action's parameters: those with more are the more interesting."""
        return len(self._source.actions[action].widths)

    def _argument(self, width: int) -> int:
        """Return an argument; one as wide as a port or a group is mostly one."""
        if width == 9 and self._rng.random() < 0.9:
            return self._rng.randrange(PORTS)
        if width == 16 and self._rng.random() < 0.4:
            return self._rng.choice(self._groups)
        common = self._rng.random() < 0.5
        return self._numbers.seldom(width) if common else self._numbers.draw(width)

    def _registers(self) -> Iterator[Update]:
        for register in self._source.registers.values():
            for index in range(min(register.size, REGISTER_CELLS)):
                if self._rng.random() < 0.3:
                    value = self._numbers.draw(min(register.width, REGISTER_BITS))
                    yield RegisterUpdate(register.name, index, value)

    def _meters(self, tables: Sequence[TableUpdate]) -> Iterator[Update]:
        """Return rates of some meters, of which time decides nothing: buckets are never filled."""
        entries = [each for each in tables if each.verb == INSERT]
        for meter in self._source.meters.values():
            if meter.table:
                for each in entries:
                    if each.table == meter.table and self._rng.random() < _METERED:
                        rates = self._rates(by_bytes=meter.by_bytes)
                        yield MeterUpdate(meter.name, None, rates, each.entry)
                continue
            for index in range(min(meter.size, METER_CELLS)):
                if self._rng.random() < _METERED:
                    yield MeterUpdate(meter.name, index, self._rates(by_bytes=meter.by_bytes))

    def _priority(self) -> int:
        """Return the priority of an entry, of which several may have the same."""
        return self._rng.randrange(1, 3 if self._rng.random() < _EQUAL else 1000)

    def _rates(self, *, by_bytes: bool) -> MeterRates:
        most = 2000 if by_bytes else 8
        committed, peak = self._rng.randrange(most), self._rng.randrange(most)
        return MeterRates(0, committed, 0, peak)


def _clone_sessions(source: ProgramSource) -> list[int]:
    """Return the sessions that a program clones to; 1 and 2 as well if not all are constants."""
    calls = [p for action in source.actions.values() for p in action.primitives if p.op in _CLONES]
    if not calls:
        return []
    sessions = {p.parameters[0].value for p in calls if isinstance(p.parameters[0], Constant)}
    return sorted(sessions | {1, 2}) if len(sessions) < len(calls) else sorted(sessions)


def _constants_into(source: ProgramSource, name: str) -> list[int]:
    """Return the constants that a program writes into a standard field."""
    constants = set()
    for action in source.actions.values():
        for primitive in action.primitives:
            match primitive:
                case Primitive("assign", (FieldSource(_, field), Constant(value))) if field == name:
                    constants.add(value & 0xFFFF)
    return sorted(constants - {0})
