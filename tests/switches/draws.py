"""Random bytes as packets for programs are made of them: edges, cuts, and checksums that hold."""

from __future__ import annotations

import random
import struct

PORTS = 8

Packet = tuple[int, bytes]
"""A port, and what comes in there."""


def edge(rng: random.Random, bits: int) -> int:
    """Return a number of that many bits, likely one at which arithmetic goes wrong."""
    edges = (0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1)
    if rng.random() < 0.5:
        return rng.choice(edges)
    return rng.getrandbits(rng.choice((bits, bits, min(bits, 4))))


def cut(rng: random.Random, data: bytes, chance: float) -> bytes:
    return data[: rng.randrange(1, len(data) + 1)] if rng.random() < chance else data


def ones_sum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) // 2 * 2]))
    total += data[-1] << 8 if len(data) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
