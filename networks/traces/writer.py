"""The writer of a trace: packets as they come, and in the end all other files."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np

from ringleaf.core.disk import naming
from ringleaf.core.units import PS_PER_NS
from ringleaf.errors import ConfigError
from ringleaf.networks.traces.checksums import write_checksums
from ringleaf.networks.traces.manifest import ARRIVALS, Manifest, write_manifest
from ringleaf.networks.traces.pcap_write import HELD_BYTES, PcapWriter

_HEADER_BYTES = 128  # of a .npy file with a short shape


def check_folder(folder: Path) -> None:
    """Raise ConfigError if a folder for traces is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"record: folder must be new or empty, got {str(folder)!r}")


class TraceWriter:
    """Writes one switch's trace.

    Args:
        folder: The trace's, new or empty.
        origin_ns: The stamp of time 0.

    Raises:
        ConfigError: If the folder is not empty.
    """

    def __init__(self, folder: Path, *, origin_ns: int = 0) -> None:
        check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._origin_ns = origin_ns
        self._pcaps: dict[str, PcapWriter] = {}  # those of ports that have had a packet
        self._count = 0
        self._arrivals = bytearray()
        with naming(folder / ARRIVALS):
            (folder / ARRIVALS).write_bytes(bytes(_HEADER_BYTES))

    def received(self, time_ps: int, port: int, data: bytes, order: int) -> None:
        """Take a packet that the switch received; for `order` see `trace.py`."""
        self._append("in", time_ps, port, data)
        self._arrivals += struct.pack("<3q", time_ps, port, order)
        self._count += 1
        if len(self._arrivals) >= HELD_BYTES:
            self._flush()

    def sent(self, time_ps: int, port: int, data: bytes) -> None:
        """Take a packet that the switch sent."""
        self._append("out", time_ps, port, data)

    def finish(self, manifest: Manifest) -> None:
        """Complete the files; those that the manifest names must be there."""
        self._flush()
        for pcap in self._pcaps.values():
            pcap.flush()
        with (self.folder / ARRIVALS).open("r+b") as file:
            shape = {"descr": "<i8", "fortran_order": False, "shape": (self._count, 3)}
            np.lib.format.write_array_header_1_0(file, shape)
            assert file.tell() == _HEADER_BYTES
        known = replace(manifest, arrivals=Path(ARRIVALS), origin_ns=self._origin_ns)
        with naming(self.folder):
            write_manifest(known)
            write_checksums(self.folder)

    def _append(self, way: str, time_ps: int, port: int, data: bytes) -> None:
        name = f"{way}/port{port}.pcap"
        if name not in self._pcaps:
            self._pcaps[name] = PcapWriter(self.folder / name)
        self._pcaps[name].append(time_ps // PS_PER_NS + self._origin_ns, data)

    def _flush(self) -> None:
        path = self.folder / ARRIVALS
        with naming(path), path.open("ab") as file:
            file.write(self._arrivals)
        self._arrivals.clear()
