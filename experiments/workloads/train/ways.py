"""The way of a call: which schedule carries it, over which elements, and where its data lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ringleaf.collectives.collective import Collective as Kind
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.rows import AGGREGATE
from ringleaf.collectives.schedule import ChunkRows, Columns, Op, Schedule, check
from ringleaf.collectives.synthesis.algorithm import about
from ringleaf.collectives.wires import Network
from ringleaf.core.tensors import FLOAT32, ElementType
from ringleaf.experiments.workloads.train import calls
from ringleaf.experiments.workloads.train.calls import CollectiveCall
from ringleaf.experiments.workloads.train.elements import SUM, WORD, Reduction
from ringleaf.experiments.workloads.train.layout import (
    DataLayout,
    Pieces,
    blocks,
    exchange,
    uneven_exchange,
    whole,
)
from ringleaf.experiments.workloads.train.rules import USUAL, RuleList

DIRECT = "direct"
"""The way of gathers, scatters and messages: each block goes at once to where it belongs."""

PARTS: dict[str, Kind] = {
    calls.ALL_REDUCE: Kind.ALLREDUCE,
    calls.BARRIER: Kind.ALLREDUCE,
    calls.REDUCE: Kind.REDUCE,
    calls.BROADCAST: Kind.BROADCAST,
    calls.REDUCE_SCATTER: Kind.REDUCE_SCATTER,
    calls.ALL_GATHER: Kind.ALL_GATHER,
    calls.ALL_TO_ALL: Kind.ALL_TO_ALL,
}
"""The calls for which there are algorithms."""

BARRIER = CollectiveCall(calls.ALL_REDUCE, "int32", SUM, 1)
"""The collective that is a barrier: nobody has the sum before all have come."""


@dataclass(frozen=True, slots=True)
class CallCarrier:
    """A way to carry a call.

    Attributes:
        algorithm: The algorithm's name.
        schedule: Its schedule, for the ranks of the group.
        elements: Elements of each rank's tensor.
        dtype: Their type, in NumPy's terms.
        layout: The place of ranks' data.
        reduction: How they are reduced; None: they are copied.
        system: The name of the system that aggregates; "": hosts do.
        edges: The elements at which chunks start, and the end; None: they are nearly equal.
    """

    algorithm: str
    schedule: Schedule
    elements: int
    dtype: ElementType
    layout: DataLayout
    reduction: Reduction | None = None
    system: str = ""
    edges: tuple[int, ...] | None = None

    @property
    def size_bytes(self) -> int:
        """The size of the call: that of each rank's tensor.

        Tensors of an exchange of uneven parts hold those of all ranks; its size is what a rank
        gives on average, as of even ones.
        """
        shares = 1 if self.edges is None else len(self.layout.loads)
        return self.layout.tensor_bytes // shares


class CallCarriers:
    """All ways of a run.

    Args:
        rules: The choice of algorithms.
        hierarchy: The sizes of groups of neighbours among all hosts, innermost first.
        fabric: The fabric that schedules are built for.
        network: Finds the wires between all hosts.
    """

    def __init__(
        self,
        rules: RuleList,
        hierarchy: tuple[int, ...] = (),
        fabric: AlphaBeta | None = None,
        network: Network | None = None,
    ) -> None:
        self._rules = rules
        self._hierarchy = hierarchy
        self._fabric = fabric or AlphaBeta()
        self._network = network
        self.build = cache(self._build)

    def way(self, parts: Sequence[CollectiveCall], item_bytes: int) -> CallCarrier:
        """Return the way of calls that belong together, which all ranks of a group have made.

        Args:
            parts: The calls, by rank of the group; of a message, of sender and receiver.
            item_bytes: The size of an element.

        Raises:
            ConfigError: If elements of this type can't be reduced so.
        """
        call, ranks = parts[0], len(parts)
        if call.kind == calls.BARRIER:
            nothing: list[Pieces] = [()] * ranks
            layout = DataLayout(BARRIER.count * WORD.itemsize, nothing, nothing)
            return replace(self._reducing(BARRIER, ranks), layout=layout)
        if call.kind in (calls.ALL_REDUCE, calls.REDUCE, calls.REDUCE_SCATTER):
            return self._reducing(call, ranks)
        if call.kind == calls.ALL_TO_ALL:
            return self._exchanging(parts, item_bytes)
        size = call.count * item_bytes
        room = -(-size // WORD.itemsize) * WORD.itemsize
        layout = _copied(call, ranks, size, room)
        if call.kind in PARTS:
            name = self._rules.choose(PARTS[call.kind], layout.tensor_bytes, ranks)
            schedule = self.build(name, ranks, layout.tensor_bytes, call.root)
        else:
            name, schedule = DIRECT, direct(call, ranks)
        return CallCarrier(name, schedule, -(-layout.tensor_bytes // WORD.itemsize), WORD, layout)

    def _reducing(self, call: CollectiveCall, ranks: int) -> CallCarrier:
        reduction = Reduction(call.dtype, call.op)
        kind = PARTS[call.kind]
        item = reduction.elements.itemsize
        if kind is Kind.REDUCE_SCATTER:
            size = call.count * item
            layout = blocks(size, ranks, size, loads="all", unloads="own")
        else:
            targets = [call.root] if kind is Kind.REDUCE else range(ranks)
            layout = whole(call.count * item, ranks, range(ranks), targets)
        name = self._rules.choose(kind, layout.tensor_bytes, ranks)
        schedule = self.build(name, ranks, layout.tensor_bytes, call.root)
        if not _can(schedule, reduction):
            name = USUAL[kind]
            schedule = self.build(name, ranks, layout.tensor_bytes, call.root)
        return CallCarrier(
            name,
            schedule,
            layout.tensor_bytes // item,
            reduction.elements,
            layout,
            reduction,
            system=name if ALGORITHMS[name].in_network else "",
        )

    def _exchanging(self, parts: Sequence[CollectiveCall], item_bytes: int) -> CallCarrier:
        ranks, counts = len(parts), {size for call in parts for size in call.sends}
        if len(counts) == 1:
            block = counts.pop() * item_bytes
            room = -(-block // WORD.itemsize) * WORD.itemsize
            layout = exchange(block, ranks, room)
            name = self._rules.choose(Kind.ALL_TO_ALL, layout.tensor_bytes, ranks)
            schedule = self.build(name, ranks, layout.tensor_bytes, 0)
            return CallCarrier(name, schedule, layout.tensor_bytes // WORD.itemsize, WORD, layout)
        layout, edges = uneven_exchange(parts, item_bytes, WORD.itemsize)
        words = tuple(edge // WORD.itemsize for edge in edges)
        return CallCarrier(DIRECT, _pairwise(ranks), words[-1], WORD, layout, edges=words)

    def _build(self, name: str, ranks: int, size_bytes: int, root: int) -> Schedule:
        """Return an algorithm's schedule; the same one for the same arguments."""
        schedule = ALGORITHMS[name].build(
            ranks,
            size_bytes=about(name, size_bytes),
            hierarchy=self._hierarchy if np.prod(self._hierarchy) == ranks else (ranks,),
            root=root,
            fabric=self._fabric,
            network=self._network,
        )
        check(schedule)
        return schedule


def _can(schedule: Schedule, reduction: Reduction) -> bool:
    """Return whether a schedule can do a reduction: switches add few types, and so do codecs."""
    if schedule.groups:
        return reduction.is_plain
    return schedule.codec is None or reduction == Reduction(FLOAT32.name, SUM)


def _copied(call: CollectiveCall, ranks: int, size: int, room: int) -> DataLayout:
    """Return the layout of a call that copies blocks of `size` bytes."""
    if call.kind == calls.BROADCAST:
        return whole(size, ranks, [call.root], range(ranks))
    if call.kind == calls.SEND:
        return whole(size, ranks, [0], [1])
    if call.kind == calls.SCATTER:
        return blocks(size, ranks, room, loads="root", unloads="own", root=call.root)
    unloads = "root" if call.kind == calls.GATHER else "all"
    return blocks(size, ranks, room, loads="own", unloads=unloads, root=call.root)


@cache
def _direct(kind: str, ranks: int, root: int) -> Schedule:
    if kind == calls.SEND:
        rows = Columns.transfers(0, 0, 1, 0, Op.COPY)
        return Schedule(Kind.BROADCAST, DIRECT, 2, 1, ChunkRows(rows))
    others = np.array([rank for rank in range(ranks) if rank != root], np.int64)
    src, dst = (others, root) if kind == calls.GATHER else (root, others)
    rows = Columns.transfers(0, src, dst, others, Op.COPY)
    return Schedule(Kind.ALL_GATHER, DIRECT, ranks, ranks, ChunkRows(rows))


def direct(call: CollectiveCall, ranks: int) -> Schedule:
    """Return the schedule of a gather, a scatter or a message."""
    return _direct(call.kind, ranks, call.root if call.kind != calls.SEND else 0)


@cache
def _pairwise(ranks: int) -> Schedule:
    """Return an all-to-all whose chunk `i n + j` is the block from rank i for rank j."""
    distance, src = np.ogrid[1:ranks, :ranks]
    dst = (src + distance) % ranks
    rows = Columns.transfers(distance - 1, src, dst, src * ranks + dst, Op.COPY)
    return Schedule(Kind.ALL_TO_ALL, DIRECT, ranks, ranks * ranks, ChunkRows(rows))


def among(schedule: Schedule, members: Sequence[int], nodes: int) -> Schedule:
    """Return a schedule whose ranks are some of a network's nodes: rank i is `members[i]`."""
    rows = schedule.columns
    assert not (rows.op == AGGREGATE).any(), "switches aggregate for groups of their own"
    place = np.array(members, np.int64)
    of, old = place.take, schedule.nodes  # layers of scratch memory stay what they are
    src, dst = (of(at % old) + at // old * nodes for at in (rows.src, rows.dst))
    moved = replace(rows, src=src, dst=dst)
    return replace(
        schedule, ranks=nodes, rows=ChunkRows(moved), root=members[schedule.root], servers=0
    )
