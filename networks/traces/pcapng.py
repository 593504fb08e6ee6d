"""The blocks of a pcapng file; interfaces may have any resolution of time."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleaf.errors import ConfigError
from ringleaf.ethernet import LONGEST_PACKET
from ringleaf.networks.traces.pcap_write import LINKTYPE_ETHERNET, NS_PER_S

MAGIC = 0x0A0D0D0A  # the type of a section header block, which reads the same both ways
INTERFACE, SIMPLE_PACKET, ENHANCED_PACKET = 1, 3, 6
TIME_RESOLUTION = 9  # option if_tsresol
MICROSECONDS = 6  # its default, as a power of ten
_BYTE_ORDER = {0x1A2B3C4D: "<", 0x4D3C2B1A: ">"}  # as little-endian reads it


class _Block(NamedTuple):
    kind: int
    start: int  # of its body
    size: int  # of its body
    order: str  # of its section, for struct


def scan_blocks(path: Path, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the rows (offset, length, stamp in ns) of all packets.

    Raises:
        ConfigError: If the file is damaged, or not of Ethernet.
    """
    rows: list[tuple[int, int, int]] = []
    units: list[int] = []  # per interface of the section, units of time in a second
    view = memoryview(data)  # type: ignore[arg-type]
    for block in _blocks(path, view):
        if block.kind == MAGIC:
            units = []
        elif block.kind == INTERFACE:
            units.append(_interface(path, view, block))
        elif block.kind == ENHANCED_PACKET:
            rows.append(_packet(path, view, block, units, len(rows) + 1))
        elif block.kind == SIMPLE_PACKET:
            raise ConfigError(
                f"{path}: packet {len(rows) + 1} has no time, got a simple packet block; "
                "capture with times"
            )
    return np.array(rows, np.int64).reshape(len(rows), 3)


def _blocks(path: Path, view: memoryview) -> Iterator[_Block]:
    at, order = 0, "<"
    while at < len(view):
        left = len(view) - at
        if left < 12:
            raise ConfigError(f"{path}: is truncated, got {left} bytes for a block of at least 12")
        (kind,) = struct.unpack_from(f"{order}I", view, at)
        if kind == MAGIC:
            order = _section_order(path, view, at)
        (size,) = struct.unpack_from(f"{order}I", view, at + 4)
        if size < 12 or size % 4:
            raise ConfigError(f"{path}: block at {at} is damaged, got a length of {size}")
        if size > left:
            raise ConfigError(f"{path}: is truncated, got {left} of a block's {size} bytes")
        if struct.unpack_from(f"{order}I", view, at + size - 4)[0] != size:
            raise ConfigError(
                f"{path}: block at {at} is damaged: its two lengths differ, got {size}"
            )
        yield _Block(kind, at + 8, size - 12, order)
        at += size


def _section_order(path: Path, view: memoryview, at: int) -> str:
    (magic,) = struct.unpack_from("<I", view, at + 8)
    if magic not in _BYTE_ORDER:
        raise ConfigError(f"{path}: section at {at} is damaged, got byte order {magic:#x}")
    return _BYTE_ORDER[magic]


def _interface(path: Path, view: memoryview, block: _Block) -> int:
    """Return an interface's units of time in a second."""
    if block.size < 8:
        raise ConfigError(f"{path}: interface at {block.start} is damaged, got {block.size} bytes")
    (link_type,) = struct.unpack_from(f"{block.order}H", view, block.start)
    if link_type != LINKTYPE_ETHERNET:
        raise ConfigError(
            f"{path}: link type must be {LINKTYPE_ETHERNET} (Ethernet), got {link_type}"
        )
    at, end = block.start + 8, block.start + block.size
    while at + 4 <= end:
        code, size = struct.unpack_from(f"{block.order}HH", view, at)
        if code == TIME_RESOLUTION and size == 1 and at + 4 < end:
            power = view[at + 4]
            return int(2 ** (power & 0x7F) if power & 0x80 else 10**power)
        at += 4 + -(-size // 4) * 4
    return int(10**MICROSECONDS)


def _packet(
    path: Path, view: memoryview, block: _Block, units: list[int], number: int
) -> tuple[int, int, int]:
    where = f"{path}: packet {number}"
    if block.size < 20:
        raise ConfigError(f"{where} is damaged, got a block of {block.size} bytes")
    interface, high, low, kept, whole = struct.unpack_from(f"{block.order}5I", view, block.start)
    if interface >= len(units):
        raise ConfigError(f"{where} is of an interface that is not described, got {interface}")
    if not 1 <= whole <= LONGEST_PACKET or kept > block.size - 20:
        raise ConfigError(
            f"{where} must have 1 to {LONGEST_PACKET} bytes, got {max(kept, whole)}; "
            "the file may be damaged"
        )
    if kept != whole:
        raise ConfigError(
            f"{where} was cut when captured, got {kept} of {whole} bytes; "
            "capture without a snap length"
        )
    stamp_ns = (high << 32 | low) * NS_PER_S // units[interface]
    if stamp_ns >= 1 << 62:
        raise ConfigError(
            f"{where} has no sensible time, got {stamp_ns} ns; the file may be damaged"
        )
    return block.start + 20, kept, stamp_ns
