"""Packets and entries for values wider than 64 bits, and for hashes over what may be missing."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import finsy as fy
from draws import Packet, cut, edge
from program_cases import PROGRAMS, Case

OPERANDS = {
    **{"n": 8, "m": 8, "a": 65, "b": 65, "spare": 6, "s": 65, "t": 65, "u": 64, "v": 64},
    **{"rest": 6, "c": 128, "d": 128, "x": 200, "y": 200, "e": 2048, "f": 2048},
}
"""Bits of each operand of wide.p4, in order."""

SEEDS = (3, 5, 8)
"""Of packets for which the tables have entries."""


def pack(values: dict[str, int], widths: dict[str, int]) -> bytes:
    number = 0
    for name, width in widths.items():
        number = number << width | values[name] & (1 << width) - 1
    return number.to_bytes(sum(widths.values()) // 8, "big")


def wide_bytes(values: dict[str, int]) -> bytes:
    """Return a packet for wide.p4, with room for its results."""
    return pack(values, OPERANDS) + bytes(2038)


def operands(rng: random.Random) -> dict[str, int]:
    """Return operands, likely such as entries are for, or equal ones."""
    if rng.random() < 0.3:
        return known_operands()[rng.randrange(len(SEEDS))]
    return _operands(rng)


def _operands(rng: random.Random) -> dict[str, int]:
    values = {name: edge(rng, width) for name, width in OPERANDS.items()}
    for first, second in (("a", "b"), ("s", "t"), ("u", "v"), ("c", "d"), ("x", "y"), ("e", "f")):
        if rng.random() < 0.2:
            values[second] = values[first]
    return values


@cache
def known_operands() -> list[dict[str, int]]:
    """Return those for which there are entries."""
    return [_operands(random.Random(seed)) for seed in SEEDS]


def wide_packet(rng: random.Random) -> Packet:
    return 1, wide_bytes(operands(rng))


def parameters(number: int) -> dict[str, int]:
    return {"parameter": (1 << 99) + number, "huge_parameter": (number + 1) << 990}


def wide_entities() -> list[Any]:
    entities = []
    for number, values in enumerate(known_operands()):
        fields = {name: values[name] & (1 << width) - 1 for name, width in OPERANDS.items()}
        exact = fy.Match({"hdr.i.e": fields["e"], "hdr.i.s": fields["s"]})
        action = fy.Action("set_parameters", **parameters(number))
        entities.append(+fy.P4TableEntry("exact_wide", match=exact, action=action))
        mask = (0xFFFF << 112) | 0xFF
        ternary = fy.Match({"hdr.i.c": (fields["c"] & mask, mask)})
        action = fy.Action("set_parameters", **parameters(number + 10))
        entities.append(
            +fy.P4TableEntry("ternary_wide", match=ternary, action=action, priority=number + 1)
        )
    limits = ((0, 1 << 64), (1 << 64, (1 << 127) + 5), ((1 << 100) - 3, (1 << 128) - 2))
    for number, (low, high) in enumerate(limits):
        match: dict[str, Any] = {"hdr.i.d": (low, high)}
        if number % 2:
            match |= {"hdr.i.b": (1, 1 << 64), "hdr.i.n": (0, 200)}
        action = fy.Action("set_ranged", ranged=number + 1)
        entry = fy.P4TableEntry(
            "range_wide", match=fy.Match(match), action=action, priority=9 - number
        )
        entities.append(+entry)
    return entities


SUMS = {
    **{"crc16": 16, "crc32": 32, "csum16": 16, "xor16": 16, "same": 64, "crc16_custom": 16},
    **{"crc32_custom": 32, "crc16_whole": 16, "crc32_whole": 32, "csum16_whole": 16},
    **{"xor16_whole": 16, "same_whole": 64, "hashed": 64, "ranged": 32, "long_crc16": 16},
    **{"long_same": 70, "long_xor16": 10},
}
"""Bits of each field of hashes.p4's first header."""


def hash_packet(rng: random.Random) -> Packet:
    kind = rng.randrange(32)
    first = rng.randbytes(sum(SUMS.values()) // 8) + bytes([kind]) + rng.randbytes(7)
    data = b""
    if kind & 1:
        data += rng.randbytes(3)
    if kind & 2:
        size = rng.randrange(9)
        data += bytes([size]) + rng.randbytes(size)
    if kind & 4:
        data += rng.randbytes(100)
    # What BMv2 reads of a first header that is not there is from an earlier packet.
    return 1, first + cut(rng, data + rng.randbytes(rng.randrange(1, 12)), 0.02)


WIDE_CASES = (
    Case(PROGRAMS / "wide.json", wide_packet, wide_entities),
    Case(PROGRAMS / "hashes.json", hash_packet),
)
