"""Trees of switches that join the hosts of a job, for aggregation on the way up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import networkx as nx

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import Peers, attachment, distances, natural, switch_graph


@dataclass(frozen=True, slots=True)
class AggregationTree:
    """A rooted tree of switches; every edge of it is a link.

    `parent` holds every switch of the tree, from the root (None) down; `children` as well, with the
    switches below each and the hosts of the job that are attached to it. `depth` counts levels of
    switches: 1 if one switch joins all hosts.
    """

    root: str
    parent: dict[str, str | None]
    children: dict[str, tuple[str, ...]]
    depth: int


def aggregation_tree(
    graph: nx.Graph[str],
    hosts: Iterable[str],
    *,
    root: str | None = None,
    index: int = 0,
    also: Iterable[str] = (),
) -> AggregationTree:
    """Return the tree of least depth that joins `hosts`, with few switches.

    The root is the switch whose largest distance from a host is least; among those the nearest on
    average. Among several such roots `index` picks one, modulo their number, so that jobs spread,
    first over the switches below them. Each host is a child of its own switch, which thus sees its
    packets first.

    Args:
        graph: A topology of any family.
        hosts: At least one; the job's ranks.
        root: The root to take instead.
        index: For instance the job's number.
        also: Switches that shall be in the tree, whether they join anything or not.

    Raises:
        TopologyError: If `hosts` is empty, names one twice or something that is no host, if
            `root` is no switch, or if no switch reaches all hosts.
    """
    members = _members(graph, hosts)
    leaves = {host: attachment(graph, host) for host in members}
    terminals = sorted({*leaves.values(), *also}, key=natural)
    peers = switch_graph(graph)
    if root is None:
        roots = _best_roots(graph.name, peers, terminals)
        root = roots[index % len(roots)]
    if root not in peers:
        raise TopologyError(f"{graph.name}: root must be a switch, got {root!r}")
    distance = distances(peers, root)
    for leaf in terminals:
        if leaf not in distance:
            raise TopologyError(f"{graph.name}: root {root} can't reach {leaf}")
    parent = _parents(peers, terminals, distance)
    below: dict[str, list[str]] = {switch: [] for switch in parent}
    for child, above in parent.items():
        if above is not None:
            below[above].append(child)
    for host, leaf in leaves.items():
        below[leaf].append(host)
    children = {switch: tuple(sorted(nodes, key=natural)) for switch, nodes in below.items()}
    return AggregationTree(root, parent, children, 1 + max(distance[leaf] for leaf in terminals))


def aggregation_trees(
    graph: nx.Graph[str], hosts: Iterable[str], *, most: int | None = None, index: int = 0
) -> list[AggregationTree]:
    """Return trees of least depth that join `hosts`, each from another of the equally good roots.

    The first one is that of `aggregation_tree` for the same `index`.

    Args:
        graph: A topology of any family.
        hosts: At least one; the job's ranks.
        most: The most trees; None: one for each root.
        index: For instance the job's number.

    Raises:
        TopologyError: As `aggregation_tree` does.
    """
    members = _members(graph, hosts)
    roots = best_roots(graph, members)
    count = len(roots) if most is None else min(most, len(roots))
    chosen = [roots[(index + i) % len(roots)] for i in range(count)]
    return [aggregation_tree(graph, members, root=root) for root in chosen]


def best_roots(graph: nx.Graph[str], hosts: Iterable[str]) -> list[str]:
    """Return the switches that are roots of trees of least depth, in the order of these trees.

    Raises:
        TopologyError: As `aggregation_tree` does.
    """
    leaves = sorted({attachment(graph, host) for host in _members(graph, hosts)}, key=natural)
    return _best_roots(graph.name, switch_graph(graph), leaves)


def _members(graph: nx.Graph[str], hosts: Iterable[str]) -> list[str]:
    members = list(hosts)
    if not members:
        raise TopologyError("aggregation_tree: needs at least one host, got none")
    if len(set(members)) < len(members):
        raise TopologyError(f"aggregation_tree: a host is there twice, got {members!r}")
    return members


def _best_roots(name: str, peers: Peers, leaves: Sequence[str]) -> list[str]:
    """Return the centres of `leaves`, by largest distance, then by the sum of all distances."""
    from_leaf = [distances(peers, leaf) for leaf in leaves]
    cost: dict[str, tuple[int, int]] = {}
    for switch in peers:
        near = [distance[switch] for distance in from_leaf if switch in distance]
        if len(near) == len(leaves):
            cost[switch] = (max(near), sum(near))
    if not cost:
        raise TopologyError(f"{name}: no switch reaches all of {', '.join(leaves)}")
    best = min(cost.values())
    return _spread(peers, [switch for switch in cost if cost[switch] == best])


def _spread(peers: Peers, roots: Sequence[str]) -> list[str]:
    """Return the roots, one from each set of those with the same neighbours in turn.

    A fat-tree's cores come in such sets, and trees from two of a set have all links below in
    common.
    """
    alike: dict[frozenset[str], list[str]] = {}
    for root in roots:
        alike.setdefault(frozenset(peers[root]), []).append(root)
    turns = zip_longest(*alike.values())
    return [root for turn in turns for root in turn if root is not None]


def _parents(
    peers: Peers, leaves: Collection[str], distance: dict[str, int]
) -> dict[str, str | None]:
    """Return the parent of each switch of the tree, from the root down, level by level."""
    levels: list[dict[str, str | None]] = []
    level = max(distance[leaf] for leaf in leaves)
    tree: set[str] = {leaf for leaf in leaves if distance[leaf] == level}
    while level > 0:
        above = {leaf for leaf in leaves if distance[leaf] == level - 1}
        chosen = _cover(peers, tree, above, distance, level - 1)
        levels.append({switch: chosen[switch] for switch in sorted(tree, key=natural)})
        tree = above | set(chosen.values())
        level -= 1
    (root,) = tree
    parents: dict[str, str | None] = {root: None}
    for each in reversed(levels):
        parents.update(each)
    return parents


def _cover(
    peers: Peers,
    switches: Collection[str],
    above: Collection[str],
    distance: dict[str, int],
    level: int,
) -> dict[str, str]:
    """Return a parent at `level` for each of `switches`: those `above` first, then the most used.

    Greedy set cover, so that the tree takes few switches.
    """
    candidates: dict[str, set[str]] = {}
    for switch in switches:
        for peer in peers[switch]:
            if distance[peer] == level:
                candidates.setdefault(peer, set()).add(switch)
    chosen: dict[str, str] = {}
    left = set(switches)
    while left:
        parent = min(
            candidates,
            key=lambda peer: (peer not in above, -len(candidates[peer] & left), natural(peer)),
        )
        for switch in candidates.pop(parent) & left:
            chosen[switch] = parent
        left -= chosen.keys()
    return chosen
