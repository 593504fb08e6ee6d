"""Lines above and below the table, in the style of nccl-tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import SYSTEMS
from ringleaf.collectives.sparse.algorithm import names_sparse
from ringleaf.core.units import PS_PER_US, format_count, format_size, format_time
from ringleaf.experiments.bounds.busbw import busbw_formula
from ringleaf.experiments.estimates.flow_errors import unmeasured
from ringleaf.experiments.explain.findings import TITLES, Explained
from ringleaf.experiments.programs.names import is_path
from ringleaf.experiments.records.conditions import (
    about_capture,
    conduct,
    injection,
    inside_nodes_of,
    unlike_hardware,
)
from ringleaf.experiments.records.idle import idle, rounded
from ringleaf.experiments.spec.choices import FLOW
from ringleaf.experiments.workloads.collective.rows import compared_bytes, right_rows
from ringleaf.topologies.kinds import LinkKind, describe
from ringleaf.topologies.registry import notes

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.collective.rows import (
        CollectiveRow,
    )
    from ringleaf.experiments.workloads.collective.spec import CollectiveSpec

FAR = 0.01
"""The error of a sum, of the magnitudes that were added, from which on the table warns of it."""


def about(
    spec: CollectiveSpec,
    what: str,
    links: Sequence[LinkKind],
    injection_bps: Sequence[int],
) -> Iterator[str]:
    """Yield lines on a run: `what` it is, the network's links, and what is unusual."""
    yield f"{what}, {describe(links)}"
    yield f"{conduct(spec, lossy=any(each.loss for each in links))}; seed {spec.seed}"
    yield f"{inside_nodes_of(spec)}; {injection(*injection_bps)}"
    yield from unlike_hardware(vars(spec))
    yield from idle(spec)
    yield from rounded(spec)
    yield from notes(spec.topo)
    yield from about_capture(spec.cross_traffic)
    if is_path(spec.program):
        yield f"switches run {spec.program}"
    yield from _unusual(spec)


def explained(options: Mapping[str, Any], collective: Collective) -> Iterator[str]:
    """Yield lines that explain the columns."""
    error = (
        "; relerr: error of switches' sums, of what they add" if has_switch_sums(options) else ""
    )
    yield f"algbw = size/time; busbw = algbw x {busbw_formula(collective)}{error}"
    yield "bound: least time of this algorithm here; floor: of any, with the same adders"
    if options["net"] == FLOW:
        yield "error: the most that like runs were wrong by, which is no bound (docs/flow.md)"
        if options["check_packets"]:
            yield "packets: time by packets; found: error of flows, below 0 if they are faster"


def has_switch_sums(options: Mapping[str, Any]) -> bool:
    """Return whether switches add, which round."""
    return any(name in SYSTEMS for name in options["algos"])


def _unusual(spec: CollectiveSpec) -> Iterator[str]:
    """Yield a line on queue pairs, sparsity, compression and servers, if they are unusual."""
    phrases = []
    if spec.queue_pairs > 1 and not all(name in SYSTEMS for name in spec.algos):
        phrases.append(f"messages cut among {spec.queue_pairs} queue pairs")
    if spec.density != 1:
        phrases.append(
            f"{100 * spec.density:g} % of the elements are not zero, in runs of {spec.cluster}, "
            f"{100 * spec.overlap:g} % of them the same on all ranks"
        )
    lossy = [name for name in spec.algos if names_sparse(name)]
    if lossy:
        phrases.append(
            f"{', '.join(lossy)}: sums of chosen elements, judged by their own definition"
        )
    if spec.compress:
        phrases.append(f"compressed by {spec.compress}")
    if spec.servers:
        role = "is a server" if spec.servers == 1 else "are servers"
        phrases.append(f"{format_count(spec.servers, 'more host')} {role}")
    if phrases:
        yield "; ".join(phrases)


def reasons(rows: Iterable[CollectiveRow]) -> Iterator[str]:
    """Yield for each wrong algorithm the reason why it was wrong at the first such size."""
    by_algo: dict[str, list[CollectiveRow]] = {}
    for row in rows:
        if row.reason:
            by_algo.setdefault(row.algo, []).append(row)
    for algo, (first, *others) in by_algo.items():
        more = f" (and at {len(others)} more)" if others else ""
        yield f"{algo} at {format_size(first.size_bytes)}{more}: {first.reason}"


def remarks(rows: Sequence[CollectiveRow]) -> Iterator[str]:
    """Yield what is to be said of rows: values rounded away, what was skipped, what was chosen."""
    for row in rows:
        if row.error is not None and row.error >= FAR:
            yield (
                f"{_name(row)}: an element is off by {100 * row.error:.2g} % of what was added "
                "up, as switches add integers, and small values are rounded away; scale the "
                "tensor (docs/aggregation.md)"
            )
    for row in rows:
        if row.outside:
            yield unmeasured(_name(row), row.outside)
    for row in rows:
        if row.skipping:
            yield f"{_name(row)}: {row.skipping}"
        if row.expected_ps is not None:
            time = f"{row.expected_ps / PS_PER_US:.2f} us"
            yield f"{_name(row)}: {row.choice}, expected to take {time}"


def lost(rows: Iterable[CollectiveRow]) -> Iterator[str]:
    """Yield for each row whose ranks have lost hosts who began again, and when."""
    for row in rows:
        if row.again_ps is not None:
            at = format_time(row.again_ps)
            names = row.lost_hosts.replace(" ", ", ")
            left = format_count(row.ranks_left or 0, "rank")
            yield f"{_name(row)}: {left} began again at {at}, without {names}"


def _name(row: CollectiveRow) -> str:
    return f"{row.algo} at {format_size(row.size_bytes)}"


def beyond(row: Explained) -> str:
    """Return a phrase on the time beyond a bound: `2.7 us over its bound: latency 2.7`."""
    over_us = (row.time_ps - row.bound.time_ps) / PS_PER_US
    parts = sorted(row.lost_ps.items(), key=lambda part: -part[1])
    texts = [f"{TITLES[name]} {time_ps / PS_PER_US:.2f}" for name, time_ps in parts if time_ps]
    return f"{over_us:.2f} us over its bound{': ' if texts else ''}{', '.join(texts)}"


def by_time(rows: Sequence[CollectiveRow]) -> list[CollectiveRow]:
    """Return the right rows of the largest size that can be compared, the fastest first."""
    rows = right_rows(rows)
    size = compared_bytes(row.size_bytes for row in rows)[-1]
    return sorted((row for row in rows if row.size_bytes == size), key=lambda row: row.time_ps)


def fastest(rows: Sequence[CollectiveRow]) -> str:
    """Return a line on which algorithm was fastest at the largest size that can be compared."""
    first, *others = by_time(rows)
    times = ", ".join(f"{row.algo} {row.time_ps / first.time_ps:.2f}" for row in others)
    slower = f"; times as long: {times}" if times else ""
    return f"fastest at {format_size(first.size_bytes)}: {first.algo}{slower}"
