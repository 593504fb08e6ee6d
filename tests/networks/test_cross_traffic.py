"""Cross traffic from captures: what is sent, when, by whom, and what collectives feel of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw
from scapy.utils import rdpcap, wrpcap

from ringleaf.errors import ConfigError
from ringleaf.experiments.checks import check
from ringleaf.experiments.jobs.runner import JobsExperiment
from ringleaf.experiments.runner import Experiment, Measurement
from ringleaf.experiments.spec.options import resolve, resolve_jobs
from ringleaf.hosts import cross_traffic as b
from ringleaf.networks.cross_traffic import timetable
from ringleaf.networks.traces.pcap_read import read_packets

STAR = "leafspine,leaves=1,spines=1,hosts=4"


def frame(src: str, dst: str, size: int, time_s: float, tos: int = 0) -> Packet:
    made = Ether() / IP(src=src, dst=dst, tos=tos) / UDP(sport=1, dport=2)
    made = made / Raw(b"x" * (size - len(made)))
    made.time = time_s
    return made


def measured(folder: Path, **given: str) -> Measurement:
    (found,) = Experiment(resolve({"out": str(folder), "topo": STAR, **given})).run()
    return found


def test_addresses_are_hosts_in_the_order_in_which_they_appear(tmp_path: Path) -> None:
    """By hand: 10.0.0.9 is 0, 10.0.0.1 is 1, 10.0.0.5 is 2, two MACs are 3 and 4, two IPv6 5, 6."""
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / ARP()
    ether.time = 1.0000015
    six = Ether() / IPv6(src="fe80::1", dst="fe80::2") / UDP() / Raw(b"y" * 100)
    six.time = 1.000002
    wrpcap(
        str(tmp_path / "in.pcap"),
        [
            frame("10.0.0.9", "10.0.0.1", 100, 1.0, tos=0xB9),
            frame("10.0.0.1", "10.0.0.5", 1500, 1.000001),
            ether,
            six,
        ],
        nano=True,
    )

    source, rows = timetable(read_packets(tmp_path / "in.pcap"), 4)

    assert source.tolist() == [0, 1, 3, 1]  # 5 modulo 4
    assert rows[:, b.HEAD].tolist() == [1, 2, 0, 2]  # 4 and 6 modulo 4
    assert rows[:, b.SIZE_BYTES].tolist() == [100, 1500, 60, 162]  # an ARP of 42 bytes is padded
    assert rows[:, b.DUE_PS].tolist() == pytest.approx([0, 1_000_000, 1_500_000, 2_000_000])
    assert rows[:, b.TRAFFIC_CLASS].tolist() == [0xB8, 0, 0, 0]  # ECN is not the capture's


def test_two_addresses_of_one_host_talk_to_the_next_host(tmp_path: Path) -> None:
    talk = [frame(f"10.0.0.{i}", f"10.0.0.{i + 1}", 100, 1.0) for i in (1, 3)]
    wrpcap(str(tmp_path / "in.pcap"), [*talk, frame("10.0.0.1", "10.0.0.3", 100, 1.0)])
    source, rows = timetable(read_packets(tmp_path / "in.pcap"), 2)
    assert source.tolist() == [0, 0, 0]
    assert rows[:, b.HEAD].tolist() == [1, 1, 1]


def test_packets_leave_at_their_times_and_arrive_whole(tmp_path: Path) -> None:
    """On links of 100 Gbit/s; the second of two that are due at once waits for the first."""
    times_us = [0, 0, 3, 4.5]
    sizes = [1500, 64, 9000, 200]
    given = [
        frame("10.0.0.1", "10.0.0.2", size, 1 + us / 1e6)
        for size, us in zip(sizes, times_us, strict=True)
    ]
    wrpcap(str(tmp_path / "in.pcap"), given, nano=True)

    measured(tmp_path, algo="ring", size="1M", cross_traffic=str(tmp_path / "in.pcap"), pcap="yes")

    (capture,) = (tmp_path / "pcap").rglob("*.pcapng")
    seen = [each for each in rdpcap(str(capture)) if UDP in each and each[UDP].dport == 9]
    assert sorted({len(each) for each in seen}) == sorted(sizes)
    assert len(seen) == 2 * len(sizes)  # at the switch: in from one host, out to another
    assert all(each[IP].len == len(each) - 14 for each in seen)
    assert all(IP(bytes(each[IP])).chksum == fresh_ip(each).chksum for each in seen)
    start = min(float(each.time) for each in seen)
    first = {len(each): float(each.time) - start for each in reversed(seen)}
    assert first[9000] == pytest.approx(3e-6, abs=3e-7)
    assert first[200] == pytest.approx(4.5e-6, abs=1e-6)


def fresh_ip(packet: Packet) -> Packet:
    """Return the IP header, with its checksum computed anew."""
    again = packet[IP].copy()
    del again.chksum
    return IP(bytes(again))


def test_a_ring_slows_down_by_the_bytes_in_its_way(tmp_path: Path) -> None:
    """1500 packets of 1500 bytes from h0 to h1, as fast as a link carries: 1524 bytes each.

    They take 183 us of the link on which h0 sends 1.5 MB of the ring, 126 us and latency.
    """
    wrpcap(
        str(tmp_path / "in.pcap"),
        [frame("10.0.0.1", "10.0.0.2", 1500, 1 + 1e-7 * i) for i in range(1500)],
        nano=True,
    )
    alone = measured(tmp_path, algo="ring", size="1M").row
    beside = measured(tmp_path, algo="ring", size="1M", cross_traffic=str(tmp_path / "in.pcap")).row
    assert (alone.wrong, beside.wrong) == (0, 0)
    assert 1.3 < beside.time_ps / alone.time_ps < 2.2


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_sums_are_right_and_threads_agree(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cross")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    packets = [
        frame(f"10.0.{i % 7}.{j}", f"10.0.0.{1 + i % 5}", int(size), 1 + 2e-7 * i)
        for i, (j, size) in enumerate(
            zip(rng.integers(1, 9, 300), rng.integers(64, 4000, 300), strict=True)
        )
    ]
    wrpcap(str(folder / "in.pcap"), packets, nano=True)
    algo = data.draw(st.sampled_from(["ring", "switchml", "atp", "omnireduce"]))
    routes = data.draw(st.sampled_from(["dealt", "ecmp"]))

    results = [
        measured(
            folder, topo="fattree", algo=algo, size="64K", routes=routes, threads=threads,
            cross_traffic=str(folder / "in.pcap"),
        )
        for threads in "12"
    ]  # fmt: skip

    one, two = results
    assert one.row == two.row
    assert one.row.wrong == 0


def test_jobs_share_the_network_with_a_capture(tmp_path: Path) -> None:
    """Bytes of a job are counted apart from a capture's, which no job has sent."""
    model = tmp_path / "small.yaml"
    model.write_text(
        "name: small\nlayers:\n  - {name: a, elements: 9000, forward: 2us, backward: 4us}\n"
    )
    wrpcap(
        str(tmp_path / "in.pcap"),
        [frame("10.0.0.1", "10.0.0.2", 1500, 1 + 1e-7 * i) for i in range(50)],
        nano=True,
    )
    job = {"model": str(model), "ranks": 2, "iterations": 1}
    given = {"topo": STAR, "jobs": [job, job], "algo": "switchml", "servers": 0}
    times = []
    for cross in ({}, {"cross_traffic": str(tmp_path / "in.pcap")}):
        (case,) = JobsExperiment(resolve_jobs({**given, **cross}, "spec: ")).run()
        assert sum(row.wrong for row in case.rows) == 0
        times.append(max(row.jct_ps for row in case.rows))
    assert times[1] > times[0]


def test_the_example_of_the_docs_runs(tmp_path: Path) -> None:
    row = measured(
        tmp_path, topo="fattree", size="64K", algo="ring", cross_traffic="docs/workloads/cross.pcap"
    ).row
    assert row.wrong == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "begins with nothing"), (b"hello", "begins with 68656c6c"), (None, "can't be read")],
)
def test_what_is_no_capture_is_refused_at_once(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "in.pcap"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"cross_traffic: .*{message}"):
        check(resolve({"cross_traffic": str(path), "out": str(tmp_path / "out")}))
