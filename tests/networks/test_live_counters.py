"""A live run's result, from the counters of hosts and switches; without root."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from ringleaf.networks.live.hosts import LiveOutcome
from ringleaf.networks.live.processor import Stopwatch
from ringleaf.networks.mininet.network import MininetNetwork, difference, summarise
from ringleaf.networks.outcome import ProcessorSeconds, forbidden_by
from ringleaf.topologies.registry import build

USAGE = ProcessorSeconds(1.0, 2, 0.0, 0.0, 0.0, 0.0, is_one_thread=True)


@pytest.mark.parametrize(
    ("ports", "peak"),
    [
        ([{"peak_queue_bytes": 300}, {"peak_queue_bytes": 500}], 500),
        ([{"peak_queue_bytes": 0}, {"peak_queue_bytes": 0}], 0),
        ([{}, {}], None),  # BMv2, whose queues are in the kernel
    ],
)
def test_the_fullest_queue_is_known_of_switches_that_tell(
    ports: list[Mapping[str, int]], peak: int | None
) -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=2")
    counted = defaultdict[str, int](int)
    outcome = LiveOutcome([1, 1], [counted, counted], Stopwatch(lambda: 0.0))
    moved = {"s0": [Counter(port) for port in ports]}

    result = summarise(graph, outcome, moved, wall_s=1.0, usage=USAGE)

    assert result.peak_queue_bytes == peak


def test_a_second_runs_fullest_queue_is_its_own() -> None:
    """Packets are counted on and on; a peak is that since the counters were last read."""
    before = {"s0": [{"tx_packets": 4, "peak_queue_bytes": 900}]}
    after = {"s0": [{"tx_packets": 9, "peak_queue_bytes": 700}]}
    assert difference(after, before) == {"s0": [{"tx_packets": 5, "peak_queue_bytes": 700}]}


def test_a_run_tells_what_programs_forbade_in_it_and_not_before() -> None:
    """A switch that has restarted in the run begins to count again, s1 here."""
    counts = [
        {"s0": {"assert": 4}, "s1": {"assert": 9}},
        {"s0": {"assert": 6, "assume": 1}, "s1": {"assert": 2}},
    ]
    port = dict.fromkeys(("tx_packets", "tx_bytes", "rx_packets", "dropped"), 0)
    settings = SimpleNamespace(switch="embedded")
    fabric: Any = SimpleNamespace(
        counters=lambda: {"s0": [port, port]},
        forbidden=lambda: forbidden_by(counts.pop(0)),
        settings=settings,
    )
    network = object.__new__(MininetNetwork)
    network.graph = build("leafspine,leaves=1,spines=0,hosts=2")
    network._fabric, network._circuits = fabric, None
    counted = defaultdict[str, int](int)
    outcome = LiveOutcome([1, 1], [counted, counted], Stopwatch(lambda: 0.0))

    result = network._result(outcome, network._count(), 1.0)

    assert result.forbidden == {("s0", "assert"): 2, ("s0", "assume"): 1}
