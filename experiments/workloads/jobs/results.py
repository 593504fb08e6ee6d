"""The files that runs of jobs write: rows for a table, and series for figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ringleaf.core.disk import write_text
from ringleaf.core.units import PS_PER_MS, format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.records import drops, link_use
from ringleaf.experiments.records.arrays import write_arrays
from ringleaf.experiments.records.columns import Column, as_ms, fixed, widened
from ringleaf.experiments.records.drops import Key
from ringleaf.experiments.records.facts import RunFact
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.late_faults import tell_late
from ringleaf.experiments.records.link_use import LinkUse
from ringleaf.experiments.records.pauses import Counted
from ringleaf.experiments.records.results import Results, common
from ringleaf.experiments.records.table import network_lines, rate_line, wrong_line
from ringleaf.experiments.workloads.jobs.about import told_of_errors, told_of_live, told_of_memory
from ringleaf.experiments.workloads.jobs.timeline import (
    JobSpan,
    as_chrome,
    from_chrome,
    timeline_file,
)
from ringleaf.hosts.workload.graph import Graph
from ringleaf.hosts.workload.replay import NodeTimes
from ringleaf.networks.outcome import Drop

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job in one case; times in picoseconds, of virtual time or, live, of the clock."""

    jobs: int  # number of jobs that share the network
    algo: str
    scheduler: str
    entries: int | None  # of a switch, that all jobs share; None: all that it has
    job: int  # from 1
    model: str
    ranks: int
    iterations: int
    jct_ps: int  # from its start to its last gradient's sum
    iteration_ps: int  # on average
    compute_ps: int  # an iteration, if nobody waited
    wait_ps: int  # for gradients, per iteration that has one before it
    front_wait_ps: int  # of that, before the first quarter of the layers
    size_bytes: int  # of the gradient
    wrong: int | None  # None: there was no data
    retransmissions: int  # of the case
    drops: int  # of the case
    peak_queue_bytes: int | None  # of the case; None: not known, as with live BMv2s
    busiest_percent: float  # load of the case's busiest link while jobs ran
    links_percent: float  # likewise, on average over the links' directions that were used
    memory_peak: int | None  # most entries in use at a time in the fullest switch; None: live
    memory_mean: float | None  # likewise, on average over time
    fairness: float | None  # Jain's index of speeds over computing alone; None: a job has none
    packet_hops: int  # of the case
    moves: int = 0  # changes of its part of switches' memory
    deadline_ps: int | None = None  # after its start; None: it has none
    reason: str = ""  # why the first wrong element is wrong
    virtual_jct_ps: int | None = None  # live: the same job's in virtual time, as a prediction
    late_ps: int | None = None  # of the case, live: from a decision until a host begins, on average
    most_late_ps: int | None = None  # likewise, the most
    limit: str = ""  # of the case, live: the part without processor time left
    pauses: int = 0  # of the case: times that a port asked the other end to pause a class
    trims: int = 0  # of the case: packets that went on without their payload
    lost: int = 0  # of the case: packets that links lost
    corrupted: int = 0  # of the case: packets that receivers discarded, as a bit was wrong
    repaths: int = 0  # of the case: times that a connection took another path
    forbidden: str = ""  # of the case: packets that switches dropped as programs forbid them
    within_percent: float | None = None  # of flows: what the times may be wrong by, if known
    outside: str = ""  # of flows: why it is not known what the times may be wrong by
    changes: int = 0  # of the case: of circuits
    dark_ps: int = 0  # of the case: time in which circuits were not up because of that
    duty: float | None = (
        None  # of the case: the share of the rest; None: no controller sets circuits up
    )
    circuit_bytes: int = 0  # of the case: bytes on circuits, with what lines add
    packet_bytes: int = 0  # of the case: likewise, on other links between switches
    rebuilt: int = 0  # of the case: trees of aggregation that were built again
    detect_ps: int | None = None  # of the case: from a fault until the tree was another
    resume_ps: int | None = None  # likewise, from then until all workers had a result, the longest


@dataclass(frozen=True, slots=True)
class Combination:
    """A number of jobs, the algorithm that reduces, and the scheduler that orders gradients."""

    count: int
    algo: str
    scheduler: str
    entries: int | None = None  # of a switch, that all jobs share

    @property
    def name(self) -> str:
        """The name for folders: `4-switchml-fifo-64`."""
        parts = (self.count, self.algo, self.scheduler, self.entries)
        return "-".join(str(part) for part in parts if part is not None)


@dataclass(slots=True)
class JobsCase:
    """The results of one combination: its jobs' rows, and series over time."""

    combination: Combination
    rows: list[JobRow]
    spans: list[JobSpan] = field(default_factory=list)
    bin_ps: int = 0
    link: str = ""  # the busiest of those that most jobs share
    link_series: npt.NDArray[np.int64] | None = None  # (group numbers, bins) bytes on it
    link_rate_bps: int = 0
    queue_bin_ps: int = 0
    queue: str = ""  # the fullest
    queue_series: npt.NDArray[np.int64] | None = None  # (classes, bins) bytes in it
    memory_interval_ps: int = 0
    memory_switch: str = ""  # the fullest; "": none aggregates
    memory_series: npt.NDArray[np.int64] | None = None  # (group numbers, samples) entries in use
    drops: list[Drop] = field(default_factory=list)
    uses: list[LinkUse] = field(default_factory=list)  # of links, the busiest first
    wall_s: float = 0.0
    traces: list[tuple[Graph, list[NodeTimes]]] = field(default_factory=list)  # if wanted, by job

    @property
    def key(self) -> Key:
        """What its drops and uses of links are kept by."""
        return self.combination.name, 0

    @property
    def mean_jct_ps(self) -> float:
        """The mean completion time of its jobs."""
        return fmean(row.jct_ps for row in self.rows)

    @property
    def end_ps(self) -> int:
        """The time at which its last job was over."""
        return max((span.end_ps for span in self.spans), default=0)

    @property
    def is_live(self) -> bool:
        """Whether its times are of the wall clock."""
        return any(row.virtual_jct_ps is not None for row in self.rows)

    @property
    def clock(self) -> str:
        """The name of the clock that times are of, for axes."""
        return "wall-clock" if self.is_live else "simulated"


def jain(values: Sequence[float]) -> float:
    """Return Jain's fairness index (Jain, Chiu and Hawe, DEC-TR-301, 1984): 1 if all are equal."""
    total, squares = sum(values), sum(value * value for value in values)
    return total * total / (len(values) * squares) if squares else 1.0


SERIES = "series.npz"
_SCALARS = ("bin_ps", "link", "link_rate_bps", "queue_bin_ps", "queue", "memory_interval_ps",
            "memory_switch")  # fmt: skip
_SERIES = ("link_series", "queue_series", "memory_series")

VIRTUAL_JCT = "virtual_jct_ps"
"""The column of live runs that has the completion time in virtual time."""

WITHIN = "within_percent"
"""The column of runs by flows."""

COLUMNS = (
    Column("jobs", "jobs", width=5),
    Column("algo", "algo", width=10, is_swept=True),
    Column("scheduler", "scheduler", width=13, is_swept=True),
    Column("entries", "entries", width=7, missing="all"),
    Column("job", "job", width=3, is_swept=True),
    Column("model", "model", width=11, is_swept=True),
    Column("ranks", "ranks", width=5),
    Column("jct_ps", "JCT", "ms", 9, as_ms, is_swept=True),
    Column(VIRTUAL_JCT, "virtual", "ms", 9, as_ms),
    Column(WITHIN, "error", "%", 6, fixed(1)),
    Column("iteration_ps", "iteration", "ms", 9, as_ms),
    Column("compute_ps", "compute", "ms", 8, as_ms),
    Column("wait_ps", "wait", "ms", 8, as_ms, is_swept=True),
    Column("front_wait_ps", "front", "ms", 8, as_ms),
    Column("fairness", "fair", width=6, show=fixed(3)),
    Column("busiest_percent", "busiest", "%", 7, fixed(1)),
    Column("links_percent", "links", "%", 5, fixed(1)),
    Column("peak_queue_bytes", "queue", "KiB", 7, lambda peak: f"{peak / 1024:.0f}"),
    Column("memory_peak", "memory", "peak", 6),
    Column("memory_mean", "memory", "mean", 6, fixed(1)),
    Column("wrong", "#wrong", width=6, is_swept=True),
    Column("retransmissions", "retx", width=5, is_swept=True),
)
DROPS = Column("drops", "drops", width=5)
"""A column that sweeps have, too."""

_CAPTIONS = {
    "jct": ("Job completion time", "From a job's start to its last sum. Lower is better."),
    "wait": (
        "Waiting for the front layers",
        "What forward passes wait, per iteration, for the sums of the first quarter of the layers.",
    ),
    "links": ("A shared link", "Load over time, by job: one link in all panels of as many jobs."),
    "queues": ("The fullest queue", "Bytes over time, by priority."),
    "memory": ("Switch memory", "Slots or aggregators in use in the fullest switch, by job."),
}


@dataclass(kw_only=True)
class JobsResults(Results):
    """The results of all cases of a run of jobs."""

    kind = "jobs"
    row = JobRow
    files = (SERIES, drops.FILE, link_use.FILE)
    spare = (
        *("memory_peak", "memory_mean", "links_percent", "compute_ps", "ranks", "iteration_ps"),
        *("fairness", "front_wait_ps", "peak_queue_bytes", "model", "busiest_percent", "wait_ps"),
        "retransmissions",
    )

    cases: list[JobsCase] = field(default_factory=list)
    faults: Mapping[str, Any] = field(default_factory=dict)  # as `tell_late` needs them

    def add(self, case: JobsCase) -> None:
        """Add the next case."""
        self.cases.append(case)
        self.rows += case.rows
        self.uses[case.key] = case.uses
        if case.drops:
            self.drops[case.key] = case.drops

    @property
    def title(self) -> str:
        """The title of the page."""
        most = max(case.combination.count for case in self.cases)
        return (
            f"{format_count(most, 'training job')} beside each other"
            if most > 1
            else "A training job"
        )

    @property
    def columns(self) -> Sequence[Column]:
        """The columns, as wide as names are; live runs and those by flows have one more."""
        left_out = {VIRTUAL_JCT} if self.is_virtual else set[str]()
        if not any(row.outside or row.within_percent is not None for row in self.rows):
            left_out.add(WITHIN)
        kept = [each for each in COLUMNS if each.name not in left_out]
        texts = {
            name: [getattr(row, name) for row in self.rows]
            for name in ("algo", "scheduler", "model")
        }
        return widened(kept, texts)

    @property
    def captions(self) -> Mapping[str, tuple[str, str]]:
        """Titles and captions of figures."""
        return _CAPTIONS

    def counts(self) -> Mapping[Key, Counted]:
        """Return a row of each case, which counts pauses, trims and drops."""
        return {case.key: case.rows[0] for case in self.cases}

    def foot(self) -> Iterator[str]:
        """Yield the lines below the table."""
        yield from told_of_memory(self.cases)
        yield from told_of_errors(self.rows)
        yield wrong_line(self.wrong)
        yield from self.reasons()
        ends_ps = {case.combination.name: case.end_ps for case in self.cases}
        yield from tell_late(self.faults, ends_ps)
        yield from network_lines(self)
        for case in self.cases:
            if case.is_live:
                yield told_of_live(case.rows[0])
        hops = sum(case.rows[0].packet_hops for case in self.cases)
        yield rate_line(hops, sum(case.wall_s for case in self.cases))

    def reasons(self) -> Iterator[str]:
        """Yield why jobs' sums are wrong."""
        for row in self.rows:
            if row.reason:
                yield f"job {row.job} of {row.jobs} by {row.algo}, {row.scheduler}: {row.reason}"

    def facts(self) -> Iterator[RunFact]:
        """Yield the case that was fastest."""
        most = max(row.jobs for row in self.rows)
        crowded = [case for case in self.cases if case.combination.count == most]
        best = min(crowded, key=lambda case: case.mean_jct_ps)
        name = f"{best.combination.algo}, {best.combination.scheduler}"
        yield RunFact(
            name, f"fastest of {format_count(most, 'job')}: {best.mean_jct_ps / PS_PER_MS:,.3f} ms"
        )

    def sections(self, svgs: Mapping[str, str]) -> Iterator[str]:
        """Yield layers over time, case by case."""
        from ringleaf.experiments.workloads.jobs.page import timelines

        yield from timelines(self.cases, svgs)

    def figures(self) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw the figures."""
        from ringleaf.experiments.workloads.jobs.figures import figures_of

        return figures_of(self.cases)

    def plain(self) -> dict[str, Any]:
        """Return the cases, and the faults that were asked for."""
        return {
            "cases": [
                asdict(case.combination) | {name: getattr(case, name) for name in _SCALARS}
                for case in self.cases
            ],
            "faults": dict(self.faults),
        }

    def keep(self, folder: RunFolder) -> None:
        """Write series and timelines."""
        folder.keep(partial(self._write_series, folder.path / SERIES))
        for case in self.cases:
            if case.spans:
                path = folder.path / timeline_file(case.combination)
                folder.keep(partial(_write_timeline, path, case), path)

    def _write_series(self, path: Path) -> None:
        write_arrays(path, _arrays(self.cases))


def _write_timeline(path: Path, case: JobsCase) -> None:
    path.parent.mkdir(exist_ok=True)
    write_text(path, as_chrome(case))


CHAKRA = "chakra"
"""The folder of Chakra traces, with one of each case."""


def write_traces(folder: Path, case: JobsCase) -> list[Path]:
    """Write each job's trace, in which all ranks have the same times; return the files."""
    from ringleaf.hosts.workload.formats.files import write_trace  # loads protobuf

    place = folder / CHAKRA / case.combination.name
    written: list[Path] = []
    for number, (graph, times) in enumerate(case.traces, start=1):
        place.mkdir(parents=True, exist_ok=True)
        ranks = [times] * len(graph.ranks)
        written += write_trace(graph, "chakra", place, f"job{number}", ranks)
    return written


def _arrays(cases: Sequence[JobsCase]) -> dict[str, Any]:
    return {
        f"{case.combination.name}.{name}": series
        for case in cases
        for name in _SERIES
        if (series := getattr(case, name)) is not None
    }


def read_results(folder: Path, summary: Mapping[str, Any]) -> JobsResults:
    """Load the results of a run of jobs from its directory, given its summary.

    Raises:
        ConfigError: If its files are missing or wrong.
    """
    path = folder / SERIES
    try:
        with np.load(path) as arrays:
            series = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"plot: can't read the series, got {str(path)!r}; run it again"
        ) from error
    rows = iter([JobRow(**row) for row in summary["rows"]])
    results = JobsResults(**common(folder, summary), faults=summary.get("faults", {}))
    dropped, uses = results.drops, results.uses
    for each in summary["cases"]:
        combination = Combination(**{f.name: each[f.name] for f in fields(Combination)})
        more: dict[str, Any] = {name: series.get(f"{combination.name}.{name}") for name in _SERIES}
        own = [next(rows) for _ in range(combination.count)]
        scalars: dict[str, Any] = {name: each[name] for name in _SCALARS}
        key = (combination.name, 0)
        more |= {"drops": dropped.get(key, []), "uses": uses.get(key, [])}
        spans = read_spans(folder / timeline_file(combination))
        results.add(JobsCase(combination, own, spans=spans, **scalars, **more))
    return results


def read_spans(path: Path) -> list[JobSpan]:
    """Load the spans of a case's timeline; return none if there is no such file.

    Raises:
        ConfigError: If it is no trace of ours.
    """
    if not path.exists():
        return []
    try:
        return from_chrome(path.read_text(encoding="utf-8"))
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(
            f"plot: can't read the timeline, got {str(path)!r}: {error}; run it again"
        ) from error
