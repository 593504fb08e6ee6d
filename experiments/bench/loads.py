"""The loads that `make bench` gives to the P4 engine: entries and packets for one switch.

Everything is drawn from fixed seeds, so every run, and BMv2 beside it, has the same work.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import finsy as fy
import networkx as nx
import numpy as np

from ringleaf.ethernet import group_mac
from ringleaf.ina.atp import control as atp_control
from ringleaf.ina.atp import wire as atp_wire
from ringleaf.ina.switchml import control, wire
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.shipped import built_program
from ringleaf.topologies import registry
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import hosts, port
from ringleaf.topologies.trees import aggregation_tree

Packet = tuple[int, bytes]
"""A packet: the port at which it arrives, and its bytes."""

ENTRIES = 1000  # in the router's and the filter's table
PACKETS = 4096  # per round of the router and the filter

_HOSTS = 8
_SLOTS = 64
_JOB = 1
_SWITCH = "s0"
_PREFIXES = (8, *[16] * 3, *range(17, 24), *[24] * 12)
"""Prefix lengths, about as often as in the Internet's tables, where /24 is more than half."""


@dataclass(frozen=True, slots=True)
class Load:
    """One program with its entries, and one round of packets; each of them is forwarded.

    A big-endian 32-bit number at byte `number_at` of each packet (-1: none) must grow by
    `number_step` from round to round.
    """

    path: Path
    ports: int
    entities: list[Any]
    packets: list[Packet]
    number_at: int = -1
    number_step: int = 0


def build_path(name: str) -> Path:
    """Return the path of p4c's output for a program."""
    return built_program(name)


def udp_frame(graph: nx.Graph[str], sender: str, receiver: str, size_bytes: int) -> bytes:
    """Return a UDP packet from host to host; `size_bytes` is its frame's length without FCS."""
    to = mac(graph, receiver, 1), ipv4(graph, receiver)
    return _udp(graph, sender, to, body=bytes(i % 251 for i in range(size_bytes - 42)))


def load(name: str) -> Load:
    """Return the load named in `LOADS`."""
    return LOADS[name](name)


def _forward(name: str) -> Load:
    graph = _star()
    packets = [
        (port(graph, _SWITCH, host), _udp(graph, host, (mac(graph, peer, 1), ipv4(graph, peer))))
        for host in hosts(graph)
        for peer in hosts(graph)
        if peer != host
    ]
    return Load(build_path(name), graph.degree[_SWITCH], _routes(graph), packets)


def _switchml(name: str) -> Load:
    """Return the load of SwitchML: two rounds of all slots, as 8 workers send them."""
    graph = _star()
    lanes = int(name.rpartition("-")[2])
    job = control.SwitchmlJob(_JOB, _SLOTS, lanes=lanes)
    tree = aggregation_tree(graph, hosts(graph))
    return Load(
        build_path(name),
        graph.degree[_SWITCH],
        [*_routes(graph), *control.entities(graph, tree, job)[_SWITCH]],
        list(_updates(graph, lanes)),
        number_at=wire.BLOCK_AT,
        number_step=2 * _SLOTS,  # a packet's slot and version are right for every such block
    )


def _atp(name: str) -> Load:
    """Return the load of ATP: two windows of blocks from 8 workers of the server's rack.

    Their results follow. Eight gradients go on as one sum, and one result goes to eight workers.
    """
    graph = _star()
    lanes = int(name.rpartition("-")[2])
    names = tuple(hosts(graph))
    job = atp_control.AtpJob(
        _JOB, names, names[-1:], aggregators=2 * _SLOTS, window=_SLOTS, lanes=lanes
    )
    return Load(
        build_path(name),
        graph.degree[_SWITCH],
        [*_routes(graph), *atp_control.entities(graph, job)[_SWITCH]],
        list(_blocks(graph, lanes)),
        number_at=atp_wire.SEQUENCE_AT,
        number_step=2 * _SLOTS,
    )


def _router(name: str) -> Load:
    rng = random.Random(1)
    prefixes: dict[tuple[int, int], None] = {}
    while len(prefixes) < ENTRIES:
        length = rng.choice(_PREFIXES)
        prefixes[rng.getrandbits(length) << (32 - length), length] = None
    entities: list[Any] = [
        fy.P4TableEntry(
            "routes",
            match=fy.P4TableMatch(dst=prefix),
            action=fy.P4TableAction("route", nexthop=number % 64, port=1 + number % _HOSTS),
        )
        for number, prefix in enumerate(prefixes)
    ]
    for number in range(64):
        action = fy.P4TableAction("rewrite", dmac=0x0200_0000_0000 + number)
        match = fy.P4TableMatch(nexthop=number)
        entities.append(fy.P4TableEntry("neighbors", match=match, action=action))
    for number in range(1, _HOSTS + 1):
        action = fy.P4TableAction("rewrite", smac=0x0600_0000_0000 + number)
        entities.append(fy.P4TableEntry("ports", match=fy.P4TableMatch(port=number), action=action))
    packets = []
    for number in range(PACKETS):
        address, length = rng.choice(list(prefixes))
        destination = address | rng.getrandbits(32 - length)
        packets.append((1 + number % _HOSTS, _frame((1, 2), (rng.getrandbits(32), destination))))
    return Load(build_path(name), _HOSTS, entities, packets)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The values and masks of source, destination, protocol, source port, destination port."""

    values: tuple[int, ...]
    masks: tuple[int, ...]

    def packet(self, rng: random.Random) -> tuple[int, ...]:
        """Return a five-tuple that the rule matches."""
        other = (
            rng.getrandbits(32),
            rng.getrandbits(32),
            rng.choice((6, 17)),
            rng.getrandbits(16),
            rng.getrandbits(16),
        )
        triples = zip(self.values, self.masks, other, strict=True)
        return tuple(value | free & ~mask for value, mask, free in triples)


def _draw_rule(rng: random.Random) -> _Rule:
    """Draw a rule as in firewalls' filters: prefixes, a protocol or any, a port or any."""
    lengths = [rng.choice((0, 8, 16, 24, 28, 32)) for _ in range(2)]
    masks = (
        *(((1 << length) - 1) << (32 - length) for length in lengths),
        rng.choice((0, 0xFF)),
        rng.choice((0, 0, 0, 0xFFFF)),
        rng.choice((0, 0xFFFF, 0xFFFF)),
    )
    wanted = (rng.getrandbits(32), rng.getrandbits(32), rng.choice((6, 17)))
    ports = rng.getrandbits(16), rng.getrandbits(16)
    values = zip((*wanted, *ports), masks, strict=True)
    return _Rule(tuple(value & mask for value, mask in values), masks)


def _acl(name: str) -> Load:
    rng = random.Random(2)
    rules = [_draw_rule(rng) for _ in range(ENTRIES)]
    keys = ("src", "dst", "protocol", "sport", "dport")
    entities = []
    for number, rule in enumerate(rules):
        pairs = zip(keys, rule.values, rule.masks, strict=True)
        match = {key: (value, mask) for key, value, mask in pairs if mask}
        action = fy.P4TableAction("permit", port=1 + number % _HOSTS)
        entities.append(
            fy.P4TableEntry(
                "rules", match=fy.P4TableMatch(match), action=action, priority=ENTRIES - number
            )
        )
    packets = []
    for number in range(PACKETS):
        src, dst, protocol, *ports = rng.choice(rules).packet(rng)
        frame = _frame((1, 2), (src, dst), protocol=protocol, ports=(ports[0], ports[1]))
        packets.append((1 + number % _HOSTS, frame))
    return Load(build_path(name), _HOSTS, entities, packets)


LOADS: dict[str, Callable[[str], Load]] = {
    "forward": _forward,
    "switchml-64": _switchml,
    "switchml-256": _switchml,
    "atp-64": _atp,
    "atp-256": _atp,
    "router": _router,
    "acl": _acl,
}
"""The loads that are measured: a program's name -> the function that makes its load."""


def _star() -> nx.Graph[str]:
    return registry.build(f"leafspine,leaves=1,spines=1,hosts={_HOSTS}")


def _routes(graph: nx.Graph[str]) -> list[Any]:
    return list(forwarding_entities(graph)[_SWITCH])


def _frame(
    macs: tuple[int, int],
    addresses: tuple[int, int],
    *,
    protocol: int = 17,
    ports: tuple[int, int] = (4791, 4791),
    body: bytes = bytes(16),
) -> bytes:
    """Return a UDP packet, or one like it; each pair is (source, destination)."""
    ethernet = macs[1].to_bytes(6, "big") + macs[0].to_bytes(6, "big") + b"\x08\x00"
    words = (0x4500, 28 + len(body), 0, 0x4000, 64 << 8 | protocol, 0)
    header = struct.pack("!6HII", *words, *addresses)
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF  # RFC 1071
    header = header[:10] + struct.pack("!H", checksum) + header[12:]
    return ethernet + header + struct.pack("!4H", *ports, 8 + len(body), 0) + body


def _udp(
    graph: nx.Graph[str],
    host: str,
    to: tuple[int, int],
    udp_port: int = 4791,
    body: bytes = bytes(16),
) -> bytes:
    """Return a host's UDP packet to `to`, a (MAC, address) pair."""
    macs, addresses = (mac(graph, host, 1), to[0]), (ipv4(graph, host), to[1])
    return _frame(macs, addresses, ports=(udp_port, udp_port), body=body)


def _updates(graph: nx.Graph[str], lanes: int) -> Iterator[Packet]:
    to = group_mac(wire.group_address(_JOB)), wire.group_address(_JOB)
    values = np.random.default_rng(1).integers(-1000, 1000, (_HOSTS, lanes))
    bodies: Sequence[bytes] = [row.astype(">i4").tobytes() for row in values]
    for block in range(2 * _SLOTS):
        version, slot = divmod(block, _SLOTS)
        for host, body in zip(hosts(graph), bodies, strict=True):
            head = struct.pack(
                "!BBIHBB",
                wire.UPDATE << 4 | wire.SIZES[lanes],
                _JOB,
                block,
                version << wire.VERSION_SHIFT | slot,
                127,
                0,
            )
            frame = _udp(graph, host, to, wire.udp_port(_JOB), head + body)
            yield port(graph, _SWITCH, host), frame


def _blocks(graph: nx.Graph[str], lanes: int) -> Iterator[Packet]:
    """Yield gradients of all hosts, of which the last one is the server, and then the result."""
    *_, server = hosts(graph)
    to = mac(graph, server, 1), ipv4(graph, server)
    address = atp_wire.group_address(_JOB, 0)
    group = group_mac(address), address
    values = np.random.default_rng(1).integers(-1000, 1000, (_HOSTS, lanes))
    bodies: Sequence[bytes] = [row.astype(">i4").tobytes() for row in values]
    upward, downward = atp_wire.gradient_port(_JOB), atp_wire.parameter_port(_JOB)
    for block in range(2 * _SLOTS):
        for number, (host, body) in enumerate(zip(hosts(graph), bodies, strict=True)):
            head = _atp_header(atp_wire.GRADIENT, lanes, block, number)
            yield port(graph, _SWITCH, host), _udp(graph, host, to, upward, head + body)
        head = _atp_header(atp_wire.PARAMETER, lanes, block, 0)
        frame = _udp(graph, server, group, downward, head + bodies[0])
        yield port(graph, _SWITCH, server), frame


def _atp_header(message: int, lanes: int, block: int, worker: int) -> bytes:
    """Return the header of a block's packet; its aggregator has the block's number."""
    return struct.pack(
        "!BBBBIHHQBB",
        message << 4,
        _JOB,
        0,
        atp_wire.SIZES[lanes],
        block,
        block,
        atp_wire.NO_PROPOSAL,
        1 << worker,
        worker,
        0,
    )
