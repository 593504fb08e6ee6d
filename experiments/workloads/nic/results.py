"""The results of a run on NICs: a row for each system that is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.experiments.records.columns import Column
from ringleaf.experiments.records.late_faults import tell_late
from ringleaf.experiments.records.pauses import tell_damage
from ringleaf.experiments.records.results import Results, common
from ringleaf.experiments.records.table import rate_line, wrong_line
from ringleaf.experiments.workloads.nic.workload import LONGEST, Row, workload_of
from ringleaf.hosts.nic.registry import OFFLOADS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(kw_only=True)
class NicResults(Results):
    """All that figures and reports show; rows are mappings, times in picoseconds.

    Attributes:
        offload: The workload's name.
        config: The options, as resolved.
        wall_s: The time that the run has taken, which is in no file.
    """

    kind = "nic"
    spare = (
        *("coherence_bytes", "index_bytes", "gradient_bytes", "vector_bytes", "messages"),
        *("products", "tile"),
    )

    offload: str
    config: Mapping[str, Any] = field(default_factory=dict)
    wall_s: float = 0.0

    @property
    def wrong(self) -> int:
        """The number of elements that differ from the reference."""
        return sum(int(row["wrong"]) for row in self.rows)

    @property
    def title(self) -> str:
        """The title of the page."""
        return f"NICs: {OFFLOADS[self.offload].title}"

    @property
    def columns(self) -> Sequence[Column]:
        """The columns of the workload."""
        return workload_of(self.offload).columns

    @property
    def captions(self) -> Mapping[str, tuple[str, str]]:
        """Titles and captions of the workload's figures."""
        return workload_of(self.offload).captions

    def mark(self, row: Row) -> str:
        """Return whether a row is wrong."""
        return "wrong" if row["wrong"] else ""

    def foot(self) -> Iterator[str]:
        """Yield the lines below the table."""
        yield wrong_line(self.wrong)
        name_of = workload_of(self.offload).name_of
        named = {name_of(row): row for row in self.rows}
        ends_ps = {name: int(row[LONGEST]) for name, row in named.items() if LONGEST in row}
        yield from tell_late(self.config, ends_ps)
        for name, row in named.items():
            yield from tell_damage(name, int(row.get("corrupted", 0)))
        yield rate_line(sum(int(row["packet_hops"]) for row in self.rows), self.wall_s)

    def figures(self) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw the workload's figures."""
        return workload_of(self.offload).draw(self.rows, self.clock)

    def plain(self) -> dict[str, Any]:
        """Return the workload's name and options."""
        return {"offload": self.offload, "clock": self.clock, "config": dict(self.config)}


def read_results(folder: Path, summary: Mapping[str, Any]) -> NicResults:
    """Load the results of a run from its directory, given its summary."""
    own = {name: summary[name] for name in ("offload", "config", "rows")}
    return NicResults(**common(folder, summary), **own)
