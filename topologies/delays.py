"""The time that each packet spends inside a switch, and inside a host.

A graph keeps both as attributes, so every computation of a way's time includes them. Both are
latencies, not occupations: nodes are pipelines, which take the next packet at once.

- A switch takes `switch_delay_ps` from a packet's last bit until the packet is in a port's queue,
  each time that the packet passes the ingress pipeline. So its first bit leaves no earlier than
  that after its last bit came: latency as RFC 1242 defines it for devices that store and forward.
- A host takes `host_delay_ps` from an agent's giving a packet away until its first bit is on the
  line, and as long again from a packet's last bit until an agent has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import Role


def with_delays(
    graph: nx.Graph[str], *, switch_delay_ps: int = 0, host_delay_ps: int = 0
) -> nx.Graph[str]:
    """Return the same topology with these delays in its nodes instead of those it had.

    Raises:
        TopologyError: If a time is below 0.
    """
    for name, time_ps in (("switch_delay_ps", switch_delay_ps), ("host_delay_ps", host_delay_ps)):
        if time_ps < 0:
            raise TopologyError(f"delays: {name} must be >= 0, got {time_ps!r}")
    known = (graph.graph.get("switch_delay_ps", 0), graph.graph.get("host_delay_ps", 0))
    if known == (switch_delay_ps, host_delay_ps):
        return graph
    changed = graph.copy()
    changed.graph.update(switch_delay_ps=switch_delay_ps, host_delay_ps=host_delay_ps)
    return changed


def switch_delay_ps(graph: nx.Graph[str]) -> int:
    """Return the time that every switch takes per packet, those inside servers too."""
    delay_ps: int = graph.graph.get("switch_delay_ps", 0)
    return delay_ps


def host_delay_ps(graph: nx.Graph[str]) -> int:
    """Return the time that every host takes per packet, each way."""
    delay_ps: int = graph.graph.get("host_delay_ps", 0)
    return delay_ps


def node_delay_ps(graph: nx.Graph[str], node: str) -> int:
    """Return the time that a node takes per packet that comes in, or that a host gives away."""
    is_host = graph.nodes[node]["role"] is Role.HOST
    return host_delay_ps(graph) if is_host else switch_delay_ps(graph)


def inside_ps(graph: nx.Graph[str], nodes: Sequence[str]) -> int:
    """Return the time that a packet spends inside the nodes of a way, both its hosts included."""
    return sum(node_delay_ps(graph, node) for node in nodes) if len(nodes) > 1 else 0
