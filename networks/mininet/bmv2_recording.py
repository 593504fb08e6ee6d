"""Traces of BMv2 switches, made from the captures that `simple_switch --pcap` writes.

A packet's stamp is the kernel's. The order in which BMv2 took packets of different ports is not
known: it looks at its ports in turn (`bmi_port.c`, `run_select`), whichever packet came first. Its
event log (`--nanolog`) and its debug log would tell, but builds for speed have neither.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ringleaf.errors import BackendError
from ringleaf.networks.live.engine import LinkEnd
from ringleaf.networks.mininet.programming import SwitchProgramming
from ringleaf.networks.traces.checksums import write_checksums
from ringleaf.networks.traces.entries import load_schema, write_entries
from ringleaf.networks.traces.manifest import (
    ENTRIES,
    PROGRAM,
    Manifest,
    Port,
    TimedEntries,
    write_manifest,
)
from ringleaf.networks.traces.pcap_read import FILE_HEADER_BYTES
from ringleaf.networks.traces.program import write_program

RATE_BPS = 10**12
"""Rate of ports in traces: BMv2 gives each packet to the kernel as soon as it has it."""

QUIET_S = 0.2
PATIENCE_S = 20.0
POLL_S = 0.02
UNKNOWN = (
    "order of packets of different ports",
    "times and queue depths when packets left",
    "random numbers",
)

_WAYS = ("in", "out")


class Bmv2Recording:
    """A recording made from the packets that are added to the switches' captures meanwhile.

    Args:
        captures: The folder that they are in.
        switches: Each one's interfaces, by port from 1.
        folder: Folder for the traces, a folder each.
        mask: Fields that a comparison leaves out.

    Raises:
        BackendError: If packets still move.
    """

    def __init__(
        self,
        captures: Path,
        switches: Mapping[str, Sequence[LinkEnd]],
        folder: Path,
        *,
        mask: Sequence[str] = (),
    ) -> None:
        self._captures = captures
        self._switches = switches
        self._folder = folder
        self._mask = tuple(mask)
        self._before = self._quiet_sizes()

    def save(self, targets: Mapping[str, SwitchProgramming]) -> None:
        """Write the traces of switches with these programs and entities."""
        after = self._quiet_sizes()
        for name, lines in self._switches.items():
            folder = self._folder / name
            folder.mkdir(parents=True, exist_ok=True)
            for number, line in enumerate(lines, start=1):
                for way in _WAYS:
                    source = self._path(line, way)
                    self._copy(source, folder / way / f"port{number}.pcap", after[source])
            self._describe(folder, targets[name], lines)
            write_checksums(folder)

    def _copy(self, source: Path, target: Path, end: int) -> None:
        """Copy the packets between two places of a capture, if there are any."""
        start = max(self._before[source], FILE_HEADER_BYTES)
        if end <= start:
            return
        with source.open("rb") as file:
            header = file.read(FILE_HEADER_BYTES)
            file.seek(start)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(header + file.read(end - start))

    def _describe(self, folder: Path, target: SwitchProgramming, lines: Sequence[LinkEnd]) -> None:
        schema = load_schema(target.program, target.p4info)
        write_program(folder, target.program.read_text(), target.p4info.read_text())
        write_entries(folder / ENTRIES, target.entities, schema)
        write_manifest(
            Manifest(
                folder=folder,
                switch=target.name,
                program=Path(PROGRAM),
                p4info=None,
                writes=(TimedEntries(0, Path(ENTRIES)),),
                ports=tuple(Port(RATE_BPS, line.queue_bytes) for line in lines),
                mask=self._mask,
                ignore_order=True,
                unknown=UNKNOWN,
            )
        )

    def _path(self, line: LinkEnd, way: str) -> Path:
        return self._captures / f"{line.interface}_{way}.pcap"

    def _sizes(self) -> dict[Path, int]:
        paths = [
            self._path(line, way) for lines in self._switches.values() for line in lines
            for way in _WAYS
        ]  # fmt: skip
        return {path: path.stat().st_size for path in paths}

    def _quiet_sizes(self) -> dict[Path, int]:
        """Return the captures' sizes once they don't grow any more: packets are written at once."""
        deadline_s = time.monotonic() + PATIENCE_S
        sizes, since_s = self._sizes(), time.monotonic()
        while time.monotonic() - since_s < QUIET_S:
            if time.monotonic() > deadline_s:
                raise BackendError(
                    f"record: packets still move, got captures in {self._captures} that have grown "
                    f"for {PATIENCE_S:.0f} s"
                )
            time.sleep(POLL_S)
            latest = self._sizes()
            if latest != sizes:
                sizes, since_s = latest, time.monotonic()
        return sizes
