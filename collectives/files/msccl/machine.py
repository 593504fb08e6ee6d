"""Programs followed symbolically: what each place holds, and whether everything comes to an end.

Thread blocks run side by side. A message waits in the channel of its two ends, of which there is no
limit; a receive waits for one, and a step for the step that it depends on. As no step depends on
data, the outcome is the same in whatever order thread blocks take turns, if nothing races: two
steps that use a place, one of which writes it, must have an order by messages and dependencies.
Vector clocks tell whether they have (Mattern, "Virtual time and global states of distributed
systems", 1989).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.files.msccl.buffers import Buffers, Place
from ringleaf.collectives.files.msccl.document import ADDS, Block, Kind, Program, Range, Step
from ringleaf.errors import ScheduleError

MOST_TOLD = 6  # thread blocks of a chain that waits

Clock = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Value:
    """The contents of a place: contributions of ranks to a logical chunk, as sets of bits."""

    chunk: int
    once: int
    twice: int = 0

    def plus(self, other: Value) -> Value:
        """Return the sum with another value of the same chunk."""
        twice = self.twice | other.twice | self.once & other.once
        return Value(self.chunk, self.once | other.once, twice)


@dataclass(slots=True)
class Parcel:
    """A message: its contents, and the sender's clock."""

    thread: Thread
    step: int
    values: list[Value]
    clock: Clock


@dataclass(frozen=True, slots=True)
class Event:
    """A step that was done.

    Attributes:
        thread: Its thread block.
        number: Its number there.
        step: The step.
        taken: The message that it has received, if any.
        sent: The message that it has sent, if any.
        src: The places that it reads.
        dst: The places that it writes.
        chunks: The logical chunk of each.
    """

    thread: Thread
    number: int
    step: Step
    taken: Parcel | None
    sent: Parcel | None
    src: list[Place]
    dst: list[Place]
    chunks: list[int]


@dataclass(slots=True, eq=False)
class Thread:
    """A thread block at work."""

    rank: int
    block: Block
    number: int  # among all thread blocks
    clock: Clock
    next: int = 0  # the next step
    kept: dict[int, Clock] = field(default_factory=dict)  # clocks after steps others may wait for

    @property
    def is_done(self) -> bool:
        return self.next == len(self.block.steps)


@dataclass(slots=True)
class _Use:
    """The last write of a place, and the reads since: thread -> the number of its step, from 1."""

    writer: Thread | None = None
    written: int = 0
    reads: dict[int, tuple[Thread, int]] = field(default_factory=dict)


class Machine:
    """Runs a program on sets of contributions.

    Args:
        program: The program.
        buffers: Its buffers.
    """

    def __init__(self, program: Program, buffers: Buffers) -> None:
        self._program, self._buffers = program, buffers
        blocks = [(gpu.id, block) for gpu in program.gpus for block in gpu.blocks.values()]
        count = len(blocks)
        self._threads = [
            Thread(rank, block, number, np.zeros(count, np.int32))
            for number, (rank, block) in enumerate(blocks)
        ]
        self._by_id = {(each.rank, each.block.id): each for each in self._threads}
        self._takers = {
            (each.block.recv, each.rank, each.block.channel): each for each in self._threads
        }
        self._senders = {
            (each.rank, each.block.send, each.block.channel): each for each in self._threads
        }
        self._channels: dict[tuple[int, int, int], deque[Parcel]] = {}
        self._uses: dict[tuple[int, Place], _Use] = {}
        self.values: dict[tuple[int, Place], Value] = {
            (rank, place): Value(chunk, 1 << rank)
            for rank in range(program.ranks)
            for place, chunk in buffers.inputs(rank)
        }

    def run(self) -> list[Event]:
        """Run the program, and return its steps in an order in which they may be done.

        Raises:
            ScheduleError: If some steps are never done, places race, or contents make no sense.
        """
        events: list[Event] = []
        ready = deque(self._threads)
        waiting: dict[Thread, list[Thread]] = {}
        while ready:
            thread = ready.popleft()
            if thread.is_done:
                continue
            other = self._waits_for(thread)
            if other is None:
                events.append(self._do(thread))
                ready += waiting.pop(thread, [])
                ready.append(thread)
            elif isinstance(other, Thread):
                waiting.setdefault(other, []).append(thread)
        if not all(thread.is_done for thread in self._threads):
            self._blame()
        self._check_channels()
        return events

    def _waits_for(self, thread: Thread) -> Thread | str | None:
        """Return the thread block that must go on before the next step; None: it may be done.

        A text says why nothing will let it go on.
        """
        step, block = thread.block.steps[thread.next], thread.block
        if step.after is not None:
            other = self._by_id[thread.rank, step.after[0]]
            if other.next <= step.after[1]:
                return other
        ends = (block.recv, thread.rank, block.channel)
        if step.kind.receives and not self._channels.get(ends):
            sender = self._senders.get(ends)
            to = f"rank {thread.rank} on channel {block.channel}"
            if sender is None:
                return f"and no thread block of rank {block.recv} sends to {to}"
            if sender.is_done:
                sent = sum(each.kind.sends for each in sender.block.steps)
                return f"and rank {block.recv} sends {sent} to {to} in all"
            return sender
        return None

    def _blame(self) -> None:
        """Raise ScheduleError for a chain of thread blocks of which each waits for the next."""
        thread = next(each for each in self._threads if not each.is_done)
        seen: list[Thread] = []
        found: Thread | str | None = thread
        while isinstance(found, Thread) and found not in seen:
            seen.append(found)
            found = self._waits_for(found)
        if isinstance(found, Thread):
            seen = seen[seen.index(found) :]
            end = "each waits for the next, and the last for the first"
        else:
            end = str(found)
        told = [self._wait(each) for each in seen[:MOST_TOLD]]
        if len(seen) > MOST_TOLD:
            told.append(f"and {len(seen) - MOST_TOLD} more")
        raise ScheduleError(f"{self._program.where}: never ends: {'; '.join(told)}; {end}")

    def _wait(self, thread: Thread) -> str:
        """Return what a thread block waits for, as text."""
        step = thread.block.steps[thread.next]
        at = self._at(thread, thread.next)
        if step.after is not None:
            other, awaited = step.after
            if self._by_id[thread.rank, other].next <= awaited:
                return f"{at} waits for step {awaited} of thread block {other}"
        return f"{at} waits for a message of rank {thread.block.recv}"

    def _check_channels(self) -> None:
        for (src, dst, channel), left in self._channels.items():
            if left:
                at = self._at(left[0].thread, left[0].step)
                raise ScheduleError(
                    f"{self._program.where}: {at}: sends to rank {dst} on channel {channel}, "
                    f"which never receives it; {len(left)} of rank {src}'s messages are left"
                )

    def _do(self, thread: Thread) -> Event:
        number, block = thread.next, thread.block
        step = block.steps[number]
        if step.after is not None:
            np.maximum(thread.clock, self._clock_of(thread.rank, *step.after), out=thread.clock)
        taken = None
        if step.kind.receives:
            taken = self._channels[block.recv, thread.rank, block.channel].popleft()
            np.maximum(thread.clock, taken.clock, out=thread.clock)
        thread.next += 1
        thread.clock[thread.number] = thread.next
        src, dst = (self._places(thread, number, each) for each in (step.src, step.dst))
        values = self._follow(thread, number, taken, src, dst)
        sent = None
        if step.kind.sends:
            sent = Parcel(thread, number, values, thread.clock.copy())
            ends = (thread.rank, block.send, block.channel)
            self._channels.setdefault(ends, deque()).append(sent)
        if step.is_awaited:
            thread.kept[number] = sent.clock if sent else thread.clock.copy()
        return Event(thread, number, step, taken, sent, src, dst, [value.chunk for value in values])

    def _clock_of(self, rank: int, block: int, step: int) -> Clock:
        return self._by_id[rank, block].kept[step]

    def _places(self, thread: Thread, number: int, given: Range | None) -> list[Place]:
        if given is None:
            return []
        at = f"{self._program.where}: {self._at(thread, number)}"
        return self._buffers.places(thread.rank, given, at)

    def _follow(
        self,
        thread: Thread,
        number: int,
        taken: Parcel | None,
        src: list[Place],
        dst: list[Place],
    ) -> list[Value]:
        """Read and write a step's places; return the values that it sends or leaves."""
        kind = thread.block.steps[number].kind
        if kind is Kind.NOP:
            return []
        if taken is None:
            values = [self._read(thread, number, place) for place in src]
        else:
            values, count = taken.values, len(src or dst)
            if len(values) != count:
                sender = self._at(taken.thread, taken.step)
                raise self._error(
                    thread, number, f"receives {count} chunks, and {sender} sends {len(values)}"
                )
        if kind in ADDS or kind is Kind.REDUCE:
            values = [
                self._sum(thread, number, self._read(thread, number, place), value, place)
                for place, value in zip(src if kind in ADDS else dst, values, strict=True)
            ]
        for place, value in zip(dst, values, strict=False):  # none, if it only sends
            self._write(thread, number, place)
            self.values[thread.rank, place] = value
        return values

    def _sum(
        self, thread: Thread, number: int, there: Value, brought: Value, place: Place
    ) -> Value:
        if there.chunk != brought.chunk:
            raise self._error(
                thread,
                number,
                f"adds chunk {brought.chunk} of the data to chunk {there.chunk} in {show(place)}",
            )
        return there.plus(brought)

    def _read(self, thread: Thread, number: int, place: Place) -> Value:
        found = self.values.get((thread.rank, place))
        if found is None:
            raise self._error(thread, number, f"reads {show(place)}, which nothing has written")
        use = self._uses.setdefault((thread.rank, place), _Use())
        self._check_order(thread, number, place, [(use.writer, use.written)])
        use.reads[thread.number] = thread, number + 1
        return found

    def _write(self, thread: Thread, number: int, place: Place) -> None:
        use = self._uses.setdefault((thread.rank, place), _Use())
        self._check_order(thread, number, place, [(use.writer, use.written), *use.reads.values()])
        self._uses[thread.rank, place] = _Use(thread, number + 1)

    def _check_order(
        self,
        thread: Thread,
        number: int,
        place: Place,
        uses: list[tuple[Thread | None, int]],
    ) -> None:
        """Raise ScheduleError unless these uses of a place are over when a step uses it."""
        for other, step in uses:
            if other is not None and thread.clock[other.number] < step:
                raise self._error(
                    thread,
                    number,
                    f"uses {show(place)} at the same time as {self._at(other, step - 1)}, and one "
                    "of them writes it; add a dependency",
                )

    def _at(self, thread: Thread, number: int) -> str:
        return self._program.at(thread.rank, thread.block.id, number)

    def _error(self, thread: Thread, number: int, problem: str) -> ScheduleError:
        return ScheduleError(f"{self._program.where}: {self._at(thread, number)}: {problem}")

    def last_write(self, rank: int, place: Place) -> str:
        """Return the step that has written a place last, as messages name it."""
        use = self._uses.get((rank, place))
        if use is None or use.writer is None:
            return "no step"
        return self._at(use.writer, use.written - 1)


def show(place: Place) -> str:
    """Return a place as text."""
    return f"{place[0]}[{place[1]}]"


def members(bits: int) -> Iterator[int]:
    """Yield the ranks of a set of bits."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
