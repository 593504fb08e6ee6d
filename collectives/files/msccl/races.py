"""The order of uses of places: two steps of which one writes a place must not race.

Vector clocks tell whether one step is over when another begins, by messages and dependencies
(Mattern, "Virtual time and global states of distributed systems", 1989).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleaf.collectives.files.msccl.buffers import Place
from ringleaf.collectives.files.msccl.document import MscclProgram
from ringleaf.collectives.files.msccl.state import Thread, show
from ringleaf.errors import ScheduleError


@dataclass(slots=True)
class _Use:
    """The last write of a place, and the reads since: thread -> the number of its step, from 1."""

    writer: Thread | None = None
    written: int = 0
    reads: dict[int, tuple[Thread, int]] = field(default_factory=dict)


class Uses:
    """The uses of all places of a program."""

    def __init__(self, program: MscclProgram) -> None:
        self._program = program
        self._uses: dict[tuple[int, Place], _Use] = {}

    def read(self, thread: Thread, number: int, place: Place) -> None:
        """Note that a step reads a place.

        Raises:
            ScheduleError: If a step that writes it may not be over.
        """
        use = self._uses.setdefault((thread.rank, place), _Use())
        self._check_order(thread, number, place, [(use.writer, use.written)])
        use.reads[thread.number] = thread, number + 1

    def write(self, thread: Thread, number: int, place: Place) -> None:
        """Note that a step writes a place.

        Raises:
            ScheduleError: If a step that uses it may not be over.
        """
        use = self._uses.get((thread.rank, place), _Use())
        uses = [(use.writer, use.written), *use.reads.values()]
        self._check_order(thread, number, place, uses)
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
                at = self._program.at(thread.rank, thread.block.id, number)
                there = self._program.at(other.rank, other.block.id, step - 1)
                raise ScheduleError(
                    f"{self._program.where}: {at}: "
                    f"uses {show(place)} at the same time as {there}, and one "
                    "of them writes it; add a dependency",
                )

    def last_write(self, rank: int, place: Place) -> str:
        """Return the step that has written a place last, as messages name it."""
        use = self._uses.get((rank, place))
        if use is None or use.writer is None:
            return "no step"
        return self._program.at(rank, use.writer.block.id, use.written - 1)
