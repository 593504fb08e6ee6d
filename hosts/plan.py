"""A schedule cut into the parts of its nodes: streams of messages, and what each must wait for.

A thousand ranks have millions of parts, so they are columns of numbers. What a part waits for are
counts per chunk: of writes applied, and of sends acknowledged, at its node before it may go on.
Where all nodes' parts are one node's, turned, only those are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.codec import Codec
from ringleaf.collectives.rows import AGGREGATE, REDUCE, Column, Columns
from ringleaf.collectives.schedule import Op, Schedule, chunk_ranges
from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled

MAX_POSTED = 128
"""The most sends, and receives, of a stream at a time; a queue pair's ring has room for more."""

SEND, RECEIVE, SUM, _, LOCAL = range(5)
"""The kinds of parts: a message that leaves, one that comes, an aggregate of the switches; and what
is copied or added within the node, which is two parts, one that reads and one that writes."""

Mask = npt.NDArray[np.bool_]

_MOST_SHORT = 1 << 16
_MOST_SPARSE = 8  # keys per place, up to which a table of all keys is quicker than sorting


class PeerMessages(NamedTuple):
    """One rank's messages of one kind with one peer, which go in the order of the schedule.

    Reduced and copied messages don't wait for each other: in a pipeline through two trees they
    go opposite ways, and would keep each other to one chunk per round trip.
    """

    peer: int
    op: Op
    channel: int = 0


@dataclass(frozen=True, eq=False)
class NodeStreams:
    """All nodes' streams, sorted by node: each one's sends, its receives, then its local work.

    They are in the order of their first messages. Both ends of a stream have a row of their own;
    local work has one for each channel.

    Attributes:
        node: (streams,) the node.
        kind: (streams,) SEND, RECEIVE or LOCAL.
        peer: (streams,) the other node; of local work, the node itself.
        op: (streams,) REDUCE or COPY; of local work, 0.
        channel: (streams,) the channel.
        first: (streams,) the stream's first part.
        end: (streams,) the part after its last.
    """

    node: Column
    kind: Column
    peer: Column
    op: Column
    channel: Column
    first: Column
    end: Column

    def __len__(self) -> int:
        """Return the number of streams."""
        return len(self.node)


@dataclass(frozen=True, eq=False)
class Plans:
    """All nodes' parts of a schedule: those of streams, in their order, then nodes' sums.

    Attributes:
        nodes: The number of nodes: ranks, then servers.
        is_turned: Whether the parts here are node 0's, and those of node n are these with n added
            to chunks, modulo the number of chunks; and to messages, modulo as many, within a step.
        edges: (chunks + 1,) the element at which each chunk starts, and the end. Chunks are those
            of the tensor, then those of each layer of scratch memory, as if it came after.
        scratch: The number of layers of scratch memory.
        codecs: By number of the operation, the codec that writes its messages.
        message: (parts,) the part's message, numbered among `ringleaf.collectives.rows.Columns`.
        node: (parts,) the node.
        kind: (parts,) SEND, RECEIVE, SUM or LOCAL.
        reads: (parts,) whether the part reads chunks here: a send, or the first of local parts.
        op: (parts,) REDUCE or COPY.
        start: (parts,) the first chunk.
        stop: (parts,) the chunk after the last one.
        staged: (parts,) whether a message that comes is put into a buffer at first.
        stream: (parts,) the place in `streams`; -1: the part is a sum.
        after: Counts of writes applied here before the part may go on, for each of its chunks;
            and, but for a part that reads, counts of sends acknowledged.
        after_at: (parts,) the place in `after` where the part's counts begin.
        streams: The streams.
    """

    nodes: int
    is_turned: bool
    edges: Column
    scratch: int
    codecs: tuple[Codec | None, Codec | None]
    message: Column
    node: Column
    kind: Column
    reads: Mask
    op: Column
    start: Column
    stop: Column
    staged: Mask
    stream: Column
    after: Column
    after_at: Column
    streams: NodeStreams

    @property
    def chunks(self) -> int:
        """The number of chunks, those of scratch memory included."""
        return len(self.edges) - 1

    @property
    def own_chunks(self) -> int:
        """The number of chunks of the tensor."""
        return self.chunks // (1 + self.scratch)

    @property
    def elements(self) -> int:
        """The number of elements of each tensor."""
        return int(self.edges[self.own_chunks])

    @property
    def scratch_elements(self) -> int:
        """The number of elements of a node's scratch memory."""
        return int(self.edges[-1]) - self.elements

    @property
    def first_sum(self) -> int:
        """The first part here that is a sum: those of streams come before."""
        return int(self.streams.end[-1]) if len(self.streams) else 0

    @property
    def count(self) -> int:
        """The number of parts of all nodes."""
        return len(self.message) * (self.nodes if self.is_turned else 1)

    def counts(self, chosen: Mask | slice = slice(None)) -> Column:
        """Return how many of the chosen parts each node has: (nodes,)."""
        if self.is_turned:
            return np.full(self.nodes, len(self.node[chosen]))
        return np.bincount(self.node[chosen], minlength=self.nodes)

    @property
    def kept_streams(self) -> int:
        """The number of streams whose parts are here: all, or those of node 0."""
        return len(self.streams) // (self.nodes if self.is_turned else 1)

    def of_all(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what is known of streams whose parts are here for all streams."""
        return np.tile(column, self.nodes) if self.is_turned else column

    @cached_property
    def sizes(self) -> Column:
        """(parts,) the number of elements of each; where they are turned, the most of any."""
        sizes: Column = self.edges[self.stop] - self.edges[self.start]
        return np.full_like(sizes, np.diff(self.edges).max()) if self.is_turned else sizes

    @cached_property
    def coded(self) -> Mask:
        """(streams,) whether a codec writes the messages."""
        wrote = np.array([codec is not None for codec in self.codecs])
        mask: Mask = wrote[self.streams.op]
        return mask

    def streams_of(self, node: int, *kinds: int) -> list[PeerMessages]:
        """Return a node's streams of some kinds, or all; each once, those it sends on first."""
        streams = self.streams
        here = range(*np.searchsorted(streams.node, [node, node + 1]).tolist())
        chosen = [place for place in here if not kinds or streams.kind[place] in kinds]
        return list(dict.fromkeys(stream for _, stream in self._ends(chosen)))

    @property
    def ends(self) -> list[tuple[int, PeerMessages]]:
        """Each stream's node, and the stream as that node sees it; but for local work."""
        return list(self._ends(np.flatnonzero(self.streams.kind != LOCAL)))

    def _ends(self, chosen: Column | list[int]) -> Iterator[tuple[int, PeerMessages]]:
        streams = self.streams
        columns = (streams.node, streams.peer, streams.op, streams.channel)
        for node, peer, op, channel in zip(
            *(column[chosen].tolist() for column in columns), strict=True
        ):
            yield node, PeerMessages(peer, _OPS[op], channel)


_OPS = (Op.REDUCE, Op.COPY)


def plans(schedule: Schedule, elements: int, edges: Column | None = None) -> Plans:
    """Return the parts of a schedule's nodes, for tensors of `elements` elements.

    Messages without a byte are left out. `edges`, (chunks + 1,), are the element at which each
    chunk starts, and the end; None: chunks are nearly equal.
    """
    if edges is None:
        stops = (stop for _, stop in chunk_ranges(elements, schedule.chunks))
        edges = np.array([0, *stops], np.int64)
    own = edges
    layers = np.arange(1 + schedule.scratch)[:, None]
    edges = np.append((own[:-1] + layers * elements).reshape(-1), len(layers) * elements)
    codecs = tuple(schedule.codec_of(op) for op in _OPS)
    is_turned = _can_turn(schedule, own)
    if is_turned:
        parts, after = _first_node_s(schedule, own)
    else:
        parts, after = parts_of(
            schedule, np.arange(len(schedule.columns)), schedule.columns, own, len(edges) - 1
        )
    order, streams, stream = sort_parts(parts)
    of_nodes = Plans(
        schedule.nodes,
        is_turned,
        edges,
        schedule.scratch,
        (codecs[0], codecs[1]),
        parts.message[order],
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
        _turned(streams, schedule.nodes) if is_turned else streams,
    )
    stage_first(of_nodes)
    return of_nodes


def _can_turn(schedule: Schedule, own: Column) -> bool:
    """Return whether one node's parts are those of all; `own` are the edges of chunks."""
    rows = schedule.circulant
    if rows is None or schedule.codec is not None or not len(rows):
        return False
    return bool((np.diff(own) > 0).all())


def _turned(streams: NodeStreams, nodes: int) -> NodeStreams:
    """Return all nodes' streams, given node 0's."""
    turn = np.repeat(np.arange(nodes), len(streams))
    peer = (np.tile(streams.peer, nodes) + turn) % nodes
    others = (streams.op, streams.channel, streams.first, streams.end)
    return NodeStreams(
        turn, np.tile(streams.kind, nodes), peer, *(np.tile(each, nodes) for each in others)
    )


class NodeParts(NamedTuple):
    """NodeParts in the order of messages: all that reads, then all that writes. As in `Plans`."""

    place: Column  # among the messages that are there
    message: Column
    node: Column
    kind: Column
    reads: Mask
    peer: Column  # -1: a sum
    op: Column
    channel: Column
    start: Column
    stop: Column
    staged: Mask
    after_at: Column

    def take(self, chosen: Mask) -> NodeParts:
        """Return the chosen ones."""
        columns: dict[str, Any] = {name: each[chosen] for name, each in self._asdict().items()}
        return NodeParts(**columns)


def _first_node_s(schedule: Schedule, own: Column) -> tuple[NodeParts, Column]:
    """Return the parts of node 0 in a circulant schedule, and what they wait for."""
    assert schedule.circulant is not None
    numbers, rows = schedule.circulant.of_rank(0)
    parts, after = parts_of(schedule, numbers, rows, own, schedule.chunks, nodes=2)
    return parts.take(parts.node == 0), after


def parts_of(
    schedule: Schedule,
    numbers: Column,
    rows: Columns,
    own: Column,
    chunks: int,
    *,
    nodes: int | None = None,
) -> tuple[NodeParts, Column]:
    """Return the parts of some rows, and what they wait for.

    Args:
        schedule: The schedule.
        numbers: The numbers of the rows' messages.
        rows: The rows; all those of the nodes whose parts are wanted.
        own: The elements at which the tensor's chunks start, and the end.
        chunks: The number of chunks, those of scratch memory included.
        nodes: The number of nodes that are told apart when waits are counted, of which the last
            one stands for all others; None: all.
    """
    is_sum = rows.op == AGGREGATE
    there = np.flatnonzero(is_sum | (own[rows.stop] > own[rows.start]))
    message, here, is_sum = numbers[there], rows.take(there), is_sum[there]
    ends = _Ends.of(here, schedule.nodes, schedule.chunks)
    apart = schedule.nodes if nodes is None else nodes
    waits = _count_waits(here, ends.among(apart), apart, chunks)
    sends, writes = np.flatnonzero(~is_sum), np.repeat(np.arange(len(here)), np.diff(ends.at))
    place = np.concatenate((sends, writes))
    reads = np.arange(len(place)) < len(sends)
    kind = np.where(reads, SEND, np.where(is_sum[place], SUM, RECEIVE))
    kind[(~is_sum & (ends.src == ends.writers[ends.at[:-1]]))[place]] = LOCAL
    op = np.where(is_sum, REDUCE, here.op)[place]
    start = np.concatenate((ends.read[sends], ends.written))
    coded = np.array([schedule.codec_of(op) is not None for op in _OPS])
    staged = (kind == RECEIVE) & ((op == REDUCE) | coded[op])
    staged[len(sends) :] |= waits.swaps & (kind[len(sends) :] == RECEIVE)
    parts = NodeParts(
        place=place,
        message=message[place],
        node=np.concatenate((ends.src[sends], ends.writers)),
        kind=kind,
        reads=reads,
        peer=np.concatenate((ends.dst[sends], np.where(is_sum[writes], -1, ends.src[writes]))),
        op=op,
        channel=here.channel[place],
        start=start,
        stop=start + (here.stop - here.start)[place],
        staged=staged,
        after_at=np.concatenate((waits.sends_at, waits.writes_at)),
    )
    return parts, waits.after


def stage_first(of_nodes: Plans) -> None:
    """Stage each stream's first message, if it may come before its chunks are ready for it.

    It comes before there is credit, so it must be let in at once. So must the first one to the
    tensor, where others to scratch memory come before it: a peer that has them may answer with what
    replaces a chunk of theirs, before their acknowledgement is there.
    """
    is_receive = of_nodes.streams.kind == RECEIVE
    firsts = of_nodes.streams.first[is_receive]
    if of_nodes.scratch:
        to_tensor = (of_nodes.kind == RECEIVE) & (of_nodes.start < of_nodes.own_chunks)
        places = np.flatnonzero(to_tensor)
        _, first_of = np.unique(of_nodes.stream[places], return_index=True)
        firsts = np.concatenate((firsts, places[first_of]))
    at, size = of_nodes.after_at[firsts], 2 * (of_nodes.stop - of_nodes.start)[firsts]
    sums = np.concatenate(([0], np.cumsum(of_nodes.after)))
    of_nodes.staged[firsts] |= sums[at + size] > sums[at]


class _Ends(NamedTuple):
    """Nodes and chunks at both ends of each message; an aggregate writes to all that it is for."""

    src: Column  # (messages,) the node that reads; of an aggregate, not used
    dst: Column  # (messages,) the node that is written to; of an aggregate, not used
    read: Column  # (messages,) the first chunk that is read there
    at: Column  # (messages + 1,) where each message's writers begin in `writers`
    writers: Column  # nodes that messages write to
    written: Column  # likewise, the first chunk that is written there

    def among(self, nodes: int) -> _Ends:
        """Return the ends where the last of so many nodes stands for all others."""
        src, writers = np.minimum(self.src, nodes - 1), np.minimum(self.writers, nodes - 1)
        return self._replace(src=src, writers=writers)

    @classmethod
    def of(cls, rows: Columns, nodes: int, chunks: int) -> _Ends:
        """Return the ends of rows, whose places are split into nodes and layers."""
        if not rows.groups:
            (read, src), (written, dst) = np.divmod(rows.src, nodes), np.divmod(rows.dst, nodes)
            read, written = read * chunks + rows.start, written * chunks + rows.start
            return cls(src, dst, read, np.arange(len(rows) + 1), dst, written)
        is_sum = rows.op == AGGREGATE
        plain = cls.of(replace(rows, groups=()), nodes, chunks)
        counts = np.ones(len(rows), np.int64)
        members = [rows.groups[place] for place in rows.src[is_sum]]
        counts[is_sum] = [len(group) for group in members]
        at = np.concatenate(([0], np.cumsum(counts)))
        writers = np.repeat(plain.dst, counts)
        written = np.repeat(np.where(is_sum, rows.start, plain.written), counts)
        writers[np.repeat(is_sum, counts)] = list(chain.from_iterable(members))
        return cls(plain.src, plain.dst, plain.read, at, writers, written)


class _Waits(NamedTuple):
    """What parts wait for, as `Plans` has it."""

    after: Column
    sends_at: Column  # (sends,) where the counts of each begin in `after`
    writes_at: Column  # (writes,) likewise
    swaps: Mask  # (writes,) whether the node sends one of these chunks in the same step


def _count_waits(rows: Columns, ends: _Ends, nodes: int, chunks: int) -> _Waits:
    """Count what each part waits for; rows are sorted by step."""
    size = rows.stop - rows.start
    moves = rows.op != AGGREGATE
    at = np.concatenate(([0], np.cumsum(np.where(moves, size, 0))))
    sends_at = at[:-1]
    per_write = 2 * np.repeat(size, np.diff(ends.at))
    writes_at = at[-1] + np.concatenate(([0], np.cumsum(per_write)))
    after = np.zeros(int(writes_at[-1]), np.int64)
    swaps = np.zeros(len(per_write), np.bool_)
    steps = np.append(np.flatnonzero(np.diff(rows.step, prepend=-1)), len(rows))
    tables = [np.zeros((nodes, chunks), np.int32) for _ in range(3)]
    marks = [np.full((nodes, chunks), -1, np.int32) for _ in range(2)]
    columns = (ends.src, ends.read, size, moves, ends.at, ends.writers, ends.written)
    _walk(steps, *columns, sends_at, writes_at, after, swaps, *tables, *marks)
    return _Waits(after, sends_at[moves], writes_at[:-1], swaps)


_column = types.int64[::1]
_counts = types.int32[:, ::1]


@compiled(
    types.void(
        *[_column] * 4, types.boolean[::1], *[_column] * 6, types.boolean[::1], *[_counts] * 5
    )
)
def _walk(  # noqa: C901 - one pass over rows, whose counts are shared
    steps: Column,
    src: Column,
    read: Column,
    size: Column,
    moves: Mask,
    writers_at: Column,
    writers: Column,
    written_at: Column,
    sends_at: Column,
    writes_at: Column,
    after: Column,
    swaps: Mask,
    written: Any,
    written_before: Any,
    sent: Any,
    write_step: Any,
    send_step: Any,
) -> None:
    """Count writes and sends of each node's chunks, step by step.

    Args:
        steps: The first row of each step, and the number of rows.
        src: (rows,) the sending node, as all columns of rows from here on.
        read: The first chunk that is read.
        size: The number of chunks.
        moves: Whether the row is a message, which somebody sends.
        writers_at: Where the row's writers begin.
        writers: The nodes that rows write to.
        written_at: (writers,) the first chunk that is written.
        sends_at: Where the counts of a row's send go.
        writes_at: (writers,) where the counts of a write go.
        after: The counts.
        swaps: (writers,) set if the node sends such a chunk in the same step.
        written: (nodes, chunks) writes so far.
        written_before: Writes before the step of the last one.
        sent: Sends so far.
        write_step: The step of the last write.
        send_step: The step of the last send.
    """
    for step in range(len(steps) - 1):
        for row in range(steps[step], steps[step + 1]):
            for i in range(size[row]):
                if moves[row]:
                    node, chunk = src[row], read[row] + i
                    count = written[node, chunk]
                    if write_step[node, chunk] == step:
                        count = written_before[node, chunk]
                    after[sends_at[row] + i] = count
                    sent[node, chunk] += 1
                    send_step[node, chunk] = step
                for place in range(writers_at[row], writers_at[row + 1]):
                    node, chunk = writers[place], written_at[place] + i
                    after[writes_at[place] + i] = written[node, chunk]
                    if write_step[node, chunk] != step:
                        write_step[node, chunk] = step
                        written_before[node, chunk] = written[node, chunk]
                    written[node, chunk] += 1
        for row in range(steps[step], steps[step + 1]):
            for place in range(writers_at[row], writers_at[row + 1]):
                for i in range(size[row]):
                    node, chunk = writers[place], written_at[place] + i
                    after[writes_at[place] + size[row] + i] = sent[node, chunk]
                    if send_step[node, chunk] == step:
                        swaps[place] = True


def sort_parts(parts: NodeParts) -> tuple[Column, NodeStreams, Column]:
    """Return the order of parts, their streams, and each part's stream in that order."""
    node, kind, peer, channel = parts.node, parts.kind, parts.peer, parts.channel
    op = np.where(kind == LOCAL, 0, parts.op)
    is_sum = kind == SUM
    key, keys = kind.copy(), int(kind.max(initial=0)) + 1
    for column in (node, peer, op, channel):
        count = int(column.max(initial=0)) + 1
        key *= count
        key += column if column is node else np.where(is_sum, 0, column)
        keys *= count
    first, inverse = _distinct(key, keys)
    by_node = np.lexsort((parts.place[first], kind[first], node[first], is_sum[first]))
    rank = np.empty_like(by_node)
    rank[by_node] = np.arange(len(by_node))
    number = rank[inverse]
    if len(by_node) <= _MOST_SHORT:
        number = number.astype(np.uint16)  # which NumPy sorts by radix
    order = np.argsort(number, kind="stable")
    if (kind == LOCAL).any():
        order = np.lexsort((~parts.reads, parts.place, number))
    first = first[by_node]
    count = int((~is_sum[first]).sum())
    edges = np.searchsorted(number[order], np.arange(count + 1))
    first = first[:count]
    ends = (node[first], kind[first], peer[first], op[first], channel[first])
    streams = NodeStreams(*ends, edges[:-1], edges[1:])
    stream = np.repeat(np.arange(count + 1), np.diff(edges, append=len(order)))
    stream[stream == count] = -1
    return order, streams, stream


def _distinct(key: Column, keys: int) -> tuple[Column, Column]:
    """Return where each key is first, by key, and for each place the number of its key.

    Args:
        key: Keys from 0 on.
        keys: More than the largest.
    """
    if keys > _MOST_SPARSE * max(len(key), 1):
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        return first, number
    table = np.full(keys, -1)
    table[key[::-1]] = np.arange(len(key))[::-1]  # the last one counts, which is the first place
    there = np.flatnonzero(table >= 0)
    first = table[there]
    table[there] = np.arange(len(there))
    return first, table[key]
