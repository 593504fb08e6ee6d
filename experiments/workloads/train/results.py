"""The files of a run of a training script, written and read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ringleaf.experiments.records.folder import write_text
from ringleaf.experiments.runs.results import SCHEMA_VERSION, read_json
from ringleaf.experiments.workloads.train.account import Account, CallRow, Iteration, Line, Span
from ringleaf.experiments.workloads.train.timeline import as_chrome, from_chrome
from ringleaf.networks.outcome import RunResult

KIND = "train"
"""The kind of such a run directory, in its `summary.json`."""

TIMELINE = Path("timelines") / "train.json"
FILES = (
    *("config.json", "results.csv", "iterations.csv", "summary.json", "log.txt", str(TIMELINE)),
)


@dataclass(frozen=True, slots=True)
class TrainRun:
    """The results of a run.

    Attributes:
        about: Lines on the network and the script.
        command: The command that does it again.
        ranks: The number of ranks.
        rows: Calls that are alike.
        iterations: By rank.
        spans: Stretches of ranks' time, by rank.
        lines: Collectives.
        left_out: Collectives that there was no room to note.
        totals: Counters of the network.
        complete: Whether the script came to its end.
        is_virtual: Whether calls take simulated time, rather than wall-clock time.
    """

    about: tuple[str, ...]
    command: str
    ranks: int
    rows: Sequence[CallRow]
    iterations: Sequence[Sequence[Iteration]]
    spans: Sequence[Sequence[Span]]
    lines: Sequence[Line]
    left_out: int
    totals: dict[str, int]
    complete: bool
    is_virtual: bool = True

    @property
    def clock(self) -> str:
        """The kind of the times, for people."""
        return "simulated" if self.is_virtual else "wall-clock"

    @property
    def wrong(self) -> int | None:
        """The number of wrong elements; None: not all were checked."""
        if any(row.wrong is None for row in self.rows):
            return None
        return sum(row.wrong or 0 for row in self.rows)

    def steps(self) -> list[tuple[int, float]]:
        """Return each iteration's time, until the last rank's end, and its ranks' mean wait."""
        found, before_ps = [], 0
        for rows in zip(*self.iterations, strict=False):
            end_ps = max(row.end_ps for row in rows)
            found.append((end_ps - before_ps, sum(row.exposed_ps for row in rows) / len(rows)))
            before_ps = end_ps
        return found


def make_run(
    account: Account,
    outcomes: Sequence[RunResult],
    *,
    about: Sequence[str],
    command: str,
    complete: bool,
    is_virtual: bool = True,
) -> TrainRun:
    """Return the results of an account, and of the networks that carried it."""
    totals = {
        name: sum(getattr(each, name) for each in outcomes)
        for name in ("retransmissions", "drops", "lost", "packet_hops")
    }
    return TrainRun(
        tuple(about),
        command,
        account.ranks,
        account.rows(),
        account.iterations,
        account.spans,
        account.lines,
        account.left_out,
        totals | {"end_ps": account.end_ps},
        complete,
        is_virtual,
    )


def write(folder: Path, run: TrainRun) -> None:
    """Write everything but the configuration and the log."""
    names = [field.name for field in fields(CallRow)]
    write_text(folder / "results.csv", _as_csv(names, [asdict(row) for row in run.rows]))
    iterations = [
        {"rank": rank, "iteration": number, **each._asdict()}
        for rank, found in enumerate(run.iterations)
        for number, each in enumerate(found, start=1)
    ]
    columns = ["rank", "iteration", *Iteration._fields]
    write_text(folder / "iterations.csv", _as_csv(columns, iterations))
    (folder / TIMELINE).parent.mkdir(exist_ok=True)
    write_text(folder / TIMELINE, as_chrome(run.spans, run.lines, left_out=run.left_out))
    summary = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "time": "virtual" if run.is_virtual else "wall clock",
        "complete": run.complete,
        "wrong": run.wrong,
        "about": run.about,
        "command": run.command,
        "ranks": run.ranks,
        "left_out": run.left_out,
        "totals": run.totals,
        "iterations": [
            {"time_ps": time_ps, "exposed_ps": round(exposed_ps)}
            for time_ps, exposed_ps in run.steps()
        ],
        "rows": [asdict(row) for row in run.rows],
    }
    write_text(folder / "summary.json", json.dumps(summary, indent=2) + "\n")


def _as_csv(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read(folder: Path) -> TrainRun:
    """Read a run directory.

    Raises:
        ConfigError: If it is no such directory.
    """
    summary = read_json(folder / "summary.json")
    ranks = summary["ranks"]
    spans, lines = from_chrome((folder / TIMELINE).read_text(encoding="utf-8"), ranks)
    iterations: list[list[Iteration]] = [[] for _ in range(ranks)]
    with (folder / "iterations.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            each = Iteration(*(int(row[name]) for name in Iteration._fields))
            iterations[int(row["rank"])].append(each)
    return TrainRun(
        tuple(summary["about"]),
        summary["command"],
        ranks,
        [CallRow(**row) for row in summary["rows"]],
        iterations,
        spans,
        lines,
        summary["left_out"],
        summary["totals"],
        summary["complete"],
        summary["time"] == "virtual",
    )
