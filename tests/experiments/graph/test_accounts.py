"""Accounts of a replay, by hand."""

from __future__ import annotations

from ringleaf.experiments.workloads.graph.accounts import length


def test_time_that_spans_share_counts_once() -> None:
    """Together they cover 0 to 6, with one inside another, and 8 to 9."""
    assert length([(8, 9), (2, 6), (0, 4), (3, 4), (6, 6)]) == 7
    assert length([]) == 0
