"""SwitchML as a flow."""

from __future__ import annotations

import networkx as nx

from ringleaf.errors import ConfigError
from ringleaf.ina.fluid import FluidStream
from ringleaf.ina.loads import Tree, frame_bytes
from ringleaf.ina.switchml.control import MAX_CHILDREN
from ringleaf.ina.switchml.dealing import deal_job, slowest_ps
from ringleaf.ina.switchml.wire import VALUES_AT
from ringleaf.ina.systems import JobRequest
from ringleaf.topologies.trees import aggregation_tree
from ringleaf.topologies.ways import TopologyRoutes


def stream(graph: nx.Graph[str], request: JobRequest) -> FluidStream:
    """Return a job's stream, over the tree and with the slots that its packets would have.

    For floats, workers exchange the exponents of a slot's first block before they send it.

    Raises:
        ConfigError: If the job does not fit the switches.
    """
    tree = aggregation_tree(graph, request.members, index=request.number - 1)
    widest = max(tree.children, key=lambda switch: len(tree.children[switch]))
    if len(tree.children[widest]) > MAX_CHILDREN:
        raise ConfigError(
            f"switchml job {request.number}: {widest} can aggregate {MAX_CHILDREN} children, "
            f"got {len(tree.children[widest])}"
        )
    ways = TopologyRoutes(graph, ecmp=request.ecmp)
    size_bytes = frame_bytes(VALUES_AT, request.lanes)
    block = Tree(ways, tree.root, tree.children, size_bytes)
    head_bytes = frame_bytes(VALUES_AT, 0)
    head = Tree(ways, tree.root, tree.children, head_bytes)
    links = [each for edge in block.edges() for each in (edge, edge[::-1])]
    return FluidStream(
        way=dict.fromkeys(links, 1.0),
        packet_bytes=size_bytes,
        values=request.lanes,
        slots=deal_job("switchml", request, slowest_ps(graph, tree, size_bytes)).slots,
        round_ps=block.up_ps[tree.root] + block.down_ps[tree.root],
        float_ps=head.up_ps[tree.root] + head.down_ps[tree.root],
        float_bytes=head_bytes,
    )
