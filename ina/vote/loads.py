"""The least bytes that votes, and other elements of a few bits, send over each link."""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.ina.loads import Aggregation, Demand, Tree, frame_bytes
from ringleaf.ina.switchml.wire import VALUES_AT
from ringleaf.ina.vote.wire import PLANES, SIGNS, WORDS
from ringleaf.topologies.trees import aggregation_tree
from ringleaf.topologies.ways import Loads, TopologyRoutes


@dataclass(frozen=True, slots=True)
class Form:
    """The packets of a system whose elements have a few bits.

    Args:
        elements: Elements of a block.
        values_at: Bytes before a packet's values.
        up_words: Words of 4 bytes in a host's packet.
        sum_words: Likewise, in a packet of a switch to its parent.
        down_words: Likewise, in a result.
    """

    elements: int
    values_at: int
    up_words: int
    sum_words: int
    down_words: int


FORM = Form(SIGNS, VALUES_AT, up_words=WORDS, sum_words=PLANES * WORDS, down_words=WORDS)


def demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return the demand: signs from hosts and to all, and counts between switches."""
    return demand_of(FORM, ways, what)


def demand_of(form: Form, ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return the demand of a system with packets of this form."""
    members = [ways.hosts[rank] for rank in what.members]
    tree = aggregation_tree(ways.graph, members)
    blocks = -(-what.elements // form.elements)
    own, sums, results = (
        frame_bytes(form.values_at, words)
        for words in (form.up_words, form.sum_words, form.down_words)
    )
    part = Tree(ways, tree.root, tree.children, own)
    whole = Tree(ways, tree.root, tree.children, results)
    up_ps, down_ps = part.up_ps[tree.root], whole.down_ps[tree.root]
    loads = Loads(ways.links)
    for above, below in part.edges():
        size_bytes = blocks * (sums if below in tree.children else own)
        after_ps = ways.hop_ps(below, above) + part.to_root_ps[above] + down_ps
        loads.add((below, (above,)), size_bytes, part.up_ps[below], after_ps)
    whole.add_down(loads, blocks * results, up_ps)
    return Demand(up_ps + down_ps, loads)
