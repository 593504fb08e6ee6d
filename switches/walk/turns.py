"""The turns of a program's own loops, of which a walk shows only the first ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ringleaf.switches.generate import marks
from ringleaf.switches.generate.marks import LineMark
from ringleaf.switches.generate.statements import MOST_TURNS
from ringleaf.switches.walk.steps import TurnsSkipped

MOST_SHOWN = 64
"""LoopTurns of each loop that are shown of a packet in a control; a loop may have no end."""


class LoopTurns:
    """Counts loops' turns line by line, and says which lines are not followed.

    Args:
        inside: Returns the lines of the block that a line opens.
    """

    def __init__(self, inside: Callable[[int], range]) -> None:
        self._inside = inside
        self.clear()

    def clear(self) -> None:
        """Begin a handler."""
        self._shown: Counter[int] = Counter()  # by the first line of a loop
        self._lines = range(0)  # of the loop that is not followed
        self._skipped = 0

    def skips(self, line: int, mark: LineMark | None) -> bool:
        """Return whether the line that is about to run is not followed."""
        if line in self._lines:
            self._skipped += line == self._lines.start + 1  # behind `while True:`
            return True
        if mark is None or mark.kind != marks.TURN or self._skipped:
            return False
        self._shown[line] += 1
        if self._shown[line] > MOST_SHOWN:
            header = line - 1
            self._lines, self._skipped = range(header, self._inside(header).stop), 1
        return self._skipped > 0

    def take(self, *, ended: bool) -> TurnsSkipped | None:
        """Return the step of a loop that is over now, if it was not followed; follow all again.

        The last turn that begins is the one that finds the end: of the loop, or of our patience.

        Args:
            ended: Whether it came to its end.
        """
        if not self._skipped:
            return None
        count, self._lines, self._skipped = self._skipped - 1, range(0), 0
        return TurnsSkipped(count=count, most=MOST_TURNS, ended=ended)
