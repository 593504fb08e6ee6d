"""What is written about a trace is what is read."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import PcapNgWriter, rdpcap

from ringleaf.core.units import FOREVER_PS
from ringleaf.errors import ConfigError
from ringleaf.networks.traces.checksums import changed_files
from ringleaf.networks.traces.manifest import (
    Manifest,
    Port,
    TimedEntries,
    is_inside,
    read_manifest,
    write_manifest,
)
from ringleaf.networks.traces.trace import open_trace

TIMES = st.integers(1, FOREVER_PS)
PORTS = st.builds(Port, st.integers(1, 10**15), st.integers(1, 1 << 40))
MANIFESTS = st.builds(
    Manifest,
    folder=st.just(Path()),
    switch=st.sampled_from(["s0", "12", "no"]),
    program=st.just(Path("program.json")),
    p4info=st.sampled_from([None, Path("info")]),
    writes=st.lists(TIMES, unique=True, max_size=3).map(
        lambda times: tuple(TimedEntries(at_ps, Path("entries")) for at_ps in [0, *sorted(times)])
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
            writes=tuple(
                TimedEntries(write.at_ps, folder / write.path) for write in manifest.writes
            ),
        )
        assert read == placed


L2L3 = Path(__file__).parents[1] / "traces" / "l2l3"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    folder = tmp_path / "trace"
    shutil.copytree(L2L3, folder)
    (tmp_path / "outside.json").write_text("{}")
    return folder


@pytest.mark.parametrize("key", ["program", "p4info", "entries", "arrivals"])
@pytest.mark.parametrize(
    "name", ["../outside.json", "/etc/passwd", "in/../../outside.json", "link"]
)
def test_files_of_a_trace_are_in_its_folder(trace: Path, key: str, name: str) -> None:
    (trace / "link").symlink_to("../outside.json")
    path = trace / "trace.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {key: name}))
    with pytest.raises(ConfigError, match=f"{key} must be in the trace's folder, got"):
        read_manifest(trace)


ROOT = Path(__file__).resolve().parents[2]


def test_later_entries_are_in_its_folder(trace: Path) -> None:
    path = trace / "trace.yaml"
    later = {"later": [{"at": "1us", "entries": "../outside.json"}]}
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | later))
    with pytest.raises(ConfigError, match=r"later\[0\]: entries must be in the trace's folder"):
        read_manifest(trace)


def test_p4info_beside_the_program_is_in_its_folder(trace: Path) -> None:
    (trace / "program.p4info.txtpb").unlink()
    (trace / "program.p4info.txtpb").symlink_to("../outside.json")
    with pytest.raises(ConfigError, match="program must be in the trace's folder"):
        read_manifest(trace)


def test_a_manifest_is_in_its_folder(trace: Path) -> None:
    (trace / "trace.yaml").rename(trace.parent / "trace.yaml")
    (trace / "trace.yaml").symlink_to("../trace.yaml")
    with pytest.raises(ConfigError, match=r"trace.yaml: can't be read: no such file"):
        read_manifest(trace)


@pytest.mark.parametrize("name", ["in", "out", "in/port1.pcap", "out/port2.pcap"])
def test_packets_are_in_its_folder(trace: Path, name: str) -> None:
    (trace / name).rename(trace.parent / "packets")
    (trace / name).symlink_to(trace.parent / "packets")
    with pytest.raises(ConfigError, match=f"{name}: must be in the trace's folder, got a link"):
        open_trace(trace, with_expected=False)


def test_checksums_are_of_its_files(trace: Path) -> None:
    (trace / "SHA256SUMS").write_text(f"{'0' * 64}  ../../etc/passwd\n")
    with pytest.raises(ConfigError, match="line 1 must name a file of the trace, got"):
        changed_files(trace)


def test_programs_of_ours_go_by_name(trace: Path) -> None:
    path = trace / "trace.yaml"
    data = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(data | {"program": "ringleaf:acl"}))
    assert read_manifest(trace).program.name == "acl.json"
    path.write_text(yaml.safe_dump(data | {"program": "ringleaf:../../x"}))
    with pytest.raises(
        ConfigError, match=r"program: unknown program, got '.*/x'; valid: a2tp-256, a2tp-64, a2tp-"
    ):
        read_manifest(trace)


def test_the_copy_of_a_program_is_as_the_program_is() -> None:
    programs = L2L3.parents[1] / "switches" / "programs"
    for suffix in (".json", ".p4info.txtpb"):
        copy = (L2L3 / f"program{suffix}").read_bytes()
        assert copy == (programs / f"l2l3{suffix}").read_bytes()


def test_a_null_byte_is_in_no_file_s_name(tmp_path: Path) -> None:
    assert not is_inside(tmp_path, "nu\0ll")


def test_traces_may_have_pcapng(tmp_path: Path) -> None:
    """Wireshark saves pcapng; a port has one file."""
    folder = tmp_path / "trace"
    shutil.copytree(ROOT / "tests" / "traces" / "l2l3", folder)
    (port, *_) = sorted((folder / "in").iterdir())
    with PcapNgWriter(str(port.with_suffix(".pcapng"))) as writer:
        for packet in rdpcap(str(port)):
            writer.write(packet)
    with pytest.raises(ConfigError, match=f"must have one capture of a port, got '{port.stem}'"):
        open_trace(folder)
    whole = open_trace(ROOT / "tests" / "traces" / "l2l3")
    port.unlink()

    number = int(port.stem.removeprefix("port")) - 1
    found, first = open_trace(folder).inputs[number], whole.inputs[number]

    assert found is not None
    assert first is not None
    assert [found.packet(i) for i in range(len(found))] == [
        first.packet(i) for i in range(len(first))
    ]
