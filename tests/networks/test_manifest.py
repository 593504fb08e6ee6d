"""What is written about a trace is what is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from networks.traces.manifest import Manifest, Port, Write, read_manifest, write_manifest
from ringleaf.units import FOREVER_PS

TIMES = st.integers(1, FOREVER_PS)
PORTS = st.builds(Port, st.integers(1, 10**15), st.integers(1, 1 << 40))
MANIFESTS = st.builds(
    Manifest,
    folder=st.just(Path()),
    switch=st.sampled_from(["s0", "12", "no"]),
    program=st.just(Path("program.json")),
    p4info=st.sampled_from([None, Path("info")]),
    writes=st.lists(TIMES, unique=True, max_size=3).map(
        lambda times: tuple(Write(at_ps, Path("entries")) for at_ps in [0, *sorted(times)])
    ),
    ports=st.lists(PORTS, min_size=1, max_size=3).map(tuple),
    seed=st.integers(0, (1 << 64) - 1),
    origin_ns=st.none() | st.integers(0, 1 << 62),
    until_ps=TIMES,
    arrivals=st.sampled_from([None, Path("arrivals.npy")]),
    mask=st.lists(st.sampled_from(["IP.ttl", "14:2"])).map(tuple),
    window=st.sampled_from([None, "8", "10us"]),
    ignore_order=st.booleans(),
    unknown=st.lists(st.sampled_from(["ties", "12"])).map(tuple),
    delay_ps=st.integers(0, 10**12),
)


@given(MANIFESTS)
def test_manifests_are_read_as_they_were_written(manifest: Manifest) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("program.json", "info", "entries", "arrivals.npy"):
            (folder / file).touch()
        write_manifest(replace(manifest, folder=folder))

        read = read_manifest(folder)

        placed = replace(
            manifest,
            folder=folder,
            program=folder / manifest.program,
            p4info=manifest.p4info and folder / manifest.p4info,
            arrivals=manifest.arrivals and folder / manifest.arrivals,
            writes=tuple(Write(write.at_ps, folder / write.path) for write in manifest.writes),
        )
        assert read == placed
