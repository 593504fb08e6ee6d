"""Rail-only and rail-optimised: formulas, and machines whose NICs are at the leaves of rails."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import TopologyError
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.family import Counts
from ringleaf.topologies.graph import attachment, hosts, kind, switches
from ringleaf.topologies.metrics import diameter
from ringleaf.topologies.registry import build, count
from ringleaf.topologies.routing import path

few = st.integers(1, 4)


def of_kind(graph: nx.Graph[str], name: str) -> list[str]:
    return [switch for switch in switches(graph) if kind(graph, switch) == name]


@given(few, few)
def test_rail_only(nodes: int, rails: int) -> None:
    """n nodes of r GPUs: n r hosts, r switches outside nodes, n r links to them."""
    graph = build(f"railonly,nodes={nodes},rails={rails}")
    gpus = nodes * rails

    assert len(hosts(graph)) == len(of_kind(graph, "server")) == gpus
    assert (len(of_kind(graph, "node")), len(of_kind(graph, "leaf"))) == (nodes, rails)
    assert graph.number_of_edges() == 3 * gpus
    assert {graph.degree[leaf] for leaf in of_kind(graph, "leaf")} == {nodes}
    assert diameter(graph) == 2 * (nodes > 1) + 2 * (rails > 1)
    for rail, leaf in enumerate(of_kind(graph, "leaf")):
        assert sorted(graph[leaf]) == sorted(f"s{node * rails + rail}" for node in range(nodes))


@given(few, few, few, few)
def test_rail_optimised(pods: int, nodes: int, rails: int, spines: int) -> None:
    """p pods of n nodes of r GPUs: p r leaves, each with n GPUs and a link to each spine."""
    sizes = f"pods={pods},nodes={nodes},rails={rails},spines={spines}"
    graph = build(f"railoptimised,{sizes}")
    gpus = pods * nodes * rails

    assert len(hosts(graph)) == gpus
    assert len(of_kind(graph, "leaf")) == pods * rails
    assert len(of_kind(graph, "spine")) == spines
    assert graph.number_of_edges() == 3 * gpus + pods * rails * spines
    assert {graph.degree[leaf] for leaf in of_kind(graph, "leaf")} == {nodes + spines}
    assert {graph.degree[spine] for spine in of_kind(graph, "spine")} == {pods * rails}
    apart = 4 if pods > 1 or (nodes > 1 and rails > 1) else 2 * (nodes > 1 or rails > 1)
    assert diameter(graph) == apart


@pytest.mark.parametrize("nodes", [2, 4])
def test_half_of_the_nodes_send_to_the_other_by_all_rails(nodes: int) -> None:
    """Each GPU of a half has one link out of its node, so a cut between nodes has all of these."""
    graph = build(f"railonly,nodes={nodes},rails=4,rate=1G")
    assert bisection(graph).bps == nodes * 4 // 2 * 10**9


def test_fewer_spines_than_nodes_are_the_bisection() -> None:
    """Two pods of four leaves with one spine each: four links of a pod lead up."""
    graph = build("railoptimised,pods=2,nodes=4,rails=4,spines=1,rate=1G")
    assert bisection(graph).bps == 4 * 10**9


@pytest.mark.parametrize("family", ["railonly,nodes=3", "railoptimised,pods=2,nodes=2,spines=2"])
@pytest.mark.parametrize("machine", ["8xh100", "4xh100", "dgx1", "4xh100,nics=2"])
def test_nics_of_machines_are_at_the_leaves_of_rails(family: str, machine: str) -> None:
    graph = build(f"{family},node={machine}")
    leaves, nodes = of_kind(graph, "leaf"), 3 if family.startswith("railonly") else 2
    rails = {"8xh100": 8, "4xh100": 4, "dgx1": 4, "4xh100,nics=2": 2}[machine]

    assert len(leaves) == rails * (2 if "pods" in family else 1)
    for number, leaf in enumerate(leaves):
        pod, rail = divmod(number, rails)
        nics = {graph.nodes[nic]["label"] for nic in graph[leaf] if kind(graph, nic) == "nic"}
        assert nics == {f"nic {pod * nodes + node}.{rail}" for node in range(nodes)}


@pytest.mark.parametrize(
    ("text", "hosts_"),
    [
        ("railonly,nodes=3,node=8xh100", 24),
        ("railonly,node=4xh100,nics=2", 16),
        ("railoptimised,pods=2,nodes=3,spines=2,node=dgx1", 48),
    ],
)
def test_counts_of_machines_are_those_of_the_graph(text: str, hosts_: int) -> None:
    graph = build(text)
    found = Counts(len(hosts(graph)), len(switches(graph)), graph.number_of_edges(), rack=1)
    assert count(text) == found
    assert found.hosts == hosts_


def test_packets_come_to_another_rail_by_an_nvswitch() -> None:
    """PXN: h1 is GPU 1 of node 0 and h8 GPU 0 of node 1; no leaf joins their rails."""
    graph = build("railonly,nodes=2,node=8xh100")
    kinds = [kind(graph, node) for node in path(graph, "h1", "h8")]
    assert kinds.count("nvswitch") == 1
    assert kinds.count("leaf") == 1
    same = [kind(graph, node) for node in path(graph, "h1", "h9")]
    assert same == ["host", "gpu", "pcie", "nic", "leaf", "nic", "pcie", "gpu", "host"]


def test_plain_gpus_of_a_node_are_at_one_switch() -> None:
    graph = build("railonly,nodes=2,rails=3")
    for host in hosts(graph):
        node = f"s{6 + int(host[1:]) // 3}"
        assert graph.has_edge(attachment(graph, host), node)
    assert all(graph.has_edge(*ends) for ends in pairwise(path(graph, "h0", "h4")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("railonly,nodes=0", "nodes must be >= 1, got 0"),
        ("railonly,rails=0", "rails must be >= 1, got 0"),
        ("railoptimised,pods=0", "pods must be >= 1, got 0"),
        ("railoptimised,spines=0", "spines must be >= 1, got 0"),
        ("railonly,rails=4,node=8xh100", "number of a machine's NICs, 8, got 4; take rails=8"),
    ],
)
def test_impossible_sizes_are_refused(text: str, message: str) -> None:
    for make in (build, count):
        with pytest.raises(TopologyError, match=message):
            make(text)


@pytest.mark.parametrize(
    ("text", "needed", "found"),
    [
        ("railonly", 17, "railonly,nodes=5,rails=4"),
        ("railonly,node=8xh100", 17, "railonly,nodes=3,node=8xh100"),
        ("railoptimised", 33, "railoptimised,pods=2,nodes=5,rails=4,spines=5"),
        ("railoptimised,nodes=2", 33, "railoptimised,pods=5,nodes=2,rails=4,spines=2"),
        ("railoptimised,node=8xh100", 64, "railoptimised,pods=2,nodes=4,spines=4,node=8xh100"),
    ],
)
def test_hosts_that_must_find_room_choose_the_size(text: str, needed: int, found: str) -> None:
    assert count(text, hosts=needed) == count(found)


def test_other_families_have_all_nics_of_a_machine_at_one_switch() -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=1,node=4xh100")
    leaves = [set(graph[nic]) & set(of_kind(graph, "leaf")) for nic in of_kind(graph, "nic")]
    assert [len(near) for near in leaves] == [1] * 8
    assert len(set.union(*leaves)) == 2


@pytest.mark.parametrize(("units", "leaves"), [(1, 8), (2, 16), (3, 24), (4, 32)])
def test_leaves_are_as_many_as_in_the_reference_architecture(units: int, leaves: int) -> None:
    """DGX SuperPOD of H100, Table 4: units of 32 nodes; a node's 8 NICs are at 8 leaves."""
    found = count(f"railoptimised,pods={units},nodes=32,spines=16,node=8xh100")
    assert found.hosts == units * 256
    graph = build(f"railoptimised,pods={units},nodes=2,spines=16,node=8xh100")
    assert len(of_kind(graph, "leaf")) == leaves
