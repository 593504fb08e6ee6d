"""Table entries that make a switch forward as `p4/forward.p4` does: routes, ECMP groups, ECN."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping

import finsy as fy
import networkx as nx

from ringleaf.errors import ConfigError
from ringleaf.headers import PRIORITIES
from ringleaf.marking import NEVER, Marking
from ringleaf.topologies.addresses import PREFIX_BITS, ipv4, mac, subnet
from ringleaf.topologies.detours import Pair, turns
from ringleaf.topologies.graph import attachment, hosts, neighbors, port
from ringleaf.topologies.routing import Ports, dealt, routes


def forwarding_entities(
    graph: nx.Graph[str], *, ecmp: bool = True, ecn: Marking = NEVER
) -> dict[str, list[fy.P4TableEntry]]:
    """Return each switch's P4Runtime entities, for `forward.p4` and programs that include it.

    The hosts of another switch share one route, to their prefix, if it is the same for all. The
    route to a host that a detour leads to is a group, so that the table `detours` is looked up.

    Args:
        graph: A topology.
        ecmp: Split flows over equally good ports by their hash; if not, each host is reached
            by one of them (`ringleaf.topologies.routing.dealt`).
        ecn: The rule by which ECN-capable packets are marked.

    Raises:
        TopologyError: If a switch can't reach a host, or an address does not fit.
    """
    threshold = fy.P4TableEntry(
        "ecn_threshold", action=_marking_action(ecn), is_default_action=True
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


def _marking_action(ecn: Marking) -> fy.P4TableAction:
    if ecn.least == ecn.full:
        return fy.P4TableAction("mark_from", threshold=ecn.full)
    return fy.P4TableAction("mark_between", least=ecn.least, full=ecn.full, last=ecn.last_draw)


def tensor_queues(queues: Mapping[tuple[int | None, int], int]) -> list[fy.P4TableEntry]:
    """Return the entries of `p4/tensorexpress.p4`: (job, priority) -> queue, 0 to 7 (most urgent).

    A job is given by RoCEv2's partition key; None stands for all jobs. Packets of other pairs are
    queued by their priority.

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
    """Return an odd 32-bit number that makes a switch split flows unlike other switches."""
    return int.from_bytes(hashlib.sha256(switch.encode()).digest()[:4], "big") | 1


class _Groups:
    """The actions that send from one switch, and the rows of its `ecmp_nexthop`.

    Each group of ports has a run of rows.
    """

    def __init__(self, graph: nx.Graph[str], switch: str) -> None:
        self._forward = {
            number: fy.P4TableAction(
                "forward", port=number, dmac=mac(graph, peer, port(graph, peer, switch))
            )
            for number, peer in neighbors(graph, switch).items()
        }
        self._salt = salt(switch)
        self._bases: dict[Ports, int] = {}
        self._rows = 0

    def base(self, ports: Ports) -> int:
        """Return the first row of a group, which is added if it is new."""
        if ports not in self._bases:
            self._bases[ports] = self._rows
            self._rows += len(ports)
        return self._bases[ports]

    def towards(self, ports: Ports, *, group: bool) -> fy.P4TableAction:
        """Return the action that sends by the only port, or by one of a group."""
        if len(ports) == 1 and not group:
            return self._forward[ports[0]]
        return fy.P4TableAction("ecmp", base=self.base(ports), count=len(ports), salt=self._salt)

    def entries(self) -> Iterator[fy.P4TableEntry]:
        """Yield the rows of all groups that were asked for."""
        for ports, base in self._bases.items():
            for row, number in enumerate(ports, base):
                yield fy.P4TableEntry(
                    "ecmp_nexthop",
                    match=fy.P4TableMatch(nexthop=row),
                    action=self._forward[number],
                )


def _routes(
    graph: nx.Graph[str], switch: str, below: dict[str, list[str]], table: dict[str, Ports]
) -> Iterator[fy.P4TableEntry]:
    """Yield all entries of one switch: its own hosts by address, other hosts by prefix."""
    groups = _Groups(graph, switch)
    turned = turns(graph, switch)
    targets = {dst for _, dst in turned}
    for host in below.get(switch, ()):
        yield _lpm(ipv4(graph, host), 32, groups.towards(table[host], group=False))
    others = [
        entry
        for leaf, members in below.items()
        if leaf != switch
        for entry in _remote(graph, leaf, members, table, groups, targets)
    ]
    detours = [_detour(graph, pair, groups.base((number,))) for pair, number in turned.items()]
    yield from groups.entries()
    yield from detours
    yield from others


def _remote(
    graph: nx.Graph[str],
    leaf: str,
    members: list[str],
    table: dict[str, Ports],
    groups: _Groups,
    turned: Collection[str],
) -> Iterator[fy.P4TableEntry]:
    """Yield routes to another switch's hosts; those `turned`, of detours, get one of their own."""
    ways = dict.fromkeys(table[host] for host in members)
    if len(ways) == 1:
        (ports,) = ways
        yield _lpm(subnet(leaf), PREFIX_BITS, groups.towards(ports, group=False))
    for host in members:
        if len(ways) > 1 or host in turned:
            action = groups.towards(table[host], group=host in turned)
            yield _lpm(ipv4(graph, host), 32, action)


def _detour(graph: nx.Graph[str], pair: Pair, row: int) -> fy.P4TableEntry:
    src, dst = (ipv4(graph, host) for host in pair)
    return fy.P4TableEntry(
        "detours",
        match=fy.P4TableMatch(src=src, dst=dst),
        action=fy.P4TableAction("take_nexthop", row=row),
    )


def _lpm(address: int, prefix_bits: int, action: fy.P4TableAction) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "ipv4_lpm", match=fy.P4TableMatch(dst=(address, prefix_bits)), action=action
    )
