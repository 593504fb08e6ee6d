"""NICs that die: what GPUs send and get goes by other NICs of their machine, and stays exact."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.queue_pairs import over_queue_pairs
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.compiled import UNCOMPILED
from ringleaf.core.faults import parse_faults
from ringleaf.core.units import PS_PER_US
from ringleaf.networks.flow.network import FlowNetwork
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.graph import hosts, switches
from ringleaf.topologies.registry import build

KINDS = (FlowNetwork, VirtualNetwork)
MACHINES = "leafspine,leaves=1,spines=0,hosts=2,node=8xh100"
GPUS = 8
ROOM = 64 << 20  # so that queues drop nothing
SLOW = pytest.mark.skipif(UNCOMPILED, reason="megabytes take long uncompiled")
FEW = settings(max_examples=2 if UNCOMPILED else 15, deadline=None)


def nic(topo: str, machine: int, number: int) -> str:
    """Return the name of a machine's NIC, by which faults find it."""
    graph = build(topo)
    [name] = [
        name for name in switches(graph) if graph.nodes[name]["label"] == f"nic {machine}.{number}"
    ]
    return name


def port(topo: str, server: int, number: int) -> str:
    """Return the name of a machine's NIC, or of a link of a server with several ports."""
    if "node=" in topo:
        return nic(topo, server, number)
    graph = build(topo)
    return f"s{server}-{[each for each in graph[f's{server}'] if each in switches(graph)][number]}"


def exchange() -> Schedule:
    """Return the part of a collective that NICs bound: GPUs add up with that of the other machine.

    Every NIC sends and gets a whole tensor, and nothing else is sent.
    """
    ends = [(gpu, gpu + GPUS) for gpu in range(GPUS)]
    rows = [Transfer(0, a, b, 0, Op.REDUCE) for pair in ends for a, b in (pair, pair[::-1])]
    return Schedule(Collective.ALLREDUCE, "exchange", 2 * GPUS, 1, rows)


def run(
    kind: type,
    dead: str,
    elements: int,
    *,
    topo: str = MACHINES,
    pairs: int = 1,
    ecmp: bool = False,
) -> RunResult:
    """Exchange whole numbers, whose sums must be exact, with NICs that are dead from the start.

    Acknowledgements wait behind a window of packets that go the same way, so it must be large.
    """
    options = NetworkOptions(
        faults=parse_faults(dead, "faults"),
        reroute_ps=0,
        ecmp=ecmp,
        queue_bytes=ROOM,
        window=max(2048 // pairs, 8),
    )
    network, schedule = kind(build(topo), options), over_queue_pairs(exchange(), pairs)
    arrays = network.arrays(elements, np.dtype(np.int32), schedule)
    for rank, array in enumerate(arrays):
        array[:] = np.arange(elements) % 1009 + rank
    outcome: RunResult = network.run(schedule, arrays)
    for rank, array in enumerate(arrays):
        expected = 2 * (np.arange(elements) % 1009) + 2 * (rank % GPUS) + GPUS
        np.testing.assert_array_equal(array, expected)
    return outcome


def bandwidth_part(kind: type, dead: str, **more: object) -> int:
    """Return by how much twice the data takes longer, as latencies are the same."""
    elements = 1 << 18
    whole, half = (run(kind, dead, count, **more).time_ps for count in (2 * elements, elements))  # type: ignore[arg-type]
    return whole - half


@SLOW
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("topo", [MACHINES, "railonly,nodes=2,rails=8,node=8xh100"])
def test_a_dead_nics_load_at_one_neighbour_takes_twice_as_long(kind: type, topo: str) -> None:
    """By hand: the neighbour has two tensors to carry, each way, where it had one."""
    dead = f"{nic(topo, 0, 0)} down"

    ratio = bandwidth_part(kind, dead, topo=topo) / bandwidth_part(kind, "", topo=topo)

    assert ratio == pytest.approx(2, rel=0.01)


def shares(loads: RunResult, usual: RunResult) -> list[list[float]]:
    """Return what the first machine's NICs send, and what they get, in their usual loads."""
    names = [nic(MACHINES, 0, number) for number in range(GPUS)]
    ways = [[(name, "s50") for name in names], [("s50", name) for name in names]]
    return [[loads.link_bytes[way] / usual.link_bytes[way] for way in each] for each in ways]


@SLOW
@pytest.mark.parametrize(("kind", "percent"), [(FlowNetwork, 1), (VirtualNetwork, 4)])
@pytest.mark.parametrize("dead", [1, 2])
def test_a_dead_nics_load_goes_to_all_others(kind: type, percent: float, dead: int) -> None:
    """By hand: m NICs' load is on m - d, each has m / (m - d) in the mean; with one of eight, 8/7.

    ECMP throws a dead NIC's k queue pairs on m - d others. So there are k / (m - d) at each, with
    the variance of a binomial distribution, and the fullest NIC sets the time. With packets, what
    comes from several NICs meets at that of the receiver, too.
    """
    pairs, left = 64, GPUS - dead
    faults = ", ".join(f"{nic(MACHINES, 0, number)} down" for number in range(dead))
    found = run(kind, faults, 1 << 18, pairs=pairs, ecmp=True)
    there = shares(found, run(kind, "", 1 << 18, pairs=pairs, ecmp=True))

    deviation = sqrt(dead * pairs * (1 / left) * (1 - 1 / left)) / pairs
    for each in there:
        assert each[:dead] == [0] * dead
        assert sum(each) / left == pytest.approx(GPUS / left, rel=0.01)
        assert max(each) < GPUS / left + 3 * deviation
    times = [bandwidth_part(kind, text, pairs=pairs, ecmp=True) for text in (faults, "")]
    assert times[0] / times[1] == pytest.approx(max(map(max, there)), rel=percent / 100)


@SLOW
@pytest.mark.parametrize("kind", KINDS)
def test_a_ring_whose_only_nic_is_half_as_fast_takes_twice_as_long(kind: type) -> None:
    """A ring of all GPUs leaves the first machine by its last NIC alone."""
    times = []
    for faults in ("", f"{nic(MACHINES, 0, 7)}-s50 rate 50G at 0"):
        options = NetworkOptions(faults=parse_faults(faults, "faults"))
        for elements in (1 << 18, 1 << 19):
            network, schedule = kind(build(MACHINES), options), ALGORITHMS["ring"].build(16)
            arrays = network.arrays(elements, np.dtype(np.int32), schedule)
            for array in arrays:
                array[:] = 1
            times.append(network.run(schedule, arrays).time_ps)
            assert all((array == 16).all() for array in arrays)

    assert (times[3] - times[2]) / (times[1] - times[0]) == pytest.approx(2, rel=0.01)


@FEW
@given(
    st.sampled_from(KINDS),
    st.sampled_from(
        [
            "leafspine,leaves=1,spines=0,hosts=2,node=4xh100",
            "leafspine,leaves=1,spines=0,hosts=2,node=4xh100,gpudirect=no",
            "leafspine,leaves=1,spines=0,hosts=2,node=4xpcie",
            "leafspine,leaves=1,spines=0,hosts=2,node=dgx1",
            "railonly,nodes=2,rails=4,node=4xh100",
            "railoptimised,pods=1,nodes=2,rails=4,spines=1,node=4xh100",
            "bcube,n=3,k=1",
            "dcell,n=3,k=1",
        ]
    ),
    st.sampled_from(["ring", "hierring", "halvingdoubling"]),
    st.tuples(st.integers(0, 1), st.integers(0, 1)),
    st.integers(0, 40),
    st.integers(0, 40),
    st.sampled_from([1, 3]),
    st.booleans(),
)
def test_what_is_under_way_goes_on_by_other_nics(
    kind: type,
    topo: str,
    algo: str,
    dead: tuple[int, int],
    at: int,
    reroute: int,
    pairs: int,
    ecmp: bool,
) -> None:
    """A NIC, or a server's port, that never comes back costs time only, whenever it dies."""
    graph = build(topo)
    ranks, elements = len(hosts(graph)), 30_011
    options = NetworkOptions(
        faults=parse_faults(f"{port(topo, *dead)} down at {at}us", "faults"),
        reroute_ps=reroute * PS_PER_US,
        ecmp=ecmp,
        queue_bytes=ROOM,
        window=16,
    )
    made = ALGORITHMS[algo].build(ranks, hierarchy=graph.graph["hierarchy"])
    network, schedule = kind(graph, options), over_queue_pairs(made, pairs)
    arrays = network.arrays(elements, np.dtype(np.int32), schedule)
    for rank, array in enumerate(arrays):
        array[:] = np.arange(elements) % 1009 * (rank + 1)

    network.run(schedule, arrays)

    expected = np.arange(elements) % 1009 * (ranks * (ranks + 1) // 2)
    for array in arrays:
        np.testing.assert_array_equal(array, expected)
