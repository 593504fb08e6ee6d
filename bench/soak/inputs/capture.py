"""Captures, pcap and pcapng."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from bench.soak.inputs.kind import TRACES, InputKind
from bench.soak.inputs.mutators import mutate_bytes


@cache
def _captures() -> list[bytes]:
    return [path.read_bytes()[:3000] for path in sorted(TRACES.glob("*/*/port*.pcap"))]


def _draw_capture(rng: random.Random) -> bytes:
    data = rng.choice(_captures())
    if rng.random() < 0.4:
        data = _as_pcapng(rng, data)
    return mutate_bytes(rng, data)


def _as_pcapng(rng: random.Random, data: bytes) -> bytes:
    """Return a pcapng file: a section, an interface and blocks with some bytes of a capture."""
    section = _block(0x0A0D0D0A, (0x1A2B3C4D).to_bytes(4, "little") + bytes(12))
    options = bytes((9, 0, 1, 0, rng.choice((6, 9, 0x80, 0xFF)), 0, 0, 0))
    blocks = [section, _block(1, bytes((1, 0, 0, 0, 0, 0, 0, 0)) + options)]
    for number in range(rng.randrange(5)):
        size = rng.choice((14, 60, 1500))
        sizes = (0, 0, number, size, size)
        body = b"".join(value.to_bytes(4, "little") for value in sizes) + data[:size].ljust(size)
        blocks.append(_block(6, body + bytes(-size % 4)))
    return b"".join(blocks)


def _block(kind: int, body: bytes) -> bytes:
    size = (12 + len(body)).to_bytes(4, "little")
    return kind.to_bytes(4, "little") + size + body + size


def _feed_capture(data: bytes, folder: Path) -> None:
    from ringleaf.networks.traces.pcap_read import read_packets

    path = folder / "packets.pcap"
    path.write_bytes(data)
    file = read_packets(path)
    for number in range(len(file)):
        assert 0 < len(file.packet(number)) <= len(data)


KIND = InputKind(16, _draw_capture, _feed_capture)
