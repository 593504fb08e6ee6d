"""One result of several runs of a network, each begun when the one before was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ringleaf.networks.outcome import Direction, Note, ProcessorSeconds, RunResult

BINS = 1024
"""The bins of a whole run's series."""

Series = npt.NDArray[np.int64]


def in_turn(results: Sequence[RunResult], rows: Sequence[int]) -> RunResult:
    """Return the result of all runs; times count from the start of the first.

    Queues and switches' memory over time are left out: there is a peak of the queues.

    Args:
        results: One or more, in their order.
        rows: The rows of each run's schedule, after which notes of the next ones are numbered.
    """
    starts_ps = [0, *accumulate(each.time_ps for each in results)][:-1]
    first_rows = [0, *accumulate(rows)][:-1]
    last, last_ps = results[-1], starts_ps[-1]
    bin_ps, series = _series([each.link_series for each in results], results, starts_ps)
    return replace(
        last,
        time_ps=last.time_ps + last_ps,
        finish_ps=[each + last_ps for each in last.finish_ps],
        wire_bytes=[sum(each) for each in zip(*(r.wire_bytes for r in results), strict=True)],
        retransmissions=sum(each.retransmissions for each in results),
        refusals=sum(each.refusals for each in results),
        drops=sum(each.drops for each in results),
        lost=sum(each.lost for each in results),
        corrupted=sum(each.corrupted for each in results),
        repaths=sum(each.repaths for each in results),
        overflows=sum(each.overflows for each in results),
        trims=sum(each.trims for each in results),
        pauses=sum(each.pauses for each in results),
        drop_counts=[drop for each in results for drop in each.drop_counts],
        link_bytes={
            name: sum(each.link_bytes.get(name, 0) for each in results) for name in last.link_bytes
        },
        packet_hops=sum(each.packet_hops for each in results),
        events=sum(each.events for each in results),
        wall_s=sum(each.wall_s for each in results),
        bin_ps=bin_ps,
        link_series=series,
        owner_series={name: each[None, :] for name, each in series.items()},
        queue_series={},
        memory_series={},
        notes=[
            note
            for each, start_ps, row in zip(results, starts_ps, first_rows, strict=True)
            for note in _later(each.notes, start_ps, row)
        ],
        left_out=sum(each.left_out for each in results),
        rebuilt=tuple(
            tree.later(start_ps)
            for each, start_ps in zip(results, starts_ps, strict=True)
            for tree in each.rebuilt
        ),
        forbidden=sum((each.forbidden for each in results), Counter()),
        usage=_usage([each.usage for each in results if each.usage is not None]),
    )


def _later(notes: Sequence[Note], start_ps: int, row: int) -> Iterator[Note]:
    for note in notes:
        yield note._replace(
            row=note.row + row, start_ps=note.start_ps + start_ps, end_ps=note.end_ps + start_ps
        )


def _series(
    parts: Sequence[Mapping[Direction, Series]],
    results: Sequence[RunResult],
    starts_ps: Sequence[int],
) -> tuple[int, dict[Direction, Series]]:
    """Return all links' bytes over time, each run's spread evenly within its own bins.

    A run's last bin may end after the next one's start: there both count.
    """
    ends_ps = [
        start_ps + max((len(each) for each in part.values()), default=0) * result.bin_ps
        for part, result, start_ps in zip(parts, results, starts_ps, strict=True)
    ]
    bin_ps = max(-(-max(ends_ps) // BINS), 1)
    edges_ps = np.arange(-(-max(ends_ps) // bin_ps) + 1) * bin_ps
    series: dict[Direction, Series] = {}
    for name in parts[-1]:
        total = np.zeros(len(edges_ps))
        for part, result, start_ps in zip(parts, results, starts_ps, strict=True):
            sent = np.concatenate(([0], np.cumsum(part[name])))
            total += np.interp(edges_ps, start_ps + np.arange(len(sent)) * result.bin_ps, sent)
        whole = np.rint(total).astype(np.int64)
        series[name] = whole[1:] - whole[:-1]
    return bin_ps, series


def _usage(parts: Sequence[ProcessorSeconds]) -> ProcessorSeconds | None:
    """Return the processors' seconds of all runs."""
    if not parts:
        return None
    summed = ("wall_s", "busy_s", "softirq_s", "hosts_s", "switches_s")
    return replace(
        parts[-1], **{name: sum(getattr(each, name) for each in parts) for name in summed}
    )
