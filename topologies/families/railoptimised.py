"""Rail-optimised: a leaf for each rail of a pod, and spines that join all leaves.

Source:
    NVIDIA, "DGX SuperPOD Reference Architecture" for DGX H100, network fabrics: each group of 32
    nodes is rail-aligned, and traffic between rails goes by spines. Here sizes are free, and there
    is one link from a leaf to a spine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.graph import Link
from ringleaf.topologies.rails import (
    count_gpus,
    count_machines,
    rails_of_gpus,
    rails_of_machines,
)

if TYPE_CHECKING:
    import networkx as nx


def rail_optimised(
    pods: int,
    nodes: int,
    rails: int,
    spines: int,
    *,
    link: Link,
    host_link: Link | None = None,
) -> nx.Graph[str]:
    """Make pods of nodes of `rails` GPUs each; the i-th of each node is at the pod's i-th leaf.

    A GPU is a server with a link to its node's switch, too. Every leaf is joined to every spine,
    so there is no oversubscription if there are as many spines as nodes in a pod.

    Args:
        pods: Groups of nodes with leaves of their own, >= 1.
        nodes: Nodes per pod, >= 1.
        rails: GPUs per node, and leaves per pod, >= 1.
        spines: Switches that join leaves, >= 1.
        link: Links between switches.
        host_link: Link inside a GPU; as much as its other links together if None.

    Raises:
        TopologyError: If a size is too small.
    """
    name = _checked(pods, nodes, rails, spines)
    return rails_of_gpus(name, pods, nodes, rails, spines, link, host_link)


def _of_machines(
    pods: int,
    nodes: int,
    rails: int,
    spines: int,
    *,
    link: Link,
    host_link: Link | None = None,
) -> nx.Graph[str]:
    """Make the network of machines' NICs, the i-th of each at its pod's i-th leaf."""
    name = _checked(pods, nodes, rails, spines)
    return rails_of_machines(name, pods, nodes, rails, spines, link, host_link)


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    rails = fixed.get("rails", 4)
    return _fit_machines(-(-hosts // max(rails, 1)), {**fixed, "rails": rails})


def _fit_machines(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return two pods of as many nodes as are needed, and as many spines as nodes."""
    pods = fixed.get("pods", 2)
    nodes = fixed.get("nodes", -(-hosts // max(pods, 1)))
    if "nodes" in fixed and "pods" not in fixed:
        pods = -(-hosts // max(nodes, 1))
    return {"pods": pods, "nodes": nodes, "rails": 8, "spines": nodes, **fixed}


def _checked(pods: int, nodes: int, rails: int, spines: int) -> str:
    """Return the name of an instance, if there is one."""
    name = f"railoptimised,pods={pods},nodes={nodes},rails={rails},spines={spines}"
    check_sizes(name, pods=pods, nodes=nodes, rails=rails, spines=spines)
    return name


def _count(pods: int, nodes: int, rails: int, spines: int) -> Counts:
    _checked(pods, nodes, rails, spines)
    return count_gpus(pods, nodes, rails, spines)


def _count_machines(pods: int, nodes: int, rails: int, spines: int) -> Counts:
    _checked(pods, nodes, rails, spines)
    return count_machines(pods, nodes, rails, spines)


_SIZES = {"pods": 2, "nodes": 2, "rails": 4, "spines": 2}

TOPOLOGY = Family(
    "a leaf per rail and pod for the i-th GPU of each node; spines join all",
    rail_optimised,
    _SIZES,
    _fit,
    _count,
    Family("as above", _of_machines, _SIZES, _fit_machines, _count_machines),
)
