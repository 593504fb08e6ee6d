"""Traces: one of their files, after its name and a zero."""

from __future__ import annotations

import random
import shutil
from functools import cache
from pathlib import Path

from bench.soak.inputs.kind import TRACES, InputKind
from bench.soak.inputs.mutators import mutate_bytes, mutate_text


@cache
def _trace() -> Path:
    return TRACES / "l2l3"


def _draw_trace(rng: random.Random) -> bytes:
    names = (
        ["trace.yaml"] * 6
        + ["entries.txtpb"] * 2
        + ["in/port1.pcap", "SHA256SUMS", "out/port2.pcap"]
    )
    name = rng.choice([*names, "later.txtpb", "arrivals.npy"])
    source = TRACES / "switchml" / name if name == "arrivals.npy" else _trace() / name
    data = source.read_bytes()
    changed = (mutate_text if source.suffix in (".yaml", ".txtpb", "") else mutate_bytes)(rng, data)
    return name.encode() + b"\0" + changed


def _feed_trace(data: bytes, folder: Path) -> None:
    from ringleaf.networks.traces.checksums import changed_files
    from ringleaf.networks.traces.entries import load_schema, read_entries
    from ringleaf.networks.traces.trace import open_trace

    name, _, body = data.partition(b"\0")
    trace = folder / "trace"
    shutil.copytree(_trace(), trace)
    (trace / "SHA256SUMS").unlink()
    place = (trace / name.decode("utf-8", "replace")).resolve()
    if place.is_relative_to(trace) and place.parent.is_dir() and not place.is_dir():
        place.write_bytes(body)
    if name == b"arrivals.npy":
        with (trace / "trace.yaml").open("a") as file:
            file.write("arrivals: arrivals.npy\n")
    changed_files(trace)
    opened = open_trace(trace)
    schema = load_schema(opened.manifest.program, opened.manifest.p4info)
    for write in opened.manifest.writes:
        read_entries(write.path, schema)


KIND = InputKind(8, _draw_trace, _feed_trace)
