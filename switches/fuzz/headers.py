"""A packet that is made as a parser reads it: random bits, some of which get values."""

from __future__ import annotations

import random
from collections.abc import Mapping

from ringleaf.switches.fuzz.driving import drive
from ringleaf.switches.fuzz.values import (
    Computed,
    PacketBits,
    Place,
    Unknown,
    UnknownError,
    Value,
    evaluate,
    places_in,
    resolve,
)
from ringleaf.switches.source import (
    STACKS,
    STANDARD,
    VALID,
    Constant,
    Expression,
    FieldSource,
    LookAhead,
    Named,
    OperationSource,
    ProgramSource,
)

MOST_BITS = 8 * 3000
_DEEPEST = 10  # definitions in a chain; longer ones are given up

__all__ = ["MOST_BITS", "PacketDraft", "Place", "UnknownError"]


def _mask_of(place: Place) -> int:
    at, width = place
    return ((1 << width) - 1) << MOST_BITS - at - width


class PacketDraft:
    """The bits of a packet, a cursor, and the places of the fields extracted so far.

    Args:
        source: The program.
        rng: The source of random bits.
        data: The bytes to begin with, for a packet that is like another.
        port: The port by which it comes.
    """

    def __init__(
        self, source: ProgramSource, rng: random.Random, data: bytes = b"", port: int = 0
    ) -> None:
        self._source = source
        self._bits = rng.getrandbits(MOST_BITS)
        if data:
            self.put((0, 8 * len(data)), int.from_bytes(data, "big"))
        self.cursor = 0
        self.places: dict[FieldSource, Place] = {}
        self.counts: dict[str, int] = {}
        self.valid: set[str] = set()
        self.known: dict[FieldSource, Value] = {
            FieldSource(STANDARD, "ingress_port"): Constant(port)
        }
        self._needed_bits = 0  # a mask of the bits that the path depends on
        self._definitions: Mapping[FieldSource, Expression] = {}
        self._depth = 0  # of definitions that are being resolved

    def get(self, place: Place) -> int:
        """Return the bits of a place (offset, width) of the packet, as a number."""
        at, width = place
        return self._bits >> (MOST_BITS - at - width) & (1 << width) - 1

    def put(self, place: Place, value: int, mask: int | None = None) -> None:
        """Set the bits of a value that are in `mask`."""
        at, width = place
        mask = (1 << width) - 1 if mask is None else mask & (1 << width) - 1
        shift = MOST_BITS - at - width
        self._bits = self._bits & ~(mask << shift) | (value & mask) << shift

    def data(self, size_bytes: int) -> bytes:
        """Return the first bytes of the packet."""
        return self._bits.to_bytes(MOST_BITS // 8, "big")[:size_bytes]

    def extract(self, header: str, varbit_bits: int = 0) -> None:
        """Note that a header lies at the cursor, and move the cursor past it."""
        self.valid.add(header)
        for item in self._source.headers[header].fields:
            width = varbit_bits if item.varbit else item.width
            self.places[FieldSource(header, item.name)] = (self.cursor, width)
            self.cursor += width

    def assign(self, target: FieldSource, value: Expression) -> None:
        """Note that the parser gives a field a value, as it now is."""
        width = self._source.field_of(target).width
        meaning = self.resolved(value)
        self.places.pop(target, None)
        self.known.pop(target, None)
        if isinstance(meaning, PacketBits) and meaning.width == width:
            self.places[target] = (meaning.at, meaning.width)
        else:
            self.known[target] = Computed("&", meaning, Constant((1 << width) - 1))

    def end_parsing(self, definitions: Mapping[FieldSource, Expression]) -> None:
        """Note the values of fields that the program assigns at one place only."""
        self._definitions = definitions

    def resolved(self, item: Expression) -> Value:
        """Return an expression's present value in terms of the packet's bits."""
        return resolve(item, self._leaf)

    def value(self, item: Expression) -> int:
        """Return an expression's value.

        Raises:
            UnknownError: If it depends on more than the packet.
        """
        return evaluate(self, self.resolved(item))

    def aim(self, item: Expression, value: int, mask: int = -1) -> bool:
        """Change bits so that an expression has a value in a mask's bits; return whether it has."""
        return drive(self, self.resolved(item), value, mask)

    def hold(self, item: Expression) -> None:
        """Note that the path depends on an expression."""
        for place in places_in(self.resolved(item)):
            self._needed_bits |= _mask_of(place)

    def is_held(self, place: Place) -> bool:
        """Return whether the path depends on any bits of a place."""
        return self._needed_bits & _mask_of(place) != 0

    def is_free(self, item: Expression) -> bool:
        """Return whether an expression can be given a value without changing the path."""
        places = list(places_in(self.resolved(item)))
        return bool(places) and not any(map(self.is_held, places))

    def _leaf(self, item: Expression) -> Value:
        match item:
            case LookAhead(offset, width):
                return PacketBits(self.cursor + offset, width)
            case OperationSource("valid", _, Named(_, name)):
                return Constant(int(name in self.valid))
            case FieldSource(header, name) if header == STACKS:
                return Constant(self.counts.get(name, 0))
            case FieldSource(header, name) if name == VALID:
                return Constant(int(header in self.valid))
            case FieldSource(header):
                return self._field(item, header)
        return Unknown()

    def _field(self, item: FieldSource, header: str) -> Value:
        if item in self.places:
            return PacketBits(*self.places[item])
        if item in self.known:
            return self.known[item]
        if item in self._definitions and self._depth < _DEEPEST:
            self._depth += 1
            value = self.resolved(self._definitions[item])
            self._depth -= 1
            return value
        declared = self._source.headers.get(header)
        zero = declared is not None and declared.metadata and header != STANDARD
        return Constant(0) if zero else Unknown()  # as metadata of a new packet is
