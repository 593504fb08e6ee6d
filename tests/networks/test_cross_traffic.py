"""Cross traffic from captures: what is sent, when, by whom, and what collectives feel of it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapWriter, rdpcap, wrpcap

from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.request import resolve as request
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.measuring import Measurement
from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.hosts import cross_traffic as b
from ringleaf.networks.cross_traffic import timetable
from ringleaf.networks.traces.pcap_read import read_records

STAR = "leafspine,leaves=1,spines=1,hosts=4"


def ether() -> Ether:
    """Return a header with addresses, which Scapy would ask a real network for, and wait."""
    return Ether(src="02:00:00:00:00:07", dst="02:00:00:00:00:08")


def frame(src: str, dst: str, size: int, time_s: float, tos: int = 0) -> Packet:
    made = ether() / IP(src=src, dst=dst, tos=tos) / UDP(sport=1, dport=2)
    made = made / Raw(b"x" * (size - len(made)))
    made.time = time_s
    return made


def measured(folder: Path, **given: str) -> Measurement:
    (found,) = CollectiveExperiment(resolve({"out": str(folder), "topo": STAR, **given})).run()
    return found


def test_addresses_are_hosts_in_the_order_in_which_they_appear(tmp_path: Path) -> None:
    """By hand: 10.0.0.9 is 0, 10.0.0.1 is 1, 10.0.0.5 is 2, two MACs are 3 and 4, two IPv6 5, 6."""
    asked = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / ARP()
    asked.time = 1.0000015
    six = ether() / IPv6(src="fe80::1", dst="fe80::2", tc=0x2E << 2 | 1) / UDP() / Raw(b"y" * 100)
    six.time = 1.000002
    wrpcap(
        str(tmp_path / "in.pcap"),
        [
            frame("10.0.0.9", "10.0.0.1", 100, 1.0, tos=0xB9),
            frame("10.0.0.1", "10.0.0.5", 1500, 1.000001),
            asked,
            six,
        ],
        nano=True,
    )

    source, rows = timetable(read_records(tmp_path / "in.pcap"), 4, 4096)

    assert source.tolist() == [0, 1, 3, 1]  # 5 modulo 4
    assert rows[:, b.HEAD].tolist() == [1, 2, 0, 2]  # 4 and 6 modulo 4
    assert rows[:, b.SIZE_BYTES].tolist() == [100, 1500, 60, 162]  # an ARP of 42 bytes is padded
    assert rows[:, b.DUE_PS].tolist() == pytest.approx([0, 1_000_000, 1_500_000, 2_000_000])
    assert rows[:, b.TRAFFIC_CLASS].tolist() == [0xB8, 0, 0, 0xB8]  # ECN is not the capture's


def test_two_addresses_of_one_host_talk_to_the_next_host(tmp_path: Path) -> None:
    talk = [frame(f"10.0.0.{i}", f"10.0.0.{i + 1}", 100, 1.0) for i in (1, 3)]
    wrpcap(str(tmp_path / "in.pcap"), [*talk, frame("10.0.0.1", "10.0.0.3", 100, 1.0)])
    source, rows = timetable(read_records(tmp_path / "in.pcap"), 2, 4096)
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
    same = Raw(bytes(frame("10.0.0.1", "10.0.0.2", 1500, 1)))  # to build 1500 takes long
    packets = [same.copy() for _ in range(1500)]
    for number, packet in enumerate(packets):
        packet.time = 1 + 1e-7 * number
    wrpcap(str(tmp_path / "in.pcap"), packets, linktype=1, nano=True)
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
            zip(rng.integers(1, 9, 100), rng.integers(64, 4000, 100), strict=True)
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
        assert sum(row.wrong or 0 for row in case.rows) == 0
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
        check(request({"cross_traffic": str(path), "out": str(tmp_path / "out")}))


# How captures that people have look like: cut to headers, without Ethernet, with tags.


def lay_out(inner: bytes, form: str) -> tuple[int, bytes]:
    """Return the link type and the bytes of a captured Ethernet frame in another form."""
    macs, ether_type, network = inner[:12], inner[12:14], inner[14:]
    snap = b"\xaa\xaa\x03\0\0\0" + ether_type + network
    forms = {
        "plain": (1, inner),
        "vlan": (1, macs + b"\x81\x00\x00\x07" + inner[12:]),
        "qinq": (1, macs + b"\x88\xa8\x00\x64\x81\x00\x00\x07" + inner[12:]),
        "vlan in vlan": (1, macs + b"\x91\x00\x00\x01" + b"\x81\x00\x00\x02" + inner[12:]),
        "label": (1, macs + b"\x88\x47" + b"\0\x01\x01\x40" + network),
        "labels and a tag": (
            1,
            macs + b"\x81\0\0\x07\x88\x47" + b"\0\x01\0\x40\0\x02\x01\x40" + network,
        ),
        "PPPoE": (1, macs + b"\x88\x64\x11\0\0\x01\0\0\0\x21" + network),
        "SNAP": (1, macs + struct.pack(">H", len(snap)) + snap),
        "cooked SNAP": (113, bytes(14) + b"\0\4" + snap),
        "PPP": (9, b"\0\x21" + network),
        "PPP of HDLC": (50, b"\xff\x03\0\x21" + network),
        "Cisco's HDLC": (104, b"\x0f\0" + ether_type + network),
        "raw": (101, network),
        "raw of BSD": (12, network),
        "IPv4": (228, network),
        "loopback": (0, b"\x02\0\0\0" + network),
        "OpenBSD": (108, b"\0\0\0\x02" + network),
        "cooked": (113, bytes(14) + ether_type + network),
        "cooked v2": (276, ether_type + bytes(18) + network),
    }
    return forms[form]


GROWTH = {
    **{"vlan": 4, "qinq": 8, "vlan in vlan": 8, "label": 4, "labels and a tag": 12, "PPPoE": 8},
    **{"PPP of HDLC": 2, "SNAP": 8, "cooked SNAP": 8},
}
FORMS = (*GROWTH, "plain", "PPP", "Cisco's HDLC", "raw", "raw of BSD", "IPv4", "loopback",
         "OpenBSD", "cooked", "cooked v2")  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    form=st.sampled_from(FORMS),
    kept=st.integers(46, 2000),
    talks=st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(60, 1500)),
        min_size=1,
        max_size=5,
    ),
)
def test_a_captures_form_changes_no_host_time_or_size(
    form: str,
    kept: int,
    talks: list[tuple[int, int, int]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Tags are bytes on the line; another link layer's header is replaced by Ethernet's."""
    folder = tmp_path_factory.mktemp("forms")
    frames = [
        bytes(frame(f"192.0.2.{a}", f"198.51.100.{b}", size, 1, tos=4 * a)) for a, b, size in talks
    ]
    header = struct.pack("<IHHiII", 0xA1B23C4D, 2, 4, 0, 0, 65535)
    plain, other = header + struct.pack("<I", 1), b""
    for number, data in enumerate(frames):
        link, changed = lay_out(data, form)
        cut = changed[:kept]
        stamp = struct.pack("<II", 7, 1000 * number)
        plain += stamp + struct.pack("<II", len(data), len(data)) + data
        other += stamp + struct.pack("<II", len(cut), len(changed)) + cut
    (folder / "plain.pcap").write_bytes(plain)
    (folder / "other.pcap").write_bytes(header + struct.pack("<I", link) + other)

    source, rows = timetable(read_records(folder / "plain.pcap"), 5, 4096)
    other_source, other_rows = timetable(read_records(folder / "other.pcap"), 5, 4096)

    assert other_source.tolist() == source.tolist()
    rows[:, b.SIZE_BYTES] += GROWTH.get(form, 0)
    assert other_rows.tolist() == rows.tolist()


def test_frames_of_a_sending_card_are_cut_into_packets_of_the_mtu(tmp_path: Path) -> None:
    """65,226 bytes are 15 times 4,096 and 3,786; a jumbo frame is no such frame."""
    sizes = [65226, 9000, 12288, 10001]
    talk = [frame("10.0.0.1", "10.0.0.2", size, 1 + i) for i, size in enumerate(sizes)]
    wrpcap(str(tmp_path / "in.pcap"), talk)

    source, rows = timetable(read_records(tmp_path / "in.pcap"), 2, 4096)

    cut = [*[4096] * 15, 3786, 9000, 4096, 4096, 4096, 4096, 4096, 1809]
    assert rows[:, b.SIZE_BYTES].tolist() == cut
    assert rows[:, b.DUE_PS].tolist() == [0] * 16 + [10**12] + [2 * 10**12] * 3 + [3 * 10**12] * 3
    assert source.tolist() == [0] * len(cut)
    assert sum(rows[:, b.SIZE_BYTES].tolist()) == sum(sizes)


def test_a_mirrored_trunk_has_the_hosts_of_its_ip_addresses(tmp_path: Path) -> None:
    """Three hosts talk to a fourth through the same two Ethernet addresses, with a tag."""
    talk = [
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / Dot1Q(vlan=7)
        / IP(src=f"192.0.2.{i}", dst="192.0.2.9")
        / UDP(dport=9)
        / Raw(b"x" * 400)
        for i in (1, 2, 3)
    ]
    wrpcap(str(tmp_path / "in.pcap"), talk)

    source, rows = timetable(read_records(tmp_path / "in.pcap"), 4, 4096)

    assert source.tolist() == [0, 2, 3]
    assert rows[:, b.HEAD].tolist() == [1, 1, 1]
    assert rows[:, b.SIZE_BYTES].tolist() == [446, 446, 446]


@pytest.mark.parametrize("form", ["PPP", "PPP of HDLC", "SNAP"])
def test_addresses_behind_ppp_and_snap(form: str, tmp_path: Path) -> None:
    talk = [bytes(frame(f"192.0.2.{i}", "192.0.2.9", 100, 1)) for i in (1, 2)]
    with PcapWriter(str(tmp_path / "in.pcap"), linktype=lay_out(talk[0], form)[0]) as writer:
        for each in talk:
            writer.write(lay_out(each, form)[1])

    source, rows = timetable(read_records(tmp_path / "in.pcap"), 4, 4096)

    assert source.tolist() == [0, 2]
    assert rows[:, b.HEAD].tolist() == [1, 1]


def test_packets_after_a_very_long_time_are_not_sent_at_once(tmp_path: Path) -> None:
    """A packet without a time, at 1970, is 54 years before the others; ps of these don't fit."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    data = bytes(frame("192.0.2.1", "192.0.2.9", 100, 1))
    records = (struct.pack("<4I", s, 0, 100, 100) + data for s in (0, 1_700_000_000, 4_200_000_000))
    (tmp_path / "in.pcap").write_bytes(header + b"".join(records))

    _source, rows = timetable(read_records(tmp_path / "in.pcap"), 4, 4096)

    assert rows[0, b.DUE_PS] == 0
    assert min(rows[1:, b.DUE_PS]) > 4 * 10**18  # 46 days, and longer than any run


def test_addresses_behind_two_labels(tmp_path: Path) -> None:
    inner = bytes(frame("192.0.2.1", "192.0.2.9", 100, 1))
    other = bytes(frame("192.0.2.2", "192.0.2.9", 100, 1))
    talk = [Ether(lay_out(each, "labels and a tag")[1]) for each in (inner, other)]
    wrpcap(str(tmp_path / "in.pcap"), talk)

    source, rows = timetable(read_records(tmp_path / "in.pcap"), 4, 4096)

    assert source.tolist() == [0, 2]
    assert rows[:, b.HEAD].tolist() == [1, 1]


def test_a_capture_cut_to_headers_has_the_records_sizes(tmp_path: Path) -> None:
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1)
    cut = bytes(frame("10.0.0.1", "10.0.0.2", 1000, 1))[:96]  # Scapy's `snaplen` cuts nothing
    records = (struct.pack("<4I", 1, 50 * i, len(cut), 1000) + cut for i in range(2))
    (tmp_path / "in.pcap").write_bytes(header + b"".join(records))

    given = {"topo": STAR, "out": str(tmp_path), "cross_traffic": str(tmp_path / "in.pcap")}
    check(request(given))
    _source, rows = timetable(read_records(tmp_path / "in.pcap"), 2, 4096)

    assert rows[:, b.SIZE_BYTES].tolist() == [1000, 1000]
    assert rows[:, b.DUE_PS].tolist() == [0, 50_000_000]


@pytest.mark.parametrize(
    ("link", "message"), [(105, r"got 105 \(802.11\)"), (189, "USB"), (99, "got 99; capture on")]
)
def test_other_link_layers_are_named(tmp_path: Path, link: int, message: str) -> None:
    path = tmp_path / "in.pcap"
    wrpcap(str(path), [frame("10.0.0.1", "10.0.0.2", 100, 1)])
    path.write_bytes(path.read_bytes()[:20] + struct.pack("<I", link) + path.read_bytes()[24:])
    with pytest.raises(ConfigError, match=f"cross_traffic: .*Linux cooked.*{message}"):
        check(request({"topo": STAR, "out": str(tmp_path), "cross_traffic": str(path)}))


def test_a_fragments_offset_is_no_protocol_of_ppp(tmp_path: Path) -> None:
    """Where PPP's protocol would be in IPv4's header is 0x57, PPP's number of IPv6."""
    made = ether() / IP(src="192.0.2.1", dst="198.51.100.2", frag=0x57) / Raw(b"x" * 100)
    link, data = lay_out(bytes(made), "PPPoE")
    header = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link)
    other = lay_out(bytes(frame("192.0.2.1", "198.51.100.2", 200, 1)), "PPPoE")[1]
    records = b"".join(
        struct.pack("<IIII", 7, 0, len(each), len(each)) + each for each in (data, other)
    )
    (tmp_path / "in.pcap").write_bytes(header + records)

    source, _ = timetable(read_records(tmp_path / "in.pcap"), 4, 4096)

    assert source.tolist() == [0, 0]  # both of one address
