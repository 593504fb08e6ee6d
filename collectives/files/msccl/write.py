"""Schedules as MSCCL's XML, by the rules of its runtime.

Each rank has a thread block for each peer and channel that it sends to, one for each that it
receives from, and one for each channel of work within it. Their steps stand in the order of the
rows, so they come to an end; a step of another thread block that must be over before is named as a
dependency, and if there are several, all but the last stand in front as `nop`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from xml.etree import ElementTree as ET

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.files.msccl.buffers import NAMES, SHARED, Place
from ringleaf.collectives.files.msccl.document import InstructionKind
from ringleaf.collectives.schedule import Aggregate, Message, Op, Schedule, check, messages
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError

_COLL = {collective: name for name, collective in reversed(list(NAMES.items()))}
_KEEPS = (Collective.ALL_TO_ALL,)  # collectives whose input and output are different buffers

_At = tuple[int, int]
"""A step of a rank: the number of its thread block, and the step's number in it."""


@dataclass(slots=True)
class _Step:
    kind: InstructionKind
    src: Place
    dst: Place
    count: int
    after: _At | None = None


@dataclass(slots=True)
class _Block:
    """A thread block; `seen` has, for others of its rank, the last step that it has waited for."""

    number: int
    send: int
    recv: int
    channel: int
    steps: list[_Step] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)

    def add(self, step: _Step, after: list[_At]) -> _At:
        """Add a step that comes after others; return where it is."""
        latest: dict[int, int] = {}
        for block, number in after:
            if block != self.number and number > self.seen.get(block, -1):
                latest[block] = max(number, latest.get(block, -1))
        self.seen |= latest
        for other in sorted(latest.items()):
            if step.after is not None:
                self.steps.append(_Step(InstructionKind.NOP, ("i", -1), ("o", -1), 0, step.after))
            step.after = other
        self.steps.append(step)
        return self.number, len(self.steps) - 1


@dataclass(slots=True)
class _Uses:
    """The last write of a cell, and the reads since."""

    write: _At | None = None
    reads: list[_At] = field(default_factory=list)


class _Rank:
    """The thread blocks of one rank, and the uses of its cells."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.blocks: dict[tuple[int, int, int], _Block] = {}
        self._uses: dict[tuple[int, int], _Uses] = {}  # by layer and chunk

    def has_written(self, layer: int, chunk: int) -> bool:
        """Return whether a step writes a cell so far."""
        return (uses := self._uses.get((layer, chunk))) is not None and uses.write is not None

    def add(
        self,
        ends: tuple[int, int, int],
        step: _Step,
        reads: list[tuple[int, int]],
        writes: list[tuple[int, int]],
    ) -> None:
        """Add a step to the thread block of a send peer, a receive peer and a channel."""
        block = self.blocks.setdefault(ends, _Block(len(self.blocks), *ends))
        before: list[_At] = []
        for cell in reads:
            uses = self._uses.setdefault(cell, _Uses())
            before += [uses.write] if uses.write else []
        for cell in writes:
            uses = self._uses.setdefault(cell, _Uses())
            before += [*uses.reads, *([uses.write] if uses.write else [])]
        at = block.add(step, before)
        for cell in reads:
            self._uses[cell].reads.append(at)
        for cell in writes:
            self._uses[cell] = _Uses(at)


class _Writer:
    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._ranks = [_Rank(rank) for rank in range(schedule.ranks)]
        self._share = max(schedule.chunks // schedule.ranks, 1)
        self._scratch = _number_scratch(schedule)
        self._keeps = schedule.collective in _KEEPS
        self._own = "o" if schedule.collective is Collective.ALL_GATHER else "i"

    def write(self) -> str:
        """Return the whole file."""
        for _, group in groupby(messages(self._schedule), lambda each: each.step):
            self._add_step([each for each in group if isinstance(each, Message)])
        if self._keeps:
            self._keep_own()
        return _render(self._schedule, self._ranks, [len(each) for each in self._scratch])

    def _add_step(self, rows: list[Message]) -> None:
        """Add a step's sends first, then its local work, then receives, as all read before."""
        ranks = self._schedule.ranks
        runs = [run for row in rows for run in self._runs(row)]
        local = [run for run in runs if run.src % ranks == run.dst % ranks]
        others = [run for run in runs if run.src % ranks != run.dst % ranks]
        named = {id(run): (self._place(run.src, run.start), self._target(run)) for run in runs}
        for run in others:
            src, dst = named[id(run)]
            step = _Step(InstructionKind.SEND, src, dst, run.stop - run.start)
            ends = (run.dst % ranks, -1, run.channel)
            self._ranks[run.src % ranks].add(ends, step, self._cells(run, run.src), [])
        for run in local:
            src, dst = named[id(run)]
            kind = InstructionKind.REDUCE if run.op is Op.REDUCE else InstructionKind.COPY
            step = _Step(kind, src, dst, run.stop - run.start)
            cells = self._cells(run, run.src), self._cells(run, run.dst)
            self._ranks[run.src % ranks].add((-1, -1, run.channel), step, *cells)
        for run in others:
            src, dst = named[id(run)]
            adds = run.op is Op.REDUCE
            kind = InstructionKind.RECEIVE_REDUCE_COPY if adds else InstructionKind.RECEIVE
            # The runtime adds what is at `src` of the receiver; so that is its own place.
            step = _Step(kind, dst if adds else src, dst, run.stop - run.start)
            ends = (-1, run.src % ranks, run.channel)
            self._ranks[run.dst % ranks].add(ends, step, [], self._cells(run, run.dst))

    def _cells(self, run: Message, place: int) -> list[tuple[int, int]]:
        layer = place // self._schedule.ranks
        return [(layer, chunk) for chunk in range(run.start, run.stop)]

    def _runs(self, row: Message) -> Iterator[Message]:
        """Yield the parts of a message whose chunks are neighbours in the buffers at both ends."""
        start, before = row.start, None
        for chunk in range(row.start, row.stop):
            one = Message(row.step, row.src, row.dst, chunk, chunk + 1, row.op, row.channel)
            here = self._place(row.src, chunk), self._target(one)
            if before is not None and here != tuple((name, at + 1) for name, at in before):
                yield Message(row.step, row.src, row.dst, start, chunk, row.op, row.channel)
                start = chunk
            before = here
        yield Message(row.step, row.src, row.dst, start, row.stop, row.op, row.channel)

    def _place(self, place: int, chunk: int) -> Place:
        """Return where a chunk of a place is now."""
        layer, rank = divmod(place, self._schedule.ranks)
        if layer:
            return "s", self._scratch[rank][layer, chunk]
        if not self._keeps:
            return self._own, chunk
        if self._ranks[rank].has_written(0, chunk):
            return self._output(rank, chunk)
        group, rest = divmod(chunk, self._share)
        return "i", (group + rank) % self._schedule.ranks * self._share + rest

    def _target(self, run: Message) -> Place:
        """Return where a message's first chunk will be."""
        layer, rank = divmod(run.dst, self._schedule.ranks)
        if layer or not self._keeps:
            return self._place(run.dst, run.start)
        return self._output(rank, run.start)

    def _output(self, rank: int, chunk: int) -> Place:
        group, rest = divmod(chunk, self._share)
        return "o", (rank - group) % self._schedule.ranks * self._share + rest

    def _keep_own(self) -> None:
        """Copy the chunks that have not moved from input to output."""
        for rank in self._ranks:
            for chunk in range(self._schedule.chunks):
                if not rank.has_written(0, chunk):
                    places = self._place(rank.rank, chunk), self._output(rank.rank, chunk)
                    rank.add((-1, -1, 0), _Step(InstructionKind.COPY, *places, 1), [(0, chunk)], [])


def to_xml(schedule: Schedule) -> str:
    """Return a schedule as MSCCL's XML.

    Raises:
        ScheduleError: If the format can't hold it.
    """
    check(schedule)
    where = f"{schedule.algorithm} {schedule.collective.value}: as an MSCCL program"
    if schedule.codec is not None:
        raise ScheduleError(f"{where}: messages must go as they are, got {schedule.codec.name}")
    if schedule.servers:
        raise ScheduleError(f"{where}: there must be no servers, got {schedule.servers}")
    if any(isinstance(each, Aggregate) for each in messages(schedule)):
        raise ScheduleError(f"{where}: hosts must add, got a sum of the network")
    if schedule.collective in SHARED and schedule.chunks % schedule.ranks:
        raise ScheduleError(
            f"{where}: chunks must be a multiple of {format_count(schedule.ranks, 'rank')}, got "
            f"{schedule.chunks}"
        )
    return _Writer(schedule).write()


def _number_scratch(schedule: Schedule) -> list[dict[tuple[int, int], int]]:
    """Return, for each rank, the place in its scratch buffer of each layer's chunk in use."""
    used: list[set[tuple[int, int]]] = [set() for _ in range(schedule.ranks)]
    for row in messages(schedule):
        assert isinstance(row, Message)
        for place in (row.src, row.dst):
            layer, rank = divmod(place, schedule.ranks)
            if layer:
                used[rank] |= {(layer, chunk) for chunk in range(row.start, row.stop)}
    return [{cell: number for number, cell in enumerate(sorted(cells))} for cells in used]


def _render(schedule: Schedule, ranks: list[_Rank], scratch: list[int]) -> str:
    chunks, keeps = schedule.chunks, schedule.collective in _KEEPS
    channels = [ends[2] for rank in ranks for ends in rank.blocks]
    gathers = schedule.collective is Collective.ALL_GATHER
    root = ET.Element("algo", name=schedule.algorithm, proto="Simple")
    _set(root, nchannels=max(channels, default=0) + 1, nchunksperloop=chunks, ngpus=len(ranks))
    _set(root, coll=_COLL[schedule.collective], inplace=int(not keeps))
    for rank in ranks:
        gpu = ET.SubElement(root, "gpu", id=str(rank.rank))
        _set(gpu, i_chunks=0 if gathers else chunks, o_chunks=chunks if gathers or keeps else 0)
        _set(gpu, s_chunks=scratch[rank.rank])
        awaited = {step.after for block in rank.blocks.values() for step in block.steps}
        for block in rank.blocks.values():
            tb = ET.SubElement(gpu, "tb", id=str(block.number))
            _set(tb, send=block.send, recv=block.recv, chan=block.channel)
            for number, step in enumerate(block.steps):
                _add_step(tb, number, step, (block.number, number) in awaited)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _add_step(tb: ET.Element, number: int, step: _Step, is_awaited: bool) -> None:
    depid, deps = step.after or (-1, -1)
    (srcbuf, srcoff), (dstbuf, dstoff) = step.src, step.dst
    element = ET.SubElement(tb, "step", s=str(number), type=step.kind.value)
    _set(element, srcbuf=srcbuf, srcoff=srcoff, dstbuf=dstbuf, dstoff=dstoff, cnt=step.count)
    _set(element, depid=depid, deps=deps, hasdep=int(is_awaited))


def _set(element: ET.Element, **values: object) -> None:
    for name, value in values.items():
        element.set(name, str(value))
