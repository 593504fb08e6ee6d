"""BMv2's hash algorithms, and the tables with which compiled code computes CRCs.

A CRC of inputs of one length is affine: it is the exclusive or of one table look-up per byte,
all independent of each other, which a processor does at once (where the usual loop has each
byte wait for the one before).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringleaf.core.arena import Fields, Lanes


@dataclass(frozen=True, slots=True)
class Crc:
    """A CRC as in BMv2's `calculations.cpp`; a custom one as it is before it is configured."""

    width: int  # bits
    polynomial: int  # not reflected
    initial: int
    final: int
    reflected: bool = True  # takes bytes, and gives the remainder, lowest bit first


CRCS = {
    "crc16": Crc(16, 0x8005, 0, 0),
    "crc16_custom": Crc(16, 0x8005, 0, 0),
    "crc32": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF),
    "crc32_custom": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF),
    "crcCCITT": Crc(16, 0x1021, 0xFFFF, 0, reflected=False),
    "crc8_custom": Crc(8, 0x07, 0, 0, reflected=False),
    "crc64_custom": Crc(64, 0x1B, 0, 0),
}

XORS = {"xor16": 2, "xor32": 4}
"""The sizes in bytes of the words that these algorithms combine by exclusive or."""

WIDTHS = {
    **{name: kind.width for name, kind in CRCS.items()},
    **{name: 8 * size for name, size in XORS.items()},
    "csum16": 16,
    "cksum16": 16,
    "identity": 64,
    "random": 64,
}
"""Bits of the result of each supported algorithm."""


def crc(algorithm: str, data: bytes) -> int:
    """Return the CRC of `data`."""
    kind = CRCS[algorithm]
    remainder = _reversed(kind.initial, kind.width) if kind.reflected else kind.initial
    for byte in data:
        remainder = _step(kind, remainder, byte)
    return remainder ^ kind.final


def _step(kind: Crc, remainder: int, byte: int) -> int:
    """Return the remainder after one more byte; a reflected one has its bits in reverse."""
    if kind.reflected:
        polynomial = _reversed(kind.polynomial, kind.width)
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (polynomial if remainder & 1 else 0)
        return remainder
    remainder ^= byte << (kind.width - 8)
    for _ in range(8):
        high = remainder >> (kind.width - 1)
        remainder = (remainder << 1) & ((1 << kind.width) - 1) ^ (kind.polynomial if high else 0)
    return remainder


def _reversed(number: int, width: int) -> int:
    return int(f"{number:0{width}b}"[::-1], 2)


def crc_steps(algorithm: str) -> Fields:
    """Return the remainder that each byte makes of zero, for loops over bytes (`gathering.py`).

    Remainders that are not reflected lie in the highest bits of the word.
    """
    kind = CRCS[algorithm]
    up = 0 if kind.reflected else 64 - kind.width
    return np.array([_step(kind, 0, byte) << up for byte in range(256)], np.uint64)


def crc_tables(algorithm: str, length: int) -> Lanes | Fields:
    """Return `length` tables of 256: the contribution of each byte at each place of the input.

    The CRC is the exclusive or of `table[256 * i + data[i]]` over all i.
    """
    kind = CRCS[algorithm]
    table = np.zeros((length, 256), np.uint64)
    steps = np.array([_step(kind, 0, byte) for byte in range(256)], np.uint64)
    row = steps  # what each byte makes of zero, and then what zeros after it make of that
    for i in reversed(range(length)):
        table[i] = row
        if kind.reflected:
            row = row >> np.uint64(8) ^ steps[row & np.uint64(0xFF)]
        else:
            low = (1 << kind.width - 8) - 1
            row = (row & np.uint64(low)) << np.uint64(8) ^ steps[row >> np.uint64(kind.width - 8)]
    table[:1] ^= np.uint64(crc(algorithm, bytes(length)))
    return table.ravel() if kind.width > 32 else table.ravel().astype(np.uint32)
