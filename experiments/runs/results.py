"""The files that a run writes: `config.json`, `results.csv`, `summary.json`, `links.npz`.

The same options and seed give the same bytes; only `config.json` and `log.txt` hold dates and
wall-clock times.
"""

from __future__ import annotations

import csv
import io
import json
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import ringleaf
from ringleaf.errors import ConfigError
from ringleaf.experiments.records import drops
from ringleaf.experiments.records import link_use
from ringleaf.experiments.runs.conditions import injection, inside_nodes
from ringleaf.experiments.explain.findings import Explained, file_of
from ringleaf.experiments.records.folder import write_bytes, write_text
from ringleaf.experiments.records.link_use import LinkUse
from ringleaf.experiments.spec.collective import NONE
from ringleaf.experiments.spec.network import VIRTUAL
from ringleaf.networks.outcome import Drop
from ringleaf.topologies.kinds import LinkKind, reference

if TYPE_CHECKING:
    import torch

SCHEMA_VERSION = 2
FILES = (
    "config.json",
    "results.csv",
    "summary.json",
    "links.npz",
    "log.txt",
    drops.FILE,
    link_use.FILE,
)
_RUN_KEYS = (
    *("collective", "topology", "ranks", "switches", "injection_bps", "options", "versions"),
)
_ASIDE = ("out", "threads")  # options that results do not depend on
_PACKAGES = ("numpy", "numba", "torch", "networkx", "finsy", "matplotlib")


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One row of the results: one algorithm at one size."""

    algo: str
    size_bytes: int  # of each rank's tensor
    count: int  # its elements
    dtype: str
    redop: str
    time_ps: int  # by the run's clock, from start to the last rank's end
    algbw_gb_s: float  # size / time, 10^9 bytes/s
    busbw_gb_s: float  # algbw x the collective's factor
    bound_ps: int  # least time of this algorithm on the routes it got
    bound_percent: float  # bound / time
    floor_ps: int  # least time of any algorithm with the same adders, hosts or switches
    floor_percent: float  # floor / time
    wrong: int | None  # elements, over all ranks, that differ from the collective's demand
    wire_bytes: int  # that the busiest rank sent, headers included
    retransmissions: int
    drops: int  # packets that found a queue full
    lost: int  # packets that links lost
    packet_hops: int  # arrivals of packets anywhere
    events: int
    limit: str = ""  # live: the part without processor time left, so links were not the limit
    reason: str = ""  # why the first wrong element is wrong
    skipped_percent: float = 0.0  # of steps, or of elements: they were not simulated
    error_percent: float = 0.0  # what the time may be wrong by, because of that
    skipping: str = ""  # if it was asked for: what was skipped, or why nothing was
    choice: str = ""  # by an algorithm that chooses: the one it has chosen
    expected_ps: int | None = None  # the time that the cost model gives for it
    pauses: int = 0  # times that a port asked the other end to pause a class
    trims: int = 0  # packets that found a queue full, and went on without their payload
    error: float | None = None  # of switches' sums: the greatest, of the magnitudes added up


@dataclass(frozen=True, slots=True)
class LinkSeries:
    """The bytes that each direction of each link carried, per bin of time."""

    bin_ps: int
    links: tuple[tuple[str, str], ...]  # (from, to)
    size_bytes: npt.NDArray[np.int64]  # (links, bins)


@dataclass(slots=True)
class Run:
    """The results of an experiment, complete or partial."""

    collective: str
    topology: str
    ranks: int
    switches: int
    injection_bps: list[int]  # least and most of any host, all its ports together
    links: list[LinkKind]
    options: dict[str, Any]
    versions: dict[str, str]
    rows: list[CollectiveRow] = field(default_factory=list)
    series: dict[tuple[str, int], LinkSeries] = field(default_factory=dict)
    drops: dict[drops.Key, list[Drop]] = field(default_factory=dict)
    uses: dict[link_use.Key, list[LinkUse]] = field(default_factory=dict)
    tensors: dict[tuple[str, int], list[torch.Tensor]] = field(default_factory=dict)
    explained: dict[tuple[str, int], Explained] = field(default_factory=dict)
    complete: bool = False

    @property
    def wrong(self) -> int | None:
        """The number of wrong elements; None if the run had no data, so none was checked.

        Without data, schedules are still followed, and what they leave wrong counts.
        """
        known = [row.wrong for row in self.rows if row.wrong is not None]
        if self.options.get("data") == NONE and not known:
            return None
        return sum(row.wrong or 0 for row in self.rows)

    @property
    def is_virtual(self) -> bool:
        """Whether times are simulated rather than wall-clock times."""
        return bool(self.options["net"] == VIRTUAL)

    @property
    def clock(self) -> str:
        """The name of the clock that times are of, for axes."""
        return "simulated" if self.is_virtual else "wall-clock"

    @property
    def cpu_bound(self) -> str:
        """A note on algorithms whose live times the machine limited, not the links, and a remedy.

        Empty if there are none.
        """
        slow = list(dict.fromkeys(row.algo for row in self.rows if row.limit))
        if not slow:
            return ""
        return (
            f"{', '.join(slow)} had no processor time left, so their times are this machine's; "
            f"slower links leave more: SCALE={10 * self.options['scale']}"
        )

    @property
    def reference(self) -> LinkKind:
        """The links whose rate bandwidths are compared with: the hosts' own."""
        return reference(self.links)

    @property
    def conduct(self) -> str:
        """A phrase on the clock that times are of, and on the factor that rates are divided by."""
        scale = self.options["scale"]
        slower = f", rates divided by {scale}" if scale > 1 else ""
        if self.is_virtual:
            return f"simulated (virtual) time, packet by packet{slower}"
        return f"wall-clock time on Mininet, {self.options['switch']} switches{slower}"

    @property
    def inside_nodes(self) -> str:
        """A sentence on the time that switches and hosts take, also if that is none."""
        if not self.is_virtual:
            return "switches and hosts take what this machine needs"
        options = self.options
        return inside_nodes(
            options["switch_delay_ps"], options["host_delay_ps"], options["message_overhead_ps"]
        )

    @property
    def injection(self) -> str:
        """A phrase on the rate that a host can inject into the network."""
        return injection(*self.injection_bps)


def algorithms(run: Run) -> list[str]:
    """Return the run's algorithms, in the order of their rows."""
    return list(dict.fromkeys(row.algo for row in run.rows))


def rows_of(run: Run, algo: str) -> list[CollectiveRow]:
    """Return an algorithm's rows, by size."""
    return sorted((row for row in run.rows if row.algo == algo), key=lambda row: row.size_bytes)


def is_one_size(run: Run) -> bool:
    """Return whether all rows have the same size, so that nothing can be drawn against size."""
    return len({row.size_bytes for row in run.rows}) == 1


def versions() -> dict[str, str]:
    """Return the versions of Ringleaf, Python and the packages that the figures depend on."""
    found = {"ringleaf": ringleaf.__version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in _PACKAGES}


def git_commit(root: Path) -> str | None:
    """Return the commit of `root`, with `+` appended if files differ; None outside git."""
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return commit + ("+" if _git(root, "status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ("git", "-C", str(root), *arguments), check=True, capture_output=True, text=True
    ).stdout.strip()


def write_config(
    folder: Path, resolved: Mapping[str, Any], *, given: Mapping[str, Any], started: str
) -> None:
    """Begin a run directory: write the options as given, and as resolved."""
    _write_json(
        folder / "config.json",
        {
            "schema_version": SCHEMA_VERSION,
            "started": started,
            "git_commit": git_commit(Path(__file__).parent),
            "machine": {"system": platform.platform(), "processor": platform.machine()},
            "given": {name: value for name, value in given.items() if name not in _ASIDE},
            **resolved,
        },
    )


def now() -> str:
    """Return the date and time, for `write_config`."""
    return datetime.now(UTC).isoformat()


def described(run: Run) -> dict[str, Any]:
    """Return a description of the run: its workload, options, topology and links."""
    said = {key: getattr(run, key) for key in _RUN_KEYS}
    links = [
        {name: value for name, value in asdict(each).items() if value is not None}
        for each in run.links
    ]
    return said | {"links": links}


def write_results(folder: Path, run: Run) -> None:
    """Write the data that figures and reports need; an incomplete run's is as good."""
    write_rows(folder, run)
    arrays: dict[str, Any] = {}
    for (algo, size_bytes), series in run.series.items():
        arrays["links"] = np.array(series.links)
        arrays[f"{algo}.{size_bytes}.bin_ps"] = np.array(series.bin_ps)
        arrays[f"{algo}.{size_bytes}.bytes"] = series.size_bytes
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    write_bytes(folder / "links.npz", packed.getvalue())


def write_rows(folder: Path, run: Run) -> None:
    """Write all but the links' loads, so that measurements survive whatever comes next."""
    names = [f.name for f in fields(CollectiveRow)]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in run.rows)
    write_text(folder / "results.csv", text.getvalue())
    if run.drops:
        write_text(folder / drops.FILE, drops.as_csv(run.drops))
    write_text(folder / link_use.FILE, link_use.as_csv(run.uses))
    _write_json(
        folder / "summary.json",
        {
            "schema_version": SCHEMA_VERSION,
            "time": "virtual" if run.is_virtual else "wall clock",
            "complete": run.complete,
            "wrong": run.wrong,
            **described(run),
            "rows": [asdict(row) for row in run.rows],
        },
    )


def read_json(path: Path) -> dict[str, Any]:
    """Load a file of a run directory.

    Raises:
        ConfigError: If there is no such file, or it was written in another version's format.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"run directory: can't read its {path.name}, got {str(path.parent)!r}; "
            "name a folder that a run has written"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    version = value.get("schema_version") if isinstance(value, dict) else None
    if version != SCHEMA_VERSION:
        raise ConfigError(f"{path}: schema_version must be {SCHEMA_VERSION}, got {version!r}")
    found: dict[str, Any] = value
    return found


def read_given(folder: Path) -> dict[str, str]:
    """Return the options that a run was given, as typed.

    Raises:
        ConfigError: If it is no run directory, or was written in another version's format.
    """
    given: dict[str, str] = read_json(folder / "config.json")["given"]
    return given


def read_run(folder: Path) -> Run:
    """Load a run directory.

    Raises:
        ConfigError: If it is no run directory, or was written in another version's format.
    """
    summary = read_json(folder / "summary.json")
    rows = [CollectiveRow(**row) for row in summary["rows"]]
    return Run(
        **{key: summary[key] for key in _RUN_KEYS},
        links=[LinkKind(**each | {"joins": tuple(each["joins"])}) for each in summary["links"]],
        rows=rows,
        explained=_read_explained(folder, rows),
        series=_read_series(folder / "links.npz"),
        drops=drops.read(folder),
        uses=link_use.read(folder),
        complete=summary["complete"],
    )


def write_explained(folder: Path, found: Explained) -> Path:
    """Write where a row's time went; return the file."""
    path = folder / file_of(found.algo, found.size_bytes)
    path.parent.mkdir(exist_ok=True)
    write_text(path, json.dumps(found.plain(), separators=(",", ":")) + "\n")
    return path


def _read_explained(
    folder: Path, rows: Iterable[CollectiveRow]
) -> dict[tuple[str, int], Explained]:
    """Load the explanations of those rows that have one."""
    found = {}
    for row in rows:
        path = folder / file_of(row.algo, row.size_bytes)
        if path.exists():
            found[row.algo, row.size_bytes] = Explained.read(
                json.loads(path.read_text(encoding="utf-8"))
            )
    return found


def _read_series(path: Path) -> dict[tuple[str, int], LinkSeries]:
    if not path.exists():
        return {}
    with np.load(path) as arrays:
        names = [name.removesuffix(".bytes") for name in arrays.files if name.endswith(".bytes")]
        links = tuple((str(a), str(b)) for a, b in arrays["links"]) if names else ()
        return {
            (name.rpartition(".")[0], int(name.rpartition(".")[2])): LinkSeries(
                int(arrays[f"{name}.bin_ps"]), links, arrays[f"{name}.bytes"]
            )
            for name in names
        }


def write_log(folder: Path, lines: Iterable[str]) -> None:
    """Write `log.txt`: the times that things took, which differ from run to run."""
    write_text(folder / "log.txt", "".join(f"{line}\n" for line in lines))


def _write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")
