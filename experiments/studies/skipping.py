"""Compare runs that skip steps with whole ones: `python -m ringleaf.experiments.studies.skipping`.

For each case: the time of the whole run, that of the run with skipped steps, the error beside the
one that was foretold, and by how much the bytes of the busiest link and the fullest queue differ.
The program fails if an error is larger than foretold, unless 3 % or more are, or if sums are wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ringleaf.errors import RingleafError
from ringleaf.experiments.runner import Experiment, Measurement
from ringleaf.experiments.spec.options import resolve
from ringleaf.units import PS_PER_US

TOPOLOGIES = (
    *("fattree", "fattree,k=8", "leafspine,leaves=8,spines=2,hosts=8", "bcube,n=4,k=2"),
    *("torus2d,x=8,y=8", "torus3d,x=4,y=4,z=4", "hammingmesh,a=2,b=2,x=4,y=4"),
)
ALGORITHMS = ("ring", "reducescatter", "allgather")
SIZES = ("1M", "16M")

LARGE = 0.03
"""An error that is foretold above this says only that steps do not repeat well enough."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A whole run, and one with skipped steps.

    Attributes:
        whole: The whole run.
        short: The run with skipped steps; it may have been whole, too.
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
        whole, short = (each.outcome.peak_queue_bytes for each in (self.whole, self.short))
        return short / max(whole, 1) - 1


def compare(**given: str) -> Comparison:
    """Run a case twice, whole and with steps skipped whatever the error.

    Args:
        given: Options, as typed.

    Raises:
        RingleafError: If an option or the topology does not allow it.
    """
    (whole, whole_s), (short, short_s) = (_timed({**given, "skip": skip}) for skip in ("0", "100%"))
    return Comparison(whole, short, whole_s, short_s)


def _timed(given: dict[str, str]) -> tuple[Measurement, float]:
    began_s = time.perf_counter()
    (measurement,) = Experiment(resolve(given)).run()
    return measurement, time.perf_counter() - began_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table; return 1 if an error is larger than foretold."""
    parser = argparse.ArgumentParser(
        prog="ringleaf.experiments.studies.skipping", description=__doc__
    )
    parser.add_argument("--topo", nargs="*", default=TOPOLOGIES)
    parser.add_argument("--algo", nargs="*", default=ALGORITHMS)
    parser.add_argument("--size", nargs="*", default=SIZES)
    options = parser.parse_args(arguments)
    sys.stdout.write(
        f"#{'topology':>40} {'algo':>13} {'size':>5} {'time(us)':>10} {'%skipped':>8} "
        f"{'%error':>7} {'%told':>6} {'%link':>6} {'%queue':>6} {'wall(s)':>7} {'then(s)':>7}\n"
    )
    wrong = 0
    try:
        for topo in options.topo:
            for algo in options.algo:
                for size in options.size:
                    found = compare(topo=topo, algo=algo, size=size)
                    wrong += not found.is_right
                    _print(topo, size, found)
    except RingleafError as error:
        parser.error(str(error))
    sys.stdout.write(f"# larger errors than foretold, or wrong sums: {wrong}\n")
    return 1 if wrong else 0


def _print(topo: str, size: str, found: Comparison) -> None:
    row = found.short.row
    sys.stdout.write(
        f" {topo:>40} {row.algo:>13} {size:>5} {found.whole.row.time_ps / PS_PER_US:10.2f} "
        f"{row.skipped_percent:8.1f} {100 * found.error:7.3f} {row.error_percent:6.3f} "
        f"{100 * found.link_error:6.2f} {100 * found.queue_error:6.1f} {found.whole_s:7.2f} "
        f"{found.short_s:7.2f}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
