"""A progress line on a terminal's stderr: the current row, the share done, the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ringleaf.experiments.estimate import format_wait

WIDTH = 24
INTERVAL_S = 0.1
TRUSTED = 0.03
"""Share of work done from which the speed so far is trusted more than the first estimate."""

Write = Callable[[str], object]


class Progress:
    """A line shown below the last row of a table, and removed before the next row.

    Args:
        total: Work of all rows, in estimated seconds.
        write: Function that draws the line; None: it is not drawn.
        clock: Function that returns the time in seconds.
    """

    def __init__(
        self, total: float, write: Write | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total = max(total, 1e-9)
        self._write = write
        self._clock = clock
        self._done = 0.0  # rows that are over
        self._now = 0.0  # of the row under way
        self._of = 0.0  # its weight
        self._label = ""
        self._busy_s = 0.0  # time that rows took
        self._began_s: float | None = None  # of the row under way
        self._drawn_s = float("-inf")

    def stage(self, text: str) -> None:
        """Show a stage of the work that is no row: compiling, drawing."""
        self._show(text)

    def begin(self, label: str, weight: float) -> None:
        """Begin a row."""
        self._label, self._of, self._now = label, weight, 0.0
        self._began_s = self._clock()
        self.draw()

    def tell(self, share: float) -> None:
        """Note the share of the row that is done."""
        self._now = max(self._now, min(share, 0.99)) if self._of else 0.0
        if self._clock() - self._drawn_s >= INTERVAL_S:
            self.draw()

    def end(self) -> None:
        """End the row and clear the line."""
        if self._began_s is not None:
            self._busy_s += self._clock() - self._began_s
        self._done += self._of
        self._began_s, self._of, self._now = None, 0.0, 0.0
        self.clear()

    @property
    def share(self) -> float:
        """The share of all rows' work that is done."""
        return min((self._done + self._of * self._now) / self._total, 1.0)

    @property
    def left_s(self) -> float:
        """The seconds that the remaining rows take, by the speed so far or the estimate."""
        spent_s = self._busy_s + (self._clock() - self._began_s if self._began_s is not None else 0)
        share = self.share
        if share >= TRUSTED:
            return spent_s * (1 - share) / share
        return max(self._total - spent_s, 0.0)

    def draw(self) -> None:
        """Draw the line."""
        filled = round(WIDTH * self.share)
        bar = "━" * filled + "╌" * (WIDTH - filled)
        wait = format_wait(self.left_s)
        self._show(f"{self._label}  {bar} {100 * self.share:.0f} %, about {wait} left")

    def clear(self) -> None:
        """Remove the line."""
        if self._write is not None:
            self._write("\r\x1b[K")

    def _show(self, text: str) -> None:
        self._drawn_s = self._clock()
        if self._write is not None:
            self._write(f"\r\x1b[K{text}\r")


def to_terminal() -> Write | None:
    """Return a function that writes to stderr; None if that is no terminal."""
    if not sys.stderr.isatty():
        return None

    def write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    return write


@contextmanager
def progress(total: float) -> Iterator[Progress]:
    """Yield a progress line, which is removed at the end, however the run ends."""
    shown = Progress(total, to_terminal())
    try:
        yield shown
    finally:
        shown.clear()
