"""Writing packet captures: libpcap's savefile format, nanosecond stamps, little-endian."""

from __future__ import annotations

import struct
from pathlib import Path

from ringleaf.core.disk import naming
from ringleaf.networks.traces.link_types import LINKTYPE_ETHERNET

MAGIC_NS = 0xA1B23C4D
SNAP_BYTES = 65535
NS_PER_S = 1_000_000_000
HELD_BYTES = 1 << 16  # of a file, before they are written

HEADER = struct.pack("<IHHiIII", MAGIC_NS, 2, 4, 0, 0, SNAP_BYTES, LINKTYPE_ETHERNET)


def record(time_ns: int, data: bytes) -> bytes:
    """Return one packet's record in the file."""
    seconds, rest_ns = divmod(time_ns, NS_PER_S)
    return struct.pack("<IIII", seconds, rest_ns, len(data), len(data)) + data


class PcapWriter:
    """A new capture file; it is open only while something is written.

    Networks have more ports than a process may have open files.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with naming(path):
            path.write_bytes(HEADER)
        self._path = path
        self._buffer = bytearray()

    def append(self, time_ns: int, data: bytes) -> None:
        """Add a packet with its time in ns; it is written once HELD_BYTES have come together."""
        self._buffer += record(time_ns, data)
        if len(self._buffer) >= HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the packets that are held, and close the file again."""
        if self._buffer:
            with naming(self._path), self._path.open("ab") as file:
                file.write(self._buffer)
            self._buffer.clear()
