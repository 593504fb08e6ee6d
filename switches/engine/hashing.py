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
    """A CRC as in BMv2's `calculations.cpp` and `crc_map.cpp`; a custom one is not configured."""

    width: int  # bits
    polynomial: int  # not reflected
    initial: int
    final: int
    reflected: bool = True  # takes bytes, and gives the remainder, lowest bit first

    @property
    def start(self) -> int:
        """Return the remainder before the first byte; a reflected one has its bits in reverse."""
        return _reversed(self.initial, self.width) if self.reflected else self.initial


CRCS = {
    "crc16": Crc(16, 0x8005, 0, 0),
    "crc16_custom": Crc(16, 0x8005, 0, 0),
    "crc32": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF),
    "crc32_custom": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF),
    "crcCCITT": Crc(16, 0x1021, 0xFFFF, 0, reflected=False),
    "crc8_custom": Crc(8, 0x07, 0, 0, reflected=False),
    "crc64_custom": Crc(64, 0x1B, 0, 0),
    "crc_8": Crc(8, 0x07, 0, 0, reflected=False),
    "crc_8_darc": Crc(8, 0x39, 0, 0),
    "crc_8_i_code": Crc(8, 0x1D, 0xFD, 0, reflected=False),
    "crc_8_itu": Crc(8, 0x07, 0, 0x55, reflected=False),
    "crc_8_maxim": Crc(8, 0x31, 0, 0),
    "crc_8_rohc": Crc(8, 0x07, 0xFF, 0),
    "crc_8_wcdma": Crc(8, 0x9B, 0, 0),
    "crc_16": Crc(16, 0x8005, 0, 0),
    "crc_16_buypass": Crc(16, 0x8005, 0, 0, reflected=False),
    "crc_16_dds_110": Crc(16, 0x8005, 0x800D, 0, reflected=False),
    "crc_16_dect": Crc(16, 0x0589, 0, 1, reflected=False),
    "crc_16_dnp": Crc(16, 0x3D65, 0, 0xFFFF),
    "crc_16_en_13757": Crc(16, 0x3D65, 0, 0xFFFF, reflected=False),
    "crc_16_genibus": Crc(16, 0x1021, 0xFFFF, 0xFFFF, reflected=False),
    "crc_16_maxim": Crc(16, 0x8005, 0, 0xFFFF),
    "crc_16_mcrf4xx": Crc(16, 0x1021, 0xFFFF, 0),
    "crc_16_riello": Crc(16, 0x1021, 0xB2AA, 0),
    "crc_16_t10_dif": Crc(16, 0x8BB7, 0, 0, reflected=False),
    "crc_16_teledisk": Crc(16, 0xA097, 0, 0, reflected=False),
    "crc_16_usb": Crc(16, 0x8005, 0xFFFF, 0xFFFF),
    "x_25": Crc(16, 0x1021, 0xFFFF, 0xFFFF),
    "xmodem": Crc(16, 0x1021, 0, 0, reflected=False),
    "modbus": Crc(16, 0x8005, 0xFFFF, 0),
    "kermit": Crc(16, 0x1021, 0, 0),
    "crc_ccitt_false": Crc(16, 0x1021, 0xFFFF, 0, reflected=False),
    "crc_aug_ccitt": Crc(16, 0x1021, 0x1D0F, 0, reflected=False),
    "crc_32": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF),
    "crc_32_bzip2": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, reflected=False),
    "crc_32c": Crc(32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF),
    "crc_32d": Crc(32, 0xA833982B, 0xFFFFFFFF, 0xFFFFFFFF),
    "crc_32_mpeg": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0, reflected=False),
    "posix": Crc(32, 0x04C11DB7, 0, 0xFFFFFFFF, reflected=False),
    "crc_32q": Crc(32, 0x814141AB, 0, 0, reflected=False),
    "jamcrc": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0),
    "xfer": Crc(32, 0xAF, 0, 0, reflected=False),
    "crc_64": Crc(64, 0x1B, 0, 0),
    "crc_64_we": Crc(64, 0x42F0E1EBA9EA3693, 2**64 - 1, 2**64 - 1, reflected=False),
    "crc_64_jones": Crc(64, 0xAD93D23594C935A9, 2**64 - 1, 0),
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
    remainder = kind.start
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
