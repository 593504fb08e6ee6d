"""UGAL's table rows by hand, its options, and a network whose switches take both ways."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError
from ringleaf.ina.registry import find_system
from ringleaf.networks.adaptive import adaptive_rows
from ringleaf.networks.mininet.fabric import LiveSettings
from ringleaf.networks.mininet.network import LiveTestbed, MininetNetwork
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.graph import port
from ringleaf.topologies.registry import build
from ringleaf.topologies.valiant import with_ugal

GRAPH = with_ugal(build("dragonfly,a=2,p=1,h=1"), 1)
"""Three groups of two routers with a host each: the detour is by the third group."""

OPTIONS = NetworkOptions(program="ugal")


def test_rows_of_a_first_switch_by_hand() -> None:
    """To h2 it is s0-s2 or s0-s1-s4-s5-s3-s2; to h5, s0-s1-s4-s5 or s0-s2-s3-s5."""
    rows, _ = adaptive_rows(GRAPH)["s0"]
    near, across = port(GRAPH, "s0", "s1"), port(GRAPH, "s0", "s2")
    assert rows.table == "first_switch"
    assert rows.calls == (("weigh", ("port", "detour_port", "links", "detour_links")),)
    assert [match for match, *_ in rows.contents()] == [
        (ipv4(GRAPH, "h0"), ipv4(GRAPH, dst)) for dst in ("h2", "h3", "h4", "h5")
    ]
    assert rows.arguments.tolist() == [
        [across, near, 1, 5],
        [across, near, 2, 4],
        [near, across, 2, 4],
        [near, across, 3, 3],
    ]


def test_a_flowlet_begins_after_the_longest_round_trip() -> None:
    """From h0 to h2 and back by seven links each way, of 1 us and 4096 bytes at 100 Gbit/s."""
    round_trip_us = 14 * (1 + 8 * 4096 / 100e3)
    assert 18 < round_trip_us < 19
    for _, pause in adaptive_rows(GRAPH).values():
        assert next(pause.entities()).is_default_action
        assert pause.arguments.tolist() == [[19]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (NetworkOptions(), "adaptive routes need switches that run ugal, got forward"),
        (replace(OPTIONS, system=find_system("switchml")), "that run ugal, got one that aggreg"),
    ],
)
def test_switches_that_can_not_choose_are_refused(options: NetworkOptions, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        VirtualNetwork(GRAPH, options)


def test_options_refuse_two_programs() -> None:
    with pytest.raises(ConfigError, match="hpcc needs switches that run hpcc, got ugal"):
        NetworkOptions(program="ugal", cc="hpcc")


def test_bmv2_sees_no_queue_to_choose_by() -> None:
    message = "options: routes: BMv2's queues are in the kernel, and so it chooses no ways by them"
    with pytest.raises(ConfigError, match=message):
        MininetNetwork(LiveTestbed(GRAPH, LiveSettings(switch="bmv2")), OPTIONS)


def test_flows_that_meet_a_queue_take_the_detour_and_others_do_not() -> None:
    """Three hosts of each of three groups send to all others, over a link to each other group."""
    network = VirtualNetwork(with_ugal(build("dragonfly,a=1,p=3,h=2"), 1), OPTIONS)
    schedule = ALGORITHMS["alltoall"].build(9)
    run = network.run(schedule, network.arrays(9 << 12, schedule=schedule))
    assert run.retransmissions == 0
    for switch in network.switches.values():
        seen, detour = (
            switch.read_registers(f"Forwarding.detour_if.{name}").items()
            for name in ("last_seen", "last_detour")
        )
        flows = {slot for slot, time in seen if time}
        assert {slot for slot, taken in detour if taken} < flows
        assert any(taken for _, taken in detour)
