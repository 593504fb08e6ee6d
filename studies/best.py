"""The best algorithm of each collective on each topology, beside the least time of any.

`python -m studies.best` prints a table: the fastest algorithm by hosts, its
time in virtual time, the floor (`ringleaf.experiments.bounds.floor`), and what share of the time
that is. Blink's schedules, which are made for the topology, are among them. With `--why`, the best
ones run again, explained, and the table says what they lose: to headers, to pieces on their way
(delays of links, and each hop has a piece before it sends it on), and to waits in the network.
It ends with 1 if a time is below its floor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from bench.options import Topologies
from ringleaf.collectives.choice import candidates
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.synthesis.algorithm import synthesised
from ringleaf.collectives.synthesis.names import names as synthesised_names
from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.explain.findings import Explained
from ringleaf.experiments.runs.console import FAILURE, Debug, say
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.rows import CollectiveRow
from ringleaf.topologies.registry import TOPOLOGIES

NEAR_PERCENT = 100 / 1.1  # a time at most a tenth above the floor
SLOW = ("binomial", "recursivedoubling", "allpairs", "tree", "alltoall-bruck")
"""Algorithms that send more than others, so that they are never the best for large tensors."""


@dataclass(frozen=True, slots=True)
class Best:
    """The fastest algorithm of a collective on a topology."""

    topo: str
    collective: Collective
    row: CollectiveRow
    why: Explained | None = None

    @property
    def line(self) -> str:
        """The row of the table."""
        row = self.row
        times = f"{row.time_ps / PS_PER_US:.0f} | {row.floor_ps / PS_PER_US:.0f}"
        name = self.collective.value.replace("_", "-")
        share = f"{row.floor_percent:.0f} %"
        lost = [str(round(lost_ps / PS_PER_US)) for lost_ps in self.lost_ps]
        return "| " + " | ".join([self.topo, name, row.algo, times, share, *lost]) + " |"

    @property
    def lost_ps(self) -> tuple[int, ...]:
        """The time beyond the floor: headers, pieces on their way, waits; () if not explained."""
        if self.why is None:
            return ()
        headers_ps, waits_ps = self.why.headers_ps, sum(self.why.lost_ps.values())
        return headers_ps, self.row.time_ps - self.row.floor_ps - headers_ps - waits_ps, waits_ps

    def explained(self) -> Best:
        """Return this with an explanation, for which the algorithm runs once more."""
        options = {"topo": self.topo, "size": str(self.row.size_bytes), "algo": self.row.algo}
        (found,) = CollectiveExperiment(resolve(options | {"data": "none", "explain": "yes"})).run()
        assert found.row.time_ps == self.row.time_ps, "explaining changes nothing"
        return replace(self, why=found.explained)


def names(collective: Collective) -> list[str]:
    """Return the algorithms that are worth a try for large tensors, and Blink's trees."""
    known = [each.name for each in candidates(collective) if each.name not in SLOW]
    blink = [name for name in synthesised_names() if name.partition("-")[0] == "blink"]
    return known + [name for name in blink if synthesised(name).collective is collective]


def measure(topo: str, collective: Collective, size: str) -> list[CollectiveRow]:
    """Return the rows of all candidates, the fastest first."""
    options = {"topo": topo, "size": size, "algo": ",".join(names(collective)), "data": "none"}
    rows = [found.row for found in CollectiveExperiment(resolve(options)).run()]
    return sorted(rows, key=lambda row: row.time_ps)


def table(topologies: Sequence[str], size: str) -> Iterator[Best]:
    """Yield the best of each collective on each topology, as soon as it is known."""
    for topo in topologies:
        for collective in Collective:
            yield Best(topo, collective, measure(topo, collective, size)[0])


def best_command(
    topo: Topologies = None,
    size: Annotated[str, typer.Option(help="Bytes per rank.")] = "16MiB",
    why: Annotated[bool, typer.Option("--why", help="Say what the best ones lose.")] = False,
    debug: Debug = False,
) -> None:
    """Print the table; end with 1 if a time is below its floor."""
    titles = ["topology", "collective", "best algorithm", "time (us)", "floor (us)", "floor / time"]
    titles += ["headers (us)", "pieces (us)", "waits (us)"] if why else []
    say("| " + " | ".join(titles) + " |")
    say("|---" * len(titles) + "|")
    found = []
    for best in table(topo or list(TOPOLOGIES), size):
        say((best.explained() if why else best).line)
        found.append(best.row)
    far = [row for row in found if row.floor_percent < NEAR_PERCENT]
    say(f"\n{len(found) - len(far)} of {len(found)} within 10 % of the floor")
    if any(row.floor_percent > 100 for row in found):
        raise typer.Exit(FAILURE)


if __name__ == "__main__":
    alone("python -m studies.best", best_command)
