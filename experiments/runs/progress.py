"""A progress line on a terminal's stderr: the current row, the share done, the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ringleaf.core.compiling import working_s
from ringleaf.experiments.estimates.estimate import format_wait
from ringleaf.experiments.runs.console import Write, columns, in_place, to_terminal

WIDTH = 24
INTERVAL_S = 0.1
TRUSTED = 0.03
"""Share of a row's packets from which their speed is trusted more than the estimate."""
PRIOR_S = 1.0
"""Seconds of work that are taken to be estimated well before there is any: rows of milliseconds
take what is not in estimates, and say little about longer ones."""

Clock = Callable[[], float]


@dataclass
class RowEstimate:
    """The estimate of a row, and what is known of it.

    Args:
        label: Its name.
        setup_s: The estimated time before its first packet, and after its last.
        packets_s: The estimated time of its packets.
        began_s: When it began.
    """

    label: str
    setup_s: float
    packets_s: float
    began_s: float
    detail: str = ""  # what else is known of it: `3 of 10 iterations`
    first_s: float | None = None  # when packets were first told of
    share: float = 0.0  # of its packets, done
    known: float = 0.0  # share done by the time of `first_s`

    @property
    def done_s(self) -> float:
        """The estimated time of what is done."""
        return self.setup_s * (self.first_s is not None) + self.packets_s * self.share


class Progress:
    """A line shown below the last row of a table, and removed before the next row.

    The time left of a row follows from the speed of its packets so far, and that of later rows from
    what earlier ones took in comparison with their estimates.

    Args:
        total: Work of all rows, in estimated seconds; 0: nobody knows.
        write: Function that draws the line; None: it is not drawn.
        clock: Function that returns the time in seconds.
    """

    def __init__(self, total: float, write: Write | None, clock: Clock = working_s) -> None:
        self._total = total
        self._write = write
        self._clock = clock
        self._row: RowEstimate | None = None
        self._over: list[tuple[float, float]] = []  # estimated and real seconds of rows
        self._drawn_s = float("-inf")

    def stage(self, text: str) -> None:
        """Show a stage of the work that is no row: compiling, drawing."""
        self._show(text)

    def begin(self, label: str, setup_s: float = 0.0, packets_s: float = 0.0) -> None:
        """Begin a row, whose times are estimates; 0: nobody knows."""
        self._row = RowEstimate(label, setup_s, packets_s, self._clock())
        self.draw()

    def tell(self, share: float, detail: str = "") -> None:
        """Note the share of the row's packets that is done, and what else is known."""
        row, now_s = self._row, self._clock()
        if row is None:
            return
        row.detail = detail
        if row.first_s is None:
            row.first_s, row.known = now_s, min(share, 0.99)
        row.share = max(row.share, min(share, 0.99))
        if now_s - self._drawn_s >= INTERVAL_S:
            self.draw()

    def end(self) -> None:
        """End the row and clear the line."""
        if (row := self._row) is not None:
            self._over.append((row.setup_s + row.packets_s, self._clock() - row.began_s))
        self._row = None
        self.clear()

    @property
    def share(self) -> float:
        """The share of all rows' work that is done, by the estimates."""
        if not self._total:
            return self._row.share if self._row else 0.0
        done_s = sum(estimated for estimated, _ in self._over)
        return min((done_s + (self._row.done_s if self._row else 0.0)) / self._total, 1.0)

    @property
    def left_s(self) -> float:
        """The seconds that the remaining rows take."""
        row = self._row
        under_way_s = row.setup_s + row.packets_s if row else 0.0
        later_s = self._total - sum(estimated for estimated, _ in self._over) - under_way_s
        return self._left_of_row_s() + self._times_as_long() * max(later_s, 0.0)

    def _left_of_row_s(self) -> float:
        row = self._row
        if row is None:
            return 0.0
        now_s = self._clock()
        advance = row.share - row.known
        if row.first_s is not None and advance >= TRUSTED:
            return (now_s - row.first_s) * (1 - row.share) / advance
        estimated_s = row.setup_s + row.packets_s
        if row.first_s is not None:
            return self._times_as_long() * row.packets_s * (1 - row.share)
        return max(self._times_as_long() * estimated_s - (now_s - row.began_s), 0.0)

    def _times_as_long(self) -> float:
        """Return how many times as long as estimated the work so far has taken."""
        estimated_s, real_s = PRIOR_S, PRIOR_S
        for each in self._over:
            estimated_s, real_s = estimated_s + each[0], real_s + each[1]
        if (row := self._row) is not None:
            spent_s = self._clock() - row.began_s
            unknown_s = row.setup_s + TRUSTED * row.packets_s * (row.first_s is not None)
            done_s = max(row.done_s, min(unknown_s, spent_s))
            estimated_s, real_s = estimated_s + done_s, real_s + spent_s
        return real_s / estimated_s

    def draw(self) -> None:
        """Draw the line."""
        if self._row is None:
            return
        row, text = self._row, f"{100 * self.share:.0f} %"
        if self._total or row.share - row.known >= TRUSTED:
            text += f", about {format_wait(self.left_s)} left"
        label = f"{row.label}, {row.detail}" if row.detail else row.label
        if len(f"{label}   {text}") > columns():
            label = row.label
        width = min(WIDTH, max(columns() - len(f"{label}   {text}"), 0))
        filled = round(width * self.share)
        bar = "━" * filled + "╌" * (width - filled)
        self._show(f"{label}  {bar} {text}")

    def clear(self) -> None:
        """Remove the line."""
        if self._write is not None:
            self._write(in_place(""))

    def _show(self, text: str) -> None:
        self._drawn_s = self._clock()
        if self._write is not None:
            self._write(in_place(text))


@contextmanager
def progress(total: float = 0.0) -> Iterator[Progress]:
    """Yield a progress line, which is removed at the end, however the run ends."""
    shown = Progress(total, to_terminal())
    try:
        yield shown
    finally:
        shown.clear()
