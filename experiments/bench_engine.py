"""What the P4 engine is given to do by `make bench`: packets of 8 hosts at one switch."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import networkx as nx
import numpy as np

from ina.switchml import control, wire
from switches import Program
from switches.bench import Speed, make_switch, measure
from switches.forwarding import forwarding_entities
from topologies import registry
from topologies.addresses import ipv4, mac
from topologies.graph import hosts, port
from topologies.trees import aggregation_tree

PROGRAMS = ("forward", "switchml-64", "switchml-256")
BMV2_PER_S = 11_000
"""What BMv2's simple_switch (-O3, no logging) did with such a program on a like machine."""

_BUILD = Path(__file__).resolve().parents[1] / "p4" / "build"
_HOSTS = 8
_SLOTS = 64
_JOB = 1
_SWITCH = "s0"


def measure_program(name: str, *, seconds: float = 1.0) -> Speed:
    """Packets per second of one program on one core; it sends as many as it receives."""
    graph = registry.build(f"leafspine,leaves=1,spines=1,hosts={_HOSTS}")
    switch = make_switch(Program.load(build_path(name)), ports=graph.degree[_SWITCH])
    switch.write(forwarding_entities(graph)[_SWITCH])
    if name == "forward":
        return measure(switch, list(_unicast(graph)), seconds=seconds)
    lanes = int(name.rpartition("-")[2])
    job = control.Job(_JOB, _SLOTS, lanes=lanes)
    switch.write(control.entities(graph, aggregation_tree(graph, hosts(graph)), job)[_SWITCH])
    return measure(
        switch,
        list(_updates(graph, lanes)),
        number_at=wire.BLOCK_AT,
        number_step=2 * _SLOTS,  # a packet's slot and version are right for every such block
        seconds=seconds,
    )


def build_path(name: str) -> Path:
    """Where p4c's output for a program is."""
    return _BUILD / f"{name}.json"


def _frame(
    graph: nx.Graph[str], host: str, to: tuple[int, int], udp_port: int, body: bytes
) -> tuple[int, bytes]:
    """A UDP packet of a host, and the port of the switch that it comes in by."""
    to_mac, to_address = to
    ethernet = to_mac.to_bytes(6, "big") + mac(graph, host, 1).to_bytes(6, "big") + b"\x08\x00"
    words = (0x4500, 28 + len(body), 0, 0x4000, 64 << 8 | 17, 0)
    source = ipv4(graph, host)
    header = struct.pack("!6HII", *words, source, to_address)
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF  # RFC 1071
    header = header[:10] + struct.pack("!H", checksum) + header[12:]
    udp = struct.pack("!4H", udp_port, udp_port, 8 + len(body), 0)
    return port(graph, _SWITCH, host), ethernet + header + udp + body


def _unicast(graph: nx.Graph[str]) -> Iterator[tuple[int, bytes]]:
    """Every host to every other, RoCEv2's port; payloads lie elsewhere and cost nothing."""
    members = hosts(graph)
    for host in members:
        for peer in members:
            if peer != host:
                to = mac(graph, peer, 1), ipv4(graph, peer)
                yield _frame(graph, host, to, 4791, bytes(16))


def _updates(graph: nx.Graph[str], lanes: int) -> Iterator[tuple[int, bytes]]:
    """Two rounds of all slots, as 8 workers send them."""
    to = wire.group_mac(_JOB), wire.group_address(_JOB)
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
            yield _frame(graph, host, to, wire.udp_port(_JOB), head + body)
