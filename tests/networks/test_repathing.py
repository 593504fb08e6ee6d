"""Hosts that lead their connections around links that are down, without a word from switches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.faults import parse_faults
from ringleaf.core.tensors import INT32
from ringleaf.errors import BackendError, ConfigError
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.registry import build

TOPOLOGY = "leafspine,leaves=2,spines=4,hosts=2"
RANKS, ELEMENTS = 4, 40_000


def run(faults: str, **options: Any) -> RunResult:
    given = NetworkOptions(ecmp=True, faults=parse_faults(faults, "faults"), **options)
    network = VirtualNetwork(build(TOPOLOGY), given)
    schedule = ALGORITHMS["ring"].build(RANKS, size_bytes=4 * ELEMENTS)
    arrays = network.arrays(ELEMENTS, INT32, schedule)
    for rank, array in enumerate(arrays):
        array[:] = np.arange(ELEMENTS) * (rank + 1)
    result = network.run(schedule, arrays)
    assert all(np.array_equal(array, np.arange(ELEMENTS) * 10) for array in arrays)
    return result


def test_connections_find_the_spine_that_is_left() -> None:
    """Three of four spines are gone for good, and nobody tells the leaves."""
    down = "s2 down at 5us,s3 down at 5us,s4 down at 5us"
    with pytest.raises(BackendError, match="nothing has got through"):
        run(down)
    result = run(down, repath=1)
    assert result.repaths > 0
    assert result.time_ps < 20_000_000_000, "tens of milliseconds would be timeouts that back off"


def test_where_all_is_well_nothing_changes() -> None:
    plain, careful = run(""), run("", repath=1)
    assert careful.repaths == 0
    assert plain.time_ps == careful.time_ps
    assert plain.link_bytes == careful.link_bytes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repath": 1}, "repath leads elsewhere by ecmp alone, got 1"),
        ({"repath": 0, "ecmp": True}, "repath must be >= 1, got 0"),
    ],
)
def test_what_can_lead_nowhere_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        NetworkOptions(**options)
