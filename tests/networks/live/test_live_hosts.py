"""Hosts that are processes in network namespaces, without switches between them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import torch
from namespaces import ip, join, name_of, namespaces

from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.errors import BackendError
from ringleaf.networks.live.engine import LinkEnd
from ringleaf.networks.live.host_process import LivePlace
from ringleaf.networks.live.hosts import LiveHosts, LiveOutcome
from ringleaf.networks.live.state import MAX_FRAMES
from ringleaf.networks.live.surroundings import CrewSurroundings
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.addresses import format_ipv4, format_mac, ipv4, mac
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

pytestmark = pytest.mark.live
RATE_BPS = 1_000_000_000
GRAPH = "leafspine,leaves=1,spines=1,hosts=2,rate=1G"
ELEMENTS = 20_001
SO_TIMESTAMP = 29


def make_places(paths: list[Path], **line: float) -> list[LivePlace]:
    return [
        LivePlace(f"h{rank}", LinkEnd("eth0", RATE_BPS, **line), path)  # type: ignore[arg-type]
        for rank, path in enumerate(paths)
    ]


def make_schedule(elements: int = ELEMENTS) -> Schedule:
    return ALGORITHMS["ring"].build(2, size_bytes=4 * elements, hierarchy=(2,))


def run_pair(
    places: list[LivePlace], elements: int = ELEMENTS, **options: float | str
) -> LiveOutcome:
    """Run a ring between two hosts, and compare with the oracle bit for bit."""
    graph = build(GRAPH)
    crew = LiveHosts(graph, NetworkOptions(**options))  # type: ignore[arg-type]
    schedule = make_schedule(elements)
    tensors = crew.tensors(elements, schedule=schedule)
    generator = torch.Generator().manual_seed(1)
    for tensor in tensors:
        tensor.copy_(torch.randn(elements, generator=generator))
    expected = execute(schedule, [tensor.clone() for tensor in tensors])
    outcome = crew.run(schedule, tensors, CrewSurroundings(places))
    for tensor, right in zip(tensors, expected, strict=True):
        assert torch.equal(tensor, right)
    return outcome


def test_a_ring_of_two_namespaces_gives_the_oracles_bits() -> None:
    with namespaces(2) as paths:
        join((0, "eth0"), (1, "eth0"))
        outcome = run_pair(make_places(paths))

    least_ps = 4 * ELEMENTS * 8 * 1000
    assert min(outcome.finish_ps) >= least_ps, "no faster than the line"
    assert all(counted["tx_line_bytes"] > 4 * ELEMENTS for counted in outcome.counters)


def test_rings_go_round_while_a_program_asks_for_timestamps() -> None:
    """As ping does; the kernel then notes in each frame's status that it has one."""
    with namespaces(2) as paths, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMP, 1)
        join((0, "eth0"), (1, "eth0"))
        outcome = run_pair(make_places(paths), elements=5 * MAX_FRAMES * 64, mtu_bytes=256)

    assert all(each["received"] > MAX_FRAMES for each in outcome.counters)


def test_hosts_receive_what_hosts_send_and_no_answers_of_kernels() -> None:
    """A kernel knows none of an agent's UDP ports, and would say so by ICMP."""
    graph = build(GRAPH)
    with namespaces(2) as paths:
        join((0, "eth0"), (1, "eth0"))
        for number, host in enumerate(hosts(graph)):
            inside = ("-n", name_of(number))
            ip(*inside, "link", "set", "eth0", "address", format_mac(mac(graph, host, 1)))
            ip(*inside, "address", "add", f"{format_ipv4(ipv4(graph, host))}/8", "dev", "eth0")
        counters = run_pair(make_places(paths)).counters

    sent = sum(each["sent"] for each in counters)
    assert 0 < sum(each["received"] for each in counters) <= sent
    assert 0 < sum(each["packet_hops"] for each in counters) <= sent, "a hop is an arrival"


@pytest.mark.parametrize("control", ["swift", "nscc", "pfabric", "hpcc"])
def test_congestion_controls_work_live(control: str) -> None:
    with namespaces(2) as paths:
        join((0, "eth0"), (1, "eth0"))
        outcome = run_pair(make_places(paths, loss=0.02), cc=control)

    assert all(counted["tx_line_bytes"] > 4 * ELEMENTS for counted in outcome.counters)


def test_lost_packets_are_sent_again() -> None:
    with namespaces(2) as paths:
        join((0, "eth0"), (1, "eth0"))
        outcome = run_pair(make_places(paths, loss=0.2))

    assert sum(counted["lost"] for counted in outcome.counters) > 0
    assert sum(counted["retransmissions"] for counted in outcome.counters) > 0


def test_what_is_not_there_is_named() -> None:
    with namespaces(2) as paths:
        with pytest.raises(BackendError, match=r"h\d: interface eth0: no packet socket"):
            run_pair(make_places(paths))
        gone = [paths[0], Path("/run/netns/rt-nowhere")]
        join((0, "eth0"), (1, "eth0"))
        with pytest.raises(BackendError, match="h1: namespace: can't enter"):
            run_pair(make_places(gone))
