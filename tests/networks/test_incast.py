"""Congestion control at a link that many hosts send to at once."""

from __future__ import annotations

import pytest

from ringleaf.experiments.studies.incast import Incast, run_incast
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.hosts.controllers.dctcp import MARK_PACKETS

SENDERS = 6
LEAST_GOODPUT = {"dcqcn": 0.3, "dcqcn-hpcc": 0.3, "dcqcn-mellanox": 0.3, "timely": 0.6}
"""Of those whose rate is still on its way up; the others fill the link.

DCQCN's alpha is 1 at first, so every notice halves the rate.
"""
LEAST_JAIN = {"timely": 0.7, "pfabric": 0.7}
"""TIMELY has no fixed point; flows of one size are equal to pFabric."""


@pytest.fixture(scope="module")
def runs() -> dict[str, Incast]:
    return {name: run_incast(name, senders=SENDERS, size_bytes=1 << 20) for name in CONTROLLERS}


@pytest.mark.parametrize("name", CONTROLLERS)
def test_the_link_is_used_and_shared_fairly(runs: dict[str, Incast], name: str) -> None:
    assert runs[name].goodput > LEAST_GOODPUT.get(name, 0.97)
    assert runs[name].jain > LEAST_JAIN.get(name, 0.9)
    assert runs[name].result.drops == 0


def test_a_fixed_window_fills_the_queue_and_the_others_keep_it_short(
    runs: dict[str, Incast],
) -> None:
    threshold_bytes = MARK_PACKETS * 4096

    assert 0.5 * threshold_bytes < runs["dctcp"].mean_queue_bytes < 1.5 * threshold_bytes
    assert runs["dcqcn"].mean_queue_bytes < 1.5 * threshold_bytes
    assert runs["fixed"].mean_queue_bytes > 4 * threshold_bytes
