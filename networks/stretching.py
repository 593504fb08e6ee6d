"""The time of a sum by switches from those of smaller ones, where it grows evenly with the size.

Workers send slot after slot of switches' memory, with as many packets in flight all the time. So
beyond some size, each further element takes the same time. Tensors of b, 2b, 3b and 4b elements are
added up, packet by packet, each on a network of its own; b fills all slots of a worker. If the
three differences of their times agree within the tolerance, all other elements take their mean;
else b is doubled. Bytes, and what is counted, grow in the same way; queues are those of the largest
run.

Only what is simulated is added up, as no other code than switches' programs says what sums are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.core.units import format_count
from ringleaf.networks.outcome import RunResult

Run = Callable[[int], RunResult]
"""Adds up tensors of so many elements."""

_RUNS = 4
_LEAST_SHARE = 256  # the first b is one of so many parts of the tensor
_MOST_SHARE = 32  # no b is larger than that


@dataclass(frozen=True, slots=True)
class StretchedTime:
    """How a time was found.

    Attributes:
        step: The elements of the smallest tensor, and the difference between tensors.
        of: The elements of the tensor.
        error: What the time may be wrong by, as a share of it.
    """

    step: int
    of: int
    error: float

    @property
    def skipped(self) -> float:
        """The share of elements that the largest run did not have."""
        return 1 - _RUNS * self.step / self.of

    def __str__(self) -> str:
        """Return the figures in words."""
        return (
            f"skipped {100 * self.skipped:.1f} % of {format_count(self.of, 'element')}, whose "
            "sums were not "
            f"computed: the time of each is that of {self.step} to {_RUNS * self.step}; it may be "
            f"wrong by {100 * self.error:.3f} %"
        )


def run(
    elements: int, tolerance: float, simulate: Run, *, least: int, packet_ps: int
) -> tuple[RunResult, StretchedTime] | str:
    """Return the result for a tensor, and how it was found.

    Args:
        elements: Elements of the tensor.
        tolerance: By how much the time may be wrong, as a share.
        simulate: Runs the collective on smaller ones.
        least: Elements that fill all slots; smaller tensors are multiples of it.
        packet_ps: Time of a packet on the slowest link: that a tensor's last packets differ by.

    Returns:
        The result, and how it was found; or why it can't be: it is too small, or the error would
        be too large.
    """
    known: dict[int, RunResult] = {}
    why, share = "its tensors fill all slots too few times", _LEAST_SHARE
    while share >= _MOST_SHARE:
        step = -(-elements // (share * least)) * least
        share //= 2
        if 2 * _RUNS * step > elements:
            return why
        sizes = [number * step for number in range(1, _RUNS + 1)]
        for size in sizes:
            if size not in known:
                known[size] = simulate(size)
        runs = [known[size] for size in sizes]
        times_ps = np.array([each.time_ps for each in runs])
        more = (elements - sizes[-1]) / (sizes[-1] - sizes[0])
        time_ps = _grown(times_ps[0], times_ps[-1], more)
        error_ps = np.ptp(np.diff(times_ps)) * (_RUNS - 1) * more + packet_ps
        error = float(error_ps) / time_ps
        if error <= tolerance:
            return _stretched(runs[0], runs[-1], more), StretchedTime(step, elements, error)
        why = f"the time might be wrong by {100 * error:.3f} %"
    return why


def _grown(first: float, last: float, more: float) -> int:
    """Return what a count comes to that was `first`, then `last`, and grows on."""
    return max(round(last + (last - first) * more), 0)


def _stretched(first: RunResult, last: RunResult, more: float) -> RunResult:
    """Return the result of the whole tensor; bytes over time are the last run's, drawn out."""
    link_bytes = {
        name: _grown(first.link_bytes.get(name, 0), size, more)
        for name, size in last.link_bytes.items()
    }
    time_ps = _grown(first.time_ps, last.time_ps, more)
    series = {name: _drawn_out(each, link_bytes[name]) for name, each in last.link_series.items()}
    counts: dict[str, Any] = {
        name: _grown(getattr(first, name), getattr(last, name), more)
        for name in ("retransmissions", "drops", "refusals", "trims", "pauses")
    }
    return replace(
        last,
        time_ps=time_ps,
        finish_ps=_all_grown(first.finish_ps, last.finish_ps, more),
        wire_bytes=_all_grown(first.wire_bytes, last.wire_bytes, more),
        link_bytes=link_bytes,
        bin_ps=max(-(-last.bin_ps * time_ps // max(last.time_ps, 1)), 1),
        link_series=series,
        owner_series={name: each[None, :] for name, each in series.items()},
        queue_series={},
        memory_series={},
        drop_counts=[],
        notes=[],
        left_out=_grown(first.left_out + len(first.notes), last.left_out + len(last.notes), more),
        **counts,
    )


def _all_grown(first: list[int], last: list[int], more: float) -> list[int]:
    return [_grown(*each, more) for each in zip(first, last, strict=True)]


def _drawn_out(series: npt.NDArray[np.int64], total: int) -> npt.NDArray[np.int64]:
    """Return a series with another total."""
    sums = np.cumsum(series)
    if not len(sums) or not sums[-1]:
        return series
    return np.diff(np.rint(sums * (total / sums[-1])).astype(np.int64), prepend=0)
