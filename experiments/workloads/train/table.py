"""The table on stdout: a row for all calls that are alike, and the iterations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import networkx as nx

import ringleaf
from ringleaf.experiments.runs.conditions import inside_nodes, unlike_hardware
from ringleaf.experiments.spec.network import VIRTUAL
from ringleaf.experiments.workloads.train.account import CallRow
from ringleaf.experiments.workloads.train.clock import parse_compute
from ringleaf.experiments.workloads.train.results import TrainRun
from ringleaf.experiments.workloads.train.spec import TrainSpec
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes
from ringleaf.units import PS_PER_US, format_time

_COLUMNS = (
    # name, unit, least width
    ("call", "", 15),
    ("group", "", 12),
    ("size", "(B)", 10),
    ("type", "", 8),
    ("redop", "", 5),
    ("algo", "", 15),
    ("calls", "", 6),
    ("time", "(us)", 10),
    ("busbw", "(GB/s)", 7),
    ("total", "(us)", 11),
    ("#wrong", "", 6),
)

MOST_ROWS = 30
"""The most rows of the table; all are in the files."""


def head(spec: TrainSpec, script: Sequence[str], graph: nx.Graph[str]) -> Iterator[str]:
    """Yield the lines before the script runs."""
    yield (
        f"# Ringleaf {ringleaf.__version__}: {script[0]}, {spec.ranks} ranks on {spec.topo}, "
        f"{describe(link_kinds(graph))}"
    )
    yield from (f"# {note}" for note in notes(spec.topo))
    trouble = ", ".join(
        f"{name} {100 * getattr(spec, name):g} %"
        for name in ("loss", "duplicate", "reorder")
        if getattr(spec, name)
    )
    trouble = trouble or "no losses"
    if spec.net == VIRTUAL:
        yield f"# simulated (virtual) time, packet by packet; {trouble}; seed {spec.seed}"
        delays = spec.switch_delay_ps, spec.host_delay_ps, spec.message_overhead_ps
        yield f"# {inside_nodes(*delays)}"
        yield from (f"# {line}" for line in unlike_hardware(vars(spec)))
    else:
        slower = f", rates divided by {spec.scale}" if spec.scale > 1 else ""
        yield (
            f"# wall-clock time of calls on Mininet, {spec.switch} switches{slower}; {trouble}; "
            f"seed {spec.seed}"
        )
    yield f"# algorithms: {spec.rules}; {_computing(spec)}"


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


def rows(run: TrainRun) -> Iterator[str]:
    """Yield the lines after the script has run."""
    shown = run.rows[:MOST_ROWS]
    widths = _widths(shown)
    yield "#"
    yield "#" + _line([name for name, _, _ in _COLUMNS], widths)[1:]
    yield "#" + _line([unit for _, unit, _ in _COLUMNS], widths)[1:].rstrip()
    for row in shown:
        yield _line(_cells(row), widths)
    if len(run.rows) > len(shown):
        yield f"# and {len(run.rows) - len(shown)} more rows, in results.csv"
    yield from _iterations(run)
    trouble = {
        "packets that hosts sent again": run.totals["retransmissions"],
        "lost on links": run.totals["lost"],
        "dropped by full queues": run.totals["drops"],
    }
    if any(trouble.values()):
        yield f"# {', '.join(f'{what}: {count}' for what, count in trouble.items())}"
    if run.wrong is None:
        yield "# results were not checked"
    else:
        yield f"# wrong values: {run.wrong}{'' if run.wrong else ' OK'}"


def _iterations(run: TrainRun) -> Iterator[str]:
    """Yield lines on the iterations: the first by itself, the others by their median."""
    steps = run.steps()
    if not steps:
        return
    (first_ps, first_wait_ps), *rest = steps
    waits = _share(first_wait_ps, first_ps)
    yield f"# iteration 1, with all before it: {format_time(first_ps)}, of which ranks wait {waits}"
    if rest:
        typical_ps = median(time_ps for time_ps, _ in rest)
        wait_ps = median(wait_ps for _, wait_ps in rest)
        said = "iteration 2" if len(rest) == 1 else f"iterations 2 to {len(steps)}, median"
        waits = _share(wait_ps, typical_ps)
        yield f"# {said}: {format_time(typical_ps)}, of which ranks wait {waits}"


def _share(part_ps: float, whole_ps: float) -> str:
    share = 100 * part_ps / whole_ps if whole_ps else 0.0
    return f"{format_time(part_ps)} for the network and one another ({share:.0f} %)"


def _cells(row: CallRow) -> list[str]:
    return [
        *(row.call, row.group.replace(" ", ":"), str(row.size_bytes), row.dtype, row.redop or "-"),
        *(row.algo, str(row.count), f"{row.time_ps / PS_PER_US:.2f}", f"{row.busbw_gb_s:.2f}"),
        *(f"{row.total_ps / PS_PER_US:.2f}", "-" if row.wrong is None else str(row.wrong)),
    ]


def _widths(shown: Sequence[CallRow]) -> list[int]:
    cells = [_cells(row) for row in shown]
    return [
        max([least, *(len(row[place]) for row in cells)])
        for place, (_, _, least) in enumerate(_COLUMNS)
    ]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
