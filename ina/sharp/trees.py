"""The trees that SHARP's aggregation manager gives to jobs."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx

from ringleaf.topologies.trees import AggregationTree, aggregation_tree

Jobs = Sequence[tuple[int, Sequence[str]]]
"""The number and members of each job."""


def tree_of(graph: nx.Graph[str], number: int, members: Sequence[str]) -> AggregationTree:
    """Return a job's tree, which is for requests and for streams."""
    return aggregation_tree(graph, members, index=number - 1)


def resources(tree: AggregationTree, *, per_port: bool) -> set[tuple[str, ...]]:
    """Return the parts of switches that can be in one streaming tree: switches, or their ports."""
    if not per_port:
        return {(switch,) for switch in tree.children}
    edges = [(above, below) for above, nodes in tree.children.items() for below in nodes]
    return {*edges, *((below, above) for above, below in edges if below in tree.children)}


def streaming(graph: nx.Graph[str], jobs: Jobs, *, per_port: bool, most: int) -> list[bool]:
    """Return which jobs may stream, the earlier ones first, while no two need the same part.

    Args:
        graph: A topology.
        jobs: Jobs in the order in which they come.
        per_port: Whether a switch has a streaming tree per port, and not just one.
        most: The number of streaming trees of the whole network.
    """
    taken: set[tuple[str, ...]] = set()
    may: list[bool] = []
    for number, members in jobs:
        needs = resources(tree_of(graph, number, members), per_port=per_port)
        may.append(taken.isdisjoint(needs) and sum(may) < most)
        if may[-1]:
            taken |= needs
    return may
