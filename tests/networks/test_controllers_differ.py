"""Controllers where flows meet: what each does to the queue, by hand, and that no two do the same.

Eight hosts send 1 MiB each to a ninth under one switch, at 100 Gbit/s and with 3 us per link. A
round trip is 12 us and a packet's time on four lines, and a BDP what a line carries in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.tensors import INT32
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build

SENDERS = 8
ELEMENTS = 1 << 18
BDP = 12.7e-6 * 100e9 / 8


@dataclass(frozen=True)
class Incast:
    """When flows are over, and the bytes queued over time, in the third quarter of the run."""

    finish_ps: tuple[int, ...]
    queue: tuple[int, ...]

    @property
    def level(self) -> float:
        """The mean of the queue, in BDPs."""
        return float(np.mean(self.queue)) / BDP


@cache
def incast(name: str) -> Incast:
    """Measure an incast under a controller."""
    marking = CONTROLLERS[name].marking
    options = NetworkOptions(cc=name, ecn=marking, watch_queues=True)
    graph = build(f"leafspine,leaves=1,spines=1,hosts={SENDERS + 1},rate=100G,delay=3us")
    network = VirtualNetwork(graph, options)
    rows = tuple(Transfer(0, i + 1, 0, i, Op.COPY) for i in range(SENDERS))
    schedule = Schedule(Collective.REDUCE, "incast", SENDERS + 1, SENDERS, rows)
    found = network.run(schedule, network.arrays(SENDERS * ELEMENTS, INT32, schedule))
    assert found.drops == found.retransmissions == 0
    queue = found.queue_series["s0", "h0"].sum(axis=0)
    quarter = found.time_ps // 4 // found.queue_bin_ps
    return Incast(tuple(found.finish_ps), tuple(queue[2 * quarter : 3 * quarter].tolist()))


QUEUES: Mapping[str, tuple[float, float]] = {
    "fixed": (10, 15),  # windows of two BDP, of which one is on the way
    "pfabric": (6.5, 7.5),  # windows of one
    "nscc": (0.1, 1),  # delays are above none, and below the target of a round trip
    "hpcc": (0, 0.1),  # below the links' rate: next to nothing
}
"""Least and most in BDPs, by the mathematics of each controller."""


@pytest.mark.parametrize("name", QUEUES)
def test_queues_are_as_long_as_the_controller_aims_at(name: str) -> None:
    least, most = QUEUES[name]
    assert least <= incast(name).level <= most


@pytest.mark.parametrize("name", QUEUES)
def test_no_other_of_these_controllers_has_such_a_queue(name: str) -> None:
    """So an expectation fails where another controller is in its place."""
    least, most = QUEUES[name]
    assert not any(least <= incast(other).level <= most for other in QUEUES if other != name)


def test_no_two_controllers_do_the_same() -> None:
    found = {name: incast(name) for name in CONTROLLERS.shipped()}
    assert len(set(found.values())) == len(found)
    assert np.all([each.finish_ps for each in found.values()])
