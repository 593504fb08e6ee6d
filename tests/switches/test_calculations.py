"""Checksums and hashes of a program, packet by packet, against the algorithms over a bit string."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest
from program_cases import make_switch
from wide_cases import SUMS, WIDE_CASES, hash_packet

from ringleaf.switches.engine.hashing import crc

HASHES = WIDE_CASES[1]
OFFSETS = {name: sum(list(SUMS.values())[:i]) for i, name in enumerate(SUMS)}
START = sum(SUMS.values()) // 8


@dataclass
class Parts:
    """A packet of hashes.p4, taken apart."""

    base: int
    extra: int | None
    options: bytes
    long: int | None
    payload: bytes

    def string(self) -> str:
        """Return what the program hashes, as binary digits."""
        digits = f"{self.base >> 53 & 7:03b}{self.base >> 44 & 511:09b}"
        if self.extra is not None:
            digits += f"{self.extra:024b}"
        digits += f"{21:05b}" + "".join(f"{byte:08b}" for byte in self.options)
        return digits + f"{self.base & 2**40 - 1:040b}{self.base >> 40 & 15:04b}"


def take_apart(data: bytes) -> Parts | None:
    """Return the parts; None if the packet is too short for all its headers."""
    at = START
    sizes = {1: 3, 4: 100}
    if len(data) < at + 8:
        return None
    base = int.from_bytes(data[at : at + 8], "big")
    kind, at = base >> 56, at + 8
    found: dict[int, int] = {}
    options = b""
    for bit in (1, 2, 4):
        if not kind & bit:
            continue
        if bit == 2:
            if at >= len(data) or at + 1 + data[at] > len(data):
                return None
            options, at = data[at + 1 : at + 1 + data[at]], at + 1 + data[at]
            continue
        size = sizes[bit]
        if at + size > len(data):
            return None
        found[bit] = int.from_bytes(data[at : at + size], "big")
        at += size
    return Parts(base, found.get(1), options, found.get(4), data[at:])


def padded(digits: str) -> bytes:
    digits += "0" * (-len(digits) % 8)
    return int(digits or "0", 2).to_bytes(len(digits) // 8, "big")


def words(data: bytes) -> list[int]:
    data += bytes(len(data) % 2)
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


def csum16(data: bytes) -> int:
    """RFC 1071."""
    total = sum(words(data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return total ^ 0xFFFF


def xor16(data: bytes) -> int:
    total = 0
    for word in words(data):
        total ^= word
    return total


def identity(data: bytes) -> int:
    return int.from_bytes(data[:8], "big")


def expected(parts: Parts) -> dict[str, int]:
    """Return the sums that the program updates."""
    found: dict[str, int] = {}
    for ending, data in (
        ("", padded(parts.string())),
        ("_whole", padded(parts.string()) + parts.payload),
    ):
        found |= {
            f"crc16{ending}": crc("crc16", data),
            f"crc32{ending}": crc("crc32", data),
            f"csum16{ending}": csum16(data),
            f"xor16{ending}": xor16(data),
            f"same{ending}": identity(data),
        }
    found |= {"crc16_custom": found["crc16"], "crc32_custom": found["crc32"]}
    base_a, base_d = f"{parts.base >> 53 & 7:03b}", parts.base & 2**40 - 1
    base_b = f"{parts.base >> 44 & 511:09b}"
    most = max(parts.base >> 40 & 15, 1)
    found["hashed"] = crc("crc32", padded(base_a + base_b)) % most + base_d
    found["ranged"] = crc("crc16", padded(base_b + f"{base_d:040b}")) % 500 + 1000
    if parts.long is not None:
        long = padded(f"{parts.long:0800b}" + base_a)
        found |= {"long_crc16": crc("crc16", long), "long_same": identity(long)}
        found["long_xor16"] = xor16(long) & 0x3FF
    return found


def sums_of(data: bytes) -> dict[str, int]:
    number = int.from_bytes(data[:START], "big")
    return {
        name: number >> (8 * START - OFFSETS[name] - width) & (1 << width) - 1
        for name, width in SUMS.items()
    }


def with_sums(data: bytes, **sums: int) -> bytes:
    number = int.from_bytes(data, "big")
    for name, value in sums.items():
        shift = 8 * len(data) - OFFSETS[name] - SUMS[name]
        number = number & ~(((1 << SUMS[name]) - 1) << shift) | value << shift
    return number.to_bytes(len(data), "big")


@pytest.mark.parametrize("in_head", [0, 75, 180])
def test_sums_are_those_of_the_bits(in_head: int) -> None:
    """Wherever the packet's head ends before it is parsed."""
    switch = make_switch(HASHES)
    switch.program.module = replace(switch.program.module, parsed_bytes=in_head)
    rng = random.Random(in_head)
    for number in range(60):
        _, data = hash_packet(rng)
        parts = take_apart(data)
        if parts is None:
            continue
        [(_, out)] = switch.process(1, data)
        assert len(out) == len(data)
        got, wanted = sums_of(out), expected(parts)
        assert {name: got[name] for name in wanted} == wanted, f"packet {number}: {data.hex()}"


def test_wrong_sums_are_found() -> None:
    switch = make_switch(HASHES)
    rng = random.Random(4)
    seen = set()
    for _ in range(60):
        _, data = hash_packet(rng)
        parts = take_apart(data)
        if parts is None:
            continue
        right = expected(parts)
        checked = [name for bit, name in ((8, "crc32"), (16, "crc16_whole")) if data[START] & bit]
        data = with_sums(data, **{name: right[name] for name in checked})
        [(port, _)] = switch.process(1, data)
        assert port == 2
        if checked:
            wrong = rng.choice(checked)
            flipped = with_sums(data, **{wrong: right[wrong] ^ 1})
            [(port, _)] = switch.process(1, flipped)
            assert port == 3
            seen.add(wrong)
    assert seen == {"crc32", "crc16_whole"}
