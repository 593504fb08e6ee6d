"""Writing one capture of many ports: pcapng with a named interface for each, little-endian.

Stamps are in nanoseconds, which is as fine as Wireshark shows them.
Source: draft-ietf-opsawg-pcapng, sections 4.1 to 4.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ringleaf.core.arena import Bytes, Words
from ringleaf.core.disk import naming
from ringleaf.networks.traces.link_types import LINKTYPE_ETHERNET
from ringleaf.networks.traces.pcapng import INTERFACE, MAGIC, TIME_RESOLUTION
from ringleaf.networks.traces.pcapng_blocks import BLOCK_BYTES, fill_blocks

NAME = "capture.pcapng"
TIME, PORT, START, SIZE = range(4)
"""The columns of a packet's row: time, interface, and where its bytes are."""

MERGED_ROWS = 1 << 14  # packets that a merge has in memory at a time, about
_NONE = np.empty(0, np.int64)

_BYTE_ORDER = 0x1A2B3C4D
_UNKNOWN_LENGTH = -1  # of a section
_NAME, _DESCRIPTION, _SPEED, _APPLICATION = 2, 3, 8, 4  # codes of options
_NANOSECONDS = 9


@dataclass(frozen=True, slots=True)
class Interface:
    """A port that sends packets: its name and description, and its line's rate."""

    name: str
    description: str
    rate_bps: int


class PcapngWriter:
    """A new capture file of some interfaces; it is open only while something is written."""

    def __init__(self, path: Path, interfaces: Iterable[Interface]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with naming(path):
            path.write_bytes(_section() + b"".join(_describe(each) for each in interfaces))
        self._path = path

    def append(self, sources: Sequence[tuple[Words, Bytes]], *, per_ns: int = 1) -> None:
        """Append packets in order of their times, equal ones in the order given.

        Args:
            sources: Rows of shape (packets, 4), with the bytes that START and SIZE refer to.
                Times must not be before those already written.
            per_ns: Units of time in a nanosecond.
        """
        written = _blocks(sources, per_ns)
        if written.size:
            with naming(self._path), self._path.open("ab") as file:
                file.write(written.data)

    def merge(self, sources: Sequence[tuple[Words, Bytes]]) -> None:
        """Append all packets of sources as `append` has them, which hold them in any order.

        Few of them are in memory at a time, as sources may be files.
        """
        by_time = [(rows[np.argsort(rows[:, TIME], kind="stable")], data) for rows, data in sources]
        times = np.sort(np.concatenate([rows[:, TIME] for rows, _ in by_time] or [_NONE]))
        done = [0] * len(by_time)
        for until in np.unique([*times[MERGED_ROWS::MERGED_ROWS], *times[-1:]]):
            ends = [int(np.searchsorted(rows[:, TIME], until, "right")) for rows, _ in by_time]
            spans = zip(by_time, done, ends, strict=True)
            self.append([(rows[start:end], data) for (rows, data), start, end in spans])
            done = ends


def _blocks(sources: Sequence[tuple[Words, Bytes]], per_ns: int) -> Bytes:
    times = np.concatenate([rows[:, TIME] for rows, _ in sources])
    sizes = BLOCK_BYTES + (np.concatenate([rows[:, SIZE] for rows, _ in sources]) + 3) // 4 * 4
    order = np.argsort(times, kind="stable")
    ends = np.cumsum(sizes[order])
    places = np.empty_like(ends)
    places[order] = ends - sizes[order]
    written = np.zeros(int(ends[-1]) if ends.size else 0, np.uint8)
    first = 0
    for rows, data in sources:
        own = places[first : first + len(rows)]
        first += len(rows)
        columns = (rows[:, TIME] // per_ns, rows[:, PORT], rows[:, START], rows[:, SIZE], own)
        fill_blocks(written, written.view(np.uint32), data, np.column_stack(columns).ravel())
    return written


def _section() -> bytes:
    head = struct.pack("<IHHq", _BYTE_ORDER, 1, 0, _UNKNOWN_LENGTH)
    return _block(MAGIC, head + _option(_APPLICATION, b"Ringleaf") + _option(0, b""))


def _describe(interface: Interface) -> bytes:
    return _block(
        INTERFACE,
        struct.pack("<HHI", LINKTYPE_ETHERNET, 0, 0)  # packets are whole
        + _option(_NAME, interface.name.encode())
        + _option(_DESCRIPTION, interface.description.encode())
        + _option(_SPEED, struct.pack("<Q", interface.rate_bps))
        + _option(TIME_RESOLUTION, bytes([_NANOSECONDS]))
        + _option(0, b""),
    )


def _block(kind: int, body: bytes) -> bytes:
    size = 12 + len(body)
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
