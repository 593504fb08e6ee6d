"""The results of a run of a training script: a row for all calls that are alike, and iterations."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from ringleaf.core.disk import write_text
from ringleaf.core.units import format_count, format_time
from ringleaf.experiments.records.columns import Column, as_us, bandwidth, widened
from ringleaf.experiments.records.facts import RunFact
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.late_faults import tell_late
from ringleaf.experiments.records.results import Results, as_csv, common
from ringleaf.experiments.records.table import wrong_line
from ringleaf.experiments.workloads.train.about import iterations, untimed
from ringleaf.experiments.workloads.train.account import (
    Account,
    CallRow,
    CollectiveLine,
    RankIteration,
    RankSpan,
)
from ringleaf.experiments.workloads.train.timeline import as_chrome, from_chrome
from ringleaf.networks.outcome import RunResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITERATIONS = "iterations.csv"
TIMELINE = Path("timelines") / "train.json"
MOST_ROWS = 30
"""The most rows of the table; all are in the files."""

COLUMNS = (
    Column("call", "call", width=15),
    Column("group", "group", width=12, show=lambda group: group.replace(" ", ":")),
    Column("size_bytes", "size", "B", 10),
    Column("dtype", "type", width=8),
    Column("redop", "redop", width=5, show=lambda redop: redop or "-"),
    Column("algo", "algo", width=15),
    Column("count", "calls", width=6),
    Column("time_ps", "time", "us", 10, as_us),
    Column("busbw_gb_s", "busbw", "GB/s", 7, bandwidth),
    Column("total_ps", "total", "us", 11, as_us),
    Column("wrong", "#wrong", width=6),
)
_CAPTIONS = {
    "iterations": (
        "Iterations",
        "From one optimizer step to the next, until the last rank's. Exposed communication is the "
        "time that ranks wait for calls: for the network, and for one another.",
    ),
    "calls": (
        "Calls",
        "The time of all calls that are alike, with the algorithm that carried them.",
    ),
    "timeline": (
        "An iteration",
        "Above, what a rank does; below, the collectives that it takes part in.",
    ),
}
_TROUBLES = {
    "retransmissions": "packets that hosts sent again",
    "lost": "lost on links",
    "drops": "dropped by full queues",
    "corrupted": "discarded with a wrong bit",
}
_TOTALS = ("retransmissions", "drops", "lost", "corrupted", "packet_hops")


@dataclass(kw_only=True)
class TrainResults(Results):
    """The results of a run.

    Attributes:
        ranks: The number of ranks.
        iterations: By rank.
        spans: Stretches of ranks' time, by rank.
        lines: Collectives.
        left_out: Collectives that there was no room to note.
        totals: Counters of the network.
        faults: The faults that were asked for, as `tell_late` needs them.
        untimed: Paths and classes that no module has which was called, of those with times.
    """

    kind = "train"
    row = CallRow
    files = (ITERATIONS, str(TIMELINE))

    ranks: int
    iterations: Sequence[Sequence[RankIteration]] = ()
    spans: Sequence[Sequence[RankSpan]] = ()
    lines: Sequence[CollectiveLine] = ()
    left_out: int = 0
    totals: dict[str, int] = field(default_factory=dict)
    faults: Mapping[str, Any] = field(default_factory=dict)
    untimed: Sequence[str] = ()

    def take(self, account: Account, outcomes: Sequence[RunResult]) -> None:
        """Take an account, and the outcomes of the networks that carried it."""
        self.untimed = [name for name in self.untimed if name not in account.timed]
        self.rows += account.rows()
        self.iterations, self.spans = account.iterations, account.spans
        self.lines, self.left_out = account.lines, account.left_out
        self.totals = {name: sum(getattr(each, name) for each in outcomes) for name in _TOTALS}
        self.totals["end_ps"] = account.end_ps

    @property
    def wrong(self) -> int | None:
        """The number of wrong elements; None: not all were checked."""
        known = [row.wrong for row in self.rows]
        return None if None in known else sum(known)

    @property
    def title(self) -> str:
        """The title of the page."""
        return "A training script on an emulated network"

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, as wide as the rows that are shown need."""
        texts = {each.name: [each.text(row) for row in self.shown] for each in COLUMNS}
        return widened(COLUMNS, texts)

    @property
    def shown(self) -> Sequence[CallRow]:
        """The first rows."""
        return self.rows[:MOST_ROWS]

    @property
    def captions(self) -> Mapping[str, tuple[str, str]]:
        """Titles and captions of figures."""
        return _CAPTIONS

    def steps(self) -> list[tuple[int, float]]:
        """Return each iteration's time, until the last rank's end, and its ranks' mean wait.

        Its ranks are those that have so many, as data may be dealt unevenly.
        """
        steps, before_ps = [], 0
        for each in zip_longest(*self.iterations):
            rows = [row for row in each if row is not None]
            end_ps = max(before_ps, *(row.end_ps for row in rows))
            steps.append((end_ps - before_ps, sum(row.exposed_ps for row in rows) / len(rows)))
            before_ps = end_ps
        return steps

    def foot(self) -> Iterator[str]:
        """Yield the lines below the table."""
        if len(self.rows) > len(self.shown):
            yield (
                f"and {format_count(len(self.rows) - len(self.shown), 'more row')}, in results.csv"
            )
        yield from iterations(self)
        yield from untimed(self)
        if any(self.totals[name] for name in _TROUBLES):
            yield ", ".join(f"{what}: {self.totals[name]}" for name, what in _TROUBLES.items())
        yield from tell_late(self.faults, {"the training": self.totals["end_ps"]})
        yield "results were not checked" if self.wrong is None else wrong_line(self.wrong)

    def facts(self) -> Iterator[RunFact]:
        """Yield the median iteration, and how much of it ranks wait."""
        steps = self.steps()
        if steps:
            later = steps[1:] or steps
            time_ps = median(time_ps for time_ps, _ in later)
            wait_ps = median(wait_ps for _, wait_ps in later)
            share = 100 * wait_ps / time_ps if time_ps else 0.0
            yield RunFact(format_time(time_ps), "an iteration, the first left out")
            yield RunFact(f"{share:.0f} %", f"of it, ranks wait: {format_time(wait_ps)}")

    def sections(self, svgs: Mapping[str, str]) -> Iterator[str]:
        """Yield where the timeline is."""
        del svgs
        yield (
            f'<p class="soft">{TIMELINE} has all layers, waits and collectives of every rank: '
            "ui.perfetto.dev and chrome://tracing open it.</p>"
        )

    def figures(self) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw the figures."""
        from ringleaf.experiments.workloads.train.figures import figures_of

        return figures_of(self)

    def plain(self) -> dict[str, Any]:
        """Return counters, and iterations' times."""
        return {
            "ranks": self.ranks,
            "left_out": self.left_out,
            "totals": self.totals,
            "faults": dict(self.faults),
            "untimed": list(self.untimed),
            "iterations": [
                {"time_ps": time_ps, "exposed_ps": round(exposed_ps)}
                for time_ps, exposed_ps in self.steps()
            ],
        }

    def keep(self, folder: RunFolder) -> None:
        """Write iterations and the timeline."""
        folder.keep(partial(self._write, folder.path))

    def _write(self, folder: Path) -> None:
        rows = [
            {"rank": rank, "iteration": number, **each._asdict()}
            for rank, own in enumerate(self.iterations)
            for number, each in enumerate(own, start=1)
        ]
        write_text(folder / ITERATIONS, as_csv(rows, ["rank", "iteration", *RankIteration._fields]))
        (folder / TIMELINE).parent.mkdir(exist_ok=True)
        write_text(folder / TIMELINE, as_chrome(self.spans, self.lines, left_out=self.left_out))


def read_results(folder: Path, summary: Mapping[str, Any]) -> TrainResults:
    """Load the results of a run from its directory, given its summary.

    Raises:
        OSError: If a file is missing.
        LookupError, TypeError, ValueError: If one is wrong.
    """
    ranks = summary["ranks"]
    spans, lines = from_chrome((folder / TIMELINE).read_text(encoding="utf-8"), ranks)
    by_rank: list[list[RankIteration]] = [[] for _ in range(ranks)]
    with (folder / ITERATIONS).open(newline="") as file:
        for row in csv.DictReader(file):
            each = RankIteration(*(int(row[name]) for name in RankIteration._fields))
            by_rank[int(row["rank"])].append(each)
    return TrainResults(
        **common(folder, summary),
        **{name: summary[name] for name in ("ranks", "left_out", "totals")},
        faults=summary.get("faults", {}),
        untimed=summary.get("untimed", []),
        rows=[CallRow(**row) for row in summary["rows"]],
        iterations=by_rank,
        spans=spans,
        lines=lines,
    )
