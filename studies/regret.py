"""What the choice of an algorithm by the cost model costs, against the best one in hindsight.

`python -m studies.regret` runs, on each topology and for each collective and
size, all algorithms by hosts, and prints the one that `auto` takes, the time that was expected and
the one it took, the best one, and the regret: how much longer the choice took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated

from bench.options import Sizes, Topologies, several
from ringleaf.collectives.choice import candidates
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import PS_PER_US, format_size
from ringleaf.errors import choose
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.rows import CollectiveRow
from ringleaf.topologies.registry import TOPOLOGIES

SIZES = ("4KiB", "64KiB", "1MiB", "16MiB")
NAMES = {each.value.replace("_", "-"): each for each in Collective}


@dataclass(frozen=True, slots=True)
class Regret:
    """A choice, and the best one: of the choice also the time that was expected."""

    topo: str
    collective: str
    expected_ps: int
    chosen: CollectiveRow
    best: CollectiveRow

    @property
    def share(self) -> float:
        """How much longer the choice took: 0 if it was the best one."""
        return self.chosen.time_ps / self.best.time_ps - 1

    @property
    def line(self) -> str:
        """The row of the table."""
        expected, took = (ps / PS_PER_US for ps in (self.expected_ps, self.chosen.time_ps))
        what = f"| {self.topo} | {self.collective} | {format_size(self.chosen.size_bytes)}"
        times = f"{self.chosen.algo} | {expected:.1f} | {took:.1f} | {self.best.algo}"
        return f"{what} | {times} | {100 * self.share:.0f} % |"


def chooser(collective: Collective) -> str:
    """Return the name of the member that chooses among the algorithms of a collective."""
    return next(
        name for name, each in ALGORITHMS.items() if each.chooses and each.collective is collective
    )


def measure(topo: str, collective: Collective, sizes: Sequence[str]) -> Iterator[Regret]:
    """Yield the regret at each size."""
    names = [each.name for each in candidates(collective)]
    options = {"topo": topo, "size": ",".join(sizes), "algo": ",".join(names), "data": "none"}
    experiment = CollectiveExperiment(resolve(options))
    rows = [found.row for found in experiment.run()]
    for size_bytes in experiment.spec.sizes_bytes:
        of_size = {row.algo: row for row in rows if row.size_bytes == size_bytes}
        schedule = experiment.schedule(ALGORITHMS[chooser(collective)], size_bytes)
        yield Regret(
            topo,
            collective.value.replace("_", "-"),
            experiment.expected_ps(schedule, size_bytes),
            of_size[schedule.algorithm],
            min(of_size.values(), key=lambda row: row.time_ps),
        )


def summary(found: Sequence[Regret]) -> Iterator[str]:
    """Yield the mean and the largest regret, and the error of what was expected."""
    shares = [100 * each.share for each in found]
    best = sum(each.chosen.algo == each.best.algo for each in found)
    errors = sorted(abs(each.expected_ps / each.chosen.time_ps - 1) for each in found)
    yield f"best one chosen: {best} of {len(found)}"
    yield f"regret: mean {sum(shares) / len(shares):.1f} %, most {max(shares):.0f} %"
    yield f"error of expected time: median {100 * errors[len(errors) // 2]:.1f} %"


def regret_command(
    topo: Topologies = None,
    collective: Annotated[list[str] | None, several(", ".join(NAMES))] = None,
    size: Sizes = None,
    debug: Debug = False,
) -> None:
    """Print the table and its summary."""
    kinds = [NAMES[choose("regret", "collective", name, NAMES)] for name in collective or NAMES]
    say("| topology | collective | size | chosen | expected (us) | took (us) | best | regret |")
    say("|---|---|---|---|---|---|---|---|")
    found = []
    for on, kind in product(topo or TOPOLOGIES, kinds):
        for regret in measure(on, kind, size or SIZES):
            say(regret.line)
            found.append(regret)
    say("")
    for line in summary(found):
        say(line)


if __name__ == "__main__":
    alone("python -m studies.regret", regret_command)
