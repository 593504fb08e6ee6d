"""The error that a flow run's time may have: as much as like runs of packets were found to differ.

The table beside this file is written by `python -m studies.flow_errors`. Whatever it does not cover
has no bound, and is said to lie outside.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ringleaf.core.faults import DOWN, RATE, NetworkFault
from ringleaf.core.units import format_count, format_size

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.collectives.schedule import Schedule
    from ringleaf.experiments.spec.network import NetworkSpec

PATH = Path(__file__).with_name("flow_errors.csv")

BINS = (1, 4 << 10, 64 << 10, 1 << 20)
"""The least bytes of a message in each bin."""

SETTINGS = {
    "rate_bps": 100_000_000_000,
    "delay_ps": 1_000_000,
    "switch_delay_ps": 0,
    "host_delay_ps": 0,
    "message_overhead_ps": 0,
    "mtu_bytes": 4096,
    "window": None,
    "slots": None,
    "lanes": 256,
    "routes": "dealt",
    "queue_pairs": 1,
    "servers": 0,
    "jitter": 0.0,
    "entries": (),
}
"""The options that all runs of the table have, by attribute of their spec, if it has it."""


FAULT_RATES = 10_000_000_000, 80_000_000_000
"""The least and the most rate of the table's links that slow down."""


@dataclass(frozen=True, slots=True)
class ErrorCell:
    """Errors of the flow network's times, in percent of those of packets, for one kind of runs.

    Attributes:
        what: The algorithm; of jobs and workloads, `jobs_by` and `workload_of`; with faults,
            `troubled`.
        family: The family of topologies.
        ratio: How many times as fast hosts are as the links that lead away from their switch.
        least_bytes: Of messages, the mean over a run: the least of the bin.
        most_ranks: The most ranks that were measured.
        cases: Runs.
        mean: Mean of the signed errors.
        median: Their median.
        p99: Of their sizes.
        worst: The largest of them.
    """

    what: str
    family: str
    ratio: float
    least_bytes: int
    most_ranks: int
    cases: int
    mean: float
    median: float
    p99: float
    worst: float


@dataclass(frozen=True, slots=True)
class FlowBound:
    """The error that a time may have, in percent; None: nobody has measured it (`outside`)."""

    percent: float | None
    outside: str = ""


@cache
def read_cells() -> tuple[ErrorCell, ...]:
    """Return the table."""
    with PATH.open(newline="") as file:
        return tuple(_cell(row) for row in csv.DictReader(file))


def _cell(row: dict[str, str]) -> ErrorCell:
    return ErrorCell(
        row["what"],
        row["family"],
        float(row["ratio"]),
        *(int(row[name]) for name in ("least_bytes", "most_ranks", "cases")),
        *(float(row[name]) for name in ("mean", "median", "p99", "worst")),
    )


def bin_of(message_bytes: float) -> int:
    """Return the least bytes of the bin that messages of this size are in."""
    return max(least for least in BINS if least <= max(message_bytes, 1))


def mean_message(schedule: Schedule, size_bytes: int) -> float:
    """Return the mean size of a schedule's messages, for tensors of this size."""
    rows = schedule.as_rows
    return size_bytes * len(rows) / (schedule.chunks * max(rows.messages, 1))


def oversubscription(graph: nx.Graph[str]) -> float:
    """Return how many times as fast hosts are as the links that lead away from their switch."""
    from ringleaf.topologies.graph import attachment, hosts, link, switch_graph

    inward: dict[str, int] = {}
    for host in hosts(graph):
        switch = attachment(graph, host)
        inward[switch] = inward.get(switch, 0) + link(graph, host, switch).rate_bps
    peers = switch_graph(graph)
    outward = {name: sum(link(graph, name, p).rate_bps for p in peers[name]) for name in inward}
    return max((inward[name] / outward[name] for name in inward if outward[name]), default=1.0)


def jobs_by(algo: str, scheduler: str) -> str:
    """Return what the table calls jobs that reduce by an algorithm, ordered by a scheduler."""
    return f"jobs by {algo} and {scheduler}"


def workload_of(name: str) -> str:
    """Return what the table calls a workload of a kind, or flows of a pattern."""
    return f"workload {name}"


def troubled(what: str, faults: Sequence[NetworkFault]) -> str:
    """Return what the table calls something on a network with faults: with the worst of them."""
    if not faults:
        return what
    fails = any(each.kind == DOWN for each in faults)
    return f"{what}, links {'fail' if fails else 'slow down'}"


def bound_of(
    spec: NetworkSpec, graph: nx.Graph[str], what: str, ranks: int, message_bytes: float
) -> FlowBound:
    """Return what the time of a flow run may be wrong by.

    Args:
        spec: Its options.
        graph: Its topology.
        what: What runs, as the table calls it (`ErrorCell.what`).
        ranks: The ranks of all of it.
        message_bytes: Mean size of its messages.
    """
    what = troubled(what, spec.network_faults)
    family, ratio = spec.topo.partition(",")[0], oversubscription(graph)
    reasons = [*_unlike(spec), *_unlike_links(spec.topo), *_unlike_faults(spec, graph)]
    least = bin_of(message_bytes)
    alike = [each for each in read_cells() if (each.what, each.family) == (what, family)]
    cells = [each for each in alike if each.ratio == ratio and each.least_bytes == least]
    if not alike:
        reasons.append(f"{what} on {family}")
    elif not cells:
        reasons.append(
            f"messages of {format_size(least)} and more, with an oversubscription of {ratio:g}"
        )
    elif ranks > cells[0].most_ranks:
        reasons.append(f"{format_count(ranks, 'rank')}, of at most {cells[0].most_ranks}")
    if reasons:
        return FlowBound(None, "; ".join(reasons))
    return FlowBound(cells[0].worst)


def unmeasured(name: str, outside: str) -> str:
    """Return a line that says why it is not known what the times of a flow run are wrong by."""
    return f"{name}: nobody has measured what flows are wrong by here (docs/flow.md): {outside}"


def _unlike(spec: NetworkSpec) -> Iterator[str]:
    """Yield the options that are not those of the table."""
    for name, value in SETTINGS.items():
        own = getattr(spec, name, value)
        if own != value:
            yield f"{name.removesuffix('_ps').removesuffix('_bps').removesuffix('_bytes')}={own}"


def _unlike_links(topo: str) -> Iterator[str]:
    """Yield what a family's name says of links and hosts that is not so in the table."""
    from ringleaf.topologies.registry import TOPOLOGIES, parse

    family, *options = (part.strip() for part in topo.split(","))
    if family in TOPOLOGIES:
        links = parse(topo).links
        for option in options:
            key = option.partition("=")[0].strip()
            usual = SETTINGS["rate_bps" if key.endswith("rate") else "delay_ps"]
            if key not in TOPOLOGIES[family].defaults and links.get(key) != usual:
                yield option


def _unlike_faults(spec: NetworkSpec, graph: nx.Graph[str]) -> Iterator[str]:
    """Yield how faults differ from those of the table: one, of a link between two switches."""
    from ringleaf.networks.faults import links_of
    from ringleaf.topologies.graph import switches

    faults = spec.network_faults
    if len(faults) > 1 or any(each.times > 1 for each in faults):
        yield "several faults"
    inner = set(switches(graph)) if faults else set()
    for fault in faults:
        ends = links_of(graph, fault.place)
        slows_otherwise = fault.kind == RATE and not FAULT_RATES[0] <= fault.value <= FAULT_RATES[1]
        if len(ends) != 1 or not inner.issuperset(*ends) or slows_otherwise:
            yield str(fault)


def write_cells(cells: Sequence[ErrorCell], path: Path = PATH) -> None:
    """Write a table."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(ErrorCell.__slots__)
        for each in cells:
            values = [getattr(each, name) for name in ErrorCell.__slots__]
            writer.writerow([f"{v:.3f}" if isinstance(v, float) else v for v in values])
