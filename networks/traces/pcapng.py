"""The blocks of a pcapng file; interfaces may have any resolution of time."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.networks.traces.pcap_write import NS_PER_S

MAGIC = 0x0A0D0D0A  # the type of a section header block, which reads the same both ways
INTERFACE, OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 1, 2, 3, 6
TIME_RESOLUTION, FCS_LENGTH, TIME_OFFSET = 9, 13, 14
"""Options of interfaces: if_tsresol, if_fcslen, and if_tsoffset, in seconds."""
FLAGS = 2  # the option epb_flags of a packet
MICROSECONDS = 6  # its default, as a power of ten
_BYTE_ORDER = {0x1A2B3C4D: "<", 0x4D3C2B1A: ">"}  # as little-endian reads it


COLUMNS, KEPT, WHOLE, LINK = 5, 1, 2, 4
"""A packet's row: offset and bytes in the file, bytes on the line, stamp in ns, link type."""

LONGEST_RECORD = 1 << 18
"""libpcap's longest packet (MAXIMUM_SNAPLEN)."""

LONGEST_SIZE = 1 << 20
"""More than any frame before a card cuts it: BIG TCP's have half as many bytes."""


class _Interface(NamedTuple):
    """An interface of a section.

    Attributes:
        link: Its link type.
        units: Units of its stamps in a second.
        offset_s: What is to be added to its stamps.
        fcs_bytes: Bytes of the frame check sequence at a packet's end.
    """

    link: int
    units: int
    offset_s: int
    fcs_bytes: int


class _Block(NamedTuple):
    kind: int
    start: int  # of its body
    size: int  # of its body
    order: str  # of its section, for struct


def cut_fcs(rows: npt.NDArray[np.int64], fcs_bytes: npt.NDArray[np.int64]) -> None:
    """Take the frame check sequences of packets from their bytes, in the file and on the line."""
    kept, whole = rows[:, KEPT], rows[:, WHOLE]
    fcs_bytes = np.where(whole > fcs_bytes, fcs_bytes, 0)
    kept[:] = np.minimum(kept, np.maximum(kept, whole) - fcs_bytes)
    whole -= fcs_bytes


def scan_blocks(path: Path, data: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int64], str, int]:
    """Return the rows of all packets, how the file ends within a block, and the interfaces in use.

    Rows are (packets, COLUMNS).

    Raises:
        ConfigError: If the file is damaged, or a packet has no time.
    """
    rows: list[tuple[int, ...]] = []
    fcs_bytes: list[int] = []
    interfaces: list[_Interface] = []  # of the section
    used: set[tuple[int, int]] = set()  # section and interface
    section = 0
    view = memoryview(data)  # type: ignore[arg-type]
    for block in _blocks(path, view):
        if isinstance(block, str):
            return _array(rows, fcs_bytes), block, len(used)
        if block.kind == MAGIC:
            interfaces = []
            section = block.start
        elif block.kind == INTERFACE:
            interfaces.append(_interface(path, view, block))
        elif block.kind in (ENHANCED_PACKET, OLD_PACKET):
            index, row = _packet(path, view, block, interfaces, len(rows) + 1)
            used.add((section, index))
            fcs_bytes.append(_fcs_bytes(view, block, row[KEPT]) or interfaces[index].fcs_bytes)
            rows.append(row)
        elif block.kind == SIMPLE_PACKET:
            raise ConfigError(
                f"{path}: packet {len(rows) + 1} has no time, got a simple packet block; "
                "capture with times"
            )
    return _array(rows, fcs_bytes), "", len(used)


def _array(rows: list[tuple[int, ...]], fcs_bytes: list[int]) -> npt.NDArray[np.int64]:
    packets = np.array(rows, np.int64).reshape(len(rows), COLUMNS)
    cut_fcs(packets, np.array(fcs_bytes, np.int64))
    return packets


def _blocks(path: Path, view: memoryview) -> Iterator[_Block | str]:
    """Yield the blocks; of a file that ends within one, last how it does."""
    at, order = 0, "<"
    while at < len(view):
        left = len(view) - at
        if left < 12:
            yield f"is truncated, got {format_count(left, 'byte')} for a block of at least 12"
            return
        (kind,) = struct.unpack_from(f"{order}I", view, at)
        if kind == MAGIC:
            order = _section_order(path, view, at)
        (size,) = struct.unpack_from(f"{order}I", view, at + 4)
        if size < 12 or size % 4:
            raise ConfigError(f"{path}: block at {at} is damaged, got a length of {size}")
        if size > left:
            yield f"is truncated, got {left} of a block's {format_count(size, 'byte')}"
            return
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


def _interface(path: Path, view: memoryview, block: _Block) -> _Interface:
    """Read an interface's description."""
    if block.size < 8:
        raise ConfigError(
            f"{path}: interface at {block.start} is damaged, got {format_count(block.size, 'byte')}"
        )
    (link,) = struct.unpack_from(f"{block.order}H", view, block.start)
    units, offset_s, fcs_bytes = int(10**MICROSECONDS), 0, 0
    for code, at, size in _options(view, block, block.start + 8):
        if code == TIME_RESOLUTION and size == 1:
            power = view[at]
            units = int(2 ** (power & 0x7F) if power & 0x80 else 10**power)
        elif code == FCS_LENGTH and size == 1:  # in bits by some, in bytes by others
            fcs_bytes = view[at] if view[at] <= 4 else view[at] // 8
        elif code == TIME_OFFSET and size == 8:
            (offset_s,) = struct.unpack_from(f"{block.order}q", view, at)
    return _Interface(link, units, offset_s, fcs_bytes)


def _options(view: memoryview, block: _Block, at: int) -> Iterator[tuple[int, int, int]]:
    """Yield the code, place and size of each whole option of a block from a place on."""
    end = block.start + block.size
    while at + 4 <= end:
        code, size = struct.unpack_from(f"{block.order}HH", view, at)
        at += 4
        if at + size <= end:
            yield code, at, size
        at += -(-size // 4) * 4


def _packet(
    path: Path, view: memoryview, block: _Block, interfaces: list[_Interface], number: int
) -> tuple[int, tuple[int, ...]]:
    """Return the number of a packet's interface, and its row."""
    where = f"{path}: packet {number}"
    if block.size < 20:
        raise ConfigError(f"{where} is damaged, got a block of {format_count(block.size, 'byte')}")
    index, high, low, kept, whole = struct.unpack_from(f"{block.order}5I", view, block.start)
    if block.kind == OLD_PACKET:  # its number has 16 bits, before the number of drops
        (index,) = struct.unpack_from(f"{block.order}H", view, block.start)
    if index >= len(interfaces):
        raise ConfigError(f"{where} is of an interface that is not described, got {index}")
    for size, most in ((kept, LONGEST_RECORD), (whole, LONGEST_SIZE)):
        if size > most:
            raise ConfigError(
                f"{where} must have at most {format_count(most, 'byte')}, got {size}; the file may "
                "be damaged"
            )
    if kept > block.size - 20:
        raise ConfigError(
            f"{where} must be within its block, got {format_count(kept, 'byte')} in "
            f"{block.size - 20}; the file may be damaged"
        )
    interface = interfaces[index]
    stamp_ns = (high << 32 | low) * NS_PER_S // interface.units + interface.offset_s * NS_PER_S
    if not 0 <= stamp_ns < 1 << 62:
        raise ConfigError(
            f"{where} has no sensible time, got {stamp_ns} ns; the file may be damaged"
        )
    return index, (block.start + 20, kept, whole, stamp_ns, interface.link)


def _fcs_bytes(view: memoryview, block: _Block, kept: int) -> int:
    """Return the bytes of the frame check sequence that a packet's flags say, or 0."""
    for code, at, size in _options(view, block, block.start + 20 + -(-kept // 4) * 4):
        if code == FLAGS and size == 4:
            (flags,) = struct.unpack_from(f"{block.order}I", view, at)
            return int(flags >> 5 & 0xF)
    return 0
