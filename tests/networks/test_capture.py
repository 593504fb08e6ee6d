"""One capture of all ports, as scapy and tshark read it, and as traces of the same run have it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import RawPcapNgReader

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.ina.dissector import write_dissector
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.mininet.recording import merge_captures
from ringleaf.networks.traces import pcapng_write
from ringleaf.networks.traces.pcap_read import read_packets
from ringleaf.networks.traces.pcapng_write import Interface, PcapngWriter
from ringleaf.networks.traces.trace import open_trace
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.networks.virtual.capture import BUFFER_BYTES
from ringleaf.networks.virtual.pcap import interfaces
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.graph import switches
from ringleaf.topologies.registry import build

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
INTERFACES = (Interface("h0", "to s1:p2", 10**11), Interface("s1:p2", "to h0", 25 * 10**9))
Packet = tuple[int, str, bytes]  # stamp in ns, interface, bytes
GRAPH = build("leafspine,leaves=2,spines=1,hosts=1")

packets = st.lists(
    st.tuples(st.integers(0, (1 << 62) - 1), st.integers(0, 1), st.binary(min_size=1, max_size=70)),
    max_size=30,
)


def source(found: Sequence[tuple[int, int, bytes]]) -> tuple[np.ndarray, np.ndarray]:
    """Packets (time, interface, bytes) as the writer takes them, with bytes between them."""
    rows, data = [], b"."
    for time, port, each in found:
        rows.append((time, port, len(data), len(each)))
        data += each + b"."
    return np.array(rows, np.int64).reshape(-1, 4), np.frombuffer(bytearray(data), np.uint8)


def by_scapy(path: Path) -> Iterator[Packet]:
    with RawPcapNgReader(str(path)) as reader:
        for data, about in reader:
            assert (about.tsresol, about.wirelen) == (10**9, len(data))
            yield (about.tshigh << 32) + about.tslow, about.ifname.decode(), data


@given(first=packets, second=packets, unit=st.sampled_from([1, 1000]))
def test_scapy_reads_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[int, int, bytes]],
    second: list[tuple[int, int, bytes]],
    unit: int,
) -> None:
    """In order of time, and of the sources where times are equal."""
    path = tmp_path_factory.getbasetemp() / "new" / "a.pcapng"
    PcapngWriter(path, INTERFACES).append([source(first), source(second)], per_ns=unit)

    expected = sorted(first + second, key=lambda packet: packet[0])
    assert list(by_scapy(path)) == [
        (time // unit, INTERFACES[port].name, data) for time, port, data in expected
    ]
    assert len(read_packets(path)) == len(expected)


@given(first=packets, second=packets, at_once=st.integers(1, 8))
def test_a_merge_is_the_same_in_steps(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[int, int, bytes]],
    second: list[tuple[int, int, bytes]],
    at_once: int,
) -> None:
    whole, steps = (tmp_path_factory.getbasetemp() / f"{name}.pcapng" for name in ("a", "b"))
    PcapngWriter(whole, INTERFACES).append([source(first), source(second)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pcapng_write, "MERGED_ROWS", at_once)
        PcapngWriter(steps, INTERFACES).merge([source(first), source(second)])

    assert whole.read_bytes() == steps.read_bytes()


def test_the_blocks_are_those_of_the_draft(tmp_path: Path) -> None:
    """Section header, interface description and enhanced packet, by hand."""
    path = tmp_path / "a.pcapng"
    PcapngWriter(path, INTERFACES[:1]).append([source([((5 << 32) + 6, 0, b"abcde")])])

    assert (
        path.read_bytes()
        == bytes.fromhex(
            "0a0d0d0a 2c000000 4d3c2b1a 0100 0000 ffffffffffffffff"  # version 1.0, length unknown
            "0400 0800" + b"Ringleaf".hex() + "0000 0000 2c000000"
            "01000000 40000000 0100 0000 00000000"  # Ethernet, no snap length
            "0200 0200" + b"h0".hex() + "0000"  # if_name
            "0300 0800" + b"to s1:p2".hex() + ""  # if_description
            "0800 0800 00e8764817000000"  # if_speed, 10^11 bit/s
            "0900 0100 09000000 0000 0000 40000000"  # if_tsresol, 10^-9 s
            "06000000 28000000 00000000 05000000 06000000 05000000 05000000"
            + b"abcde".hex()
            + "000000 28000000"
        )
    )


def test_ports_are_named_as_the_topology_names_them() -> None:
    named = [(each.name, each.description) for each in interfaces(GRAPH)]

    assert named == [
        ("s0:p1", "to h0"),
        ("s0:p2", "to s2:p1"),
        ("s1:p1", "to h1"),
        ("s1:p2", "to s2:p2"),
        ("s2:p1", "to s0:p2"),
        ("s2:p2", "to s1:p2"),
        ("h0", "to s0:p1"),
        ("h1", "to s1:p1"),
    ]
    assert {each.rate_bps for each in interfaces(GRAPH)} == {10**11}


def run(folder: Path, elements: int, *, host_ps: int = 0, system: str | None = None) -> None:
    """Run an allreduce of two ranks, and leave a capture and traces of it."""
    graph = with_delays(GRAPH, switch_delay_ps=0, host_delay_ps=host_ps)
    options = NetworkOptions(
        capture=folder / "pcap", record=folder / "traces", system=SYSTEMS.get(system or "")
    )
    network = VirtualNetwork(graph, options)
    network.run(
        ALGORITHMS[system or "ring"].build(2, size_bytes=4 * elements, hierarchy=(2,)),
        [torch.ones(elements) for _ in range(2)],
    )
    network.close()


def traced(traces: Path) -> dict[str, list[Packet]]:
    """What switches have sent, by port, as the traces have it."""
    found: dict[str, list[Packet]] = {}
    for name in switches(GRAPH):
        for number, file in enumerate(open_trace(traces / name).expected, start=1):
            assert file is not None
            port = f"{name}:p{number}"
            found[port] = [(int(file.stamps_ns[i]), port, file.packet(i)) for i in range(len(file))]
    return found


@pytest.mark.parametrize("host_ps", [0, 7_000_000])
def test_a_capture_has_the_packets_of_traces_in_order_of_time(tmp_path: Path, host_ps: int) -> None:
    """Also if hosts give packets away long before they are on the line, in many buffers."""
    run(tmp_path, 700_000, host_ps=host_ps)

    path = tmp_path / "pcap" / "capture.pcapng"
    assert path.stat().st_size > 2 * BUFFER_BYTES
    found = list(by_scapy(path))
    times = [time for time, _, _ in found]
    assert times == sorted(times)
    assert times[0] == host_ps // 1000
    for port, expected in traced(tmp_path / "traces").items():
        assert [packet for packet in found if packet[1] == port] == expected


def test_live_captures_are_merged_from_traces(tmp_path: Path) -> None:
    """All as in virtual time, but that a host's packet has the time at which it arrived."""
    run(tmp_path, 3000)
    merge_captures(GRAPH, tmp_path / "traces", tmp_path / "merged")

    virtual, live = (
        list(by_scapy(tmp_path / name / "capture.pcapng")) for name in ("pcap", "merged")
    )
    order = [(time, port.startswith("s")) for time, port, _ in live]
    assert order == sorted(order), "hosts first: a switch sends on what it has received"
    for port in (each.name for each in interfaces(GRAPH)):
        ours = [packet for packet in virtual if packet[1] == port]
        theirs = [packet for packet in live if packet[1] == port]
        if port.startswith("s"):
            assert theirs == ours
        else:  # 1 us of link, and at least the shortest frame's 6.7 ns
            assert [data for _, _, data in theirs] == [data for _, _, data in ours]
            assert all(b[0] - a[0] >= 1006 for a, b in zip(ours, theirs, strict=True))


def by_tshark(path: Path, *options: str) -> list[list[str]]:
    done = subprocess.run(
        ["tshark", *options, "-r", str(path)], check=True, capture_output=True, text=True
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


@needs_tshark
def test_tshark_reads_names_times_and_bytes(tmp_path: Path) -> None:
    run(tmp_path, 3000)
    path = tmp_path / "pcap" / "capture.pcapng"

    fields = ("time_epoch", "interface_name", "interface_description", "len")
    told = by_tshark(path, "-T", "fields", *(w for name in fields for w in ("-e", f"frame.{name}")))

    about = {each.name: each.description for each in interfaces(GRAPH)}
    assert told == [
        [f"{time // 10**9}.{time % 10**9:09d}", name, about[name], str(len(data))]
        for time, name, data in by_scapy(path)
    ]
    copy = tmp_path / "copy.pcap"  # the bytes, by Wireshark's own writer
    by_tshark(path, "-F", "nsecpcap", "-w", str(copy))
    copied = read_packets(copy)
    assert [copied.packet(i) for i in range(len(copied))] == [data for _, _, data in by_scapy(path)]


@needs_tshark
def test_the_dissector_reads_a_run_of_switchml(tmp_path: Path) -> None:
    run(tmp_path, 1024, system="switchml")
    script = tmp_path / "ringleaf.lua"
    script.write_text(write_dissector())

    names = ("frame.interface_name", "ringleaf_switchml.job", "ringleaf_switchml.block")
    rows = by_tshark(
        tmp_path / "pcap" / "capture.pcapng",
        *("-X", f"lua_script:{script}", "-T", "fields"),
        *(w for name in names for w in ("-e", name)),
    )
    sent = [row for row in rows if row[0] == "h0"]
    assert {job for _, job, _ in rows} == {"1"}
    assert {int(block) for _, _, block in sent} >= {0, 1, 2, 3}  # of 256 values
