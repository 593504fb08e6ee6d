"""Aggregation trees that are built again when switches or links of theirs fail: sums stay exact."""

from __future__ import annotations

from dataclasses import dataclass, replace

import finsy as fy
import networkx as nx
import numpy as np
import pytest
from finsy.p4schema import P4UpdateType
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.core.compiled import UNCOMPILED
from ringleaf.core.faults import parse_faults
from ringleaf.core.tensors import Array
from ringleaf.core.units import PS_PER_US
from ringleaf.errors import BackendError
from ringleaf.ina.holdings import Updates
from ringleaf.ina.panama.pacing import HELD, IN_FLIGHT, TREE_WORDS, open_paces
from ringleaf.ina.rebuilding import TreePlanner
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.switchml.state import open_worker
from ringleaf.networks.faults import Disturbance, LinkLoss, Reroute, Restart, left_of, links_of
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.graph import hosts, switches
from ringleaf.topologies.registry import build
from ringleaf.topologies.trees import AggregationTree

CLOS = "leafspine,leaves=2,spines=2,hosts=2"  # leaves s0 and s1, spines s2 and s3
RACK = "leafspine,leaves=1,spines=0,hosts=3"
FAT_TREE = "fattree,k=4"
JELLYFISH = "jellyfish,switches=6,degree=3,hosts=1"
US = PS_PER_US
FEW = settings(max_examples=3 if UNCOMPILED else 25, deadline=None)
REBUILDING = sorted(name for name in SYSTEMS.shipped() if SYSTEMS[name].rebuilds)
SIGNS, TERNARY = np.array([-1, 1], np.float32), np.array([-1, 0, 1], np.float32)


@dataclass(frozen=True)
class Case:
    """A run of a system."""

    algo: str = "switchml"
    topo: str = CLOS
    faults: str = ""
    elements: int = 20_000
    reroute_ps: int | None = 20 * US
    loss: float = 0.0
    slots: int | None = None
    threads: int = 1
    is_float: bool = False

    @property
    def ranks(self) -> int:
        return len(hosts(build(self.topo)))

    def network(self) -> VirtualNetwork:
        options = NetworkOptions(
            system=SYSTEMS[self.algo],
            faults=parse_faults(self.faults, "faults"),
            reroute_ps=self.reroute_ps,
            loss=self.loss,
            duplicate=self.loss,
            reorder=self.loss,
            slots=self.slots,
            threads=self.threads,
            lanes=64,
        )
        return VirtualNetwork(build(self.topo), options)

    def values(self) -> list[Array]:
        """Values that the system takes, the same for equal cases."""
        random, count = np.random.default_rng(7), self.elements
        if self.algo in ("vote", "tern"):
            kinds = SIGNS if self.algo == "vote" else TERNARY
            return [random.choice(kinds, count) for _ in range(self.ranks)]
        if self.is_float:
            return [random.normal(size=count).astype(np.float32) for _ in range(self.ranks)]
        return [random.integers(-99, 99, count).astype(np.int32) for _ in range(self.ranks)]

    def run(self, on: VirtualNetwork | None = None) -> tuple[RunResult, list[bytes]]:
        """Return a run's result and each rank's sum; nothing is under way after it."""
        network, arrays = on or self.network(), self.values()
        schedule = SYSTEMS[self.algo].algorithm.build(self.ranks)
        result = network.run(schedule, arrays)
        assert network.drain() == 0
        return result, [each.tobytes() for each in arrays]


def tree_of(network: VirtualNetwork) -> AggregationTree:
    [rebuilder] = network.endpoints.rebuilders.values()
    assert isinstance(rebuilder, TreePlanner)
    return rebuilder._trees[0]


def exact(case: Case) -> list[bytes]:
    """The sums of whole numbers, by NumPy."""
    total = np.sum(case.values(), axis=0, dtype=np.int32)
    return [total.tobytes()] * case.ranks


def test_a_job_goes_on_over_another_tree_when_a_spine_has_failed() -> None:
    """Its root is one of the two spines; only the one it uses matters."""
    case = Case()
    usual, sums = case.run()
    assert sums == exact(case)
    root = tree_of(case.network()).root
    failing = replace(case, faults=f"{root} down at 10us")
    outcome, sums = failing.run()
    assert sums == exact(case)
    assert outcome.lost > 0
    assert outcome.retransmissions > 0
    assert usual.time_ps + 10 * US < outcome.time_ps < usual.time_ps + 40 * US
    (other,) = {"s2", "s3"} - {root}
    spared, _ = replace(case, faults=f"{other} down at 10us").run()
    assert (spared.time_ps, spared.lost) == (usual.time_ps, 0)


@pytest.mark.parametrize("algo", ["switchml", "atp"])
def test_the_tree_is_the_usual_one_again_in_the_next_run(algo: str) -> None:
    case = Case(algo, faults="s2-s0 down at 10us, s2-s1 down at 10us")
    network = case.network()
    usual = tree_of(network)
    first, _ = case.run(network)
    assert first.lost > 0
    assert tree_of(network) == usual
    second, sums = case.run(network)
    assert sums == exact(case)
    assert second.lost > 0


@pytest.mark.parametrize("algo", ["atp", "a2tp", "esa"])
def test_results_come_by_another_spine_when_theirs_has_failed(algo: str) -> None:
    """By hand: all stand still for the 20 us until routes change, and a few round trips of 8 us."""
    case = Case(algo)
    usual, _ = case.run()
    outcome, sums = replace(case, faults="s2 down at 10us").run()
    assert sums == exact(case)
    assert usual.time_ps + 20 * US < outcome.time_ps < usual.time_ps + 40 * US
    [tree] = outcome.rebuilt
    assert tree.at_ps == 30 * US
    assert tree.resumed_ps is not None
    assert tree.resumed_ps < 40 * US


def test_results_take_the_first_spine_again_when_the_second_has_failed() -> None:
    """The first is back by then, and its entries are new."""
    case = Case("atp", elements=200_000, reroute_ps=5 * US)
    usual, _ = case.run()
    outcome, sums = replace(case, faults="s2 down at 10us for 15us, s3 down at 45us").run()
    assert sums == exact(case)
    assert [each.at_ps for each in outcome.rebuilt] == [15 * US, 50 * US]
    assert outcome.time_ps < usual.time_ps + 2 * 30 * US


def groups_of(updates: Updates | None) -> dict[str, dict[int, list[int]]]:
    """The ports of multicast groups that switches are told to have; those to be deleted: none."""
    assert updates is not None
    return {
        switch: {
            each.multicast_group_id: list(each.replicas)
            * (each._update_type != P4UpdateType.DELETE)
            for each in entities
            if isinstance(each, fy.P4MulticastGroupEntry)
        }
        for switch, entities in updates.items()
    }


def test_groups_of_results_avoid_a_spine_while_it_is_down() -> None:
    """By hand: a leaf has its hosts at ports 1 and 2, then s2 and s3; a spine has both leaves.

    Each host has a server; the group of the server of h2 is 256 * 3 + 1.
    """
    graph, [rebuilder] = build(CLOS), Case("atp").network().endpoints.rebuilders.values()
    lost = left_of(graph, [("s2", "s0"), ("s2", "s1")])
    assert groups_of(rebuilder.plan(lost)) == {
        "s0": {257: [1, 2, 4], 513: [1, 2, 4]},
        "s1": {769: [1, 2, 4], 1025: [1, 2, 4]},
        "s2": {257: [], 513: [], 769: [], 1025: []},
        "s3": {257: [2], 513: [2], 769: [1], 1025: [1]},
    }
    assert rebuilder.plan(graph) is None  # trees that are whole stay
    assert groups_of(rebuilder.plan(None)) == {
        "s0": {257: [1, 2, 3], 513: [1, 2, 3]},
        "s1": {769: [1, 2, 3], 1025: [1, 2, 3]},
        "s2": {257: [2], 513: [2], 769: [1], 1025: [1]},
        "s3": {257: [], 513: [], 769: [], 1025: []},
    }


def test_a_link_that_fails_moves_a_tree_too() -> None:
    case = Case(faults="s2-s1 down at 10us")
    outcome, sums = case.run()
    assert outcome.lost > 0
    assert sums == exact(case)


@pytest.mark.parametrize("algo", ["switchml", "tern", "omnireduce-switch", "panama"])
def test_workers_that_have_results_help_those_that_have_not(algo: str) -> None:
    """h0 misses results that all others have, and the tree that could give them again is lost.

    Others have written them over their values, so they send what they have kept of these.
    """
    case = Case(algo, elements=60_000 if algo == "tern" else 3000, slots=4)
    root = tree_of(case.network()).root
    _, sums = case.run()
    outcome, same = replace(
        case, faults=f"h0-s0 down at 5us for 20us, {root} down at 8us", reroute_ps=4 * US
    ).run()
    assert outcome.lost > 0
    assert same == sums


@pytest.mark.parametrize(
    ("algo", "from_us"),
    [("switchml", 7), ("panama", 7), ("omnireduce-switch", 7), ("sharp", 3), ("tern", 3)],
)
def test_workers_that_are_done_help_those_that_are_not(algo: str, from_us: int) -> None:
    """The last results leave s0 after so long, and h0 misses them; the root is lost after that."""
    case = Case(algo, elements=250, slots=4, is_float=True)
    root = tree_of(case.network()).root
    _, sums = case.run()
    faults = f"h0-s0 down at {from_us}us for 20us, {root} down at 9us"
    outcome, same = replace(case, faults=faults, reroute_ps=4 * US).run()
    assert outcome.finish_ps[0] > 27 * US - 4 * US
    assert max(outcome.finish_ps[1:]) < 9 * US
    assert same == sums


def test_windows_forget_what_was_in_flight_over_a_tree_that_is_gone() -> None:
    """PANAMA's, by tree: when all is over, nothing is in flight, and nothing waits for room."""
    network = Case("panama", faults="s2 down at 8us, s3 down at 60us for 10us").network()
    outcome, _ = Case("panama").run(network)
    assert outcome.rebuilt
    arena, [rebuilder] = network.store.arena, network.endpoints.rebuilders.values()
    for at in rebuilder.workers:
        paces = open_paces(arena, open_worker(arena, at))
        trees = paces.trees.reshape(-1, TREE_WORDS)
        assert not trees[:, [IN_FLIGHT, HELD]].any()


@pytest.mark.parametrize("link", ["s0-s1", "s1-s5"])
def test_old_sums_do_not_count_where_switches_have_other_children(link: str) -> None:
    """Switches keep registers, in which bits of the old tree stand for other children."""
    case = Case(topo=JELLYFISH, elements=3000, slots=4)
    _, sums = replace(case, faults=f"{link} down at 5us", reroute_ps=4 * US).run()
    assert sums == exact(case)


@pytest.mark.parametrize("topo", [CLOS, RACK])
def test_a_switch_that_no_tree_leads_around_may_restart(topo: str) -> None:
    """The sums of s0 are lost, and added up again when it is known to be back."""
    case = Case(topo=topo, faults="s0 down at 10us for 5us", elements=60_000)
    outcome, sums = case.run()
    assert sums == exact(case)
    assert outcome.lost > 0


@pytest.mark.parametrize("name", ["s0", "s0-s2, s0-s3"])
def test_where_no_tree_is_left_the_run_ends_and_says_who_waits(name: str) -> None:
    faults = ", ".join(f"{place} down at 10us" for place in name.split(", "))
    with pytest.raises(
        BackendError, match=r"through .* waits for the switches .*'s0 down for 1ms'$"
    ):
        Case(faults=faults).run()


def test_without_new_routes_trees_stay() -> None:
    case = Case(faults="s2 down at 10us", reroute_ps=None)
    assert case.network().endpoints.rebuilders == {}
    with pytest.raises(BackendError, match="waits for the switches to aggregate"):
        case.run()


def test_a_restart_alone_is_mended_when_routes_are_computed_again() -> None:
    """Disturbances of one run, by the time of each: a root loses its sums between two losses."""
    case = Case(elements=60_000, slots=4)
    network = case.network()
    root = tree_of(network).root
    links = [(each, leaf) for leaf in ("s0", "s1") for each in (root,)]
    trouble: list[Disturbance] = [
        *(LinkLoss(9 * US, each, 0.5) for each in links),
        Restart(15 * US, root),
        *(LinkLoss(20 * US, each, None) for each in links),
        Reroute(40 * US, frozenset()),
    ]
    arrays = case.values()
    network.run(SYSTEMS["switchml"].algorithm.build(4), arrays, disturbances=trouble)
    assert [each.tobytes() for each in arrays] == exact(case)
    assert network.drain() == 0


def _apart(graph: nx.Graph[str], one: str, other: str) -> bool:
    """Whether no link is part of both places."""
    first, second = (set(map(frozenset, links_of(graph, each))) for each in (one, other))
    return first.isdisjoint(second)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    topo = draw(st.sampled_from([CLOS, RACK, JELLYFISH, FAT_TREE]))
    graph = build(topo)
    inner = ["-".join(each) for each in graph.edges if set(each) <= set(switches(graph))]
    faults: dict[str, str] = {}
    for name in draw(st.lists(st.sampled_from([*switches(graph), *inner]), max_size=3)):
        if all(_apart(graph, name, other) for other in faults):
            begin, lasting = draw(st.integers(0, 25_000)), draw(st.integers(1, 60_000))
            faults[name] = f"{name} down at {begin}ns for {lasting}ns"
    algo = draw(st.sampled_from(REBUILDING))
    sizes = [100, 5_000] if topo == FAT_TREE else [100, 5_000, 20_000]
    larger = 12 if algo in ("vote", "tern") else 1  # as their packets have more elements
    return Case(
        algo,
        topo,
        ", ".join(faults.values()),
        larger * draw(st.sampled_from(sizes)),
        draw(st.integers(0, 60)) * US,
        draw(st.sampled_from([0.0, 0.0, 0.02])),
        draw(st.sampled_from([None, 1, 4, 16])),
        draw(st.sampled_from([1, 2, 8])),
        draw(st.booleans()),
    )


@FEW
@given(cases())
def test_sums_are_the_same_bits_whenever_and_wherever_something_fails(case: Case) -> None:
    """Floats', too: each rank's is what it is without faults, in the first run and the next."""
    _, sums = replace(case, faults="", loss=0.0, reroute_ps=None).run()
    network = case.network()
    for _ in range(2):
        assert case.run(network)[1] == sums


@settings(max_examples=1 if UNCOMPILED else 6, deadline=None)
@given(cases())
def test_threads_change_nothing(case: Case) -> None:
    times = []
    for threads in (1, 2, 8):
        outcome, sums = replace(case, threads=threads).run()
        times.append((outcome.time_ps, outcome.lost, outcome.retransmissions, sums))
    assert times[0] == times[1] == times[2]
