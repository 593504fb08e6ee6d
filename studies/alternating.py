"""Circuits and a model's parallel plan in turn, as TopoOpt has them, and the best of all pairs.

    python -m studies.alternating

A plan says how many ranks share a layer (tp), a replica's layers (pp), and the samples (dp).
TopoOpt sets circuits up for a plan's traffic, looks for the plan that is fastest on these, and so
on in turn, until neither changes. It looks by a random walk; here plans are so few that all are
tried, each with all packets. `own` is a plan's time with circuits for itself: the best of these is
what the turns can reach at most. Last, all plans on a fat-tree whose ports cost as much.

Source:
    Wang et al., "TopoOpt: Co-optimizing Network Topology and Parallelization Strategy for
    Distributed Training Jobs", NSDI 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple

import typer

from ringleaf.core.units import PS_PER_MS
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import resolve_workload

RANKS, LAYERS, BATCH = 16, 4, 8
HEADS = 40
"""Attention heads of gpt13b, which the tp ranks of a layer share."""

CIRCUITS = {
    "topo": "circuits,racks=16,hosts=1,optical=4,core=0",
    "circuits": "topoopt",
    "algo": "strides",  # over all rings that a group has
}
FAT_TREE = {"topo": "fattree,k=4,rate=133.33G"}
"""128 ports of 100 Gbit/s are as dear as 96 of 133.3 (docs/circuits.md)."""


class ParallelPlan(NamedTuple):
    """The ranks that share a layer, the stages, and the replicas."""

    tp: int
    pp: int
    dp: int

    def __str__(self) -> str:
        return f"tp={self.tp} pp={self.pp} dp={self.dp}"


class Turn(NamedTuple):
    """A turn: the plan that circuits are for, and all plans' times on these, in ps."""

    circuits_of: ParallelPlan
    times_ps: dict[ParallelPlan, int]

    @property
    def best(self) -> ParallelPlan:
        """The fastest plan; of equals, that which circuits are for, else the first."""
        return min(self.times_ps, key=lambda each: (self.times_ps[each], each != self.circuits_of))


def plans(ranks: int = RANKS, layers: int = LAYERS, batch: int = BATCH) -> list[ParallelPlan]:
    """Return all plans in powers of two whose ranks have whole heads, a layer and a sample."""
    powers = [1 << power for power in range(ranks.bit_length())]
    return [
        ParallelPlan(tp, pp, ranks // tp // pp)
        for tp in powers
        for pp in powers
        if tp * pp <= ranks and HEADS % tp == 0 and pp <= layers and ranks // tp // pp <= batch
    ]


@cache
def time_ps(plan: ParallelPlan, circuits_of: ParallelPlan | None) -> int:
    """Return the time of an iteration by packets.

    Args:
        plan: How the model is parallel.
        circuits_of: The plan that circuits are for; None: on a fat-tree.
    """
    given = _options(plan, CIRCUITS if circuits_of else FAT_TREE)
    planned = _experiment(circuits_of).planned if circuits_of else None
    experiment = WorkExperiment(resolve_workload(given), planned=planned)
    return experiment.run(_untold, _unpassed).iteration_ps


@cache
def _experiment(plan: ParallelPlan) -> WorkExperiment:
    return WorkExperiment(resolve_workload(_options(plan, CIRCUITS)))


def _options(plan: ParallelPlan, network: dict[str, str]) -> dict[str, Any]:
    model = {"workload": "gpt13b", "layers_per_stage": LAYERS // plan.pp, "data": "none"}
    return model | plan._asdict() | {"micro_batches": BATCH // plan.dp} | network


def _untold(_share: float, _done: int, _wanted: int) -> None:
    """Tell nobody how far a replay is."""


def _unpassed(_hops: int) -> None:
    """Tell nobody of packets."""


def turns(start: ParallelPlan) -> Iterator[Turn]:
    """Yield the turns, until circuits would be for a plan that they have been for."""
    seen: set[ParallelPlan] = set()
    plan = start
    while plan not in seen:
        seen.add(plan)
        turn = Turn(plan, {each: time_ps(each, plan) for each in plans()})
        yield turn
        plan = turn.best


def alternating_command(
    tp: Annotated[int, typer.Option(help="Ranks that share a layer, of the first plan.")] = 1,
    pp: Annotated[int, typer.Option(help="Stages of the first plan.")] = 2,
    debug: Debug = False,
) -> None:
    """Print the turns from a plan on, each plan's own time, and those on a fat-tree."""
    start = ParallelPlan(tp, pp, RANKS // max(tp * pp, 1))
    if start not in plans():
        known = "; ".join(map(str, plans()))
        raise typer.BadParameter(f"no such plan, got {start}; take one of {known}")
    say(
        f"# gpt13b with {LAYERS} layers, {BATCH} samples, {RANKS} servers of 4 ports: ms by packets"
    )
    last = start
    for number, turn in enumerate(turns(start), 1):
        last = turn.best
        own_ms, best_ms = _ms(turn.times_ps[turn.circuits_of]), _ms(turn.times_ps[last])
        own = f"circuits for {turn.circuits_of}: {own_ms}"
        say(f"turn {number}: {own}; best there: {last} {best_ms}")
    say(f"#{'plan':>19}{'own':>9}{'fat-tree':>10}")
    alone = {each: time_ps(each, each) for each in plans()}
    fat = {each: time_ps(each, None) for each in plans()}
    for each in plans():
        say(f"{each!s:>20}{_ms(alone[each]):>9}{_ms(fat[each]):>10}")
    best, best_fat = min(alone, key=alone.__getitem__), min(fat, key=fat.__getitem__)
    say(
        f"# turns end with {last}, {_ms(alone[last])} ms; the best of all is {best}, "
        f"{_ms(alone[best])} ms; on the fat-tree {best_fat}, {_ms(fat[best_fat])} ms, "
        f"{fat[best_fat] / alone[last]:.2f} times as long"
    )


def _ms(time: int) -> str:
    return f"{time / PS_PER_MS:.2f}"


if __name__ == "__main__":
    alone("python -m studies.alternating", alternating_command)
