"""A program that has been followed, as rows of a schedule.

Each place of a rank that holds a logical chunk of the data is a cell, with memory of its own: the
place that must hold the result is in the tensor, others are in layers of scratch memory. So a row
moves a chunk between cells. If a rank's input is at another place than its result, it is copied
there before all else, as our tensors are in place.

Rows stand in the order of receives and of local work. A row's step is the least one after the steps
of all rows that wrote its cells, that is not before those that read the cell it writes. A message
that was sent before its source was overwritten, but is received when that has happened, may have no
such step: it lands in a cell of its own first, as it does in the channel's buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleaf.collectives.files.msccl.buffers import Place, RankBuffers
from ringleaf.collectives.files.msccl.document import ADDS, InstructionKind, MscclProgram
from ringleaf.collectives.files.msccl.goals import goals
from ringleaf.collectives.files.msccl.state import DoneInstruction, Parcel
from ringleaf.collectives.schedule import Op, Transfer

_FIRST = 1  # step; inputs are copied to other places in step 0
_NEVER = 1 << 62


@dataclass(slots=True, eq=False)
class _Cell:
    """A place of a rank while it holds a chunk.

    Attributes:
        layer: The layer of memory; 0: the tensor.
        contents: A number for what it holds, the same for equal contents.
        written: The step of the last write.
        read: The step of the last read.
        leaving: Messages that were sent from it, were not received so far, and have no last step.
    """

    rank: int
    chunk: int
    layer: int
    contents: int = -1
    written: int = 0
    read: int = 0
    leaving: dict[int, _Leaving] = field(default_factory=dict)  # by identity


@dataclass(slots=True, eq=False)
class _Leaving:
    """One chunk of a message that was sent.

    Attributes:
        cell: The cell that it leaves from.
        contents: What it holds.
        least: The first step in which it can leave.
        most: The last one: the step in which its cell is overwritten.
    """

    cell: _Cell
    contents: int
    least: int
    most: int = _NEVER


@dataclass(frozen=True, slots=True)
class Made:
    """The rows of a program, for one loop.

    Attributes:
        rows: Transfers, by step.
        events: For each row, the rank, thread block and step that received, copied or added;
            None: the copy of an input.
        layers: Layers of scratch memory.
    """

    rows: list[Transfer]
    events: list[tuple[int, int, int] | None]
    layers: int


def make_rows(
    program: MscclProgram, buffers: RankBuffers, events: list[DoneInstruction], root: int
) -> Made:
    """Return the rows of a program's events."""
    return _Maker(program, buffers, events, root).run()


class _Maker:
    def __init__(
        self, program: MscclProgram, buffers: RankBuffers, events: list[DoneInstruction], root: int
    ) -> None:
        self._ranks, self._events = program.ranks, events
        self._homes = _homes(buffers, root)
        self._cells: dict[tuple[int, Place, int], _Cell] = {}
        self._layers: dict[tuple[int, int], int] = {}  # used so far, by rank and chunk
        self._inputs = {
            (rank, place, chunk)
            for rank in range(self._ranks)
            for place, chunk in buffers.inputs(rank)
        }
        self._has = {(rank, chunk) for rank, _, chunk in self._inputs}
        self._last = self._ranks * buffers.chunks  # numbers of contents; those of inputs are below
        self._chunks = buffers.chunks
        self._rows: list[tuple[Transfer, tuple[int, int, int] | None]] = []
        self._sent: dict[int, list[_Leaving]] = {}  # by the identity of the parcel
        self._after: dict[tuple[int, int, int], int] = {}  # the last step of each channel
        self._dead = _overwritten(events, {(r, place) for r, place, _ in goals(buffers, root)})

    def run(self) -> Made:
        """Make the rows of all events, sorted by step; steps are numbered anew without gaps."""
        for number, event in enumerate(self._events):
            cells = self._do(number, event)
            if event.sent is not None:
                self._sent[id(event.sent)] = [_leave(cell) for cell in cells]
        order = sorted(range(len(self._rows)), key=lambda row: self._rows[row][0].step)
        used = sorted({row.step for row, _ in self._rows})
        step_of = {step: number for number, step in enumerate(used)}
        rows, events = [], []
        for place in order:
            row, event_at = self._rows[place]
            step = step_of[row.step]
            rows.append(Transfer(step, row.src, row.dst, row.chunk, row.op, row.channel))
            events.append(event_at)
        return Made(rows, events, max(self._layers.values(), default=0))

    def _do(self, number: int, event: DoneInstruction) -> list[_Cell]:
        """Make an event's rows; return the cells that it sends from."""
        rank, kind = event.thread.rank, event.step.kind
        src = [self._cell(rank, *each) for each in zip(event.src, event.chunks, strict=False)]
        if kind is InstructionKind.SEND:
            return src
        dst = [self._cell(rank, *each) for each in zip(event.dst, event.chunks, strict=False)]
        if kind in (InstructionKind.COPY, InstructionKind.REDUCE):
            for source, target in zip(src, dst, strict=True):
                self._move_locally(event, source, target, adds=kind is InstructionKind.REDUCE)
        elif event.taken is not None:
            if kind is InstructionKind.RECEIVE_REDUCE_SEND:
                here = number in self._dead
                dst = src if here else [self._new_cell(rank, cell.chunk) for cell in src]
            for source, target in zip(src, dst, strict=False):  # `r` and `rcs` read nothing here
                self._move_locally(event, source, target, adds=False)
            self._receive(event, event.taken, dst)
        return dst

    def _cell(self, rank: int, place: Place, chunk: int) -> _Cell:
        """Return the cell of a place, which is new when the place first holds that chunk."""
        key = rank, place, chunk
        if key not in self._cells:
            is_home = self._homes.get((rank, chunk)) == place
            cell = self._cells[key] = self._new_cell(rank, chunk, 0 if is_home else None)
            if key in self._inputs or (is_home and (rank, chunk) in self._has):
                cell.contents = rank * self._chunks + chunk
            if key in self._inputs and not is_home:
                self._rows.append((self._transfer(0, (rank, chunk, 0), cell, Op.COPY, 0), None))
        return self._cells[key]

    def _new_cell(self, rank: int, chunk: int, layer: int | None = None) -> _Cell:
        if layer is None:
            layer = self._layers[rank, chunk] = self._layers.get((rank, chunk), 0) + 1
        return _Cell(rank, chunk, layer)

    def _move_locally(self, event: DoneInstruction, src: _Cell, dst: _Cell, *, adds: bool) -> None:
        """Copy or add from one cell to another of a rank."""
        if (not adds and dst.contents == src.contents) or src is dst:
            return  # it holds that already
        step = max(_FIRST, src.written + 1, dst.written + 1, dst.read + 1)
        self._write(event, src, dst, step, Op.REDUCE if adds else Op.COPY, event.thread.block.id)
        self._fill(dst, src.contents, adds)

    def _receive(self, event: DoneInstruction, parcel: Parcel, dst: list[_Cell]) -> None:
        """Make the rows of a message, all in one step."""
        leaving = self._sent.pop(id(parcel))
        adds = event.step.kind in ADDS
        ends = parcel.thread.rank, event.thread.rank, event.thread.block.channel
        channel = max(ends[2], 0)
        least = max(each.least for each in leaving)
        most = min(each.most for each in leaving)
        free = max(max(cell.written + 1, cell.read) for cell in dst)
        step = max(_FIRST, self._after.get(ends, 0), least, free)
        if step > most:
            step, landing = max(_FIRST, least), [self._new_cell(c.rank, c.chunk) for c in dst]
            if step > most:  # chunks that leave at different times
                step = -1
        else:
            landing = dst
        for each, cell, target in zip(leaving, landing, dst, strict=True):
            each.cell.leaving.pop(id(each), None)
            at = max(_FIRST, each.least) if step < 0 else step
            op = Op.REDUCE if adds and cell is target else Op.COPY
            self._write(event, each.cell, cell, at, op, channel)
            self._fill(cell, each.contents, op is Op.REDUCE)
            if cell is not target:
                self._move_locally(event, cell, target, adds=adds)
        if step >= 0:
            self._after[ends] = max(step, self._after.get(ends, 0))

    def _write(
        self, event: DoneInstruction, src: _Cell, dst: _Cell, step: int, op: Op, channel: int
    ) -> None:
        row = self._transfer(step, (src.rank, src.chunk, src.layer), dst, op, channel)
        self._rows.append((row, (event.thread.rank, event.thread.block.id, event.number)))
        src.read = max(src.read, step)
        dst.written = max(dst.written, step)
        for each in dst.leaving.values():
            each.most = step  # later writes have later steps
        dst.leaving.clear()

    def _fill(self, cell: _Cell, contents: int, adds: bool) -> None:
        if adds:
            self._last += 1
            contents = self._last
        cell.contents = contents

    def _transfer(
        self, step: int, src: tuple[int, int, int], dst: _Cell, op: Op, channel: int
    ) -> Transfer:
        rank, chunk, layer = src
        places = rank + layer * self._ranks, dst.rank + dst.layer * self._ranks
        return Transfer(step, *places, chunk, op, channel)


def _leave(cell: _Cell) -> _Leaving:
    leaving = _Leaving(cell, cell.contents, cell.written + 1)
    cell.leaving[id(leaving)] = leaving
    return leaving


def _homes(buffers: RankBuffers, root: int) -> dict[tuple[int, int], Place]:
    """Return the place of each rank and chunk that is in the tensor: its result's, or input's."""
    homes: dict[tuple[int, int], Place] = {}
    for rank in range(buffers.ranks):
        for place, chunk in buffers.inputs(rank):
            homes[rank, chunk] = place
    for rank, place, goal in goals(buffers, root):
        homes[rank, goal.chunk] = place
    return homes


def _overwritten(events: list[DoneInstruction], outputs: set[tuple[int, Place]]) -> set[int]:
    """Return the numbers of `rrs` events whose places are not read again before a write."""
    live, numbers = set(outputs), set[int]()
    for number in range(len(events) - 1, -1, -1):
        event = events[number]
        rank, kind = event.thread.rank, event.step.kind
        dst = {(rank, place) for place in event.dst}
        src = {(rank, place) for place in event.src}
        if kind is InstructionKind.RECEIVE_REDUCE_SEND and live.isdisjoint(src):
            numbers.add(number)
        if kind is InstructionKind.REDUCE:
            live |= dst
        else:
            live -= dst
        live |= src
    return numbers
