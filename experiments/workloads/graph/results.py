"""The results of replays: a row for each kind of traffic, ranks' accounts, and series."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ringleaf.core.disk import write_text
from ringleaf.core.units import format_size, format_time
from ringleaf.errors import ConfigError
from ringleaf.experiments.records import circuit_counts, drops, link_use
from ringleaf.experiments.records.arrays import write_arrays
from ringleaf.experiments.records.columns import Column, as_ms, as_us
from ringleaf.experiments.records.drops import Key
from ringleaf.experiments.records.facts import RunFact
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.late_faults import tell_late
from ringleaf.experiments.records.link_use import LinkUse
from ringleaf.experiments.records.pauses import Counted
from ringleaf.experiments.records.results import Results, as_csv, common, names_of
from ringleaf.experiments.records.table import network_lines, rate_line
from ringleaf.experiments.workloads.graph import about
from ringleaf.experiments.workloads.graph.accounts import Spending, WorkRow
from ringleaf.experiments.workloads.graph.messages import COLUMNS, PERCENTILES, Messages
from ringleaf.experiments.workloads.graph.slowdown import Bin
from ringleaf.experiments.workloads.graph.timeline import FILE, Timeline
from ringleaf.hosts.workload.replay import NodeTimes
from ringleaf.networks.outcome import Drop

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MESSAGES = "messages.csv"
"""The file with a line for each message, if there are any."""

RANKS = "ranks.csv"
SERIES = "series.npz"
SLOWDOWN = "slowdown.csv"
"""The file with flows' slowdowns by size, if the workload is flows."""

KEY = ("workload", 0)
"""What drops and uses of links are kept by: all traffic is one row of them."""


@dataclass(slots=True)
class WorkResults:
    """What a replay has come to; times in picoseconds, virtual or of the clock."""

    iteration_ps: int
    wrong: int | None  # elements; None: there were no data
    reason: str  # why the first of them is wrong
    retransmissions: int
    drops: int
    packet_hops: int
    peak_queue_bytes: int | None  # None: not known, as with live BMv2s
    rows: list[WorkRow]
    spending: list[Spending]  # by rank
    timeline: Timeline
    bin_ps: int = 0
    link: str = ""  # the busiest
    link_rate_bps: int = 0
    labels: list[str] = field(default_factory=list)  # of the rows of `link_series`
    link_series: npt.NDArray[np.int64] | None = None  # (labels, bins) bytes on it
    drop_counts: list[Drop] = field(default_factory=list)
    uses: list[LinkUse] = field(default_factory=list)  # of links, the busiest first
    messages: Messages = field(default_factory=lambda: Messages(np.zeros((0, 5), np.int64)))
    virtual_ps: int | None = None  # live: the iteration in virtual time, as a prediction
    late_ps: int | None = None  # live: from a decision until a host begins, on average
    most_late_ps: int | None = None  # likewise, the most
    pauses: int = 0  # times that a port asked the other end to pause a class
    trims: int = 0  # packets that found a queue full, and went on without their payload
    lost: int = 0  # packets that links lost
    corrupted: int = 0  # packets that receivers discarded, as a bit was wrong
    repaths: int = 0  # times that a connection took another path, as nothing got through
    forbidden: str = ""  # packets that switches dropped as their programs forbid them
    changes: int = 0  # of circuits
    dark_ps: int = 0  # time in which circuits were not up because of that
    duty: float | None = None  # the share of the rest; None: no controller sets circuits up
    circuit_bytes: int = 0  # bytes on circuits, with what lines add
    packet_bytes: int = 0  # likewise, on other links between switches
    slowdown: list[Bin] = field(default_factory=list)  # of flows, by size
    slowdown_of_all: Bin | None = None  # of flows of all sizes together
    within_percent: float | None = None  # of flows: what the iteration may be wrong by, if known
    outside: str = ""  # of flows: why that is not known
    times: list[list[NodeTimes]] = field(default_factory=list)  # by rank and node; not in files

    def share(self, name: str) -> float:
        """Return a part of the ranks' time, of `Spending`'s, relative to the whole."""
        spent = fmean(getattr(each, name) for each in self.spending)
        return spent / max(self.iteration_ps, 1)

    @property
    def clock(self) -> str:
        """The name of the clock that times are of, for axes."""
        return "simulated" if self.virtual_ps is None else "wall-clock"

    @property
    def bubble(self) -> float:
        """The ranks' idle time, relative to the time in which they compute or communicate."""
        used = sum(each.compute_ps + each.exposed_ps for each in self.spending)
        return sum(each.idle_ps for each in self.spending) / max(used, 1)


PERCENTILE_NAMES = ("p50_ps", "p99_ps", "p999_ps")
"""Names of the messages' `PERCENTILES` in files."""

SLOWDOWN_NAMES = ("slowdown_p50", "slowdown_p95", "slowdown_p99")
"""Names of the percentiles of all flows' slowdowns in files."""

_SCALARS = ("iteration_ps", "wrong", "reason", "retransmissions", "drops", "packet_hops",
            "peak_queue_bytes", "bin_ps", "link", "link_rate_bps", "labels", "virtual_ps",
            "late_ps", "most_late_ps", "pauses", "trims", "lost", "corrupted", "repaths",
            "forbidden", "within_percent", "outside", *circuit_counts.NAMES)  # fmt: skip


def percentiles_of(messages: Messages) -> dict[str, Any]:
    """Return the figures of all messages by their names in files; None: there are no messages."""
    percentiles: list[Any] = [*messages.percentiles_ps()] or [None] * len(PERCENTILES)
    return dict(zip(PERCENTILE_NAMES, percentiles, strict=True)) | {"fairness": messages.fairness()}


def slowdown_figures(bin_of_all: Bin | None) -> dict[str, Any]:
    """Return the percentiles of all flows' slowdowns by their names in files; None: not known."""
    names = ("p50", "p95", "p99")
    values = [getattr(bin_of_all, name, None) for name in names]
    return dict(zip(SLOWDOWN_NAMES, values, strict=True))


TABLE = (
    Column("label", "traffic", width=8),
    Column("call", "call", width=13),
    Column("algo", "algo", width=13),
    Column("ranks", "ranks", width=5),
    Column("size_bytes", "size", "B", 11),
    Column("count", "count", width=6),
    Column("total_bytes", "total", "B", 13),
    Column("time_ps", "time", "us", 10, as_us),
    Column("longest_ps", "longest", "us", 10, as_us),
    Column("wait_ps", "wait", "us", 10, as_us),
    Column("exposed_ps", "exposed", "ms", 9, as_ms),
)
_CAPTIONS = {
    "ranks": (
        "Ranks over time",
        "Each rank's computations, and below them its messages and collectives on the wire.",
    ),
    "spending": (
        "Where ranks' time went",
        "Exposed communication: the rank took part in something on the wire, and computed nothing. "
        "Idle: neither.",
    ),
    "messages": (
        "Times of messages",
        "The share of messages between two ranks that take longer than a time, by size.",
    ),
    "slowdown": (
        "Slowdown of flows",
        "The time of a flow over that of the same flow alone in the network, by size.",
    ),
    "link": ("The busiest link", "Load over time, by kind of traffic."),
}


@dataclass(kw_only=True)
class GraphResults(Results):
    """The results of a run: of one replay, when it is over."""

    kind = "workload"
    row = WorkRow
    files = (RANKS, MESSAGES, SLOWDOWN, SERIES, FILE, drops.FILE, link_use.FILE)
    spare = (*("total_bytes", "count", "ranks", "exposed_ps", "longest_ps", "wait_ps", "algo"),)

    config: Mapping[str, Any] = field(default_factory=dict)
    replay: WorkResults | None = None
    wall_s: float = 0.0  # not in files

    def take(self, replay: WorkResults, wall_s: float) -> None:
        """Take the results of a replay, which took so long to simulate."""
        self.replay, self.wall_s = replay, wall_s
        self.rows += replay.rows
        self.uses[KEY] = replay.uses
        if replay.drop_counts:
            self.drops[KEY] = replay.drop_counts

    @property
    def done(self) -> WorkResults:
        """The replay, which is over."""
        assert self.replay is not None
        return self.replay

    @property
    def wrong(self) -> int | None:
        """The number of wrong elements; None: there were no data."""
        return self.replay.wrong if self.replay else 0

    @property
    def title(self) -> str:
        """The title of the page."""
        return f"Workload {super().title}"

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of the table."""
        return TABLE

    @property
    def captions(self) -> Mapping[str, tuple[str, str]]:
        """Titles and captions of figures."""
        return _CAPTIONS

    def counts(self) -> Mapping[Key, Counted]:
        """Return the counters of the replay."""
        return {KEY: self.replay} if self.replay else {}

    def places(self) -> Mapping[Key, str]:
        """Return the only row of links' use."""
        return dict.fromkeys(self.uses, "")

    def name_of(self, key: Key) -> str:
        """Return `replay`."""
        del key
        return "replay"

    def mark(self, row: WorkRow) -> str:
        """Return nothing: a row has no values of its own."""
        del row
        return ""

    def foot(self) -> Iterator[str]:
        """Yield the lines below the table."""
        yield from about.results(self.done)
        yield from self.reasons()
        yield from tell_late(self.config, {"the replay": self.done.iteration_ps})
        yield from network_lines(self)
        yield rate_line(self.done.packet_hops, self.wall_s)

    def reasons(self) -> Iterator[str]:
        """Yield why the replay's results are wrong."""
        if self.done.reason:
            yield self.done.reason

    def facts(self) -> Iterator[RunFact]:
        """Yield the iteration's time and where it went, and what queues have done."""
        done = self.done
        yield RunFact(format_time(done.iteration_ps), f"iteration, {self.clock}")
        for name, what in (
            ("compute_ps", "of ranks' time: computing"),
            ("exposed_ps", "exposed communication"),
            ("idle_ps", "idle"),
        ):
            yield RunFact(f"{100 * done.share(name):.1f} %", what)
        yield RunFact(
            f"{done.drops:,}", "packets dropped by full queues", "bad" if done.drops else ""
        )
        yield RunFact(f"{done.retransmissions:,}", "packets sent again")
        if done.peak_queue_bytes is not None:
            yield RunFact(format_size(done.peak_queue_bytes), "the fullest queue")

    def sections(self, svgs: Mapping[str, str]) -> Iterator[str]:
        """Yield messages' times, flows' slowdowns, and where the timeline is."""
        from ringleaf.experiments.workloads.graph.page import sections

        del svgs
        yield from sections(self.done)

    def figures(self) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw the figures."""
        from ringleaf.experiments.workloads.graph.figures import figures_of

        return figures_of(self.done)

    def plain(self) -> dict[str, Any]:
        """Return what is known of the replay, but for rows and series."""
        if self.replay is None:
            return {"config": dict(self.config)}
        done = self.replay
        return {
            **{name: getattr(done, name) for name in _SCALARS},
            "compute_share": done.share("compute_ps"),
            "exposed_share": done.share("exposed_ps"),
            "idle_share": done.share("idle_ps"),
            "bubble": done.bubble,
            **percentiles_of(done.messages),
            **slowdown_figures(done.slowdown_of_all),
            "slowdown": [asdict(each) for each in done.slowdown],
            "config": dict(self.config),
        }

    def keep(self, folder: RunFolder) -> None:
        """Write ranks' accounts, messages, series and the timeline."""
        if self.replay is not None:
            folder.keep(partial(_write, folder.path, self.replay))


def _write(folder: Path, done: WorkResults) -> None:
    spending = as_csv([asdict(each) for each in done.spending], names_of(Spending))
    write_text(folder / RANKS, spending)
    arrays: dict[str, Any] = {"messages": done.messages.table}
    if done.link_series is not None:
        arrays["link_series"] = done.link_series
    write_arrays(folder / SERIES, arrays)
    write_text(folder / FILE, done.timeline.as_chrome())
    if len(done.messages.table):
        lines = (dict(zip(COLUMNS, row, strict=True)) for row in done.messages.table.tolist())
        write_text(folder / MESSAGES, as_csv(lines, COLUMNS))
    if done.slowdown:
        write_text(folder / SLOWDOWN, as_csv([asdict(each) for each in done.slowdown]))


def read_results(folder: Path, summary: Mapping[str, Any]) -> GraphResults:
    """Load the results of a replay from its directory, given its summary.

    Raises:
        ConfigError: If its files are missing or wrong.
    """
    results = GraphResults(**common(folder, summary), config=summary["config"])
    if "iteration_ps" not in summary:
        return results
    try:
        with np.load(folder / SERIES) as arrays:
            series = {name: arrays[name] for name in arrays.files}
        with (folder / RANKS).open(newline="") as file:
            ranks = [{k: int(v) for k, v in row.items()} for row in csv.DictReader(file)]
        timeline = Timeline.from_chrome((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConfigError(
            f"plot: can't read the run's files, got {str(folder)!r}: {error}; run it again"
        ) from error
    done = WorkResults(
        **{name: summary[name] for name in _SCALARS if name in summary},  # older ones have fewer
        rows=[WorkRow(**row) for row in summary["rows"]],
        spending=[Spending(**row) for row in ranks],
        timeline=timeline,
        link_series=series.get("link_series"),
        messages=Messages(series["messages"]),
        slowdown=[Bin(**each) for each in summary.get("slowdown", ())],
        drop_counts=results.drops.get(KEY, []),
        uses=results.uses.get(KEY, []),
    )
    results.take(done, 0.0)
    return results
