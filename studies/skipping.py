"""Compare runs that skip what repeats with whole ones.

`python -m studies.skipping`: of rings and their halves steps are skipped, of
what switches add elements. For each case: the time of the whole run, that of the other one, the
error beside the one that was foretold, and by how much the bytes of the busiest link and the
fullest queue differ. The program fails if an error is larger than foretold, unless 3 % or more are,
or if sums are wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import typer

from bench.options import Algorithms, Sizes, Topologies
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import FAILURE, Debug, say
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.measuring import Measurement

TOPOLOGIES = (
    *("fattree", "fattree,k=8", "leafspine,leaves=8,spines=2,hosts=8", "bcube,n=4,k=2"),
    *("torus2d,x=8,y=8", "torus3d,x=4,y=4,z=4", "hammingmesh,a=2,b=2,x=4,y=4"),
)
ROUND = ("ring", "reducescatter", "allgather")
SIZES = ("1M", "16M")
TOLERANCE = "100%"
"""Steps are skipped whatever the error."""

SUMMED_TOPOLOGIES = ("fattree", "fattree,k=8", "leafspine,leaves=8,spines=2,hosts=8", "torus2d")
SUMMED_SIZES = ("16M", "64M")
SUMMED_TOLERANCE = "0.1%"
DENSE = ("tern", "vote")
"""Systems whose tensors are of a few values only."""

LARGE = 0.03
"""An error that is foretold above this says only that steps do not repeat well enough."""


@dataclass(frozen=True, slots=True)
class SkippedRun:
    """A whole run, and one that skips.

    Attributes:
        whole: The whole run.
        short: The run that skips; it may have been whole, too.
        whole_s: Seconds of the whole run, with its data.
        short_s: Seconds of the other one.
    """

    whole: Measurement
    short: Measurement
    whole_s: float
    short_s: float

    @property
    def error(self) -> float:
        """The difference of times, as a share."""
        return self.short.row.time_ps / self.whole.row.time_ps - 1

    @property
    def is_right(self) -> bool:
        """Whether sums are right, and the error is at most as foretold, if that is small at all."""
        row = self.short.row
        if self.whole.row.wrong or row.wrong:
            return False
        return 100 * abs(self.error) <= row.error_percent or row.error_percent > 100 * LARGE

    @property
    def link_error(self) -> float:
        """The difference of the busiest link's bytes, as a share."""
        whole, short = (max(each.outcome.link_bytes.values()) for each in (self.whole, self.short))
        return short / whole - 1

    @property
    def queue_error(self) -> float:
        """The difference of the fullest queue's bytes, as a share."""
        whole, short = (each.outcome.peak_queue_bytes or 0 for each in (self.whole, self.short))
        return short / whole - 1 if whole else float(short)


def compare(skip: str = "100%", **given: str) -> SkippedRun:
    """Run a case twice, whole and with what repeats skipped.

    Args:
        skip: The tolerance: by default, whatever the error.
        given: Other options, as typed.

    Raises:
        RingleafError: If an option or the topology does not allow it.
    """
    (whole, whole_s), (short, short_s) = (_timed({**given, "skip": each}) for each in ("0", skip))
    return SkippedRun(whole, short, whole_s, short_s)


def _timed(given: dict[str, str]) -> tuple[Measurement, float]:
    began_s = time.perf_counter()
    (measurement,) = CollectiveExperiment(resolve(given)).run()
    return measurement, time.perf_counter() - began_s


def skipping_command(
    topo: Topologies = None, algo: Algorithms = None, size: Sizes = None, debug: Debug = False
) -> None:
    """Print a table; end with 1 if an error is larger than foretold."""
    summed = [name for name, each in ALGORITHMS.items() if each.in_network and name not in DENSE]
    say(
        f"#{'topology':>40} {'algo':>13} {'size':>5} {'time(us)':>10} {'%skipped':>8} "
        f"{'%error':>7} {'%told':>6} {'%link':>6} {'%queue':>6} {'wall(s)':>7} {'then(s)':>7}"
    )
    wrong = 0
    for on, name, length in _cases(topo, algo or [*ROUND, *summed], size):
        in_network = name in ALGORITHMS and ALGORITHMS[name].in_network
        skip = SUMMED_TOLERANCE if in_network else TOLERANCE
        found = compare(skip, topo=on, algo=name, size=length)
        wrong += not found.is_right
        _print(on, length, found)
    say(f"# larger errors than foretold, or wrong sums: {wrong}")
    if wrong:
        raise typer.Exit(FAILURE)


def _cases(
    topologies: Sequence[str] | None, algorithms: Sequence[str], sizes: Sequence[str] | None
) -> Iterator[tuple[str, str, str]]:
    """Yield topologies, algorithms and sizes: those that were asked for, or the usual ones."""
    for algo in algorithms:
        in_network = algo in ALGORITHMS and ALGORITHMS[algo].in_network
        usual = (SUMMED_TOPOLOGIES, SUMMED_SIZES) if in_network else (TOPOLOGIES, SIZES)
        yield from product(topologies or usual[0], [algo], sizes or usual[1])


def _print(topo: str, size: str, found: SkippedRun) -> None:
    row = found.short.row
    say(
        f" {topo:>40} {row.algo:>13} {size:>5} {found.whole.row.time_ps / PS_PER_US:10.2f} "
        f"{row.skipped_percent:8.1f} {100 * found.error:7.3f} {row.error_percent:6.3f} "
        f"{100 * found.link_error:6.2f} {100 * found.queue_error:6.1f} {found.whole_s:7.2f} "
        f"{found.short_s:7.2f}"
    )


if __name__ == "__main__":
    alone("python -m studies.skipping", skipping_command)
