"""Congestion control at a link that many hosts send to at once."""

from __future__ import annotations

import pytest

from ringleaf.hosts.congestion.registry import CONTROLLERS
from studies.incast import Incast, run_incast

SENDERS = 6
LEAST_GOODPUT = {"dcqcn": 0.3, "hpcc": 0.75}
"""DCQCN's alpha is 1 at first, so every notice halves the rate; HPCC's aim is 0.95."""
LEAST_JAIN = {"pfabric": 0.7, "hpcc": 0.5}
"""Flows of one size are equal to pFabric; HPCC's steps are small for so short a run."""
SLOW = ("dcqcn-hpcc", "dcqcn-mellanox", "timely")
"""Their first steps down lead to the least rate, and their steps up take longer than these runs."""


@pytest.fixture(scope="module")
def runs() -> dict[str, Incast]:
    return {name: run_incast(name, senders=SENDERS, size_bytes=1 << 20) for name in CONTROLLERS}


@pytest.mark.parametrize("name", CONTROLLERS)
def test_the_link_is_used_and_shared_fairly(runs: dict[str, Incast], name: str) -> None:
    if name not in SLOW:
        assert runs[name].goodput > LEAST_GOODPUT.get(name, 0.97)
        assert runs[name].jain > LEAST_JAIN.get(name, 0.9)
    assert runs[name].result.drops == 0


def test_a_fixed_window_fills_the_queue_and_the_others_keep_it_short(
    runs: dict[str, Incast],
) -> None:
    """DCTCP's K for 10 Gbit/s is 65 packets of 1.5 kB (SIGCOMM 2010, section 3.4): 24 of 4 KiB."""
    threshold_bytes = 24 * 4096

    assert 0.5 * threshold_bytes < runs["dctcp"].mean_queue_bytes < 1.5 * threshold_bytes
    assert runs["dcqcn"].mean_queue_bytes < 1.5 * threshold_bytes
    assert runs["fixed"].mean_queue_bytes > 4 * threshold_bytes
