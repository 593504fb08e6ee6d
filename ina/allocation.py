"""Allocators, which divide the switches' memory among the jobs that run, and divide it again.

A job has a holding (`ina/holdings.py`). Whenever a job begins or ends, an allocator says how many
entries each shall have; where they lie is found here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ringleaf.core.registry import Registry
from ringleaf.core.units import PS_PER_S
from ringleaf.ina.holdings import Holding

OWN = "own"
"""The name for no allocator: each system divides memory as it does by itself."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A running job, as an allocator sees it.

    Attributes:
        job: Its number.
        least: The fewest entries that it can run with; fewer, and it has to wait.
        most: The most entries that it can use.
        left_bytes: The rest of all its gradients, until its end.
        left_ps: The rest of its computing time.
        hidden_ps: The part of it in which gradients are sent, too: its backward passes.
        entry_bps: Goodput that an entry brings.
        link_bps: The most goodput.
        due_ps: The time left until its deadline, below 0 behind it; None: it has none.
    """

    job: int
    least: int
    most: int
    left_bytes: int
    left_ps: int
    hidden_ps: int
    entry_bps: int
    link_bps: int
    due_ps: int | None = None

    def time_ps(self, entries: int) -> float:
        """Return the time until its end with so many entries, if backward passes hide sending."""
        rate_bps = min(max(entries, 1) * self.entry_bps, self.link_bps)
        return self.left_ps + max(8 * self.left_bytes * PS_PER_S / rate_bps - self.hidden_ps, 0.0)


class Allocator(Protocol):
    """A rule by which jobs get entries."""

    name: str
    title: str

    def allot(self, claims: Sequence[Claim], entries: int) -> list[int]:
        """Return the entries of each job, at most so many together; a job with too few waits."""


ALLOCATORS: Registry[Allocator] = Registry("allocators", "allocator", "ina/allocators", "ALLOCATOR")


def serve_least(claims: Sequence[Claim], entries: int) -> list[int]:
    """Return the fewest entries of each job, in their order, as far as there are enough."""
    allotted = []
    for claim in claims:
        fits = claim.least <= entries
        allotted.append(claim.least if fits else 0)
        entries -= allotted[-1]
    return allotted


def lay_out(
    now: Mapping[int, Holding], sizes: Mapping[int, int], entries: int
) -> dict[int, Holding]:
    """Return a holding for each job, of which no two overlap; few jobs change theirs.

    A job keeps its first entry if there is room behind it. Others get the first gap that is large
    enough. If there is none for one of them, all jobs lie without gaps, in the order of now.

    Args:
        now: The jobs' holdings.
        sizes: The number of entries of each job; together at most `entries`.
        entries: Number of all entries.
    """
    assert sum(sizes.values()) <= entries
    placed: dict[int, Holding] = {}
    for job in sorted(sizes, key=lambda each: (-sizes[each], each)):
        size = sizes[job]
        stay = Holding(now[job].first, size)
        if not size:
            placed[job] = Holding()
        elif now[job].entries and stay.stop <= entries and _fits(stay, placed):
            placed[job] = stay
    for job in sorted(set(sizes) - set(placed), key=lambda each: (-sizes[each], each)):
        starts = [0, *(each.stop for each in placed.values())]
        gaps = (Holding(start, sizes[job]) for start in sorted(starts))
        holding = next((gap for gap in gaps if gap.stop <= entries and _fits(gap, placed)), None)
        if holding is None:
            return _close_ranks(now, sizes)
        placed[job] = holding
    return placed


def _fits(holding: Holding, placed: Mapping[int, Holding]) -> bool:
    return not any(holding.overlaps(other) for other in placed.values())


def _close_ranks(now: Mapping[int, Holding], sizes: Mapping[int, int]) -> dict[int, Holding]:
    placed, first = {}, 0
    for job in sorted(sizes, key=lambda each: (not now[each].entries, now[each].first, each)):
        placed[job] = Holding(first, sizes[job]) if sizes[job] else Holding()
        first += sizes[job]
    return placed
