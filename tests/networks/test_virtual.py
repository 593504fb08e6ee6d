"""Collectives over virtual networks, through the real P4 programs, against the oracle."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import PcapNgReader

from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.errors import ConfigError
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

TOPOLOGIES = ("fattree,k=4", "leafspine", "bcube", "hammingmesh", "torus2d", "torus3d")
HOST_TO_HOST = [name for name, algorithm in ALGORITHMS.items() if not algorithm.in_network]


def random_tensors(ranks: int, elements: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(elements, generator=generator) for _ in range(ranks)]


def make(
    topology: str, algorithm: str, elements: int, *, seed: int = 1, **options: Any
) -> tuple[VirtualNetwork, Schedule]:
    graph = build(topology)
    network = VirtualNetwork(
        graph,
        NetworkOptions(system=SYSTEMS.get(algorithm), **options),
        seed=seed,
    )
    return network, schedule_on(graph, algorithm, elements)


def schedule_on(graph: nx.Graph[str], algorithm: str, elements: int) -> Schedule:
    return ALGORITHMS[algorithm].build(
        len(hosts(graph)), size_bytes=4 * elements, hierarchy=graph.graph["hierarchy"]
    )


def check(topology: str, algorithm: str, elements: int, **options: Any) -> RunResult:
    """Run, and compare with the oracle bit for bit."""
    return check_on(*make(topology, algorithm, elements, **options), elements)


def check_on(network: VirtualNetwork, schedule: Schedule, elements: int) -> RunResult:
    tensors = random_tensors(schedule.ranks, elements)
    expected = execute(schedule, tensors)
    result = network.run(schedule, tensors)

    assert all(torch.equal(got, want) for got, want in zip(tensors, expected, strict=True))
    return result


@cache
def shared(topology: str) -> VirtualNetwork:
    """Return a network for one collective after another: to make one takes longer than a run."""
    return VirtualNetwork(build(topology), NetworkOptions(mtu_bytes=256), seed=1)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("algorithm", HOST_TO_HOST)
def test_every_collective_on_every_topology(topology: str, algorithm: str) -> None:
    network = shared(topology)
    result = check_on(network, schedule_on(network.graph, algorithm, 3000), 3000)

    assert (result.drops, result.lost, result.retransmissions) == (0, 0, 0)
    assert result.time_ps == max(result.finish_ps) > 0


@settings(max_examples=25)
@given(
    algorithm=st.sampled_from(HOST_TO_HOST),
    topology=st.sampled_from(["leafspine,leaves=2,spines=2,hosts=2", "torus2d,x=2,y=3"]),
    elements=st.sampled_from([0, 1, 7, 500, 3000]),
    loss=st.sampled_from([0.0, 0.001, 0.05]),
    duplicate=st.sampled_from([0.0, 0.05]),
    reorder=st.sampled_from([0.0, 0.05]),
    seed=st.integers(1, 1 << 30),
)
def test_results_are_exact_whatever_the_links_do(
    algorithm: str,
    topology: str,
    elements: int,
    loss: float,
    duplicate: float,
    reorder: float,
    seed: int,
) -> None:
    check(
        topology,
        algorithm,
        elements,
        mtu_bytes=256,
        loss=loss,
        duplicate=duplicate,
        reorder=reorder,
        seed=seed,
    )


def test_full_queues_drop_packets_and_the_result_is_still_exact() -> None:
    result = check("leafspine", "tree", 20_000, mtu_bytes=1024, queue_bytes=8000)

    assert result.drops > 0
    assert result.retransmissions > 0


def test_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    runs = [check("fattree,k=4", "ring", 2000, loss=0.02, seed=seed) for seed in (5, 5, 6)]

    assert (runs[0].time_ps, runs[0].link_bytes) == (runs[1].time_ps, runs[1].link_bytes)
    assert runs[0].events == runs[1].events
    assert runs[0].time_ps != runs[2].time_ps


def test_every_byte_that_a_link_carries_is_in_its_series() -> None:
    result = check("fattree,k=4", "halvingdoubling", 50_000)

    for link, series in result.link_series.items():
        assert series.sum() == result.link_bytes[link]
        rate_bytes_per_bin = 100e9 / 8 * result.bin_ps / 1e12
        assert series.max(initial=0) <= rate_bytes_per_bin + 5000, "faster than the line"
    assert result.wire_bytes[3] == result.link_bytes["h3", "s1"]


def test_ring_takes_as_long_as_the_alpha_beta_model_says() -> None:
    """One switch: every message costs two links of delay and two serialisations."""
    network, schedule = make("leafspine,leaves=1,spines=1,hosts=4", "ring", 1 << 20)
    time_ps = network.run(schedule, network.tensors(1 << 20, schedule=schedule)).time_ps

    packet_ps = (4096 + 58 + 24) * 80  # at 100 Gbit/s; 58 bytes of RoCEv2 and 24 of Ethernet
    step_ps = 2_000_000 + packet_ps + (1 << 20) // 4096 * packet_ps
    assert time_ps == pytest.approx(6 * step_ps, rel=0.01)


def test_network_runs_one_collective_after_another() -> None:
    network, schedule = make("fattree,k=4", "ring", 1000)
    tensors = random_tensors(16, 1000)
    expected = execute(schedule, execute(schedule, tensors))
    first = network.run(schedule, tensors)
    second = network.run(schedule, tensors)

    assert torch.equal(tensors[7], expected[7])
    assert second.time_ps == pytest.approx(first.time_ps, rel=0.2)
    assert network.now_ps >= first.time_ps + second.time_ps


def test_integers_and_doubles_are_reduced_as_torch_does() -> None:
    for dtype in (torch.int32, torch.float64, torch.int8):
        network, schedule = make("leafspine,leaves=2,spines=1,hosts=2", "ring", 501)
        tensors = [torch.arange(501).to(dtype) * (rank + 1) for rank in range(4)]
        expected = execute(schedule, tensors)
        network.run(schedule, tensors)
        assert torch.equal(tensors[2], expected[2])


def test_a_capture_is_what_the_wire_carried(tmp_path: Path) -> None:
    network, schedule = make(
        "leafspine,leaves=2,spines=1,hosts=1", "ring", 1000, capture=tmp_path / "pcap"
    )
    result = network.run(schedule, random_tensors(2, 1000))
    network.close()

    (path,) = (tmp_path / "pcap").iterdir()
    assert path.name == "capture.pcapng"
    packets = list(PcapNgReader(str(path)))
    sent = Counter(packet.sniffed_on for packet in packets)
    assert sorted(sent) == ["h0", "h1", "s0:p1", "s0:p2", "s1:p1", "s1:p2", "s2:p1", "s2:p2"]
    for name in ("h0", "h1"):
        frames = [packet for packet in packets if packet.sniffed_on == name]
        line_bytes = sum(max(len(packet), 60) + 24 for packet in frames)
        assert line_bytes == result.wire_bytes[int(name[1:])]
    times = [packet.time for packet in packets]
    assert times == sorted(times)


def test_a_schedule_of_another_size_is_refused() -> None:
    network, _ = make("leafspine", "ring", 10)
    schedule = ALGORITHMS["ring"].build(4)
    with pytest.raises(ConfigError, match="must be for 16 ranks, got 4 and 4"):
        network.run(schedule, random_tensors(4, 10))


def test_tensors_that_differ_are_refused() -> None:
    network, schedule = make("leafspine,leaves=1,spines=1,hosts=2", "ring", 10)
    with pytest.raises(ConfigError, match="tensors must be alike and of one dimension"):
        network.run(schedule, [torch.zeros(3), torch.zeros(4)])
    with pytest.raises(ConfigError, match="tensors must be alike and of one dimension"):
        network.run(schedule, [torch.zeros(3, 2), torch.zeros(3, 2)])


def test_aggregation_without_a_system_is_refused() -> None:
    network, _ = make("leafspine", "ring", 10)
    schedule = ALGORITHMS["switchml"].build(16)
    with pytest.raises(ConfigError, match="aggregates in the network, got options without"):
        network.run(schedule, random_tensors(16, 10))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": 1.0}, r"loss must be in \[0, 1\), got 1.0"),
        ({"mtu_bytes": 0}, "mtu must be 1 to 9000, got 0"),
        ({"queue_bytes": 0}, "queue_bytes must be >= 1, got 0"),
        ({"window": 0}, "window must be >= 1, got 0"),
        ({"bins": 3}, "bins must be even, got 3"),
        ({"jitter_ps": -1}, "jitter_ps must be >= 0, got -1"),
        ({"message_overhead_ps": -1}, "message_overhead_ps must be >= 0, got -1"),
    ],
)
def test_bad_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        NetworkOptions(**options)  # type: ignore[arg-type]


def test_one_host_alone_has_nothing_to_do() -> None:
    network, schedule = make("leafspine,leaves=1,spines=1,hosts=1", "ring", 10)
    assert not schedule.rows
    tensors = random_tensors(1, 10)
    assert network.run(schedule, tensors).time_ps == 0
