"""The least bytes that PANAMA sends over each link."""

from __future__ import annotations

from ringleaf.ina.loads import Aggregation, Demand, blocks_of
from ringleaf.ina.switchml.loads import add_tree
from ringleaf.ina.systems import MOST_TREES
from ringleaf.topologies.trees import aggregation_trees
from ringleaf.topologies.ways import Loads, TopologyRoutes


def demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return PANAMA's demand: each block goes up and down each edge of its tree once.

    Blocks are dealt to trees in turn, the first one to the first tree.
    """
    members = [ways.hosts[rank] for rank in what.members]
    most = min(what.trees or MOST_TREES, what.slots or MOST_TREES)
    trees = aggregation_trees(ways.graph, members, most=most)
    loads, chain_ps = Loads(ways.links), 0
    for number, tree in enumerate(trees):
        blocks = len(range(number, blocks_of(what), len(trees)))
        if blocks:
            chain_ps = max(chain_ps, add_tree(ways, what, tree, blocks, loads))
    return Demand(chain_ps, loads)
