"""How long a job's workers wait at least before they send again, by hand.

It is twice the round trip, or twice the time of all packets in flight on the busiest link where
that is longer. Links have 100 Gbit/s, 80 ps a byte; frames have 24 bytes more on a line.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.hosts.rc.state import MIN_TIMEOUT_PS as RC_MIN_TIMEOUT_PS
from ringleaf.hosts.rc.state import QUIET_PS as RC_QUIET_PS
from ringleaf.ina.atp import job as atp
from ringleaf.ina.atp import state as atp_state
from ringleaf.ina.flight import MIN_TIMEOUT_PS, QUIET_PS
from ringleaf.ina.netreduce import job as netreduce
from ringleaf.ina.netreduce import state as netreduce_state
from ringleaf.ina.omnireduce import job as omnireduce
from ringleaf.ina.omnireduce import state as omnireduce_state
from ringleaf.ina.panama import job as panama
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.switchml import job as switchml
from ringleaf.ina.switchml import state as switchml_state
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.registry import build

RACK = "leafspine,leaves=1,spines=0,hosts=4,rate=100G"
SPINES = "leafspine,leaves=3,spines=3,hosts=2,rate=100G"
SWITCHML_PS = 80 * (42 + 10 + 4 * 64 + 24)
OMNIREDUCE_PS = 80 * (42 + 12 + 2 * 4 + 4 * 64 + 24)  # a packet has two columns of 32
NETREDUCE_PS = 80 * (42 + 12 + 4 + 4 * 64 + 24)  # a Base Transport Header, and a checksum


def timeouts_ps(job: ModuleType, place: int, graph: str, asked: JobRequest) -> tuple[int, int]:
    """Return a worker's least timeout, and what is added to each of its timeouts."""
    store = Store()
    agent = job.join(build(graph), store, asked).agents[0]
    words = store.arena.words
    if job is netreduce:  # its packets are its queue pairs'
        own = int(words[agent.block + AGENT_WORDS + netreduce_state.RC])
        return int(words[own + RC_MIN_TIMEOUT_PS]), int(words[own + RC_QUIET_PS])
    own = agent.block + AGENT_WORDS + place
    return int(words[own + MIN_TIMEOUT_PS]), int(words[own + QUIET_PS])


def least_ps(job: ModuleType, place: int, graph: str, asked: JobRequest) -> int:
    return timeouts_ps(job, place, graph, asked)[0]


@pytest.mark.parametrize(
    ("job", "place", "graph", "in_flight_ps"),
    [
        (switchml, switchml_state.FLIGHT, RACK, 16 * SWITCHML_PS),
        # three trees have four slots each, and all three are on hosts' links
        (panama, switchml_state.FLIGHT, SPINES, 12 * SWITCHML_PS),
        # the server's link carries a packet of each of three workers
        (omnireduce, omnireduce_state.FLIGHT, RACK, 16 * 3 * OMNIREDUCE_PS),
        (atp, atp_state.FLIGHT, RACK, 0),  # where queues take longer, workers only probe
    ],
)
def test_workers_wait_for_two_round_trips_or_all_that_is_in_flight(
    job: ModuleType, place: int, graph: str, in_flight_ps: int
) -> None:
    members = ["h0", "h1", "h2"] if graph == RACK else [f"h{n}" for n in range(6)]
    slots = 16 if graph == RACK else 12
    asked = JobRequest(1, members, ("h3",), ResourceShare(), 0, 64, slots, rtt_ps=1_000, ecmp=False)
    if in_flight_ps:
        assert least_ps(job, place, graph, asked) == 2 * in_flight_ps
    long_ps = in_flight_ps + 1
    assert least_ps(job, place, graph, replace(asked, rtt_ps=long_ps)) == 2 * long_ps


def test_a_slot_that_no_other_place_shares_brings_all_updates_to_one_link() -> None:
    """Of five slots and two places, three are one place's; four workers send to each."""
    asked = JobRequest(
        1, ["h0", "h1", "h2", "h3"], ("h4", "h5"), ResourceShare(), 0, 64, 5, 1_000, ecmp=False
    )
    rack = "leafspine,leaves=1,spines=0,hosts=6,rate=100G"
    in_flight_ps = 3 * 4 * OMNIREDUCE_PS
    assert least_ps(omnireduce, omnireduce_state.FLIGHT, rack, asked) == 2 * in_flight_ps


@pytest.mark.parametrize(("mtu_bytes", "least"), [(1024, 2 * 88_000), (256, 2 * 4_327_680)])
def test_round_trips_of_packets_larger_than_the_mtu_are_their_own(
    mtu_bytes: int, least: int
) -> None:
    """A link of 100 Gbit/s takes 81,920 ps for 1,024 bytes, and a round trip has four."""
    store, graph = Store(), build(f"{RACK},delay=1us")
    make_pool(store, size=64, head_bytes=2048, field_count=0, lane_count=0)
    options = NetworkOptions(mtu_bytes=mtu_bytes, lanes=256, slots=1)
    groups = [Group(1, ("h0", "h1", "h2"), (), SYSTEMS["switchml"])]
    endpoints = Endpoints(graph, store, options, groups, rtt_ps=1_000)
    own = endpoints.aggregators[0].agents[0].block + AGENT_WORDS + switchml_state.FLIGHT
    assert store.arena.words[own + MIN_TIMEOUT_PS] == least


def test_netreduces_queue_pairs_wait_for_all_packets_in_both_directions_twice() -> None:
    """And for two round trips on top of that."""
    asked = JobRequest(1, ["h0", "h1"], (), ResourceShare(), 0, 64, 16, rtt_ps=1_000, ecmp=False)
    assert least_ps(netreduce, 0, RACK, asked) == 2 * 1_000 + 4 * 16 * NETREDUCE_PS


@pytest.mark.parametrize(
    ("job", "place"),
    [
        (switchml, switchml_state.FLIGHT),
        (panama, switchml_state.FLIGHT),
        (omnireduce, omnireduce_state.FLIGHT),
        (atp, atp_state.FLIGHT),
        (netreduce, 0),
    ],
)
def test_a_networks_quiet_time_is_added_and_no_part_of_the_least_timeout(
    job: ModuleType, place: int
) -> None:
    asked = JobRequest(1, ["h0", "h1"], ("h3",), ResourceShare(), 0, 64, 16, 1_000, ecmp=False)
    least = least_ps(job, place, RACK, asked)
    assert timeouts_ps(job, place, RACK, replace(asked, quiet_ps=77)) == (least, 77)


@pytest.mark.parametrize(
    ("job", "place"),
    [
        (switchml, switchml_state.FLIGHT),
        (panama, switchml_state.FLIGHT),
        (omnireduce, omnireduce_state.FLIGHT),
    ],
)
def test_two_round_trips_are_added_for_each_more_that_paused_links_may_take(
    job: ModuleType, place: int
) -> None:
    """They are no part of the least timeout, which doubles up to 64 times."""
    asked = JobRequest(1, ["h0", "h1"], ("h3",), ResourceShare(), 0, 64, 1, 10_000_000, ecmp=False)
    paused = replace(asked, stretch=3, quiet_ps=77)
    assert timeouts_ps(job, place, RACK, paused) == (20_000_000, 2 * 20_000_000 + 77)
