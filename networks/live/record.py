"""Recording live: packets go to disk in bulk while switches run, and become traces afterwards.

A switch is recorded from the moment at which it replaces its predecessor, as new, with empty queues
and idle ports. Events are handled at the times at which they were due, so a trace holds all that
order depends on, and a replay is exact, as with traces of virtual time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from finsy.proto import p4r
from google.protobuf import text_format  # type: ignore[import-untyped]

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Bytes
from ringleaf.core.disciplines import CLASSES
from ringleaf.core.packets import HEAD_BYTES
from ringleaf.core.units import PS_PER_NS
from ringleaf.errors import BackendError, ConfigError
from ringleaf.networks.live.engine import Engine, LinkEnd
from ringleaf.networks.traces.manifest import ENTRIES, PROGRAM, Manifest, Port, TimedEntries
from ringleaf.networks.traces.program import write_program
from ringleaf.networks.traces.writer import TraceWriter, check_folder
from ringleaf.networks.virtual.capture import CaptureBuffer
from ringleaf.networks.virtual.state import Rows
from ringleaf.switches.engine.disciplines import free_all
from ringleaf.switches.engine.queues import CREDIT, DEFICITS, TURN
from ringleaf.switches.server.pipeline import InstalledProgram
from ringleaf.switches.switch import Switch

_TIME_PS, _PORT, _AT, _SIZE, _ORDER = range(s.CAPTURE_ROW_WORDS)


@dataclass(slots=True)
class _Take:
    """A switch that is, or was, recorded."""

    name: str
    pipeline: InstalledProgram
    lines: Sequence[LinkEnd]
    first_port: int  # its global number
    first_row: int  # on tape
    last_row: int | None = None
    until_ps: int = 0
    writes: list[tuple[int, list[Any]]] = field(default_factory=list)  # times, p4.v1.Updates

    @property
    def ports(self) -> slice:
        """Return the range of the switch's ports among those of all switches."""
        return slice(self.first_port, self.first_port + len(self.lines))


class _Tape:
    """Rows of the capture buffer and their packets, in two files."""

    def __init__(self, folder: Path) -> None:
        self._paths = folder / "tape.rows", folder / "tape.bytes"
        self._files = [path.open("wb") for path in self._paths]
        self.rows = 0
        self._size = 0

    def append(self, rows: Rows, packets: Bytes) -> None:
        """Write rows and packets; offsets of rows count from the start of the file."""
        rows[:, _AT] += self._size - rows[0, _AT]
        parts: tuple[Rows | Bytes, ...] = (rows, packets)
        for file, part in zip(self._files, parts, strict=True):
            file.write(part.data)
        self.rows += len(rows)
        self._size += len(packets)

    def read(self) -> tuple[Rows, Bytes]:
        """Close the files, and return all that they hold."""
        for file in self._files:
            file.close()
        rows = np.fromfile(self._paths[0], np.int64).reshape(-1, s.CAPTURE_ROW_WORDS)
        return rows, np.fromfile(self._paths[1], np.uint8)

    def remove(self) -> None:
        """Remove the files."""
        for file, path in zip(self._files, self._paths, strict=True):
            with contextlib.suppress(OSError):  # of data that a full disk did not take
                file.close()
            path.unlink(missing_ok=True)


class LiveRecorder:
    """Records the switches that get a program from now on.

    All but `save` must be called between two turns of the loop.

    Args:
        engine: Runs the switches, and is not built anew before `stop`.
        folder: Folder for the traces, a folder each; new or empty.
        seed: Seed of the switches' random numbers.

    Raises:
        ConfigError: If the folder is not empty, or there is no switch.
    """

    def __init__(self, engine: Engine, folder: Path, *, seed: int) -> None:
        if not engine.network().ports.size:
            raise ConfigError("record: there is no switch yet, got none with a port; add one")
        check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._engine = engine
        self._store = engine.store
        self._folder = folder
        self._seed = seed
        self._origin_ns = time.time_ns() - engine.now_ps // PS_PER_NS
        self._tape = _Tape(folder)
        longest = int(self._store.arena.words[HEAD_BYTES])
        self._buffer = CaptureBuffer(self._store, engine.at, longest_bytes=longest)
        self._takes: dict[str, _Take] = {}  # by name of their folders
        self._running: dict[int, _Take] = {}  # by the node's number
        self._problem: OSError | None = None

    def watch(self, switch: Switch) -> None:
        """Keep a journal of writes to a switch; to be called before its first write."""
        switch.entities.journal = []

    def begin(
        self, node: int, name: str, lines: Sequence[LinkEnd], pipeline: InstalledProgram
    ) -> bool:
        """Record a node's new switch; return False if its ports are still busy: try again later."""
        first = int(self._engine.network().nodes[node, s.FIRST_PORT])
        take = _Take(name, pipeline, lines, first, self._tape.rows)
        if not self._empty(take.ports):
            return False
        self._end(node)
        take.first_row = self._tape.rows
        again = sum(each.name == name for each in self._takes.values())
        self._takes[f"{name}-{again + 1}" if again else name] = take
        self._running[node] = take
        self._engine.network().ports[take.ports, s.CAPTURE] = s.CAPTURE_SENT | s.CAPTURE_RECEIVED
        self.note_writes(node)
        return True

    def note_writes(self, node: int) -> None:
        """Note the time from which packets see the latest writes to a node's switch."""
        take = self._running.get(node)
        journal = take.pipeline.switch.entities.journal if take else None
        if take and journal:
            take.writes.append((self._engine.turn_ps + 1, list(journal)))
            journal.clear()

    def flush(self) -> None:
        """Write the capture buffer to disk; if that fails, recording ends."""
        rows = self._buffer.take()
        if not len(rows) or self._problem:
            return
        start, end = int(rows[0, _AT]), int(rows[-1, _AT] + rows[-1, _SIZE])
        try:
            self._tape.append(rows, self._store.arena.bytes[start:end])
        except OSError as exc:
            self._problem = exc
            self._engine.network().ports[:, s.CAPTURE] = 0

    def stop(self) -> None:
        """End all recordings."""
        for node in list(self._running):
            self._end(node)

    def save(self) -> list[str]:
        """Write the traces; return their folders' names.

        Raises:
            BackendError: If the disk is full, or the like.
        """
        try:
            if self._problem is not None:
                raise self._problem
            rows, packets = self._tape.read()
            for name, take in self._takes.items():
                self._write(
                    self._folder / name, take, rows[take.first_row : take.last_row], packets
                )
        except OSError as exc:
            raise BackendError(
                f"record: traces can't be written to {str(self._folder)!r}, got {exc.strerror}"
            ) from exc
        finally:
            self._tape.remove()
        return list(self._takes)

    def _end(self, node: int) -> None:
        self.flush()
        take = self._running.pop(node, None)
        if take is not None:
            self._engine.network().ports[take.ports, s.CAPTURE] = 0
            take.last_row, take.until_ps = self._tape.rows, self._engine.turn_ps

    def _empty(self, ports: slice) -> bool:
        """Drop the packets in ports' queues; return whether the ports are idle."""
        rows, arena = self._engine.network().ports[ports], self._store.arena
        for queues in rows[:, s.QUEUES_AT].tolist():
            free_all(arena, queues)
            arena.words[[queues + TURN, queues + CREDIT]] = 0  # as a replay's queues begin
            arena.words[queues + DEFICITS : queues + DEFICITS + CLASSES] = 0
        is_late = rows[:, s.BUSY_UNTIL_PS] > self._engine.now_ps
        return not (rows[:, s.DRAINING].any() or is_late.any())

    def _write(self, folder: Path, take: _Take, rows: Rows, packets: Bytes) -> None:
        writer = TraceWriter(folder, origin_ns=self._origin_ns)
        numbers = rows[:, _PORT] - take.first_port
        mine = rows[(numbers >= 0) & (numbers < len(take.lines))]
        for time_ps, number, at, size, order in mine.tolist():
            port, data = number - take.first_port + 1, packets[at : at + size].tobytes()
            if order == s.SENT:
                writer.sent(time_ps, port, data)
            else:
                writer.received(time_ps, port, data, order)
        config = take.pipeline.config
        info = text_format.MessageToString(config.p4info)
        write_program(folder, config.p4_device_config, info)
        writer.finish(
            Manifest(
                folder=folder,
                switch=take.name,
                program=Path(PROGRAM),
                p4info=None,
                writes=_write_entries(folder, take.writes, _first_ps(mine, take.until_ps)),
                ports=tuple(
                    Port(line.rate_bps, line.queue_bytes, line.discipline) for line in take.lines
                ),
                seed=self._seed,
                until_ps=take.until_ps,
            )
        )


def _first_ps(rows: Rows, otherwise: int) -> int:
    return int(rows[0, _TIME_PS]) if len(rows) else otherwise


def _write_entries(
    folder: Path, writes: Sequence[tuple[int, list[Any]]], first_ps: int
) -> tuple[TimedEntries, ...]:
    """Write the files of a switch's entries; those from before any packet form the first file."""
    early = [update for at_ps, updates in writes if at_ps <= first_ps for update in updates]
    files = {0: early} | {at_ps: updates for at_ps, updates in writes if at_ps > first_ps}
    known = []
    for number, (at_ps, updates) in enumerate(files.items()):
        path = folder / (f"later{number}.txtpb" if number else ENTRIES)
        path.write_text(text_format.MessageToString(p4r.WriteRequest(updates=updates)))
        known.append(TimedEntries(at_ps, Path(path.name)))
    return tuple(known)
