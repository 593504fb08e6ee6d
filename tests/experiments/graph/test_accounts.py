"""Accounts of a replay, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from ringleaf.experiments.workloads.graph.accounts import Spending, length
from ringleaf.experiments.workloads.graph.figures import draw_spending
from ringleaf.experiments.workloads.graph.results import WorkResults


def test_time_that_spans_share_counts_once() -> None:
    """Together they cover 0 to 6, with one inside another, and 8 to 9."""
    assert length([(8, 9), (2, 6), (0, 4), (3, 4), (6, 6)]) == 7
    assert length([]) == 0


def test_ranks_on_an_axis_are_whole_numbers() -> None:
    """Of four ranks, an axis of matplotlib's own has 0.5 and 1.5, too."""
    results = SimpleNamespace(spending=[Spending(0, 10**9, 0)] * 4, clock="simulated")
    axes = draw_spending(cast("WorkResults", results)).axes[0]
    assert [tick for tick in axes.get_xticks() if 0 <= tick <= 3] == [0, 1, 2, 3]
