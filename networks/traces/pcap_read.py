"""Reading packet captures: libpcap's format in all its variants, and pcapng.

A file is mapped, not read, and only the places of its packets are kept: 40 bytes for each. One
that is compressed is unpacked into memory.
`read_packets` demands whole Ethernet packets in order, which a switch can be given, and
`find_packet` one of them. `read_records`
takes what captures of others have: packets of which only the beginning was kept, other link layers,
frames that a network card cut into packets later, and files that end within a packet, as those of a
capture that was killed do.
Source: draft-ietf-opsawg-pcap; draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ringleaf.core import native_types as types
from ringleaf.core.arena import Bytes, Words
from ringleaf.core.compiled import compiled, inline, signed
from ringleaf.core.ethernet import LONGEST_PACKET
from ringleaf.core.files import is_special
from ringleaf.core.packing import packing
from ringleaf.core.units import format_count
from ringleaf.core.unpacking import unpack
from ringleaf.errors import ConfigError
from ringleaf.networks.traces.link_types import (
    HEADER_BYTES,
    LINKTYPE_COOKED_2,
    LINKTYPE_ETHERNET,
    LINKTYPE_LOOPBACK,
    link_name,
)
from ringleaf.networks.traces.pcap_write import NS_PER_S
from ringleaf.networks.traces.pcapng import (
    COLUMNS,
    KEPT,
    LINK,
    LONGEST_RECORD,
    LONGEST_SIZE,
    cut_fcs,
    scan_blocks,
)
from ringleaf.networks.traces.pcapng import MAGIC as PCAPNG

FILE_HEADER_BYTES = 24
RECORD_HEADER_BYTES = 16
_ORDERS = {"little": "<u4", "big": ">u4"}
_HAS_FCS, _FCS_AT = 1 << 26, 28  # of a link type: a bit, and from where on the FCS's 16-bit words
_UNITS_NS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}  # magic -> unit of the second half of a stamp
_FAMILY_BYTES = 4  # before a loopback's packets
MOST_UNPACKED_BYTES = 1 << 30  # of a compressed file, which is held in memory

# Reasons why a scan stopped.
_HEADER_CUT, _PACKET_CUT, _SIZE, _FRACTION = 1, 2, 3, 4
_PROBLEMS = {
    _HEADER_CUT: "is truncated, got {0} of its header's 16 bytes",
    _PACKET_CUT: "is truncated, got {0} of its {1} bytes",
    _SIZE: "must have at most {1} bytes, got {0}; the file may be damaged",
    _FRACTION: "has a time beyond its second, got {0}; the file may be damaged",
}


@dataclass(frozen=True, slots=True)
class PacketFile:
    """The places of a file's packets: index = packet."""

    path: Path
    data: Bytes  # the file
    offsets: Words
    lengths: Words  # bytes in the file
    sizes: Words  # bytes on the line; more than `lengths` if the capture kept the beginning only
    stamps_ns: Words  # not descending, if `read_packets` or `read_records` gave them
    links: Words  # the link layer's type, LINKTYPE_
    _: KW_ONLY
    end: str = ""  # how the file ends within a packet; "" if it does not
    empty: int = 0  # records without a byte that were left out
    interfaces: int = 1  # of which packets are

    def __len__(self) -> int:
        return self.offsets.size

    def packet(self, number: int) -> bytes:
        """Return the bytes of a packet, from 0, as far as the capture kept them."""
        start = self.offsets[number]
        return self.data[start : start + self.lengths[number]].tobytes()


def read_packets(path: Path) -> PacketFile:
    """Find all packets of a capture file, which are whole, of Ethernet, and in order of time.

    Raises:
        ConfigError: If it is none, of another link layer than Ethernet, damaged, truncated, or
            if its packets were cut, are too long for a line, or are out of order.
    """
    packets = find_packets(path)
    _check_order(path, packets.stamps_ns)
    return packets


def find_packets(path: Path) -> PacketFile:
    """Find all packets of a capture file, in whichever order it has them.

    Raises:
        ConfigError: As `read_packets`, but for the order.
    """
    packets = _find_records(path)
    if packets.end:
        raise ConfigError(f"{path}: {packets.end}; copy the file anew")
    _check_whole(packets, range(len(packets)))
    return packets


def find_packet(path: Path, number: int) -> bytes:
    """Return the bytes of a packet of a capture file, counted from 0, whatever the others are.

    Raises:
        ConfigError: If the file is none, is damaged, or has no such packet; or if the packet was
            cut, is too long for a line, or not of Ethernet.
    """
    packets = _find_records(path)
    if number >= len(packets):
        end = f"; {packets.end}" if packets.end else ""
        valid = f"packets 0 to {len(packets) - 1}" if len(packets) else "no packet"
        raise ConfigError(f"{path}: has {valid}, got {number}{end}")
    _check_whole(packets, range(number, number + 1), first=0)
    return packets.packet(number)


def _check_whole(packets: PacketFile, numbers: range, first: int = 1) -> None:
    """Check that packets of these numbers are whole, and of Ethernet; errors count from `first`."""
    part = slice(numbers.start, numbers.stop)
    for wrong, message in (
        (packets.links != LINKTYPE_ETHERNET, _wrong_link),
        (packets.sizes < 1, _empty),
        (packets.lengths != packets.sizes, _cut),
        (packets.sizes > LONGEST_PACKET, _too_long),
    ):
        if wrong[part].any():
            number = numbers.start + int(np.argmax(wrong[part]))
            raise ConfigError(f"{packets.path}: packet {number + first} {message(packets, number)}")


def read_records(path: Path) -> PacketFile:
    """Find all packets of a capture file, cut or whole, of any link layer, in order of time.

    Of a file that ends within a packet, all before that one are found, as tcpdump does. Records
    without a byte are no packets. A packet's size is the one on the line, also where the file has
    more bytes of it (trailers of cards and of capturing hosts).

    Raises:
        ConfigError: If it is none, damaged, or ends within its first packet.
    """
    packets = _find_records(path)
    if packets.end and not len(packets):
        raise ConfigError(f"{path}: {packets.end}; copy the file anew")
    sizes = np.where(packets.sizes > 0, packets.sizes, packets.lengths)
    order = np.argsort(packets.stamps_ns, kind="stable")
    order = order[sizes[order] > 0]
    lengths = np.minimum(packets.lengths, sizes)
    columns = (packets.offsets, lengths, sizes, packets.stamps_ns, packets.links)
    return PacketFile(
        path,
        packets.data,
        *(column[order] for column in columns),
        end=packets.end,
        empty=len(packets) - len(order),
        interfaces=packets.interfaces,
    )


def _find_records(path: Path) -> PacketFile:
    data = _map(path)
    magic = int.from_bytes(data[:4].tobytes(), "little")
    rows, end, interfaces = (scan_blocks if magic == PCAPNG else _scan_pcap)(path, data)
    _take_for_ethernet(data, rows)
    columns = (np.ascontiguousarray(column) for column in rows.T)
    return PacketFile(path, data, *columns, end=end, interfaces=interfaces)


def _take_for_ethernet(data: Bytes, rows: Words) -> None:
    """Give frames the link type of Ethernet where BMv2 has written them as a loopback's.

    Its `--use-files` does so. A loopback's packets begin with the number of a family, 4 bytes of
    either order, and IP; if none of a file does, they are frames.
    Source: behavioral-model `src/bm_sim/pcap_file.cpp`, `PcapFileOut`.
    """
    loopback = np.flatnonzero(rows[:, LINK] == LINKTYPE_LOOPBACK)
    starts = rows[loopback[rows[loopback, KEPT] > _FAMILY_BYTES], 0]
    heads = data[starts[:, None] + np.arange(_FAMILY_BYTES + 1)]
    family, version = heads[:, :_FAMILY_BYTES], heads[:, _FAMILY_BYTES] >> 4
    is_small = np.count_nonzero(family[:, [0, -1]], axis=1) == 1
    if not (is_small & ~family[:, 1:-1].any(axis=1) & np.isin(version, (4, 6))).any():
        rows[loopback, LINK] = LINKTYPE_ETHERNET


def _wrong_link(packets: PacketFile, number: int) -> str:
    link = int(packets.links[number])
    return (
        f"must have link type {LINKTYPE_ETHERNET} (Ethernet), got {link}{link_name(link)}; capture "
        "on an Ethernet interface"
    )


def _empty(packets: PacketFile, number: int) -> str:
    return f"must have a byte on the line, got {packets.sizes[number]}; filter such records out"


def _cut(packets: PacketFile, number: int) -> str:
    if packets.lengths[number] > packets.sizes[number]:
        return (
            f"must be as long as on the line, got {packets.lengths[number]} of "
            f"{format_count(packets.sizes[number], 'byte')}; capture without trailers"
        )
    return (
        f"was cut when captured, got {packets.lengths[number]} of "
        f"{format_count(packets.sizes[number], 'byte')}; capture without a snap length"
    )


def _too_long(packets: PacketFile, number: int) -> str:
    return (
        f"must have at most {LONGEST_PACKET} bytes, got {packets.sizes[number]}; the sending "
        "host's card cuts such frames (segmentation offload): switch it off (ethtool -K DEV tso "
        "off gso off gro off), or capture elsewhere"
    )


def _map(path: Path) -> Bytes:
    try:
        if is_special(path):
            raise ConfigError(f"{path}: must be a plain file, got a pipe; write its bytes to one")
        with path.open("rb") as file:
            head = file.read(FILE_HEADER_BYTES)
        if packing(head):
            data = np.frombuffer(unpack(path, str(path), MOST_UNPACKED_BYTES), np.uint8)
        else:  # private pages that could be written: compiled code has one type for arrays
            data = (
                np.asarray(np.memmap(path, np.uint8, mode="c")) if head else np.zeros(0, np.uint8)
            )
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from error
    if data.size < FILE_HEADER_BYTES:
        raise ConfigError(
            f"{path}: not a packet capture, got {format_count(data.size, 'byte')}; "
            f"a pcap file has a header of {FILE_HEADER_BYTES}"
        )
    return data


def _scan_pcap(path: Path, data: Bytes) -> tuple[Words, str, int]:
    """Return the rows of all packets, how the file ends within one, and the interfaces in use."""
    order = _byte_order(path, data)
    magic, link_type = data[:FILE_HEADER_BYTES].view(_ORDERS[order])[[0, 5]].tolist()
    most = (data.size - FILE_HEADER_BYTES) // RECORD_HEADER_BYTES
    rows = np.empty(COLUMNS * most, np.int64)  # untouched pages cost nothing
    problem = np.zeros(3, np.int64)
    link = link_type & 0xFFFF
    count = _scan(data, order == "big", _UNITS_NS[magic], link, rows, problem)
    kind, *values = problem.tolist()
    end = f"packet {count + 1} {_PROBLEMS[kind].format(*values)}" if kind else ""
    if kind in (_SIZE, _FRACTION):
        raise ConfigError(f"{path}: {end}")
    packets = rows[: COLUMNS * count].reshape(count, COLUMNS).copy()
    if link_type & _HAS_FCS:
        cut_fcs(packets, np.full(count, link_type >> _FCS_AT << 1))
    interfaces = 1
    if link == LINKTYPE_COOKED_2:
        interfaces = len(np.unique(_interfaces(data, packets)))
    return packets, end, interfaces


def _interfaces(data: Bytes, packets: Words) -> Words:
    """Return the number of the interface of each packet of a cooked capture that has its header."""
    starts = packets[packets[:, 1] >= HEADER_BYTES[LINKTYPE_COOKED_2], 0]
    return np.asarray(data[starts[:, None] + np.arange(4, 8)] @ (1 << np.arange(24, -1, -8)))


def _byte_order(path: Path, data: Bytes) -> str:
    for order, kind in _ORDERS.items():
        if int(data[:4].view(kind)[0]) in _UNITS_NS:
            return order
    raise ConfigError(
        f"{path}: not a packet capture, got magic {data[:4].tobytes().hex()}; pcap and pcapng are "
        "understood, which editcap makes of others"
    )


@inline
def _number(data: Bytes, at: int, big: bool) -> int:
    """Return the 32-bit number at an offset."""
    value = 0
    for i in range(4):
        value |= signed(data[at + i]) << (8 * (3 - i) if big else 8 * i)
    return value


@inline
def _check(kept: int, whole: int, left: int, fraction: int, unit_ns: int, problem: Words) -> int:
    """Return the problem of a packet, or 0."""
    problem[1], problem[2] = kept, whole
    if fraction * unit_ns > NS_PER_S:  # programs that round it write a whole second, too
        problem[1] = fraction
        return _FRACTION
    if kept > LONGEST_RECORD or whole > LONGEST_SIZE:
        is_kept = kept > LONGEST_RECORD
        problem[1], problem[2] = (kept, LONGEST_RECORD) if is_kept else (whole, LONGEST_SIZE)
        return _SIZE
    if kept > left:
        problem[1] = left
        return _PACKET_CUT
    return 0


@compiled(
    types.int64(
        types.uint8[::1],
        types.boolean,
        types.int64,
        types.int64,
        types.int64[::1],
        types.int64[::1],
    )
)
def _scan(data: Bytes, big: bool, unit_ns: int, link: int, rows: Words, problem: Words) -> int:
    """Fill rows (offset, length, size, stamp in ns, link); return the number of good packets.

    `problem` gets the kind and values of the first bad one.
    """
    at = FILE_HEADER_BYTES
    count = 0
    while at < data.size:
        if data.size - at < RECORD_HEADER_BYTES:
            problem[0], problem[1] = _HEADER_CUT, data.size - at
            return count
        seconds, fraction = _number(data, at, big), _number(data, at + 4, big)
        kept, whole = _number(data, at + 8, big), _number(data, at + 12, big)
        at += RECORD_HEADER_BYTES
        problem[0] = _check(kept, whole, data.size - at, fraction, unit_ns, problem)
        if problem[0]:
            return count
        row = COLUMNS * count
        rows[row], rows[row + 1], rows[row + 2] = at, kept, whole
        rows[row + 3], rows[row + 4] = seconds * NS_PER_S + fraction * unit_ns, link
        at += kept
        count += 1
    return count


def _check_order(path: Path, stamps_ns: npt.NDArray[np.int64]) -> None:
    earlier = np.flatnonzero(np.diff(stamps_ns) < 0)
    if earlier.size:
        number = int(earlier[0]) + 1
        late_ns = int(stamps_ns[number - 1] - stamps_ns[number])
        raise ConfigError(
            f"{path}: packets must be in order of time, got packet {number + 1} {late_ns} ns "
            "before the one it follows; sort them with reordercap"
        )
