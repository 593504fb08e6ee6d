"""Skip of steps that repeat: some are simulated packet by packet, and those between are not.

A schedule whose steps all move messages of the same sizes between the same ranks, as a ring's, is
cut in three. Its first steps are simulated. If they have come to take the same time each, the steps
between take that time as well: their data is moved and added up as the schedule says, in its order,
without packets. The last steps are simulated again, by the same hosts and switches.

All ranks begin the first steps together, and the last ones, too. So both have the same transient,
and the last steps' time counts from when a rank that never waited would have begun them. Two errors
are left: that of a step's time, times the steps that are skipped; and that ranks come to be ahead
of one another by the delays of their paths, as far as they have by the first cut, and by the end.
Both are estimated from the first steps. Besides, packets of the steps before and after a cut do not
meet: a packet's time at either cut.

Source:
    The idea of skipping steady phases is Wormhole's (NSDI 2026), which does so for flows' rates,
    and without data. Cutting by steps is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.rows import REDUCE, Columns
from ringleaf.collectives.schedule import ChunkRows, Schedule, chunk_ranges
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.networks.outcome import MOST_CELLS, RECEIVE, Direction, RunResult

Times = npt.NDArray[np.float64]

_SETTLING = 5  # steps in which messages find their order
_LAST = 1  # steps after which nothing follows, so that their packets meet fewer others

Run = Callable[[Schedule], RunResult]
"""Runs a schedule on the ranks' tensors, packet by packet, and notes all its messages."""

Spread = Callable[[Callable[[int], None], Sequence[int]], Iterator[Any]]
"""Does work for several items, as `map` does."""


@dataclass(frozen=True, slots=True)
class Skip:
    """The steps of a collective that were skipped.

    Attributes:
        first: The first step that was skipped.
        steps: The number of steps that were.
        of: The number of all steps.
        step_ps: Time of a step.
        error: What the time of all may be wrong by, as a share of it.
    """

    first: int
    steps: int
    of: int
    step_ps: float
    error: float

    def __str__(self) -> str:
        """Return the figures in words."""
        last = self.first + self.steps - 1
        return (
            f"skipped steps {self.first} to {last}, {100 * self.steps / self.of:.1f} % of "
            f"{self.of}; the time may be wrong by {100 * self.error:.3f} %"
        )


def obstacle(schedule: Schedule, elements: int, each_end: int) -> str:
    """Return why no steps but `each_end` at either end can be skipped; empty if they can."""
    if schedule.groups:
        return "switches add up its data"
    if schedule.codec is not None:
        return "its messages' sizes depend on the data"
    if schedule.scratch or schedule.servers:
        return "it has servers or scratch memory"
    if schedule.steps <= 2 * each_end:
        return (
            f"it has {format_count(schedule.steps, 'step')}, of which {2 * each_end} would "
            "be simulated"
        )
    if elements < schedule.chunks:
        return "some of its messages are empty"
    if not _repeats(schedule):
        return "its steps differ"
    return ""


def _repeats(schedule: Schedule) -> bool:
    """Return whether each step moves as many chunks between the same ranks, and each chunk once."""
    if schedule.circulant is not None:
        first = schedule.circulant.first
        return bool((first.src == first.src[0]).all() and (first.dst == first.dst[0]).all())
    rows = schedule.columns
    per_step = np.bincount(rows.step, minlength=schedule.steps)
    if (per_step != per_step[0]).any():
        return False
    shape = (schedule.steps, int(per_step[0]))
    for each in (rows.src, rows.dst, rows.channel, rows.stop - rows.start):
        table = each.reshape(shape)
        if (table != table[0]).any():
            return False
    chunks = rows.by_chunk()
    ends = np.concatenate([chunks.src, chunks.dst])
    keys = (np.tile(chunks.step, 2) * schedule.nodes + ends) * schedule.chunks
    keys += np.tile(chunks.start, 2)
    return len(np.unique(keys)) == len(keys)


def run(
    schedule: Schedule,
    tensors: Sequence[Array],
    tolerance: float,
    simulate: Run,
    spread: Spread,
    *,
    each_end: int,
    packet_ps: int = 0,
    has_data: bool = True,
) -> tuple[RunResult, Skip] | str:
    """Run a collective on the ranks' tensors, in place; return its result, and what was skipped.

    Args:
        schedule: One without an `obstacle`.
        tensors: One per rank, of shape (elements,).
        tolerance: By how much the time may be wrong, as a share.
        simulate: Runs part of the schedule.
        spread: Does the work of one step on several cores.
        each_end: The steps that are simulated at the beginning, and at the end: at least 8.
        packet_ps: Time of a packet on the slowest link.
        has_data: Whether tensors have contents.

    Returns:
        The result and what was skipped, or why nothing can be: the error would be too large. The
        tensors are spoilt then.
    """
    steps = schedule.steps
    head = simulate(part(schedule, 0, each_end))
    middle = steps - 2 * each_end
    step_ps, error_ps = _step_ps(head, each_end, middle)
    error = (error_ps + 2 * packet_ps) / (steps * step_ps)
    if error > tolerance:
        return f"the time might be wrong by {100 * error:.3f} %"
    skip = Skip(each_end, middle, steps, step_ps, error)
    if has_data:
        _move(part(schedule, skip.first, steps - each_end).columns, schedule, tensors, spread)
    tail = simulate(part(schedule, steps - each_end, steps))
    return _joined(head, tail, skip, schedule.as_rows.messages), skip


def part(schedule: Schedule, first: int, stop: int) -> Schedule:
    """Return the steps from `first` to `stop` (excluded), numbered from 0."""
    if schedule.circulant is not None:
        return replace(schedule, rows=schedule.circulant.of_steps(first, stop))
    rows = schedule.columns
    taken = rows.take((rows.step >= first) & (rows.step < stop))
    return replace(schedule, rows=ChunkRows(replace(taken, step=taken.step - first)))


def _step_ps(head: RunResult, steps: int, skipped: int) -> tuple[float, float]:
    """Return the time of a step, and by how much the time of all may be wrong."""
    ends_ps = _ends(head, steps)
    mean_ps = ends_ps.mean(axis=1)
    gaps_ps = np.diff(mean_ps)[_SETTLING:-_LAST]
    ahead_ps = np.ptp(ends_ps, axis=1)[_SETTLING:]
    return float(gaps_ps.mean()), float(
        skipped * gaps_ps.std() / sqrt(len(gaps_ps)) + 2 * ahead_ps.max()
    )


def _ends(head: RunResult, steps: int) -> Times:
    """Return when the messages of each step were there: (steps, ranks or classes of them)."""
    if head.step_ends_ps is not None:
        return head.step_ends_ps.astype(np.float64)
    notes = [note for note in head.notes if note.kind == RECEIVE]
    notes.sort(key=lambda note: note.row)
    return np.array([note.end_ps for note in notes], np.float64).reshape(steps, -1)


def _move(rows: Columns, schedule: Schedule, tensors: Sequence[Array], spread: Spread) -> None:
    """Apply rows that read and write each chunk of a node once per step."""
    edges = chunk_ranges(tensors[0].size, schedule.chunks)
    columns = (rows.src, rows.dst, rows.start, rows.stop, rows.op)
    src, dst, start, stop, op = (column.tolist() for column in columns)

    def apply(number: int) -> None:
        place = slice(edges[start[number]][0], edges[stop[number] - 1][1])
        target, source = tensors[dst[number]][place], tensors[src[number]][place]
        if op[number] == REDUCE:
            with np.errstate(all="ignore"):
                np.add(target, source, out=target)
        else:
            target[:] = source

    bounds = np.flatnonzero(np.diff(rows.step, prepend=-1, append=schedule.steps)).tolist()
    for first, last in pairwise(bounds):
        for _ in spread(apply, range(first, last)):
            pass


def _joined(head: RunResult, tail: RunResult, skip: Skip, messages: int) -> RunResult:
    """Return the result of the whole collective: bytes of skipped steps are those of the first."""
    before_ps = round((skip.first + skip.steps) * skip.step_ps)
    factor = (skip.first + skip.steps) / skip.first

    def whole(first: int, last: int) -> int:
        return round(first * factor) + last

    shift = messages - sum(note.kind == RECEIVE for note in tail.notes)
    later = (
        note._replace(
            row=note.row + shift, start_ps=note.start_ps + before_ps, end_ps=note.end_ps + before_ps
        )
        for note in tail.notes
    )
    bin_ps, link_series = _series(head, tail, before_ps, skip)
    return replace(
        tail,
        time_ps=tail.time_ps + before_ps,
        finish_ps=[each + before_ps for each in tail.finish_ps],
        wire_bytes=list(map(whole, head.wire_bytes, tail.wire_bytes)),
        link_bytes={
            name: whole(head.link_bytes[name], last) for name, last in tail.link_bytes.items()
        },
        retransmissions=head.retransmissions + tail.retransmissions,
        refusals=head.refusals + tail.refusals,
        drops=head.drops + tail.drops,
        drop_counts=head.drop_counts + tail.drop_counts,
        packet_hops=head.packet_hops + tail.packet_hops,
        events=head.events + tail.events,
        wall_s=head.wall_s + tail.wall_s,
        bin_ps=bin_ps,
        link_series=link_series,
        owner_series={name: series[None, :] for name, series in link_series.items()},
        queue_series={},
        memory_series={},
        notes=[*head.notes, *later],
        left_out=head.left_out + tail.left_out + messages * 2 * skip.steps // skip.of,
    )


_BINS = 1024  # of a whole run's series, at most


def _series(
    head: RunResult, tail: RunResult, before_ps: int, skip: Skip
) -> tuple[int, dict[Direction, npt.NDArray[np.int64]]]:
    """Return all links' bytes over time: as noted, and at the first steps' rate where skipped."""
    end_ps = before_ps + max(len(each) for each in tail.link_series.values()) * tail.bin_ps
    bins = min(_BINS, max(MOST_CELLS // len(tail.link_series), 2))
    bin_ps = max(-(-end_ps // bins), 1)
    edges_ps = np.arange(-(-end_ps // bin_ps) + 1) * bin_ps
    factor = (skip.first + skip.steps) / skip.first
    known: dict[tuple[int, int], npt.NDArray[np.int64]] = {}  # those of a class share theirs
    series = {}
    for name, last in tail.link_series.items():
        first = head.link_series[name]
        if (whole := known.get((id(first), id(last)))) is not None:
            series[name] = whole
            continue
        first_ps = np.arange(len(first) + 1) * head.bin_ps
        last_ps = before_ps + np.arange(len(last) + 1) * tail.bin_ps
        sent = np.concatenate(([0], np.cumsum(first)))
        then = round(sent[-1] * factor) + np.concatenate(([0], np.cumsum(last)))
        is_before = first_ps < before_ps
        total = np.interp(
            edges_ps,
            np.concatenate((first_ps[is_before], last_ps)),
            np.concatenate((sent[is_before], then)),
        )
        series[name] = known[id(first), id(last)] = np.diff(np.rint(total).astype(np.int64))
    return bin_ps, series
