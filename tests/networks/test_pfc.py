"""Priority flow control: nothing is lost, nobody gets more than he has room for, and deadlocks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ringleaf.networks.virtual.state as s
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core import compiled
from ringleaf.core.pausing import Pausing, parse_pausing
from ringleaf.core.shipped import PACKAGE
from ringleaf.core.tensors import INT32
from ringleaf.errors import BackendError, ConfigError
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.hosts.rc.state import STRICT_CLASSES
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.endpoints.joining import pause_stretch
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.networks.virtual.pfc.deadlock import find_deadlock
from ringleaf.networks.virtual.pfc.layout import ASKED, HELD, PAUSED, XON
from ringleaf.networks.virtual.pfc.tables import pause_rows
from ringleaf.topologies.detours import with_detours
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

FAST = settings(max_examples=4 if compiled.UNCOMPILED else 25, deadline=None)
RING = "torus2d,x=4,y=1"
LARGE = Pausing(1 << 30, 1 << 29)


def incast(ranks: int) -> Schedule:
    """Have all other ranks send to the first, which adds."""
    moves = tuple(Transfer(0, rank, 0, 0, Op.REDUCE) for rank in range(1, ranks))
    return Schedule(Collective.REDUCE, "incast", ranks, 1, moves)


def run(
    network: VirtualNetwork, schedule: Schedule, elements: int
) -> tuple[RunResult, list[np.ndarray[Any, Any]]]:
    arrays = network.arrays(elements, INT32, schedule)
    for rank, array in enumerate(arrays):
        array[:] = np.arange(elements) * (rank + 1) % 1009
    result = network.run(schedule, arrays)
    assert network.drain() == 0, "a packet leaked"
    return result, [array.copy() for array in arrays]


def addends(ranks: int, elements: int) -> np.ndarray[Any, Any]:
    factors = np.arange(1, ranks + 1)[:, None]
    total: np.ndarray[Any, Any] = (np.arange(elements) * factors % 1009).sum(axis=0)
    return total


def most_held(network: VirtualNetwork, pausing: Pausing) -> None:
    """Check that no port has had more than XOFF and headroom, and that all is as at first."""
    assert network.pauses is not None
    for port in network.pauses.by_port(network.now_ps):
        assert max(port.peak_bytes) <= pausing.xoff_bytes + port.headroom_bytes
    rows = pause_rows(network.store.arena, network._network)
    assert not rows[:, [ASKED, PAUSED]].any()
    assert not rows[:, HELD : HELD + 8].any()


@FAST
@given(
    topology=st.sampled_from(
        (
            "leafspine,leaves=1,spines=1,hosts=5",
            "leafspine,leaves=3,spines=2,hosts=2,rate=25G,host_rate=100G",
            "fattree,k=4,delay=5us",
        )
    ),
    elements=st.integers(1, 40_000),
    xoff=st.integers(1, 60_000),
    xon=st.floats(0.01, 1),
    options=st.sampled_from(
        ({}, {"mtu_bytes": 256}, {"discipline": "drr"}, {"discipline": "wrr"}, {"cc": "dcqcn"})
    ),
)
def test_nothing_is_lost_and_nobody_has_more_than_headroom(
    topology: str, elements: int, xoff: int, xon: float, options: dict[str, Any]
) -> None:
    graph = build(topology)
    pausing = Pausing(xoff, max(1, int(xon * xoff)))
    network = VirtualNetwork(graph, NetworkOptions(pfc=pausing, **options))
    ranks = len(hosts(graph))
    result, arrays = run(network, incast(ranks), elements)
    assert np.array_equal(arrays[0], addends(ranks, elements))
    assert result.drops == result.retransmissions == 0
    most_held(network, pausing)


@settings(FAST, max_examples=5)
@given(algorithm=st.sampled_from(("switchml", "omnireduce", "atp")), xoff=st.integers(1, 20_000))
def test_switches_that_add_lose_nothing_either(algorithm: str, xoff: int) -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=3,host_rate=25G")
    pausing = Pausing(xoff, xoff)
    servers = 1 if algorithm == "atp" else 0
    options = NetworkOptions(system=SYSTEMS[algorithm], pfc=pausing, servers=servers)
    network = VirtualNetwork(graph, options)
    schedule = ALGORITHMS[algorithm].build(6 - servers, size_bytes=80_000)
    result, arrays = run(network, schedule, 20_000)
    for array in arrays[: 6 - servers]:
        assert np.array_equal(array, addends(6 - servers, 20_000))
    assert result.drops == 0
    most_held(network, pausing)


@pytest.mark.parametrize("algorithm", ["omnireduce", "switchml", "panama"])
def test_nobody_takes_for_lost_what_waits_at_paused_links(algorithm: str) -> None:
    """Links that stop at each packet need five times as long for OmniReduce's first window."""
    graph = build("railonly,nodes=2,rails=3")
    network = VirtualNetwork(
        graph, NetworkOptions(system=SYSTEMS[algorithm], pfc=Pausing(1024, 1024))
    )
    result, arrays = run(network, ALGORITHMS[algorithm].build(6, size_bytes=65_536), 16_384)
    assert all(np.array_equal(array, addends(6, 16_384)) for array in arrays)
    assert result.retransmissions == 0


@pytest.mark.parametrize(
    ("options", "strict"),
    [({}, True), ({"discipline": "drr"}, False), ({"pfc": Pausing(9000, 9000)}, False)],
)
def test_hosts_know_where_a_lower_class_may_go_first(options: dict[str, Any], strict: bool) -> None:
    network = VirtualNetwork(
        build("leafspine,leaves=1,spines=0,hosts=2"), NetworkOptions(**options)
    )
    words = network.store.arena.words
    for agent in network.endpoints.connections.agents:
        assert bool(words[agent + STRICT_CLASSES]) is strict


def stall_s(pfc: str) -> float:
    """Return how long hosts waited for one that is gone, until the run ended."""
    given = {"topo": "leafspine,leaves=1,spines=0,hosts=3", "algo": "switchml", "size": "4K"}
    spec = resolve(given | {"pfc": pfc, "faults": "h0 down at 0"})
    with pytest.raises(BackendError, match="nothing has got through") as error:
        list(CollectiveExperiment(spec).run())
    seconds = re.search(r"for ([0-9.]+) s of simulated time", str(error.value))
    assert seconds
    return float(seconds[1])


def test_a_stall_takes_as_many_times_as_long_as_packets_may() -> None:
    """That is three times, on two links."""
    assert stall_s("1:1") == pytest.approx(3 * stall_s("64K:48K"), rel=0.01)


@pytest.mark.parametrize(
    ("xon", "stretch"),
    [(1024, 5), (24_999, 5), (25_000, 1)],  # 25,000 bytes at 100 Gbit/s and 2 x 1 us
)
def test_packets_may_wait_at_each_of_four_links_that_stand_still(xon: int, stretch: int) -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=2,rate=100G,delay=1us,host_rate=10G")
    assert pause_stretch(graph, Pausing(1 << 20, xon)) == stretch


@pytest.mark.parametrize("discipline", ["strict", "drr"])
def test_thresholds_that_are_never_reached_change_nothing(discipline: str) -> None:
    graph = build("leafspine,leaves=2,spines=2,hosts=3")
    found = []
    for pfc in (None, LARGE):
        options = NetworkOptions(pfc=pfc, queue_bytes=1 << 30, discipline=discipline)
        result, _ = run(VirtualNetwork(graph, options), incast(6), 30_000)
        found.append(replace(result, wall_s=0, drop_counts=[]))
    one, other = found
    assert (one.finish_ps, one.link_bytes, one.events) == (
        other.finish_ps,
        other.link_bytes,
        other.events,
    )
    assert one.peak_queue_bytes == other.peak_queue_bytes


@FAST
@given(threads=st.integers(2, 4), xoff=st.integers(1, 50_000))
def test_any_number_of_threads_gives_the_same(threads: int, xoff: int) -> None:
    graph = build("leafspine,leaves=3,spines=2,hosts=2")
    found = []
    for count in (1, threads):
        options = NetworkOptions(pfc=Pausing(xoff, xoff), threads=count)
        network = VirtualNetwork(graph, options)
        result, _ = run(network, incast(6), 20_000)
        assert network.pauses is not None
        asked = [(port.asked, port.peak_bytes) for port in network.pauses.by_port(network.now_ps)]
        found.append((result.finish_ps, result.link_bytes, result.packet_hops, asked))
    assert found[0] == found[1]


def test_a_pause_ends_within_the_headroom_and_not_before_it_is_needed() -> None:
    """Two hosts of one switch send to a third: pauses keep the queue short, and the line full."""
    graph = build("leafspine,leaves=1,spines=0,hosts=3")
    pausing = Pausing(60_000, 50_000)
    free, _ = run(VirtualNetwork(graph, NetworkOptions()), incast(3), 100_000)
    network = VirtualNetwork(graph, NetworkOptions(pfc=pausing))
    paused, _ = run(network, incast(3), 100_000)
    assert network.pauses is not None
    asked = {port.peer: port.asked for port in network.pauses.by_port(network.now_ps) if port.asked}
    assert asked.keys() == {"h1", "h2"}
    frames = sum(asked.values())
    assert paused.time_ps < free.time_ps + 2 * frames * 84 * 80  # 84 bytes at 80 ps each


def test_too_little_headroom_loses_packets_and_no_data() -> None:
    graph = build("leafspine,leaves=1,spines=0,hosts=5")
    network = VirtualNetwork(graph, NetworkOptions(pfc=Pausing(20_000, 10_000, 5_000)))
    result, arrays = run(network, incast(5), 60_000)
    assert result.drops > 0
    assert np.array_equal(arrays[0], addends(5, 60_000))
    assert network.pauses is not None
    assert all(max(port.peak_bytes) <= 25_000 for port in network.pauses.by_port(0))


def ring_network(**options: Any) -> tuple[VirtualNetwork, Schedule]:
    """Return a network whose packets all go one way around a ring, and an all-to-all."""
    ways = [
        (f"h{first}", *(f"s{(first + i) % 4}" for i in range(1, far)), f"h{(first + far) % 4}")
        for far in (2, 3)
        for first in range(4)
    ]
    network = VirtualNetwork(with_detours(build(RING), ways), NetworkOptions(**options))
    return network, ALGORITHMS["alltoall"].build(4, size_bytes=4 << 20)


def test_a_ring_of_switches_deadlocks_and_says_which() -> None:
    network, schedule = ring_network(pfc=Pausing(65_536, 49_152))
    with pytest.raises(BackendError, match=r"deadlock: switches s0 -> s1 -> s2 -> s3 -> s0 wait"):
        run(network, schedule, 1 << 20)
    assert network.now_ps < 10**9, "it is found long before anybody loses patience"


@pytest.mark.skipif(compiled.UNCOMPILED, reason="4 MiB take long uncompiled")
def test_the_committed_spec_ends_with_the_verdict_and_completes_without_pfc() -> None:
    path = PACKAGE / "experiments" / "specs" / "pfc_deadlock.yaml"
    (case,) = read_cases(path)
    with pytest.raises(BackendError, match="PFC deadlock: switches s0 -> s1 -> s2 -> s3 -> s0"):
        list(CollectiveExperiment(resolve(case)).run())
    (case,) = read_cases(path, {"pfc": "off", "queue": "128K"})
    (measured,) = CollectiveExperiment(resolve(case)).run()
    assert measured.row.wrong == 0
    assert measured.row.drops > 0


def test_queues_that_will_be_told_to_go_on_are_no_deadlock() -> None:
    """A deadlock is none if one switch asks for no pause, or if XON is above all that is held."""
    network, schedule = ring_network(pfc=Pausing(65_536, 49_152))
    with pytest.raises(BackendError, match="deadlock"):
        run(network, schedule, 1 << 20)
    arena, at = network.store.arena, network._network

    def cycle() -> tuple[str, ...]:
        found = find_deadlock(arena, at, network._places)
        return found.cycle if found else ()

    assert cycle() == ("s0", "s1", "s2", "s3")
    rows = pause_rows(arena, at)
    (beyond,) = (
        number
        for number, place in enumerate(network._places)
        if (place.node, place.peer) == ("s1", "s0")
    )
    rows[beyond, ASKED] = 0  # s1 has told s0 to go on, which does not know it yet
    assert cycle() == ()
    rows[beyond, ASKED] = 1
    xon = int(arena.words[at + s.PFC_AT]) + XON
    arena.words[xon] = 1 << 40
    assert cycle() == ()
    arena.words[xon] = 49_152
    assert cycle() == ("s0", "s1", "s2", "s3")


def test_the_same_ring_loses_packets_without_pauses_and_ends() -> None:
    network, schedule = ring_network(queue_bytes=131_072)
    result, _ = run(network, schedule, 1 << 20)
    assert result.drops > 0
    assert result.retransmissions > 0


def test_a_ring_without_a_cycle_of_ways_has_no_deadlock() -> None:
    pausing = Pausing(65_536, 49_152)
    network = VirtualNetwork(build("torus2d,x=3,y=1"), NetworkOptions(pfc=pausing))
    schedule = ALGORITHMS["alltoall"].build(3, size_bytes=3 << 20)
    result, _ = run(network, schedule, 3 << 18)
    assert result.drops == 0
    most_held(network, pausing)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("64K", "pfc: must be two or three sizes, XOFF:XON:headroom, or off, got '64K'"),
        ("32K:64K", "pfc: XON must be above 0 and not above XOFF, got 32768:65536"),
        ("64K:0", "pfc: XON must be above 0 and not above XOFF, got 65536:0"),
    ],
)
def test_what_is_no_threshold_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_pausing(text, "pfc")


def test_thresholds_are_read_as_they_are_printed() -> None:
    assert parse_pausing("off", "pfc") is None
    for text in ("65536:49152", "65536:49152:1000"):
        assert str(parse_pausing(text, "pfc")) == text


@pytest.mark.parametrize("text", ["off", "'off'", "Off", "no", "false"])
def test_a_spec_turns_it_off_without_quotes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(f"pfc: [64K:48K, {text}]\n")
    with_pauses, without = (resolve(case) for case in read_cases(path))
    assert (with_pauses.pfc, without.pfc) == (Pausing(65536, 49152), None)


def test_traces_and_restarts_are_refused(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="pfc: traces can't replay pauses yet, got record"):
        NetworkOptions(pfc=LARGE, record=tmp_path)
    network = VirtualNetwork(
        build("leafspine,leaves=1,spines=0,hosts=2"), NetworkOptions(pfc=LARGE)
    )
    with pytest.raises(ConfigError, match="restart: not with pfc, whose counts it would lose"):
        network.restart("s0")
