"""HPCC with the telemetry that switches write: `p4/hpcc.p4` on the way, hosts at its ends."""

from __future__ import annotations

import pytest
from finsy import P4TableEntry

from ringleaf.errors import ConfigError
from ringleaf.ina.registry import find_system
from ringleaf.networks.faults import LinkRate
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build
from studies.incast import run_incast

SENDERS = 6


def test_an_incast_fills_the_link_up_to_eta_with_next_to_no_queue() -> None:
    """Li et al., SIGCOMM 2019, section 3: utilisation is held at 0.95, so queues drain."""
    run = run_incast("hpcc", senders=SENDERS, size_bytes=4 << 20)
    assert 0.85 < run.goodput < 0.97
    assert run.mean_queue_bytes < 8 * 4096
    assert run.result.drops == run.result.retransmissions == 0


def test_options_take_the_program_that_hpcc_needs_and_refuse_others() -> None:
    assert NetworkOptions(cc="hpcc").switch_program == "hpcc"
    assert NetworkOptions(cc="swift", program="tensorexpress").switch_program == ("tensorexpress")
    with pytest.raises(ConfigError, match="hpcc needs switches that run hpcc, got tensorexpress"):
        NetworkOptions(cc="hpcc", program="tensorexpress")
    with pytest.raises(ConfigError, match="hpcc needs switches that run hpcc, got one that"):
        NetworkOptions(cc="hpcc", system=find_system("switchml"))


def test_groups_whose_system_has_a_program_of_its_own_are_refused() -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=2")
    options = NetworkOptions(cc="hpcc", lanes=64)
    group = Group(1, ("h0", "h1"), (), find_system("switchml"))
    with pytest.raises(ConfigError, match="hpcc needs switches that run hpcc, got one that"):
        VirtualNetwork(graph, options, groups=[group])
    VirtualNetwork(graph, options, groups=[Group(1, ("h0",), ("h1",), find_system("omnireduce"))])


def test_switches_tell_the_rate_that_a_fault_leaves() -> None:
    """Else hosts would take the bytes that a slow link sends for a tenth of what it could."""
    graph = build("leafspine,leaves=1,spines=0,hosts=2")
    network = VirtualNetwork(graph, NetworkOptions(cc="hpcc"))

    def told() -> list[int]:
        entries = [each for each in network._switches.items["s0"] if isinstance(each, P4TableEntry)]
        actions = [each.action for each in entries if each.table_id == "port_rates"]
        return sorted(each.args["kbps"] for each in actions if each is not None)

    troubles = network._troubles
    troubles.begin([LinkRate(0, ("s0", "h1"), 10**10)], now_ps=0)
    assert told() == [10_000_000, 100_000_000]
    network.restart("s0")
    assert told() == [10_000_000, 100_000_000]
    troubles.settle(0)
    assert told() == [100_000_000, 100_000_000]
