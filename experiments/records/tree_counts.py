"""Counts of aggregation trees that were built again, as values of results' rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ringleaf.core.units import format_count, format_time
from ringleaf.networks.outcome import RunResult


def counts_of(outcome: RunResult, detect_ps: int | None) -> dict[str, Any]:
    """Return the values of a run by name; none if no tree was built again.

    Args:
        outcome: The run.
        detect_ps: The time from a fault until routes and trees are others.
    """
    if not outcome.rebuilt:
        return {}
    took = [each.resumed_ps - each.at_ps for each in outcome.rebuilt if each.resumed_ps is not None]
    return {
        "rebuilt": len(outcome.rebuilt),
        "detect_ps": detect_ps,
        "resume_ps": max(took, default=None),
    }


def tell(rebuilt: int, detect_ps: int | None, resume_ps: int | None) -> Iterator[str]:
    """Yield a phrase on trees, if some were built again."""
    if not rebuilt:
        return
    detected = "" if detect_ps is None else f" {format_time(detect_ps) if detect_ps else '0'} later"
    resumed = "" if resume_ps is None else f", results {format_time(resume_ps)} after that"
    yield f"{format_count(rebuilt, 'aggregation tree')} built again{detected}{resumed}"
