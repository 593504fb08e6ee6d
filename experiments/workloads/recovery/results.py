"""The results of trainings that lose hosts: a row for each recovery, and its losses and phases."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ringleaf.core.disk import write_text
from ringleaf.core.units import PS_PER_S, format_count, format_time
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.columns import Column, as_ms, fixed, widened
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.late_faults import tell_late
from ringleaf.experiments.records.results import Results, as_csv, common, names_of
from ringleaf.experiments.records.table import rate_line, wrong_line
from ringleaf.experiments.records.tracks import Bar, Track
from ringleaf.experiments.workloads.recovery.traffic import PlanTraffic
from ringleaf.hosts.recoveries.common.course import Course, Phase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOSSES = "losses.csv"
PHASES = "phases.csv"


@dataclass(frozen=True, slots=True)
class RecoveryRow:
    """A training by one recovery; times in picoseconds."""

    recovery: str
    iterations: int
    time_ps: int
    goodput: float  # iterations per second
    share: float  # of a training without losses
    losses: int  # recoveries from losses
    workers: int  # that were lost
    lost_ps: int  # of iterations that count for nothing
    detect_ps: int | None  # mean
    recover_ps: int | None  # mean, from the loss to the next iteration
    copy_ps: int  # in all
    copied_bytes: int
    saved_ps: int  # time of checkpoints
    first_ps: int | None  # the first iteration
    last_ps: int | None  # the last one
    pipelines: int  # at the end
    wrong: int | None  # of iterations that no row above has had simulated


@dataclass(frozen=True, slots=True)
class RecoveryLine:
    """A loss, or several together, and the recovery from it; times in picoseconds."""

    recovery: str
    at_ps: int
    workers: str
    kinds: str
    lost_ps: int
    undone: int
    detect_ps: int
    pause_ps: int
    copy_ps: int
    copied: int
    resumed_ps: int
    pipelines: int
    restarted: int


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """A stretch of a training's time, in picoseconds."""

    recovery: str
    phase: str
    start_ps: int
    end_ps: int


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


TABLE = (
    Column("recovery", "recovery", width=10, is_swept=True),
    Column("iterations", "iters", width=6),
    Column("time_ps", "time", "ms", 11, as_ms, is_swept=True),
    Column("goodput", "goodput", "1/s", 8, fixed(3), is_swept=True),
    Column("share", "of usual", "%", 8, _percent, is_swept=True),
    Column("losses", "losses", width=6, is_swept=True),
    Column("lost_ps", "lost", "ms", 10, as_ms, is_swept=True),
    Column("detect_ps", "detect", "ms", 9, as_ms),
    Column("recover_ps", "recover", "ms", 10, as_ms, is_swept=True),
    Column("copied_bytes", "copied", "MB", 9, lambda size: f"{size / 1e6:.1f}", is_swept=True),
    Column("last_ps", "last", "ms", 9, as_ms),
    Column("saved_ps", "saving", "ms", 9, as_ms),
    Column("copy_ps", "copying", "ms", 9, as_ms),
    Column("workers", "workers", width=7),
    Column("first_ps", "first", "ms", 9, as_ms),
    Column("pipelines", "pipelines", width=9),
    Column("wrong", "#wrong", width=6, is_swept=True),
)


_CAPTIONS = {
    "course": (
        "Iterations over time",
        "A training goes back where iterations since the last checkpoint are done again.",
    ),
    "time": ("Where time went", "Iterations in which a worker is lost count for nothing."),
}


@dataclass(kw_only=True)
class RecoveryResults(Results):
    """The results of all recoveries of a run.

    Attributes:
        config: The options, as resolved.
        usual_ps: An iteration without losses and checkpoints.
        checkpoints: How far apart they are, and by what; "": no recovery saves any.
        lines: All losses, by recovery.
        phases: All phases, by recovery.
        ended: Why recoveries could not go on.
        reason: Why the first wrong value is wrong.
    """

    kind = "recovery"
    row = RecoveryRow
    files = (LOSSES, PHASES)
    spare = (
        *("pipelines", "first_ps", "workers", "copy_ps", "saved_ps", "iterations", "detect_ps"),
        "last_ps",
    )

    config: Mapping[str, Any] = field(default_factory=dict)
    usual_ps: int = 0
    checkpoints: str = ""
    lines: list[RecoveryLine] = field(default_factory=list)
    phases: list[PhaseLine] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    reason: str = ""
    retransmissions: int = 0
    simulations: int = 0
    packet_hops: int = 0  # not in files
    wall_s: float = 0.0  # not in files

    def take(self, name: str, course: Course, usual_ps: int, traffic: PlanTraffic) -> None:
        """Take the course of a training that is over."""
        totals, notes = traffic.totals, course.recovered
        iterations = [each for each in course.phases if each.phase is Phase.ITERATION]
        times_ps = [each.end_ps - each.start_ps for each in iterations]
        self.reason = totals.reason
        self.retransmissions, self.simulations = totals.retransmissions, totals.simulations
        self.packet_hops, self.wall_s = totals.packet_hops, totals.wall_s
        self.rows.append(
            RecoveryRow(
                recovery=name,
                iterations=course.done,
                time_ps=course.now_ps,
                goodput=course.done * PS_PER_S / max(course.now_ps, 1),
                share=course.done * usual_ps / max(course.now_ps, 1),
                losses=len(notes),
                workers=sum(len(each.workers) for each in notes),
                lost_ps=sum(each.lost_ps for each in notes),
                detect_ps=_mean(each.detect_ps for each in notes),
                recover_ps=_mean(each.took_ps for each in notes),
                copy_ps=course.total_ps(Phase.COPY),
                copied_bytes=course.copied * traffic.layer_bytes,
                saved_ps=course.total_ps(Phase.SAVE),
                first_ps=times_ps[0] if times_ps else None,
                last_ps=times_ps[-1] if times_ps else None,
                pipelines=len(course.plan.pipelines),
                wrong=totals.take_wrong(),
            )
        )
        for each in notes:
            values = asdict(each) | {
                "workers": " ".join(map(str, each.workers)),
                "kinds": " ".join(dict.fromkeys(each.kinds)),
                "restarted": int(each.restarted),
            }
            self.lines.append(RecoveryLine(name, **values))
        self.phases += [
            PhaseLine(name, each.phase.value, each.start_ps, each.end_ps) for each in course.phases
        ]

    @property
    def title(self) -> str:
        """The title of the page."""
        return f"Recoveries: {super().title}"

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, as wide as names are."""
        return widened(TABLE, {"recovery": [row.recovery for row in self.rows]})

    @property
    def captions(self) -> Mapping[str, tuple[str, str]]:
        """Titles and captions of figures."""
        return _CAPTIONS

    def figures(self) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw the figures."""
        from ringleaf.experiments.workloads.recovery import figures

        if not self.rows:
            return {}
        return {
            "course": partial(figures.draw_course, self),
            "time": partial(figures.draw_time, self),
        }

    def foot(self) -> Iterator[str]:
        """Yield the lines below the table."""
        yield from self.ended
        yield from tell_late(self.config, {row.recovery: row.time_ps for row in self.rows})
        yield f"an iteration without losses takes {format_time(self.usual_ps)}"
        yield from filter(None, [self.checkpoints])
        if self.wrong is None:
            yield "nothing was checked, as messages had sizes only"
        else:
            yield wrong_line(self.wrong)
        yield from filter(None, [self.reason])
        yield (
            f"{format_count(self.simulations, 'iteration')} and copies simulated, "
            f"{format_count(self.retransmissions, 'packet')} sent again"
        )
        yield rate_line(self.packet_hops, self.wall_s)

    def tracks(self) -> Iterable[Track]:
        """Yield tracks for each recovery: its phases, and from each loss to when it went on."""
        for name in dict.fromkeys(row.recovery for row in self.rows):
            own = [each for each in self.phases if each.recovery == name]
            bars = [Bar(each.phase, each.start_ps, each.end_ps) for each in own]
            yield Track(name, "phases", bars)
            lines = [each for each in self.lines if each.recovery == name]
            yield Track(
                name,
                "losses",
                [
                    Bar(f"{each.kinds}: {each.workers}", each.at_ps, each.resumed_ps)
                    for each in lines
                ],
            )

    def plain(self) -> dict[str, Any]:
        """Return what is known of all recoveries together."""
        names = ("usual_ps", "checkpoints", "ended", "reason", "retransmissions", "simulations")
        return {name: getattr(self, name) for name in names} | {"config": dict(self.config)}

    def keep(self, folder: RunFolder) -> None:
        """Write losses and phases."""
        folder.keep(partial(self._write, folder.path))

    def _write(self, folder: Path) -> None:
        for name, lines, kind in (
            (LOSSES, self.lines, RecoveryLine),
            (PHASES, self.phases, PhaseLine),
        ):
            write_text(folder / name, as_csv(map(asdict, lines), names_of(kind)))


def _mean(values: Iterable[int]) -> int | None:
    each = list(values)
    return round(fmean(each)) if each else None


def read_results(folder: Path, summary: Mapping[str, Any]) -> RecoveryResults:
    """Load the results of a run from its directory, given its summary.

    Raises:
        ConfigError: If its files are missing or wrong.
    """
    names = ("config", "usual_ps", "ended", "reason", "retransmissions", "simulations")
    try:
        lines = [RecoveryLine(**_numbers(row)) for row in _read(folder / LOSSES)]
        phases = [PhaseLine(**_numbers(row)) for row in _read(folder / PHASES)]
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(
            f"plot: can't read the run's files, got {str(folder)!r}: {error}; run it again"
        ) from error
    return RecoveryResults(
        **common(folder, summary),
        **{name: summary[name] for name in names},
        checkpoints=summary.get("checkpoints", ""),
        rows=[RecoveryRow(**row) for row in summary["rows"]],
        lines=lines,
        phases=phases,
    )


_TEXTS = ("recovery", "workers", "kinds", "phase")


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _numbers(row: Mapping[str, str]) -> dict[str, Any]:
    return {name: text if name in _TEXTS else int(text) for name, text in row.items()}
