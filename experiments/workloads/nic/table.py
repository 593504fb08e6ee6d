"""The table on stdout: lines with `#` are comments, rows suit awk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx

from ringleaf.experiments.records.columns import Columns
from ringleaf.experiments.runs.conditions import inside_nodes, unlike_hardware
from ringleaf.experiments.spec.network import VIRTUAL
from ringleaf.experiments.workloads.nic.spec import NicSpec
from ringleaf.experiments.workloads.nic.workload import Column, Row, SomeSpec, Workload
from ringleaf.topologies.kinds import describe, link_kinds
from ringleaf.topologies.registry import notes

_SPARE = ("coherence", "indices", "gradients", "vectors", "messages", "products", "tile")


def clock_of(spec: NicSpec) -> str:
    """Return the name of the clock that times are of."""
    return "simulated" if spec.net == VIRTUAL else "wall-clock"


def about(workload: Workload[SomeSpec], spec: SomeSpec, graph: nx.Graph[str]) -> list[str]:
    """Return lines on the workload and its network."""
    where = "simulated time"
    if spec.net != VIRTUAL:
        where = f"wall-clock time on Mininet, {spec.switch} switches, rates divided by {spec.scale}"
    nodes = inside_nodes(spec.switch_delay_ps, spec.host_delay_ps, spec.message_overhead_ps)
    return [
        *workload.about(spec, graph),
        f"{graph.graph['name']}, {describe(link_kinds(graph))}; {where}; seed {spec.seed}",
        nodes if spec.net == VIRTUAL else "switches and hosts take what this machine needs",
        *unlike_hardware(vars(spec)),
        *notes(spec.topo),
    ]


def columns_of(workload: Workload[SomeSpec], most: int | None = None) -> Columns:
    """Return the columns that fit so many letters."""
    every = [(each.title, each.unit, each.width) for each in workload.columns]
    return Columns.fitting(every, _SPARE, most)


def head(workload: Workload[SomeSpec], lines: Sequence[str], columns: Columns) -> Iterator[str]:
    """Yield the lines before the first row."""
    first, *others = lines
    yield f"# Ringleaf: {first}"
    yield from (f"# {line}" for line in others)
    yield from (f"# {line}" for line in workload.notes)
    yield "#"
    yield from columns.titles()


def line(every: Sequence[Column], row: Row, columns: Columns) -> str:
    """Return a row as a line; `every` column shows its value."""
    return columns.line(each.show(row[each.name]) for each in every)


def foot(rows: Sequence[Row], wall_s: float) -> Iterator[str]:
    """Yield the lines after the last row."""
    wrong = sum(int(row["wrong"]) for row in rows)
    hops = sum(int(row["packet_hops"]) for row in rows)
    yield f"# wrong values: {wrong} {'FAILED' if wrong else 'OK'}"
    yield f"# {hops / 1e6:.2f} M packet-hops in {wall_s:.1f} s"
