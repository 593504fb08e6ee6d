"""The kinds of links that a topology has, for people: the nodes they join, and their rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleaf.core.units import format_count, format_rate, format_size, format_time
from ringleaf.topologies.graph import Link, Role, attachment, hosts, index, kind, link

if TYPE_CHECKING:
    import networkx as nx

INNER = "server's inner"

MOST_KINDS = 4
"""The most kinds of links, and pairs of nodes of a kind, that one line names."""


@dataclass(frozen=True, slots=True)
class LinkKind:
    """Links with equal terms; `joins` are pairs of kinds of nodes, like `host-edge`.

    A link whose directions differ counts as two, `host-edge` and `edge-host`. `loss` and
    `queue_bytes` are None where the experiment's are meant.
    """

    joins: tuple[str, ...]
    rate_bps: int
    delay_ps: int
    count: int
    loss: float | None = None
    queue_bytes: int | None = None

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
    places = {node: (_tier(graph, node), index(node)) for node in graph}
    names = {node: kind(graph, node) for node in graph}
    alike: Counter[tuple[str, str, bool, int, int]] = Counter()
    links: dict[int, Link] = {}  # by identity: there are few, and hashes of their contents are slow
    for a, b, edge in graph.edges(data=True):
        low, high = (a, b) if places[a] <= places[b] else (b, a)
        if low in inner and not inner[low]:
            continue
        ways = [edge.get("back", {}).get(node, edge["link"]) for node in (low, high)]
        links |= {id(each): each for each in ways}
        alike[names[low], names[high], low in inner, id(ways[0]), id(ways[1])] += 1
    counts: Counter[tuple[str, Link]] = Counter()
    for (low, high, is_inner, *ends), count in alike.items():
        there, back = links[ends[0]], links[ends[1]]
        counts[INNER if is_inner else f"{low}-{high}", there] += count
        if back != there:
            counts[INNER if is_inner else f"{high}-{low}", back] += count
    return _join(counts)


def describe(kinds: Iterable[LinkKind]) -> str:
    """Return text like `100 Gbit/s and 1 us per link`, with the terms of each kind."""
    kinds = list(kinds)
    if len(kinds) == 1:
        return f"{_terms(kinds[0])} per link"
    if len(kinds) > MOST_KINDS:
        rates = _range(format_rate, [each.rate_bps for each in kinds])
        delays = _range(format_time, [each.delay_ps for each in kinds])
        return f"links of {format_count(len(kinds), 'kind')}, {rates} and {delays}"
    return "; ".join(f"{_terms(each)} per {_named(each)} link" for each in kinds)


def reference(kinds: Sequence[LinkKind]) -> LinkKind:
    """Return the kind of hosts' own links, by which collectives are judged; the most common one."""
    own = [each for each in kinds if each.is_of_hosts]
    return max(own or kinds, key=lambda each: each.count)


def _named(each: LinkKind) -> str:
    if len(each.joins) > MOST_KINDS:
        return "host's" if each.is_of_hosts else "other"
    return " and ".join(each.joins)


def _range(show: Callable[[int], str], values: Sequence[int]) -> str:
    least, most = show(min(values)), show(max(values))
    return least if least == most else f"{least} to {most}"


def _terms(each: LinkKind) -> str:
    terms = [format_rate(each.rate_bps), format_time(each.delay_ps)]
    if each.loss is not None:
        terms.append(f"{100 * each.loss:g} % loss")
    if each.queue_bytes is not None:
        terms.append(f"{format_size(each.queue_bytes)} of queue")
    return f"{', '.join(terms[:-1])} and {terms[-1]}"


def _inner_links(graph: nx.Graph[str]) -> dict[str, bool]:
    """Return, by host, whether its server's inner link is slower than the other links together."""
    if not graph.graph["servers"]:
        return {}
    limits = {}
    for host in hosts(graph):
        switch = attachment(graph, host)
        peers = [peer for peer in graph.adj[switch] if peer != host]
        sent_bps = sum(link(graph, switch, peer).rate_bps for peer in peers)
        limits[host] = link(graph, host, switch).rate_bps < sent_bps
    return limits


def _tier(graph: nx.Graph[str], node: str) -> int:
    data = graph.nodes[node]
    return -1 if data["role"] is Role.HOST else int(data["tier"])


def _join(counts: Counter[tuple[str, Link]]) -> list[LinkKind]:
    """Return the kinds, those with equal links joined into one."""
    joins: dict[Link, list[str]] = {}
    sizes: Counter[Link] = Counter()
    for (pair, each), count in counts.items():
        joins.setdefault(each, []).append(pair)
        sizes[each] += count
    kinds = [
        LinkKind(
            tuple(pairs), each.rate_bps, each.delay_ps, sizes[each], each.loss, each.queue_bytes
        )
        for each, pairs in joins.items()
    ]
    return sorted(kinds, key=lambda each: (not each.is_of_hosts, each.joins))
