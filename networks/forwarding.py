"""Table entries that make a switch forward as `p4/forward.p4` does: routes, ECMP groups, ECN."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import invert, neg, pos
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Fields, Words
from ringleaf.core.headers import PRIORITIES
from ringleaf.core.marking import NEVER, Marking
from ringleaf.errors import ConfigError
from ringleaf.networks.adaptive import adaptive_rows
from ringleaf.networks.options import ADAPTIVE_PROGRAM
from ringleaf.switches.engine.updates import DELETE, INSERT, MODIFY
from ringleaf.switches.p4runtime.table_rows import Call, Item, TableRows, entities_of
from ringleaf.topologies.addresses import PREFIX_BITS, has_own, ipv4, mac, subnet
from ringleaf.topologies.arrays import SwitchArrays
from ringleaf.topologies.detours import Pair, turns
from ringleaf.topologies.graph import index, link, neighbors, port, switches
from ringleaf.topologies.route_table import Ports, PortSets, RouteTable, renumbered
from ringleaf.topologies.routing import dealt, routes

if TYPE_CHECKING:
    import finsy as fy

FORWARDING_TABLES = ("ipv4_lpm", "ecmp_nexthop", "detours", "ecn_threshold")
FORWARD, ECMP = 0, 1
VERBS: Mapping[str, Callable[[Any], Any]] = {DELETE: neg, MODIFY: invert, INSERT: pos}
TELEMETRY_PROGRAM = "hpcc"
CALLS = (("forward", ("port", "dmac")), ("ecmp", ("base", "count", "salt")))
"""The actions of routes, with their parameters."""


def forwarding_entities(
    graph: nx.Graph[str],
    *,
    ecmp: bool = True,
    ecn: Marking = NEVER,
    table: RouteTable | None = None,
) -> dict[str, list[fy.P4TableEntry]]:
    """Return each switch's P4Runtime entities, for `forward.p4` and programs that include it.

    Arguments and errors are those of `forwarding_rows`.
    """
    rows = forwarding_rows(graph, ecmp=ecmp, ecn=ecn, table=table)
    return {switch: list(entities_of(items)) for switch, items in rows.items()}


def forwarding_rows(
    graph: nx.Graph[str],
    *,
    ecmp: bool = True,
    ecn: Marking = NEVER,
    table: RouteTable | None = None,
    only: Collection[str] | None = None,
) -> dict[str, list[Item]]:
    """Return the items to write to each switch, the entities of most as rows (`TableRows`).

    The hosts of another switch share one route, to their prefix, if it is the same for all, and
    they have no addresses of their own. The route to a host that a detour leads to is a group, so
    that the table `detours` is looked up.

    Args:
        graph: A topology.
        ecmp: Split flows over equally good ports by their hash; if not, each host is reached
            by one of them (`ringleaf.topologies.routing.dealt`).
        ecn: The rule by which ECN-capable packets are marked.
        table: The graph's `routes`, if the caller has them.
        only: The switches that are wanted; None: all.

    Raises:
        TopologyError: If a switch can't reach a host, or an address does not fit.
    """
    return Forwarding(graph, ecmp=ecmp, ecn=ecn).rows(table, only)


class Forwarding:
    """Makes the items of a topology's switches, again and again as routes change.

    Arguments are those of `forwarding_rows`.
    """

    def __init__(self, graph: nx.Graph[str], *, ecmp: bool, ecn: Marking) -> None:
        self.graph = graph
        self._ecmp = ecmp
        self._threshold = _threshold(ecn)
        self._places: _Places | None = None
        self._around: dict[str, _Surroundings] = {}

    def rows(
        self, table: RouteTable | None = None, only: Collection[str] | None = None
    ) -> dict[str, list[Item]]:
        """Return the items by switch; errors are those of `forwarding_rows`."""
        ways = routes(self.graph) if table is None else table
        if not self._ecmp:
            ways = dealt(self.graph, ways)
        if self._places is None:
            self._places = _Places.of(self.graph, ways.arrays)
        names = ways if only is None else only
        return {name: [*self._routes(name, self._places, ways), self._threshold] for name in names}

    def _routes(self, switch: str, places: _Places, ways: RouteTable) -> Iterator[TableRows]:
        """Yield all rows of one switch: its own hosts by address, other hosts by prefix."""
        around = self._around.get(switch)
        if around is None:
            around = self._around[switch] = _Surroundings.of(
                self.graph, switch, places, ways.arrays
            )
        groups = _Groups(around.dmac, around.salt)
        turned = turns(self.graph, switch)
        port_sets = ways.port_sets(switch)
        targets = np.zeros(len(places.order), bool)
        targets[[index(dst) for _, dst in turned]] = True
        own = _own(around, port_sets, places)
        remote = _remote(around.others, port_sets, places, targets)
        hosts = _lpm(own.followed_by(remote), port_sets.sets, groups)
        detours = _detours(self.graph, turned, groups)
        yield groups.rows()
        yield detours
        yield hosts


def route_updates(before: Sequence[Item], after: Sequence[Item]) -> list[fy.P4TableEntry]:
    """Return the updates, with finsy's verbs, by which a switch's routes become others."""
    changes = route_changes(by_match(before), by_match(after))
    return [VERBS[verb](_entity(item, content)) for verb, item, content in changes]


Written = Mapping[tuple[object, ...], tuple[Item, Any]]
"""Entries by what they match: the rows that each is of and its content; or itself, twice."""


def by_match(items: Iterable[Item]) -> Written:
    """Return each entry's rows and content, or the entity itself twice, by what it matches."""
    written: dict[tuple[object, ...], tuple[Item, Any]] = {}
    for item in items:
        if isinstance(item, TableRows):
            written |= {(item.table, *each[:2]): (item, each) for each in item.contents()}
        else:
            written[item.table_id, *sorted((item.match or {}).items())] = item, item
    return written


def route_changes(old: Written, new: Written) -> list[tuple[str, Item, Any]]:
    """Return the changes by which a switch's routes become others.

    Each has its verb, and the rows and the content, or the entity, that it is of.
    """
    return [
        *((DELETE, *each) for key, each in old.items() if key not in new),
        *((MODIFY, *each) for key, each in new.items() if key in old and each[1] != old[key][1]),
        *((INSERT, *each) for key, each in new.items() if key not in old),
    ]


def _entity(item: Item, content: Any) -> fy.P4TableEntry:
    return item.entity(content) if isinstance(item, TableRows) else item


def _threshold(ecn: Marking) -> TableRows:
    """Return the row by which packets are marked: the default action of a table without keys."""
    call: Call = ("mark_between", ("least", "full", "last"))
    arguments: tuple[int, ...] = (ecn.least, ecn.full, ecn.last_draw)
    if ecn.least == ecn.full:
        call, arguments = ("mark_from", ("threshold",)), (ecn.full,)
    return TableRows(
        "ecn_threshold", {}, (call,), np.zeros(1, np.int64), np.array([arguments], np.uint64)
    )


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
    import finsy as fy

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


def port_rate(number: int, rate_bps: int) -> fy.P4TableEntry:
    """Return the entry of `p4/hpcc.p4` that says how fast a port sends."""
    import finsy as fy

    rate = fy.P4TableAction("set_rate", kbps=rate_bps // 1000)
    return fy.P4TableEntry("port_rates", match=fy.P4TableMatch(port=number), action=rate)


def port_rates(graph: nx.Graph[str], switch: str) -> list[fy.P4TableEntry]:
    """Return the entries of `p4/hpcc.p4` that say how fast a switch's ports send."""
    return [
        port_rate(number, link(graph, switch, peer).rate_bps)
        for number, peer in neighbors(graph, switch).items()
    ]


def program_items(program: str, graph: nx.Graph[str]) -> dict[str, Sequence[Item]]:
    """Return what a program needs besides forwarding, by switch."""
    if program == ADAPTIVE_PROGRAM:
        return dict(adaptive_rows(graph))
    if program == TELEMETRY_PROGRAM:
        return {switch: port_rates(graph, switch) for switch in switches(graph)}
    return dict.fromkeys(switches(graph), ())


def salt(switch: str) -> int:
    """Return an odd 32-bit number that makes a switch split flows unlike other switches."""
    return int.from_bytes(hashlib.sha256(switch.encode()).digest()[:4], "big") | 1


@dataclass(frozen=True, slots=True)
class _Places:
    """The hosts' addresses, and their order in a switch's table: by leaf, then by rank.

    Attributes:
        address: (hosts,) IPv4 addresses.
        subnet: (leaves,) the prefix of each leaf's hosts.
        order: (hosts,) ranks, leaf by leaf.
        leaf: (hosts,) the leaf of each rank.
        first: (leaves,) the place in `order` of each leaf's first host.
        has_prefixes: Whether the hosts of a leaf share its prefix.
    """

    address: Fields
    subnet: Fields
    order: Words
    leaf: Words
    first: Words
    has_prefixes: bool

    @classmethod
    def of(cls, graph: nx.Graph[str], arrays: SwitchArrays) -> _Places:
        """Return the places of all hosts of a topology."""
        order = np.argsort(arrays.leaf, kind="stable")
        counts = np.bincount(arrays.leaf, minlength=len(arrays.leaves))
        return cls(
            np.array([ipv4(graph, host) for host in arrays.hosts], np.uint64),
            np.array([subnet(arrays.switches[leaf]) for leaf in arrays.leaves], np.uint64),
            order,
            arrays.leaf,
            np.cumsum(counts) - counts,
            not has_own(graph),
        )


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """The part of a switch's items that is the same for all routes.

    Attributes:
        dmac: By port, the address of the interface at the other end.
        salt: The number that makes it split flows unlike other switches.
        ranks: Its own hosts, and `others` those of other switches, in their order.
        whole: (own hosts,) the length of their prefixes.
    """

    dmac: Mapping[int, int]
    salt: int
    ranks: Words
    others: Words
    whole: Fields

    @classmethod
    def of(
        cls, graph: nx.Graph[str], switch: str, places: _Places, arrays: SwitchArrays
    ) -> _Surroundings:
        """Return that of a switch."""
        is_own = arrays.at[places.order] == arrays.number[switch]
        dmac = {
            number: mac(graph, peer, port(graph, peer, switch))
            for number, peer in neighbors(graph, switch).items()
        }
        ranks = places.order[is_own]
        whole = np.full(len(ranks), 32, np.uint64)
        return cls(dmac, salt(switch), ranks, places.order[~is_own], whole)


class _Groups:
    """The actions that send from one switch, and the rows of its `ecmp_nexthop`.

    Each group of ports has a run of rows.
    """

    def __init__(self, dmac: Mapping[int, int], salt: int) -> None:
        self._dmac, self._salt = dmac, salt
        self._bases: dict[Ports, int] = {}
        self._rows = 0

    def base(self, ports: Ports) -> int:
        """Return the first row of a group, which is added if it is new."""
        if ports not in self._bases:
            self._bases[ports] = self._rows
            self._rows += len(ports)
        return self._bases[ports]

    def towards(self, ports: Ports, *, group: bool) -> tuple[int, int, int, int]:
        """Return the action that sends by the only port, or by one of a group; its arguments."""
        if len(ports) == 1 and not group:
            return FORWARD, ports[0], self._dmac[ports[0]], 0
        return ECMP, self.base(ports), len(ports), self._salt

    def rows(self) -> TableRows:
        """Return the rows of all groups that were asked for."""
        numbers = [number for ports in self._bases for number in ports]
        arguments = [(number, self._dmac[number]) for number in numbers]
        return TableRows(
            "ecmp_nexthop",
            {"nexthop": (np.arange(len(numbers), dtype=np.uint64),)},
            (CALLS[FORWARD],),
            np.zeros(len(numbers), np.int64),
            np.array(arguments, np.uint64).reshape(-1, 2),
        )


class _Prefixes(NamedTuple):
    """Prefixes, the length of each, its set of ports by number, and whether detours lead there."""

    addresses: Fields
    lengths: Fields
    sets: npt.NDArray[np.int32]
    turned: npt.NDArray[np.bool_]

    def followed_by(self, others: _Prefixes) -> _Prefixes:
        """Return these and then others: rows of one table are read at once."""
        columns: Iterable[Any] = zip(self, others, strict=True)
        return _Prefixes._make(np.concatenate(column) for column in columns)


def _own(around: _Surroundings, port_sets: PortSets, places: _Places) -> _Prefixes:
    """Return routes to a switch's own hosts."""
    ranks = around.ranks
    sets, turned = port_sets.of_host[ranks], np.zeros(len(ranks), bool)
    return _Prefixes(places.address[ranks], around.whole, sets, turned)


def _remote(
    ranks: Words, port_sets: PortSets, places: _Places, turned: npt.NDArray[np.bool_]
) -> _Prefixes:
    """Return routes to other switches' hosts; those `turned`, of detours, get one of their own."""
    leaf, sets = places.leaf[ranks], port_sets.of_host[ranks]
    starts = np.flatnonzero(np.diff(leaf, prepend=-1))  # of each leaf's hosts in `ranks`
    shared = np.zeros(len(places.subnet), bool)
    if len(starts) and places.has_prefixes:
        least, most = np.minimum.reduceat(sets, starts), np.maximum.reduceat(sets, starts)
        shared[leaf[starts]] = least == most
    prefixes = starts[shared[leaf[starts]]]
    single = np.flatnonzero(~shared[leaf] | turned[ranks])
    # A leaf's prefix comes before its single hosts.
    order = np.argsort(np.concatenate([2 * prefixes, 2 * single + 1]), kind="stable")
    return _Prefixes(
        np.concatenate([places.subnet[leaf[prefixes]], places.address[ranks[single]]])[order],
        np.repeat(np.array([PREFIX_BITS, 32], np.uint64), [len(prefixes), len(single)])[order],
        np.concatenate([sets[prefixes], sets[single]])[order],
        np.concatenate([np.zeros(len(prefixes), bool), turned[ranks[single]]])[order],
    )


def _lpm(prefixes: _Prefixes, ports: Sequence[Ports], groups: _Groups) -> TableRows:
    """Return routes to prefixes by sets of ports; those of detours by groups."""
    met, kind = renumbered(2 * prefixes.sets.astype(np.int64) + prefixes.turned)
    first = np.zeros(len(met), np.int64)
    first[kind[::-1]] = np.arange(len(kind) - 1, -1, -1)
    actions = np.zeros((len(met), 4), np.uint64)
    for place in np.argsort(first).tolist():  # groups get their rows in the order of routes
        number = int(met[place])
        actions[place] = groups.towards(ports[number // 2], group=bool(number % 2))
    return TableRows(
        "ipv4_lpm",
        {"dst": (prefixes.addresses, prefixes.lengths)},
        CALLS,
        actions[kind, 0].astype(np.int64),
        actions[kind, 1:],
    )


def _detours(graph: nx.Graph[str], turned: Mapping[Pair, int], groups: _Groups) -> TableRows:
    """Return the rows by which detours leave the routes."""
    if not turned:
        return _NO_DETOURS
    ends = [[ipv4(graph, host) for host in pair] for pair in turned]
    src, dst = np.array(ends, np.uint64).reshape(-1, 2).T
    return _detour_rows(src, dst, [groups.base((number,)) for number in turned.values()])


def _detour_rows(src: Fields, dst: Fields, rows: Sequence[int]) -> TableRows:
    return TableRows(
        "detours",
        {"src": (src,), "dst": (dst,)},
        (("take_nexthop", ("row",)),),
        np.zeros(len(rows), np.int64),
        np.array(rows, np.uint64).reshape(-1, 1),
    )


_NO_DETOURS = _detour_rows(np.zeros(0, np.uint64), np.zeros(0, np.uint64), ())
