"""Random packets that follow a program's parser, and such that do so only nearly."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from switches.fuzz.checksums import fill_checksums
from switches.fuzz.entries import PORTS
from switches.fuzz.exclusions import fields_in
from switches.fuzz.headers import MOST_BITS, Draft, Place, UnknownError
from switches.fuzz.numbers import Numbers, ends
from switches.program import Program
from switches.shapes import Shape
from switches.source import Expression, Field, Named, ParserState, Primitive, Transition
from switches.tables import const_match
from switches.updates import Match, TableUpdate, Update

Packet = tuple[int, bytes]

MOST_STATES = 40
LONGEST_PAYLOAD = 40
_HITS = 0.6  # of tables whose key is set to what an entry has
_CHANGED = 0.6  # of fields
_SUMMED = 0.8  # of packets have the checksums that the program verifies
_MUTATED = 0.35  # of packets


class PacketMaker:
    """Draws packets for one program with its entries."""

    def __init__(
        self, program: Program, updates: Sequence[Update], numbers: Numbers, rng: random.Random
    ) -> None:
        self._source = program.source
        self._numbers = numbers
        self._rng = rng
        self.passed: Counter[str] = Counter()  # parser states that packets were led through
        self._matches = [
            (shape, matches)
            for shape in program.module.shapes
            if (matches := _matches_of(shape, updates))
        ]

    def draw(self) -> Packet:
        """Return a packet of at least one byte (BMv2 takes no empty ones), with its port."""
        draft = Draft(self._source, self._rng)
        self._walk(draft)
        self._set_fields(draft)
        self._hit(draft)
        if self._rng.random() < _SUMMED:
            fill_checksums(self._source, draft)
        size = -(-min(draft.cursor, MOST_BITS - 8 * LONGEST_PAYLOAD) // 8)
        size += self._rng.choice((0, 1, self._rng.randrange(LONGEST_PAYLOAD)))
        data = draft.data(max(size, 1))
        if self._rng.random() < _MUTATED:
            data = self._mutated(draft, data)
        return self._rng.randrange(PORTS), data

    # The parser's path.

    def _walk(self, draft: Draft) -> None:
        name = self._source.first_state
        for _ in range(MOST_STATES):
            if name is None:
                return
            self.passed[name] += 1
            state = self._source.states[name]
            try:
                for op in state.ops:
                    self._do(draft, op)
            except (UnknownError, IndexError):  # an IndexError: the stack is full
                return
            if draft.cursor > MOST_BITS // 2:
                return
            name = self._select(draft, state)

    def _do(self, draft: Draft, op: Primitive) -> None:
        match op.op, op.parameters:
            case "extract", (Named(kind, into), Named(_, member), *length):
                header = self._target(draft, kind, into, member)
                bits = self._length(draft, header, length[0]) if length else 0
                draft.extract(header, bits)
            case "advance", (amount,):
                draft.cursor += draft.value(amount)
            case "set", (Field() as target, value):
                self._assign(draft, target, value)

    def _target(self, draft: Draft, kind: str, into: str, member: str) -> str:
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

    def _length(self, draft: Draft, header: str, length: Expression) -> int:
        """Return the bits of a varbit field, after some tries to find one that fits."""
        varbit = self._source.headers[header].varbit
        assert varbit is not None
        places = [place for ref in fields_in(length) if (place := draft.place(ref))]
        bits = draft.value(length)
        for _ in range(20):
            if 0 <= bits <= varbit.width and bits % 8 == 0:
                break
            for place in places:
                draft.put(place, self._rng.getrandbits(place[1]))
            bits = draft.value(length)
        draft.held.update(places)
        return bits if 0 <= bits <= varbit.width else 0

    def _assign(self, draft: Draft, target: Field, value: Expression) -> None:
        draft.places.pop(target, None)
        draft.known.pop(target, None)
        width = self._source.field_of(target).width
        place = draft.place(value)
        if place is not None and place[1] == width:
            draft.places[target] = place
            return
        try:
            draft.known[target] = draft.value(value) & (1 << width) - 1
        except UnknownError:
            return

    def _select(self, draft: Draft, state: ParserState) -> str | None:
        """Aim at one of the transitions; return the state that the packet leads to."""
        if not state.transitions:
            return None
        aim = self._rng.choice(state.transitions)
        self._aim_at(draft, state, aim)
        try:
            keys = [draft.value(key) for key in state.keys]
        except UnknownError:
            return aim.target
        for transition in state.transitions:
            if self._takes(transition, keys):
                return transition.target
        return None

    def _aim_at(self, draft: Draft, state: ParserState, aim: Transition) -> None:
        places = [draft.place(key) for key in state.keys]
        if not aim.is_default:
            for place, value, mask in zip(places, aim.values, aim.masks, strict=False):
                if place is not None:
                    draft.put(place, value, mask)
        draft.held.update(place for place in places if place is not None)

    def _takes(self, transition: Transition, keys: list[int]) -> bool:
        if transition.is_default:
            return True
        if transition.value_set is not None:
            return False  # they are empty; see `unconfigured`
        parts = zip(keys, transition.values, transition.masks, strict=True)
        return all(key & mask == value & mask for key, value, mask in parts)

    # Values.

    def _set_fields(self, draft: Draft) -> None:
        for ref, place in draft.places.items():
            if place not in draft.held and self._rng.random() < _CHANGED:
                draft.put(place, self._numbers.draw_for(ref, place[1]))

    def _hit(self, draft: Draft) -> None:
        for shape, matches in self._matches:
            if self._rng.random() < _HITS:
                match = self._rng.choice(matches)
                for key, pair in zip(shape.table.keys, match, strict=True):
                    place = draft.places.get(key.target)
                    if place is not None and place not in draft.held:
                        self._match(draft, place, key.kind, pair)

    def _match(self, draft: Draft, place: Place, kind: str, pair: tuple[int, int]) -> None:
        if kind == "range":
            low, high = pair
            draft.put(place, self._rng.choice((low, high, self._rng.randint(low, high))))
        else:
            draft.put(place, *pair)

    # Mutations.

    def _mutated(self, draft: Draft, data: bytes) -> bytes:
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

    def _at_an_end(self, draft: Draft, size: int) -> bytes:
        """Give one field a value at an end of its range, or one beside the value that it has."""
        places = sorted(set(draft.places.values()) | draft.held)
        if places:
            place = self._rng.choice(places)
            value = draft.get(place)
            draft.put(place, self._rng.choice((*ends(place[1]), value + 1, value - 1)))
        return draft.data(size)


def _matches_of(shape: Shape, updates: Sequence[Update]) -> list[Match]:
    """Return what a table's entries match, constant ones too."""
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
