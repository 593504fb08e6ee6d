"""Programs followed symbolically: what each place holds, and whether everything comes to an end.

Thread blocks run side by side. A message waits in the channel of its two ends, of which there is no
limit; a receive waits for one, and a step for the step that it depends on. As no step depends on
data, the outcome is the same in whatever order thread blocks take turns, if places don't race
(`races`).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ringleaf.collectives.files.msccl.buffers import Place, RankBuffers
from ringleaf.collectives.files.msccl.document import ADDS, InstructionKind, MscclProgram, Range
from ringleaf.collectives.files.msccl.races import Uses
from ringleaf.collectives.files.msccl.state import (
    Clock,
    Contents,
    DoneInstruction,
    Parcel,
    Thread,
    show,
)
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError

MOST_TOLD = 6  # thread blocks of a chain that waits

_Key = tuple[int, int] | tuple[int, int, int]
"""A thread block's number and a step; or a channel: its sender, its receiver and its number."""


class InstructionMachine:
    """Runs a program on sets of contributions.

    Args:
        program: The program.
        buffers: Its buffers.
    """

    def __init__(self, program: MscclProgram, buffers: RankBuffers) -> None:
        self._program, self._buffers = program, buffers
        blocks = [(gpu.id, block) for gpu in program.gpus for block in gpu.blocks.values()]
        count = len(blocks)
        self._threads = [
            Thread(rank, block, number, np.zeros(count, np.int32))
            for number, (rank, block) in enumerate(blocks)
        ]
        self._by_id = {(each.rank, each.block.id): each for each in self._threads}
        self._senders = {
            (each.rank, each.block.send, each.block.channel): each for each in self._threads
        }
        self._channels: dict[tuple[int, int, int], deque[Parcel]] = {}
        self.uses = Uses(program)
        self.values: dict[tuple[int, Place], Contents] = {
            (rank, place): Contents(chunk, 1 << rank)
            for rank in range(program.ranks)
            for place, chunk in buffers.inputs(rank)
        }

    def run(self) -> list[DoneInstruction]:
        """Run the program, and return its steps in an order in which they may be done.

        Raises:
            ScheduleError: If some steps are never done, places race, or contents make no sense.
        """
        events: list[DoneInstruction] = []
        ready = deque(self._threads)
        waiting: dict[_Key, list[Thread]] = {}
        while ready:
            thread = ready.popleft()
            if thread.is_done:
                continue
            lacking = self._lacks(thread)
            if lacking is not None:
                waiting.setdefault(lacking, []).append(thread)
                continue
            event = self._do(thread)
            events.append(event)
            ready += waiting.pop((thread.number, event.number), [])
            if event.sent is not None:
                ready += waiting.pop(self._ends_out(thread), [])
            ready.append(thread)
        if not all(thread.is_done for thread in self._threads):
            self._blame()
        self._check_channels()
        return events

    def _ends_out(self, thread: Thread) -> tuple[int, int, int]:
        return thread.rank, thread.block.send, thread.block.channel

    def _ends_in(self, thread: Thread) -> tuple[int, int, int]:
        return thread.block.recv, thread.rank, thread.block.channel

    def _lacks(self, thread: Thread) -> _Key | None:
        """Return the step, or the channel, that a thread block waits for; None: it may go on."""
        step = thread.block.steps[thread.next]
        if step.after is not None:
            other = self._by_id[thread.rank, step.after[0]]
            if other.next <= step.after[1]:
                return other.number, step.after[1]
        if step.kind.receives and not self._channels.get(self._ends_in(thread)):
            return self._ends_in(thread)
        return None

    def _blocks(self, thread: Thread) -> Thread | str:
        """Return the thread block that one waits for; a text says why it waits in vain."""
        lacking = self._lacks(thread)
        assert lacking is not None
        if len(lacking) == 2:
            return self._threads[lacking[0]]
        src, dst, channel = lacking
        sender = self._senders.get(lacking)
        to = f"rank {dst} on channel {channel}"
        if sender is None:
            return f"and no thread block of rank {src} sends to {to}"
        if sender.is_done:
            sent = sum(each.kind.sends for each in sender.block.steps)
            return f"and rank {src} sends {sent} to {to} in all"
        return sender

    def _blame(self) -> None:
        """Raise ScheduleError for a chain of thread blocks of which each waits for the next."""
        thread = next(each for each in self._threads if not each.is_done)
        seen: list[Thread] = []
        blocker: Thread | str | None = thread
        while isinstance(blocker, Thread) and blocker not in seen:
            seen.append(blocker)
            blocker = self._blocks(blocker)
        if isinstance(blocker, Thread):
            seen = seen[seen.index(blocker) :]
            end = "each waits for the next, and the last for the first"
        else:
            end = str(blocker)
        waits = [self._wait(each) for each in seen[:MOST_TOLD]]
        if len(seen) > MOST_TOLD:
            waits.append(f"and {len(seen) - MOST_TOLD} more")
        raise ScheduleError(f"{self._program.where}: never ends: {'; '.join(waits)}; {end}")

    def _wait(self, thread: Thread) -> str:
        """Return what a thread block waits for, as text."""
        at, lacking = self._at(thread, thread.next), self._lacks(thread)
        if lacking is not None and len(lacking) == 2:
            other = self._threads[lacking[0]].block.id
            return f"{at} waits for step {lacking[1]} of thread block {other}"
        return f"{at} waits for a message of rank {thread.block.recv}"

    def _check_channels(self) -> None:
        for (src, dst, channel), left in self._channels.items():
            if left:
                at = self._at(left[0].thread, left[0].step)
                raise ScheduleError(
                    f"{self._program.where}: {at}: sends to rank {dst} on channel {channel}, "
                    f"which never receives it; {len(left)} of rank {src}'s messages are left"
                )

    def _do(self, thread: Thread) -> DoneInstruction:
        number, step = thread.next, thread.block.steps[thread.next]
        if step.after is not None:
            np.maximum(thread.clock, self._clock_of(thread.rank, *step.after), out=thread.clock)
        taken = None
        if step.kind.receives:
            taken = self._channels[self._ends_in(thread)].popleft()
            np.maximum(thread.clock, taken.clock, out=thread.clock)
        thread.next += 1
        thread.clock[thread.number] = thread.next
        src, dst = (self._places(thread, number, each) for each in (step.src, step.dst))
        values = self._follow(thread, number, taken, src, dst)
        sent = None
        if step.kind.sends:
            sent = Parcel(thread, number, values, thread.clock.copy())
            self._channels.setdefault(self._ends_out(thread), deque()).append(sent)
        if step.is_awaited:
            thread.kept[number] = sent.clock if sent else thread.clock.copy()
        return DoneInstruction(
            thread, number, step, taken, sent, src, dst, [value.chunk for value in values]
        )

    def _clock_of(self, rank: int, block: int, step: int) -> Clock:
        return self._by_id[rank, block].kept[step]

    def _places(self, thread: Thread, number: int, span: Range | None) -> list[Place]:
        if span is None:
            return []
        at = f"{self._program.where}: {self._at(thread, number)}"
        return self._buffers.places(thread.rank, span, at)

    def _follow(
        self,
        thread: Thread,
        number: int,
        taken: Parcel | None,
        src: list[Place],
        dst: list[Place],
    ) -> list[Contents]:
        """Read and write a step's places; return the values that it sends or leaves."""
        kind = thread.block.steps[number].kind
        if kind is InstructionKind.NOP:
            return []
        if taken is None:
            values = [self._read(thread, number, place) for place in src]
        else:
            values, count = taken.values, len(src or dst)
            if len(values) != count:
                sender = self._at(taken.thread, taken.step)
                raise self._error(
                    thread,
                    number,
                    f"receives {format_count(count, 'chunk')}, and {sender} sends {len(values)}",
                )
        if kind in ADDS or kind is InstructionKind.REDUCE:
            values = [
                self._sum(thread, number, self._read(thread, number, place), value, place)
                for place, value in zip(src if kind in ADDS else dst, values, strict=True)
            ]
        for place, value in zip(dst, values, strict=False):  # none, if it only sends
            self.uses.write(thread, number, place)
            self.values[thread.rank, place] = value
        return values

    def _sum(
        self, thread: Thread, number: int, there: Contents, brought: Contents, place: Place
    ) -> Contents:
        if there.chunk != brought.chunk:
            raise self._error(
                thread,
                number,
                f"adds chunk {brought.chunk} of the data to chunk {there.chunk} in {show(place)}",
            )
        return there.plus(brought)

    def _read(self, thread: Thread, number: int, place: Place) -> Contents:
        contents = self.values.get((thread.rank, place))
        if contents is None:
            raise self._error(thread, number, f"reads {show(place)}, which nothing has written")
        self.uses.read(thread, number, place)
        return contents

    def _at(self, thread: Thread, number: int) -> str:
        return self._program.at(thread.rank, thread.block.id, number)

    def _error(self, thread: Thread, number: int, problem: str) -> ScheduleError:
        return ScheduleError(f"{self._program.where}: {self._at(thread, number)}: {problem}")
