"""The cost of hashed flows that clash: `python -m studies.clashes`.

Routes are dealt by default: paths of hosts' flows are spread as evenly as they can be. Networks
often hash flows instead (`ROUTES=ecmp`), so some links carry more than others. The study runs each
algorithm with both, at the same order of ranks: the one given, and some random ones, in which
flows have other ends and so other hashes. Prints the time with dealt routes, and how many times as
long the hashed ones take.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from bench.options import Algorithms, Topologies
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import PS_PER_US, format_count
from ringleaf.errors import choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.rows import CollectiveRow

ORDERS = 5  # random orders of ranks
LEFT_OUT = ("vote", "tern", "alltoall-2d", "alltoall-auto", "alltoall-bruck", "alltoall-hier")
"""Algorithms that take no plain tensors, or no other order of ranks."""
_HEADER = f"#{'algo':>20} {'dealt(us)':>10} {'hashed':>7} {'median':>7} {'most':>7}"


@dataclass(frozen=True, slots=True)
class Clash:
    """An algorithm's time with dealt routes, and by how many times hashed ones take longer.

    Args:
        algo: Its name.
        dealt_ps: The time with dealt routes, ranks in the order given.
        given: How many times as long hashed ones take in that order.
        shuffled: The same of each random order.
    """

    algo: str
    dealt_ps: int
    given: float
    shuffled: tuple[float, ...]

    @property
    def line(self) -> str:
        """A row of the table: in the order given, and of random orders the median and the most."""
        median, most = statistics.median(self.shuffled), max(self.shuffled)
        return (
            f"{self.algo:>21} {self.dealt_ps / PS_PER_US:>10.2f} {self.given:>7.2f}"
            f" {median:>7.2f} {most:>7.2f}"
        )


def names(collective: Collective) -> list[str]:
    """Return a collective's algorithms that take any tensor, in any order of ranks."""
    found = [name for name, each in ALGORITHMS.items() if each.collective is collective]
    return [name for name in found if name not in LEFT_OUT]


def measure(given: Mapping[str, str], orders: int) -> Iterator[Clash]:
    """Yield what clashes cost each algorithm of an experiment.

    Args:
        given: The experiment's options, but for routes, order of ranks and seed.
        orders: Number of random orders of ranks, from 1 on.

    Raises:
        ConfigError: If the options are wrong.
    """
    cases = [{"rank_order": "given", "seed": "1"}]
    cases += [{"rank_order": "random", "seed": str(seed + 1)} for seed in range(orders)]
    dealt = [_rows({**given, **case, "routes": "dealt"}) for case in cases]
    hashed = [_rows({**given, **case, "routes": "ecmp"}) for case in cases]
    for name, row in dealt[0].items():
        first, *others = [
            after[name].time_ps / before[name].time_ps
            for before, after in zip(dealt, hashed, strict=True)
        ]
        yield Clash(name, row.time_ps, first, tuple(others))


def _rows(given: Mapping[str, str]) -> dict[str, CollectiveRow]:
    rows = {found.row.algo: found.row for found in CollectiveExperiment(resolve(given)).run()}
    assert not any(row.wrong for row in rows.values()), "routes change no sum"
    return rows


def clashes_command(
    topo: Topologies = None,
    size: Annotated[str, typer.Option(help="Bytes per rank.")] = "1MiB",
    orders: Annotated[int, typer.Option(min=1, help="Random orders of ranks.")] = ORDERS,
    algo: Algorithms = None,
    debug: Debug = False,
) -> None:
    """Print a table for each topology."""
    known = {collective: names(collective) for collective in Collective}
    for each in algo or ():
        choose("clashes", "algorithm", each, [name for found in known.values() for name in found])
    for each in topo or ("fattree",):
        say(f"# {each}, {size}; hashed: times as long as dealt, ranks in the order given;")
        say(f"#   median and most: of {format_count(orders, 'random order')}")
        say(_HEADER)
        for found in known.values():
            wanted = [name for name in found if not algo or name in algo]
            if wanted:
                given = {"topo": each, "size": size, "algo": ",".join(wanted)}
                for clash in measure(given, orders):
                    say(clash.line)


if __name__ == "__main__":
    alone("python -m studies.clashes", clashes_command)
