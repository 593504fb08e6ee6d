"""The table on stdout, in the style of nccl-tests: lines with `#` are comments, rows suit awk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ringleaf.collectives.registry import SYSTEMS
from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.sparse.algorithm import names_sparse
from ringleaf.experiments.records import drops
from ringleaf.experiments.records import pauses as held
from ringleaf.experiments.records import link_use
from ringleaf.experiments.bounds.busbw import busbw_formula
from ringleaf.experiments.records.columns import LETTERS, Columns
from ringleaf.experiments.runs.conditions import unlike_hardware
from ringleaf.experiments.estimates.estimate import Need
from ringleaf.experiments.explain.findings import TITLES, Explained
from ringleaf.experiments.programs.names import is_path
from ringleaf.experiments.runs.results import CollectiveRow, Run
from ringleaf.topologies.kinds import describe
from ringleaf.topologies.registry import notes
from ringleaf.units import PS_PER_US, format_size

_COLUMNS = (
    # name, unit, least width
    ("algo", "", 15),
    ("size", "(B)", 10),
    ("count", "(elem)", 9),
    ("type", "", 7),
    ("redop", "", 5),
    ("time", "(us)", 10),
    ("algbw", "(GB/s)", 7),
    ("busbw", "(GB/s)", 7),
    ("bound", "(us)", 10),
    ("%bound", "", 6),
    ("floor", "(us)", 10),
    ("%floor", "", 6),
    ("#wrong", "", 6),
    ("relerr", "", 7),
    ("wireB/rank", "(B)", 10),
    ("retx", "", 5),
)
FAR = 0.01
"""The error of a sum, of the magnitudes that were added, from which on the table warns of it."""

_SPARE = (
    *("redop", "type", "count", "floor", "bound", "%floor", "%bound", "wireB/rank", "algbw"),
    *("busbw", "retx"),
)


def head(run: Run, columns: Columns, needed: Need | None = None) -> Iterator[str]:
    """Yield the lines before the first row."""
    options = run.options
    yield (
        f"# Ringleaf {run.versions['ringleaf']}: {run.collective} of {run.ranks} ranks on "
        f"{run.topology}, {describe(run.links)}"
    )
    troubles = [
        f"{name} {100 * options[name]:g} %"
        for name in ("loss", "duplicate", "reorder")
        if options[name]
    ]
    if any(each.loss for each in run.links):
        troubles.append("losses of links' own")
    trouble = ", ".join(troubles)
    yield f"# {run.conduct}; {trouble or 'no losses'}; seed {options['seed']}"
    yield f"# {run.inside_nodes}; {run.injection}"
    yield from (f"# {line}" for line in unlike_hardware(options))
    yield from (f"# {note}" for note in notes(options["topo"]))
    if options["cross_traffic"]:
        yield f"# hosts also send the packets of {options['cross_traffic']}"
    if is_path(options["program"]):
        yield f"# switches run {options['program']}"
    yield from _sparsity(options)
    factor = busbw_formula(Collective(run.collective))
    error = "; relerr: error of switches' sums, of what they add" if _has_switch_sums(run) else ""
    yield f"# algbw = size/time; busbw = algbw x {factor}{error}"
    yield "# bound: least time of this algorithm here; floor: of any, with the same adders"
    if needed is not None:
        yield f"# needs {needed}"
    yield "#"
    yield from columns.titles()


def _sparsity(options: dict[str, Any]) -> Iterator[str]:
    """Yield a line on sparsity, compression and servers, if there are any of them."""
    said = []
    if options.get("density", 1) != 1:
        said.append(
            f"{100 * options['density']:g} % of the elements are not zero, in runs of "
            f"{options['cluster']}, {100 * options['overlap']:g} % of them the same on all ranks"
        )
    lossy = [name for name in options.get("algos", ()) if names_sparse(name)]
    if lossy:
        said.append(f"{', '.join(lossy)}: sums of chosen elements, judged by their own definition")
    if options.get("compress"):
        said.append(f"compressed by {options['compress']}")
    if options.get("servers"):
        said.append(f"{options['servers']} more hosts are servers")
    if said:
        yield f"# {'; '.join(said)}"


def columns_of(run: Run, most: int | None = None) -> Columns:
    """Return the columns that fit so many letters; the first is as wide as the longest name."""
    width = max(_COLUMNS[0][2], *map(len, run.options["algos"]))
    columns = [("algo", "", width), *_COLUMNS[1:]]
    return Columns.fitting(columns, _SPARE, most, () if _has_switch_sums(run) else ("relerr",))


def _has_switch_sums(run: Run) -> bool:
    return any(name in SYSTEMS for name in run.options["algos"])


def column_names(most: int | None = LETTERS) -> str:
    """Return the line that names the columns that fit so many letters."""
    return next(Columns.fitting(_COLUMNS, _SPARE, most).titles())


def line(row: CollectiveRow, columns: Columns) -> str:
    """Return a row as a line."""
    return columns.line(
        (
            row.algo,
            str(row.size_bytes),
            str(row.count),
            row.dtype,
            row.redop,
            f"{row.time_ps / PS_PER_US:.2f}",
            bandwidth(row.algbw_gb_s),
            bandwidth(row.busbw_gb_s),
            f"{row.bound_ps / PS_PER_US:.2f}",
            f"{row.bound_percent:.1f}",
            f"{row.floor_ps / PS_PER_US:.2f}",
            f"{row.floor_percent:.1f}",
            "-" if row.wrong is None else str(row.wrong),
            "-" if row.error is None else f"{row.error:.1e}",
            str(row.wire_bytes),
            str(row.retransmissions),
        )
    )


def bandwidth(gb_s: float) -> str:
    """Return a bandwidth in 10^9 bytes/s with two significant digits, however small it is."""
    if gb_s >= 0.1:
        return f"{gb_s:.2f}"
    return f"{gb_s:.4f}" if gb_s >= 0.001 else f"{gb_s:.1e}"


def foot(run: Run) -> Iterator[str]:
    """Yield the lines after the last row: whether all values were right, and which was fastest."""
    yield from _held(run)
    wrong = run.wrong
    if wrong is None:
        yield "# wrong values: not checked, as there was no data (data=none); schedules were"
    else:
        yield f"# wrong values: {wrong} {'OK' if not wrong else 'FAILED'}"
    for reason in reasons(run):
        yield f"# {reason}"
    yield from _rounded_away(run)
    for row in run.rows:
        if row.skipping:
            yield f"# {row.algo} at {format_size(row.size_bytes)}: {row.skipping}"
        if row.expected_ps is not None:
            yield (
                f"# {row.algo} at {format_size(row.size_bytes)}: {row.choice}, expected to take "
                f"{row.expected_ps / PS_PER_US:.2f} us"
            )
    for row in run.rows:
        if found := run.explained.get((row.algo, row.size_bytes)):
            yield f"# {row.algo} at {format_size(row.size_bytes)}: {beyond(found)}"
    if run.cpu_bound:
        yield f"# {run.cpu_bound}"
    yield from _drops(run)
    if run.rows:
        yield from _at_largest(run)


def _rounded_away(run: Run) -> Iterator[str]:
    """Yield warnings of numbers that are too small for the scale at which switches add."""
    for row in run.rows:
        if row.error is not None and row.error >= FAR:
            yield (
                f"# {row.algo} at {format_size(row.size_bytes)}: an element is off by "
                f"{100 * row.error:.2g} % of what was added up, as switches add integers, and "
                "small values are rounded away; scale the tensor (docs/aggregation.md)"
            )


def _at_largest(run: Run) -> Iterator[str]:
    """Yield lines on the largest size: the bottlenecks, and which algorithm was fastest."""
    size = max(row.size_bytes for row in run.rows)
    for (algo, of_bytes), uses in run.uses.items():
        if of_bytes == size and (told := link_use.tell(uses)):
            yield f"# {told} ({algo} at {format_size(size)})"
    fastest, *others = sorted(
        (row for row in run.rows if row.size_bytes == size), key=lambda row: row.time_ps
    )
    times = ", ".join(f"{row.algo} {row.time_ps / fastest.time_ps:.2f}" for row in others)
    slower = f"; times as long: {times}" if times else ""
    yield f"# fastest at {format_size(size)}: {fastest.algo}{slower}"


def _held(run: Run) -> Iterator[str]:
    for row in run.rows:
        for line in held.tell(f"{row.algo} at {format_size(row.size_bytes)}", row):
            yield f"# {line}"


def beyond(found: Explained) -> str:
    """Return a phrase on the time beyond a bound: `2.7 us over its bound: latency 2.7`."""
    over_us = (found.time_ps - found.bound.time_ps) / PS_PER_US
    parts = sorted(found.lost_ps.items(), key=lambda part: -part[1])
    told = [f"{TITLES[name]} {time_ps / PS_PER_US:.2f}" for name, time_ps in parts if time_ps]
    return f"{over_us:.2f} us over its bound{': ' if told else ''}{', '.join(told)}"


def reasons(run: Run) -> Iterator[str]:
    """Yield for each wrong algorithm the reason why it was wrong at the first such size."""
    found: dict[str, list[CollectiveRow]] = {}
    for row in run.rows:
        if row.reason:
            found.setdefault(row.algo, []).append(row)
    for algo, (first, *others) in found.items():
        more = f" (and at {len(others)} more)" if others else ""
        yield f"{algo} at {format_size(first.size_bytes)}{more}: {first.reason}"


def _drops(run: Run) -> Iterator[str]:
    """Yield lines on the queues that were full, for the rows with most drops."""
    worst = sorted((row for row in run.rows if row.drops), key=lambda row: -row.drops)
    for row in worst[: drops.SHOWN]:
        found = run.drops.get((row.algo, row.size_bytes), [])
        yield f"# {drops.tell(row.algo, row.size_bytes, row.drops, found)}"
    if worst[drops.SHOWN :]:
        yield f"# drops: of {len(worst) - drops.SHOWN} more rows, in {drops.FILE}"
