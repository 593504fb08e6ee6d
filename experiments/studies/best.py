"""The best algorithm of each collective on each topology, beside the least time of any.

`python -m ringleaf.experiments.studies.best` prints a table: the fastest algorithm by hosts, its
time in virtual time, the floor (`ringleaf.experiments.bounds.floor`), and what share of the time
that is. It ends with 1 if a time is below its floor.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ringleaf.collectives.choice import candidates
from ringleaf.collectives.collective import Collective
from ringleaf.experiments.console import say
from ringleaf.experiments.results import CollectiveRow
from ringleaf.experiments.runner import Experiment
from ringleaf.experiments.spec.options import resolve
from ringleaf.topologies.registry import TOPOLOGIES
from ringleaf.units import PS_PER_US

NEAR_PERCENT = 90.0
SLOW = ("binomial", "recursivedoubling", "allpairs", "tree", "alltoall-bruck")
"""Algorithms that send more than others, so that they are never the best for large tensors."""


@dataclass(frozen=True, slots=True)
class Best:
    """The fastest algorithm of a collective on a topology."""

    topo: str
    collective: Collective
    row: CollectiveRow

    @property
    def line(self) -> str:
        """The row of the table."""
        row = self.row
        times = f"{row.time_ps / PS_PER_US:.0f} | {row.floor_ps / PS_PER_US:.0f}"
        name = self.collective.value.replace("_", "-")
        return f"| {self.topo} | {name} | {row.algo} | {times} | {row.floor_percent:.0f} % |"


def names(collective: Collective) -> list[str]:
    """Return the algorithms that are worth a try for large tensors."""
    return [each.name for each in candidates(collective) if each.name not in SLOW]


def measure(topo: str, collective: Collective, size: str) -> list[CollectiveRow]:
    """Return the rows of all candidates, the fastest first."""
    options = {"topo": topo, "size": size, "algo": ",".join(names(collective)), "data": "none"}
    rows = [found.row for found in Experiment(resolve(options)).run()]
    return sorted(rows, key=lambda row: row.time_ps)


def table(topologies: Sequence[str], size: str) -> Iterator[Best]:
    """Yield the best of each collective on each topology, as soon as it is known."""
    for topo in topologies:
        for collective in Collective:
            yield Best(topo, collective, measure(topo, collective, size)[0])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a time is below its floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topo", nargs="+", default=list(TOPOLOGIES))
    parser.add_argument("--size", default="16MiB", help="bytes per rank")
    given = parser.parse_args(argv)
    say("| topology | collective | best algorithm | time (us) | floor (us) | floor / time |")
    say("|---|---|---|---|---|---|")
    found = []
    for best in table(given.topo, given.size):
        say(best.line)
        found.append(best.row)
    far = [row for row in found if row.floor_percent < NEAR_PERCENT]
    say(f"\n{len(found) - len(far)} of {len(found)} at {NEAR_PERCENT:g} % of the floor or more")
    return int(any(row.floor_percent > 100 for row in found))


if __name__ == "__main__":
    sys.exit(main())
