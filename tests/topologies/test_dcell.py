"""DCell: formulas and mean hops of the paper, and ways by DCellRouting."""

from __future__ import annotations

from itertools import pairwise
from math import log

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from ringleaf.errors import TopologyError
from ringleaf.topologies.bisection import bisection
from ringleaf.topologies.graph import hosts, index, switches
from ringleaf.topologies.registry import build, count
from ringleaf.topologies.routing import path, routes, with_routing


def cell_size(n: int, k: int) -> int:
    """t_0 = n, t_k = t_(k-1) (t_(k-1) + 1)."""
    return n if k == 0 else cell_size(n, k - 1) * (cell_size(n, k - 1) + 1)


def of_servers(graph: nx.Graph[str]) -> nx.Graph[str]:
    """Return the switches; a way from server to server by a cell's switch is one hop."""
    kept = graph.subgraph(switches(graph)).copy()
    count_of_servers = len(hosts(graph))
    for a, b in kept.edges:
        kept.edges[a, b]["hops"] = 1 if max(index(a), index(b)) < count_of_servers else 0.5
    return kept


@pytest.mark.parametrize(
    ("n", "k"), [(2, 0), (5, 0), (2, 1), (3, 1), (4, 1), (7, 1), (2, 2), (3, 2)]
)
def test_dcell(n: int, k: int) -> None:
    graph = build(f"dcell,n={n},k={k}")
    servers = cell_size(n, k)
    inner = of_servers(graph)

    assert len(hosts(graph)) == servers
    assert len(inner) == servers + servers // n
    assert inner.number_of_edges() == servers + k * servers // 2
    for number in range(servers):
        assert inner.degree[f"s{number}"] == 1 + k  # the cell's switch, and a link at each level
    for number in range(servers, servers + servers // n):
        assert inner.degree[f"s{number}"] == n
    lengths = dict(nx.all_pairs_dijkstra_path_length(inner, weight="hops"))
    assert max(lengths[f"s{i}"][f"s{j}"] for i in range(servers) for j in range(servers)) <= (
        2 ** (k + 1) - 1
    )


@pytest.mark.parametrize(
    ("n", "k", "servers", "cells", "at_each_level"),
    [
        (2, 1, 6, 3, 3),
        (3, 1, 12, 4, 6),
        (4, 1, 20, 5, 10),
        (4, 2, 420, 105, 210),
        (5, 2, 930, 186, 465),
        (6, 2, 1806, 301, 903),
        (4, 3, 176_820, 44_205, 88_410),
        (5, 3, 865_830, 173_166, 432_915),
        (6, 3, 3_263_442, 543_907, 1_631_721),
    ],
)
def test_counts_are_those_of_the_paper(
    n: int, k: int, servers: int, cells: int, at_each_level: int
) -> None:
    found = count(f"dcell,n={n},k={k}")
    assert (found.hosts, found.switches - found.hosts) == (servers, cells)
    assert found.links == 2 * servers + k * at_each_level  # inside servers and to switches, too


def test_links_by_hand() -> None:
    """DCell(2, 1): three cells of two servers; they make one ring with their three links."""
    graph = build("dcell,n=2,k=1")
    edges = {"-".join(sorted(ends)) for ends in graph.subgraph(switches(graph)).edges}
    assert edges == {
        *("s0-s6", "s1-s6", "s2-s7", "s3-s7", "s4-s8", "s5-s8"),
        *("s0-s2", "s1-s4", "s3-s5"),  # cells 0 and 1, 0 and 2, 1 and 2
    }


@pytest.mark.parametrize(
    ("n", "k", "mean", "deviation", "most"),
    [(4, 1, 2.263, None, 3), (4, 2, 4.869, 1.269, 7), (5, 2, 5.224, 1.227, 7)],
)
def test_shortest_ways_are_as_long_as_in_the_paper(
    n: int, k: int, mean: float, deviation: float | None, most: int
) -> None:
    """Table 1; hops between servers, of all pairs."""
    graph = build(f"dcell,n={n},k={k}")
    inner, servers = of_servers(graph), len(hosts(graph))
    hops = nx.to_scipy_sparse_array(inner, sorted(inner, key=index), weight="hops")
    found = dijkstra(hops, directed=False, indices=range(servers))[:, :servers]
    apart = found[~np.eye(servers, dtype=bool)]
    assert round(float(apart.mean()), 3) == mean
    assert deviation is None or round(float(apart.std()), 3) == deviation
    assert apart.max() == most


def hop_counts(text: str) -> np.ndarray:
    """Return the hops between servers by DCellRouting, of all pairs, found port by port."""
    graph = with_routing(build(text), "dcell_routing", "dcell")
    table, servers = routes(graph), len(hosts(graph))
    behind = {
        switch: {data["ports"][switch]: peer for peer, data in graph.adj[switch].items()}
        for switch in switches(graph)
    }
    found = []
    for dst in hosts(graph):
        after = {switch: behind[switch][table[switch][dst][0]] for switch in behind}
        hops = {dst: 0.0}

        def left(node: str, after: dict[str, str] = after, hops: dict[str, float] = hops) -> float:
            if node not in hops:
                peer = after[node]
                is_link = max(index(node), index(peer)) < servers
                step = 0.0 if peer[0] == "h" else 1.0 if is_link else 0.5
                hops[node] = step + left(peer)
            return hops[node]

        found += [left(f"s{i}") for i in range(servers) if f"h{i}" != dst]
    return np.array(found)


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [("dcell,n=4,k=2", 5.162, 1.417), ("dcell,n=5,k=2", 5.499, 1.331)],
)
def test_dcell_routing_is_as_long_as_in_the_paper(text: str, mean: float, deviation: float) -> None:
    found = hop_counts(text)
    assert (round(float(found.mean()), 3), round(float(found.std()), 3)) == (mean, deviation)
    assert found.max() <= 7


def plain_route(sizes: list[int], src: int, dst: int) -> list[int]:
    """Return the servers of a way: the paper's recursion, word by word."""
    level = next(i for i, size in enumerate(sizes) if src // size == dst // size)
    if src == dst:
        return [src]
    if level == 0:
        return [src, dst]
    smaller, first = sizes[level - 1], src // sizes[level] * sizes[level]
    i, j = (src - first) // smaller, (dst - first) // smaller
    near, far = (
        (first + i * smaller + j - 1, first + j * smaller + i)
        if i < j
        else (first + i * smaller + j, first + j * smaller + i - 1)
    )
    return plain_route(sizes, src, near) + plain_route(sizes, far, dst)


@given(st.sampled_from([(2, 1), (3, 1), (2, 2)]), st.data())
def test_tables_follow_the_recursion_of_the_paper(
    sizes: tuple[int, int], data: st.DataObject
) -> None:
    n, k = sizes
    graph = with_routing(build(f"dcell,n={n},k={k}"), "dcell_routing", "dcell")
    servers = cell_size(n, k)
    src, dst = (data.draw(st.integers(0, servers - 1)) for _ in range(2))
    if src != dst:
        nodes = path(graph, f"h{src}", f"h{dst}", table=routes(graph))
        found = [index(node) for node in nodes[1:-1] if index(node) < servers]
        assert found == plain_route([cell_size(n, i) for i in range(k + 1)], src, dst)
        assert nodes == path(graph, f"h{src}", f"h{dst}")
        assert all(graph.has_edge(*ends) for ends in pairwise(nodes))


@pytest.mark.parametrize(("n", "k"), [(4, 1), (6, 1), (4, 2)])
def test_bisection_is_above_the_papers_bound(n: int, k: int) -> None:
    """Theorem 2: at least t / (4 log_n t) links; ours is an upper bound, of links of 1."""
    graph = build(f"dcell,n={n},k={k}", rate_bps=1)
    servers = cell_size(n, k)
    assert bisection(graph).bps >= servers / (4 * log(servers, n))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("n=1", "n must be >= 2, got 1"),
        ("k=6", "k must be <= 5, got 6"),
    ],
)
def test_impossible_sizes_are_refused(sizes: str, message: str) -> None:
    for make in (build, count):
        with pytest.raises(TopologyError, match=message):
            make(f"dcell,{sizes}")


def test_its_own_routing_is_for_no_other_family() -> None:
    with pytest.raises(TopologyError, match="routes dcell are for dcell; take routes=dealt"):
        with_routing(build("fattree,k=2"), "dcell_routing", "dcell")


@pytest.mark.parametrize(
    ("needed", "found"),
    [("dcell", "dcell,n=4,k=1"), ("dcell,n=3", "dcell,n=3,k=2"), ("dcell,k=2", "dcell,n=2,k=2")],
)
def test_hosts_that_must_find_room_choose_the_size(needed: str, found: str) -> None:
    assert count(needed, hosts=20) == count(found)
