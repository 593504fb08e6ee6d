"""What BMv2 makes of a packet in each of the header programs, written down again in plain Python.

A model takes a packet and returns what must leave: (port, bytes).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from dataclasses import dataclass, field

Sent = tuple[int, bytes]

OK, TOO_SHORT, STACK, HEADER, ARGUMENT, ODD = range(6)


class ParserError(Exception):
    """The parser has ended with an error."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.error = error


@dataclass
class Reader:
    """The parser's place in a packet."""

    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        found = self.look(count)
        self.at += count
        return found

    def look(self, count: int) -> bytes:
        if len(self.data) - self.at < count:
            raise ParserError(TOO_SHORT)
        return self.data[self.at : self.at + count]

    def take_varbit(self, fixed: int, bits: int, longest: int) -> bytes:
        """Take a header with a varbit field of `bits`, with BMv2's checks in its order."""
        if bits % 8:
            raise ParserError(ARGUMENT)
        found = self.look(fixed + bits // 8)
        if fixed + bits // 8 > longest:
            raise ParserError(HEADER)
        self.at += len(found)
        return found

    def advance(self, bits: int) -> None:
        if bits % 8:
            raise ParserError(ARGUMENT)
        self.take(bits // 8)

    @property
    def rest(self) -> bytes:
        return self.data[self.at :]


def parse(reader: Reader, states: Callable[[Reader], None]) -> int:
    """Return the parser error."""
    try:
        states(reader)
    except ParserError as failure:
        return failure.error
    return OK


# stacks.p4

DEPTH, LABEL_BYTES, NOTE_BYTES = 4, 11, 15
Labels = list[bytes | None]


@dataclass
class Stacks:
    op: bytes = b""
    labels: Labels = field(default_factory=lambda: [None] * DEPTH)
    spare: Labels = field(default_factory=lambda: [None] * DEPTH)
    seen: int = 0
    last_index: int = 0
    length: int = 0

    def states(self, reader: Reader) -> None:
        self.op = reader.take(4)
        if self.op[0] & 0x80:
            return
        count, last = 0, 0
        while not last:
            if count == DEPTH:
                raise ParserError(STACK)
            taken = reader.take(LABEL_BYTES)
            self.labels[count] = taken
            value = struct.unpack(">H", taken[:2])[0]
            label, last = value >> 1, value & 1
            self.last_index = count
            self.seen = (self.seen + label) & 0xFFFF
            count += 1
            if label == 0x7ABC:
                raise ParserError(HEADER)
        if label & 0x7F00 == 0x100:
            self.spare[0] = reader.take(LABEL_BYTES)
            self.spare[1] = reader.take(LABEL_BYTES)

    def push(self, count: int) -> None:
        self.labels = ([None] * count + self.labels)[:DEPTH]

    def pop(self, count: int) -> None:
        self.labels = (self.labels + [None] * count)[count:]

    def make(self, index: int) -> None:
        if self.labels[index] is None:
            self.labels[index] = bytes(LABEL_BYTES)
            self.length += LABEL_BYTES

    def name(self, index: int, label: int) -> None:
        """Set the label of an element; that of an invalid one is nowhere to be seen."""
        old = self.labels[index]
        if old is not None:
            head = (label & 0x7FFF) << 1 | (old[1] & 1)
            self.labels[index] = struct.pack(">H", head) + old[2:]

    def ingress(self) -> None:
        op, index, value = struct.unpack(">BBH", self.op)
        match op:
            case 1:
                self.push(1)
            case 2:
                self.push(3)
                for i in range(3):
                    self.make(i)
                self.labels[1] = (0x2ABCDEF01234567890 << 2).to_bytes(11, "big")
            case 3:
                self.pop(1)
            case 4:
                self.pop(2)
            case 5:
                self.spare = list(self.labels)
            case 6:
                self.labels[:2] = self.labels[1::-1]
            case 10:
                self.push(5)
            case 11:
                self.pop(4)
            case _:
                self.other(op, index, value)

    def other(self, op: int, index: int, value: int) -> None:
        match op:
            case 7:
                self.name(index & 3, value)
            case 8 if self.labels[3] is not None:
                found = self.labels[index & 3]
                assert found is not None
                self.seen = struct.unpack(">H", found[:2])[0] >> 1
            case 9 if self.labels[1] is not None:
                self.labels[1] = None
                self.length -= LABEL_BYTES
            case 12 if self.labels[0] == self.labels[1]:
                self.seen = 0xEEEE
            case 13:
                self.push(1)
                self.pop(1)
            case 14:
                self.pop(1)
                self.push(1)
                self.make(0)
                self.name(0, value)

    def egress(self) -> None:
        if self.op[1] & 0x40:
            self.push(1)
            self.make(0)
            self.name(0, self.seen)
        if self.op[1] & 0x20:
            self.pop(1)


def stacks(packet: bytes) -> Sent:
    model, reader = Stacks(length=len(packet)), Reader(packet)
    error = parse(reader, model.states)
    if not model.op:
        return 2, packet
    model.ingress()
    note = b""
    if model.op[1] & 0x80:
        flags = sum((label is not None) << i for i, label in enumerate(model.labels))
        code = {TOO_SHORT: 1, STACK: 2, HEADER: 3}.get(error, 0)
        length = model.length + NOTE_BYTES
        note = struct.pack(">IIIHB", code, length, model.last_index, model.seen, flags)
    model.egress()
    labels = b"".join(label or b"" for label in (*model.labels, *model.spare))
    return 2, note + model.op + labels + model.op + reader.rest


# unions.p4

Option = tuple[str, bytes] | None


@dataclass
class Unions:
    op: int = -1
    count: int = 0
    first: Option = None
    second: Option = None
    options: list[Option] = field(default_factory=lambda: [None] * 3)

    def states(self, reader: Reader) -> None:
        self.op, self.count = reader.take(2)
        if self.op & 0x80 and not self.take_first(reader):
            return
        for used in range(self.count):
            kind = {1: "small", 2: "large", 3: "long"}.get(reader.look(1)[0])
            if kind is None:
                return
            peek = reader.look(2)[1] if kind != "large" else 0
            if used == len(self.options):
                raise ParserError(STACK)
            match kind:
                case "small":
                    taken = reader.take(2)
                case "large":
                    taken = reader.take(11)
                case _:
                    taken = reader.take_varbit(2, peek << 3 & 0xFF, 10)
            self.options[used] = (kind, taken)
            if kind == "small" and peek == 0xFF:
                return

    def take_first(self, reader: Reader) -> bool:
        while True:
            match reader.look(1)[0]:
                case 1:
                    self.first = ("small", reader.take(2))
                    if self.first[1][1]:
                        return True
                case 2:
                    self.first = ("large", reader.take(11))
                    return True
                case _:
                    return False

    def copy(self, to: int, origin: int, kind: str) -> None:
        if _is(self.options[origin], kind):
            self.options[to] = self.options[origin]
        elif _is(self.options[to], kind):
            self.options[to] = None

    def make(self, index: int, kind: str, empty: bytes) -> None:
        old = self.options[index]
        body = old[1] if old and old[0] == kind else bytes(len(empty))
        self.options[index] = (kind, empty[:1] + body[1:])

    def ingress(self) -> None:
        first, second, third = self.options
        match self.op & 15:
            case 1:
                self.make(0, "small", b"\7\0")
            case 2 if _is(second, "large"):
                self.options[1] = None
            case 3:
                self.second = self.first
            case 4:  # BMv2 turns the stack round: it never invalidates unions
                self.options = [third, first, second]
            case 5:
                self.options = [second, third, first]
            case 6:
                self.copy(0, 1, "large")
            case 7 if self.first:
                self.count = 0x77
            case 8:
                self.make(2, "long", b"\x09\0")
            case 9:
                self.copy(0, 1, "long")

    def flags(self, error: int) -> None:
        if _is(self.options[0], "small"):
            self.count |= 8
        self.count |= {STACK: 0x80, HEADER: 0x40, TOO_SHORT: 0x20}.get(error, 0)


def _is(option: Option, kind: str) -> bool:
    return option is not None and option[0] == kind


def unions(packet: bytes) -> Sent:
    model, reader = Unions(), Reader(packet)
    error = parse(reader, model.states)
    if model.op < 0:
        return 2, packet
    model.ingress()
    model.flags(error)
    second = model.options[1]
    if model.op & 0x40 and second and second[0] == "small":
        kind, value = second[1]
        model.options[1] = ("small", bytes([kind, (value + 1) & 0xFF]))
    emitted = [option[1] for option in (model.second, model.first, *model.options) if option]
    return 2, bytes([model.op, model.count]) + b"".join(emitted) + reader.rest


# varbits.p4


@dataclass
class Varbits:
    base: bytes = b""
    options: bytes | None = None
    check: bytes | None = None
    rest: bytes | None = None
    copy: bytes | None = None

    def states(self, reader: Reader) -> None:
        self.base = reader.take(2)
        bits = (self.base[0] & 15) * 16 + self.base[1]
        self.options = reader.take_varbit(2, bits, 22)
        if self.base[0] >> 4 == 0xF:
            return
        self.check = reader.take_varbit(2, 8 * (self.options[1] >> 4 & 7), 10)
        self.rest = reader.take(2)
        reader.advance(self.rest[0])

    @property
    def op(self) -> int:
        return self.base[0] >> 4 if self.base else -1

    def ingress(self, error: int) -> int:
        ports = {TOO_SHORT: 3, HEADER: 4, ARGUMENT: 5}
        if error:
            return ports[error]
        options = self.options
        assert options is not None
        if self.op == 9 and self.check and checksum(options) != self.check[:2]:
            return 6
        match self.op:
            case 1 | 4:
                self.copy = options
            case 2:
                self.options = bytes(len(options) - 1) + b"\x0f"
            case 3:
                kind = (int.from_bytes(options[:2], "big") + 0x10) & 0xFFFF
                shift = 8 * (len(options) - 2)
                low = int.from_bytes(options, "big") & ((1 << shift) - 1)
                whole = kind << shift | low
                if len(options) == 2:  # the kind's last bits share a byte with the tail
                    whole = kind
                self.copy, self.options = whole.to_bytes(len(options), "big"), None
            case 5:
                last = options[-1]
                self.options = options[:-1] + bytes([(last & 0xF0) | ((last + 1) & 15)])
            case 6:
                self.copy = bytes(2)
        if self.op == 4 and self.rest:
            self.rest = self.rest[:1] + b"\xee"
        return 2


def checksum(data: bytes) -> bytes:
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", 0xFFFF ^ total)


def value_of(options: bytes | None) -> bytes:
    """Return the varbit field of an options header, which lies between two half bytes."""
    if not options:
        return b""
    number = int.from_bytes(options, "big") >> 4 & ((1 << 8 * (len(options) - 2)) - 1)
    return number.to_bytes(len(options) - 2, "big")


def varbits(packet: bytes) -> Sent:
    model, reader = Varbits(), Reader(packet)
    port = model.ingress(parse(reader, model.states))
    if model.op == 7:
        if model.rest:
            model.rest = model.rest[:1] + bytes([len(packet) & 0xFF])
        model.copy = model.options
    if model.check and model.op != 8:
        summed = value_of(model.options) + model.check[2:]
        summed += (model.rest or b"")[1:] + value_of(model.copy)
        model.check = checksum(summed) + model.check[2:]
    parts = (model.base, model.options, model.check, model.rest, model.copy)
    return port, b"".join(part or b"" for part in parts) + reader.rest


# parsers.p4


@dataclass
class Parsers:
    ports: Container[int]
    both: Container[tuple[int, int]]
    base: bytes | None = None
    item: bytes | None = None
    pair: bytes | None = None
    skip: int = 0
    visits: int = 0
    ahead: int = 0
    way: int = 0

    def states(self, reader: Reader) -> None:
        self.base = reader.take(4)
        kind, port, self.skip = struct.unpack(">BHB", self.base)
        self.way = 1
        if (kind, port) in self.both:
            self.way |= 2
            reader.advance(self.skip)
            self.items(reader)
        elif kind == 0:
            return
        elif kind <= 6 and port & 0xF000 == 0x1000:
            self.ranged(reader)
        elif kind == 7:
            self.far(reader)
        elif port in self.ports:
            self.step(reader)
        elif port == 0x55:
            self.items(reader)

    def ranged(self, reader: Reader) -> None:
        self.way |= 4
        self.pair = reader.take(4)
        match self.pair[0]:
            case 0xFD:
                raise ParserError(ODD)
            case 0xFF:
                self.step(reader)
            case 5:
                self.items(reader)

    def step(self, reader: Reader) -> None:
        self.way |= 8
        reader.advance((self.skip & 0x78) + 8)
        self.items(reader)

    def far(self, reader: Reader) -> None:
        self.ahead = int.from_bytes(reader.look(13), "big") >> 4
        self.way = self.way & 0x1F | (self.ahead & 0x7F) << 5
        self.pair = b"\0\x12\x34\x56"
        a, b = self.ahead >> 97, self.ahead >> 7 & 1
        if b and a in (1, 2):
            if a == 2:
                self.base = None
            self.items(reader)

    def items(self, reader: Reader) -> None:
        self.item = reader.take(10)
        self.visits = (self.visits + 1) & 0xFF
        left, kind = divmod(self.item[0], 16)
        if left == 0:
            return
        if kind == 7:
            self.step(reader)
            return
        if kind == 8:
            self.pair = reader.take(4)
        self.items(reader)


def parsers(
    packet: bytes, ports: Container[int] = (), both: Container[tuple[int, int]] = ()
) -> Sent:
    model, reader = Parsers(ports, both), Reader(packet)
    error = parse(reader, model.states)
    codes = {OK: 0x10, TOO_SHORT: 0x11, ARGUMENT: 0x13, ODD: 0x14}
    note = bytes([codes[error], model.visits])
    note += (model.ahead << 12 | model.way).to_bytes(14, "big")
    note += model.pair[:1] if model.pair else b"\0"
    pair = model.pair or b""
    return 2, pair + note + (model.item or b"") + (model.base or b"") + pair + reader.rest
