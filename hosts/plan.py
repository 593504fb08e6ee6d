"""A schedule cut into the parts of its nodes: streams of messages, and what each must wait for.

A thousand ranks have millions of parts, so they are columns of numbers. What a part waits for are
counts per chunk: of writes applied, and of sends acknowledged, at its node before it may go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from ringleaf.collectives.codec import Codec
from ringleaf.collectives.rows import AGGREGATE, REDUCE, Column, Columns
from ringleaf.collectives.schedule import Op, Schedule, chunk_ranges
from ringleaf.compiled import compiled

MAX_POSTED = 128
"""The most sends, and receives, of a stream at a time; a queue pair's ring has room for more."""

SEND, RECEIVE, SUM = range(3)
"""The kinds of parts: a message that leaves, one that comes, an aggregate of the switches."""

Mask = npt.NDArray[np.bool_]


class Stream(NamedTuple):
    """One rank's messages of one kind with one peer, which go in the order of the schedule.

    Reduced and copied messages don't wait for each other: in a pipeline through two trees they
    go opposite ways, and would keep each other to one chunk per round trip.
    """

    peer: int
    op: Op


@dataclass(frozen=True, eq=False)
class Streams:
    """All nodes' streams, sorted by node: each one's sends, then its receives.

    They are in the order of their first messages. Both ends of a stream have a row of their own.

    Attributes:
        node: (streams,) the node.
        kind: (streams,) SEND or RECEIVE.
        peer: (streams,) the other node.
        op: (streams,) REDUCE or COPY.
        first: (streams,) the stream's first part.
        end: (streams,) the part after its last.
    """

    node: Column
    kind: Column
    peer: Column
    op: Column
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
        edges: (chunks + 1,) the element at which each chunk starts, and the end.
        codecs: By number of the operation, the codec that writes its messages.
        message: (parts,) the part's message, numbered among `ringleaf.collectives.rows.Columns`.
        node: (parts,) the node.
        kind: (parts,) SEND, RECEIVE or SUM.
        op: (parts,) REDUCE or COPY.
        start: (parts,) the first chunk.
        stop: (parts,) the chunk after the last one.
        staged: (parts,) whether a message that comes is put into a buffer at first.
        stream: (parts,) the place in `streams`; -1: the part is a sum.
        after: Counts of writes applied here before the part may go on, for each of its chunks;
            and, but for a send, counts of sends acknowledged.
        after_at: (parts,) the place in `after` where the part's counts begin.
        streams: The streams.
    """

    nodes: int
    edges: Column
    codecs: tuple[Codec | None, Codec | None]
    message: Column
    node: Column
    kind: Column
    op: Column
    start: Column
    stop: Column
    staged: Mask
    stream: Column
    after: Column
    after_at: Column
    streams: Streams

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.edges) - 1

    @property
    def elements(self) -> int:
        """The number of elements of each tensor."""
        return int(self.edges[-1])

    @property
    def first_sum(self) -> int:
        """The first part that is a sum: those of streams come before."""
        return int(self.streams.end[-1]) if len(self.streams) else 0

    @cached_property
    def sizes(self) -> Column:
        """(parts,) the number of elements of each."""
        found: Column = self.edges[self.stop] - self.edges[self.start]
        return found

    @cached_property
    def coded(self) -> Mask:
        """(streams,) whether a codec writes the messages."""
        wrote = np.array([codec is not None for codec in self.codecs])
        found: Mask = wrote[self.streams.op]
        return found

    def streams_of(self, node: int, *kinds: int) -> list[Stream]:
        """Return a node's streams of some kinds, or all; each once, those it sends on first."""
        streams = self.streams
        here = range(*np.searchsorted(streams.node, [node, node + 1]).tolist())
        chosen = [place for place in here if not kinds or streams.kind[place] in kinds]
        ends = zip(streams.peer[chosen].tolist(), streams.op[chosen].tolist(), strict=True)
        return list(dict.fromkeys(Stream(peer, _OPS[op]) for peer, op in ends))

    @property
    def ends(self) -> list[tuple[int, Stream]]:
        """Each stream's node, and the stream as that node sees it."""
        columns = (self.streams.node, self.streams.peer, self.streams.op)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [(node, Stream(peer, _OPS[op])) for node, peer, op in rows]


_OPS = (Op.REDUCE, Op.COPY)


def plans(schedule: Schedule, elements: int, edges: Column | None = None) -> Plans:
    """Return the parts of a schedule's nodes, for tensors of `elements` elements.

    Messages without a byte are left out. `edges`, (chunks + 1,), are the element at which each
    chunk starts, and the end; None: chunks are nearly equal.
    """
    rows = schedule.columns
    if edges is None:
        stops = (stop for _, stop in chunk_ranges(elements, schedule.chunks))
        edges = np.array([0, *stops], np.int64)
    is_sum = rows.op == AGGREGATE
    moves = ~is_sum & (edges[rows.stop] > edges[rows.start])
    here = rows.take(moves | is_sum)
    message = np.flatnonzero(moves | is_sum)
    codecs = tuple(schedule.codec_of(op) for op in _OPS)
    writers = _writers(here)
    waits = _count_waits(here, writers, schedule.nodes, schedule.chunks)
    is_sum, moves = is_sum[message], moves[message]
    sends, writes = np.flatnonzero(moves), np.repeat(np.arange(len(here)), np.diff(writers.at))
    place = np.concatenate((sends, writes))
    kind = np.concatenate((np.full(len(sends), SEND), np.where(is_sum[writes], SUM, RECEIVE)))
    node = np.concatenate((here.src[sends], writers.nodes))
    peer = np.concatenate((here.dst[sends], np.where(is_sum[writes], -1, here.src[writes])))
    op = np.where(is_sum, REDUCE, here.op)[place]
    coded = np.array([codec is not None for codec in codecs])
    staged = (kind == RECEIVE) & ((op == REDUCE) | coded[op])
    staged[len(sends) :] |= waits.swaps & (kind[len(sends) :] == RECEIVE)
    order, streams, stream = _sort(node, kind, peer, op, place, schedule.nodes)
    after_at = np.concatenate((waits.sends_at, waits.writes_at))[order]
    made = Plans(
        schedule.nodes,
        edges,
        (codecs[0], codecs[1]),
        message[place[order]],
        node[order],
        kind[order],
        op[order],
        here.start[place[order]],
        here.stop[place[order]],
        staged[order],
        stream,
        waits.after,
        after_at,
        streams,
    )
    _stage_first(made)
    return made


def _stage_first(made: Plans) -> None:
    """Stage each stream's first message, if it may come before its chunks are ready for it.

    It comes before there is credit, so it must be let in at once.
    """
    firsts = made.streams.first[made.streams.kind == RECEIVE]
    at, size = made.after_at[firsts], 2 * (made.stop - made.start)[firsts]
    sums = np.concatenate(([0], np.cumsum(made.after)))
    made.staged[firsts] |= sums[at + size] > sums[at]


class _Writers(NamedTuple):
    """The nodes that each message writes to: one, or all that an aggregate is for."""

    at: Column  # (messages + 1,) where each message's nodes begin in `nodes`
    nodes: Column


def _writers(rows: Columns) -> _Writers:
    if not rows.groups:
        return _Writers(np.arange(len(rows) + 1), rows.dst)
    counts = np.ones(len(rows), np.int64)
    sums = np.flatnonzero(rows.op == AGGREGATE)
    groups = [rows.groups[place] for place in rows.src[sums]]
    counts[sums] = [len(group) for group in groups]
    at = np.concatenate(([0], np.cumsum(counts)))
    nodes = np.repeat(rows.dst, counts)
    members = np.repeat(rows.op == AGGREGATE, counts)
    nodes[members] = list(chain.from_iterable(groups))
    return _Writers(at, nodes)


class _Waits(NamedTuple):
    """What parts wait for, as `Plans` has it."""

    after: Column
    sends_at: Column  # (sends,) where the counts of each begin in `after`
    writes_at: Column  # (writes,) likewise
    swaps: Mask  # (writes,) whether the node sends one of these chunks in the same step


def _count_waits(rows: Columns, writers: _Writers, nodes: int, chunks: int) -> _Waits:
    """Count what each part waits for; rows are sorted by step."""
    size = rows.stop - rows.start
    moves = rows.op != AGGREGATE
    at = np.concatenate(([0], np.cumsum(np.where(moves, size, 0))))
    sends_at = at[:-1]
    per_write = 2 * np.repeat(size, np.diff(writers.at))
    writes_at = at[-1] + np.concatenate(([0], np.cumsum(per_write)))
    after = np.zeros(int(writes_at[-1]), np.int64)
    swaps = np.zeros(len(per_write), np.bool_)
    steps = np.append(np.flatnonzero(np.diff(rows.step, prepend=-1)), len(rows))
    tables = [np.zeros((nodes, chunks), np.int32) for _ in range(3)]
    marks = [np.full((nodes, chunks), -1, np.int32) for _ in range(2)]
    columns = (rows.src, rows.start, rows.stop, moves)
    _walk(
        steps, *columns, writers.at, writers.nodes, sends_at, writes_at, after, swaps,
        *tables, *marks,
    )  # fmt: skip
    return _Waits(after, sends_at[moves], writes_at[:-1], swaps)


_column = types.int64[::1]
_counts = types.int32[:, ::1]


@compiled(
    types.void(
        *[_column] * 4, types.boolean[::1], *[_column] * 5, types.boolean[::1], *[_counts] * 5
    )
)
def _walk(  # noqa: C901 - one pass over rows, whose counts are shared
    steps: Column,
    src: Column,
    start: Column,
    stop: Column,
    moves: Mask,
    writers_at: Column,
    writers: Column,
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
        start: The first chunk.
        stop: The chunk after the last.
        moves: Whether the row is a message, which somebody sends.
        writers_at: Where the row's writers begin.
        writers: The nodes that rows write to.
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
            for chunk in range(start[row], stop[row]):
                if moves[row]:
                    node = src[row]
                    count = written[node, chunk]
                    if write_step[node, chunk] == step:
                        count = written_before[node, chunk]
                    after[sends_at[row] + chunk - start[row]] = count
                    sent[node, chunk] += 1
                    send_step[node, chunk] = step
                for place in range(writers_at[row], writers_at[row + 1]):
                    node = writers[place]
                    after[writes_at[place] + chunk - start[row]] = written[node, chunk]
                    if write_step[node, chunk] != step:
                        write_step[node, chunk] = step
                        written_before[node, chunk] = written[node, chunk]
                    written[node, chunk] += 1
        for row in range(steps[step], steps[step + 1]):
            size = stop[row] - start[row]
            for place in range(writers_at[row], writers_at[row + 1]):
                for chunk in range(start[row], stop[row]):
                    at = writes_at[place] + size + chunk - start[row]
                    after[at] = sent[writers[place], chunk]
                    if send_step[writers[place], chunk] == step:
                        swaps[place] = True


def _sort(
    node: Column, kind: Column, peer: Column, op: Column, place: Column, nodes: int
) -> tuple[Column, Streams, Column]:
    """Return the order of parts, their streams, and each part's stream in that order."""
    is_sum = kind == SUM
    key = ((kind * nodes + node) * nodes + peer) * 2 + op
    key[is_sum] = (SUM * nodes + node[is_sum]) * nodes * 2
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    by_node = np.lexsort((place[first], kind[first], node[first], is_sum[first]))
    rank = np.empty_like(by_node)
    rank[by_node] = np.arange(len(by_node))
    number = rank[inverse]
    order = np.argsort(number, kind="stable")
    first = first[by_node]
    count = int((~is_sum[first]).sum())
    edges = np.searchsorted(number[order], np.arange(count + 1))
    first = first[:count]
    streams = Streams(node[first], kind[first], peer[first], op[first], edges[:-1], edges[1:])
    stream = np.where(number[order] < count, number[order], -1)
    return order, streams, stream
