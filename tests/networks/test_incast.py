"""Congestion control at a link that many hosts send to at once."""

from __future__ import annotations

import pytest

from ringleaf.experiments.studies.incast import Incast, run_incast
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.hosts.controllers.dctcp import MARK_PACKETS

SENDERS = 6
LEAST_GOODPUT = {"fixed": 0.97, "dctcp": 0.97, "dcqcn": 0.3}
"""DCQCN is still on its way up from the start, where alpha is 1 and every CNP halves the rate."""


@pytest.fixture(scope="module")
def runs() -> dict[str, Incast]:
    return {name: run_incast(name, senders=SENDERS, size_bytes=1 << 20) for name in CONTROLLERS}


@pytest.mark.parametrize("name", CONTROLLERS)
def test_the_link_is_used_and_shared_fairly(runs: dict[str, Incast], name: str) -> None:
    assert runs[name].goodput > LEAST_GOODPUT[name]
    assert runs[name].jain > 0.9
    assert runs[name].result.drops == 0


def test_a_fixed_window_fills_the_queue_and_the_others_keep_it_short(
    runs: dict[str, Incast],
) -> None:
    threshold_bytes = MARK_PACKETS * 4096

    assert 0.5 * threshold_bytes < runs["dctcp"].mean_queue_bytes < 1.5 * threshold_bytes
    assert runs["dcqcn"].mean_queue_bytes < 1.5 * threshold_bytes
    assert runs["fixed"].mean_queue_bytes > 4 * threshold_bytes
