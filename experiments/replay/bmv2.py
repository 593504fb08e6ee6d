"""Replay of a trace on BMv2's `simple_switch_grpc`: packets in the same order, without times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ringleaf.errors import ConfigError
from ringleaf.networks.replay.compare import Check, SentBatch
from ringleaf.networks.traces.entries import load_schema, read_entries
from ringleaf.networks.traces.trace import PORT, PacketTrace
from ringleaf.switches.bmv2.binaries import need_bmv2, need_v1model
from ringleaf.switches.bmv2.process import Bmv2
from ringleaf.switches.json.program import load_source
from ringleaf.switches.p4runtime.derived import p4info_file

BATCH = 300
WINDOW = 64
"""The window in packets: a port's outputs come in their inputs' order, apart from queues here."""


def replay_on_bmv2(
    trace: PacketTrace,
    program: Path,
    p4info: Path | None,
    checks: Sequence[Check],
    progress: Callable[[int], None],
) -> None:
    """Send all packets of a trace through BMv2, and its output to the checks.

    Args:
        trace: The trace.
        program: BMv2 JSON, the recorded or another one.
        p4info: Its P4Info; None: beside it.
        checks: One per port.
        progress: Called with the number of packets sent so far.

    Raises:
        ConfigError: If BMv2 is not installed, or the trace needs time.
        BackendError: If BMv2 fails.
    """
    need_bmv2("replay: switch 'bmv2'")
    need_v1model(load_source(program), "replay")
    manifest = trace.manifest
    if any(write.at_ps > 0 for write in manifest.writes):
        raise ConfigError(
            f"{manifest.folder}: BMv2 can't write entries at a given time, got 'later'; "
            "leave it out"
        )
    schema = load_schema(manifest.program, manifest.p4info)
    with Bmv2(program, p4info_file(program, p4info)) as switch:
        for write in manifest.writes:
            switch.write(read_entries(write.path, schema))
        _send(trace, switch, checks, progress)


def _send(
    trace: PacketTrace, switch: Bmv2, checks: Sequence[Check], progress: Callable[[int], None]
) -> None:
    taken = [0] * len(trace.inputs)
    for start in range(0, len(trace.arrivals), BATCH):
        packets = []
        for port in trace.arrivals[start : start + BATCH, PORT].tolist():
            file = trace.inputs[port - 1]
            assert file is not None
            packets.append((port, file.packet(taken[port - 1])))
            taken[port - 1] += 1
        for outputs in switch.process(packets):
            for port, data in outputs:
                if 1 <= port <= len(checks):
                    checks[port - 1].take(_sent(data))
        progress(start + len(packets))


def _sent(data: bytes) -> SentBatch:
    starts, sizes = np.zeros(1, np.int64), np.array([len(data)], np.int64)
    return SentBatch(np.frombuffer(bytearray(data), np.uint8), starts, sizes, None)
