"""The least bytes that OmniReduce in switches sends over each link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ringleaf.ina.loads import Aggregation, Demand, Tree, blocks_of, frame_bytes
from ringleaf.ina.omnireduce_switch.wire import VALUES_AT
from ringleaf.topologies.trees import aggregation_tree
from ringleaf.topologies.ways import Loads, TopologyRoutes

Mask = npt.NDArray[np.bool_]


def demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return its demand: blocks go up from those who have them, and sums go down to all.

    Each edge of the tree has a packet per round, with values or without: one round for each block
    that any worker has, and one more for each slot.
    """
    members = [ways.hosts[rank] for rank in what.members]
    tree = aggregation_tree(ways.graph, members)
    filled = {member: _filled(what, rank) for rank, member in enumerate(members)}
    _add_switches(filled, tree.children, tree.root)
    head_bytes, full_bytes = frame_bytes(VALUES_AT, 0), frame_bytes(VALUES_AT, what.lanes)
    sums = int(filled[tree.root].sum())
    rounds = sums + min(blocks_of(what), what.slots or 1)

    def sent_bytes(full: int) -> int:
        return rounds * head_bytes + full * (full_bytes - head_bytes)

    head = Tree(ways, tree.root, tree.children, head_bytes)
    loads = Loads(ways.links)
    up_ps, down_ps = head.up_ps[tree.root], head.down_ps[tree.root]
    for above, below in head.edges():
        after_ps = ways.hop_ps(below, above) + head.to_root_ps[above] + down_ps
        size_bytes = sent_bytes(int(filled[below].sum()))
        loads.add((below, (above,)), size_bytes, head.up_ps[below], after_ps)
    head.add_down(loads, sent_bytes(sums), up_ps)
    if not sums:
        return Demand(up_ps + down_ps, loads)
    begin_ps = {member: up_ps + head.from_root_ps[member] for member in members}
    first = Tree(ways, tree.root, tree.children, head_bytes, begin_ps)  # one of them sends values
    return Demand(first.up_ps[tree.root] + first.down_ps[tree.root], loads)


def _filled(what: Aggregation, rank: int) -> Mask:
    """Return a mask of a worker's blocks that are not zero."""
    blocks = blocks_of(what)
    if what.inputs is None:
        return np.ones(blocks, np.bool_)
    bits = np.zeros(blocks * what.lanes, np.int32)
    bits[: what.elements] = what.inputs[rank].view(np.int32)
    return np.logical_or.reduce(bits.reshape(-1, what.lanes) != 0, axis=1)


def _add_switches(
    filled: dict[str, Mask], children: Mapping[str, Sequence[str]], switch: str
) -> None:
    """Add masks of the blocks that anybody below a switch has, for it and for switches below."""
    for child in children[switch]:
        if child not in filled:
            _add_switches(filled, children, child)
    filled[switch] = np.logical_or.reduce([filled[child] for child in children[switch]])
