"""The benchmark measures what it says: the packets go through; how fast is not asserted."""

from __future__ import annotations

import pytest
from program_cases import BUILT, PROGRAMS

from ringleaf.errors import ConfigError
from switches.bench import Workload, make_switch, measure, measure_compile
from switches.program import Program
from switches.workloads import aggregation, forwarding


def test_forwarded_packets_all_leave() -> None:
    workload = forwarding(BUILT)
    ports = [workload.switch.process(*packet)[0][0] for packet in workload.packets[:64]]

    assert set(ports) == {1, 3, 4, 5, 7}
    speed = measure(workload, seconds=0.02)
    assert speed.sent_per_s == pytest.approx(speed.received_per_s)
    assert speed.ns_per_packet == pytest.approx(1e9 / speed.received_per_s)


def test_aggregation_goes_on_from_round_to_round() -> None:
    """As many results leave as updates come in: stale blocks would be dropped."""
    workload = aggregation(BUILT, lanes=64, children=4)
    out = [len(workload.switch.process(*packet)) for packet in workload.packets[:8]]

    assert out == [0, 0, 0, 4, 0, 0, 0, 4]
    speed = measure(workload, seconds=0.05)
    assert speed.sent_per_s == pytest.approx(speed.received_per_s)


def test_measuring_nothing_is_refused() -> None:
    switch = forwarding(BUILT).switch
    with pytest.raises(ConfigError, match="measure: needs packets, got none"):
        measure(Workload(switch, []))


def test_packets_longer_than_heads_are_refused() -> None:
    switch = make_switch(Program.load(BUILT / "forward.json"), ports=1)
    with pytest.raises(ConfigError, match="must fit a head of 128 bytes, got 129"):
        measure(Workload(switch, [(1, bytes(129))]))


def test_compile_times_are_of_two_processes() -> None:
    times = measure_compile(PROGRAMS / "padding.json")
    assert 0 < times.cached_s < times.cold_s
