"""Where drawings put nodes, by hand: tiers centred over what they join, grids in unit steps."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import pytest

from ringleaf.topologies.graph import hosts, switches
from ringleaf.topologies.layout import placed
from ringleaf.topologies.registry import build

Point = tuple[float, float]


def places(graph: nx.Graph[str], *names: str) -> list[Point]:
    return [tuple(graph.nodes[name]["pos"]) for name in names]


def approx(points: Iterable[Point]) -> list[object]:
    return [pytest.approx(point) for point in points]


def test_leaves_are_above_the_middle_of_their_hosts_and_spines_share_the_width() -> None:
    """Six hosts, one unit each: the spines' middles are at 1/4 and 3/4 of the width of six."""
    graph = build("leafspine,leaves=2,spines=2,hosts=3")
    assert places(graph, *hosts(graph)) == approx([(x, 0.3) for x in range(6)])
    assert places(graph, *switches(graph)) == approx([(1, 1), (4, 1), (1, 2), (4, 2)])
    assert places(build("leafspine,leaves=2,spines=1,hosts=3"), "s2") == approx([(2.5, 2)])


def test_a_fat_trees_pods_are_side_by_side_below_the_core() -> None:
    """Edges of k = 4 are above their two hosts, aggregation above edges, cores four apart."""
    graph = build("fattree,k=4")
    middles = [0.5 + 2 * i for i in range(8)]
    assert places(graph, *hosts(graph)) == approx([(x, 0.3) for x in range(16)])
    expected: list[Point] = [(x, tier) for tier in (1, 2) for x in middles]
    expected += [(1.5 + 4 * i, 3.2) for i in range(4)]
    assert places(graph, *switches(graph)) == approx(expected)


def test_a_torus_is_a_grid_with_hosts_to_the_lower_right() -> None:
    graph = build("torus2d,x=2,y=3")
    grid = [(float(x), -float(y)) for y in range(3) for x in range(2)]
    assert places(graph, *switches(graph)) == approx(grid)
    beside = [(x + 0.26, y - 0.26) for x, y in grid]
    assert places(graph, *hosts(graph)) == approx(beside)


def test_a_torus_of_three_dimensions_recedes_to_the_upper_right() -> None:
    """With two layers, neighbours in a layer are 1.6 apart, so that layers, 0.6 on, interleave."""
    graph = build("torus3d,x=2,y=2,z=2")
    layer = [(0, 0), (1.6, 0), (0, -1.6), (1.6, -1.6)]
    assert places(graph, *switches(graph)) == approx(
        [*layer, *((x + 0.6, y + 0.6) for x, y in layer)]
    )


def test_servers_of_bcube_are_between_its_levels() -> None:
    """Level 0 is below and level 1 above, each switch in the middle of its share of the width."""
    graph = build("bcube,n=2,k=1")
    servers = [(x, 1) for x in range(4)]
    assert places(graph, *switches(graph)) == approx(
        [*servers, (0.5, 0), (2.5, 0), (0.5, 2.35), (2.5, 2.35)]
    )
    assert places(graph, *hosts(graph)) == approx([(x + 0.4, 1) for x in range(4)])


def test_boards_are_half_a_unit_apart() -> None:
    """Two boards of two by two: the second begins at 2.5; row switches are beside the last."""
    graph = build("hammingmesh,a=2,b=2,x=2,y=1")
    rows = [[(x, -y) for x in xs] for xs in ((0, 1), (2.5, 3.5)) for y in (0, 1)]
    accelerators = [place for row in rows for place in row]
    assert places(graph, *(f"s{n}" for n in range(8))) == approx(accelerators)
    assert places(graph, "s8", "s9") == approx([(4.25, 0.42), (4.25, -0.58)])


def stripped(spec: str) -> nx.Graph[str]:
    """Return a topology whose nodes have no places, as from a file."""
    graph = build(spec)
    for _, data in graph.nodes(data=True):
        del data["pos"]
    return graph


def test_tiers_without_places_are_laid_out_like_those_of_a_family() -> None:
    for spec in ("leafspine,leaves=2,spines=2,hosts=3", "leafspine,leaves=3,spines=1,hosts=2"):
        family, found = build(spec), placed(stripped(spec))
        assert found.graph["layout"] == "tiers"
        assert places(found, *found) == approx(places(family, *found))


def test_hosts_are_centred_where_switches_are_wider() -> None:
    """Three spines over a leaf with one host: the width is three, from -0.5 to 2.5."""
    found = placed(stripped("leafspine,leaves=1,spines=3,hosts=1"))
    assert places(found, *switches(found)) == approx([(1, 1), (0, 2), (1, 2), (2, 2)])
    assert places(found, "h0") == approx([(1, 0.3)])


def test_other_graphs_are_spread_with_the_nearest_nodes_about_one_apart() -> None:
    found = placed(stripped("torus2d,x=3,y=3"))
    assert found.graph["layout"] == "grid"
    at = places(found, *switches(found))
    distances = [abs(complex(*a) - complex(*b)) for i, a in enumerate(at) for b in at[:i]]
    assert 0.7 < min(distances) < 1.3
    assert all((2 * y) % 1 == 0 for _, y in at)
