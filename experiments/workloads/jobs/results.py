"""The files that runs of jobs write: rows for a table, and series for figures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.errors import ConfigError
from ringleaf.experiments.records import drops, link_use
from ringleaf.experiments.records.folder import write_bytes, write_text
from ringleaf.experiments.records.link_use import LinkUse
from ringleaf.experiments.runs.results import SCHEMA_VERSION, read_json
from ringleaf.experiments.workloads.jobs.timeline import Span, as_chrome, from_chrome
from ringleaf.hosts.workload.graph import Graph
from ringleaf.hosts.workload.replay import Times
from ringleaf.networks.outcome import Drop

KIND = "jobs"
"""The kind of such a run directory, in its `summary.json`."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job in one case; times in picoseconds, of virtual time or, live, of the clock."""

    jobs: int  # number of jobs that share the network
    algo: str
    order: str
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
    wrong: int
    retransmissions: int  # of the case
    drops: int  # of the case
    peak_queue_bytes: int | None  # of the case; None: not known, as with live BMv2s
    busiest_percent: float  # load of the case's busiest link while jobs ran
    links_percent: float  # likewise, on average over the links' directions that were used
    memory_peak: int | None  # most entries in use at a time in the fullest switch; None: live
    memory_mean: float | None  # likewise, on average over time
    fairness: float  # Jain's index of the jobs' speeds, relative to computing alone
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


@dataclass(frozen=True, slots=True)
class Combination:
    """A number of jobs, the algorithm that reduces, and the scheduler that orders gradients."""

    count: int
    algo: str
    order: str
    entries: int | None = None  # of a switch, that all jobs share

    @property
    def name(self) -> str:
        """The name for folders: `4-switchml-fifo-64`."""
        parts = (self.count, self.algo, self.order, self.entries)
        return "-".join(str(part) for part in parts if part is not None)


@dataclass(slots=True)
class JobsCase:
    """The results of one combination: its jobs' rows, and series over time."""

    combination: Combination
    rows: list[JobRow]
    spans: list[Span] = field(default_factory=list)
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
    traces: list[tuple[Graph, list[Times]]] = field(default_factory=list)  # if wanted, by job

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


FILES = (
    *("config.json", "results.csv", "summary.json", "series.npz", "spec.yaml", "log.txt"),
    *(drops.FILE, link_use.FILE),
)
TIMELINES = "timelines"  # folder of a Chrome trace per case
_SCALARS = ("bin_ps", "link", "link_rate_bps", "queue_bin_ps", "queue", "memory_interval_ps",
            "memory_switch")  # fmt: skip
_SERIES = ("link_series", "queue_series", "memory_series")


def write_rows(folder: Path, rows: Iterable[JobRow]) -> None:
    """Write `results.csv`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [f.name for f in fields(JobRow)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    write_text(folder / "results.csv", text.getvalue())


def write_summary(
    folder: Path, cases: Sequence[JobsCase], config: dict[str, Any], *, complete: bool
) -> None:
    """Write `summary.json`, `series.npz` and `drops.csv`: all data that figures need."""
    rows = [row for case in cases for row in case.rows]
    summary = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "time": "wall clock" if any(case.is_live for case in cases) else "virtual",
        "complete": complete,
        "wrong": sum(row.wrong for row in rows),
        "config": config,
        "rows": [asdict(row) for row in rows],
        "cases": [
            asdict(case.combination) | {name: getattr(case, name) for name in _SCALARS}
            for case in cases
        ],
    }
    write_text(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
    packed = io.BytesIO()
    np.savez_compressed(packed, **_arrays(cases))
    write_bytes(folder / "series.npz", packed.getvalue())
    dropped = {(case.combination.name, 0): case.drops for case in cases if case.drops}
    if dropped:
        write_text(folder / drops.FILE, drops.as_csv(dropped))
    uses = {(case.combination.name, 0): case.uses for case in cases}
    write_text(folder / link_use.FILE, link_use.as_csv(uses))
    for case in cases:
        if case.spans:
            (folder / TIMELINES).mkdir(exist_ok=True)
            write_text(folder / timeline_file(case.combination), as_chrome(case))


def timeline_file(combination: Combination) -> Path:
    """Return the path of a case's Chrome trace, below the run directory."""
    return Path(TIMELINES) / f"{combination.name}.json"


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


def read_cases(folder: Path) -> list[JobsCase]:
    """Load the cases of a run of jobs from its directory.

    Raises:
        ConfigError: If it is no such run, or was written in another version's format.
    """
    summary = read_json(folder / "summary.json")
    path = folder / "series.npz"
    try:
        with np.load(path) as arrays:
            series = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"plot: can't read the series, got {str(path)!r}; run it again"
        ) from error
    rows = iter([JobRow(**row) for row in summary["rows"]])
    dropped, uses = drops.read(folder), link_use.read(folder)
    cases = []
    for found in summary["cases"]:
        combination = Combination(**{f.name: found[f.name] for f in fields(Combination)})
        more: dict[str, Any] = {name: series.get(f"{combination.name}.{name}") for name in _SERIES}
        own = [next(rows) for _ in range(combination.count)]
        scalars: dict[str, Any] = {name: found[name] for name in _SCALARS}
        spans = read_spans(folder / timeline_file(combination))
        key = (combination.name, 0)
        more |= {"drops": dropped.get(key, []), "uses": uses.get(key, [])}
        cases.append(JobsCase(combination, own, spans=spans, **scalars, **more))
    return cases


def read_spans(path: Path) -> list[Span]:
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
