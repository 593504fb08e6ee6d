"""The least bytes that NetReduce sends over each link."""

from __future__ import annotations

from ringleaf.ina.loads import Aggregation, Demand, Tree, blocks_of, frame_bytes
from ringleaf.ina.netreduce.wire import OVERHEAD_BYTES
from ringleaf.topologies.trees import aggregation_tree
from ringleaf.topologies.ways import Loads, TopologyRoutes


def demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return NetReduce's demand: each packet goes up and down each edge of the tree once."""
    members = [ways.hosts[rank] for rank in what.members]
    tree = aggregation_tree(ways.graph, members)
    packet_bytes = frame_bytes(OVERHEAD_BYTES, what.lanes)
    full = Tree(ways, tree.root, tree.children, packet_bytes)
    up_ps, down_ps = full.up_ps[tree.root], full.down_ps[tree.root]
    loads = Loads(ways.links)
    full.add_up(loads, blocks_of(what) * packet_bytes, down_ps)
    full.add_down(loads, blocks_of(what) * packet_bytes, up_ps)
    return Demand(up_ps + down_ps, loads)
