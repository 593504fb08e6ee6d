"""Rows of collectives' results, and what is asked of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.collective.results import CollectiveResults

Row = TypeVar("Row", bound=Any)  # of any kind of results


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One row of the results: one algorithm at one size."""

    algo: str
    size_bytes: int  # of each rank's tensor
    count: int  # its elements
    dtype: str
    redop: str
    time_ps: int  # by the run's clock, from start to the last rank's end
    algbw_gb_s: float  # size / time, 10^9 bytes/s
    busbw_gb_s: float  # algbw x the collective's factor
    bound_ps: int  # least time of this algorithm on the routes it got
    bound_percent: float  # bound / time
    floor_ps: int  # least time of any algorithm with the same adders, hosts or switches
    floor_percent: float  # floor / time
    wrong: int | None  # elements, over all ranks, that differ from the collective's demand
    wire_bytes: int  # that the busiest rank sent, headers included
    retransmissions: int
    drops: int  # packets that found a queue full
    lost: int  # packets that links lost
    packet_hops: int  # arrivals of packets anywhere
    events: int
    limit: str = ""  # live: the part without processor time left, so links were not the limit
    reason: str = ""  # why the first wrong element is wrong
    skipped_percent: float = 0.0  # of steps, or of elements: they were not simulated
    error_percent: float = 0.0  # what the time may be wrong by, because of that
    skipping: str = ""  # if it was asked for: what was skipped, or why nothing was
    choice: str = ""  # by an algorithm that chooses: the one it has chosen
    expected_ps: int | None = None  # the time that the cost model gives for it
    pauses: int = 0  # times that a port asked the other end to pause a class
    trims: int = 0  # packets that found a queue full, and went on without their payload
    corrupted: int = 0  # packets that receivers discarded, as a bit was wrong
    repaths: int = 0  # times that a connection took another path, as nothing got through
    forbidden: str = ""  # packets that switches dropped as their programs forbid them
    changes: int = 0  # of circuits
    dark_ps: int = 0  # time in which circuits were not up because of that
    duty: float | None = None  # the share of the rest; None: no controller sets circuits up
    circuit_bytes: int = 0  # bytes on circuits, with what lines add
    packet_bytes: int = 0  # likewise, on other links between switches
    rebuilt: int = 0  # trees of aggregation that were built again, as switches or links failed
    detect_ps: int | None = None  # from such a fault until the tree was another
    resume_ps: int | None = None  # from then until all workers had a result, the longest
    within_percent: float | None = None  # of flows: what the time may be wrong by, if known
    outside: str = ""  # of flows: why it is not known what the time may be wrong by
    packets_ps: int | None = None  # of flows: the time of packets, if that was asked for
    found_percent: float | None = None  # of flows: the signed error, in percent of that
    error: float | None = None  # of switches' sums: the greatest, of the magnitudes added up
    lost_hosts: str = ""  # those that were lost for good, and that the others went on without
    ranks_left: int | None = None  # after that
    again_ps: int | None = None  # when these began again


@dataclass(frozen=True, slots=True)
class LinkSeries:
    """The bytes that each direction of each link carried, per bin of time."""

    bin_ps: int
    links: tuple[tuple[str, str], ...]  # (from, to)
    size_bytes: npt.NDArray[np.int64]  # (links, bins)


def largest_bytes(results: CollectiveResults) -> int:
    """Return the largest size."""
    return max((row.size_bytes for row in results.rows), default=0)


def right_rows(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows without wrong values, as others' times say nothing; all, if all are wrong.

    Rows that are not checked are right.
    """
    return [row for row in rows if not getattr(row, "wrong", 0)] or rows


def compared_bytes(sizes: Iterable[int]) -> list[int]:
    """Return the sizes at which algorithms can be compared, in order, given the size of each row.

    An interrupted run has sizes at which only some of its algorithms were measured; at others,
    some have wrong values.
    """
    counts = Counter(sizes)
    most = max(counts.values(), default=0)
    return sorted(size for size, count in counts.items() if count == most)


def algorithms(results: CollectiveResults) -> list[str]:
    """Return the run's algorithms, in the order of their rows."""
    return list(dict.fromkeys(row.algo for row in results.rows))


def rows_of(results: CollectiveResults, algo: str) -> list[CollectiveRow]:
    """Return an algorithm's rows, by size."""
    own = (row for row in results.rows if row.algo == algo)
    return sorted(own, key=lambda row: row.size_bytes)


def is_one_size(results: CollectiveResults) -> bool:
    """Return whether all rows have the same size, so that nothing can be drawn against size."""
    return len({row.size_bytes for row in results.rows}) == 1
