"""Measure BMv2's speed with the engine's packets, which it reads from and writes to pcap files.

So neither interfaces nor a sender take part, and only BMv2 itself is measured.
"""

from __future__ import annotations

import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.loads import ProgramLoad
from ringleaf.core.shipped import P4INFO_SUFFIX
from ringleaf.errors import BackendError
from ringleaf.ina.samples import Packet
from ringleaf.switches.bmv2.process import Bmv2

_MAGIC = 0xA1B2C3D4  # microseconds
_ETHERNET = 1
_SNAP_BYTES = 65535
_QUEUE = 1_000_000  # packets that a port may hold, so that none is dropped
_ENTRIES_S = 8  # that BMv2 waits for its entries before it reads the files
_PATIENCE_S = 300
_POLL_S = 0.2


def measure_bmv2(load: ProgramLoad, *, packets: int) -> float:
    """Return the packets per second of `simple_switch_grpc`, by the times in its output files.

    Args:
        load: The packets to send; in every round, as many packets must leave as come.
        packets: Least number of packets to send; those of numbered blocks go in whole rounds, or
            sums and results would be missing.

    Raises:
        BackendError: If it doesn't start, or loses packets.
    """
    if load.number_at >= 0:
        packets = -(-packets // len(load.packets)) * len(load.packets)
    p4info = load.path.with_name(load.path.stem + P4INFO_SUFFIX)
    with tempfile.TemporaryDirectory(prefix="ringleaf-") as folder:
        stems = {port: Path(folder, f"port{port}") for port in range(1, load.ports + 1)}
        sent = _write_inputs(stems, list(_rounds(load, packets)))
        with Bmv2(load.path, p4info, files=stems, files_after_s=_ENTRIES_S) as switch:
            switch.command(f"set_queue_depth {_QUEUE}")
            switch.write(load.entities)
            times = _await_outputs(list(stems.values()), sent)
    return (len(times) - 1) / (times[-1] - times[0])


def _rounds(load: ProgramLoad, count: int) -> Iterator[Packet]:
    """Yield the load's packets again and again, with growing block numbers."""
    for done in range(0, count, len(load.packets)):
        added = done // len(load.packets) * load.number_step
        for port, data in load.packets[: count - done]:
            yield (port, data) if load.number_at < 0 else (port, _add(data, load.number_at, added))


def _add(data: bytes, at: int, added: int) -> bytes:
    number = int.from_bytes(data[at : at + 4], "big") + added
    return data[:at] + (number & 0xFFFFFFFF).to_bytes(4, "big") + data[at + 4 :]


def _write_inputs(stems: dict[int, Path], packets: Sequence[Packet]) -> int:
    """Write each port's input; BMv2 takes packets in the order of their times."""
    head = struct.pack("<IHHiIII", _MAGIC, 2, 4, 0, 0, _SNAP_BYTES, _ETHERNET)
    data = {port: bytearray(head) for port in stems}
    for number, (port, frame) in enumerate(packets):
        seconds, micros = divmod(number, 1_000_000)
        data[port] += struct.pack("<4I", seconds, micros, len(frame), len(frame)) + frame
    for port, stem in stems.items():
        Path(f"{stem}_in.pcap").write_bytes(data[port])
    return len(packets)


def _await_outputs(stems: Sequence[Path], count: int) -> list[float]:
    """Wait until all packets have left, and return the times at which they did, sorted."""
    deadline = time.monotonic() + _PATIENCE_S
    times: list[float] = []
    while len(times) < count:
        if time.monotonic() > deadline:
            raise BackendError(f"bench: BMv2 must send {count} packets, got {len(times)}")
        time.sleep(_POLL_S)
        times = sorted(at for stem in stems for at in _times(Path(f"{stem}_out.pcap")))
    return times


def _times(path: Path) -> Iterator[float]:
    data = path.read_bytes() if path.exists() else b""
    at = 24
    while at + 16 <= len(data):
        seconds, micros, length = struct.unpack_from("<3I", data, at)
        yield seconds + micros / 1e6
        at += 16 + length
