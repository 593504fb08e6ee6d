"""Lines above and below the table of a replay."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import PS_PER_MS, PS_PER_US, format_count, format_size, format_time
from ringleaf.experiments.estimates.flow_errors import unmeasured
from ringleaf.experiments.records.conditions import (
    about_capture,
    conduct,
    injection,
    inside_nodes_of,
    unlike_hardware,
)
from ringleaf.experiments.records.idle import idle
from ringleaf.experiments.records.table import wrong_line
from ringleaf.experiments.spec.kinds import NONE
from ringleaf.experiments.workloads.graph.messages import PERCENTILES
from ringleaf.experiments.workloads.graph.names import FLOWS, LLM
from ringleaf.experiments.workloads.graph.schedules import COLLECTIVES
from ringleaf.experiments.workloads.graph.unused import unused_of_model
from ringleaf.hosts.workload.graph import NodeKind
from ringleaf.hosts.workload.llm.pipeline import bubble
from ringleaf.topologies.injection import injections_bps
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes

if TYPE_CHECKING:
    from ringleaf.collectives.collective import Collective
    from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
    from ringleaf.experiments.workloads.graph.results import WorkResults
    from ringleaf.experiments.workloads.graph.slowdown import Bin
    from ringleaf.experiments.workloads.graph.spec import WorkloadSpec
    from ringleaf.hosts.workload.matched import Matched

NOTES = (
    "size: bytes that each rank brings in; time: on the wire, on average; wait: from the first "
    "rank's arrival to the start; exposed: of a rank's iteration, while it computes nothing",
)


def about(experiment: WorkExperiment) -> list[str]:
    """Return lines on the workload and the network it runs on."""
    spec, graph = experiment.spec, experiment.matched.graph
    return [
        f"{graph.name}, {format_count(len(graph.ranks), 'rank')} on "
        f"{experiment.graph.graph['name']}, "
        f"{describe(link_kinds(experiment.graph))}; {spec.placement}",
        f"{conduct(spec)}; seed {spec.seed}",
        *(_model(experiment) if spec.workload == LLM else ()),
        f"{_content(experiment.matched)}; {_data(experiment)}",
        *_drawn_sizes(experiment),
        *_messages_leave(experiment),
        f"{inside_nodes_of(spec)}; {injection(*injections_bps(experiment.graph))}",
        *unlike_hardware(vars(spec)),
        *idle(spec),
        *_unused(experiment),
        *notes(spec.topo),
        *about_capture(spec.cross_traffic),
        *graph.notes,
    ]


def _unused(experiment: WorkExperiment) -> Iterator[str]:
    """Yield lines on what was asked for and has no part: of collectives, models or messages."""
    spec, calls = experiment.spec, [each.call for each in experiment.matched.meetings]
    called = {COLLECTIVES[call] for call in calls if call is not None and call in COLLECTIVES}
    yield from unused_algorithms(spec, called)
    if spec.workload == LLM:
        yield from unused_of_model(spec)
    if spec.eager_limit is not None and None not in calls:
        yield "without effect here: eager_limit (there are no messages)"


def unused_algorithms(spec: WorkloadSpec, called: Collection[Collective]) -> Iterator[str]:
    """Yield a line on algorithms that were asked for, of collectives that nobody calls."""
    unused = [name for name in spec.algos if ALGORITHMS[name].collective not in called]
    if unused and "algos" in spec.model_fields_set:
        yield f"without effect here: algo={','.join(unused)} (no such collectives are called)"


def _content(matched: Matched) -> str:
    """Return how much work of each sort there is."""
    meetings = len(matched.meetings)
    if matched.graph.are_flows:
        return format_count(meetings, "flow")
    kinds = [node.kind for _, node in matched.graph.nodes()]
    computing = format_count(kinds.count(NodeKind.COMPUTE), "computation")
    return f"{computing}, {format_count(meetings, 'meeting')} of ranks"


def _drawn_sizes(experiment: WorkExperiment) -> Iterator[str]:
    """Yield a line on sizes that are drawn: files of some tools have packets in place of bytes."""
    spec = experiment.spec
    drawn = spec.traffic.drawn if spec.workload == FLOWS and not spec.files else None
    if drawn is not None:
        least, mean, most = (
            format_size(max(round(size), 1))
            for size in (drawn.points[0][0], drawn.mean_bytes, drawn.points[-1][0])
        )
        yield f"sizes are drawn: {least} to {most}, {mean} on average"


def _messages_leave(experiment: WorkExperiment) -> Iterator[str]:
    """Yield a line that says when messages leave, if there are any but flows."""
    are_flows = experiment.spec.workload == FLOWS
    if are_flows or all(each.call is not None for each in experiment.matched.meetings):
        return
    limit = experiment.spec.eager_limit
    if limit is None:
        yield "messages leave when senders have reached them (eager), and wait where they arrive"
    else:
        yield (
            f"messages of up to {format_size(limit)} leave when senders have reached them (eager), "
            "longer ones when both ranks have (rendezvous)"
        )


def _model(experiment: WorkExperiment) -> Iterator[str]:
    """Yield lines on a model's sizes and division; what is left out is said."""
    sizes, split = experiment.spec.model_sizes()
    experts = (
        f", {format_count(sizes.experts, 'expert')} of which {sizes.topk} work"
        if sizes.experts
        else ""
    )
    yield (
        f"{format_count(sizes.layers, 'layer')} of {sizes.hidden}{experts}: "
        f"{sizes.parameters / 1e9:.2f} billion "
        f"parameters, without embedding and head; sequences of {sizes.sequence}; a rank computes "
        f"{split.flops / 1e12:g} TFLOP/s"
    )
    chunks = f" with {format_count(split.chunks, 'chunk')}" if split.chunks > 1 else ""
    parts = f" in {format_count(split.expert_parts, 'part')}" if split.expert_parts > 1 else ""
    yield (
        f"TP {split.tp}, CP {split.cp}, DP {split.dp} (EP {split.ep}{parts}), PP {split.pp}; "
        f"{format_count(split.micro_batches, 'micro-batch')} of {split.micro_batch}, "
        f"{split.schedule}{chunks}, ZeRO {split.zero}; bubble by formula "
        f"{100 * bubble(split.schedule, split.pp, split.micro_batches, split.chunks):.2f} %"
    )
    whole = sizes.layers // split.stages
    if 0 < split.layers_per_stage < whole:
        yield (
            f"ONLY {split.layers_per_stage} of {format_count(whole, 'layer')} per stage are "
            "simulated: times are of such a model, not of the whole one"
        )


def _data(experiment: WorkExperiment) -> str:
    return (
        "messages have sizes only"
        if experiment.data == NONE
        else "random data, and all results are checked"
    )


def results(done: WorkResults) -> Iterator[str]:
    """Yield lines on what a replay has come to."""
    yield (
        f"iteration: {format_time(done.iteration_ps)}; of a rank's time: computing "
        f"{100 * done.share('compute_ps'):.1f} %, exposed communication "
        f"{100 * done.share('exposed_ps'):.1f} %, idle {100 * done.share('idle_ps'):.1f} %"
    )
    if done.within_percent is not None:
        yield (
            f"by flows: like runs took up to {done.within_percent:.1f} % more or less by packets "
            "(docs/flow.md)"
        )
    if done.outside:
        yield unmeasured("by flows", done.outside)
    yield f"bubble: idle time is {100 * done.bubble:.1f} % of the rest"
    if done.wrong is None:
        yield "nothing was checked, as messages had sizes only"
    else:
        yield wrong_line(done.wrong)
    yield from _messages(done)
    yield from _slowdown(done.slowdown)
    peak = done.peak_queue_bytes
    yield (
        f"fullest queue {'not known' if peak is None else format_size(peak)}; "
        f"{format_count(done.retransmissions, 'packet')} sent again"
    )
    if done.virtual_ps is not None:
        late, most = ((each or 0) / PS_PER_MS for each in (done.late_ps, done.most_late_ps))
        yield (
            f"in virtual time the iteration takes {format_time(done.virtual_ps)}; live, it "
            f"takes {done.iteration_ps / max(done.virtual_ps, 1):.2f} times that"
        )
        yield (
            f"hosts began {late:.2f} ms after the coordinator's decisions on average, "
            f"{most:.2f} ms at most"
        )


def _messages(done: WorkResults) -> Iterator[str]:
    """Yield a line on the times of messages, if there are any."""
    percentiles = done.messages.percentiles_ps()
    if percentiles:
        times = ", ".join(
            f"p{percent:g} {time_ps / PS_PER_US:.2f}"
            for percent, time_ps in zip(PERCENTILES, percentiles, strict=True)
        )
        index = done.messages.fairness()
        fairness = "" if index is None else f"; Jain's fairness of the largest {index:.3f}"
        yield f"{format_count(len(done.messages.table), 'message')}: {times} us{fairness}"


def _slowdown(bins: Sequence[Bin]) -> Iterator[str]:
    """Yield lines on flows' slowdowns by size, if they are known."""
    if not bins:
        return
    yield "slowdown by size: the time of a flow over that of the same flow alone"
    yield f"{'up to (B)':>13} {'flows':>7} {'median':>8} {'p95':>8} {'p99':>8}"
    for each in bins:
        values = " ".join(f"{value:8.2f}" for value in (each.p50, each.p95, each.p99))
        yield f"{each.most_bytes:>13} {each.count:>7} {values}"
