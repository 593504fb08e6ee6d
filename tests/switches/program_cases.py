"""Programs, entries for them and random packets that reach all their corners.

The same cases are replayed from traces of BMv2 (always) and run against it (where it is).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import finsy as fy
from draws import PORTS, Packet, cut, edge, ones_sum
from forwarding_cases import aggregation_packet, route_entities, routed_packet, tree_entities

from ringleaf.networks.virtual.switch_set import load_program
from ringleaf.switches.switch import Switch

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
PSA = HERE / "psa"
TRACES = HERE / "traces"
BUILT = HERE.parent.parent / "p4" / "build"


@dataclass(frozen=True)
class Case:
    """One program; `entities()` and `packet(rng)` are its entries and a packet for it."""

    path: Path
    packet: Callable[[random.Random], Packet]
    entities: Callable[[], list[Any]] = list
    registers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def p4info(self) -> Path:
        return self.path.with_name(f"{self.name}.p4info.txtpb")

    def packets(self, count: int, seed: int) -> list[Packet]:
        rng = random.Random(seed)
        return [self.packet(rng) for _ in range(count)]


def make_switch(case: Case) -> Switch:
    """Return a switch of its own, with the case's entries."""
    program = load_program(case.path)
    switch = Switch.alone(program, PORTS, case.name, seed=7)
    switch.write(case.entities())
    return switch


# expressions.p4

OPERANDS = (64, 64, 32, 32, 8, 8, 3, 5, 8, 32, 32, 8, 8, 64, 128, 128, 20, 12)  # bits of each
ALIKE = ((0, 1), (2, 3), (9, 10), (11, 12), (14, 15))  # that are compared


def operands(rng: random.Random) -> Packet:
    values = [edge(rng, width) for width in OPERANDS]
    for first, second in ALIKE:
        if rng.random() < 0.2:
            values[second] = values[first]
    number = 0
    for value, width in zip(values, OPERANDS, strict=True):
        number = number << width | value
    return 1, number.to_bytes(sum(OPERANDS) // 8, "big") + bytes(rng.randrange(5))


# tables.p4

ADDRESSES = (0x0A000001, 0x0A0000FE, 0x0A010203, 0xC0A80101, 0xF0F0F0F0, 0x80000000)
WIDE = 0x0123456789ABCDEFFEDCBA9876543210


def entry(table: str, match: dict[str, Any], action: str, value: int, **more: Any) -> Any:
    priority = more.pop("priority", 0)
    return +fy.P4TableEntry(
        table,
        match=fy.Match(match),
        action=fy.Action(action, value=value, **more),
        priority=priority,
    )


def prefixes(rng: random.Random, values: tuple[int, ...], width: int) -> list[tuple[int, int]]:
    """Return distinct (value, length) pairs."""
    found: dict[tuple[int, int], None] = {}
    for value in values:
        length = rng.randrange(1, width + 1)
        found[value >> (width - length) << (width - length), length] = None
    return list(found)


def table_entities() -> list[Any]:
    rng = random.Random(5)
    entities = [
        entry(
            "exact_table",
            {"hdr.key.address": address, "hdr.key.port": i % 3, "hdr.key.$valid$": 1},
            "set_exact",
            i + 1,
        )
        for i, address in enumerate(ADDRESSES)
    ]
    for i, prefix in enumerate(prefixes(rng, ADDRESSES * 3, 32)):
        entities.append(entry("lpm_table", {"hdr.key.address": prefix}, "set_lpm", i + 1))
    for i, prefix in enumerate(prefixes(rng, (WIDE,) * 12, 128)):
        match = {"hdr.key.wide": prefix, "meta.small": i % 4}
        wide = rng.getrandbits(128)
        entities.append(entry("mixed_table", match, "set_mixed", i + 1, wide=wide))
    entities += [*ternary_entries(rng), *range_entries(rng), *optional_entries(rng)]
    entities.append(
        ~fy.P4TableEntry(
            "keyless_table", is_default_action=True, action=fy.Action("set_keyless", value=0x4321)
        )
    )
    for kind, action in enumerate(("left", "right", "leave")):
        match = fy.Match({"hdr.key.kind": kind})
        entities.append(+fy.P4TableEntry("which_way", match=match, action=fy.Action(action)))
    return entities


def ternary_entries(rng: random.Random) -> list[Any]:
    entries = []
    for i in range(20):
        match = {}
        if rng.random() < 0.7:
            mask = rng.choice([0xFF000000, 0xFFFF0000, 0xFF, 0xF0F0F0F0])
            match["hdr.key.address"] = (rng.choice(ADDRESSES) & mask, mask)
        if rng.random() < 0.5:
            mask = rng.choice([1, 3, 0x80])
            match["hdr.key.flags"] = (rng.getrandbits(8) & mask, mask)
        entries.append(entry("ternary_table", match, "set_ternary", i + 1, priority=100 - i * 3))
    return entries


def range_entries(rng: random.Random) -> list[Any]:
    entries = []
    for i in range(10):
        low = rng.randrange(12)
        match: dict[str, Any] = {
            "hdr.key.port": (low, rng.randrange(low, 16)),
            "hdr.key.kind": rng.randrange(4),
        }
        if rng.random() < 0.5:
            match["hdr.key.flags"] = (rng.randrange(100), 200)
        entries.append(entry("range_table", match, "set_range", i + 1, priority=50 - i))
    return entries


def optional_entries(rng: random.Random) -> list[Any]:
    entries = []
    for i in range(6):
        match = {"hdr.key.mac": rng.randrange(3)} if i % 2 else {}
        if i % 3:
            match["hdr.key.kind"] = rng.randrange(4)
        entries.append(entry("optional_table", match, "set_optional", i + 1, priority=i + 1))
    return entries


def table_keys(rng: random.Random) -> Packet:
    address = rng.choice(ADDRESSES) if rng.random() < 0.8 else rng.getrandbits(32)
    address ^= 1 << rng.randrange(32) if rng.random() < 0.3 else 0
    port = rng.randrange(16) if rng.random() < 0.7 else rng.randrange(3)
    wide = WIDE ^ (1 << rng.randrange(128) if rng.random() < 0.8 else 0)
    flags = rng.choice([0, 1, 2, 3, rng.getrandbits(8)])
    data = struct.pack(">BIHB", rng.randrange(4), address, port, flags)
    data += wide.to_bytes(16, "big") + rng.randrange(4).to_bytes(6, "big")
    data += rng.getrandbits(16).to_bytes(2, "big") + bytes(rng.randrange(8))
    return 1, cut(rng, data, 0.02)


# prefixes.p4

ODD = (0x0010, 0x0011, 0x0017, 0x0018, 0x0400, 0x04FF, 0x0600, 0x0800, 0x1000, 0x1FFF)
TAGS = (0x000, 0x0FF, 0x120, 0x12C, 0x12E, 0x12F, 0x13F, 0x7FF, 0x800)


def prefix_entities() -> list[Any]:
    """Return entries that BMv2's P4Runtime takes: it wants 16 - LENGTH bits of zeros at the end."""
    alone = [(0x0010, 13), (0x0018, 13), (0x1000, 4), (0x0800, 5), (0x0000, 2)]
    ranked = [((0x120, 12), 2), ((0x100, 8), None), ((0x000, 4), None)]
    ranges = [((0x120, 12), (2, 9)), ((0x100, 8), (0, 7)), ((0x000, 4), (3, 15))]
    entities = [
        entry("alone", {"hdr.key.odd": prefix}, "set", i) for i, prefix in enumerate(alone, 1)
    ]
    for i, (tag, pad) in enumerate(ranked, 1):
        match: dict[str, Any] = {"hdr.key.tag": tag}
        if pad is not None:
            match["hdr.key.pad"] = (pad, pad)
        entities.append(entry("ranked", match, "set", i, priority=9 - i))
    for i, (tag, limits) in enumerate(ranges, 1):
        match = {"hdr.key.tag": tag, "hdr.key.pad": limits}
        entities.append(entry("ranges", match, "set", i, priority=9 - i))
    return entities


def prefixed(rng: random.Random) -> Packet:
    odd = rng.choice(ODD) if rng.random() < 0.8 else rng.getrandbits(13)
    tag = rng.choice(TAGS) if rng.random() < 0.8 else rng.getrandbits(12)
    pad = rng.choice((2, 2, rng.getrandbits(4)))
    return 1, (odd << 19 | rng.randrange(4) << 16 | tag << 4 | pad).to_bytes(4, "big") + b"\xff"


# meters.p4


def meter_entities() -> list[Any]:
    """Return meters that fill at no rate, so that their colours don't depend on time."""

    def rates(burst: int, peak_burst: int) -> Any:
        return fy.P4MeterConfig(cir=0, cburst=burst, pir=0, pburst=peak_burst)

    def metered(table: str, key: Any, action: str, config: Any, priority: int = 0) -> Any:
        return +fy.P4TableEntry(
            table,
            match=fy.Match({"hdr.op.index": key}),
            action=fy.Action(action),
            priority=priority,
            meter_config=config,
        )

    return [
        metered("exact_table", 1, "color", rates(90, 300)),
        metered("exact_table", 2, "miss", rates(0, 100)),
        metered("exact_table", 3, "color", None),
        metered("ternary_table", (1, 1), "count", rates(3, 8), priority=3),
        metered("ternary_table", (2, 2), "count", rates(5, 2), priority=2),
        metered("ternary_table", (4, 4), "NoAction", rates(1, 2), priority=1),
        fy.P4MeterEntry("by_packets", index=1, config=rates(3, 7)),
        fy.P4MeterEntry("by_packets", index=2, config=rates(6, 2)),
        fy.P4MeterEntry("by_bytes", index=0, config=rates(150, 400)),
        fy.P4MeterEntry("by_bytes", index=1, config=rates(20, 60)),
        fy.P4MeterEntry("leaving", index=0, config=rates(100, 300)),
        fy.P4MeterEntry("leaving", index=3, config=rates(40, 41)),
    ]


def metered_operation(rng: random.Random) -> Packet:
    data = bytes([rng.randrange(4), rng.randrange(8), *[9] * 4]) + bytes(rng.randrange(30))
    return rng.randrange(1, 4), data


# headers.p4


def header_stack(rng: random.Random) -> Packet:
    data = b""
    chance = rng.random()
    if chance < 0.3:
        data += b"\xee" + rng.randbytes(9)
    elif chance < 0.5:
        data += b"\xee\0\0\0"
    kind = rng.choice([0x8100, 0x9012, 0x9100, 1, 0x0800])
    following = rng.choice([2, 0x10, 0x1F, 0x55, 0x66, 0x77, 0, 0])
    data += struct.pack(">HBB", kind, rng.randrange(10), following)
    if rng.random() < 0.7:
        inner = b"\xab\xcd" if rng.random() < 0.6 else rng.randbytes(2)
        data += rng.randbytes(4) + inner + rng.randbytes(2)
    data += rng.randbytes(rng.randrange(40))
    return rng.choice([1, 3]), cut(rng, data, 0.2)


# padding.p4


def padded_options(rng: random.Random) -> Packet:
    data = b""
    while rng.random() < 0.7:
        data += rng.choice([b"\0", b"\0\0\0", bytes([rng.randrange(1, 10), rng.getrandbits(8)])])
    if rng.random() < 0.9:
        data += bytes([rng.randrange(10, 256)]) + rng.randbytes(3 + rng.randrange(4))
    return 1, cut(rng, data + b"\xff", 0.05)


# stacks.p4


def labels(rng: random.Random) -> Packet:
    flags = rng.choice([0, 0x80, 0x80, 0xC0, 0x40, 0xA0, 0x60])
    op = rng.choice([*range(1, 15), *range(1, 15), 0, 0x80])
    data = struct.pack(">BBH", op, flags | rng.randrange(4), rng.getrandbits(16))
    label = rng.randbytes(11)
    for last in (*(0,) * rng.randrange(6), 1):
        if rng.random() < 0.7:
            label = rng.randbytes(11)
        number = rng.choice([rng.getrandbits(15), 0x100 + rng.randrange(256)])
        if rng.random() < 0.02:
            number = 0x7ABC
        head = struct.pack(">H", number << 1 | last) if rng.random() < 0.8 else label[:2]
        label = head + label[2:]
        data += label
    return 1, cut(rng, data + rng.randbytes(rng.randrange(40)), 0.15)


# unions.p4


def union_options(rng: random.Random) -> Packet:
    count = rng.choice([0, 1, 2, 2, 3, 3, 3, 4])
    data = bytes([rng.randrange(11) | rng.choice([0, 0, 0x40, 0x80]), count])
    for _ in range(count + 1):
        kind = rng.choice([1, 1, 2, 3, 3, rng.randrange(256)])
        if kind == 1:
            data += bytes([1, rng.choice([0, 0, 0xFF, rng.getrandbits(8)])])
        elif kind == 2:
            data += b"\2" + rng.randbytes(10)
        else:
            length = rng.choice([0, 1, 3, 8, 8, 9, 32, 34])
            data += bytes([kind, length]) + rng.randbytes(length)
    return 1, cut(rng, data + rng.randbytes(rng.randrange(9)), 0.15)


# varbits.p4


def varying_options(rng: random.Random) -> Packet:
    op, words = rng.randrange(16), rng.choice([0, 1, 2, 5, 9, 10, rng.randrange(16)])
    bits = rng.choice([0, 0, 0, 8, 16, 3, rng.getrandbits(8)])
    options = rng.randbytes(2 + (16 * words + bits) // 8)
    sum_ = 0xFFFF ^ ones_sum(options) if rng.random() < 0.7 else rng.getrandbits(16)
    data = bytes([op << 4 | words, bits]) + options + struct.pack(">H", sum_)
    data += rng.randbytes(options[1] >> 4 & 7)
    data += bytes([rng.choice([0, 8, 24, 0, 1, 80]), rng.getrandbits(8)])
    return 1, cut(rng, data + rng.randbytes(rng.randrange(20)), 0.15)


# parsers.p4


def parser_ways(rng: random.Random) -> Packet:
    kind = rng.choice([0, 1, 3, 6, 7, 7, 7, 8, 9, 9])
    port = rng.choice([0x1000 + rng.getrandbits(12), 0x55, 0x56, 0x57, rng.getrandbits(16)])
    data = struct.pack(">BHB", kind, port, rng.choice([0, 8, 24, 12, rng.getrandbits(8)]))
    if kind in (1, 3, 6):
        data += bytes([rng.choice([0xFD, 0xFF, 0xFF, 5, 5, 1])]) + rng.randbytes(3)
    if kind == 7:
        data += bytes([rng.choice([0x20, 0x40]) | rng.getrandbits(5)]) + rng.randbytes(10)
        data += bytes([rng.getrandbits(8) | 8, rng.getrandbits(8)])
    else:
        data += rng.randbytes(rng.choice([0, 0, 1, 2, 4]))
    for left in (*(1,) * rng.randrange(4), 0):
        data += bytes([left << 4 | rng.choice([7, 8, 0, 1])]) + rng.randbytes(9)
        data += rng.randbytes(rng.choice([0, 0, 4, 1]))
    return 1, cut(rng, data + rng.randbytes(rng.randrange(9)), 0.1)


# stateful.p4


def replication_entities() -> list[Any]:
    return [
        +fy.P4MulticastGroupEntry(1, replicas=[1, 2, (3, 5)]),
        +fy.P4MulticastGroupEntry(7, replicas=[(4, 9), (4, 10), 5]),
        +fy.P4CloneSessionEntry(1, replicas=[6]),
        +fy.P4CloneSessionEntry(9, replicas=[7]),
    ]


def stateful_operation(rng: random.Random) -> Packet:
    index = rng.choice([rng.randrange(20), rng.randrange(120), rng.randrange(1100)])
    value = rng.choice([rng.getrandbits(64), rng.getrandbits(3)])
    group = rng.choice([1, 7, 9, 0, 3])
    data = struct.pack(">BHQH", rng.randrange(10), index, value, group)
    return rng.choice([1, 3]), data + rng.randbytes(5 + rng.randrange(5))


# checksums.p4


def udp_packet(rng: random.Random) -> Packet:
    """Return Ethernet, IPv4 and UDP (or not), checksums mostly right, often damaged."""
    payload = rng.randbytes(rng.randrange(60))
    length = 8 + len(payload)
    addresses = rng.randbytes(8)
    protocol = 17 if rng.random() < 0.8 else 6
    udp = struct.pack(">HHHH", rng.getrandbits(16), rng.getrandbits(16), length, 0) + payload
    if rng.random() < 0.9:
        sum_ = 0xFFFF ^ ones_sum(addresses + struct.pack(">BBH", 0, 17, length) + udp)
        udp = udp[:6] + struct.pack(">H", sum_) + udp[8:]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 7, 0, rng.randrange(256), protocol, 0)
    ip = ip[:10] + struct.pack(">H", 0xFFFF ^ ones_sum(ip + addresses)) + addresses
    data = bytearray(bytes(12) + struct.pack(">H", rng.choice([0x0800] * 19 + [0x86DD])))
    data += ip + udp
    if rng.random() < 0.4:
        data[rng.randrange(14, len(data))] ^= 1 << rng.randrange(8)
    return 1, cut(rng, bytes(data), 0.05)


# lanes.p4


def lane_operation(rng: random.Random) -> Packet:
    op = rng.choice([*range(13), 20, 20])
    more = {6: 1, 7: 1, 8: 2, 9: 3}.get(op, rng.randrange(4))
    index = rng.choice([rng.randrange(4), rng.randrange(12), rng.randrange(60, 102), 99, 100])
    data = struct.pack(">BBHI", op, more, index, edge(rng, 32))
    data += lanes(rng, 32)
    if more == 1:
        data += b"\x12\x34" + lanes(rng, 32)
    if more == 2:
        data += lanes(rng, 16) + b"\x77"
    if more in (2, 3):
        data += lanes(rng, 8)
    return 1, cut(rng, data + rng.randbytes(rng.randrange(5)), 0.02)


def lanes(rng: random.Random, bits: int) -> bytes:
    return b"".join(edge(rng, bits).to_bytes(bits // 8, "big") for _ in range(16))


CASES = (
    Case(PROGRAMS / "expressions.json", operands),
    Case(PROGRAMS / "tables.json", table_keys, table_entities),
    Case(PROGRAMS / "prefixes.json", prefixed, prefix_entities),
    Case(PROGRAMS / "meters.json", metered_operation, meter_entities),
    Case(PROGRAMS / "headers.json", header_stack),
    Case(PROGRAMS / "padding.json", padded_options),
    Case(PROGRAMS / "stacks.json", labels),
    Case(PROGRAMS / "unions.json", union_options),
    Case(PROGRAMS / "varbits.json", varying_options),
    Case(PROGRAMS / "parsers.json", parser_ways),
    Case(
        PROGRAMS / "stateful.json",
        stateful_operation,
        replication_entities,
        ("I.nines", "I.levels", "I.bits"),
    ),
    Case(PROGRAMS / "checksums.json", udp_packet),
    Case(
        PROGRAMS / "lanes.json",
        lane_operation,
        registers=("I.r0", "I.r7", "I.r15", "I.n3", "I.small0", "I.small15"),
    ),
    Case(BUILT / "forward.json", routed_packet, route_entities),
    Case(
        BUILT / "switchml-64.json",
        aggregation_packet,
        tree_entities,
        (
            "SwitchML.aggregation.owners",
            "SwitchML.aggregation.published",
            "SwitchML.aggregation.exponents",
            "SwitchML.aggregation.r0",
            "SwitchML.aggregation.r63",
        ),
    ),
    Case(
        BUILT / "switchml-256.json",
        partial(aggregation_packet, lanes=256),
        tree_entities,
        (
            "SwitchML.aggregation.owners",
            "SwitchML.aggregation.published",
            "SwitchML.aggregation.r0",
            "SwitchML.aggregation.r255",
        ),
    ),
)
