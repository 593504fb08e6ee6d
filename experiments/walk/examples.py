"""A packet worth following through each of our own programs, with its switch's entries.

Entries are those that our control planes write; packets, those that our hosts send.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import networkx as nx

from ringleaf.errors import ConfigError
from ringleaf.ethernet import group_mac
from ringleaf.ina.atp import control as atp_control
from ringleaf.ina.atp import wire as atp_wire
from ringleaf.ina.switchml import control, wire
from ringleaf.networks.forwarding import forwarding_entities, tensor_queues
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import attachment, hosts, neighbors, port
from ringleaf.topologies.registry import build
from ringleaf.topologies.trees import aggregation_tree

ECN_CAPABLE = 2
ROCE_PORT = 4791
SEND_ONLY = 4  # RoCEv2's opcode, reliable connection


@dataclass(frozen=True)
class Example:
    """A packet to follow, and its switch's state.

    `before` are packets that the switch has already seen, each (port, bytes).
    """

    story: str
    entities: list[Any]
    before: list[tuple[int, bytes]]
    port: int
    data: bytes


def example(program: str) -> Example:
    """Return the example of one of our programs.

    Raises:
        ConfigError: If it has none.
    """
    if program not in EXAMPLES:
        raise ConfigError(
            f"trace: there are examples for {', '.join(EXAMPLES)}, got {program!r}; "
            "give --packet and --entries"
        )
    return EXAMPLES[program]()


def _forward() -> Example:
    """Return a packet of h0 to a host below another leaf, where there are two ways up."""
    graph = build("leafspine,leaves=2,spines=2,hosts=2")
    source, target = hosts(graph)[0], hosts(graph)[-1]
    leaf = attachment(graph, source)
    data = _udp(graph, source, ipv4(graph, target), _router(graph, source), ROCE_PORT, bytes(16))
    return Example(
        f"{leaf} has two ways to {target}: watch the hash choose one",
        forwarding_entities(graph)[leaf],
        [],
        port(graph, leaf, source),
        data,
    )


def _switchml(lanes: int) -> Example:
    """Return the last of three workers' updates, which completes slot 0's sum."""
    graph = build("leafspine,leaves=1,spines=1,hosts=3")
    workers = hosts(graph)[:3]
    root = attachment(graph, workers[0])
    job = control.SwitchmlJob(1, slots=4, lanes=lanes)
    tree = aggregation_tree(graph, workers)
    updates = [
        (port(graph, root, worker), _update(graph, worker, job, rank))
        for rank, worker in enumerate(workers)
    ]
    last_port, last = updates[-1]
    return Example(
        f"{root} has the updates of {len(workers) - 1} workers; this one completes the sum",
        [*control.entities(graph, tree, job)[root], *forwarding_entities(graph)[root]],
        updates[:-1],
        last_port,
        last,
    )


def _update(graph: nx.Graph[str], worker: str, job: control.SwitchmlJob, rank: int) -> bytes:
    values = [(lane + 1) * 10**rank for lane in range(job.lanes)]
    first = wire.UPDATE << 4 | wire.SIZES[job.lanes]
    header = struct.pack(">BBIHBB", first, job.number, 0, 0, 127 + rank, 0)
    body = header + struct.pack(f">{job.lanes}I", *values)
    group = wire.group_address(job.number)
    udp_port = wire.udp_port(job.number)
    return _udp(graph, worker, group, group_mac(group), udp_port, body)


def _atp(lanes: int) -> Example:
    """Return the last of three workers' gradients, which takes block 0's sum to the server."""
    graph = build("leafspine,leaves=1,spines=1,hosts=4")
    *workers, server = hosts(graph)
    rack = attachment(graph, server)
    job = atp_control.AtpJob(1, tuple(workers), (server,), aggregators=64, window=8, lanes=lanes)
    gradients = [
        (port(graph, rack, worker), _gradient(graph, worker, job, number))
        for number, worker in enumerate(workers)
    ]
    last_port, last = gradients[-1]
    return Example(
        f"{rack} has the gradients of {len(workers) - 1} workers; this one completes the sum, "
        f"which goes to {server}",
        [*atp_control.entities(graph, job)[rack], *forwarding_entities(graph)[rack]],
        gradients[:-1],
        last_port,
        last,
    )


def _gradient(graph: nx.Graph[str], worker: str, job: atp_control.AtpJob, number: int) -> bytes:
    values = [(lane + 1) * 10**number for lane in range(job.lanes)]
    (aggregator, *_) = atp_control.first_aggregators(job)
    first, size = atp_wire.GRADIENT << 4, atp_wire.SIZES[job.lanes]
    numbers = (first, job.number, 0, size, 0, aggregator, 0, 1 << number, number, 0)
    body = struct.pack(f">BBBBIHHQBB{job.lanes}I", *numbers, *values)
    to, udp_port = ipv4(graph, job.servers[0]), atp_wire.gradient_port(job.number)
    return _udp(graph, worker, to, _router(graph, worker), udp_port, body)


def _tensorexpress() -> Example:
    """Return a packet of a tensor of priority 2, whose job has priority over all others."""
    graph = build("leafspine,leaves=2,spines=1,hosts=2")
    source, target = hosts(graph)[0], hosts(graph)[-1]
    leaf = attachment(graph, source)
    job, priority, queue = 5, 2, 6
    body = struct.pack(">BBHII", SEND_ONLY, 0, 0x8000 | job, 1, 0)
    data = _udp(
        *(graph, source, ipv4(graph, target), _router(graph, source), ROCE_PORT, body),
        tos=priority << 5 | ECN_CAPABLE,
    )
    told = tensor_queues({(job, priority): queue, (None, priority): priority})
    return Example(
        f"job {job}'s tensors of priority {priority} go by queue {queue}, others' by {priority}",
        [*told, *forwarding_entities(graph)[leaf]],
        [],
        port(graph, leaf, source),
        data,
    )


def _router(graph: nx.Graph[str], host: str) -> int:
    """Return the MAC address that a host sends to: its switch's."""
    peer = neighbors(graph, host)[1]
    return mac(graph, peer, port(graph, peer, host))


def _udp(
    graph: nx.Graph[str],
    host: str,
    to: int,
    to_mac: int,
    udp_port: int,
    body: bytes,
    *,
    tos: int = ECN_CAPABLE,
) -> bytes:
    """Return a frame of a host over UDP, between equal ports."""
    length = 28 + len(body)
    source = ipv4(graph, host)
    ip = struct.pack(">BBHHHBBHII", 0x45, tos, length, 1, 0x4000, 64, 17, 0, source, to)
    ip = ip[:10] + struct.pack(">H", _checksum(ip)) + ip[12:]
    ethernet = to_mac.to_bytes(6, "big") + mac(graph, host, 1).to_bytes(6, "big") + b"\x08\x00"
    return ethernet + ip + struct.pack(">HHHH", udp_port, udp_port, 8 + len(body), 0) + body


def _checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


EXAMPLES: dict[str, Callable[[], Example]] = {
    "forward": _forward,
    "switchml-64": partial(_switchml, 64),
    "switchml-256": partial(_switchml, 256),
    "atp-64": partial(_atp, 64),
    "atp-256": partial(_atp, 256),
    "atp-switchml-64": partial(_atp, 64),
    "atp-switchml-256": partial(_atp, 256),
    "tensorexpress": _tensorexpress,
}
