"""What a switch must be told to forward as `p4/forward.p4` does: routes, ECMP groups, ECN."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import finsy as fy
import networkx as nx

from ringleaf.errors import ConfigError
from ringleaf.headers import PRIORITIES
from topologies.addresses import PREFIX_BITS, ipv4, mac, subnet
from topologies.graph import attachment, hosts, neighbors, port
from topologies.routing import Ports, dealt, routes

MAX_ECN_PACKETS = (1 << 19) - 1
"""Queue depths have 19 bits in v1model."""


def forwarding_entities(
    graph: nx.Graph[str], *, ecmp: bool = True, ecn_packets: int = 0
) -> dict[str, list[fy.P4TableEntry]]:
    """The P4Runtime entities of every switch, for `forward.p4` and all programs that include it.

    The hosts of another switch share one route, to their prefix, if it is the same for all.

    Args:
        graph: A topology.
        ecmp: Split flows over equally good ports by their hash; if not, each host is reached
            by one of them (`topologies.routing.dealt`).
        ecn_packets: Queue depth from which on ECN-capable packets are marked; 0: never.

    Raises:
        ConfigError: If `ecn_packets` is out of range.
        TopologyError: If a switch can't reach a host, or an address does not fit.
    """
    if not 0 <= ecn_packets <= MAX_ECN_PACKETS:
        raise ConfigError(
            f"forwarding_entities: ecn_packets must be 0 to {MAX_ECN_PACKETS}, got {ecn_packets!r}"
        )
    threshold = fy.P4TableEntry(
        "ecn_threshold",
        action=fy.P4TableAction("mark_from", threshold=ecn_packets),
        is_default_action=True,
    )
    below: dict[str, list[str]] = {}  # switch -> its hosts
    for host in hosts(graph):
        below.setdefault(attachment(graph, host), []).append(host)
    tables = routes(graph)
    if not ecmp:
        tables = dealt(graph, tables)
    return {
        switch: [*_routes(graph, switch, below, table), threshold]
        for switch, table in tables.items()
    }


def tensor_queues(queues: Mapping[tuple[int | None, int], int]) -> list[fy.P4TableEntry]:
    """What `p4/tensorexpress.p4` is told: (job, priority) -> queue, 0 to 7, the most urgent.

    A job is RoCEv2's partition key, None all of them. Pairs that are not there are queued by
    their priority.

    Raises:
        ConfigError: If a number is out of range.
    """
    for (job, priority), queue in queues.items():
        if not (0 <= priority < PRIORITIES and 0 <= queue < PRIORITIES):
            raise ConfigError(
                f"tensor_queues: priorities and queues must be 0 to {PRIORITIES - 1}, "
                f"got {priority!r} -> {queue!r} of job {job!r}"
            )
    return [
        fy.P4TableEntry(
            "tensor_queues",
            match=fy.P4TableMatch(
                dscp=(priority << 3, 0b111000), **({} if job is None else {"job": job})
            ),
            priority=1 if job is None else 2,
            action=fy.P4TableAction("use_queue", queue=queue),
        )
        for (job, priority), queue in queues.items()
    ]


def salt(switch: str) -> int:
    """An odd number of 32 bits that makes a switch split flows unlike all others."""
    return int.from_bytes(hashlib.sha256(switch.encode()).digest()[:4], "big") | 1


def _routes(
    graph: nx.Graph[str], switch: str, below: dict[str, list[str]], table: dict[str, Ports]
) -> Iterator[fy.P4TableEntry]:
    """All entries of one switch: a host of its own by its address, the others by prefix."""
    for host in below.get(switch, ()):
        yield _lpm(ipv4(graph, host), 32, _forward(graph, switch, table[host][0]))
    bases: dict[Ports, int] = {}  # ECMP group -> its first row of ecmp_nexthop
    for leaf, members in below.items():
        if leaf == switch:
            continue
        groups = dict.fromkeys(table[host] for host in members)
        for ports in groups:
            if len(ports) > 1 and ports not in bases:
                bases[ports] = sum(map(len, bases))
                yield from _members(graph, switch, ports, bases[ports])
        if len(groups) == 1:
            action = _towards(graph, switch, table[members[0]], bases)
            yield _lpm(subnet(leaf), PREFIX_BITS, action)
        else:
            for host in members:
                action = _towards(graph, switch, table[host], bases)
                yield _lpm(ipv4(graph, host), 32, action)


def _towards(
    graph: nx.Graph[str], switch: str, ports: Ports, bases: dict[Ports, int]
) -> fy.P4TableAction:
    """Send by the only port, or by one of a group."""
    if len(ports) == 1:
        return _forward(graph, switch, ports[0])
    return fy.P4TableAction("ecmp", base=bases[ports], count=len(ports), salt=salt(switch))


def _members(
    graph: nx.Graph[str], switch: str, ports: Ports, base: int
) -> Iterator[fy.P4TableEntry]:
    """The rows of one ECMP group."""
    for row, number in enumerate(ports, base):
        yield fy.P4TableEntry(
            "ecmp_nexthop",
            match=fy.P4TableMatch(nexthop=row),
            action=_forward(graph, switch, number),
        )


def _lpm(address: int, prefix_bits: int, action: fy.P4TableAction) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "ipv4_lpm", match=fy.P4TableMatch(dst=(address, prefix_bits)), action=action
    )


def _forward(graph: nx.Graph[str], switch: str, number: int) -> fy.P4TableAction:
    """Send by a port, to whoever is at its other end."""
    peer = neighbors(graph, switch)[number]
    return fy.P4TableAction(
        "forward", port=number, dmac=mac(graph, peer, port(graph, peer, switch))
    )
