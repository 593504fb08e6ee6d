"""What BMv2 is given in a bench, and what is read from the files it writes."""

import struct
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from bench import bmv2 as bench_bmv2
from bench import loads as bench_loads
from ringleaf.errors import BackendError


def test_rounds_repeat_a_load_with_growing_numbers() -> None:
    load = bench_loads.load("switchml-64")
    count = len(load.packets)

    sent = list(bench_bmv2._rounds(load, 2 * count + 1))

    assert sent[:count] == load.packets
    assert len(sent) == 2 * count + 1
    numbers = [
        int.from_bytes(data[load.number_at : load.number_at + 4], "big")
        for _, data in (sent[0], sent[count], sent[2 * count])
    ]
    assert numbers == [0, load.number_step, 2 * load.number_step]


def test_packets_go_into_their_ports_files_in_the_order_of_their_times(tmp_path: Path) -> None:
    stems = {1: tmp_path / "one", 2: tmp_path / "two"}

    assert bench_bmv2._write_inputs(stems, [(1, b"a" * 60), (2, b"b" * 60), (1, b"c" * 60)]) == 3

    with RawPcapReader(str(tmp_path / "one_in.pcap")) as file:
        read = [(data, meta.usec) for data, meta in file]
    assert read == [(b"a" * 60, 0), (b"c" * 60, 2)]


def test_times_are_read_from_a_file_that_is_still_being_written(tmp_path: Path) -> None:
    path = tmp_path / "out.pcap"
    row = struct.pack("<4I", 5, 500_000, 3, 3) + b"abc"
    path.write_bytes(bytes(24) + row + row[:-1])

    times = list(bench_bmv2._times(path))

    assert times[0] == 5.5


def test_packets_that_never_leave_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_bmv2, "_PATIENCE_S", 0)
    with pytest.raises(BackendError, match="BMv2 must send 2 packets, got 0"):
        bench_bmv2._await_outputs([tmp_path / "port1"], 2)


@pytest.mark.bmv2
@pytest.mark.parametrize("name", ["forward", "atp-256"])
def test_bmv2_sends_as_many_packets_as_it_is_given(name: str) -> None:
    assert bench_bmv2.measure_bmv2(bench_loads.load(name), packets=512) > 0
