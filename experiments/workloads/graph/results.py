"""The files that replays write: rows for a table, ranks' accounts, and series for figures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.errors import ConfigError
from ringleaf.experiments.records import drops, link_use
from ringleaf.experiments.records.folder import write_bytes, write_text
from ringleaf.experiments.records.link_use import LinkUse
from ringleaf.experiments.runs.results import SCHEMA_VERSION, read_json
from ringleaf.experiments.workloads.graph.accounts import Spending, WorkRow
from ringleaf.experiments.workloads.graph.messages import COLUMNS, PERCENTILES, Messages
from ringleaf.experiments.workloads.graph.slowdown import Bin
from ringleaf.experiments.workloads.graph.timeline import FILE, Timeline
from ringleaf.hosts.workload.replay import Times
from ringleaf.networks.outcome import Drop

KIND = "workload"
"""The kind of such a run directory, in its `summary.json`."""

MESSAGES = "messages.csv"
"""The file with a line for each message, if there are any."""

SLOWDOWN = "slowdown.csv"
"""The file with flows' slowdowns by size, if the workload is flows."""

FILES = (
    *(
        "config.json",
        "results.csv",
        "ranks.csv",
        MESSAGES,
        SLOWDOWN,
        "summary.json",
        "series.npz",
        "spec.yaml",
    ),
    *("log.txt", FILE, drops.FILE, link_use.FILE),
)


@dataclass(slots=True)
class WorkResults:
    """All that figures and reports show; times in picoseconds, virtual or of the clock."""

    iteration_ps: int
    wrong: int | None  # elements; None: there were no data
    reason: str  # why the first of them is wrong
    retransmissions: int
    drops: int
    packet_hops: int
    peak_queue_bytes: int
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
    slowdown: list[Bin] = field(default_factory=list)  # of flows, by size
    times: list[list[Times]] = field(default_factory=list)  # by rank and node; not in files

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

_SCALARS = ("iteration_ps", "wrong", "reason", "retransmissions", "drops", "packet_hops",
            "peak_queue_bytes", "bin_ps", "link", "link_rate_bps", "labels", "virtual_ps",
            "late_ps", "most_late_ps", "pauses", "trims")  # fmt: skip


def write_all(
    folder: Path, results: WorkResults, about: Sequence[str], config: Mapping[str, Any]
) -> None:
    """Write all files of a run but its configuration and log."""
    _write_csv(folder / "results.csv", _names(WorkRow), [asdict(row) for row in results.rows])
    _write_csv(folder / "ranks.csv", _names(Spending), [asdict(each) for each in results.spending])
    summary = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "time": "virtual" if results.virtual_ps is None else "wall clock",
        "complete": True,
        **{name: getattr(results, name) for name in _SCALARS},
        "compute_share": results.share("compute_ps"),
        "exposed_share": results.share("exposed_ps"),
        "idle_share": results.share("idle_ps"),
        "bubble": results.bubble,
        **figures_of(results.messages),
        "slowdown": [asdict(each) for each in results.slowdown],
        "about": list(about),
        "config": dict(config),
        "rows": [asdict(row) for row in results.rows],
    }
    write_text(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
    packed = io.BytesIO()
    np.savez_compressed(packed, **_arrays(results))
    write_bytes(folder / "series.npz", packed.getvalue())
    write_text(folder / FILE, results.timeline.as_chrome())
    if len(results.messages.table):
        lines = (dict(zip(COLUMNS, row, strict=True)) for row in results.messages.table.tolist())
        _write_csv(folder / MESSAGES, COLUMNS, lines)
    if results.slowdown:
        _write_csv(folder / SLOWDOWN, _names(Bin), [asdict(each) for each in results.slowdown])
    if results.drop_counts:
        write_text(folder / drops.FILE, drops.as_csv({(KIND, 0): results.drop_counts}))
    write_text(folder / link_use.FILE, link_use.as_csv({(KIND, 0): results.uses}))


def figures_of(messages: Messages) -> dict[str, Any]:
    """Return the figures of all messages by their names in files; None: there are no messages."""
    found: list[Any] = [*messages.percentiles_ps()] or [None] * len(PERCENTILES)
    return dict(zip(PERCENTILE_NAMES, found, strict=True)) | {"fairness": messages.fairness()}


def _arrays(results: WorkResults) -> dict[str, Any]:
    arrays: dict[str, Any] = {"messages": results.messages.table}
    if results.link_series is not None:
        arrays["link_series"] = results.link_series
    return arrays


def _names(kind: type[Any]) -> list[str]:
    return [each.name for each in fields(kind)]


def _write_csv(path: Path, names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def read_results(folder: Path) -> WorkResults:
    """Load the results of a replay from its directory.

    Raises:
        ConfigError: If it is no such run, or was written in another version's format.
    """
    summary = read_json(folder / "summary.json")
    try:
        with np.load(folder / "series.npz") as arrays:
            series = {name: arrays[name] for name in arrays.files}
        with (folder / "ranks.csv").open(newline="") as file:
            ranks = [{k: int(v) for k, v in row.items()} for row in csv.DictReader(file)]
        timeline = Timeline.from_chrome((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConfigError(
            f"plot: can't read the run's files, got {str(folder)!r}: {error}; run it again"
        ) from error
    return WorkResults(
        **{name: summary[name] for name in _SCALARS},
        rows=[WorkRow(**row) for row in summary["rows"]],
        spending=[Spending(**row) for row in ranks],
        timeline=timeline,
        link_series=series.get("link_series"),
        messages=Messages(series["messages"]),
        slowdown=[Bin(**each) for each in summary.get("slowdown", ())],
        drop_counts=drops.read(folder).get((KIND, 0), []),
        uses=link_use.read(folder).get((KIND, 0), []),
    )
