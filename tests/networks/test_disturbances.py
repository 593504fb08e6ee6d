"""Links that fail and switches that restart in the middle of a run; runs that get nowhere."""

from __future__ import annotations

import pytest
import torch

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.units import FOREVER_PS, PS_PER_S, PS_PER_US
from ringleaf.errors import BackendError, ConfigError
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.faults import Agenda, Disturbance, LinkLoss, Restart
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build

TOPOLOGY = "leafspine,leaves=2,spines=1,hosts=2"
UP, DOWN = ("s0", "s2"), ("s2", "s0")


def run(*disturbances: Disturbance) -> tuple[VirtualNetwork, RunResult, list[torch.Tensor]]:
    network = VirtualNetwork(build(TOPOLOGY), NetworkOptions())
    tensors = [torch.full((1000,), 1.0) for _ in range(4)]
    schedule = ALGORITHMS["ring"].build(4)
    return network, network.run(schedule, tensors, disturbances=disturbances), tensors


def test_a_link_that_is_down_loses_everything_until_it_is_up_again() -> None:
    """Nothing crosses for 2 ms, so the run takes longer than that, and is right."""
    outage = 2000 * PS_PER_US
    down = [LinkLoss(0, each, 1.0) for each in (UP, DOWN)]
    up = [LinkLoss(outage, each, None) for each in (UP, DOWN)]

    network, outcome, tensors = run(*down, *up)

    assert outcome.time_ps > outage
    assert outcome.lost > 0
    assert all(bool((tensor == 4).all()) for tensor in tensors)
    assert network.drain() == 0


def test_one_direction_may_fail_alone() -> None:
    network, outcome, tensors = run(LinkLoss(0, UP, 1.0), LinkLoss(500 * PS_PER_US, UP, None))

    assert outcome.time_ps > 500 * PS_PER_US
    assert all(bool((tensor == 4).all()) for tensor in tensors)
    assert network.drain() == 0


def test_a_switch_that_restarts_forwards_again() -> None:
    network, _, tensors = run(Restart(5 * PS_PER_US, "s2"), Restart(6 * PS_PER_US, "s0"))

    assert all(bool((tensor == 4).all()) for tensor in tensors)
    assert network.drain() == 0


def test_a_network_whose_run_failed_midway_says_so() -> None:
    """Rank 1 has a value too large for fixed point, which is found when rank 0 has sent."""
    network = VirtualNetwork(build(TOPOLOGY), NetworkOptions(system=SYSTEMS["netreduce"]))
    tensors = [torch.full((1000,), 1.0) for _ in range(4)]
    tensors[1][7] = 1e6
    schedule = ALGORITHMS["netreduce"].build(4)
    with pytest.raises(ConfigError, match="netreduce: magnitudes must be at most"):
        network.run(schedule, tensors)

    tensors[1][7] = 1
    with pytest.raises(BackendError, match=r"got a collective of group 0, .* make a new network"):
        network.run(schedule, tensors)


def test_the_next_run_finds_links_as_they_were() -> None:
    network, quick, _ = run()
    network.run(
        ALGORITHMS["ring"].build(4),
        [torch.ones(1000) for _ in range(4)],
        disturbances=[LinkLoss(0, UP, 0.5), LinkLoss(PS_PER_S, UP, None)],
    )
    again = network.run(ALGORITHMS["ring"].build(4), [torch.ones(1000) for _ in range(4)])

    assert (again.lost, again.retransmissions) == (0, 0)
    assert quick.lost == 0


def test_a_run_that_gets_nowhere_says_who_waits_for_whom() -> None:
    with pytest.raises(
        BackendError,
        match=r"nothing has got through for [\d.]+ s of simulated .*got h0 waits for .*; --pcap ",
    ):
        run(LinkLoss(0, UP, 1.0))


def test_nothing_restarts_while_traces_are_recorded(tmp_path: pytest.TempPathFactory) -> None:
    network = VirtualNetwork(build(TOPOLOGY), NetworkOptions(record=tmp_path))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="restart: not while traces are recorded, got 's1'"):
        network.restart("s1")


def test_disturbances_come_in_order_of_time() -> None:
    late, early = Restart(30, "s1"), LinkLoss(10, UP, 0.5)
    both: list[Disturbance] = [late, early]
    agenda = Agenda(both, start_ps=100)

    assert agenda.next_ps == 110
    assert agenda.take_due(109) == []
    assert agenda.take_due(110) == [early]
    assert agenda.next_ps == 130
    assert agenda.take_rest() == [late]
    assert agenda.next_ps == FOREVER_PS
