"""Any number of threads gives the same result, in all that can be seen of it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ringleaf.networks.virtual.pool as pool
import ringleaf.networks.virtual.team as team
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core import compiled
from ringleaf.core.marking import Marking
from ringleaf.core.tensors import FLOAT32, INT32, Array
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.faults import Disturbance, LinkLoss, Restart
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.networks.virtual.regions import divide
from ringleaf.networks.virtual.state import REGION
from ringleaf.topologies.graph import hosts, neighbors, switches
from ringleaf.topologies.registry import build

US = 10**6
FAST = settings(max_examples=5 if compiled.UNCOMPILED else 24, deadline=None)


def run(
    topology: str,
    algorithm: str,
    elements: int,
    *,
    disturbances: tuple[Disturbance, ...] = (),
    runs: int = 1,
    **options: Any,
) -> tuple[RunResult, list[Array]]:
    """Run an algorithm on all hosts, `runs` times; return the last result, and the sums."""
    graph = build(topology)
    system = SYSTEMS.get(algorithm)
    network = VirtualNetwork(
        graph,
        NetworkOptions(system=system, watch_queues=True, watch_memory=True, **options),
        seed=3,
    )
    ranks = len(hosts(graph)) - options.get("servers", 0)
    schedule = ALGORITHMS[algorithm].build(
        ranks, size_bytes=4 * elements, hierarchy=graph.graph["hierarchy"]
    )
    of_signs = system is not None and bool(system.compress)
    dtype = FLOAT32 if of_signs else INT32
    for _ in range(runs):
        arrays = network.arrays(elements, dtype, schedule)
        for rank, array in enumerate(arrays):
            array[:] = np.arange(elements) * (rank + 1) % 1009
            if of_signs:
                array[:] = array % 2 * 2 - 1
        result = network.run(schedule, arrays, disturbances=disturbances)
    assert network.drain() == 0, "a packet leaked"
    return result, [array.copy() for array in arrays]


def assert_same(one: RunResult, other: RunResult) -> None:
    for each in fields(RunResult):
        if each.name == "wall_s":
            continue
        a, b = getattr(one, each.name), getattr(other, each.name)
        assert repr(a) == repr(b) if not isinstance(a, dict) else _same(a, b), each.name


def _same(a: dict[Any, Any], b: dict[Any, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


@FAST
@given(
    topology=st.sampled_from(("fattree,k=4", "leafspine,leaves=3,spines=2,hosts=3", "bcube")),
    algorithm=st.sampled_from(("ring", "tree", "halvingdoubling", "alltoall", *SYSTEMS)),
    elements=st.integers(1, 6000),
    threads=st.sampled_from((2, 3, 4, 8)),
    loss=st.sampled_from((0.0, 0.02)),
    options=st.sampled_from(
        (
            {},
            {"duplicate": 0.05, "reorder": 0.1},
            {"cc": "dcqcn", "ecn": Marking(3, 20, 0.5)},
            {"cc": "nscc", "ecn": Marking(3, 20, 1.0)},
            {"cc": "pfabric"},
            {"ecmp": True, "queue_bytes": 20_000},
            {"message_overhead_ps": 300_000, "mtu_bytes": 256},
            {"watch_messages": 50},
        )
    ),
)
@example("fattree,k=4", "switchml", 6000, 3, 0.02, {"duplicate": 0.05, "reorder": 0.1})
def test_results_are_the_same(
    topology: str,
    algorithm: str,
    elements: int,
    threads: int,
    loss: float,
    options: dict[str, Any],
) -> None:
    if compiled.UNCOMPILED:
        elements = elements % 100 + 1
    alone, sums = run(topology, algorithm, elements, loss=loss, **options)
    together, others = run(topology, algorithm, elements, loss=loss, threads=threads, **options)
    assert_same(alone, together)
    assert all(np.array_equal(a, b) for a, b in zip(sums, others, strict=True))


def test_disturbances_come_between_the_same_events() -> None:
    topology = "torus2d,x=3,y=3"
    graph = build(topology)
    first, other = switches(graph)[:2]
    peer = next(each for each in neighbors(graph, first).values() if each in switches(graph))
    troubles = (
        LinkLoss(3 * US, (first, peer), 1.0),
        LinkLoss(40 * US, (first, peer), None),
        Restart(10 * US + 1, other),
    )
    elements = 100 if compiled.UNCOMPILED else 5000
    alone, _ = run(topology, "ring", elements, disturbances=troubles, runs=2)
    together, _ = run(topology, "ring", elements, disturbances=troubles, runs=2, threads=3)
    assert_same(alone, together)


def test_a_pool_and_heaps_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few packets for each thread, and eight boxes of mail, there is little room at first."""
    elements = 100 if compiled.UNCOMPILED else 50_000
    alone, _ = run("fattree,k=4", "alltoall", elements)
    monkeypatch.setattr(pool, "POOL_PACKETS", 2100)
    together, _ = run("fattree,k=4", "alltoall", elements, threads=8)
    assert_same(alone, together)


def test_an_exception_of_any_thread_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others would wait for it for ever."""
    plain = team.run_region

    def fail(arena: Any, at: int, until_ps: int) -> int:
        if arena.words[at + REGION] == 1:
            raise ArithmeticError("region 1")
        return int(plain(arena, at, until_ps))

    monkeypatch.setattr(team, "run_region", fail)
    if not compiled.UNCOMPILED:
        with pytest.raises(ArithmeticError, match="region 1"):
            run("fattree,k=4", "ring", 1000, threads=3)


@pytest.mark.parametrize("options", [{"delay": "0"}, {"capture": True}])
def test_some_networks_have_one_region(tmp_path: Any, options: dict[str, Any]) -> None:
    """Where there is no delay, threads would meet all the time; captures are in order of time."""
    if options.pop("delay", None):
        graph = build("fattree,k=4", delay_ps=0)
    else:
        graph, options = build("fattree,k=4"), {"capture": tmp_path}
    network = VirtualNetwork(graph, NetworkOptions(threads=2, **options))
    assert network.threads == 1
    assert VirtualNetwork(build("fattree,k=4"), NetworkOptions(threads=2)).threads == 2


@given(
    topology=st.sampled_from(
        ("fattree,k=4", "fattree,k=6", "leafspine", "bcube", "torus2d", "torus3d", "hammingmesh")
    ),
    count=st.integers(1, 9),
)
def test_regions_are_blocks_of_hosts_with_their_switches(topology: str, count: int) -> None:
    graph = build(topology)
    names = hosts(graph)
    region = divide(graph, count, names)

    assert region.keys() == set(graph)
    of_hosts = [region[name] for name in names]
    assert of_hosts == sorted(of_hosts)
    sizes = np.bincount(of_hosts, minlength=count)
    assert len(sizes) == count
    assert sizes.max() - sizes.min() <= 1
    assert set(region.values()) <= set(range(count))


@given(busy=st.sets(st.integers(0, 15), min_size=3), count=st.integers(1, 3))
def test_hosts_that_do_nothing_do_not_count(busy: set[int], count: int) -> None:
    region = divide(build("fattree,k=4"), count, {f"h{i}" for i in busy})
    sizes = np.bincount([region[f"h{i}"] for i in busy], minlength=count)
    assert sizes.max() - sizes.min() <= 1


def test_pods_stay_together() -> None:
    """Of a fat-tree with four pods in two regions, only links to the core lead elsewhere."""
    graph = build("fattree,k=4")
    region = divide(graph, 2, hosts(graph))
    names = hosts(graph)
    edges = {peer for name in names for peer in graph[name]}
    tops = {peer for name in edges for peer in graph[name]} - set(names)
    core = set(switches(graph)) - edges - tops
    assert (len(edges), len(tops), len(core)) == (8, 8, 4)
    assert sorted(region[name] for name in core) == [0, 0, 1, 1]
    for name in edges | tops:
        assert {region[peer] for peer in graph[name] if peer not in core} == {region[name]}
