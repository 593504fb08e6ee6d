"""The table on stdout: lines with `#` are comments, rows suit awk."""

from __future__ import annotations

from collections.abc import Iterator

import ringleaf
from ringleaf.core.units import format_count
from ringleaf.experiments.estimates.estimate import Need
from ringleaf.experiments.records import columns as layout
from ringleaf.experiments.records import drops, link_use, pauses
from ringleaf.experiments.records.columns import Column
from ringleaf.experiments.records.results import Results


class RunTable:
    """The lines of a run's table, made as it goes.

    Args:
        results: The results, which grow.
        most: The letters of a line; None: as many as there are.
    """

    def __init__(self, results: Results, most: int | None) -> None:
        self._results = results
        self._most = most
        self._columns: list[Column] = []
        self._done = 0

    def head(self, need: Need | None) -> Iterator[str]:
        """Yield the lines above the table, with what the run needs if that is known."""
        results = self._results
        lines = [*results.about, *results.notes]
        if need is not None:
            lines.append(f"needs {need}")
        version = f"Ringleaf {ringleaf.__version__}: "
        yield from self._comments(f"{'' if i else version}{each}" for i, each in enumerate(lines))

    def rows(self) -> Iterator[str]:
        """Yield the rows that are new; before the first one, columns' names and units."""
        shown = self._results.shown
        if shown and not self._columns:
            yield "#"
            self._columns = layout.fitting(self._results.columns, self._results.spare, self._most)
            yield from layout.titles(self._columns)
        for row in shown[self._done :]:
            yield layout.line((each.text(row) for each in self._columns), self._columns)
        self._done = len(shown)

    def foot(self) -> Iterator[str]:
        """Yield the lines below the table."""
        yield from self._comments(self._results.foot())

    def _comments(self, lines: Iterator[str]) -> Iterator[str]:
        yield from layout.fold((f"# {each}" for each in lines), self._most)


def wrong_line(wrong: int | None) -> str:
    """Return the line on wrong values."""
    if wrong is None:
        return "wrong values: not checked, as there was no data"
    return f"wrong values: {wrong} {'FAILED' if wrong else 'OK'}"


def network_lines(results: Results) -> Iterator[str]:
    """Yield lines on the busiest links, the queues with most drops, pauses, trims and damage."""
    for key, name in results.places().items():
        if phrase := link_use.tell(results.uses.get(key, [])):
            yield f"{phrase} ({name})" if name else phrase
    counts = results.counts()
    worst = sorted(
        (key for key, row in counts.items() if row.drops), key=lambda key: -counts[key].drops
    )
    for key in worst[: drops.SHOWN]:
        yield drops.tell(results.name_of(key), counts[key].drops, results.drops.get(key, []))
    if worst[drops.SHOWN :]:
        yield f"drops: of {format_count(len(worst) - drops.SHOWN, 'more row')}, in {drops.FILE}"
    for key, row in counts.items():
        yield from pauses.tell(results.name_of(key), row)


def rate_line(packet_hops: int, wall_s: float) -> str:
    """Return the line on how fast packets were simulated."""
    rate = packet_hops / max(wall_s, 1e-9) / 1e6
    return f"{packet_hops / 1e6:.1f} M packet-hops in {wall_s:.1f} s: {rate:.2f} M/s"
