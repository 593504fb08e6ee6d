"""Commands of `ringleaf workload` for graphs of work: traces and models in parallel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleaf.core.units import format_count, format_size
from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.commands.run_commands import do
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.experiments.spec.kinds import whole_number
from ringleaf.experiments.spec.options import file_name, options_of
from ringleaf.experiments.workloads.graph.kind import WORKLOAD, resolve_workload
from ringleaf.experiments.workloads.graph.names import FILES, LLM, TRACE, kind_of_workload, named
from ringleaf.experiments.workloads.graph.spec import WorkloadSpec
from ringleaf.experiments.workloads.recovery.spec import RecoverySpec
from ringleaf.hosts.workload.flows import PATTERNS
from ringleaf.hosts.workload.formats.rank_names import trace_of
from ringleaf.hosts.workload.graph import NodeKind
from ringleaf.hosts.workload.llm import traffic
from ringleaf.hosts.workload.llm.presets import PRESETS

if TYPE_CHECKING:
    from ringleaf.hosts.workload.graph import Graph
    from ringleaf.hosts.workload.matched import Matched

OPTIONS = {name: option for name, option in options_of(WorkloadSpec).items() if option.flags}

RUN_OPTIONS = OPTIONS | {
    name: option for name, option in options_of(RecoverySpec).items() if option.flags
}
"""The options of `run`, which compares recoveries, too."""

NAMES = f"{', '.join(PRESETS)}; flows: {', '.join(PATTERNS)}; or files: {FILES}"

Name = Annotated[str, typer.Argument(metavar="WORKLOAD", help=f"Workload: {NAMES}.")]

MOST_ROWS = 60
"""The most rows of a description; with more, sizes are means."""

RANKS = 4  # of a model of layers that is exported

_FORMATS = ("chakra", "goal")


def is_graph(name: str) -> bool:
    """Return whether a name is that of a graph of work, rather than of a model's layers."""
    return name in (*PRESETS, *PATTERNS) or kind_of_workload(name) is not None


def given_for(name: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a workload by its name, with those that were typed.

    Raises:
        ConfigError: If there is no such workload.
    """
    options = named(name) if is_graph(name) else {}
    if not options:
        choose("workload", "workload", name, (*PRESETS, *PATTERNS), FILES)
    if options[WORKLOAD] != LLM:
        folder = trace_of(Path(options.get("files", name))).partition(".")[0]
        options["out"] = str(Path("runs") / file_name(folder))
    return {**options, **typed}


def with_ranks(typed: Mapping[str, str], ranks: int | None) -> Mapping[str, str]:
    """Return typed options with the number of ranks, if there is one."""
    return typed if ranks is None else {**typed, "ranks": str(ranks)}


def run_command(typed: Mapping[str, str], name: Name, debug: Debug = False) -> None:
    """Replay a workload on a network; write a table, a timeline, figures and a report."""
    for other in typed.keys() - OPTIONS.keys() if "recovery" not in typed else ():
        raise ConfigError(
            f"workload run: {other} is of trainings that lose hosts, got {typed[other]!r}; give "
            "--recovery, too"
        )
    options = given_for(name, typed)
    cases = [{**options, "cc": cc.strip()} for cc in typed.get("cc", "").split(",") if cc.strip()]
    do(cases or [options], name=file_name(name))


def export_command(
    typed: Mapping[str, str],
    name: Name,
    iterations: Annotated[
        int, typer.Option("--iterations", min=1, help="Iterations, for a model of layers.")
    ] = 2,
    form: Annotated[
        str, typer.Option("--format", help="Format: chakra (a file per rank) or goal (messages).")
    ] = "chakra",
    debug: Debug = False,
) -> None:
    """Write a workload, or a model's job, as a trace; for GOAL, collectives become messages."""
    from ringleaf.experiments.workloads.graph.loading import fit, load
    from ringleaf.hosts.workload.formats.files import GOAL, check_alone, write_trace
    from ringleaf.hosts.workload.meetings import match

    choose("workload export: format", "format", form, _FORMATS)
    if is_graph(name):
        spec = fit(resolve_workload({**given_for(name, typed), "out": typed.get("out", ".")}))
        matched = load(spec)
    else:
        others = dict(typed)
        ranks = whole_number("workload export: ranks", others.pop("ranks", str(RANKS)), 1)
        plain = {WORKLOAD: TRACE, "files": "job.goal", "hosts": str(max(ranks, 2)), "out": "."}
        spec = resolve_workload({**plain, **others})
        matched = match(_job(name, ranks, iterations))
    graph = lowered(spec, matched) if form == GOAL else matched.graph
    try:
        spec.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"out: must be a folder, got {str(spec.out)!r}: {error.strerror}"
        ) from error
    if form != GOAL:
        check_alone(spec.out, file_name(graph.name), len(graph.ranks))
    files = write_trace(graph, form, spec.out, file_name(graph.name))
    nodes = sum(len(work.nodes) for work in graph.ranks)
    say(
        f"# {graph.name}: {format_count(len(graph.ranks), 'rank')}, "
        f"{format_count(nodes, 'node')}, {format_count(len(files), 'file')}"
    )
    say(str(files[0]))


def _job(name: str, ranks: int, iterations: int) -> Graph:
    """Return the graph of a job that trains a model."""
    from ringleaf.hosts.training.model import load_model
    from ringleaf.hosts.training.pieces import cut
    from ringleaf.hosts.workload.jobs import graph_of_job

    model = load_model(name)
    return graph_of_job(model, cut(model), ranks=ranks, iterations=iterations)


def lowered(spec: WorkloadSpec, matched: Matched) -> Graph:
    """Return the graph with messages in place of collectives, by the algorithms of a spec."""
    from ringleaf.experiments.setup.network import make_graph
    from ringleaf.experiments.workloads.graph.schedules import ITEM_BYTES, Scheduling, elements_of
    from ringleaf.hosts.workload.lower import lower

    scheduling = Scheduling(make_graph(spec), spec.algos)
    return lower(matched, elements_of, scheduling.schedule, ITEM_BYTES)


def describe(name: str, ranks: int | None = None) -> Iterator[str]:
    """Yield lines on a workload: its ranks and groups, and a row per kind of node."""
    from ringleaf.experiments.workloads.graph.loading import load

    spec = resolve_workload(given_for(name, with_ranks({}, ranks)))
    matched = load(spec)
    graph = matched.graph
    yield (
        f"# {graph.name}: {format_count(len(graph.ranks), 'rank')}, "
        f"{format_count(len(graph.groups), 'group')}, "
        f"{format_count(sum(len(work.nodes) for work in graph.ranks), 'node')}, "
        f"{format_count(len(matched.meetings), 'meeting')}"
    )
    yield from (f"# {note}" for note in graph.notes)
    if spec.workload == LLM:
        yield from _formulas(spec)
    yield "#"
    yield f"#{'traffic':>9} {'what':>14} {'ranks':>5} {'size':>12} {'nodes':>9} {'total':>11}"
    yield f"#{'':>9} {'':>14} {'':>5} {'(B)':>12} {'':>9} {'':>11}"
    rows: Counter[tuple[str, str, int, float]] = Counter()
    for _, node in graph.nodes():
        if node.kind is NodeKind.COMPUTE:
            rows["-", "compute", 1, 0] += 1
            continue
        members = len(graph.groups[node.group].ranks) if node.call else 2
        what = node.call.value if node.call else node.kind.value
        rows[graph.label_of(node), what, members, node.size_bytes] += 1
    for (label, what, members, size), count in _few(rows).items():
        total = format_size(round(size * count)).replace(" ", "")
        shown = f"{size:.10g}" if size < 10**10 else f"{size:.0f}"  # never as a power of ten
        yield f"{label:>10} {what:>14} {members:>5} {shown:>12} {count:>9} {total:>11}"


Rows = Mapping[tuple[str, str, int, float], int]
"""Numbers of nodes by traffic, what they do, ranks and size."""


def _few(rows: Rows) -> Rows:
    """Return the rows, or those of mean sizes if there are many sizes."""
    if len(rows) <= MOST_ROWS:
        return rows
    counts: Counter[tuple[str, str, int]] = Counter()
    totals: Counter[tuple[str, str, int]] = Counter()
    for (*kind, size), count in rows.items():
        counts[tuple(kind)] += count  # type: ignore[index]
        totals[tuple(kind)] += round(size) * count  # type: ignore[index]
    return {(*kind, totals[kind] / count): count for kind, count in counts.items()}


def _formulas(spec: WorkloadSpec) -> Iterator[str]:
    """Yield a model's traffic by the formulas."""
    sizes, split = spec.model_sizes()
    sent = traffic.tensor_bytes(sizes, split)
    gradient = traffic.dense_gradient_bytes(sizes, split)
    yield (
        f"# {sizes.parameters / 1e9:.2f} billion parameters; TP {split.tp}, CP {split.cp}, "
        f"DP {split.dp} (EP {split.ep}), PP {split.pp}; "
        f"{format_count(split.micro_batches, 'micro-batch')}, {split.schedule}"
    )
    yield (
        f"# a rank sends {sent / 1e6:.1f} MB per layer and micro-batch for TP, "
        f"{traffic.boundary_bytes(sizes, split) / 1e6:.1f} MB per boundary for PP; a layer's "
        f"gradient is {gradient / 1e6:.1f} MB"
    )
