"""Captures in all variants that are about, and what is wrong with the others."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import PcapNgWriter

from ringleaf.core.unpacking import unpack
from ringleaf.errors import ConfigError
from ringleaf.networks.traces.pcap_read import read_packets, read_records
from ringleaf.networks.traces.pcap_write import HEADER, PcapWriter, record

Packets = Sequence[tuple[int, bytes]]  # (stamp in ns, bytes)
PACKETS = [(1_000, b"a" * 60), (1_000, b"b"), (1_760_000_000_123_456_000, b"c" * 9000)]


def pcap(packets: Packets, *, order: str = "<", magic: int = 0xA1B23C4D, link: int = 1) -> bytes:
    unit_ns = 1 if magic == 0xA1B23C4D else 1000
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link)]
    for stamp_ns, data in packets:
        seconds, rest_ns = divmod(stamp_ns, 10**9)
        parts.append(
            struct.pack(f"{order}4I", seconds, rest_ns // unit_ns, len(data), len(data)) + data
        )
    return b"".join(parts)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = len(body) + 12
    return struct.pack(f"{order}II", kind, size) + body + struct.pack(f"{order}I", size)


def pcapng(packets: Packets, *, order: str = "<", power: int = 9, link: int = 1) -> bytes:
    section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    option = struct.pack(f"{order}HHB3xHH", 9, 1, power, 0, 0)
    parts = [
        block(order, 0x0A0D0D0A, section),
        block(order, 1, struct.pack(f"{order}HHI", link, 0, 0) + option),
        block(order, 4, b"names, which nobody needs"),
    ]
    for stamp_ns, data in packets:
        units = stamp_ns * 10**power // 10**9
        head = struct.pack(f"{order}5I", 0, units >> 32, units & 0xFFFFFFFF, len(data), len(data))
        parts.append(block(order, 6, head + data))
    return b"".join(parts)


def read(path: Path, data: bytes) -> list[tuple[int, bytes]]:
    path.write_bytes(data)
    file = read_packets(path)
    return [(int(file.stamps_ns[i]), file.packet(i)) for i in range(len(file))]


@pytest.mark.parametrize("order", ["<", ">"])
def test_every_variant_reads_alike(tmp_path: Path, order: str) -> None:
    path = tmp_path / "a.pcap"

    assert read(path, pcap(PACKETS, order=order)) == PACKETS
    assert read(path, pcap(PACKETS, order=order, magic=0xA1B2C3D4)) == PACKETS
    for power in (6, 9, 10):
        assert read(path, pcapng(PACKETS, order=order, power=power)) == PACKETS
    assert read(path, pcap([], order=order)) == []


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_captures_are_read(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "a.pcap"

    assert read(path, compress(pcap(PACKETS))) == PACKETS
    assert read(path, compress(pcapng(PACKETS)[:40]) + compress(pcapng(PACKETS)[40:])) == PACKETS


def test_a_compressed_file_holds_so_many_bytes_at_most(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(100)))

    assert len(unpack(path, "x", 100)) == 100
    with pytest.raises(ConfigError, match="x: at most 99 bytes without gzip, got more"):
        unpack(path, "x", 99)


def test_scapys_pcapng_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with PcapNgWriter(str(path)) as writer:
        writer.write(b"x" * 60)

    (packet,) = read_packets(path).lengths.tolist()
    assert packet == 60


FRAME = bytes.fromhex("08000000011108000000022208004500") + bytes(50)
IPV6 = bytes.fromhex("6000") + bytes(60)


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_frames_that_bmv2_writes_as_a_loopbacks_are_ethernets(
    tmp_path: Path, write: Callable[..., bytes]
) -> None:
    """As its `PcapFileOut` opens files: `pcap_open_dead(0, 0)`."""
    frames = [(1, FRAME), (2, bytes(6) + FRAME), (3, b"\2\0\0\0\0\1" + FRAME)]

    assert read(tmp_path / "a.pcap", write(frames, link=0)) == frames


@pytest.mark.parametrize("family", ["02000000", "00000002", "1e000000", "0000001c"])
def test_packets_of_a_loopback_begin_with_their_family(tmp_path: Path, family: str) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(1, FRAME), (2, bytes.fromhex(family) + IPV6)], link=0))

    assert read_records(path).links.tolist() == [0, 0]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    writer = PcapWriter(tmp_path / "new" / "a.pcap")
    for stamp_ns, data in PACKETS:
        writer.append(stamp_ns, data)
    writer.flush()

    file = read_packets(tmp_path / "new" / "a.pcap")
    assert [file.packet(i) for i in range(len(file))] == [data for _, data in PACKETS]


GOOD = pcap([(1, b"a" * 60), (2, b"b" * 60)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a packet capture, got 0 bytes; a pcap file has a header of 24"),
        (b"hello" * 9, "not a packet capture, got magic 68656c6c; pcap and pcapng are understood"),
        (pcap(PACKETS, link=113), r"packet 1 must have link type 1 .*, got 113 \(Linux cooked\)"),
        (pcapng(PACKETS, link=101), r"link type 1 \(Ethernet\), got 101 \(raw IP\)"),
        (pcap([(1, b"a" * 65226)]), "at most 10000 bytes, got 65226; .*segmentation offload"),
        (b"\x28\xb5\x2f\xfd" + bytes(40), "must not be compressed, got zstd; unpack it first"),
        (b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 9, "must be compressed by gzip, got .* damaged"),
        (
            gzip.compress(GOOD, mtime=0)[:-9],
            "must be a whole gzip file, got [0-9]+ bytes; it is cut off",
        ),
        (gzip.compress(b"hello" * 9, mtime=0), "not a packet capture, got magic 68656c6c"),
        (
            gzip.compress(b"", mtime=0),
            "not a packet capture, got 0 bytes; a pcap file has a header of 24",
        ),
        (pcap([(1, b"")]), "packet 1 must have a byte on the line, got 0"),
        (GOOD[:36] + b"\x30" + GOOD[37:], "packet 1 must be as long as on the line, got 60 of 48"),
        (GOOD[:-1], "packet 2 is truncated, got 59 of its 60 bytes; copy the file anew"),
        (GOOD[:110], "packet 2 is truncated, got 10 of its header's 16 bytes"),
        (GOOD[:32] + b"\0\0\0\x70" + GOOD[36:], "packet 1 must have at most 262144 bytes, got"),
        (GOOD[:36] + b"\x50" + GOOD[37:], "packet 1 was cut when captured, got 60 of 80 bytes"),
        (GOOD[:28] + b"\xff\xff\xff\xff" + GOOD[32:], "packet 1 has a time beyond its second"),
        (pcap([(5, b"a"), (3, b"b")]), "in order of time, got packet 2 2 ns before the one"),
        (pcapng(PACKETS)[:-2], "is truncated, got"),
        (pcapng(PACKETS)[:-1] + b"\x09", "is damaged: its two lengths differ"),
        (pcapng([]) + block("<", 3, bytes(60)), "packet 1 has no time"),
    ],
)
def test_what_is_no_good(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path / "a.pcap", data)


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (GOOD[:-1], "packet 2 is truncated, got 59 of its 60 bytes"),
        (GOOD[:110], "packet 2 is truncated, got 10 of its header's 16 bytes"),
        (pcapng(PACKETS[:2])[:-2], r"is truncated, got \d+ of a block's \d+ bytes"),
        (pcapng(PACKETS[:2]) + bytes(3), "is truncated, got 3 bytes for a block of at least 12"),
        (GOOD, ""),
    ],
)
def test_records_before_the_end_of_a_cut_file_are_found(
    tmp_path: Path, data: bytes, end: str
) -> None:
    (tmp_path / "a.pcap").write_bytes(data)
    packets = read_records(tmp_path / "a.pcap")
    assert len(packets) == (2 if data == GOOD or data.endswith(bytes(3)) else 1)
    assert re.fullmatch(end, packets.end)


def by_hand(kept: int, whole: int) -> bytes:
    """Return a record after the first of GOOD, with so many bytes in the file and on the line."""
    return GOOD[:100] + struct.pack("<4I", 1, 2, kept, whole) + b"c" * kept


@pytest.mark.parametrize("is_ng", [False, True])
@pytest.mark.parametrize(
    ("kept", "whole", "sizes", "lengths"),
    [
        (0, 0, [60], [60]),  # no packet
        (0, 70, [60, 70], [60, 0]),
        (70, 64, [60, 64], [60, 64]),  # six bytes of a trailer
        (70, 0, [60, 70], [60, 70]),  # nothing is said of the line
    ],
)
def test_what_a_record_says_of_the_line_is_the_size(
    tmp_path: Path, is_ng: bool, kept: int, whole: int, sizes: list[int], lengths: list[int]
) -> None:
    data = by_hand(kept, whole)
    if is_ng:
        own = struct.pack("<5I", 0, 1, 0, kept, whole) + b"c" * kept
        data = pcapng([(1, b"a" * 60)]) + block("<", 6, own)
    (tmp_path / "a.pcap").write_bytes(data)

    packets = read_records(tmp_path / "a.pcap")
    assert packets.sizes.tolist() == sizes
    assert packets.lengths.tolist() == lengths
    assert packets.empty == 2 - len(sizes)


@pytest.mark.parametrize(
    ("words", "kept", "sizes"),
    [(2, 64, (60, 60)), (1, 64, (62, 62)), (2, 62, (60, 60)), (2, 40, (40, 60))],
)
def test_a_frame_check_sequence_is_no_part_of_a_packet(
    tmp_path: Path, words: int, kept: int, sizes: tuple[int, int]
) -> None:
    """The link type has a bit for it and, in the upper four, its 16-bit words."""
    body = struct.pack("<4I", 1, 2, kept, 64) + b"c" * kept
    (tmp_path / "a.pcap").write_bytes(pcap([], link=1 | 1 << 26 | words << 28) + body)
    packets = read_records(tmp_path / "a.pcap")
    assert (packets.lengths.tolist(), packets.sizes.tolist()) == ([sizes[0]], [sizes[1]])
    assert packets.links.tolist() == [1]


@pytest.mark.parametrize(
    ("fcs", "flags", "size"),
    [(4, None, 60), (32, None, 60), (0, None, 64), (0, 4 << 5, 60), (2, 4 << 5, 60), (4, 1, 60)],
)
def test_a_frame_check_sequence_of_pcapng(
    tmp_path: Path, fcs: int, flags: int | None, size: int
) -> None:
    """Of an interface, in bits by the draft and in bytes by its example; of a packet, in bytes."""
    option = struct.pack("<HHB3xHH", 13, 1, fcs, 0, 0)
    packet = struct.pack("<5I", 0, 0, 1, 64, 64) + b"a" * 64
    if flags is not None:
        packet += struct.pack("<HHIHH", 2, 4, flags, 0, 0)
    data = pcapng([])[:28] + block("<", 1, struct.pack("<HHI", 1, 0, 0) + option)
    assert read(tmp_path / "a.pcapng", data + block("<", 6, packet)) == [(1000, b"a" * size)]


def test_a_time_may_be_rounded_up_to_a_whole_second(tmp_path: Path) -> None:
    """Programs that round a float's fraction write 1,000,000 us now and then."""
    late = struct.pack("<4I", 7, 10**6, 60, 60) + b"a" * 60
    assert read(tmp_path / "a.pcap", pcap([], magic=0xA1B2C3D4) + late) == [(8 * 10**9, b"a" * 60)]
    later = struct.pack("<4I", 7, 10**6 + 1, 60, 60) + b"a" * 60
    with pytest.raises(ConfigError, match="a time beyond its second, got 1000001"):
        read(tmp_path / "a.pcap", pcap([], magic=0xA1B2C3D4) + later)


@pytest.mark.parametrize("is_ng", [False, True])
def test_frames_of_big_tcp_are_longer_than_records(tmp_path: Path, is_ng: bool) -> None:
    sizes = {"<4I": (1, 2, 96, 524_288), "<5I": (0, 0, 1, 96, 524_288)}
    own = [struct.pack(form, *each) + b"c" * 96 for form, each in sizes.items()]
    data = pcapng([]) + block("<", 6, own[1]) if is_ng else pcap([]) + own[0]
    (tmp_path / "a.pcap").write_bytes(data)
    assert read_records(tmp_path / "a.pcap").sizes.tolist() == [524_288]


def test_interfaces_that_have_packets_are_counted(tmp_path: Path) -> None:
    """One that is described twice, in two sections, is two."""
    section = pcapng([])[:28] + interface() + interface() + interface()
    first, third = (struct.pack("<5I", n, 0, 1, 60, 60) + b"a" * 60 for n in (0, 2))
    data = section + b"".join(block("<", 6, each) for each in (first, third, third))
    for copies, count in ((1, 2), (2, 4)):
        (tmp_path / "a.pcapng").write_bytes(data * copies)
        assert read_records(tmp_path / "a.pcapng").interfaces == count


def test_interfaces_of_cooked_captures_are_counted(tmp_path: Path) -> None:
    """SLL2 has the number of an interface after four bytes; SLL has none."""
    packets = [
        (n, bytes(4) + struct.pack(">I", number) + bytes(60))
        for n, number in enumerate((3, 700, 3))
    ]
    for link, count in ((276, 2), (113, 1)):
        (tmp_path / "a.pcap").write_bytes(pcap(packets, link=link))
        assert read_records(tmp_path / "a.pcap").interfaces == count


def test_a_file_that_ends_within_its_first_record_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(GOOD[:60])
    with pytest.raises(ConfigError, match="packet 1 is truncated, got 20 of its 60 bytes; copy"):
        read_records(tmp_path / "a.pcap")


@settings(max_examples=150)
@given(st.data())
def test_any_damage_is_an_error_or_other_packets(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(data.draw(st.sampled_from([pcap(PACKETS[:2]), pcapng(PACKETS[:2])])))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    del whole[data.draw(st.integers(0, len(whole))) :]
    with suppress(ConfigError):
        packets = read(tmp_path_factory.getbasetemp() / "damaged.pcap", bytes(whole))
        assert sum(len(packet) for _, packet in packets) <= len(whole)


def test_records_are_as_libpcap_has_them() -> None:
    assert len(HEADER) == 24
    assert record(1_000_000_002, b"xy") == struct.pack("<4I", 1, 2, 2, 2) + b"xy"


def old_packet(stamp_us: int, data: bytes, *, interface: int = 0) -> bytes:
    """Return a packet block of pcapng's first draft, which tcpdump and Wireshark once wrote."""
    head = struct.pack("<HHIIII", interface, 7, 0, stamp_us, len(data), len(data))
    return block("<", 2, head + data)


def interface(*, link: int = 1, offset_s: int | None = None) -> bytes:
    option = b"" if offset_s is None else struct.pack("<HHq", 14, 8, offset_s)
    return block("<", 1, struct.pack("<HHI", link, 0, 0) + option)


def test_an_interfaces_offset_of_time_counts(tmp_path: Path) -> None:
    """Two interfaces of a capture; the second one's clock began at 3 s."""
    packet = struct.pack("<5I", 1, 0, 500_000, 60, 60) + b"b" * 60
    first = struct.pack("<5I", 0, 0, 1_000_000, 60, 60) + b"a" * 60
    data = pcapng([])[:28] + interface() + interface(offset_s=3)
    data += block("<", 6, first) + block("<", 6, packet)

    assert read(tmp_path / "a.pcapng", data) == [(10**9, b"a" * 60), (35 * 10**8, b"b" * 60)]


def test_blocks_of_the_first_draft_are_read(tmp_path: Path) -> None:
    data = pcapng([])[:28] + interface() + old_packet(5, b"a" * 60) + old_packet(6, b"b" * 61)

    assert read(tmp_path / "a.pcapng", data) == [(5000, b"a" * 60), (6000, b"b" * 61)]


def test_records_may_be_cut_long_and_out_of_order(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    kept = struct.pack("<4I", 0, 5, 40, 65226) + b"x" * 40
    path.write_bytes(pcap([(9, b"y" * 60)], link=101) + kept)

    found = read_records(path)

    assert found.stamps_ns.tolist() == [5, 9]
    assert found.sizes.tolist() == [65226, 60]
    assert found.lengths.tolist() == [40, 60]
    assert found.links.tolist() == [101, 101]
    assert found.packet(0) == b"x" * 40
