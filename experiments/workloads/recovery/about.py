"""Lines above and below the table of recoveries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ringleaf.collectives.collective import Collective
from ringleaf.core.units import PS_PER_S, format_count, format_time
from ringleaf.experiments.records.conditions import (
    conduct,
    injection,
    inside_nodes_of,
    unlike_hardware,
)
from ringleaf.experiments.records.idle import idle
from ringleaf.experiments.spec.kinds import NONE
from ringleaf.experiments.workloads.graph.about import unused_algorithms
from ringleaf.experiments.workloads.graph.unused import unused_of_model
from ringleaf.topologies.injection import injections_bps
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.recovery.experiment import RecoveryExperiment
    from ringleaf.experiments.workloads.recovery.spec import RecoverySpec

NOTES = (
    "goodput: iterations per second that count, and their share of what a training without losses "
    "and checkpoints does; lost: time of iterations that count for nothing; detect, recover: mean "
    "times from a loss until it is known, and until the next iteration; copied: states of layers",
)


def _failures(experiment: RecoveryExperiment) -> Iterator[str]:
    """Yield a line on drawn failures and their source, if there are any."""
    spec = experiment.spec
    if spec.rates is None:
        return
    mttf_s = spec.rates.mttf_s(len(experiment.hosts), spec.failures_times)
    often = f", {spec.failures_times:g} times as often" if spec.failures_times != 1 else ""
    source = f" ({spec.rates.source})" if spec.rates.source else ", an option"
    yield (
        f"failures drawn from rates: {spec.rates.title}{source}{often}; one in "
        f"{format_time(round(mttf_s * PS_PER_S))} among "
        f"{format_count(len(experiment.hosts), 'host')}"
    )


def _called(spec: RecoverySpec) -> set[Collective]:
    """Return the collectives that models in pipelines may call, without experts and ZeRO."""
    _, split = spec.model_sizes()
    in_parts = split.sequence_parallel or split.scatter_gather
    return {
        Collective.ALLREDUCE,
        *((Collective.REDUCE_SCATTER, Collective.ALL_GATHER) if in_parts else ()),
    }


def about(experiment: RecoveryExperiment) -> list[str]:
    """Return lines on the training and the network it runs on."""
    spec = experiment.spec
    sizes, split = spec.model_sizes()
    spares = f" and {format_count(spec.spares, 'spare')}" if spec.spares else ""
    return [
        f"{spec.preset or 'model'}, {format_count(spec.shape.workers, 'worker')}{spares} of "
        f"{format_count(split.tp * split.cp, 'host')} on {experiment.graph.graph['name']}, "
        f"{describe(link_kinds(experiment.graph))}; {spec.placement}",
        f"{conduct(spec)}; seed {spec.seed}",
        f"{format_count(sizes.layers, 'layer')} of {sizes.hidden}, "
        f"{sizes.parameters / 1e9:.2f} billion parameters; TP {split.tp}, CP {split.cp}, PP "
        f"{split.pp}, DP {split.dp}; {format_count(spec.shape.batch, 'micro-batch')} of "
        f"{split.micro_batch} in an iteration",
        f"{format_count(spec.iterations, 'iteration')}; losses are detected after "
        f"{format_time(spec.detect_ps)}; communicators anew {format_time(spec.regroup_ps)}, "
        f"restart {format_time(spec.restart_ps)}, checkpoint {format_time(spec.checkpoint_cost_ps)}"
        ": options, which are not measured",
        *_failures(experiment),
        "iterations begin on an idle network; alike ones are simulated once",
        f"{inside_nodes_of(spec)}; {injection(*injections_bps(experiment.graph))}",
        *unlike_hardware(vars(spec)),
        *idle(spec),
        *unused_algorithms(spec, _called(spec)),
        *unused_of_model(spec),
        *notes(spec.topo),
        *(["messages have sizes only"] if spec.data == NONE else []),
    ]
