"""Frames of transfers between ranks: contributions by the verifier, numbers by the oracle.

Nothing here knows any algorithm, so every schedule can be stepped through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from ringleaf.collectives.oracle import apply_rows, message_bytes
from ringleaf.collectives.schedule import (
    Aggregate,
    Message,
    Op,
    Schedule,
    chunk_ranges,
    messages,
    rows_by_chunk,
)
from ringleaf.collectives.verify import contributions
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.experiments.stepper.story import (
    BufferChange,
    Buffers,
    Frame,
    FrameAction,
    TensorCell,
    members,
    name_place,
    show_who,
)
from ringleaf.topologies.routing import dealt, path, routes


@dataclass(frozen=True, slots=True)
class _Done:
    """The cell that a row brought, and the cells that it left on the ranks that it wrote."""

    brought: TensorCell
    left: dict[int, TensorCell]


def first_buffers(schedule: Schedule, inputs: Sequence[Array]) -> Buffers:
    """Return each node's cells at the start, chunk by chunk; servers have zeros."""
    ranges = chunk_ranges(inputs[0].size, schedule.chunks)
    ranks = tuple(
        tuple(TensorCell((rank,), tuple(array[a:b].tolist())) for a, b in ranges)
        for rank, array in enumerate(inputs)
    )
    server = tuple(TensorCell((), (0,) * (b - a)) for a, b in ranges)
    return ranks + (server,) * (schedule.places - schedule.ranks)


def transfer_frames(
    schedule: Schedule, inputs: Sequence[Array], graph: nx.Graph[str]
) -> tuple[Frame, ...]:
    """Return one frame per message, in the schedule's order.

    Raises:
        ScheduleError: If the schedule is not right.
    """
    done = _execute(schedule, inputs)
    buffers = [list(cells) for cells in first_buffers(schedule, inputs)]
    frames = []
    row = 0
    find = _Finder(graph)
    sizes = message_bytes(schedule, inputs)
    for message, size_bytes in zip(messages(schedule), sizes, strict=True):
        chunks = _chunks(message)
        rows = [done[row + i] for i in range(len(chunks))]
        row += len(chunks)
        changes = tuple(
            BufferChange(rank, chunk, buffers[rank][chunk], cell)
            for chunk, each in zip(chunks, rows, strict=True)
            for rank, cell in each.left.items()
        )
        for change in changes:
            buffers[change.rank][change.cell] = change.after
        frames.append(_frame(schedule, message, rows, changes, find, size_bytes))
    return tuple(frames)


def _execute(schedule: Schedule, inputs: Sequence[Array]) -> dict[int, _Done]:
    """Follow each chunk twice, with numbers and with contributions; return the results by row."""
    proved = {each.row: each for each in contributions(schedule)}
    done: dict[int, _Done] = {}
    ranges = chunk_ranges(inputs[0].size, schedule.chunks)
    for (start, stop), rows in zip(ranges, rows_by_chunk(schedule), strict=True):
        values = [array[start:stop] for array in inputs]
        values += [np.zeros_like(values[0])] * (schedule.places - schedule.ranks)
        brought = apply_rows(schedule, [row for _, row in rows], values)
        for (number, row), value in zip(rows, brought, strict=True):
            by_rank = proved[number].held
            written = row.ranks if isinstance(row, Aggregate) else (row.dst,)
            done[number] = _Done(
                TensorCell(members(proved[number].brought), tuple(value.tolist())),
                {
                    rank: TensorCell(members(by_rank[rank]), tuple(values[rank].tolist()))
                    for rank in written
                },
            )
    return done


def _chunks(message: Message | Aggregate) -> range:
    if isinstance(message, Aggregate):
        return range(message.chunk, message.chunk + 1)
    return range(message.start, message.stop)


class _Finder:
    """A finder of paths between ranks, by the routes that the network's switches have."""

    def __init__(self, graph: nx.Graph[str]) -> None:
        self._graph = graph
        self._table = dealt(graph, routes(graph))
        self._paths: dict[tuple[int, int], tuple[str, ...]] = {}

    def __call__(self, src: int, dst: int) -> tuple[str, ...]:
        if src == dst:
            return ()
        nodes = self._paths.get((src, dst))
        if nodes is None:
            nodes = tuple(path(self._graph, f"h{src}", f"h{dst}", table=self._table))
            self._paths[src, dst] = nodes
        return nodes


def _frame(
    schedule: Schedule,
    message: Message | Aggregate,
    rows: list[_Done],
    changes: tuple[BufferChange, ...],
    find: _Finder,
    size_bytes: int,
) -> Frame:
    chunks = name_chunks(_chunks(message))
    who = {each.brought.who for each in rows}
    carries = rows[0].brought if len(who) == 1 else None
    brings = show_who(rows[0].brought.who, schedule.ranks) if carries else "what it has of them"
    numbers = tuple(number for each in rows for number in each.brought.numbers)
    if carries is not None:
        carries = TensorCell(carries.who, numbers)
    if isinstance(message, Aggregate):
        return Frame(
            message.step,
            FrameAction.COPY,
            f"the network adds up {chunks} of {format_count(len(message.ranks), 'rank')}",
            f"Each of them gets {brings}.",
            chunks,
            (),
            size_bytes,
            carries,
            changes,
        )
    adds = message.op is Op.REDUCE
    left = _left(schedule, message, changes)
    return Frame(
        message.step,
        FrameAction.REDUCE if adds else FrameAction.COPY,
        _sentence(schedule, message, chunks),
        f"It brings {brings}. {left}",
        chunks,
        find(message.src % schedule.nodes, message.dst % schedule.nodes),
        size_bytes,
        carries,
        changes,
    )


def _sentence(schedule: Schedule, message: Message, chunks: str) -> str:
    """Return what happens in a message, or within a node."""
    src, dst = _node(schedule, message.src), _node(schedule, message.dst)
    adds, one = message.op is Op.REDUCE, message.stop - message.start == 1
    if message.src % schedule.nodes == message.dst % schedule.nodes:
        return f"{dst} {'adds' if adds else 'copies'} {chunks} of {src}"
    keeps = f"{'adds' if adds else 'keeps'} {'it' if one else 'them'}"
    return f"{src} sends {chunks} to {dst}, which {keeps}"


def _left(schedule: Schedule, message: Message, changes: tuple[BufferChange, ...]) -> str:
    """Return a sentence on the receiver's contents after the message."""
    receiver = _node(schedule, message.dst).capitalize()
    contents = {change.after.who for change in changes}
    if len(contents) > 1:
        return f"{receiver} now has {format_count(len(changes), 'chunk')} anew."
    (who,) = contents
    return f"{receiver} now has {show_who(who, schedule.ranks)} there."


def _node(schedule: Schedule, node: int) -> str:
    return name_place(node, schedule.ranks, schedule.nodes)


def name_chunks(chunks: range) -> str:
    """Return chunks as text: `chunk 2`, or `chunks 2-5`."""
    return f"chunk {chunks[0]}" if len(chunks) == 1 else f"chunks {chunks[0]}-{chunks[-1]}"
