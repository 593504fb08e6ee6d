"""Random packets that follow a program's parser, or nearly follow it."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence
from typing import Protocol

from ringleaf.switches.control.tables import const_match
from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.engine.updates import Match, TableUpdate, Update
from ringleaf.switches.fuzz.checksums import fill_checksums
from ringleaf.switches.fuzz.entries import PORTS
from ringleaf.switches.fuzz.headers import MOST_BITS, PacketDraft, UnknownError
from ringleaf.switches.fuzz.numbers import NumberDraw, definitions, ends
from ringleaf.switches.fuzz.values import places_in
from ringleaf.switches.program import Program
from ringleaf.switches.source import (
    Expression,
    FieldSource,
    Named,
    ParserState,
    Primitive,
    Transition,
)

Packet = tuple[int, bytes]

MOST_STATES = 40
LONGEST_PAYLOAD = 40
_REPEATED = 0.1  # of packets are one of the last ones, for switches that remember
_MEMORY = 20  # packets
_SEEDED = 0.4  # of packets are like one that reached something first
_TURNED = 0.25  # of the selects that such a packet passes go another way
_HITS = 0.6  # of tables whose key is set to that of an entry
_CHANGED = 0.6  # of fields
_CHANGED_OF_SEEDS = (0.0, 0.1, 0.3)
_COPIED = 0.15  # of the fields that are compared with another
_LATEST = 10  # seeds, of which half of them are taken
_TRIES = 4  # conditions of branches, until one can be met
_BRANCHED = 0.5  # of packets are aimed at a branch that was not taken yet
_VERIFIED = 0.8  # of conditions that the parser verifies hold
_SUMMED = 0.8  # of packets have the checksums that the program verifies
_MUTATED = 0.35  # of packets


class Aims(Protocol):
    """The points that packets have reached so far (`course.py`)."""

    @property
    def seeds(self) -> Sequence[Packet]:
        """Return the packets that were the first to reach something."""

    def conditions(self) -> list[tuple[Expression, bool]]:
        """Return conditions, each with the outcome that it has never had."""


class PacketMaker:
    """Draws packets for one program and its entries, towards points that were not reached yet."""

    def __init__(
        self,
        program: Program,
        updates: Sequence[Update],
        numbers: NumberDraw,
        rng: random.Random,
        aims: Aims | None = None,
    ) -> None:
        self._aims = aims
        self._drawn: deque[Packet] = deque(maxlen=_MEMORY)
        self._definitions = definitions(program.source)
        self._source = program.source
        self._numbers = numbers
        self._rng = rng
        self.passed: Counter[str] = Counter()  # parser states that packets were led through
        self._matches = [
            (shape, matches)
            for shape in program.module.shapes
            if (matches := matches_of(shape, updates))
        ]

    def draw(self) -> Packet:
        """Return a packet of at least one byte (BMv2 takes no empty ones), with its port."""
        rng = self._rng
        if self._drawn and rng.random() < _REPEATED:
            port, data = rng.choice(self._drawn)
            return (port if rng.random() < 0.5 else rng.randrange(PORTS)), data
        self._drawn.append(self._draw())
        return self._drawn[-1]

    def _draw(self) -> Packet:
        rng = self._rng
        seed = self._seed()
        port = seed[0] if seed and rng.random() < 0.8 else rng.randrange(PORTS)
        draft = PacketDraft(self._source, rng, seed[1] if seed else b"", port)
        self._walk(draft, 1 if seed is None else _TURNED)
        draft.end_parsing(self._definitions)
        self._set_fields(draft, _CHANGED if seed is None else rng.choice(_CHANGED_OF_SEEDS))
        if seed is None or rng.random() < 0.5:
            self._hit(draft)
        self._branch(draft)
        if rng.random() < _SUMMED:
            fill_checksums(self._source, draft)
        size = -(-min(draft.cursor, MOST_BITS - 8 * LONGEST_PAYLOAD) // 8)
        size += rng.choice((0, 1, rng.randrange(LONGEST_PAYLOAD)))
        data = draft.data(max(size, 1))
        if rng.random() < _MUTATED:
            data = self._mutated(draft, data)
        return port, data

    def _seed(self) -> Packet | None:
        """Return a seed to draw a similar packet, more often one of the latest; None for none."""
        seeds = self._aims.seeds if self._aims else ()
        if not seeds or self._rng.random() >= _SEEDED:
            return None
        return self._rng.choice(seeds if self._rng.random() < 0.5 else seeds[-_LATEST:])

    # The parser's path.

    def _walk(self, draft: PacketDraft, aimed: float) -> None:
        """Follow the parser; a share `aimed` of selects are aimed at one of their transitions."""
        name = self._source.first_state
        for _ in range(MOST_STATES):
            if name is None:
                return
            self.passed[name] += 1
            state = self._source.states[name]
            try:
                for op in state.ops:
                    self._do(draft, op)
            except (UnknownError, IndexError):  # IndexError: the stack is full
                return
            if draft.cursor > MOST_BITS // 2:
                return
            name = self._select(draft, state, aimed)

    def _do(self, draft: PacketDraft, op: Primitive) -> None:
        match op.op, op.parameters:
            case "extract", (Named(kind, into), Named(_, member), *length):
                header = self._target(draft, kind, into, member)
                bits = self._length(draft, header, length[0]) if length else 0
                draft.extract(header, bits)
            case "advance", (amount,):
                draft.cursor += draft.value(amount)
            case "set", (FieldSource() as target, value):
                draft.assign(target, value)
            case "verify", (condition, _):
                draft.aim(condition, self._rng.random() < _VERIFIED)
                draft.hold(condition)

    def _target(self, draft: PacketDraft, kind: str, into: str, member: str) -> str:
        if kind == "header":
            return into
        at = draft.counts.get(into, 0)
        instances = self._source.instances
        if kind == "header_stack":
            header = instances.stacks[into][at]
        else:
            union = instances.union_stacks[into][at]
            header = instances.unions[union][instances.members[union].index(member)]
        draft.counts[into] = at + 1
        return header

    def _length(self, draft: PacketDraft, header: str, length: Expression) -> int:
        """Return the length of a varbit field in bits, after some tries to make it fit."""
        varbit = self._source.headers[header].varbit
        assert varbit is not None
        draft.hold(length)
        places = sorted(places_in(draft.resolved(length)))
        bits = draft.value(length)
        for _ in range(20):
            if 0 <= bits <= varbit.width and bits % 8 == 0:
                break
            for place in places:
                draft.put(place, self._rng.getrandbits(place[1]))
            bits = draft.value(length)
        return bits if 0 <= bits <= varbit.width else 0

    def _select(self, draft: PacketDraft, state: ParserState, aimed: float) -> str | None:
        """Aim at one of the transitions; return the state that the packet leads to."""
        if not state.transitions:
            return None
        aim = self._rng.choice(state.transitions)
        if not aim.is_default and self._rng.random() < aimed:
            for key, value, mask in zip(state.keys, aim.values, aim.masks, strict=False):
                draft.aim(key, value, mask)
        for key in state.keys:
            draft.hold(key)
        try:
            keys = [draft.value(key) for key in state.keys]
        except UnknownError:
            return aim.target
        for transition in state.transitions:
            if self._takes(transition, keys):
                return transition.target
        return None

    def _takes(self, transition: Transition, keys: list[int]) -> bool:
        if transition.is_default:
            return True
        if transition.value_set is not None:
            return False  # they are empty; see `unconfigured`
        parts = zip(keys, transition.values, transition.masks, strict=True)
        return all(key & mask == value & mask for key, value, mask in parts)

    # Values.

    def _set_fields(self, draft: PacketDraft, changed: float) -> None:
        for ref, place in draft.places.items():
            if draft.is_held(place) or self._rng.random() >= changed:
                continue
            others = [draft.places[o] for o in self._numbers.partners(ref) if o in draft.places]
            if others and self._rng.random() < _COPIED:
                draft.put(place, draft.get(self._rng.choice(others)))
            else:
                draft.put(place, self._numbers.draw_for(ref, place[1]))

    def _branch(self, draft: PacketDraft) -> None:
        """Try to give a condition the outcome that it has never had."""
        conditions = self._aims.conditions() if self._aims else []
        if not conditions or self._rng.random() >= _BRANCHED:
            return
        tries = self._rng.sample(conditions, min(len(conditions), _TRIES))
        any(draft.aim(condition, outcome) for condition, outcome in tries)

    def _hit(self, draft: PacketDraft) -> None:
        for shape, matches in self._matches:
            if self._rng.random() < _HITS:
                match = self._rng.choice(matches)
                for key, pair in zip(shape.table.keys, match, strict=True):
                    if draft.is_free(key.target):
                        self._match(draft, key.target, key.kind, pair)

    def _match(
        self, draft: PacketDraft, target: FieldSource, kind: str, pair: tuple[int, int]
    ) -> None:
        if kind == "range":
            low, high = pair
            draft.aim(target, self._rng.choice((low, high, self._rng.randint(low, high))))
        else:
            draft.aim(target, *pair)

    # Mutations.

    def _mutated(self, draft: PacketDraft, data: bytes) -> bytes:
        rng = self._rng
        match rng.randrange(4):
            case 0:
                return data[: rng.randrange(1, len(data) + 1)]
            case 1:
                number = int.from_bytes(data, "big")
                for _ in range(rng.randrange(1, 4)):
                    number ^= 1 << rng.randrange(8 * len(data))
                return number.to_bytes(len(data), "big")
            case 2:
                return data + rng.randbytes(rng.randrange(1, 100))
        return self._at_an_end(draft, len(data))

    def _at_an_end(self, draft: PacketDraft, size: int) -> bytes:
        """Give one field a value at an end of its range, or one beside its own value."""
        places = sorted(set(draft.places.values()))
        if places:
            place = self._rng.choice(places)
            value = draft.get(place)
            draft.put(place, self._rng.choice((*ends(place[1]), value + 1, value - 1)))
        return draft.data(size)


def matches_of(shape: TableShape, updates: Sequence[Update]) -> list[Match]:
    """Return the matches of a table's entries, constant ones too."""
    if shape.table.entries:
        return [
            tuple(
                map(const_match, (key.kind for key in shape.table.keys), entry.keys, shape.widths)
            )
            for entry in shape.table.entries
        ]
    return [
        update.entry.match
        for update in updates
        if isinstance(update, TableUpdate)
        and update.table == shape.table.name
        and update.entry is not None
        and not update.is_default
    ]
