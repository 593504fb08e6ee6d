"""Lines above and below the table of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import networkx as nx

from ringleaf.core.units import PS_PER_MS, format_count
from ringleaf.experiments.estimates.flow_errors import unmeasured
from ringleaf.experiments.records import tree_counts
from ringleaf.experiments.records.conditions import (
    about_capture,
    conduct,
    injection,
    inside_nodes_of,
    unlike_hardware,
)
from ringleaf.experiments.records.fewer_trees import fewer_trees
from ringleaf.experiments.records.idle import idle
from ringleaf.experiments.workloads.jobs.places import place_jobs
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.injection import injections_bps
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.jobs.results import JobRow, JobsCase
    from ringleaf.experiments.workloads.jobs.spec import JobsSpec

NOTES = (
    "JCT: from a job's start to its last sum; wait: of forward passes for gradients, per "
    "iteration; front: of that, the first quarter of the layers; fair: Jain's index (-: a job "
    "does not compute)",
    "busiest: load of the busiest link; links: of all that are used, on average; memory: slots or "
    "aggregators in use in the fullest switch",
)
VIRTUAL_NOTE = (
    "virtual: the JCT of the same jobs in virtual time; -: not known on a live network",
)


def about(spec: JobsSpec, graph: nx.Graph[str]) -> Iterator[str]:
    """Yield lines on the jobs and the network they run on."""
    yield (
        f"{format_count(max(spec.counts), 'training job')} on {graph.graph['name']}, "
        f"{describe(link_kinds(graph))}, {spec.placement}"
    )
    jitter = f"; passes up to {100 * spec.jitter:g} % longer" if spec.jitter else ""
    yield f"{conduct(spec)}; seed {spec.seed}{jitter}"
    yield f"{inside_nodes_of(spec)}; {injection(*injections_bps(graph))}"
    yield from unlike_hardware(vars(spec))
    yield from idle(spec)
    yield from fewer_trees(spec, graph, _teams(spec, graph))
    if not spec.check and spec.has_data:
        yield "of each job's sums the first of each size is compared (CHECK=no)"
    yield from notes(spec.topo)
    yield from about_capture(spec.cross_traffic)


def _teams(spec: JobsSpec, graph: nx.Graph[str]) -> dict[str, list[list[str]]]:
    """Return the hosts of the ranks of each job, by the algorithm by which it reduces."""
    teams: dict[str, list[list[str]]] = {}
    for count in spec.counts:
        for job, (ranks, _) in zip(spec.jobs, place_jobs(spec, hosts(graph), count), strict=False):
            for algo in [job.algo] if job.algo else spec.algos:
                teams.setdefault(algo, []).append(ranks)
    return teams


def told_of_live(row: JobRow) -> str:
    """Return a sentence on how well the machine kept up with a live case."""
    late, most = ((each or 0) / PS_PER_MS for each in (row.late_ps, row.most_late_ps))
    busy = f"; {row.limit} had no processor time left" if row.limit else ""
    return (
        f"{format_count(row.jobs, 'job')} by {row.algo}, {row.scheduler}: hosts began "
        f"{late:.2f} ms after the coordinator's decisions on average, {most:.2f} ms at most{busy}"
    )


def told_of_memory(cases: Sequence[JobsCase]) -> Iterator[str]:
    """Yield, by case, changes of jobs' parts of switches' memory and trees, and late jobs."""
    for case in cases:
        phrases = []
        if moves := sum(row.moves for row in case.rows):
            phrases.append(f"{format_count(moves, 'change')} of jobs' parts of switches' memory")
        if due := [row for row in case.rows if row.deadline_ps is not None]:
            late = sum(row.jct_ps > (row.deadline_ps or 0) for row in due)
            phrases.append(f"{late} of {format_count(len(due), 'deadline')} missed")
        row = case.rows[0]
        phrases += tree_counts.tell(row.rebuilt, row.detect_ps, row.resume_ps)
        if phrases:
            yield f"{case.combination.name}: {'; '.join(phrases)}"


def told_of_errors(rows: Sequence[JobRow]) -> Iterator[str]:
    """Yield, once for all jobs alike, why it is not known what their times are wrong by."""
    reasons = {f"{row.algo}, {row.scheduler}": row.outside for row in rows if row.outside}
    for name, outside in reasons.items():
        yield unmeasured(name, outside)
