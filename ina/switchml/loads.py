"""The least bytes that SwitchML sends over each link."""

from __future__ import annotations

from ringleaf.ina.loads import Aggregation, Demand, Tree, blocks_of, frame_bytes
from ringleaf.ina.switchml.wire import VALUES_AT
from ringleaf.topologies.trees import AggregationTree, aggregation_tree
from ringleaf.topologies.ways import Loads, TopologyRoutes


def demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return SwitchML's demand: each block goes up and down each edge of the tree once."""
    members = [ways.hosts[rank] for rank in what.members]
    tree = aggregation_tree(ways.graph, members)
    loads = Loads(ways.links)
    return Demand(add_tree(ways, what, tree, blocks_of(what), loads), loads)


def add_tree(
    ways: TopologyRoutes, what: Aggregation, tree: AggregationTree, blocks: int, loads: Loads
) -> int:
    """Add the loads of so many blocks of an aggregation in a tree; return a block's least time.

    For floats, exponents go first: no worker sends a slot's first block before it has all
    workers' exponents of it.
    """
    begin_ps: dict[str, int] = {}
    if what.is_float:
        head = Tree(ways, tree.root, tree.children, frame_bytes(VALUES_AT, 0))
        all_ps = head.up_ps[tree.root]
        members = [ways.hosts[rank] for rank in what.members]
        begin_ps = {member: all_ps + head.from_root_ps[member] for member in members}
    packet_bytes = frame_bytes(VALUES_AT, what.lanes)
    full = Tree(ways, tree.root, tree.children, packet_bytes, begin_ps)
    up_ps, down_ps = full.up_ps[tree.root], full.down_ps[tree.root]
    full.add_up(loads, blocks * packet_bytes, down_ps)
    full.add_down(loads, blocks * packet_bytes, up_ps)
    return up_ps + down_ps
