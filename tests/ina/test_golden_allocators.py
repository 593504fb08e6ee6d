"""Allocators of switches' memory, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from ringleaf.core.units import PS_PER_MS
from ringleaf.ina.allocation import ALLOCATORS, Claim


def claim(job: int, sends_ms: int, **facts: int) -> Claim:
    """A job that sends for some milliseconds with one entry, and computes for 2 ms; ten entries
    are its line's rate.
    """
    plain = Claim(job, 1, 100, 125_000 * sends_ms, 2 * PS_PER_MS, 0, 10**9, 10**10)
    return replace(plain, **facts)


def test_equal() -> None:
    """Of 20, the one that can use 2 has them, and the others halves of 18."""
    jobs = [claim(1, 1), claim(2, 1, most=2), claim(3, 1)]
    assert ALLOCATORS["equal"].allot(jobs, 20) == [9, 2, 9]
    assert ALLOCATORS["equal"].allot([claim(1, 1), claim(2, 9, least=4)], 3) == [3, 0]


def test_inalloc() -> None:
    """Entries go where they save the largest part of a job's best time, not the most time.

    The first takes 2 + 4 / e of 2.4 ms; the second 100 + 5 / e of 100.5. A second entry saves 2
    of 2.4 ms, or 2.5 of 100.5; a third 0.67 of 2.4.
    """
    jobs = [claim(1, 4), claim(2, 5, left_ps=100 * PS_PER_MS)]
    assert ALLOCATORS["inalloc"].allot(jobs, 4) == [3, 1]


def test_inalloc_s_deadlines_have_a_tenth_of_room() -> None:
    """With 2 entries it takes 4 ms, taken to be 4.4; with 3, 3.33, taken to be 3.67."""
    late = claim(2, 1000)
    for due_us, entries in ((4_400, 2), (4_390, 3)):
        jobs = [claim(1, 4, due_ps=due_us * 10**6), late]
        assert ALLOCATORS["inalloc"].allot(jobs, 5) == [entries, 5 - entries]
