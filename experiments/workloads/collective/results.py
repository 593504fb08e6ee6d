"""The results of collectives: a row for each algorithm at each size, and links' loads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ringleaf.core.disk import write_text
from ringleaf.core.units import format_count, format_size, format_time
from ringleaf.experiments.explain.findings import Explained, file_of
from ringleaf.experiments.records import circuit_spells, columns, drops, link_use
from ringleaf.experiments.records.arrays import write_arrays
from ringleaf.experiments.records.circuit_spells import Spell, read_spells
from ringleaf.experiments.records.columns import Column, as_us, bandwidth, fixed
from ringleaf.experiments.records.drops import Key
from ringleaf.experiments.records.facts import RunFact
from ringleaf.experiments.records.folder import RunFolder
from ringleaf.experiments.records.late_faults import tell_late
from ringleaf.experiments.records.pauses import Counted
from ringleaf.experiments.records.results import Results, common
from ringleaf.experiments.records.table import network_lines, wrong_line
from ringleaf.experiments.spec.choices import FLOW
from ringleaf.experiments.workloads.collective import table
from ringleaf.experiments.workloads.collective.rows import (
    CollectiveRow,
    LinkSeries,
    compared_bytes,
    is_one_size,
    largest_bytes,
    right_rows,
)
from ringleaf.topologies.kinds import LinkKind, reference

if TYPE_CHECKING:
    import torch

    from ringleaf.core.tensors import Array

SERIES = "links.npz"
_SAID = ("collective", "topology", "ranks", "switches", "injection_bps", "options", "versions")


COLUMNS = (
    Column("algo", "algo", width=15, is_swept=True),
    Column("size_bytes", "size", "B", 10, on_page=format_size, is_swept=True),
    Column("count", "count", "elem", 9),
    Column("dtype", "type", width=7),
    Column("redop", "redop", width=5),
    Column("time_ps", "time", "us", 10, as_us, is_swept=True),
    Column("algbw_gb_s", "algbw", "GB/s", 7, bandwidth),
    Column("busbw_gb_s", "busbw", "GB/s", 7, bandwidth),
    Column("bound_ps", "bound", "us", 10, as_us),
    Column("bound_percent", "%bound", width=6, show=fixed(1), is_share=True, is_swept=True),
    Column("floor_ps", "floor", "us", 10, as_us),
    Column("floor_percent", "%floor", width=6, show=fixed(1), is_share=True),
    Column("wrong", "#wrong", width=6, is_swept=True),
    Column("error", "relerr", width=7, show=lambda error: f"{error:.1e}"),
    Column("wire_bytes", "wireB/rank", "B", 10),
    Column("retransmissions", "retx", width=5, is_swept=True),
)

FLOW_COLUMNS = (
    Column("within_percent", "error", "%", 6, lambda percent: f"{percent:.1f}", is_swept=True),
    Column("packets_ps", "packets", "us", 10, as_us),
    Column("found_percent", "found", "%", 7, lambda percent: f"{percent:+.2f}"),
)
"""Columns of runs of flows: what times may be wrong by; those of packets, and the error found."""

CIRCUIT_COLUMNS = (
    Column("changes", "changes", width=7),
    Column("dark_ps", "dark", "us", 9, as_us),
    Column("duty", "duty", width=6, show=fixed(4)),
    Column("circuit_bytes", "circuits", "B", 10),
    Column("packet_bytes", "packets", "B", 10),
)
"""Columns of runs with a controller of circuits."""

TREE_COLUMNS = (
    Column("rebuilt", "rebuilt", width=7),
    Column("detect_ps", "detect", "us", 9, as_us),
    Column("resume_ps", "resume", "us", 9, as_us),
)
"""Columns of runs whose aggregation trees may be built again."""

SHRINK_COLUMNS = (
    Column("ranks_left", "left", width=5),
    Column("again_ps", "again", "us", 9, as_us),
)
"""Columns of runs whose communicators may shrink."""

DROPS = Column("drops", "drops", width=5)
"""A column that sweeps have, too."""

_SIZES = {
    "time": (
        "Time against size",
        "Lower is better. Dashed: the least time each algorithm could take here; thin: that "
        "any could take in which the same add.",
    ),
    "busbw": (
        "Bus bandwidth against size",
        "Higher is better. Aggregation in switches may exceed the link rate: see busbw below.",
    ),
}
_ONE_SIZE = {
    "time": ("Time", "Lower is better. The line across a bar: the least time it could take here."),
    "busbw": (
        "Bus bandwidth",
        "Higher is better. Aggregation in switches may exceed the link rate: see busbw below.",
    ),
}


MOST_JUDGED = 1 << 11
"""The most ranks whose schedule is judged where it is carried by flows without data."""


@dataclass(kw_only=True)
class CollectiveResults(Results):
    """The results of algorithms of one collective, each at some sizes."""

    kind = "collective"
    row = CollectiveRow
    files = (SERIES, drops.FILE, link_use.FILE, circuit_spells.FILE)
    spare = (
        *("redop", "dtype", "count", "floor_ps", "bound_ps", "floor_percent"),
        *("bound_percent", "wire_bytes", "algbw_gb_s", "busbw_gb_s", "retransmissions"),
    )
    collective: str
    topology: str
    ranks: int
    switches: int
    injection_bps: list[int]  # least and most of any host, all its ports together
    links: list[LinkKind]
    options: dict[str, Any]
    versions: dict[str, str]
    series: dict[Key, LinkSeries] = field(default_factory=dict)
    tensors: dict[Key, list[torch.Tensor | Array]] = field(default_factory=dict)  # not in files
    explained: dict[Key, Explained] = field(default_factory=dict)
    spells: dict[Key, list[Spell]] = field(default_factory=dict)  # of circuits that changed

    @property
    def reference(self) -> LinkKind:
        """The links whose rate bandwidths are compared with: the hosts' own."""
        return reference(self.links)

    @property
    def title(self) -> str:
        """The title of the page."""
        return (
            f"{self.collective.capitalize()} of {format_count(self.ranks, 'rank')} on "
            f"{self.topology}"
        )

    @property
    def columns(self) -> Sequence[Column]:
        """The columns; the first is as wide as the longest name, errors are of switches' sums."""
        left_out: tuple[str, ...] = () if table.has_switch_sums(self.options) else ("error",)
        if not self.options.get("check_packets"):
            left_out += ("packets_ps", "found_percent")
        own: Sequence[Column] = FLOW_COLUMNS if self.options.get("net") == FLOW else ()
        if self.options.get("circuits"):
            own = CIRCUIT_COLUMNS
        if self.options.get("reroute_ps") is not None and table.has_switch_sums(self.options):
            own = (*own, *TREE_COLUMNS)
        if self.options.get("shrink_ps") is not None:
            own = (*own, *SHRINK_COLUMNS)
        kept = (each for each in (*COLUMNS, *own) if each.name not in left_out)
        return columns.widened(kept, {"algo": self.options["algos"]})

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
    def early(self) -> str:
        """A note on algorithms that took less than their least time, on BMv2; "": none did."""
        early = list(dict.fromkeys(row.algo for row in self.rows if row.bound_percent > 100))
        if not early or self.options.get("switch") != "bmv2":
            return ""
        return (
            f"{', '.join(early)} took less than the bound: lines of BMv2 send a packet at once, "
            "and delay the next one (docs/how-to/live-networks.md)"
        )

    def counts(self) -> Mapping[Key, Counted]:
        """Return the rows, which count pauses, trims and drops."""
        return {(row.algo, row.size_bytes): row for row in self.rows}

    def places(self) -> Mapping[Key, str]:
        """Return the rows of the largest size."""
        return {key: self.name_of(key) for key in self.uses if key[1] == largest_bytes(self)}

    @property
    def _unjudged(self) -> str:
        """The remark on schedules that were too large to be judged."""
        is_judged = self.ranks <= MOST_JUDGED or self.options.get("net") != FLOW
        return "" if is_judged else f" not either, as for more than {MOST_JUDGED} ranks of flows"

    def foot(self) -> Iterator[str]:
        """Yield the lines below the table: whether all is right, and which was fastest."""
        if self.wrong is None:
            yield f"{wrong_line(None)} (data=none); schedules were{self._unjudged}"
        else:
            yield wrong_line(self.wrong)
        yield from self.reasons()
        yield from table.remarks(self.rows)
        yield from table.lost(self.rows)
        ends_ps = {self.name_of((row.algo, row.size_bytes)): row.time_ps for row in self.rows}
        yield from tell_late(self.options, ends_ps)
        for key, explained in self.explained.items():
            yield f"{self.name_of(key)}: {table.beyond(explained)}"
        yield from filter(None, (self.cpu_bound, self.early))
        yield from network_lines(self)
        if self.rows:
            yield table.fastest(self.rows)

    def reasons(self) -> Iterator[str]:
        """Yield for each wrong algorithm why it was wrong at the first such size."""
        yield from table.reasons(self.rows)

    def facts(self) -> Iterator[RunFact]:
        """Yield which algorithm was fastest, and by how much."""
        if self.cpu_bound:
            yield RunFact("CPU-bound", self.cpu_bound, "bad")
        if not self.rows:
            return
        first, *others = table.by_time(self.rows)
        time = format_time(first.time_ps).replace("us", "µs")
        yield RunFact(first.algo, f"fastest at {format_size(first.size_bytes)}, {time}")
        for other in others[:1]:
            ratio = other.time_ps / first.time_ps
            yield RunFact(f"{ratio:.2f} times", f"as fast as {other.algo}, the next")
        hops = sum(row.packet_hops for row in self.rows)
        is_flow = self.options.get("net") == FLOW
        how = "for which messages stand" if is_flow else "carried one by one"
        if any(row.skipped_percent for row in self.rows):
            how += ", but for what was skipped"
        yield RunFact(f"{hops:,}", f"packets on links, {how}")

    def mark(self, row: CollectiveRow) -> str:
        """Return whether a row is wrong, or the best of its size, if that can be compared."""
        if row.wrong:
            return "wrong"
        rows = right_rows(self.rows)
        if row.size_bytes not in compared_bytes(each.size_bytes for each in rows):
            return ""
        times = [each.time_ps for each in rows if each.size_bytes == row.size_bytes]
        return "best" if len(times) > 1 and row.time_ps == min(times) else ""

    @property
    def captions(self) -> Mapping[str, tuple[str, str]]:
        """Titles and captions of the first figures, which are others if there is one size."""
        return _ONE_SIZE if is_one_size(self) else _SIZES

    def sections(self, svgs: Mapping[str, str]) -> Iterator[str]:
        """Yield why rows took longer than their bounds, links' loads, and how to read it all."""
        from ringleaf.experiments.workloads.collective import page

        yield from page.sections(self, svgs)

    def tasks(self, folder: Path) -> dict[str, Callable[[Path], str]]:
        """Return functions that draw the figures."""
        from ringleaf.experiments.workloads.collective.figures import tasks

        return tasks(self, folder)

    def plain(self) -> dict[str, Any]:
        """Return a description of the run: its workload, options, topology and links."""
        links = [
            {name: value for name, value in asdict(each).items() if value is not None}
            for each in self.links
        ]
        return {name: getattr(self, name) for name in _SAID} | {"links": links}

    def keep(self, folder: RunFolder) -> None:
        """Write the links' loads; an incomplete run's are as good."""
        folder.keep(partial(self._write_series, folder.path / SERIES))
        if self.spells:
            text, path = circuit_spells.as_csv(self.spells), folder.path / circuit_spells.FILE
            folder.keep(partial(write_text, path, text))

    def _write_series(self, path: Path) -> None:
        arrays: dict[str, Any] = {}
        for (algo, size_bytes), series in self.series.items():
            arrays["links"] = np.array(series.links)
            arrays[f"{algo}.{size_bytes}.bin_ps"] = np.array(series.bin_ps)
            arrays[f"{algo}.{size_bytes}.bytes"] = series.size_bytes
        write_arrays(path, arrays)


def read_results(folder: Path, summary: Mapping[str, Any]) -> CollectiveResults:
    """Load the results of a run from its directory, given its summary."""
    rows = [CollectiveRow(**row) for row in summary["rows"]]
    results = CollectiveResults(
        **common(folder, summary),
        **{name: summary[name] for name in _SAID},
        links=[LinkKind(**each | {"joins": tuple(each["joins"])}) for each in summary["links"]],
        rows=rows,
        series=_read_series(folder / SERIES),
        spells=read_spells(folder / circuit_spells.FILE),
    )
    for row in rows:
        path = folder / file_of(row.algo, row.size_bytes)
        if path.exists():
            plain = json.loads(path.read_text(encoding="utf-8"))
            results.explained[row.algo, row.size_bytes] = Explained.read(plain)
    return results


def write_explained(folder: Path, explained: Explained) -> None:
    """Write where a row's time went."""
    path = folder / file_of(explained.algo, explained.size_bytes)
    path.parent.mkdir(exist_ok=True)
    write_text(path, json.dumps(explained.plain(), separators=(",", ":")) + "\n")


def _read_series(path: Path) -> dict[Key, LinkSeries]:
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
