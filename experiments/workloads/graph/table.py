"""The table on stdout: lines with `#` are comments, rows suit awk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringleaf.experiments.records import drops, link_use
from ringleaf.experiments.records import pauses as held
from ringleaf.experiments.records.columns import Columns
from ringleaf.experiments.runs.conditions import (
    conduct,
    injection,
    inside_nodes_of,
    unlike_hardware,
)
from ringleaf.experiments.spec.collective import NONE
from ringleaf.experiments.spec.named import FLOWS, LLM
from ringleaf.experiments.workloads.graph.accounts import WorkRow
from ringleaf.experiments.workloads.graph.messages import PERCENTILES
from ringleaf.experiments.workloads.graph.results import WorkResults
from ringleaf.experiments.workloads.graph.runner import WorkExperiment
from ringleaf.experiments.workloads.graph.slowdown import Bin
from ringleaf.hosts.workload.graph import Kind
from ringleaf.hosts.workload.llm.pipeline import bubble
from ringleaf.topologies.injection import injections_bps
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes
from ringleaf.units import PS_PER_MS, PS_PER_US, format_size, format_time

_COLUMNS = (
    ("traffic", "", 8),
    ("call", "", 13),
    ("algo", "", 13),
    ("ranks", "", 5),
    ("size", "(B)", 11),
    ("count", "", 6),
    ("total", "(B)", 13),
    ("time", "(us)", 10),
    ("longest", "(us)", 10),
    ("wait", "(us)", 10),
    ("exposed", "(ms)", 9),
)
_SPARE = ("total", "count", "ranks", "exposed", "longest", "wait", "algo")


def about(experiment: WorkExperiment) -> list[str]:
    """Return lines on the workload and the network it runs on."""
    spec, graph = experiment.spec, experiment.matched.graph
    kinds = [node.kind for _, node in graph.nodes()]
    computing = kinds.count(Kind.COMPUTE)
    return [
        f"{graph.name}, {len(graph.ranks)} ranks on {experiment.graph.graph['name']}, "
        f"{describe(link_kinds(experiment.graph))}; {spec.placement}; {conduct(spec)}; "
        f"seed {spec.seed}",
        *(_model(experiment) if spec.workload == LLM else ()),
        f"{computing} computations, {len(experiment.matched.meetings)} meetings of ranks; "
        f"{_data(experiment)}",
        *_messages_leave(experiment),
        f"{inside_nodes_of(spec)}; {injection(*injections_bps(experiment.graph))}",
        *unlike_hardware(vars(spec)),
        *notes(spec.topo),
        *graph.notes,
    ]


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
    experts = f", {sizes.experts} experts of which {sizes.topk} work" if sizes.experts else ""
    yield (
        f"{sizes.layers} layers of {sizes.hidden}{experts}: {sizes.parameters / 1e9:.2f} billion "
        f"parameters, without embedding and head; sequences of {sizes.sequence}; a rank computes "
        f"{split.flops / 1e12:g} TFLOP/s"
    )
    chunks = f" with {split.chunks} chunks" if split.chunks > 1 else ""
    parts = f" in {split.expert_parts} parts" if split.expert_parts > 1 else ""
    yield (
        f"TP {split.tp}, CP {split.cp}, DP {split.dp} (EP {split.ep}{parts}), PP {split.pp}; "
        f"{split.micro_batches} micro-batches of {split.micro_batch}, {split.schedule}{chunks}, "
        f"ZeRO {split.zero}; bubble by formula "
        f"{100 * bubble(split.schedule, split.pp, split.micro_batches, split.chunks):.2f} %"
    )
    whole = sizes.layers // split.stages
    if 0 < split.layers_per_stage < whole:
        yield (
            f"ONLY {split.layers_per_stage} of {whole} layers per stage are simulated: times are "
            "of such a model, not of the whole one"
        )


def _data(experiment: WorkExperiment) -> str:
    return (
        "messages have sizes only"
        if experiment.data == NONE
        else "random data, and all results are checked"
    )


def head(experiment: WorkExperiment, columns: Columns) -> Iterator[str]:
    """Yield the lines before the first row."""
    first, *others = about(experiment)
    yield f"# Ringleaf: {first}"
    yield from (f"# {line}" for line in others)
    yield f"# needs {experiment.need} for {experiment.packet_hops / 1e6:.1f} M packet-hops"
    yield "# size: bytes that each rank brings in; time: on the wire, on average; wait: from the"
    yield "# first rank's arrival to the start; exposed: of a rank's iteration, while it computes"
    yield "# nothing"
    yield "#"
    yield from columns.titles()


def columns_of(most: int | None = None) -> Columns:
    """Return the columns that fit so many letters."""
    return Columns.fitting(_COLUMNS, _SPARE, most)


def line(row: WorkRow, columns: Columns) -> str:
    """Return a row as a line."""
    times = (row.time_ps, row.longest_ps, row.wait_ps)
    return columns.line(
        (
            row.label,
            row.call,
            row.algo,
            str(row.ranks),
            str(row.size_bytes),
            str(row.count),
            str(row.total_bytes),
            *(f"{time_ps / PS_PER_US:.2f}" for time_ps in times),
            f"{row.exposed_ps / PS_PER_MS:.3f}",
        )
    )


def foot(results: WorkResults, wall_s: float) -> Iterator[str]:
    """Yield the lines after the last row."""
    yield (
        f"# iteration: {format_time(results.iteration_ps)}; of a rank's time: computing "
        f"{100 * results.share('compute_ps'):.1f} %, exposed communication "
        f"{100 * results.share('exposed_ps'):.1f} %, idle {100 * results.share('idle_ps'):.1f} %"
    )
    yield f"# bubble: idle time is {100 * results.bubble:.1f} % of the rest"
    if results.wrong is None:
        yield "# nothing was checked, as messages had sizes only"
    else:
        yield f"# wrong values: {results.wrong} {'OK' if not results.wrong else 'FAILED'}"
    if results.reason:
        yield f"# {results.reason}"
    yield from _messages(results)
    yield from _slowdown(results.slowdown)
    yield (
        f"# fullest queue {format_size(results.peak_queue_bytes)}; {results.retransmissions} "
        f"packets sent again"
    )
    if results.virtual_ps is not None:
        late, most = ((each or 0) / PS_PER_MS for each in (results.late_ps, results.most_late_ps))
        yield (
            f"# in virtual time the iteration takes {format_time(results.virtual_ps)}; live, it "
            f"takes {results.iteration_ps / max(results.virtual_ps, 1):.2f} times that"
        )
        yield (
            f"# hosts began {late:.2f} ms after the coordinator's decisions on average, "
            f"{most:.2f} ms at most"
        )
    if told := link_use.tell(results.uses):
        yield f"# {told}"
    if results.drops:
        yield f"# {drops.tell('replay', 0, results.drops, results.drop_counts)}"
    yield from (f"# {line}" for line in held.tell("replay", results))
    rate = results.packet_hops / max(wall_s, 1e-9) / 1e6
    yield f"# {results.packet_hops / 1e6:.1f} M packet-hops in {wall_s:.1f} s: {rate:.2f} M/s"


def _messages(results: WorkResults) -> Iterator[str]:
    """Yield a line on the times of messages, if there are any."""
    found = results.messages.percentiles_ps()
    if found:
        times = ", ".join(
            f"p{percent:g} {time_ps / PS_PER_US:.2f}"
            for percent, time_ps in zip(PERCENTILES, found, strict=True)
        )
        yield (
            f"# {len(results.messages.table)} messages: {times} us; Jain's fairness of the largest "
            f"{results.messages.fairness():.3f}"
        )


def _slowdown(bins: Sequence[Bin]) -> Iterator[str]:
    """Yield lines on flows' slowdowns by size, if they are known."""
    if not bins:
        return
    yield "# slowdown by size: the time of a flow over that of the same flow alone"
    yield f"# {'up to (B)':>13} {'flows':>7} {'median':>8} {'p95':>8} {'p99':>8}"
    for each in bins:
        values = " ".join(f"{value:8.2f}" for value in (each.p50, each.p95, each.p99))
        yield f"# {each.most_bytes:>13} {each.count:>7} {values}"
