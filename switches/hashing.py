"""BMv2's hash algorithms, and the tables with which compiled code computes CRCs.

A CRC of inputs of one length is affine: it is the exclusive or of one table look-up per byte,
all independent of each other, which a processor does at once (where the usual loop has each
byte wait for the one before).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringleaf.arena import Lanes


@dataclass(frozen=True, slots=True)
class Crc:
    """A reflected CRC as BMv2's `calculations.cpp` has it."""

    width: int  # bits
    polynomial: int  # not reflected
    initial: int
    final: int


CRCS = {
    "crc16": Crc(16, 0x8005, 0, 0),
    "crc32": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF),
}

WIDTHS = {"crc16": 16, "crc32": 32, "csum16": 16, "xor16": 16, "xor32": 32, "identity": 64}
"""Bits of the result of each supported algorithm."""


def crc(algorithm: str, data: bytes) -> int:
    """Return the CRC of `data`."""
    kind = CRCS[algorithm]
    polynomial = int(f"{kind.polynomial:0{kind.width}b}"[::-1], 2)
    remainder = kind.initial
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (polynomial if remainder & 1 else 0)
    return remainder ^ kind.final


def crc_tables(algorithm: str, length: int) -> Lanes:
    """Return `length` tables of 256: what each byte at each place of the input adds.

    The CRC is the exclusive or of `table[256 * i + data[i]]` over all i.
    """
    zeros = crc(algorithm, bytes(length))
    table = np.zeros(256 * length, np.uint32)
    for i in range(length):
        bits = [crc(algorithm, _one_byte(i, 1 << bit, length)) ^ zeros for bit in range(8)]
        for value in range(256):
            added = zeros if i == 0 else 0
            for bit in range(8):
                if value >> bit & 1:
                    added ^= bits[bit]
            table[256 * i + value] = added
    return table


def _one_byte(at: int, value: int, length: int) -> bytes:
    return bytes(at) + bytes([value]) + bytes(length - at - 1)
