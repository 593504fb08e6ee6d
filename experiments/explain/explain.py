"""Explain a row: the path of causes of its time, what is beyond its bound, and its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

import ringleaf.networks.virtual.state as s
from ringleaf.experiments.bounds.bounds import overhead_bytes
from ringleaf.experiments.explain.arrows import diagram
from ringleaf.experiments.explain.findings import OTHER, BoundParts, Explained
from ringleaf.experiments.explain.log import IN_NETWORK, PacketLog
from ringleaf.experiments.explain.parts import lost
from ringleaf.experiments.explain.path import LogWalk, Path
from ringleaf.experiments.spec.choices import FIXED
from ringleaf.networks.outcome import RunResult
from ringleaf.topologies.delays import with_delays
from ringleaf.topologies.graph import directions, hosts, kind, switches, with_links


@dataclass(frozen=True, slots=True)
class ExplainedOptions:
    """The options of a run that its explanation depends on."""

    lanes: int
    overhead_ps: int
    cc: str
    in_network: bool


def bound_parts(
    graph: nx.Graph[str], bound_ps: int, bound_on: Callable[[nx.Graph[str]], int]
) -> BoundParts:
    """Return the parts of a bound, by taking delays and slower links away.

    Args:
        graph: The topology.
        bound_ps: The bound.
        bound_on: Computes the same bound on another topology.
    """
    without = undelayed(graph)
    undelayed_ps = bound_on(without)
    line_ps = bound_on(evened(without)) if is_uneven(graph) else undelayed_ps
    return BoundParts(line_ps, undelayed_ps - line_ps, bound_ps - undelayed_ps)


def undelayed(graph: nx.Graph[str]) -> nx.Graph[str]:
    """Return a topology without the delays of its links, switches and hosts."""
    return with_delays(with_links(graph, lambda each: replace(each, delay_ps=0)))


def evened(graph: nx.Graph[str]) -> nx.Graph[str]:
    """Return a topology whose links are as fast as the best of their kind."""
    best = _best(graph)
    changed = graph.copy()
    for a, b, edge in changed.edges(data=True):
        edge["link"] = replace(edge["link"], rate_bps=best[_pair(graph, a, b)])
        if "back" in edge:
            other = {a: b, b: a}
            edge["back"] = {
                node: replace(each, rate_bps=best[_pair(graph, node, other[node])])
                for node, each in edge["back"].items()
            }
    return changed


def is_uneven(graph: nx.Graph[str]) -> bool:
    """Return whether links of a kind have different rates."""
    best = _best(graph)
    return any(each.rate_bps != best[_pair(graph, a, b)] for a, b, each in directions(graph))


def _pair(graph: nx.Graph[str], a: str, b: str) -> tuple[str, str]:
    low, high = sorted((kind(graph, a), kind(graph, b)))
    return low, high


def _best(graph: nx.Graph[str]) -> dict[tuple[str, str], int]:
    """Return the best rate of links by the kinds of nodes that they join."""
    best: dict[tuple[str, str], int] = {}
    for a, b, each in directions(graph):
        pair = _pair(graph, a, b)
        best[pair] = max(best.get(pair, 0), each.rate_bps)
    return best


def explain(
    graph: nx.Graph[str],
    log: PacketLog,
    outcome: RunResult,
    bound: BoundParts,
    settings: ExplainedOptions,
    *,
    algo: str,
    size_bytes: int,
) -> Explained:
    """Return where a run's time went.

    Args:
        graph: The topology.
        log: All packets of the run.
        outcome: Its result.
        bound: Its bound.
        settings: Options that matter.
        algo: The row's algorithm.
        size_bytes: The row's size.
    """
    names = [*switches(graph), *hosts(graph)]
    path, busiest_ps = Path(), 0
    if log.complete and len(log):
        ranks = outcome.finish_ps
        last = hosts(graph)[ranks.index(max(ranks))]
        walk = _walk(graph, log, settings)
        path = walk.back_from(names.index(last), outcome.time_ps)
        busiest_ps = walk.busiest_ps()
    else:
        path.spent_ps[OTHER] = outcome.time_ps
    return Explained(
        algo,
        size_bytes,
        outcome.time_ps,
        bound,
        lost(bound, path, busiest_ps),
        path.spent_ps,
        path.headers_ps,
        path.behind_ps,
        len(log),
        diagram(log, names, path.hops, in_network=settings.in_network),
    )


def _walk(graph: nx.Graph[str], log: PacketLog, settings: ExplainedOptions) -> LogWalk:
    best = _best(graph)
    nodes = [*switches(graph), *hosts(graph)]
    ends = log.ports[log.ports[:, s.PEER], s.NODE]
    pairs = zip(log.ports[:, s.NODE].tolist(), ends.tolist(), strict=True)
    best_bps = np.array([best[_pair(graph, nodes[a], nodes[b])] for a, b in pairs], np.int64)
    added = log.line[log.kind & IN_NETWORK > 0]
    longest = int(added.max()) if len(added) else 0
    headers = {0: overhead_bytes(settings.cc), IN_NETWORK: max(longest - 4 * settings.lanes, 0)}
    return LogWalk(
        log,
        best_bps,
        overhead_ps=settings.overhead_ps,
        is_paced=settings.cc != FIXED,
        header_bytes=headers,
    )
