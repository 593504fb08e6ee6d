"""A capture as cross traffic: which host sends what, when, and to whom.

Hosts stand for the capture's addresses: IP where there is one, also behind VLAN tags, SNAP, labels
of MPLS, PPP and PPPoE, else Ethernet. Those are numbered as they appear, and host i stands for all
whose number is i modulo the hosts; a packet between two that the same host stands for goes to the
next host. Times, sizes and DSCP are the capture's. Sizes are those on the line, also where only the
beginning of packets was kept. Packets without an Ethernet header get one. Frames that no line
carries were captured on the host that sent them, before its card cut them (segmentation offload):
they are cut into packets of the MTU, which are sent together.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Store
from ringleaf.core.ethernet import LONGEST_PACKET, MIN_FRAME_BYTES
from ringleaf.core.units import FOREVER_PS, PS_PER_NS
from ringleaf.errors import ConfigError
from ringleaf.hosts import cross_traffic
from ringleaf.hosts.agent import HostAgent
from ringleaf.networks.traces.link_types import (
    HEADER_BYTES,
    LINKTYPE_ETHERNET,
    PPP_LINKS,
    TYPE_AT,
    link_name,
)
from ringleaf.networks.traces.pcap_read import PacketFile, read_records
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import hosts

Numbers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint8]

_TOGETHER = 1 << 16  # packets whose addresses are read at a time
_KEY_BYTES = 17  # kind, and an address of up to 16 bytes
_FIRST_SOURCE_PORT = 0xC000  # dynamic ports, RFC 6335
_SOURCE_PORTS = 0x4000

_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN = (0x8100, 0x88A8, 0x9100)  # IEEE 802.1Q, 802.1ad, and what came before it
_MPLS = (0x8847, 0x8848)  # RFC 3032; the last label of a packet has a bit set
_TAG_BYTES, _MOST_TAGS = 4, 4  # a label is as long as a VLAN tag
_FIRST_ETHER_TYPE, _SNAP, _SNAP_BYTES = 0x600, b"\xaa\xaa\x03\0\0\0", 8  # IEEE 802.3; RFC 1042
_PPPOE, _PPPOE_BYTES = 0x8864, 8  # RFC 2516, with the two bytes of PPP's protocol
_PPP_TYPES = {0x0021: _IPV4, 0x0057: _IPV6}
_HDLC = 0xFF03  # RFC 1662, section 3.1: address and control, before PPP's protocol
_KINDS = (
    # kind, EtherType, source and destination, bytes of an address, least header
    (1, _IPV4, 12, 16, 4, 20),
    (2, _IPV6, 8, 24, 16, 40),
)
_ETHERNET_BYTES = 14


def make_agents(
    graph: nx.Graph[str], store: Store, path: Path, *, ring: int, owner: int, mtu: int
) -> list[HostAgent]:
    """Return an agent for each host, which sends its part of a capture.

    Args:
        graph: The topology.
        store: The store that holds the agents.
        path: The capture, pcap or pcapng.
        ring: Completion ring.
        owner: The number of the packets' group.
        mtu: Bytes of the packets that frames of a sending card are cut into.

    Raises:
        ConfigError: If the capture can't be read, or the topology has one host only.
    """
    names = hosts(graph)
    if len(names) < 2:
        raise ConfigError(f"cross_traffic: needs two hosts, got {len(names)}; take more")
    packets = read_records(path)
    check_records(packets)
    source, rows = timetable(packets, len(names), mtu)
    addresses = [(mac(graph, name, 1), ipv4(graph, name)) for name in names]
    agents = []
    for host, own in enumerate(addresses):
        at = cross_traffic.make_cross_traffic(
            store, host=host, ring=ring, own=own, others=addresses, rows=rows[source == host]
        )
        agents.append(HostAgent(host, cross_traffic, at, owner=owner))
    return agents


def timetable(packets: PacketFile, count: int, mtu: int) -> tuple[Numbers, Numbers]:
    """Return the sending host of each packet, and all rows, as `count` hosts would send them.

    Rows are (packets, ROW_WORDS), with the destination's host as HEAD, and times since the first
    packet.
    """
    rows = np.zeros((len(packets), cross_traffic.ROW_WORDS), np.int64)
    keys = np.empty((2, len(packets), _KEY_BYTES), np.uint8)
    for first in range(0, len(packets), _TOGETHER):
        part = slice(first, first + _TOGETHER)
        keys[:, part], rows[part, cross_traffic.TRAFFIC_CLASS] = _read(packets, part)
    source, target = (_numbers(keys) % count).reshape(2, -1)
    same = source == target
    target[same] = (target[same] + 1) % count
    after_ns = packets.stamps_ns - packets.stamps_ns[:1]
    rows[:, cross_traffic.DUE_PS] = np.minimum(after_ns, FOREVER_PS // PS_PER_NS) * PS_PER_NS
    header_bytes = np.array([HEADER_BYTES[link] for link in packets.links.tolist()], np.int64)
    rows[:, cross_traffic.SIZE_BYTES] = packets.sizes - header_bytes + _ETHERNET_BYTES
    rows[:, cross_traffic.HEAD] = target
    rows[:, cross_traffic.SOURCE_PORT] = _FIRST_SOURCE_PORT + _flows(keys) % _SOURCE_PORTS
    return _segmented(source, rows, mtu)


def check_records(packets: PacketFile) -> None:
    """Check that a capture can be cross traffic.

    Raises:
        ConfigError: If its packets have a link layer that is not understood.
    """
    for link in np.unique(packets.links).tolist():
        if link not in HEADER_BYTES:
            raise ConfigError(
                f"{packets.path}: link type must be Ethernet, Linux cooked, loopback, PPP, Cisco's "
                f"HDLC or raw IP, got {link}{link_name(link)}; capture on another interface"
            )


def _segmented(source: Numbers, rows: Numbers, mtu: int) -> tuple[Numbers, Numbers]:
    """Cut the frames that are too long for a line, and pad those that are too short."""
    sizes = rows[:, cross_traffic.SIZE_BYTES]
    pieces = np.where(sizes > LONGEST_PACKET, -(-sizes // mtu), 1)
    whole = np.repeat(np.arange(len(rows)), pieces)
    is_last = np.append(np.diff(whole) > 0, np.ones(min(len(whole), 1), bool))
    last = sizes - (pieces - 1) * mtu
    cut = rows[whole]
    cut[:, cross_traffic.SIZE_BYTES] = np.maximum(
        np.where(is_last, last[whole], mtu), MIN_FRAME_BYTES
    )
    return source[whole], cut


def _read(packets: PacketFile, part: slice) -> tuple[Keys, Numbers]:
    """Return source and destination of packets, (2, packets, _KEY_BYTES), and their DSCP."""
    offsets, lengths, links = (
        column[part] for column in (packets.offsets, packets.lengths, packets.links)
    )
    last = packets.data.size - 1

    def get(at: Numbers, size: int) -> Keys:
        places = np.minimum((offsets + at)[:, None] + np.arange(size), last)
        return packets.data[places]

    keys = np.zeros((2, len(offsets), _KEY_BYTES), np.uint8)
    is_ethernet = (links == LINKTYPE_ETHERNET) & (lengths >= 12)
    start = np.zeros(len(offsets), np.int64)
    for side, at in enumerate((6, 0)):
        keys[side, is_ethernet, 1:7] = get(start + at, 6)[is_ethernet]
    ip_at, ether_type = _network_layer(links, lengths, get)
    traffic_class = np.zeros(len(offsets), np.int64)
    for kind, its_type, source_at, target_at, size, least in _KINDS:
        rows = (ether_type == its_type) & (lengths >= ip_at + least)
        for side, at in enumerate((source_at, target_at)):
            keys[side, rows, :] = 0
            keys[side, rows, 0] = kind
            keys[side, rows, 1 : 1 + size] = get(ip_at + at, size)[rows]
        high, low = get(ip_at, 2)[rows].T
        traffic_class[rows] = (low if its_type == _IPV4 else high << 4 | low >> 4) & 0xFC
    return keys, traffic_class


def _network_layer(
    links: Numbers, lengths: Numbers, get: Callable[[Numbers, int], Keys]
) -> tuple[Numbers, Numbers]:
    """Return the place of each packet's network layer, and its EtherType.

    It may be behind VLAN tags, SNAP, PPPoE or labels of MPLS. Where nothing names an EtherType, the
    version of IP does.
    """

    def number(place: Numbers) -> Numbers:
        high, low = get(place, 2).T.astype(np.int64)
        return np.asarray(high << 8 | low)

    at = np.zeros(len(links), np.int64)
    ether_type = np.zeros(len(links), np.int64)
    unnamed = np.zeros(len(links), np.bool_)
    for link in np.unique(links).tolist():
        rows = links == link
        at[rows] = HEADER_BYTES[link]
        if link in PPP_LINKS:
            at[rows & (number(np.zeros_like(at)) == _HDLC)] += 2
            named = number(at - 2)
            for ppp_type, its_type in _PPP_TYPES.items():
                ether_type[rows & (named == ppp_type)] = its_type
        elif link in TYPE_AT:
            ether_type[rows] = number(np.full(len(links), TYPE_AT[link]))[rows]
        else:
            unnamed |= rows
    for _ in range(_MOST_TAGS):
        tagged = np.isin(ether_type, _VLAN) & (lengths >= at + _TAG_BYTES)
        ether_type[tagged] = number(at + 2)[tagged]
        at[tagged] += _TAG_BYTES
    snap = (ether_type < _FIRST_ETHER_TYPE) & (lengths >= at + _SNAP_BYTES)
    snap &= (get(at, len(_SNAP)) == np.frombuffer(_SNAP, np.uint8)).all(axis=1)
    ether_type[snap] = number(at + len(_SNAP))[snap]
    at[snap] += _SNAP_BYTES
    in_session = (ether_type == _PPPOE) & (lengths >= at + _PPPOE_BYTES)
    protocols = number(at + 6)
    for protocol, its_type in _PPP_TYPES.items():
        rows = in_session & (protocols == protocol)
        ether_type[rows] = its_type
        at[rows] += _PPPOE_BYTES
    for _ in range(_MOST_TAGS):
        labelled = np.isin(ether_type, _MPLS) & (lengths >= at + _TAG_BYTES)
        last = labelled & (get(at + 2, 1)[:, 0] & 1 == 1)
        at[labelled] += _TAG_BYTES
        ether_type[last] = 0
        unnamed |= last
    version = get(at, 1)[:, 0] >> 4
    ether_type[unnamed & (version == 4)] = _IPV4
    ether_type[unnamed & (version == 6)] = _IPV6
    return at, ether_type


def _numbers(keys: Keys) -> Numbers:
    """Return the number of each address, by when it appears: sources before destinations."""
    flat = np.ascontiguousarray(keys.transpose(1, 0, 2)).reshape(-1, _KEY_BYTES)
    if not len(flat):
        return np.zeros(0, np.int64)
    whole = flat.view(np.dtype((np.void, _KEY_BYTES)))[:, 0]
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[which].reshape(-1, 2).T.reshape(-1))


def _flows(keys: Keys) -> Numbers:
    """Return a number of each packet's pair of addresses, so that ECMP can tell flows apart."""
    pairs = np.ascontiguousarray(keys.transpose(1, 0, 2)).reshape(-1, 2 * _KEY_BYTES)
    weights = np.arange(1, 2 * _KEY_BYTES + 1) ** 2
    return np.asarray(pairs @ weights, np.int64)
