"""The least bytes that votes send over each link."""

from __future__ import annotations

from ringleaf.ina.loads import Aggregation, Demand, Tree, frame_bytes
from ringleaf.ina.switchml.wire import VALUES_AT
from ringleaf.ina.vote.wire import PLANES, SIGNS, WORDS
from ringleaf.topologies.trees import aggregation_tree
from ringleaf.topologies.ways import Loads, Ways


def demand(ways: Ways, what: Aggregation) -> Demand:
    """Return the demand: signs from hosts and to all, and counts between switches."""
    members = [ways.hosts[rank] for rank in what.members]
    tree = aggregation_tree(ways.graph, members)
    blocks = -(-what.elements // SIGNS)
    signs, counts = frame_bytes(VALUES_AT, WORDS), frame_bytes(VALUES_AT, PLANES * WORDS)
    part = Tree(ways, tree.root, tree.children, signs)
    up_ps, down_ps = part.up_ps[tree.root], part.down_ps[tree.root]
    loads = Loads(ways.links)
    for above, below in part.edges():
        size_bytes = blocks * (counts if below in tree.children else signs)
        after_ps = ways.hop_ps(below, above) + part.to_root_ps[above] + down_ps
        loads.add((below, (above,)), size_bytes, part.up_ps[below], after_ps)
    part.add_down(loads, blocks * signs, up_ps)
    return Demand(up_ps + down_ps, loads)
