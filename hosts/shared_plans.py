"""Plans of nodes that stand for many ranks: one for each kind, which all nodes of the kind share.

A node here is a rank that others are like (`ringleaf.collectives.symmetry`). It has the streams
that the rank has in the whole schedule, and the same waits, but only the parts of its kind's first
node are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.rows import Column, Columns
from ringleaf.collectives.schedule import Schedule
from ringleaf.hosts.plan import (
    Mask,
    NodeParts,
    NodeStreams,
    Plans,
    parts_of,
    sort_parts,
    stage_first,
)


@dataclass(frozen=True, eq=False)
class SharedPlans(Plans):
    """Plans of nodes, of which the first ones are of all kinds, in order, and have the parts.

    Attributes:
        node_kind: (nodes,) the kind of each.
        like: (streams,) the stream of the kind's first node whose parts each stream shares.
    """

    node_kind: Column
    like: Column

    @property
    def first_sum(self) -> int:
        """The number of parts here: none is a sum."""
        return len(self.message)

    @property
    def count(self) -> int:
        """The number of parts of all nodes."""
        return int(self.counts().sum())

    def counts(self, chosen: Mask | slice = slice(None)) -> Column:
        """Return how many of the chosen parts each node has: (nodes,)."""
        kinds = int(self.node_kind.max(initial=0)) + 1
        return np.bincount(self.node[chosen], minlength=kinds)[self.node_kind]

    @property
    def kept_streams(self) -> int:
        """The number of streams whose parts are here."""
        return int(self.like.max(initial=-1)) + 1

    def of_all(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what is known of streams whose parts are here for all streams."""
        return column[self.like]


def plan_of_rank(schedule: Schedule, rows: Columns, rank: int, edges: Column) -> Plans:
    """Return a plan of one node: that of a rank, given all rows that it sends or receives.

    Messages are numbered stream by stream. Peers are numbered as in the schedule. `edges` are the
    elements at which chunks start, and the end.
    """
    ranks = schedule.nodes
    # The counts are of two nodes: this rank, and one that stands for all others.
    own = replace(rows, src=(rows.src - rank) % ranks, dst=(rows.dst - rank) % ranks)
    chunks = len(edges) - 1
    parts, after = parts_of(
        replace(schedule, chunks=chunks), np.arange(len(rows)), own, edges, chunks, nodes=2
    )
    parts = parts.take(parts.node == 0)
    order, streams, stream = sort_parts(parts)
    plan = _plan(1, edges, parts, order, stream, after, streams)
    stage_first(plan)
    return replace(plan, streams=replace(streams, peer=(streams.peer + rank) % ranks))


def _plan(
    nodes: int,
    edges: Column,
    parts: NodeParts,
    order: Column,
    stream: Column,
    after: Column,
    streams: NodeStreams,
) -> Plans:
    return Plans(
        nodes,
        False,
        edges,
        0,
        (None, None),
        np.arange(len(order)),
        parts.node[order],
        parts.kind[order],
        parts.reads[order],
        parts.op[order],
        parts.start[order],
        parts.stop[order],
        parts.staged[order],
        stream,
        after,
        parts.after_at[order],
        streams,
    )


def shared(plans: Sequence[Plans], kind: Column, peers: Sequence[Column]) -> SharedPlans:
    """Return the plans of nodes, given one of each kind.

    Args:
        plans: By kind, the plan of one node.
        kind: (nodes,) each node's kind; the first nodes are of all kinds, in order.
        peers: By node, the peer of each of its streams.
    """
    parts = np.cumsum([0, *(len(plan.message) for plan in plans)])
    waits = np.cumsum([0, *(len(plan.after) for plan in plans)])
    firsts = np.cumsum([0, *(len(plan.streams) for plan in plans)])
    of_nodes = [np.arange(firsts[each], firsts[each + 1]) for each in kind.tolist()]
    like = np.concatenate(of_nodes)

    def joined(name: str, more: Sequence[int] | None = None) -> Any:
        columns = (getattr(plan, name) for plan in plans)
        if more is None:
            return np.concatenate(list(columns))
        return np.concatenate([each + by for each, by in zip(columns, more, strict=False)])

    def streams_of(name: str, more: Sequence[int] | None = None) -> Any:
        columns = [getattr(plan.streams, name) for plan in plans]
        by = [0] * len(plans) if more is None else more
        return np.concatenate([each + add for each, add in zip(columns, by, strict=False)])[like]

    node = np.repeat(np.arange(len(kind)), [len(each) for each in of_nodes])
    streams = NodeStreams(
        node,
        streams_of("kind"),
        np.concatenate(peers),
        streams_of("op"),
        streams_of("channel"),
        streams_of("first", parts.tolist()),
        streams_of("end", parts.tolist()),
    )
    return SharedPlans(
        len(kind),
        False,
        plans[0].edges,
        0,
        (None, None),
        joined("message"),
        joined("node", range(len(plans))),
        joined("kind"),
        joined("reads"),
        joined("op"),
        joined("start"),
        joined("stop"),
        joined("staged"),
        joined("stream", firsts.tolist()),
        joined("after"),
        joined("after_at", waits.tolist()),
        streams,
        node_kind=kind,
        like=like,
    )
