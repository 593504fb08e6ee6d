"""An open trace: the packets its switch received, in order, and those it is expected to send.

`arrivals.npy` has a row (time_ps, port, order) for each packet received, in the order in which
they were. Captures have nanoseconds only, and several packets may come in one instant; `order` says
how many events of the switch's own, such as a port that falls idle, came before it in its instant.
A trace from elsewhere does without: its packets are in order of time, then port, and come after
the switch's own events of that instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError

import numpy as np

from ringleaf.core.arena import Words
from ringleaf.core.units import FOREVER_PS, PS_PER_NS, format_count
from ringleaf.errors import ConfigError
from ringleaf.networks.traces.manifest import Manifest, is_inside, read_manifest
from ringleaf.networks.traces.pcap_read import PacketFile, read_packets
from ringleaf.networks.traces.sizes import check_sizes

TIME_PS, PORT, ORDER = 0, 1, 2
AFTER_ALL = FOREVER_PS
MAX_SPAN_NS = FOREVER_PS // PS_PER_NS


@dataclass(frozen=True, slots=True)
class PacketTrace:
    """A trace whose files are open.

    Attributes:
        manifest: Its manifest.
        inputs: By port, the packets received; None: the port has no file.
        expected: By port, the packets that it should send; likewise.
        arrivals: (packets, 3), in order: time_ps, port, own events before it in its instant.
        origin_ns: The stamp in the captures that stands for time 0.
    """

    manifest: Manifest
    inputs: tuple[PacketFile | None, ...]  # port 1 first
    expected: tuple[PacketFile | None, ...]
    arrivals: Words  # (packets, 3)
    origin_ns: int

    @property
    def name(self) -> str:
        """Return the path of the trace's folder, by which messages and tables name it."""
        return str(self.manifest.folder)


def open_trace(folder: Path, *, with_expected: bool = True) -> PacketTrace:
    """Open a trace, and find all its packets.

    Raises:
        ConfigError: If a file is missing, damaged or too large, or they don't fit one another.
    """
    check_sizes(folder)
    manifest = read_manifest(folder)
    numbers = range(1, len(manifest.ports) + 1)
    for name in ("in", "out"):
        _check_inside(folder, name)
    _check_names(folder / "in", len(manifest.ports))
    if with_expected:
        _check_names(folder / "out", len(manifest.ports))
    inputs = tuple(_read_if_there(manifest.input(number)) for number in numbers)
    expected = tuple(
        _read_if_there(manifest.expected(number)) if with_expected else None for number in numbers
    )
    stamps = [file.stamps_ns for file in inputs if file is not None and len(file)]
    if not stamps and manifest.arrivals is None:
        raise ConfigError(f"{folder}: nothing to replay, got no packets in {folder / 'in'}")
    first_ns = min((int(each[0]) for each in stamps), default=manifest.origin_ns or 0)
    origin_ns = first_ns if manifest.origin_ns is None else manifest.origin_ns
    last_ns = max((int(each[-1]) for each in stamps), default=first_ns)
    if first_ns < origin_ns or last_ns - origin_ns > MAX_SPAN_NS:
        raise ConfigError(
            f"{folder}: packets' times must be in the {MAX_SPAN_NS // 10**9} s from "
            f"origin_ns {origin_ns} on, got {first_ns} to {last_ns} ns"
        )
    arrivals = (
        _by_time(inputs, origin_ns)
        if manifest.arrivals is None
        else _read_arrivals(manifest.arrivals, inputs, origin_ns)
    )
    return PacketTrace(manifest, inputs, expected, arrivals, origin_ns)


def _check_inside(folder: Path, name: str) -> None:
    """Refuse packets that are read, or would be written, anywhere but in the trace."""
    for path in (folder / name, *(folder / name).glob("*")):
        if not is_inside(folder, str(path.relative_to(folder))):
            raise ConfigError(f"{path}: must be in the trace's folder, got a link out of it")


def _check_names(folder: Path, ports: int) -> None:
    known = {f"port{n}.{suffix}" for n in range(1, ports + 1) for suffix in ("pcap", "pcapng")}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name not in known:
            raise ConfigError(
                f"{folder}: files must be port1.pcap to port{ports}.pcap, got {path.name!r}; "
                ".pcapng will do, too"
            )
        if path.suffix == ".pcapng" and path.with_suffix(".pcap").exists():
            raise ConfigError(f"{folder}: must have one capture of a port, got {path.stem!r} twice")


def _read_if_there(path: Path) -> PacketFile | None:
    return read_packets(path) if path.exists() else None


def _by_time(inputs: tuple[PacketFile | None, ...], origin_ns: int) -> Words:
    parts = []
    for port, file in enumerate(inputs, start=1):
        if file is not None:
            rows = np.empty((len(file), 3), np.int64)
            rows[:, TIME_PS] = (file.stamps_ns - origin_ns) * PS_PER_NS
            rows[:, PORT], rows[:, ORDER] = port, AFTER_ALL
            parts.append(rows)
    rows = np.concatenate(parts)
    return np.ascontiguousarray(rows[np.lexsort((rows[:, PORT], rows[:, TIME_PS]))])


def _read_arrivals(path: Path, inputs: tuple[PacketFile | None, ...], origin_ns: int) -> Words:
    """Return the rows of the file, which must agree with the captures."""
    try:
        rows = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError, SyntaxError, TokenError, MemoryError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"{path}: not an array of NumPy's, got {problem}") from error
    if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1:] != (3,):
        raise ConfigError(
            f"{path}: must be int64 of shape (packets, 3), got {rows.dtype} {rows.shape}"
        )
    for port, file in enumerate(inputs, start=1):
        times_ps = rows[rows[:, PORT] == port, TIME_PS]
        stamps_ns = file.stamps_ns if file is not None else np.empty(0, np.int64)
        if not np.array_equal(times_ps // PS_PER_NS + origin_ns, stamps_ns):
            raise ConfigError(
                f"{path}: must agree with in/port{port}.pcap, got "
                f"{format_count(times_ps.size, 'arrival')} for "
                f"{format_count(stamps_ns.size, 'packet')}, or other times; without 'arrivals' "
                "in the manifest packets come in order of their stamps"
            )
    known = sum(len(file) for file in inputs if file is not None)
    if len(rows) != known or (np.diff(rows[:, TIME_PS]) < 0).any() or (rows[:, ORDER] < 0).any():
        raise ConfigError(
            f"{path}: must have {format_count(known, 'row')} in order of time, got {len(rows)}; "
            "without 'arrivals' in the manifest packets come in order of their stamps"
        )
    return rows
