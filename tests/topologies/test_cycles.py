"""Cycles that share no link, and orders in which neighbours are near."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from random import Random

import networkx as nx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringleaf.experiments.setup.network import keep_hosts
from ringleaf.topologies import registry
from ringleaf.topologies.cycles import grid_cycles
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.rank_order import host_cycles, host_grid, near_order
from ringleaf.topologies.routing import path


def torus(sizes: tuple[int, ...]) -> nx.Graph[int]:
    """Make the grid with networkx, which numbers places by tuples, the slowest first."""
    made = nx.grid_graph(list(sizes), periodic=True)
    number = {
        place: sum(at * prod(sizes[:axis]) for axis, at in enumerate(reversed(place)))
        for place in made
    }
    return nx.relabel_nodes(made, number)


@example([2, 5, 3])  # whose first search ends nowhere
@given(
    st.lists(st.integers(2, 7), min_size=2, max_size=4).filter(
        lambda sizes: max(sizes) > 2 and prod(sizes) <= 200
    )
)
def test_cycles_have_all_places_and_share_no_link(sizes: list[int]) -> None:
    """A torus of k rings is the sum of k Hamiltonian cycles."""
    graph = torus(tuple(sizes))

    cycles = grid_cycles(tuple(sizes))

    assert len(cycles) == sum(size > 2 for size in sizes)
    links = [frozenset(ends) for cycle in cycles for ends in pairwise((*cycle, cycle[0]))]
    assert len(set(links)) == len(links)
    assert all(graph.has_edge(*link) for link in links)
    assert all(sorted(cycle) == sorted(graph) for cycle in cycles)


@pytest.mark.parametrize(
    ("topo", "sizes"),
    [
        ("torus3d,x=4,y=2,z=2", (4, 4)),
        ("torus3d,x=2,y=3,z=2", (3, 4)),
        ("torus3d,x=2,y=2,z=2", (4, 2)),
        ("bcube,n=2,k=3", (4, 4)),
        ("hammingmesh,a=1,b=1,x=2,y=2", (4,)),
    ],
)
def test_dimensions_of_two_are_joined_to_rings_of_four(topo: str, sizes: tuple[int, ...]) -> None:
    """Neighbours in the grid, the last and the first included, are as near as any two hosts."""
    graph = registry.build(topo)
    names = hosts(graph)

    found, ranks = host_grid(graph, len(names))

    assert found == sizes
    assert sorted(ranks) == list(range(len(names)))
    least = min(len(path(graph, names[0], name)) for name in names[1:])
    for axis, size in enumerate(sizes):
        stride = prod(sizes[:axis])
        for place, rank in enumerate(ranks):
            after = place + ((place // stride % size + 1) % size - place // stride % size) * stride
            assert len(path(graph, names[rank], names[ranks[after]])) == least


@pytest.mark.parametrize("sizes", [(), (1,), (2,), (1, 2)])
def test_a_grid_without_a_ring_has_no_cycle(sizes: tuple[int, ...]) -> None:
    assert grid_cycles(sizes) == ()


@pytest.mark.parametrize(
    ("topo", "cycles", "links"),
    [
        ("torus2d,x=4,y=4", 2, 3),  # host, server, server, host
        ("torus3d,x=3,y=3,z=3", 3, 3),
        ("torus3d,x=4,y=2,z=2", 2, 3),  # two dimensions of two are a ring of four
        ("hammingmesh,a=2,b=2,x=2,y=2", 2, 4),  # perhaps by way of a row's switch
        ("hammingmesh,a=3,b=2,x=2,y=3", 2, 4),
        ("hammingmesh,a=1,b=3,x=4,y=2", 2, 4),
    ],
)
def test_rings_of_servers_meet_on_no_link(topo: str, cycles: int, links: int) -> None:
    """By the routes that packets get, each link between servers carries one cycle each way."""
    graph = registry.build(topo)
    names = hosts(graph)

    found = host_cycles(graph, len(names))

    assert len(found) == cycles
    used = []
    for cycle in found:
        for a, b in pairwise((*cycle, cycle[0])):
            way = path(graph, names[a], names[b])
            assert len(way) - 1 <= links
            used += [frozenset(ends) for ends in pairwise(way[1:-1])]
    if "a=1" not in topo:  # whose one link to a switch has twice the rate
        assert len(set(used)) == len(used)


def test_each_port_of_bcube_has_as_much() -> None:
    """Of each server's two ways in each of two cycles, two lead to either switch."""
    graph = registry.build("bcube,n=4,k=1")
    cycles = host_cycles(graph, 16)
    assert len(cycles) == 2
    for server in range(16):
        near = [cycle[(cycle.index(server) + by) % 16] for cycle in cycles for by in (-1, 1)]
        assert sum(peer // 4 == server // 4 for peer in near) == 2


def test_a_mesh_of_one_board_has_no_rings() -> None:
    graph = registry.build("hammingmesh,a=4,b=4,x=1,y=2")
    assert host_grid(graph, 32) == ((), ())


@given(st.integers(0, 1000))
def test_a_fat_tree_is_gone_through_by_pod_and_edge(seed: int) -> None:
    """Whatever the numbers of hosts: all of an edge switch, then all of its pod, follow on."""
    graph = registry.build("fattree,k=4")
    names = hosts(graph)
    mixed = names.copy()
    Random(seed).shuffle(mixed)
    order = near_order(nx.relabel_nodes(graph, dict(zip(names, mixed, strict=True))), 16)
    at = {host: place for place, host in enumerate(mixed)}
    places = [at[names[host]] for host in order]
    for group in (2, 4):
        blocks = [[place // group for place in places[i : i + group]] for i in range(0, 16, group)]
        assert all(len(set(block)) == 1 for block in blocks)


def test_the_given_order_of_a_leaf_spine_is_near() -> None:
    graph = registry.build("leafspine,leaves=3,spines=2,hosts=4")
    assert host_cycles(graph, 12) == (tuple(range(12)),)
    assert near_order(graph, 7) == tuple(range(7))


def test_rings_of_circuits_are_of_the_racks_that_have_hosts() -> None:
    """One of three racks has one host alone; rings go at strides of 1 and 2."""
    graph = keep_hosts(registry.build("circuits,racks=4,hosts=2,optical=2"), 5)
    assert host_cycles(graph, 5) == ((0, 1, 2, 3, 4), (0, 1, 4, 2, 3))
    assert host_cycles(keep_hosts(graph, 2), 2) == ((0, 1),)
