"""The kinds of links that a topology has, for people: the nodes they join, and their rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleaf.topologies.graph import Role, attachment, hosts, index, kind
from ringleaf.units import format_rate, format_time

if TYPE_CHECKING:
    import networkx as nx

INNER = "server's inner"


@dataclass(frozen=True, slots=True)
class LinkKind:
    """Links with one rate and delay; `joins` are pairs of kinds of nodes, like `host-edge`."""

    joins: tuple[str, ...]
    rate_bps: int
    delay_ps: int
    count: int

    @property
    def is_of_hosts(self) -> bool:
        """Whether everything that hosts send goes by these links, one link for each host."""
        return any(pair == INNER or pair.startswith("host-") for pair in self.joins)


def link_kinds(graph: nx.Graph[str]) -> list[LinkKind]:
    """Return the kinds, hosts' links first.

    The link inside a server is left out where it carries all that the server's other links
    do together, as it does unless it was given a rate.
    """
    inner = _inner_links(graph)
    counts: Counter[tuple[str, int, int]] = Counter()
    for a, b, data in graph.edges(data=True):
        host = next((node for node in (a, b) if graph.nodes[node]["role"] is Role.HOST), None)
        if host in inner and not inner[host]:
            continue
        wire = data["link"]
        counts[_pair(graph, a, b, host in inner), wire.rate_bps, wire.delay_ps] += 1
    return _join(counts)


def describe(kinds: Iterable[LinkKind]) -> str:
    """Return text like `100 Gbit/s and 1 us per link`, with the terms of each kind."""
    kinds = list(kinds)
    if len(kinds) == 1:
        return f"{_terms(kinds[0])} per link"
    return "; ".join(f"{_terms(each)} per {' and '.join(each.joins)} link" for each in kinds)


def reference(kinds: Sequence[LinkKind]) -> LinkKind:
    """Return the kind of hosts' own links, by which collectives are judged; the most common one."""
    own = [each for each in kinds if each.is_of_hosts]
    return max(own or kinds, key=lambda each: each.count)


def _terms(each: LinkKind) -> str:
    return f"{format_rate(each.rate_bps)} and {format_time(each.delay_ps)}"


def _inner_links(graph: nx.Graph[str]) -> dict[str, bool]:
    """Return, by host, whether its server's inner link is slower than the other links together."""
    if not graph.graph["servers"]:
        return {}
    limits = {}
    for host in hosts(graph):
        switch = attachment(graph, host)
        rates = {peer: data["link"].rate_bps for peer, data in graph.adj[switch].items()}
        own_bps = rates.pop(host)
        limits[host] = own_bps < sum(rates.values())
    return limits


def _pair(graph: nx.Graph[str], a: str, b: str, is_inner: bool) -> str:
    if is_inner:
        return INNER
    ends = sorted((a, b), key=lambda node: (_tier(graph, node), index(node)))
    return "-".join(kind(graph, node) for node in ends)


def _tier(graph: nx.Graph[str], node: str) -> int:
    data = graph.nodes[node]
    return -1 if data["role"] is Role.HOST else int(data["tier"])


def _join(counts: Counter[tuple[str, int, int]]) -> list[LinkKind]:
    """Return the kinds, those with equal links joined into one."""
    joins: dict[tuple[int, int], list[str]] = {}
    sizes: Counter[tuple[int, int]] = Counter()
    for (pair, *terms), count in counts.items():
        rate_bps, delay_ps = terms
        joins.setdefault((rate_bps, delay_ps), []).append(pair)
        sizes[rate_bps, delay_ps] += count
    found = [LinkKind(tuple(pairs), *terms, sizes[terms]) for terms, pairs in joins.items()]
    return sorted(found, key=lambda each: (not each.is_of_hosts, each.joins))
