"""A capture as cross traffic: which host sends what, when, and to whom.

Hosts stand for the capture's addresses: IP where there is one, else Ethernet. Those are numbered
as they appear, and host i stands for all whose number is i modulo the hosts; a packet between two
that the same host stands for goes to the next host. Times, sizes and DSCP are the capture's.
"""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.ethernet import MIN_FRAME_BYTES
from ringleaf.hosts import cross_traffic
from ringleaf.hosts.agent import HostAgent
from ringleaf.networks.traces.pcap_read import PacketFile, read_packets
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import hosts
from ringleaf.units import PS_PER_NS

Numbers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint8]

_TOGETHER = 1 << 16  # packets whose addresses are read at a time
_KEY_BYTES = 17  # kind, and an address of up to 16 bytes
_FIRST_SOURCE_PORT = 0xC000  # dynamic ports, RFC 6335
_SOURCE_PORTS = 0x4000

# Offsets and types in Ethernet frames.
_TYPE_AT, _IP_AT = 12, 14
_IPV4, _IPV6 = 0x0800, 0x86DD
_KINDS = (
    # kind, EtherType, source and destination, bytes of an address, least frame
    (1, _IPV4, _IP_AT + 12, _IP_AT + 16, 4, _IP_AT + 20),
    (2, _IPV6, _IP_AT + 8, _IP_AT + 24, 16, _IP_AT + 40),
)


def make_agents(
    graph: nx.Graph[str], store: Store, path: Path, *, ring: int, owner: int
) -> list[HostAgent]:
    """Return an agent for each host, which sends its part of a capture.

    Args:
        graph: The topology.
        store: The store that holds the agents.
        path: The capture, pcap or pcapng.
        ring: Completion ring.
        owner: The number of the packets' group.

    Raises:
        ConfigError: If the capture can't be read, or the topology has one host only.
    """
    names = hosts(graph)
    if len(names) < 2:
        raise ConfigError(f"cross_traffic: needs two hosts, got {len(names)}; take more")
    source, rows = timetable(read_packets(path), len(names))
    addresses = [(mac(graph, name, 1), ipv4(graph, name)) for name in names]
    made = []
    for host, own in enumerate(addresses):
        at = cross_traffic.make_cross_traffic(
            store, host=host, ring=ring, own=own, others=addresses, rows=rows[source == host]
        )
        made.append(HostAgent(host, cross_traffic, at, owner=owner))
    return made


def timetable(packets: PacketFile, count: int) -> tuple[Numbers, Numbers]:
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
    stamps_ns = packets.stamps_ns
    rows[:, cross_traffic.DUE_PS] = (stamps_ns - stamps_ns[:1]) * PS_PER_NS
    rows[:, cross_traffic.SIZE_BYTES] = np.maximum(packets.lengths, MIN_FRAME_BYTES)
    rows[:, cross_traffic.HEAD] = target
    rows[:, cross_traffic.SOURCE_PORT] = _FIRST_SOURCE_PORT + _flows(keys) % _SOURCE_PORTS
    return source, rows


def _read(packets: PacketFile, part: slice) -> tuple[Keys, Numbers]:
    """Return source and destination of packets, (2, packets, _KEY_BYTES), and their DSCP."""
    offsets, lengths = packets.offsets[part], packets.lengths[part]
    last = packets.data.size - 1

    def get(at: int, size: int) -> Keys:
        places = np.minimum(offsets[:, None] + np.arange(at, at + size), last)
        return packets.data[places]

    found = np.zeros((2, len(offsets), _KEY_BYTES), np.uint8)
    found[0, :, 1:7], found[1, :, 1:7] = get(6, 6), get(0, 6)
    high, low = get(_TYPE_AT, 2).T.astype(np.int64)
    traffic_class = np.zeros(len(offsets), np.int64)
    for kind, ether_type, source_at, target_at, size, least in _KINDS:
        rows = (high << 8 | low == ether_type) & (lengths >= least)
        for side, at in enumerate((source_at, target_at)):
            found[side, rows, :] = 0
            found[side, rows, 0] = kind
            found[side, rows, 1 : 1 + size] = get(at, size)[rows]
        if ether_type == _IPV4:
            traffic_class[rows] = get(_IP_AT + 1, 1)[rows, 0] & 0xFC
    return found, traffic_class


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
