"""Networks with a leaf for each rail: the i-th GPU, or NIC, of each node is at the i-th leaf."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from ringleaf.topologies.family import Counts
from ringleaf.topologies.graph import (
    Link,
    add_host,
    add_server,
    add_switch,
    connect,
    join_servers,
    new_graph,
)

if TYPE_CHECKING:
    import networkx as nx


def rails_of_gpus(
    name: str,
    pods: int,
    nodes: int,
    rails: int,
    spines: int,
    link: Link,
    host_link: Link | None,
) -> nx.Graph[str]:
    """Make nodes of `rails` GPUs, which are servers, at a switch that joins those of the node.

    GPU i of the network is host `h{i}` and switch `s{i}`; nodes' switches come next, then leaves,
    pod by pod, then spines.

    Args:
        name: The name of the instance.
        pods: Groups of nodes; each has a leaf for each rail.
        nodes: Nodes of a pod.
        rails: GPUs of a node, and leaves of a pod.
        spines: Switches that join all leaves.
        link: Links between switches; a GPU has one to its node's switch and one to its leaf.
        host_link: Link inside a GPU; as much as its other links together if None.
    """
    gpus = pods * nodes * rails
    graph = new_graph(name, (rails, nodes, pods), irregular=True)
    for rank in range(gpus):
        add_server(graph, rank, f"{rank // rails}.{rank % rails}", (rank, 1), (0.4, 0))
    for node in range(pods * nodes):
        place = (node * rails + (rails - 1) / 2, 2)
        add_switch(graph, gpus + node, 1, f"node {node}", place)
    _add_leaves(graph, gpus + pods * nodes, pods, rails, spines, (2, 3.2, gpus))
    for rank in range(gpus):
        connect(graph, f"s{rank}", f"s{gpus + rank // rails}", link)
    for rank in range(gpus):
        leaf = rank // (nodes * rails) * rails + rank % rails
        connect(graph, f"s{rank}", f"s{gpus + pods * nodes + leaf}", link)
    _join_spines(graph, gpus + pods * nodes, pods * rails, spines, link)
    join_servers(graph, link, host_link)
    return graph


def rails_of_machines(
    name: str,
    pods: int,
    nodes: int,
    rails: int,
    spines: int,
    link: Link,
    host_link: Link | None,
) -> nx.Graph[str]:
    """Make such a network of hosts that become machines; see `rails_of_gpus`.

    A host is at the leaf of its first NIC. That of NIC i is the i-th switch after it, as the graph
    says by its attribute `rails`. So leaves of other rails are joined by machines and spines only.
    """
    graph = new_graph(name, (nodes, pods), irregular=True, rails=rails)
    for host in range(pods * nodes):
        add_host(graph, host, (host, 0.3))
    _add_leaves(graph, 0, pods, rails, spines, (0, 1, pods * nodes))
    for host in range(pods * nodes):
        connect(graph, f"h{host}", f"s{host // nodes * rails}", host_link or link)
    _join_spines(graph, 0, pods * rails, spines, link)
    return graph


def _add_leaves(
    graph: nx.Graph[str],
    first: int,
    pods: int,
    rails: int,
    spines: int,
    at: tuple[int, float, int],
) -> None:
    """Add leaves and spines, numbered from `first` on; `at` is tier, height and width."""
    tier, height, width = at
    leaves = pods * rails
    for leaf in range(leaves):
        x = (leaf + 0.5) * width / leaves - 0.5
        label = f"leaf {leaf // rails}.{leaf % rails}"
        add_switch(graph, first + leaf, tier, label, (x, height))
    for spine in range(spines):
        x = (spine + 0.5) * width / spines - 0.5
        add_switch(graph, first + leaves + spine, tier + 1, f"spine {spine}", (x, height + 1.2))


def _join_spines(graph: nx.Graph[str], first: int, leaves: int, spines: int, link: Link) -> None:
    for leaf, spine in product(range(leaves), range(spines)):
        connect(graph, f"s{first + leaf}", f"s{first + leaves + spine}", link)


def count_gpus(pods: int, nodes: int, rails: int, spines: int) -> Counts:
    """Return the size of a network of `rails_of_gpus`."""
    gpus, leaves = pods * nodes * rails, pods * rails
    switches = gpus + pods * nodes + leaves + spines
    return Counts(gpus, switches, 3 * gpus + leaves * spines, rack=1)


def count_machines(pods: int, nodes: int, rails: int, spines: int) -> Counts:
    """Return the size of a network of `rails_of_machines`, before hosts are machines."""
    hosts, leaves = pods * nodes, pods * rails
    return Counts(hosts, leaves + spines, hosts + leaves * spines, rack=None)
