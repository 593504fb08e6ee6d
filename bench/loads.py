"""The loads that `make bench` gives to the P4 engine: entries and packets for one switch.

Everything is drawn from fixed seeds, so every run, and BMv2 beside it, has the same work.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import finsy as fy
import networkx as nx

from ringleaf.core.headers import UDP_PAYLOAD_AT
from ringleaf.core.shipped import built_program
from ringleaf.ina.registry import of_programs
from ringleaf.ina.samples import Packet, SampleRound, star
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.frames import host_frame, udp_frame
from ringleaf.topologies.graph import attachment, hosts, port

ENTRIES = 1000  # in the router's and the filter's table
PACKETS = 4096  # per round of the router and the filter

_HOSTS = 8
_UDP_PORT = 4791
_BODY = bytes(16)
_PREFIXES = (8, *[16] * 3, *range(17, 24), *[24] * 12)
"""Prefix lengths, about as often as in the Internet's tables, where /24 is more than half."""


@dataclass(frozen=True, slots=True)
class ProgramLoad:
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


def sized_frame(graph: nx.Graph[str], sender: str, receiver: str, size_bytes: int) -> bytes:
    """Return a UDP packet from host to host; `size_bytes` is its frame's length without FCS."""
    to = mac(graph, receiver, 1), ipv4(graph, receiver)
    body = bytes(i % 251 for i in range(size_bytes - UDP_PAYLOAD_AT))
    return host_frame(graph, sender, to, _UDP_PORT, body)


def names() -> list[str]:
    """Return the names of the programs that are measured, those of no system first."""
    return list(dict.fromkeys((*PLAIN, *_of_systems())))


def load(name: str) -> ProgramLoad:
    """Return the load of one of the programs that are measured."""
    if name in PLAIN:
        return PLAIN[name](name)
    program, make = _of_systems()[name]
    return _of_round(program, make())


def _of_systems() -> dict[str, tuple[str, Callable[[], SampleRound]]]:
    return of_programs(lambda system: system.rounds())


def _of_round(program: str, found: SampleRound) -> ProgramLoad:
    return ProgramLoad(
        build_path(program),
        found.graph.degree[found.switch],
        [*forwarding_entities(found.graph)[found.switch], *found.entities],
        found.packets,
        found.number_at,
        found.number_step,
    )


def _forward(name: str) -> ProgramLoad:
    graph = star(_HOSTS)
    switch = attachment(graph, hosts(graph)[0])
    packets = []
    for host, peer in permutations(hosts(graph), 2):
        to = mac(graph, peer, 1), ipv4(graph, peer)
        frame = host_frame(graph, host, to, _UDP_PORT, _BODY)
        packets.append((port(graph, switch, host), frame))
    return _of_round(name, SampleRound(graph, switch, [], packets))


def _router(name: str) -> ProgramLoad:
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
        addresses, ports = (rng.getrandbits(32), destination), (_UDP_PORT, _UDP_PORT)
        packets.append((1 + number % _HOSTS, udp_frame((1, 2), addresses, ports, _BODY)))
    return ProgramLoad(build_path(name), _HOSTS, entities, packets)


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


def _acl(name: str) -> ProgramLoad:
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
        frame = udp_frame((1, 2), (src, dst), (ports[0], ports[1]), _BODY, protocol=protocol)
        packets.append((1 + number % _HOSTS, frame))
    return ProgramLoad(build_path(name), _HOSTS, entities, packets)


PLAIN: Mapping[str, Callable[[str], ProgramLoad]] = {
    "forward": _forward,
    "router": _router,
    "acl": _acl,
}
"""The programs of no system that are measured, and the functions that make their loads."""
