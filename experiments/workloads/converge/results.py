"""The results of trainings: a row for each at its end, and its course."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.core.disk import write_text
from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.records.columns import Column, as_ms, fixed, widened
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.late_faults import tell_late
from ringleaf.experiments.records.results import Results, as_csv, common
from ringleaf.experiments.records.table import wrong_line
from ringleaf.experiments.workloads.converge.curve import Curve, TrainingCase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COURSES = "convergence.csv"
"""The file with every judged moment of every training."""

MOMENT = ("step", "loss", "right", "time_us", "bytes_sent", "wrong")
CASE = ("part", "model", "method", "algo", "workload")


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A training at its end."""

    part: str  # of the plan
    model: str
    method: str
    algo: str
    workload: str  # the scheme
    steps: float  # gradients per rank
    loss: float  # of samples that nobody trains on
    right_percent: float  # of these samples
    time_ps: int  # since the start, computing included
    wire_bytes: int  # that the busiest rank has sent
    wrong: int  # elements of all exchanges


COLUMNS = (
    Column("part", "part", width=11, is_swept=True),
    Column("model", "model", width=8, is_swept=True),
    Column("method", "method", width=12, is_swept=True),
    Column("algo", "algo", width=10, is_swept=True),
    Column("workload", "scheme", width=9, is_swept=True),
    Column("steps", "steps", width=5, show=lambda steps: f"{steps:.0f}"),
    Column("loss", "loss", width=6, show=fixed(3), is_swept=True),
    Column("right_percent", "right", "%", 6, fixed(1), is_swept=True),
    Column("time_ps", "time", "ms", 9, as_ms, is_swept=True),
    Column("wire_bytes", "wireB/rank", "KB", 10, lambda sent: f"{sent / 1000:.1f}"),
    Column("wrong", "#wrong", width=6, is_swept=True),
)


@dataclass(kw_only=True)
class ConvergeResults(Results):
    """The results of all trainings of a plan.

    Attributes:
        curves: The trainings' courses.
        faults: The faults that were asked for, as `tell_late` needs them.
        longest_ps: The time of each training's longest exchange, by its name.
    """

    kind = "converge"
    row = TrainingRow
    files = (COURSES,)
    spare = ("wire_bytes", "steps", "workload", "part")

    curves: list[Curve] = field(default_factory=list)
    faults: Mapping[str, Any] = field(default_factory=dict)
    longest_ps: dict[str, int] = field(default_factory=dict)

    def add(self, curve: Curve) -> None:
        """Add a training that has ended."""
        case = curve.case
        self.curves.append(curve)
        longest_ps = max(curve.longest_ps, self.longest_ps.get(case.name, 0))
        self.longest_ps[case.name] = longest_ps
        self.rows.append(
            TrainingRow(
                *(case.part, case.model, case.method, case.algo, case.workload),
                *(curve.steps[-1], curve.loss[-1], 100 * curve.right[-1]),
                *(round(curve.time_us[-1] * PS_PER_US), curve.bytes_sent[-1], curve.wrong),
            )
        )

    @property
    def title(self) -> str:
        """The title of the page."""
        return "Convergence of trainings"

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, as wide as names are."""
        names = ("part", "method", "algo", "workload")
        return widened(COLUMNS, {name: [getattr(r, name) for r in self.rows] for name in names})

    @property
    def captions(self) -> Mapping[str, tuple[str, str]]:
        """Titles and captions of figures: one of each part."""
        caption = "Loss over gradients, over bytes and over simulated time. Lower is better."
        return {each.case.part: (f"Part {each.case.part}", caption) for each in self.curves}

    def foot(self) -> Iterator[str]:
        """Yield the lines below the table."""
        yield wrong_line(self.wrong)
        yield from tell_late(self.faults, self.longest_ps)

    def plain(self) -> dict[str, Any]:
        """Return the faults, and what says which of them came too late."""
        return {"faults": dict(self.faults), "longest_ps": self.longest_ps}

    def figures(self) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw the parts."""
        from ringleaf.experiments.workloads.converge.figure import figures_of

        return figures_of(self.curves)

    def keep(self, folder: RunFolder) -> None:
        """Write the trainings' courses."""
        rows = [row for curve in self.curves for row in _moments(curve)]
        text = as_csv(rows, (*CASE, *MOMENT))
        folder.keep(partial(write_text, folder.path / COURSES, text))


def _moments(curve: Curve) -> Iterator[dict[str, Any]]:
    about = {name: getattr(curve.case, name) for name in CASE}
    courses = (curve.steps, curve.loss, curve.right, curve.time_us, curve.bytes_sent)
    for step, loss, right, time_us, sent in zip(*courses, strict=True):
        figures = (f"{step:g}", f"{loss:.6f}", f"{right:.6f}", f"{time_us:.3f}", sent, curve.wrong)
        yield about | dict(zip(MOMENT, figures, strict=True))


def read_results(folder: Path, summary: Mapping[str, Any]) -> ConvergeResults:
    """Load the results of a run from its directory, given its summary."""
    curves: dict[tuple[str, ...], Curve] = {}
    with (folder / COURSES).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            about = {name: row[name] for name in CASE}
            curve = curves.setdefault(
                tuple(about.values()), Curve(TrainingCase(**about, steps=0, rate=0.0))
            )
            curve.steps.append(float(row["step"]))
            curve.loss.append(float(row["loss"]))
            curve.right.append(float(row["right"]))
            curve.time_us.append(float(row["time_us"]))
            curve.bytes_sent.append(int(row["bytes_sent"]))
            curve.wrong = int(row["wrong"])
    rows = [TrainingRow(**row) for row in summary["rows"]]
    return ConvergeResults(
        **common(folder, summary),
        rows=rows,
        curves=[*curves.values()],
        faults=summary.get("faults", {}),
        longest_ps=summary.get("longest_ps", {}),
    )
