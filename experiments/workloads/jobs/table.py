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
    is_live,
    unlike_hardware,
)
from ringleaf.experiments.spec.jobs import JobsSpec
from ringleaf.experiments.workloads.jobs.results import JobRow, JobsCase
from ringleaf.experiments.workloads.jobs.runner import JobsExperiment
from ringleaf.topologies.injection import injections_bps
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes
from ringleaf.units import PS_PER_MS

VIRTUAL_JCT = "virtual"
"""The column of live runs that has the completion time in virtual time."""

_COLUMNS = (
    ("jobs", "", 5),
    ("algo", "", 10),
    ("order", "", 13),
    ("entries", "", 7),
    ("job", "", 3),
    ("model", "", 11),
    ("ranks", "", 5),
    ("JCT", "(ms)", 9),
    (VIRTUAL_JCT, "(ms)", 9),
    ("iteration", "(ms)", 9),
    ("compute", "(ms)", 8),
    ("wait", "(ms)", 8),
    ("front", "(ms)", 8),
    ("fair", "", 6),
    ("busiest", "(%)", 7),
    ("links", "(%)", 5),
    ("queue", "(KiB)", 7),
    ("memory", "(peak)", 6),
    ("memory", "(mean)", 6),
    ("#wrong", "", 6),
    ("retx", "", 5),
)
_SPARE = (
    *("memory", "links", "compute", "ranks", "iteration", "fair", "front", "queue"),
    *("model", "busiest", "wait", "retx"),
)


def head(experiment: JobsExperiment, columns: Columns | None = None) -> Iterator[str]:
    """Yield the lines before the first row; by default, it has all columns."""
    spec = experiment.spec
    columns = columns or columns_of(spec)
    first, *others = about(experiment)
    yield f"# Ringleaf: {first}"
    yield from (f"# {line}" for line in others)
    yield "# JCT: from a job's start to its last sum; wait: of forward passes for gradients, per"
    yield "# iteration; front: of that, the first quarter of the layers; fair: Jain's index"
    yield "# busiest: load of the busiest link; links: of all that are used, on average; memory:"
    yield "# slots or aggregators in use in the fullest switch"
    yield f"# needs {experiment.need}"
    yield "#"
    if is_live(spec):
        yield "# virtual: the JCT of the same jobs in virtual time; -: not known on a live network"
        yield "#"
    yield from columns.titles()


def about(experiment: JobsExperiment) -> list[str]:
    """Return lines on the jobs and the network they run on."""
    spec = experiment.spec
    return [
        f"{len(spec.jobs)} training jobs on {experiment.graph.graph['name']}, "
        f"{describe(link_kinds(experiment.graph))}, "
        f"{spec.placement}; {conduct(spec)}; seed {spec.seed}"
        + (f"; passes up to {100 * spec.jitter:g} % longer" if spec.jitter else ""),
        f"{inside_nodes_of(spec)}; {injection(*injections_bps(experiment.graph))}",
        *unlike_hardware(vars(spec)),
        *notes(spec.topo),
    ]


def columns_of(spec: JobsSpec, most: int | None = None) -> Columns:
    """Return the columns that fit so many letters; names may be longer than the usual width."""
    named = {
        "algo": spec.algos,
        "order": spec.orders,
        "model": [job.model.name for job in spec.jobs],
    }
    every = [each for each in _COLUMNS if is_live(spec) or each[0] != VIRTUAL_JCT]
    sized = [
        (name, unit, max(width, *map(len, named.get(name, [name])))) for name, unit, width in every
    ]
    return Columns.fitting(sized, _SPARE, most)


def line(row: JobRow, columns: Columns) -> str:
    """Return a row as a line."""
    times = (
        *(row.jct_ps, row.virtual_jct_ps, row.iteration_ps, row.compute_ps, row.wait_ps),
        row.front_wait_ps,
    )
    return columns.line(
        (
            str(row.jobs),
            row.algo,
            row.order,
            "all" if row.entries is None else str(row.entries),
            str(row.job),
            row.model,
            str(row.ranks),
            *(f"{time_ps / PS_PER_MS:.3f}" for time_ps in times if time_ps is not None),
            f"{row.fairness:.3f}",
            f"{row.busiest_percent:.1f}",
            f"{row.links_percent:.1f}",
            "-" if row.peak_queue_bytes is None else f"{row.peak_queue_bytes / 1024:.0f}",
            "-" if row.memory_peak is None else str(row.memory_peak),
            "-" if row.memory_mean is None else f"{row.memory_mean:.1f}",
            str(row.wrong),
            str(row.retransmissions),
        )
    )


def foot(cases: Sequence[JobsCase]) -> Iterator[str]:
    """Yield the lines after the last row."""
    yield from _memory(cases)
    wrong = sum(row.wrong for case in cases for row in case.rows)
    yield f"# wrong values: {wrong} {'OK' if not wrong else 'FAILED'}"
    for row in (row for case in cases for row in case.rows):
        if row.reason:
            yield f"# job {row.job} of {row.jobs} by {row.algo}, {row.order}: {row.reason}"
    for case in cases:
        if told := link_use.tell(case.uses):
            yield f"# {told} ({case.combination.name})"
        if case.rows[0].drops:
            yield f"# {drops.tell(case.combination.name, 0, case.rows[0].drops, case.drops)}"
        for line in held.tell(case.combination.name, case.rows[0]):
            yield f"# {line}"
    for row in (case.rows[0] for case in cases if case.is_live):
        yield f"# {told_of_live(row)}"
    hops = sum(case.rows[0].packet_hops for case in cases)
    wall_s = sum(case.wall_s for case in cases)
    rate = hops / max(wall_s, 1e-9) / 1e6
    yield f"# {hops / 1e6:.1f} M packet-hops in {wall_s:.1f} s: {rate:.2f} M/s"


def told_of_live(row: JobRow) -> str:
    """Return a sentence on how well the machine kept up with a live case."""
    late, most = ((each or 0) / PS_PER_MS for each in (row.late_ps, row.most_late_ps))
    busy = f"; {row.limit} had no processor time left" if row.limit else ""
    return (
        f"{row.jobs} jobs by {row.algo}, {row.order}: hosts began {late:.2f} ms after the "
        f"coordinator's decisions on average, {most:.2f} ms at most{busy}"
    )


def _memory(cases: Sequence[JobsCase]) -> Iterator[str]:
    """Yield, by case, how often jobs' parts of switches' memory changed, and missed deadlines."""
    for case in cases:
        said = []
        if moves := sum(row.moves for row in case.rows):
            said.append(f"{moves} changes of jobs' parts of switches' memory")
        if due := [row for row in case.rows if row.deadline_ps is not None]:
            late = sum(row.jct_ps > (row.deadline_ps or 0) for row in due)
            said.append(f"{late} of {len(due)} deadlines missed")
        if said:
            yield f"# {case.combination.name}: {'; '.join(said)}"
