"""Rail-only: a switch for each rail, and none that joins rails; nodes do.

Source:
    Wang, Ghobadi, Shakeri, Zhang and Hasani, "Rail-only: A Low-Cost High-Performance Network for
    Training LLMs with Trillion Parameters", arXiv 2307.12169.
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


def rail_only(
    nodes: int, rails: int, *, link: Link, host_link: Link | None = None
) -> nx.Graph[str]:
    """Make nodes of `rails` GPUs each; the i-th of each node is at the i-th rail's switch.

    A GPU is a server with a link to its node's switch, too, by which packets come to another rail.

    Args:
        nodes: Nodes, >= 1.
        rails: GPUs per node, and rails, >= 1.
        link: Links between switches.
        host_link: Link inside a GPU; as much as its other links together if None.

    Raises:
        TopologyError: If a size is too small.
    """
    return rails_of_gpus(_checked(nodes, rails), 1, nodes, rails, 0, link, host_link)


def _of_machines(
    nodes: int, rails: int, *, link: Link, host_link: Link | None = None
) -> nx.Graph[str]:
    """Make the network of machines' NICs, the i-th of each at the i-th rail's switch."""
    return rails_of_machines(_checked(nodes, rails), 1, nodes, rails, 0, link, host_link)


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    rails = fixed.get("rails", 4)
    return {"nodes": -(-hosts // max(rails, 1)), "rails": rails, **fixed}


def _fit_machines(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    return {"nodes": hosts, "rails": 8, **fixed}


def _checked(nodes: int, rails: int) -> str:
    """Return the name of an instance, if there is one."""
    name = f"railonly,nodes={nodes},rails={rails}"
    check_sizes(name, nodes=nodes, rails=rails)
    return name


def _count(nodes: int, rails: int) -> Counts:
    _checked(nodes, rails)
    return count_gpus(1, nodes, rails, 0)


def _count_machines(nodes: int, rails: int) -> Counts:
    _checked(nodes, rails)
    return count_machines(1, nodes, rails, 0)


_SIZES = {"nodes": 4, "rails": 4}

TOPOLOGY = Family(
    "a switch per rail for the i-th GPU of each node; nodes join rails",
    rail_only,
    _SIZES,
    _fit,
    _count,
    Family("as above", _of_machines, _SIZES, _fit_machines, _count_machines),
)
