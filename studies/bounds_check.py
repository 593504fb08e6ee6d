"""Check how near algorithms come to their bounds, and list reasons why some do not.

`python -m studies.bounds_check` runs algorithms on topologies, prints time,
bound and floor of each, and ends with 1 if a time is below a bound, or further from it than
`NEAR_PERCENT` without a reason in `known_gaps.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import typer
import yaml

from bench.options import Algorithms, Sizes, Topologies
from ringleaf.core.units import PS_PER_US, format_size
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import FAILURE, Debug, say
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.rows import CollectiveRow

NEAR_PERCENT = 90.0
GAPS = Path(__file__).with_name("known_gaps.yaml")

_TOPOLOGIES = ("fattree,k=4", "leafspine", "torus2d", "bcube", "hammingmesh")
_ALGORITHMS = "ring,tree,doubletree,halvingdoubling,blueconnect,switchml,ps,atp,omnireduce"


@dataclass(frozen=True, slots=True)
class Gap:
    """A known gap between an algorithm and its bound on some topology.

    Args:
        algo: The algorithm's name.
        topo: Pattern of the topology, matched like file names.
        least_percent: Share of the bound that it still reaches, at sizes from `least_bytes` on.
        least_bytes: See `least_percent`.
        reason: The cause of the gap.
    """

    algo: str
    topo: str
    least_percent: float
    least_bytes: int
    reason: str

    def explains(self, topo: str, row: CollectiveRow) -> bool:
        """Return whether this gap is about a row, and the row is as near as the gap allows."""
        return (
            self.algo == row.algo
            and fnmatchcase(topo, self.topo)
            and row.size_bytes >= self.least_bytes
            and row.bound_percent >= self.least_percent
        )


def read_gaps(text: str) -> list[Gap]:
    """Return the gaps of a YAML file's text.

    Raises:
        ConfigError: If an entry lacks a key or has one too many.
    """
    gaps = []
    for number, entry in enumerate(yaml.safe_load(text), start=1):
        try:
            gaps.append(Gap(**entry))
        except TypeError as error:
            raise ConfigError(
                f"known gaps: entry {number} must have algo, topo, least_percent, least_bytes and "
                f"reason, got {entry!r}"
            ) from error
    return gaps


def judge(topo: str, row: CollectiveRow, gaps: Sequence[Gap]) -> str:
    """Return the verdict on a row: "" if it is near its bound, a known reason, or an error."""
    if max(row.bound_percent, row.floor_percent) > 100:
        return "WRONG: faster than a bound"
    if row.bound_percent >= NEAR_PERCENT:
        return ""
    reasons = [gap.reason for gap in gaps if gap.explains(topo, row)]
    return reasons[0] if reasons else "WRONG: far from its bound, and nobody knows why"


def measure(topo: str, algos: str, sizes: str) -> Iterator[CollectiveRow]:
    """Run algorithms on a topology."""
    spec = resolve({"topo": topo, "algo": algos, "size": sizes})
    return (measured.row for measured in CollectiveExperiment(spec).run())


def check(topologies: Sequence[str], algos: str, sizes: str) -> int:
    """Print a line per case; return how many are wrong."""
    gaps, wrong = read_gaps(GAPS.read_text()), 0
    say(f"#{'topology':>31} {'algo':>15} {'size':>8} {'time (us)':>10} %bound %floor")
    for topo in topologies:
        for row in measure(topo, algos, sizes):
            verdict = judge(topo, row, gaps)
            wrong += verdict.startswith("WRONG")
            say(
                f"{topo:>32} {row.algo:>15} {format_size(row.size_bytes):>8} "
                f"{row.time_ps / PS_PER_US:>10.2f} {row.bound_percent:>6.1f} "
                f"{row.floor_percent:>6.1f}  {verdict}".rstrip()
            )
    say(f"# wrong: {wrong} {'OK' if not wrong else 'FAILED'}")
    return wrong


def bounds_command(
    topo: Topologies = None,
    algo: Algorithms = None,
    size: Sizes = None,
    debug: Debug = False,
) -> None:
    """Run algorithms on topologies; end with 1 if a time is below its bound, or far from it."""
    if check(topo or _TOPOLOGIES, ",".join(algo or [_ALGORITHMS]), ",".join(size or ["16M"])):
        raise typer.Exit(FAILURE)


if __name__ == "__main__":
    alone("python -m studies.bounds_check", bounds_command)
