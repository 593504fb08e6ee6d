"""Lines above and below the table of a training script's calls."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING

import networkx as nx

from ringleaf.core.units import format_count, format_time
from ringleaf.experiments.records.conditions import conduct, inside_nodes_of, unlike_hardware
from ringleaf.experiments.records.idle import idle
from ringleaf.experiments.workloads.train.clock import parse_compute
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.train.results import TrainResults
    from ringleaf.experiments.workloads.train.spec import TrainSpec

MOST_UNTIMED = 4
"""The most modules without a time that are named."""


def about(spec: TrainSpec, graph: nx.Graph[str]) -> Iterator[str]:
    """Yield lines on the script, and on the network below it."""
    yield (
        f"{spec.script[0]}, {format_count(spec.ranks, 'rank')} on {spec.topo}, "
        f"{describe(link_kinds(graph))}"
    )
    yield from notes(spec.topo)
    yield f"{conduct(spec)}; seed {spec.seed}"
    yield inside_nodes_of(spec)
    yield from unlike_hardware(vars(spec))
    yield from idle(spec)
    yield f"algorithms: {spec.rules}; {_computing(spec)}"


def _computing(spec: TrainSpec) -> str:
    compute = parse_compute(spec.compute)
    if compute.is_measured:
        return (
            f"computing: measured processor time x {compute.factor:g}, so times differ from run to "
            "run, and results do not"
        )
    if compute.flops:
        return f"computing: {compute.flops:g} FLOP/s"
    return f"computing: {spec.compute}" if compute.modules else "computing takes no time"


def iterations(run: TrainResults) -> Iterator[str]:
    """Yield lines on the iterations: the first by itself, the others by their median."""
    steps = run.steps()
    if not steps:
        return
    (first_ps, first_wait_ps), *rest = steps
    waits = _share(first_wait_ps, first_ps)
    yield f"iteration 1, with all before it: {format_time(first_ps)}, of which ranks wait {waits}"
    if rest:
        typical_ps = median(time_ps for time_ps, _ in rest)
        wait_ps = median(wait_ps for _, wait_ps in rest)
        label = "iteration 2" if len(rest) == 1 else f"iterations 2 to {len(steps)}, median"
        waits = _share(wait_ps, typical_ps)
        yield f"{label}: {format_time(typical_ps)}, of which ranks wait {waits}"


def untimed(run: TrainResults) -> Iterator[str]:
    """Yield a line on times of modules that were not there, if there are any."""
    if run.untimed:
        first = ", ".join(run.untimed[:MOST_UNTIMED])
        more = ", ..." if len(run.untimed) > MOST_UNTIMED else ""
        yield (
            f"without effect here: {format_count(len(run.untimed), 'entry')} for modules, as none "
            f"that was called has such a path or class: {first}{more}"
        )


def _share(part_ps: float, whole_ps: float) -> str:
    share = 100 * part_ps / whole_ps if whole_ps else 0.0
    return f"{format_time(part_ps)} for the network and one another ({share:.0f} %)"
