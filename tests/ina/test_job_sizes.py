"""The slots, windows and timeouts that jobs choose, worked out by hand.

Four hosts at one switch, 80 ps a byte; a round trip of 8 us, twice of which the slots fill.
"""

from __future__ import annotations

import numpy as np
import pytest

from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool, read_packet
from ringleaf.hosts.agent import AGENT_WORDS, READY, make_ring
from ringleaf.hosts.rc import MIN_TIMEOUT_PS
from ringleaf.ina import flight
from ringleaf.ina.atp import state as atp
from ringleaf.ina.holdings import entry_bps
from ringleaf.ina.netreduce import state as netreduce
from ringleaf.ina.omnireduce import state as omnireduce
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.switchml import state as switchml
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.registry import build

RTT_PS = 8_000_000
FLIGHTS = {
    "switchml": switchml.FLIGHT, "vote": switchml.FLIGHT, "tern": switchml.FLIGHT,
    "panama": switchml.FLIGHT, "omnireduce-switch": switchml.FLIGHT, "atp": atp.FLIGHT,
    "omnireduce": omnireduce.FLIGHT,
}  # fmt: skip


def job_of(
    system: str, *, slots: int | None = None, rtt_ps: int = RTT_PS, servers: int = 0,
    share: ResourceShare | None = None,
) -> tuple[int, int]:  # fmt: skip
    """Return a job's window in bytes, and its first worker's least timeout."""
    graph, store = build("leafspine,leaves=1,spines=1,hosts=4"), Store()
    make_pool(store, size=4, head_bytes=64, field_count=0, lane_count=0)
    names = ["h0", "h1", "h2", "h3"]
    request = JobRequest(
        number=1, members=names[: 4 - servers], servers=names[4 - servers :],
        share=share or ResourceShare(), ring=0, lanes=64, slots=slots, rtt_ps=rtt_ps, ecmp=False,
    )  # fmt: skip
    job = SYSTEMS[system].join(graph, store, request)
    own = job.agents[0].block + AGENT_WORDS
    words = store.arena.words
    if system == "netreduce":
        return job.window_bytes, int(words[words[own + netreduce.RC] + MIN_TIMEOUT_PS])
    return job.window_bytes, int(words[own + FLIGHTS[system] + flight.MIN_TIMEOUT_PS])


@pytest.mark.parametrize("system", [*FLIGHTS, "netreduce", "sharp"])
@pytest.mark.parametrize(("told", "tos"), [({}, 2), ({"priority": 5}, 0xA2)])
def test_workers_send_from_their_hosts_as_urgently_as_they_are_told(
    system: str, told: dict[str, int], tos: int
) -> None:
    """The third of four hosts; without a word a tensor has the lowest priority."""
    graph, store = build("leafspine,leaves=1,spines=1,hosts=4"), Store(1 << 16)
    make_pool(store, size=64, head_bytes=512, field_count=0, lane_count=0)
    request = JobRequest(
        number=2, members=["h1", "h0", "h2"], servers=["h3"], share=ResourceShare(),
        ring=make_ring(store, 64), lanes=64, slots=8, rtt_ps=RTT_PS, ecmp=False,
    )  # fmt: skip
    job = SYSTEMS[system].join(graph, store, request)
    at = store.register_memory(256)
    store.arena.memory[at : at + 256].view(np.float32)[:] = 1
    job.start(store.arena, 2, at, 64, 7, np.dtype(np.float32), 0, **told)
    agent = job.agents[2]
    assert agent.host == 2
    packet = -1
    while packet < 0 and store.arena.words[agent.block + READY]:
        packet = agent.protocol.transmit(store.arena, agent.block, 0, 0)
    frame = read_packet(store.arena, packet)
    assert frame[6:12] == mac(graph, "h2", 1).to_bytes(6)
    assert frame[26:30] == ipv4(graph, "h2").to_bytes(4)
    assert frame[15] == (2 if system == "netreduce" else tos)  # whose queue pairs have no priority


def frame_ps(header: int, values: int) -> int:
    """Return the time of a packet on the line: 42 bytes of headers, and 24 around the frame."""
    return 80 * (42 + header + values + 24)


@pytest.mark.parametrize(
    ("system", "lanes", "packet_ps"),
    [
        ("switchml", 64, frame_ps(10, 256)),
        ("panama", 64, frame_ps(10, 256)),
        ("omnireduce-switch", 64, frame_ps(14, 256)),
        ("vote", 24, frame_ps(10, 96)),
        ("tern", 48, frame_ps(14, 576)),  # sums come back with six bits an element
    ],
)
def test_slots_fill_two_round_trips(system: str, lanes: int, packet_ps: int) -> None:
    """The least timeout is two round trips, or twice the time of all slots' packets."""
    slots = 2 * RTT_PS // packet_ps
    window_bytes, timeout_ps = job_of(system)
    assert window_bytes == 4 * slots * lanes
    assert timeout_ps == 2 * max(RTT_PS, slots * packet_ps)
    assert job_of(system, rtt_ps=1000)[0] == 4 * 8 * lanes  # eight at least
    assert job_of(system, slots=100) == (400 * lanes, 2 * max(RTT_PS, 100 * packet_ps))


def test_a_netreduce_window_is_a_power_of_two() -> None:
    """16,000,000 / 27,040 packets are 591; the timeout has two windows' time for others."""
    packet_ps = frame_ps(16, 256)
    assert packet_ps == 27_040
    assert job_of("netreduce") == (4 * 512 * 64, 2 * RTT_PS + 4 * 512 * packet_ps)
    assert job_of("netreduce", rtt_ps=1000)[0] == 4 * 8 * 64
    assert job_of("netreduce", slots=100) == (4 * 64 * 64, 2 * RTT_PS + 4 * 64 * packet_ps)
    half = ResourceShare(0, 32)  # 4,096 slots, of which it has a part
    assert job_of("netreduce", share=half)[0] == 4 * 128 * 64


@pytest.mark.parametrize(("servers", "slots", "window"), [(1, 581, 1024), (0, 465, 512)])
def test_an_atp_window_is_a_power_of_two(servers: int, slots: int, window: int) -> None:
    """Each worker that is a server, too, sends a result for every fourth block."""
    load = 1 + (0 if servers else 1) / 4
    assert 2 * RTT_PS // round(frame_ps(22, 256) * load) == slots
    assert job_of("atp", servers=servers) == (4 * window * 64, 2 * RTT_PS)
    assert job_of("atp", servers=servers, slots=100)[0] == 4 * 128 * 64
    assert job_of("atp", servers=servers, rtt_ps=1000)[0] == 4 * 8 * 64


@pytest.mark.parametrize(("servers", "load"), [(1, 3.0), (0, 2.0)])
def test_omnireduce_has_as_many_slots_for_each_aggregator(servers: int, load: float) -> None:
    """A server sends a result to each of three workers.

    Where all four are both, each sends an update, and four results of every fourth slot.
    """
    turn_ps = round(frame_ps(12 + 8, 256) * load)
    slots, of = 2 * RTT_PS // turn_ps, servers or 4
    slots = -(-slots // of) * of
    assert job_of("omnireduce", servers=servers) == (
        4 * slots * 64,
        2 * max(RTT_PS, slots * turn_ps),
    )
    assert job_of("omnireduce", servers=servers, slots=9)[0] == 4 * 9 * 64


@pytest.mark.parametrize(("elements", "lanes"), [(64, 64), (64, 256), (768, 24)])
def test_an_entrys_goodput_is_a_block_in_half_a_round_trip(elements: int, lanes: int) -> None:
    """Four links of 1 us, and the values on each of them."""
    graph = build("leafspine,leaves=1,spines=1,hosts=4")
    rtt_ps = 4 * (1_000_000 + 80 * 4 * lanes)
    assert entry_bps(graph, elements, lanes) == 2 * 32 * elements * 10**12 // rtt_ps


@pytest.mark.parametrize(("host_rate", "rate"), [("100G", "50G"), ("50G", "100G")])
def test_slots_are_of_the_slowest_link(host_rate: str, rate: str) -> None:
    """Racks at 100 Gbit/s whose switches, or whose hosts, are joined at half of that."""
    graph = build(f"leafspine,leaves=2,spines=1,hosts=2,rate={rate},host_rate={host_rate}")
    store = Store()
    make_pool(store, size=4, head_bytes=64, field_count=0, lane_count=0)
    request = JobRequest(
        number=1, members=["h0", "h1", "h2", "h3"], servers=(), share=ResourceShare(), ring=0,
        lanes=64, slots=None, rtt_ps=RTT_PS, ecmp=False,
    )  # fmt: skip
    job = SYSTEMS["switchml"].join(graph, store, request)
    assert job.window_bytes == 4 * 64 * (2 * RTT_PS // (2 * frame_ps(10, 256)))
